"""Pickle protocols 2 to 5, and protocol 5 with its buffers out of band, on a sample or batch."""

from __future__ import annotations

import functools
import pickle
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from jupyter_ioscope.arguments import kind
from jupyter_ioscope.benches._bench import Arm, Bench, Found, Pass, Prepared
from jupyter_ioscope.benches._forks import short
from jupyter_ioscope.benches._targets import batch_of, is_path
from jupyter_ioscope.errors import InputError
from jupyter_ioscope.trials.samples import sample_of
from jupyter_ioscope.trials.spec import is_loader
from jupyter_ioscope.units import bytes_text

_TAKES = "an object (a sample or a batch), or a DataLoader, whose first batch is taken"
_OUT = "protocol 5, out of band"
_NAMES = {f"protocol {number}": number for number in range(2, pickle.HIGHEST_PROTOCOL + 1)}
_PASS_BYTES = 4 << 20
_MOST_OBJECTS = 100_000  # of a sample that are looked through for arrays


def prepare(target: Any, folder: str) -> Prepared:
    if is_path(target):
        raise InputError(
            f"target is {target!r}: give {_TAKES}; a pickle file is not opened, because that runs "
            "what is in it"
        )
    sample = batch_of(target) if is_loader(target) else target
    try:
        standard = pickle.dumps(sample)
    except Exception as error:
        raise InputError(
            f"the sample ({type(sample).__name__}) cannot be pickled: {short(error)}; open files, "
            "locks, lambdas and local classes cannot, also not on their way to a worker"
        ) from error
    # Small samples: many times a pass, or the clock would be what is timed.
    times = max(1, min(2000, _PASS_BYTES // max(1, len(standard))))
    default = f"protocol {pickle.DEFAULT_PROTOCOL}"
    arms = []
    for way, maker in (("dump", _dumper), ("load", _loader)):
        for name in (default, *(n for n in (*_NAMES, _OUT) if n != default)):
            data, buffers = dumped(sample, name)
            size = len(data) + sum(len(one) for one in buffers)
            arms.append(
                Arm(
                    name,
                    functools.partial(maker, sample, name, times),
                    times,
                    bytes=size * times,
                    group=way,
                    look=None if name == default else functools.partial(_differences, sample, name),
                    size_bytes=size,
                    note="Python's default" if name == default else "",
                )
            )
    what = f"{kind(sample)}, {bytes_text(len(standard))} pickled"
    notes = [
        f"Each pass made {times:,} copies." if times > 1 else "Each pass made one copy.",
        "Out of band, buffers are handed over as they are, without a copy: only for a transport "
        "that can carry them beside the pickle (shared memory, sockets with several parts). torch "
        "moves tensors between processes in shared memory in any case.",
    ]

    def sentences(_found: Found) -> Sequence[str]:
        return notes

    return Prepared(what, tuple(arms), sentences=sentences, code=_code)


def dumped(sample: Any, name: str) -> tuple[bytes, list[Any]]:
    """(pickle, buffers beside it) by the way of that name."""
    if name != _OUT:
        return pickle.dumps(sample, protocol=_NAMES[name]), []
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(sample, protocol=5, buffer_callback=buffers.append)
    return data, [buffer.raw() for buffer in buffers]


def _dumper(sample: Any, name: str, times: int) -> Pass:
    def once() -> None:
        for _ in range(times):
            dumped(sample, name)

    return once


def _loader(sample: Any, name: str, times: int) -> Pass:
    data, buffers = dumped(sample, name)
    carried = [bytes(one) for one in buffers]  # as they come out of a socket

    def once() -> None:
        for _ in range(times):
            pickle.loads(data, buffers=carried)

    return once


def _differences(sample: Any, name: str) -> list[str]:
    data, buffers = dumped(sample, name)
    other = pickle.loads(data, buffers=[bytes(one) for one in buffers])
    found = []
    if sample_of(other).digest != sample_of(pickle.loads(pickle.dumps(sample))).digest:
        found.append("other values than with the default protocol")
    locked = sum(not array.flags.writeable for array in _arrays(other))
    before = sum(not array.flags.writeable for array in _arrays(sample))
    if locked > before:
        many = "1 array comes" if locked == 1 else f"{locked} arrays come"
        found.append(
            f"{many} back read-only, because of lying in the bytes received: in-place changes "
            "raise (receive into a bytearray instead)"
        )
    return found


def _arrays(value: Any) -> Iterator[Any]:
    """NumPy arrays in dicts, lists, tuples and the fields of objects, each once."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return
    todo: list[Any] = [value]
    seen: set[int] = set()
    while todo and len(seen) < _MOST_OBJECTS:
        one = todo.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, numpy.ndarray):
            yield one
        elif isinstance(one, dict):
            todo += one.values()
        elif isinstance(one, (list, tuple)):
            todo += one
        elif hasattr(one, "__dict__") and not isinstance(one, type):
            todo += vars(one).values()


def _code(arm: Arm) -> str:
    if arm.name == _OUT:
        return (
            "buffers = []\n"
            "data = pickle.dumps(sample, protocol=5, buffer_callback=buffers.append)\n"
            "sample = pickle.loads(data, buffers=buffers)"
        )
    return f"data = pickle.dumps(sample, protocol={_NAMES[arm.name]})"


BENCH = Bench("pickle", "Pickle protocols", _TAKES, "copy", prepare)
