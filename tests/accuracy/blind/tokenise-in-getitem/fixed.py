"""token ids were written once"""
import os
import tempfile

ROOT = os.path.join(os.environ.get("IOSCOPE_ACCURACY_DATA", tempfile.gettempdir()), "tokenise-in-getitem")

import re

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

TEXT = os.path.join(ROOT, "docs.txt")
PIECE = re.compile(r"[a-z]+|[0-9]|[^a-z0-9\s]")


def prepare():
    write()
    if not os.path.exists(TEXT + ".pt"):
        docs = Documents()
        torch.save(torch.tensor([docs.tokenizer(t, 512) for t in docs.texts]), TEXT + ".pt")


def write():
    if os.path.exists(TEXT):
        return
    os.makedirs(ROOT, exist_ok=True)
    rng = np.random.default_rng(0)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    words = ["".join(rng.choice(letters, rng.integers(2, 11))) for _ in range(8_000)]
    with open(TEXT + ".new", "w") as f:
        for _ in range(2_500):
            f.write(" ".join(rng.choice(words, 300)) + "\n")
    os.rename(TEXT + ".new", TEXT)


class Tokenizer:
    def __init__(self, vocabulary):
        self.ids = {piece: k for k, piece in enumerate(vocabulary)}

    def word(self, word):
        out, start = [], 0
        while start < len(word):                      # the longest piece first
            for end in range(min(len(word), start + 6), start, -1):
                if word[start:end] in self.ids:
                    out.append(self.ids[word[start:end]])
                    start = end
                    break
            else:
                out.append(0)
                start += 1
        return out

    def __call__(self, text, length):
        ids = [k for word in PIECE.findall(text.lower()) for k in self.word(word)][:length]
        return ids + [0] * (length - len(ids))


class Documents(Dataset):
    def __init__(self):
        with open(TEXT) as f:
            self.texts = f.read().splitlines()
        pieces = sorted({t[k : k + n] for t in self.texts[:20] for k in range(0, len(t), 7) for n in (1, 2, 3)})
        self.tokenizer = Tokenizer(["<unk>", *pieces])
        self.encoded = torch.load(TEXT + ".pt", mmap=True) if os.path.exists(TEXT + ".pt") else None

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        return self.encoded[i]


def make_loader():
    return DataLoader(Documents(), batch_size=25, shuffle=True)
