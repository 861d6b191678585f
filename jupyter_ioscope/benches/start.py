"""Starting workers against keeping them: fork, spawn, forkserver; memory of a worker; what pays."""

from __future__ import annotations

import contextlib
import functools
import itertools
import multiprocessing
import time
from collections.abc import Mapping, Sequence
from typing import Any

from jupyter_ioscope.arguments import kind
from jupyter_ioscope.benches._bench import Arm, Bench, Found, Measured, Pass, Prepared
from jupyter_ioscope.errors import InputError
from jupyter_ioscope.model.bench import BenchTable
from jupyter_ioscope.model.records import DEFAULT_PREFETCH
from jupyter_ioscope.trials import tree
from jupyter_ioscope.trials.build import build
from jupyter_ioscope.trials.counting import seed_all, shut_down, worker_ids
from jupyter_ioscope.trials.spec import LoaderSpec, is_loader, spec_of, start_method
from jupyter_ioscope.units import bytes_text, percent, seconds

_TAKES = "a DataLoader"
_REUSED = "kept (persistent_workers)"
_DRAINED, _DRAIN_S = 32, 1.5  # batches, and seconds, between two epoch starts
_WORTH = 0.05  # of an epoch: what is worth one argument


def prepare(target: Any, folder: str) -> Prepared:
    if not is_loader(target):
        raise InputError(f"target is {kind(target)}: give {_TAKES}")
    spec = spec_of(target)
    workers = spec.num_workers or 2
    spec = spec.changed(num_workers=workers, pin_memory=False)
    own = start_method(spec)
    methods = [own, *(m for m in multiprocessing.get_all_start_methods() if m != own)]
    arms = [
        Arm(
            f"new by {method}",
            functools.partial(_new, spec.changed(multiprocessing_context=_context(method))),
            1,
            look=functools.partial(_differs, spec, method) if method != own else None,
            warm=False,
            note="as this loader does" if method == own and not spec.persistent_workers else "",
        )
        for method in methods
    ]
    kept = spec.changed(persistent_workers=True, multiprocessing_context=_context(own))
    arms.insert(  # before what may take seconds to start
        1,
        Arm(_REUSED, functools.partial(_kept, kept), 1, warm=False,
            look=functools.partial(_differs, kept, own),
            note="as this loader does" if spec.persistent_workers else "from the second epoch on"),
    )  # fmt: skip
    batches = _batches(target)
    return Prepared(
        f"{type(target).__name__} with {workers} worker{'s' * (workers != 1)}"
        + ("" if target.num_workers else " (it has none; two were used)"),
        tuple(arms),
        tables=functools.partial(_table, arms),
        sentences=functools.partial(_sentences, f"new by {own}", workers, batches),
        code=lambda arm: (
            "loader = DataLoader(..., persistent_workers=True)"
            if arm.name == _REUSED
            else f'loader = DataLoader(..., multiprocessing_context="{arm.name.split()[-1]}")'
        ),
    )


def _context(method: str) -> Any:
    return multiprocessing.get_context(method)


def _batches(loader: Any) -> int:
    """Batches of an epoch; 0 where the loader does not say."""
    try:
        return len(loader)
    except (TypeError, NotImplementedError):
        return 0


def _new(spec: LoaderSpec) -> Pass:
    seed_all(0)

    def once() -> Mapping[str, float]:
        began = time.perf_counter()
        iterator = iter(build(spec))
        try:
            next(iterator)
            took_s = time.perf_counter() - began
            return {"seconds": took_s, **_memory(iterator)}
        finally:
            shut_down(iterator, own_process=False)

    return once


def _kept(spec: LoaderSpec) -> Pass:
    seed_all(0)
    loader = build(spec)
    next(iter(loader))
    per_batch = [_drained(loader)]

    def once() -> Mapping[str, float]:
        began = time.perf_counter()
        iterator = iter(loader)
        next(iterator)
        took_s = time.perf_counter() - began
        found = {"seconds": took_s, "batch": per_batch[-1], **_memory(iterator)}
        per_batch.append(_drained(loader))
        return found

    return once


def _drained(loader: Any) -> float:
    """Take some more batches, then let the workers finish what was asked of them; seconds a batch.

    Otherwise the next epoch would first wait for batches of this one.
    """
    began, count = time.perf_counter(), 0
    for _ in itertools.islice(loader._iterator, _DRAINED):
        count += 1
        if time.perf_counter() - began > _DRAIN_S:
            break
    per_batch = (time.perf_counter() - began) / count if count else 0.0
    ahead = loader.num_workers * (loader.prefetch_factor or DEFAULT_PREFETCH)
    time.sleep(min(_DRAIN_S, per_batch * ahead))
    return per_batch


def _memory(iterator: Any) -> dict[str, float]:
    pids = worker_ids(iterator)
    held = tree.own_memory_bytes(pids)
    return {"worker": held / len(pids)} if pids and held else {}


def _differs(spec: LoaderSpec, method: str) -> list[str]:
    """Whether the workers start at all, and whether the first batch is the same."""
    from jupyter_ioscope.trials.values import values_digest

    def first(one: LoaderSpec) -> str:
        seed_all(0)
        loader = build(one)
        iterator = iter(loader)
        try:
            return values_digest(next(iterator))
        finally:
            with contextlib.suppress(Exception):
                shut_down(iterator, own_process=False)

    alone = first(spec.changed(num_workers=0, persistent_workers=False, timeout=0))
    if first(spec.changed(num_workers=0, persistent_workers=False, timeout=0)) != alone:
        return []  # random content or order: nothing can be told from it
    other = first(spec.changed(multiprocessing_context=_context(method)))
    return [] if other == alone else ["the first batch holds other values than without workers"]


def _table(arms: Sequence[Arm], found: Found) -> list[BenchTable]:
    rows = [("workers", "epoch start to first batch", "memory of a worker")]
    for arm in arms:
        row = found.get(arm.key)
        if row is not None:
            held = row.own.get("worker", 0.0)
            rows.append((arm.name, seconds(row.seconds_per_item),
                         bytes_text(held) if held else "not measured"))  # fmt: skip
    return [BenchTable("What a start costs", tuple(rows), (
        "Memory of a worker is what would be free again if it ended: pages that it shares with "
        "the process it was forked from are not counted.",
        "CPU and memory under 'What it uses' are those of the process that starts the workers, "
        "without what the workers themselves use.",
    ))]  # fmt: skip


def _sentences(own: str, workers: int, batches: int, found: Found) -> list[str]:
    new, kept = found.get(("", own)), found.get(("", _REUSED))
    if new is None or kept is None:
        return []
    return list(pays(new, kept, workers, batches))


def pays(new: Measured, kept: Measured, workers: int, batches: int) -> list[str]:
    """From when on persistent workers pay, for a loader with so many batches (0: unknown)."""
    saved_s = new.seconds_per_item - kept.seconds_per_item
    if saved_s <= 0:
        return ["Keeping workers saved nothing here: a start is as fast as going on."]
    longest_s = saved_s / _WORTH
    told = [
        f"Persistent workers save {seconds(saved_s)} at every epoch from the second on: more than "
        f"{percent(_WORTH)} of epochs that are shorter than {seconds(longest_s)}."
    ]
    epoch_s = batches * kept.own.get("batch", 0.0)
    if epoch_s > 0:
        share = saved_s / (saved_s + epoch_s)
        told.append(
            f"This loader's epoch of {batches:,} batches takes about {seconds(epoch_s)} without a "
            f"step of your own: they "
            + (f"pay, with {percent(share)} of it." if share >= _WORTH
               else f"hardly pay, with {percent(share)} of it.")
        )  # fmt: skip
    held = kept.own.get("worker", 0.0)
    if held:
        told.append(f"They hold {bytes_text(held * workers)} between epochs.")
    return told


BENCH = Bench("start", "Worker start and reuse", _TAKES, "epoch start", prepare)
