"""meshes are kept as OFF text and read line by line for every item."""
import os
import shutil
import tempfile
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

ROOT = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "meshes-in-off-text")
DISTINCT, N_MESHES, N_VERTS, N_FACES = 20, 400, 8000, 16000


def prepare():
    if os.path.isdir(ROOT):
        return
    tmp = f"{ROOT}.{os.getpid()}"
    os.makedirs(tmp, exist_ok=True)
    rng = np.random.default_rng(12)
    for k in range(DISTINCT):
        verts = rng.normal(size=(N_VERTS, 3)).tolist()
        faces = rng.integers(0, N_VERTS, (N_FACES, 3)).tolist()
        lines = ["OFF", f"{N_VERTS} {N_FACES} 0"]
        lines += ["%.6f %.6f %.6f" % tuple(v) for v in verts]
        lines += ["3 %d %d %d" % tuple(f) for f in faces]
        text = "\n".join(lines) + "\n"
        for copy in range(k, N_MESHES, DISTINCT):
            with open(os.path.join(tmp, f"mesh_{copy:04d}.off"), "w") as f:
                f.write(text)
    try:
        os.rename(tmp, ROOT)
    except OSError:
        shutil.rmtree(tmp, ignore_errors=True)


def read_off(path):
    with open(path) as f:
        if f.readline().strip() != "OFF":
            raise ValueError(path)
        n_verts, n_faces, _ = (int(w) for w in f.readline().split())
        verts = [[float(w) for w in f.readline().split()] for _ in range(n_verts)]
        faces = [[int(w) for w in f.readline().split()[1:]] for _ in range(n_faces)]
    return np.array(verts, dtype=np.float32), np.array(faces, dtype=np.int64)


class Meshes(Dataset):
    def __len__(self):
        return N_MESHES

    def __getitem__(self, i):
        verts, faces = read_off(os.path.join(ROOT, f"mesh_{i:04d}.off"))
        pick = np.random.randint(0, len(faces), 1024)        # new surface points on every visit
        points = verts[faces[pick]].mean(axis=1)
        return torch.from_numpy(points), i % 10


def consume(batch):
    time.sleep(0.004)


def make_loader():
    return DataLoader(Meshes(), batch_size=8, num_workers=2, shuffle=True)
