"""What a measured place means for one loader: its request size, its files, its samples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.storage import Timing
from jupyter_ioscope.storage import filesystems
from jupyter_ioscope.units import bytes_text, percent, rate, seconds, significant

_SHOWN = 4  # mounts
# What a worker reads without reading any data: at its start (measured 280 kB), and through a pipe
# the numbers of the samples that it is to make (measured 13 B a sample in batches of 256).
_START_BYTES = 1_000_000
_ORDER_BYTES = 64


class Demand(NamedTuple):
    """What a loader asks of its storage, for one sample. -1 where the profile does not say."""

    samples: int
    samples_per_s: float
    readers: int  # processes that fetch at the same time
    opens: float
    requests: float
    request_bytes: float


def demand(profile: Profile) -> Demand:
    """From the profile's batches, its opened files and the counters of its processes."""
    samples = sum(max(0, batch.samples) for batch in profile.batches)
    workers = {use.worker for use in profile.processes if use.worker >= 0}
    fetching = [use for use in profile.processes if not workers or use.worker >= 0]
    calls = sum(max(0, use.read_calls) for use in fetching)
    moved = sum(max(0, use.read_bytes) for use in fetching)
    opens = sum(use.opens for use in profile.files if use.phase == "fetch" and use.mode != "w")
    fetched = sum(max(0, fetch.samples) for fetch in profile.fetches) or samples
    return Demand(
        samples=samples,
        samples_per_s=samples / profile.wall_s if samples and profile.wall_ns > 0 else -1.0,
        readers=max(1, len(workers)),
        opens=opens / fetched if profile.files and fetched else -1.0,
        requests=calls / fetched if calls and fetched else -1.0,
        request_bytes=moved / calls if calls else -1.0,
    )


def sentences(
    profile: Profile, place: str, mount_point: str, timings: tuple[Timing, ...]
) -> Iterator[str]:
    """What the numbers mean for the profile's loader."""
    yield from _files(profile, place, mount_point)
    wanted = demand(profile)
    by_name = {row.name: row for row in timings}
    large, small, opened = (by_name.get(n) for n in ("sequential read", "random read", "open"))
    if wanted.requests < 0 or large is None or small is None or not large.bytes_per_s:
        yield (
            "The profile does not hold the counters of its processes: what this place allows the "
            "loader is not known."
        )
        return
    read_bytes = wanted.requests * wanted.request_bytes
    data_bytes = read_bytes - _START_BYTES * wanted.readers / max(1, wanted.samples)
    if wanted.opens <= 0 and data_bytes < _ORDER_BYTES:
        yield (
            f"By read calls come only {bytes_text(read_bytes)} a sample, no more than workers read "
            "to start and to be told what to make: what this loader hands out lies in memory, or "
            "in files mapped into it, whose reads are not counted."
        )
        return
    one_s = request_s(wanted.request_bytes, large, small)
    opens = max(0.0, wanted.opens)
    sample_s = wanted.requests * one_s + opens * (opened.p50_s if opened is not None else 0.0)
    yield (
        f"This loader reads {bytes_text(wanted.request_bytes)} a request, "
        f"{significant(wanted.requests)} requests and {significant(opens)} opens a sample: about "
        f"{seconds(sample_s)} of storage time a sample here, if nothing comes from the page cache."
    )
    if sample_s > 0:
        allowed = wanted.readers / sample_s
        yield (
            f"{wanted.readers} reading process{'es' * (wanted.readers > 1)} one request at a time: "
            f"at most about {rate(allowed)}; the profile ran at {rate(wanted.samples_per_s)}, "
            f"{percent(min(1.0, wanted.samples_per_s / allowed))} of that."
        )


def request_s(size_bytes: float, large: Timing, small: Timing) -> float:
    """Time of one read: a small read's latency, what is beyond it at a large read's pace."""
    beyond = max(0.0, size_bytes - small.request_bytes)
    return small.p50_s + beyond / large.bytes_per_s


def _files(profile: Profile, place: str, mount_point: str) -> Iterator[str]:
    paths = {use.path for use in profile.files if use.phase == "fetch"}
    if not paths:
        return
    here = sum(path == place or path.startswith(place.rstrip("/") + "/") for path in paths)
    mounted = mount_point.rstrip("/") + "/"
    same = sum(path.startswith(mounted) for path in paths)
    if not same:
        yield f"None of the {len(paths):,} files that the loader opened lies on {mount_point}."
    else:
        yield f"{here:,} of the {len(paths):,} files that the loader opened lie in {place}."
    rows = filesystems.of_profile(profile)
    if len(rows) > 1:
        told = ", ".join(f"{row.name} at {row.mount_point} ({n:,})" for row, n in rows[:_SHOWN])
        yield f"They lie on {len(rows)} mounts: {told}."
