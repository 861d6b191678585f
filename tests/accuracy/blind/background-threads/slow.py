"""Hand-made loader: threads augment point clouds in plain Python and put batches on a queue."""
import queue
import threading

import torch

BATCHES, SIZE, THREADS = 60, 8, 4


def jitter(points, seed):
    out = []
    state = seed
    for x, y, z in points:
        state = (state * 1103515245 + 12345) % 2147483648
        d = state / 2147483648 - 0.5
        out.append((x * 0.8 - y * 0.6 + d, x * 0.6 + y * 0.8 - d, z + d * 0.1))
    return out


CLOUD = [(i * 0.1, i * 0.2, i * 0.3) for i in range(6_000)]


class BackgroundLoader:
    def __init__(self, batches, size, threads):
        self.batches, self.size, self.threads = batches, size, threads

    def _fill(self, first):
        for b in range(first, self.batches, self.threads):
            rows = [torch.tensor(jitter(CLOUD, b * self.size + k)) for k in range(self.size)]
            self.queue.put(torch.stack(rows))

    def __iter__(self):
        self.queue = queue.Queue(maxsize=8)
        crew = [threading.Thread(target=self._fill, args=(k,), daemon=True) for k in range(self.threads)]
        for thread in crew:
            thread.start()
        for _ in range(self.batches):
            yield self.queue.get()
        for thread in crew:
            thread.join()


def make_loader():
    return BackgroundLoader(BATCHES, SIZE, THREADS)


def consume(batch):
    batch.mean().item()
