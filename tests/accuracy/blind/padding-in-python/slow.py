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
        ids, mask, types = [], [], []
        for f in features:
            row = [int(token) for token in f["input_ids"]]
            gap = longest - len(row)
            ids.append(row + [self.pad] * gap)
            mask.append([1] * len(row) + [0] * gap)
            types.append([0] * longest)
        return {
            "input_ids": torch.tensor(ids),
            "attention_mask": torch.tensor(mask),
            "token_type_ids": torch.tensor(types),
            "labels": torch.tensor([f["label"] for f in features]),
        }


def make_loader():
    return DataLoader(Tokens(), batch_size=32, shuffle=True, collate_fn=PadCollator())
