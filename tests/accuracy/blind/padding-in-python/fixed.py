"""Token lists of different lengths, padded by a collator that builds lists of lists."""
import random

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Tokens(Dataset):
    def __init__(self, n=2_400):
        draw = random.Random(0)
        self.rows = [np.arange(draw.randint(200, 600), dtype=np.int64) % 30_000 for _ in range(n)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return {"input_ids": self.rows[i], "label": i % 2}


class PadCollator:
    def __init__(self, pad=0):
        self.pad = pad

    def __call__(self, features):
        longest = max(len(f["input_ids"]) for f in features)
        shape = len(features), longest
        ids, mask = np.full(shape, self.pad, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        for row, f in enumerate(features):
            size = len(f["input_ids"])
            ids[row, :size] = f["input_ids"]
            mask[row, :size] = 1
        return {
            "input_ids": torch.from_numpy(ids),
            "attention_mask": torch.from_numpy(mask),
            "token_type_ids": torch.zeros(shape, dtype=torch.int64),
            "labels": torch.tensor([f["label"] for f in features]),
        }


def make_loader():
    return DataLoader(Tokens(), batch_size=32, shuffle=True, collate_fn=PadCollator())
