"""1 to N threads on the user's own items, under the interpreter lock (GIL) of one process.

For every thread the kernel counts exactly how long it ran and how long it stood in line for a core
(/proc/<pid>/task/<tid>/schedstat); the rest of its time it was blocked. What an item is blocked for
with N threads beyond what it is blocked for with one thread is waiting for the GIL, or for another
lock that the threads share.
"""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jupyter_ioscope.arguments import kind
from jupyter_ioscope.benches._bench import Arm, Bench, Found, Pass, Prepared
from jupyter_ioscope.benches._forks import short
from jupyter_ioscope.benches._targets import dataset_of, is_path
from jupyter_ioscope.capture.cores import usable_cores
from jupyter_ioscope.errors import InputError
from jupyter_ioscope.model.bench import BenchTable
from jupyter_ioscope.trials.values import values_digest
from jupyter_ioscope.units import percent, rate, seconds, significant

_TAKES = "a data set, a DataLoader, or a function of one number or of nothing"
_PASS_S, _MOST_ITEMS, _LOOKED, _MOST_THREADS = 0.12, 4000, 24, 16

Item = Callable[[int], Any]


def prepare(target: Any, folder: str) -> Prepared:
    item, count, name = _item(target)
    began = time.perf_counter()
    try:
        item(0)
        first_s = time.perf_counter() - began
        began = time.perf_counter()
        item(min(1, count - 1))
    except Exception as error:
        raise InputError(f"{name} fails at its first item: {short(error)}") from error
    item_s = max(1e-6, min(first_s, time.perf_counter() - began))
    numbers = _numbers()
    # A whole multiple of every number of threads, so that all have the same to do.
    least = numbers[-1]
    items = max(least, min(_MOST_ITEMS, int(_PASS_S / item_s) // least * least))
    arms = [
        Arm(
            _name(n),
            functools.partial(_open, item, count, items, n),
            items,
            look=functools.partial(_differs, item, count, n) if n > 1 else None,
            warm=False,
        )
        for n in numbers
    ]
    return Prepared(
        name,
        tuple(arms),
        tables=functools.partial(_table, numbers),
        sentences=functools.partial(_sentences, numbers),
        code=lambda arm: (
            f"with ThreadPoolExecutor({arm.name.split()[0]}) as pool:\n"
            "    samples = list(pool.map(dataset.__getitem__, indices))"
        ),
    )


def _numbers() -> list[int]:
    """1, 2, 4, ... up to twice the cores that may be used, 4 at least."""
    most = min(_MOST_THREADS, max(4, 2 * int(usable_cores())))
    found = [1]
    while found[-1] * 2 <= most:
        found.append(found[-1] * 2)
    return found


def _name(threads: int) -> str:
    return f"{threads} thread" + ("s" if threads > 1 else "")


def _item(target: Any) -> tuple[Item, int, str]:
    """(what makes item number n, how many there are, name).

    Raises:
        InputError: the target is neither a data set nor a function.
    """
    if is_path(target):
        raise InputError(f"target is {target!r}: give {_TAKES}")
    data = dataset_of(target)
    if hasattr(data, "__getitem__") and hasattr(data, "__len__"):
        count = len(data)
        if not count:
            raise InputError("the data set is empty: give one with samples")
        return data.__getitem__, count, f"{type(data).__name__} of {count:,} samples"
    if callable(data):
        name = getattr(data, "__name__", type(data).__name__)
        return _function(data), 1 << 30, f"{name}()"
    raise InputError(f"target is {kind(data)}, which has no items: give {_TAKES}")


def _function(function: Callable[..., Any]) -> Item:
    import inspect

    try:
        inspect.signature(function).bind()
    except TypeError:
        return function
    except ValueError:  # written in C, and without a signature
        return lambda _number: function()
    return lambda _number: function()


def _open(item: Item, count: int, items: int, threads: int) -> Pass:
    def once() -> Mapping[str, float]:
        gauges: list[tuple[float, float, float]] = []
        problems: list[BaseException] = []
        ready = threading.Barrier(threads + 1)

        def run(first: int) -> None:
            ready.wait()
            try:
                before = _scheduled()
                for number in range(first, items, threads):
                    item(number % count)
                gauges.append(tuple(b - a for a, b in zip(before, _scheduled(), strict=True)))  # type: ignore[arg-type]
            except BaseException as error:
                problems.append(error)

        pool = [threading.Thread(target=run, args=(n,), daemon=True) for n in range(threads)]
        for thread in pool:
            thread.start()
        began = time.perf_counter()
        ready.wait()
        for thread in pool:
            thread.join()
        wall_s = time.perf_counter() - began
        if problems:
            raise problems[0]
        wall, ran, queued = (sum(values) / 1e9 for values in zip(*gauges, strict=True))
        return {
            "seconds": wall_s,
            "item": wall / items,  # how long one item took the thread that made it
            "ran": ran / items,
            "queued": queued / items,
            "blocked": max(0.0, wall - ran - queued) / items,
        }

    return once


def _scheduled() -> tuple[float, float, float]:
    """(clock, time on a core, time in line for one) of this thread in nanoseconds."""
    try:
        with open(f"/proc/self/task/{threading.get_native_id()}/schedstat") as file:
            ran, queued, _ = file.read().split()
    except (OSError, ValueError):
        return time.perf_counter_ns(), time.thread_time_ns(), 0.0
    return time.perf_counter_ns(), float(ran), float(queued)


def _differs(item: Item, count: int, threads: int) -> list[str]:
    """Items made by several threads at once against the same items made one after the other."""
    numbers = range(min(count, _LOOKED))
    alone = [values_digest(item(number)) for number in numbers]
    if [values_digest(item(number)) for number in numbers] != alone:
        return []  # random content: nothing can be told from it
    together: dict[int, str] = {}
    problems: list[str] = []

    def run(first: int) -> None:
        try:
            for _ in range(4):
                for number in numbers[first::threads]:
                    made = values_digest(item(number))
                    if together.setdefault(number, made) != made:
                        together[number] = "not the same twice"
        except Exception as error:
            problems.append(f"fails with several threads: {short(error)}")

    pool = [threading.Thread(target=run, args=(n,), daemon=True) for n in range(threads)]
    for thread in pool:
        thread.start()
    for thread in pool:
        thread.join()
    wrong = [n for n in numbers if n in together and together[n] != alone[n]]
    if wrong:
        problems.append(
            f"{len(wrong)} of {len(numbers)} items come out otherwise than from one thread (the "
            f"first is {wrong[0]}): it keeps a state that threads share, such as an open file"
        )
    return problems[:3]


def _table(numbers: Sequence[int], found: Found) -> list[BenchTable]:
    alone = found.get(("", _name(1)))
    if alone is None:
        return []
    rows = [("threads", "items", "one item took", "on a core", "in line for a core", "blocked",
             "waiting for the GIL or a lock")]  # fmt: skip
    for n in numbers:
        row = found.get(("", _name(n)))
        if row is None:
            continue
        own = row.own
        rows.append(
            (
                str(n),
                rate(1 / row.seconds_per_item, "items"),
                seconds(own["item"]),
                percent(own["ran"] / own["item"]),
                percent(own["queued"] / own["item"]),
                percent(own["blocked"] / own["item"]),
                percent(lock_share(alone.own, own)) if n > 1 else "–",
            )
        )
    return [BenchTable("Where a thread's time went", tuple(rows))]


def lock_share(alone: Mapping[str, float], own: Mapping[str, float]) -> float:
    """The part of an item's time, 0 to 1, that it was blocked beyond what one thread is blocked."""
    return max(0.0, own["blocked"] - alone["blocked"]) / own["item"] if own["item"] > 0 else 0.0


def _sentences(numbers: Sequence[int], found: Found) -> list[str]:
    told = [
        "One process: its threads share one GIL, which C code may let go of. Workers of a "
        "DataLoader are processes, each with a GIL of its own.",
        f"This process may use {significant(usable_cores(), 2)} cores.",
    ]
    rates = {n: 1 / found[("", _name(n))].seconds_per_item for n in numbers
             if ("", _name(n)) in found}  # fmt: skip
    alone, most = found.get(("", _name(1))), max(numbers)
    if alone is not None and most in rates:
        share = lock_share(alone.own, found[("", _name(most))].own)
        if share > 0.25 and rates[most] < 1.25 * rates[1]:
            told.insert(
                0,
                f"{_name(most)} do not bring more than one: {percent(share)} of their time they "
                "waited for the GIL or a lock. Use worker processes.",
            )
    if not os.path.exists("/proc/self/schedstat"):
        told.append("This system does not say how long threads stand in line for a core.")
    return told


BENCH = Bench("threads", "Threads under the GIL", _TAKES, "item", prepare, functions=True)
