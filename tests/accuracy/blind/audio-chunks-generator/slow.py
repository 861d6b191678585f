"""Chunks of a long recording from a plain generator; a recurrent model listens."""
import torch

RNN = torch.nn.GRU(64, 160, batch_first=True)


def chunks(wave, size, hop):
    for start in range(0, len(wave) - size, hop):
        yield wave[start : start + size].reshape(1, -1, 64)


def batched(source, n):
    held = []
    for chunk in source:
        held.append(chunk)
        if len(held) == n:
            yield torch.cat(held)
            held = []


def make_loader():
    wave = torch.randn(16_000 * 12, generator=torch.Generator().manual_seed(0))
    return batched(chunks(wave, 6_400, 1_600), 8)


def consume(batch):
    with torch.no_grad():
        RNN(batch)
