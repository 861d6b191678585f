"""A store of objects that answers late, as one in another region does: a web server of its own
process on this machine, so that nothing leaves it.

    store = far_store.start(delay_s=0.02)
    urllib.request.urlopen(f"{store.url}/17").read()
    store.close()

Every object has its own content, made from its name: whoever asks twice gets the same bytes.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

OBJECT_BYTES = 4096


class FarStore:
    """The store while it runs; `url` comes before the names of objects."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self._process = process
        self.url = f"http://127.0.0.1:{port}"

    def close(self) -> None:
        """End the store. Closing twice does no harm."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.terminate()
        self._process.wait(timeout=10)

    def __enter__(self) -> FarStore:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def start(delay_s: float) -> FarStore:
    """Start a store that answers every request after `delay_s`.

    Raises:
        RuntimeError: it did not start.
    """
    process = subprocess.Popen(
        [sys.executable, __file__, "--delay", str(delay_s)],
        stdin=subprocess.PIPE,  # it ends when nobody holds the other end any more
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # interrupting a cell does not end it
    )
    assert process.stdout is not None
    port = process.stdout.readline().strip()
    store = FarStore(process, int(port or 0))
    if not port:
        store.close()
        raise RuntimeError(f"the store did not start (exit code {process.returncode})")
    return store


def content(name: str) -> bytes:
    """What the object of that name holds."""
    return random.Random(name).randbytes(OBJECT_BYTES)


def serve(delay_s: float) -> None:
    """Answer, each connection in a thread of its own, until standard input ends."""

    class Late(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            time.sleep(delay_s)
            body = content(self.path.lstrip("/"))
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Late)
    server.daemon_threads = True
    threading.Thread(target=end_with_standard_input, daemon=True).start()
    print(server.server_address[1], flush=True)
    server.serve_forever()


def end_with_standard_input() -> None:
    sys.stdin.read()
    os._exit(0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--delay", type=float, required=True, help="seconds until each answer")
    serve(parser.parse_args().delay)


if __name__ == "__main__":
    main()
