"""Decoded samples kept in memory that all workers share."""

from __future__ import annotations

from jupyter_ioscope.trials.sample_cache._store import CacheStats
from jupyter_ioscope.trials.sample_cache.dataset import CachedDataset

__all__ = ["CacheStats", "CachedDataset"]
