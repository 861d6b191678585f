"""One request at a time (fixed)."""
import http.client
import subprocess
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

N = 900
EPOCHS = 1
SERVER = """
import http.server, os, sys, threading, time
class Store(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    disable_nagle_algorithm = True
    def do_GET(self):
        time.sleep(0.012)
        body = bytes([int(self.path[1:]) % 256]) * 8192
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *a):
        pass
s = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Store)
print(s.server_address[1], flush=True)
threading.Thread(target=s.serve_forever, daemon=True).start()
sys.stdin.read()                     # until the reader of this store is gone
os._exit(0)
"""
store = None


def prepare():
    """Starts the store; it ends with this process, whose pipe it reads."""
    global store, PORT
    if store is None:
        store = subprocess.Popen([sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        PORT = int(store.stdout.readline())


class Objects(Dataset):
    link = None

    def __len__(self):
        return N

    def __getitem__(self, i):
        if self.link is None:
            self.link = http.client.HTTPConnection("127.0.0.1", PORT)
        self.link.request("GET", f"/{i}")
        return torch.frombuffer(bytearray(self.link.getresponse().read()), dtype=torch.uint8)


def consume(batch):
    time.sleep(0.03)


def make_loader():
    return DataLoader(Objects(), batch_size=12, num_workers=6)
