"""Robot episodes from a few big files, each read through a slow gateway (a fixed delay an episode)."""
import os
import pickle
import tempfile
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

PARTS = 8
EPISODES = 480
FOLDER = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "robot-logs-two-files", f"robot{PARTS}")


def prepare():
    os.makedirs(FOLDER, exist_ok=True)
    rng = np.random.default_rng(0)
    for part in range(PARTS):
        with open(os.path.join(FOLDER, f"{part:02d}.pkl"), "wb") as out:
            for _ in range(EPISODES // PARTS):
                pickle.dump(rng.standard_normal((20, 14)).astype(np.float32), out)


class Episodes(IterableDataset):
    def __init__(self, files):
        self.files = files

    def __iter__(self):
        for name in self.files:
            with open(name, "rb") as stream:
                while True:
                    try:
                        episode = pickle.load(stream)
                    except EOFError:
                        break
                    time.sleep(0.012)  # the gateway
                    yield torch.from_numpy(episode)


def split(worker_id):
    info = get_worker_info()
    info.dataset.files = info.dataset.files[worker_id :: info.num_workers]


def make_loader():
    files = sorted(os.path.join(FOLDER, f) for f in os.listdir(FOLDER))
    return DataLoader(Episodes(files), batch_size=8, num_workers=4, worker_init_fn=split)
