"""Which entry was used least recently: a heap in shared memory that is put right when asked.

A hit only writes the time into its entry; the heap still holds an older time for it. Whoever takes
the top therefore looks at the entry: used since then, it goes back with its newer time; else it is
the least recently used one, exactly.
"""

from __future__ import annotations

from jupyter_ioscope.trials.sample_cache._layout import FRESH_ENTRY, HEAP, Arrays


def push(header: memoryview, arrays: Arrays, time_ns: int, entry: int) -> None:
    if header[HEAP] >= len(arrays.heap_time):
        _rebuild(header, arrays)
    at = header[HEAP]
    header[HEAP] = at + 1
    _rise(arrays, at, time_ns, entry)


def oldest(header: memoryview, arrays: Arrays) -> int:
    """The least recently used entry, -1 when there is none. It stays in the heap's top, whose
    place is free as soon as the entry is."""
    times, entries = arrays.heap_time, arrays.heap_entry
    while header[HEAP]:
        time_ns, entry = times[0], entries[0]
        placed, used = arrays.placed[entry], arrays.used[entry]
        if placed != time_ns:
            _drop_top(header, arrays)  # the entry was removed, or replaced
        elif used > placed:
            arrays.placed[entry] = used
            _sink(header, arrays, used, entry)
        else:
            return int(entry)
    return -1


def _drop_top(header: memoryview, arrays: Arrays) -> None:
    last = header[HEAP] - 1
    header[HEAP] = last
    if last:
        _sink(header, arrays, arrays.heap_time[last], arrays.heap_entry[last])


def _rise(arrays: Arrays, at: int, time_ns: int, entry: int) -> None:
    times, entries = arrays.heap_time, arrays.heap_entry
    while at:
        above = (at - 1) // 2
        if times[above] <= time_ns:
            break
        times[at], entries[at] = times[above], entries[above]
        at = above
    times[at], entries[at] = time_ns, entry


def _sink(header: memoryview, arrays: Arrays, time_ns: int, entry: int) -> None:
    """Put (time, entry) where the top is and let it sink to its place."""
    times, entries, length = arrays.heap_time, arrays.heap_entry, header[HEAP]
    at = 0
    while (below := 2 * at + 1) < length:
        if below + 1 < length and times[below + 1] < times[below]:
            below += 1
        if times[below] >= time_ns:
            break
        times[at], entries[at] = times[below], entries[below]
        at = below
    times[at], entries[at] = time_ns, entry


def _rebuild(header: memoryview, arrays: Arrays) -> None:
    """Only what lives: removed entries had left their places behind."""
    live = sorted(
        (time_ns, entry)
        for entry in range(header[FRESH_ENTRY])
        if (time_ns := arrays.placed[entry])
    )
    for at, (time_ns, entry) in enumerate(live):
        arrays.heap_time[at], arrays.heap_entry[at] = time_ns, entry
    header[HEAP] = len(live)
