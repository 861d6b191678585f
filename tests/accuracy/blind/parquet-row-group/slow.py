"""a row group is decoded for each row of it"""
import os
import tempfile

ROOT = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "parquet-row-group")

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch.utils.data import DataLoader, Dataset

FILE = os.path.join(ROOT, "part-0.parquet")
ROWS, GROUP = 40_000, 5_000
MAX_BATCHES = 16


def prepare():
    if os.path.exists(FILE):
        return
    os.makedirs(ROOT, exist_ok=True)
    rng = np.random.default_rng(0)
    features = pa.FixedSizeListArray.from_arrays(pa.array(rng.standard_normal(ROWS * 96).astype(np.float32)), 96)
    text = pa.array([f"item number {i} of the catalogue" for i in range(ROWS)])
    table = pa.table({"text": text, "features": features, "label": pa.array(np.arange(ROWS) % 17)})
    pq.write_table(table, FILE + ".new", row_group_size=GROUP, compression="zstd")
    os.rename(FILE + ".new", FILE)


class Catalogue(Dataset):
    def __init__(self):
        self.file = pq.ParquetFile(FILE)

    def __len__(self):
        return self.file.metadata.num_rows

    def __getitem__(self, i):
        group = self.file.read_row_group(i // GROUP)
        row = group.slice(i % GROUP, 1)
        return torch.from_numpy(row["features"].combine_chunks().flatten().to_numpy().copy()), row["label"][0].as_py()


def make_loader():
    return DataLoader(Catalogue(), batch_size=32, shuffle=True)
