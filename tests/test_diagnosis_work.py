"""Stacks of fetches are sorted by kind of work."""

from __future__ import annotations

import ast

import pytest

from jupyter_ioscope.capture.image_sizes import size_of
from jupyter_ioscope.capture.line_calls import line_calls
from jupyter_ioscope.diagnosis import work_kinds
from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.work import Mix, kind_of, mix_of
from jupyter_ioscope.errors import NotMeasuredError
from jupyter_ioscope.model.observed import DIVIDED, LineCalls
from jupyter_ioscope.model.profile import Cell
from jupyter_ioscope.model.readings import Frame, Stacks
from tests import builders
from tests import work_values as values

ONE_KIND = {
    "text_parse": values.JSON,
    "image_decode": values.JPEG,
    "image_resize": values.RESIZE,
    "container_open": values.H5_OPEN,
    "container_read": values.H5_READ,
    "npz_member": values.NPZ,
    "unpack_seek": values.SEEK,
    "table_rows": values.PANDAS,
    "collate": (values.COLLATE,),
    "user": values.USER,
}


@pytest.mark.parametrize("kind", ONE_KIND)
def test_a_library_function_says_what_is_done(kind: str) -> None:
    mix = mix_of(values.seen((ONE_KIND[kind], 30)), "consumer", ())
    assert mix.fraction(kind)[0] == 1.0
    assert 0 < mix.fraction(kind)[1] < 0.1  # seen always is not certain


def test_code_before_python_311_has_bare_names() -> None:
    old = tuple(frame._replace(name=frame.name.rpartition(".")[2]) for frame in values.NPZ)
    assert kind_of(old, {})[0] == "npz_member"


def test_the_header_of_an_array_is_no_text() -> None:
    load = Frame("load", f"{values.SITE}/numpy/lib/_npyio_impl.py", 483)
    header = Frame("_read_array_header", f"{values.SITE}/numpy/lib/_format_impl.py", 699)
    literal = Frame("literal_eval", f"{values.LIB}/ast.py", 100)
    assert kind_of((values.GET, load, header, literal), {})[0] == "array_load"


def test_reading_the_file_of_a_text_is_not_parsing_it() -> None:
    load = Frame("load", f"{values.LIB}/json/__init__.py", 293)
    loads = Frame("loads", f"{values.LIB}/json/__init__.py", 346)
    assert kind_of((values.GET, load), {})[0] == "file_read"
    assert kind_of((values.GET, load, loads), {})[0] == "text_parse"


def own_words(split: int) -> Mix:
    """`[piece for word in text.split() for piece in look_up(word)]`, in the user's line 40."""
    line = Frame("tokens", "/me/data.py", 40)
    rows = (((values.GET, line), split), ((values.GET, line, values.USER[1]), 80), (values.USER, 9))
    calls = (LineCalls("/me/data.py", 40, (".split", ".look_up")),)
    return mix_of(values.seen(*rows), "consumer", calls)


def test_what_gets_words_from_a_line_that_splits_text_is_tokenising() -> None:
    mix = own_words(split=10)
    assert mix.fraction("tokenise")[0] == pytest.approx(80 / 99)
    assert mix.fraction("user")[0] == pytest.approx(9 / 99)


def test_a_line_that_hardly_splits_text_leaves_the_work_below_it_alone() -> None:
    assert own_words(split=1).fraction("tokenise")[0] == 0.0


def test_reading_a_member_is_one_piece_of_work_whatever_it_calls() -> None:
    mix = mix_of(values.seen((values.NPZ, 10), (values.SEEK, 10)), "consumer", ())
    assert mix.fraction("unpack") == pytest.approx((0.0, mix.fraction("unpack")[1]))
    assert mix.fraction("npz_member")[0] == 0.5


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (("torch.tensor", ".read"), "tensor_build"),
        (("torch.tensor", "float", ".split"), "text_parse"),
        (("open",), "file_open"),
        ((".read",), "file_read"),
        (("sqlite3.connect",), "container_open"),
        (("torch.tensor", ".encode"), "tokenise"),
        (("torch.stack",), "stack"),
        (("my_function",), "user"),
        ((), "user"),
    ],
)
def test_a_c_function_is_told_by_the_line_that_calls_it(names: tuple[str, ...], kind: str) -> None:
    calls = (LineCalls(values.GET.file, values.GET.line, names),)
    mix = mix_of(values.seen(((values.GET,), 12)), "consumer", calls)
    assert mix.fraction(kind)[0] == 1.0


def test_joining_is_told_from_getting() -> None:
    got = values.seen((values.JSON, 10))
    joined = values.seen(((values.OWN_JOIN,), 30), join=True)
    shift = len(got.frames)
    moved = tuple(
        row._replace(frames=tuple(i + shift for i in row.frames)) for row in joined.stacks
    )
    both = Stacks("py-spy", 25.0, True, got.frames + joined.frames, got.stacks + moved)
    mix = mix_of(both, "consumer", ())
    assert mix.part(lambda row: row.collate)[0] == 0.75


def test_waiting_for_a_task_and_the_step_are_no_fetch() -> None:
    made = builders.profile(0, step_ms=40.0, fetch_ms=4.0)
    assert made.stacks is not None
    mix = mix_of(made.stacks, "consumer", ())
    assert mix.samples < made.stacks.samples() / 2


def test_where_and_by_which_functions() -> None:
    mix = mix_of(values.seen((values.JSON, 9), (values.USER, 3)), "consumer", ())
    assert mix.where("text_parse") == "Items.__getitem__ in /me/data.py, line 12"
    assert mix.functions("text_parse") == ("decode (decoder)",)
    assert mix.under("/json/", ("loads",))[0] == 0.75


def test_without_stacks_the_reason_is_given() -> None:
    with pytest.raises(NotMeasuredError, match="stacks were not sampled"):
        _ = Facts(builders.without(builders.profile(2), stacks=None)).work


def test_every_kind_of_the_tables_has_a_name() -> None:
    used = {row.kind for row in (*work_kinds.WHOLE, *work_kinds.INNER)}
    used |= {kind for kind, _ in work_kinds.CALLS}
    assert used <= set(work_kinds.KINDS)


SOURCE = """\
import numpy as np
from json import loads
import random

def get(path, line):
    with open(path) as file:
        text = file.read()
    x = random.random()
    return np.fromstring(text, sep=","), loads(line), mine(line), line.split(
        ","
    )
"""


def test_calls_of_a_line_get_their_full_names() -> None:
    where = Frame("get", "In [3]", 9, 3)
    found = line_calls(values.seen(((where,), 5)), (Cell(3, SOURCE),))
    named = {row.line: set(row.names) for row in found}
    assert named[9] == {"numpy.fromstring", "json.loads", ".split"}
    assert named[0] == {"random.random"}  # anywhere in the file


@pytest.mark.parametrize(
    ("line", "known"),
    [("x / 255.0", {DIVIDED}), ("f(x / 255)", {DIVIDED}), ("x / n", set()), ("x // 2", set())],
)
def test_a_division_by_a_written_number_is_told(line: str, known: set[str]) -> None:
    where = Frame("get", "In [3]", 2, 3)
    found = line_calls(values.seen(((where,), 5)), (Cell(3, f"def get(x, n):\n    return {line}"),))
    assert {name for row in found for name in row.names} == known


def told(source: str) -> Mix:
    """The work of fetches in a cell with this source."""
    where = Frame("get", "In [3]", 2, 3)
    stacks = values.seen(((where,), 5))
    return mix_of(stacks, "consumer", line_calls(stacks, (Cell(3, source),)))


@pytest.mark.parametrize(
    ("source", "guarded"),
    [
        ("import multiprocessing as mp\nlock = mp.Lock()", True),
        ("import torch.multiprocessing as mp\nlock = mp.get_context().RLock()", True),
        ("import fcntl\nfcntl.flock(file, fcntl.LOCK_EX)", True),
        ("with self.lock:\n    file.seek(3)\n    file.read(4)", True),  # made elsewhere
        ("lock.acquire()\nfile.read(4)", True),
        ("import threading\nlock = threading.Lock()\nwith lock:\n    file.read(4)", False),
        ("with open(path) as file:\n    file.seek(3)", False),
        ("with self.timer:\n    compute()", False),
        ("file.seek(3)\nfile.read(4)", False),
    ],
)
def test_locks_that_keep_processes_apart_are_told_from_others(source: str, guarded: bool) -> None:
    mix = told(source)
    assert mix.guarded is guarded
    assert not mix.random  # a lock makes no chance


def test_resizing_is_seen_in_the_code_and_is_no_augmentation() -> None:
    assert told("image = image.resize((224, 224))").resizes
    assert not told("image = image.resize((224, 224))").random
    both = told("from torchvision.transforms import RandomResizedCrop\nRandomResizedCrop(224)")
    assert both.resizes
    assert both.random
    assert not told("image = image.crop((0, 0, 224, 224))").resizes


def test_a_cell_that_is_no_python_gives_no_calls() -> None:
    where = Frame("get", "In [3]", 1, 3)
    assert line_calls(values.seen(((where,), 5)), (Cell(3, "!ls\n%timeit x"),)) == ()


def test_library_code_is_not_read() -> None:
    where = Frame("walk", ast.__file__, 100)
    assert line_calls(values.seen(((where,), 5)), ()) == ()


def test_picture_sizes_are_read_from_headers() -> None:
    jpeg = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x11\x08\x02\x58\x03\x20\x03" + bytes(12)
    png = (
        b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + (640).to_bytes(4, "big") + (480).to_bytes(4, "big")
    )
    assert size_of(jpeg) == (800, 600)
    assert size_of(png) == (640, 480)
    assert size_of(b"GIF89a" + (5).to_bytes(2, "little") + (7).to_bytes(2, "little")) == (5, 7)


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"\xff\xd8",
        b"\xff\xd8\xff",
        b"\x89PNG\r\n\x1a\n",
        b"BM",
        b"RIFF0000WEBP",
        b"no picture",
    ],
)
def test_what_is_cut_off_or_no_picture_has_no_size(head: bytes) -> None:
    assert size_of(head) is None
