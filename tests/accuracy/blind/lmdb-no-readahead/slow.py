"""Patches in LMDB, opened with readahead=False as the recipe said, random keys, nothing cached yet."""
import os
import os.path as osp
import random
import tempfile

import lmdb
import torch
from torch.utils.data import DataLoader, IterableDataset

ROOT = osp.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "lmdb-no-readahead")
DB = osp.join(ROOT, "patches.mdb")
N, VALUE = 19_000, 12_200
EPOCHS = 2


def _drop(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def prepare():
    os.makedirs(ROOT, exist_ok=True)
    if not osp.exists(DB):
        tmp = f"{DB}.{os.getpid()}"
        env = lmdb.open(tmp, map_size=1 << 30, subdir=False, sync=False, lock=False)
        noise = os.urandom(VALUE * 64)
        for lo in range(0, N, 1000):
            with env.begin(write=True) as txn:
                for i in range(lo, lo + 1000):
                    at = (i * 977) % (VALUE * 63)
                    txn.put(b"%08d" % i, noise[at:at + VALUE], append=True)
        env.sync(True)
        env.close()
        os.rename(tmp, DB)
    _drop(DB)


class Patches(IterableDataset):
    def __iter__(self):
        env = lmdb.open(DB, subdir=False, readonly=True, lock=False, readahead=False, meminit=False)
        order = list(range(N))
        random.Random(3).shuffle(order)
        try:
            with env.begin(buffers=True) as txn:
                for i in order:
                    view = txn.get(b"%08d" % i)
                    yield torch.frombuffer(bytearray(view), dtype=torch.uint8)
        finally:
            env.close()
            _drop(DB)                                # the real set is far larger than memory: no pass finds it cached


def make_loader():
    return DataLoader(Patches(), batch_size=100)
