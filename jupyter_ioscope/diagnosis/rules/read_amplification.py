"""Far more bytes are read or unpacked for a sample than it holds."""

from __future__ import annotations

from typing import NamedTuple

from jupyter_ioscope.diagnosis.facts import Facts, Gain
from jupyter_ioscope.diagnosis.rules._rule import Rule, finding
from jupyter_ioscope.diagnosis.rules._work import (
    CPU_CAUSES,
    WAIT_CAUSES,
    collecting,
    gain_of_work,
    ns_per_sample,
    place_line,
    resource,
    seen_line,
)
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.units import bytes_text, nanoseconds, significant

# So many times as many bytes as a sample holds, and at least so many more: a picture is packed,
# a text is longer than its numbers, and files are read in blocks.
_AMPLIFIED = 8.0
_LEAST_EXTRA_BYTES = 100_000
# Inflating gives 100 MB/s or more, 10 ns a byte, and a read of a chunked file takes up to 0.3 ms
# besides. Above that, more is unpacked than used.
_NS_A_BYTE = 50.0
_NS_A_READ = 500_000


class Case(NamedTuple):
    """What is read in vain, and what to do: the kinds of work it is seen in, and sentences."""

    kinds: tuple[str, ...]
    title: str
    what: str
    advice: str
    toggles: tuple[str, ...] = ()


_SEEK = Case(
    ("unpack_seek", "unpack"),
    "A compressed file is unpacked from its beginning again and again",
    "unpacking to get to another place in a compressed file",
    "A compressed stream cannot be entered in the middle: every step back unpacks it from the "
    "start. Read it once from front to back (an IterableDataset with a shuffle buffer), or repack "
    "it: uncompressed .tar, .zip, or one .npy that is memory-mapped.",
    ("archive_unpacked",),
)
_MEMBER = Case(
    ("npz_member",),
    "A whole .npz member is read for every item",
    "reading whole members of an .npz file (mmap_mode is ignored for .npz)",
    "Save the array as .npy and open that with np.load(path, mmap_mode='r'), or read the member "
    "once, keep it, and index the array.",
    ("npz_unpacked",),
)
_CHUNKS = Case(
    ("container_read",),
    "Whole chunks are read and unpacked for a few rows",
    "reading from a chunked file",
    "Make the chunks (of Parquet: the row groups) the shape of what is read at once, one row or "
    "one batch; read neighbouring rows together: a chunk at a time, shuffled in memory; or store "
    "the data contiguous and uncompressed.",
    ("sample_cache",),
)
_QUERY = Case(
    ("container_query",),
    "Queries read far more than they return",
    "queries of a database",
    "Give the table an index on what the query selects by (EXPLAIN QUERY PLAN tells whether it "
    "scans), ask for all rows of a batch in one query, and only for the columns that are used.",
    ("sample_cache",),
)
_SOUND_ADVICE = (
    "Read only the part that the item needs: soundfile.read(path, start=..., stop=...), "
    "torchaudio.load(path, frame_offset=..., num_frames=...), setpos() of a wave file; or cut the "
    "recordings into pieces once."
)
_TENSOR_ADVICE = (
    "A file that holds many items: load it once and keep it, or store one array that is "
    "memory-mapped; torch.load(path, mmap=True) reads only what is used. A file of one item: "
    "torch.save writes the whole tensor that a slice was cut from, so save a copy "
    "(torch.save(x.clone(), path))."
)
_WHOLE = Case(
    ("file_read", "file_open", "array_load", "unpickle", "unpack", "user", "library",
     "text_parse", "regex", "convert", "audio_decode", "table_rows"),
    "Far more is read for every item than the item holds",
    "reading and taking apart what is read",
    "Read only what the item needs: memory-map the file (np.load(path, mmap_mode='r')), remember "
    "where items begin and seek there, or load it once and keep it.",
    ("npy_memory_map", "npz_unpacked", "sample_cache"),
)  # fmt: skip


# A file that is opened for every item, or read in many pieces, is read by code between the reads as
# well (a loop over lines). One that is loaded once is not.
_OPENS_A_SAMPLE = 0.25
_AGAIN = 4.0
_CALLS_A_SAMPLE = 8
_BETWEEN = ("user", "library")
_SERIALIZED = "/torch/serialization.py"
_MOSTLY = 0.5


def judge(facts: Facts) -> Finding | None:
    """What the loop would gain if only the bytes of the samples were read."""
    if not facts.batches:
        return None
    times = _times_as_many(facts)
    case = _case(facts, times)
    if case is None:
        return None
    gain = _gain(facts, case, times)
    return finding(
        facts,
        gain,
        cause="read_amplification",
        resource=resource(facts),
        title=case.title,
        evidence=(
            seen_line(facts, case.what, *case.kinds),
            _bytes_line(facts, times),
            _time_line(facts, case),
            place_line(facts, *case.kinds),
        ),
        advice=case.advice,
        toggles=case.toggles,
        where=facts.work.where(*case.kinds),
        refines=(
            *CPU_CAUSES,
            *WAIT_CAUSES,
            "reopen_per_item",
            "blocked_unseen",
            *_also(case),
            *collecting(facts),
        ),
    )


def _also(case: Case) -> tuple[str, ...]:
    return ("text_parse_per_item",) if case.title == _WHOLE.title else ()


def _case(facts: Facts, times: float) -> Case | None:
    seen = facts.work.fraction
    if seen("unpack_seek")[0] > seen("npz_member")[0]:
        return _SEEK if _slow_for_its_bytes(facts, _SEEK) else None
    if seen("npz_member")[0]:
        return _MEMBER if times or _slow_for_its_bytes(facts, _MEMBER) else None
    if times and seen(*_QUERY.kinds)[0] > seen(*_WHOLE.kinds, *_CHUNKS.kinds)[0]:
        return _QUERY
    if seen(*_CHUNKS.kinds)[0] > seen(*_WHOLE.kinds)[0]:
        return _CHUNKS if times or _slow_for_its_bytes(facts, _CHUNKS) else None
    if not times or not _read_again(facts):
        return None
    whole = _WHOLE
    if _mostly_sound(facts):
        whole = _WHOLE._replace(advice=_SOUND_ADVICE)
    elif facts.work.under(_SERIALIZED)[0] > _MOSTLY:
        whole = _WHOLE._replace(advice=_TENSOR_ADVICE, toggles=("sample_cache",))
    storage = facts.storage
    often = storage.opens_per_sample >= _OPENS_A_SAMPLE
    if often or storage.read_calls_per_sample >= _CALLS_A_SAMPLE:
        return whole
    return whole._replace(kinds=tuple(kind for kind in _WHOLE.kinds if kind not in _BETWEEN))


def _mostly_sound(facts: Facts) -> bool:
    """Whether sound is taken apart, and nothing else as much."""
    seen = facts.work.fraction
    others = ("text_parse", "unpickle", "array_load", "unpack", "table_rows")
    return seen("audio_decode")[0] > max(0.1, seen(*others)[0])


def _read_again(facts: Facts) -> bool:
    """Whether more was read than the files hold, so that the same bytes came again and again. What
    is read once may well become a small sample: that is no waste."""
    sizes = {use.path: use.size_bytes for use in facts.profile.files if use.mode in ("r", "rw")}
    held = sum(size for size in sizes.values() if size > 0)
    if not held:
        return False
    samples = sum(row.samples for row in facts.fetches if row.samples > 0)
    epochs = max(1, len({row.epoch for row in facts.batches}))
    return facts.storage.read_bytes_per_sample * samples > _AGAIN * held * epochs


def _times_as_many(facts: Facts) -> float:
    """How many times as many bytes are read as a sample holds; 0 where that is as it should be,
    or not known."""
    try:
        read, used = facts.storage.read_bytes_per_sample, facts.storage.used_bytes_per_sample
    except NotMeasuredError:
        return 0.0
    if read < used + _LEAST_EXTRA_BYTES or read < _AMPLIFIED * used:
        return 0.0
    return read / max(1.0, used)


def _slow_for_its_bytes(facts: Facts, case: Case) -> bool:
    """Whether reading takes longer than unpacking just the bytes of a sample would."""
    try:
        used = facts.storage.used_bytes_per_sample
    except NotMeasuredError:
        return False
    return ns_per_sample(facts, *case.kinds) > _NS_A_READ + _NS_A_BYTE * used


def _gain(facts: Facts, case: Case, times: float) -> Gain:
    left = 1 / times if times else 0.1
    return gain_of_work(facts, *case.kinds, saved=1 - left)


def _bytes_line(facts: Facts, times: float) -> str:
    if not times:
        return ""
    storage = facts.storage
    return (
        f"{bytes_text(storage.read_bytes_per_sample)} a sample were read, of which it holds "
        f"{bytes_text(storage.used_bytes_per_sample)}: {significant(times, 2)} times as many."
    )


def _time_line(facts: Facts, case: Case) -> str:
    try:
        used = facts.storage.used_bytes_per_sample
    except NotMeasuredError:
        return ""
    return f"It takes {nanoseconds(ns_per_sample(facts, *case.kinds))} for {bytes_text(used)}."


RULE = Rule("read_amplification", judge)
