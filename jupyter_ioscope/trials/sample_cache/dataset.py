"""A dataset whose samples are made once and then come out of memory that all workers share."""

from __future__ import annotations

import operator
import pickle
from collections.abc import Sequence
from typing import Any

from jupyter_ioscope.errors import InputError
from jupyter_ioscope.trials.sample_cache._codec import decoded, encoded
from jupyter_ioscope.trials.sample_cache._store import CacheStats, SampleStore


class CachedDataset:
    """Wraps a map-style dataset; the first access to an index makes the sample, later ones copy it.

        loader = DataLoader(ioscope.CachedDataset(dataset, limit_bytes=2 * 2**30), ...)
        loader.dataset.stats().hit_fraction

    All workers share one cache, in this process's memory and not on disk. What was used least
    recently goes first when `limit_bytes` (samples and index together) are full. `ttl_s`: seconds
    after which a sample is made anew. It is right only for samples that come out the same each
    time: random augmentation would be frozen, so cache what comes before it.

    A sample that cannot be pickled or is larger than the limit is made anew each time. Other
    attributes are those of the dataset.

    Raises:
        InputError: the dataset has no `__getitem__`, or an argument cannot be used.
    """

    def __init__(self, dataset: Any, limit_bytes: int, ttl_s: float | None = None) -> None:
        if not hasattr(dataset, "__getitem__"):
            raise InputError("dataset must be map-style (with __getitem__): iterable ones have no "
                             "index under which a sample could be kept")  # fmt: skip
        if isinstance(limit_bytes, bool) or not isinstance(limit_bytes, int):
            raise InputError(f"limit_bytes must be a whole number of bytes, got {limit_bytes!r}")
        if ttl_s is not None and not ttl_s > 0:
            raise InputError(f"ttl_s must be a number of seconds above 0, got {ttl_s!r}")
        self.dataset = dataset
        self._store = SampleStore(limit_bytes, ttl_s)

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: Any) -> Any:
        key = _key(index)
        if key is None:
            return self.dataset[index]
        data = self._store.get(key)
        if data is not None:
            return decoded(data)
        sample = self.dataset[index]
        self._keep(key, sample)
        return sample

    def __getitems__(self, indices: Sequence[Any]) -> list[Any]:
        """Samples of a batch; what is not in the cache is asked for as the dataset prefers it."""
        keys = [_key(index) for index in indices]
        found = [self._store.get(key) if key is not None else None for key in keys]
        missing = [place for place, data in enumerate(found) if data is None]
        made = dict(zip(missing, self._made([indices[place] for place in missing]), strict=True))
        for place, sample in made.items():
            key = keys[place]
            if key is not None:
                self._keep(key, sample)
        return [
            decoded(data) if data is not None else made[place] for place, data in enumerate(found)
        ]

    def _made(self, indices: list[Any]) -> list[Any]:
        if not indices:
            return []
        many = getattr(self.dataset, "__getitems__", None)
        return list(many(indices)) if many else [self.dataset[index] for index in indices]

    def _keep(self, key: int | bytes, sample: Any) -> None:
        try:
            parts = encoded(sample)
        except Exception:
            self._store.note_unstorable()  # the user's sample is there all the same
            return
        self._store.put(key, parts)

    def stats(self) -> CacheStats:
        """Hits, misses and sizes so far, of all processes together."""
        return self._store.stats()

    def clear(self) -> None:
        """Forget all samples, for example after the data has changed."""
        self._store.clear()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "dataset" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.dataset, name)


def _key(index: Any) -> int | bytes | None:
    """What an index is kept under; None when there is nothing to tell it from others by."""
    try:
        number = operator.index(index)
    except TypeError:
        pass
    else:
        return number if number >= 0 else f"i{number}".encode()
    if not isinstance(index, (str, bytes, tuple)):
        return None
    try:
        return b"p" + pickle.dumps(index)
    except Exception:
        return None
