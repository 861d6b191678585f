"""Random walks over a graph whose node records (one 4 KiB block each) stay on the SSD."""
import mmap
import os
import tempfile

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

DIR = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "graph-walks-on-ssd")
NODES = os.path.join(DIR, "nodes.bin")
COUNT, REC = 60_000, 4096
WALKS, HOPS = 1600, 64


def prepare():
    os.makedirs(DIR, exist_ok=True)
    if os.path.exists(NODES) and os.path.getsize(NODES) == COUNT * REC:
        return
    rng = np.random.default_rng(7)
    nxt = rng.permutation(COUNT).astype("<u4")       # word 0: where the walk goes from here
    tmp = NODES + f".{os.getpid()}"
    with open(tmp, "wb") as f:
        for lo in range(0, COUNT, 6000):
            block = rng.integers(0, 2**32, (6000, REC // 4), dtype=np.uint32)
            block[:, 0] = nxt[lo:lo + 6000]
            block.tofile(f)
        f.flush()
        os.fsync(f.fileno())
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    os.rename(tmp, NODES)


class NodeStore:
    def __init__(self, path):
        self.fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
        self.page = mmap.mmap(-1, REC)
        self.words = np.frombuffer(self.page, dtype="<u4")

    def read(self, node):
        os.preadv(self.fd, (self.page,), node * REC)
        return self.words


class Walks(Dataset):
    """One item: the record after HOPS steps, XORed along the way (a sketch of the neighbourhood)."""

    def __init__(self):
        self.store = NodeStore(NODES)
        self.starts = np.random.default_rng(11).integers(0, COUNT, WALKS)

    def __len__(self):
        return WALKS

    def __getitem__(self, i):
        sketch = np.zeros(REC // 4, np.uint32)
        node = int(self.starts[i])
        for _ in range(HOPS):                        # the next node is only known once this one is read
            rec = self.store.read(node)
            np.bitwise_xor(sketch, rec, out=sketch)
            node = int(rec[0])
        return torch.from_numpy(sketch.view(np.int32))


def make_loader():
    return DataLoader(Walks(), batch_size=16)
