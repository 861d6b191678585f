"""Rules about what the user's lines call: widening, libraries told to use one thread."""

from __future__ import annotations

import dataclasses

import pytest

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.diagnosis.native_libraries import switched_off
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.model.observed import DIVIDED, LineCalls
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.model.readings import Stack
from tests import builders

MB = 1_000_000


def found(profile: Profile, cause: str) -> Finding | None:
    return next((row for row in diagnose(profile).findings if row.cause == cause), None)


def calling(profile: Profile, *names: str, settings: tuple[tuple[str, str], ...] = ()) -> Profile:
    """`profile` whose fetches are mostly in a line that calls C functions of these names."""
    assert profile.stacks is not None
    line = profile.stacks.frames.index(
        next(frame for frame in profile.stacks.frames if frame.line == 12)
    )
    stacks = tuple(
        Stack(row.role, row.worker, row.pid, row.thread, _cut(row.frames, line), row.count)
        for row in profile.stacks.stacks
    )
    frame = profile.stacks.frames[line]
    return builders.without(
        profile,
        stacks=dataclasses.replace(profile.stacks, stacks=stacks),
        calls=(LineCalls(frame.file, frame.line, names),),
        machine=dataclasses.replace(profile.machine, native_threads=settings),
    )


def _cut(frames: tuple[int, ...], last: int) -> tuple[int, ...]:
    """A C function has no frame: the stack ends with the line that called it."""
    return frames[: frames.index(last) + 1] if last in frames else frames


# -- one thread -----------------------------------------------------------------------------------

ONE = (("torch.get_num_threads()", "1"),)


def test_a_library_that_was_told_to_use_one_thread_is_named_before_the_lack_of_workers() -> None:
    profile = calling(builders.profile(0, batches=150), "torch.nn.functional.conv2d", settings=ONE)
    first = diagnose(profile).findings[0]
    assert first.cause == "native_threads_off"
    assert "torch.set_num_threads" in first.advice
    assert "torch.get_num_threads()=1 is set" in first.evidence[0]


@pytest.mark.parametrize(
    ("call", "settings"),
    [
        ("torch.nn.functional.conv2d", (("torch.get_num_threads()", "4"),)),
        ("torch.tensor", ONE),
        ("json.loads", ONE),
        (".encode_batch", ONE),
    ],
    ids=["all cores", "a call that is never divided", "another library", "another setting"],
)
def test_other_calls_and_settings_are_left_alone(
    call: str, settings: tuple[tuple[str, str], ...]
) -> None:
    profile = calling(builders.profile(0, batches=150), call, settings=settings)
    assert found(profile, "native_threads_off") is None


def test_one_thread_in_each_worker_is_as_it_should_be() -> None:
    profile = calling(builders.profile(2, batches=150), "torch.matmul", settings=ONE)
    assert found(profile, "native_threads_off") is None


def test_a_tokenizer_is_known_by_its_own_setting() -> None:
    machine = dataclasses.replace(
        builders.machine(), native_threads=(("TOKENIZERS_PARALLELISM", "false"),)
    )
    off = switched_off(machine, (".encode_batch",))
    assert off is not None
    assert (off.library, off.remedy) == ("tokenizers", 'TOKENIZERS_PARALLELISM="true"')
    assert switched_off(machine, (".encode", "numpy.dot")) is None


# -- widening -------------------------------------------------------------------------------------


def wide(call: str, batch_mb: int = 25, **settings: float) -> Profile:
    return calling(
        builders.profile(
            2, batches=150, batch_bytes=batch_mb * MB, tensors=1, step_ms=1.0,
            **settings,  # type: ignore[arg-type]
        ),
        call,
    )  # fmt: skip


def test_samples_that_are_widened_before_the_hand_over_are_found() -> None:
    first = diagnose(wide(".double")).findings[0]
    assert first.cause == "bytes_inflated"
    assert "uint8" in first.advice
    assert "25.0\u00a0MB" in first.evidence[1]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("torchvision.transforms.functional.to_tensor", "PILToTensor"),
        (".long", "batch.long()"),
        (".float", "uint8"),
        ("torch.nn.functional.one_hot", "class numbers"),
    ],
)
def test_the_advice_fits_what_was_widened(call: str, words: str) -> None:
    row = found(wide(call), "bytes_inflated")
    assert row is not None
    assert words in row.advice


@pytest.mark.parametrize(
    "profile",
    [wide(".double", batch_mb=1), wide(".half"), wide("torch.stack")],
    ids=["small batches", "a narrower form", "something else"],
)
def test_batches_that_are_not_widened_are_left_alone(profile: Profile) -> None:
    assert found(profile, "bytes_inflated") is None


def in_doubles(call: str, part: float, fetch_ms: float = 20.0) -> Profile:
    """Batches of which this part are doubles."""
    made = wide(call, fetch_ms=fetch_ms, collate_fraction=0.6)
    rows = (row._replace(double_bytes=round(part * row.batch_bytes)) for row in made.fetches)
    return builders.without(made, fetches=tuple(rows))


def test_whole_numbers_divided_into_doubles_are_found() -> None:
    first = diagnose(in_doubles(DIVIDED, 0.9)).findings[0]
    assert first.cause == "bytes_inflated"
    assert "divide by a constant" in first.evidence[0]
    assert "float32 is enough" in first.advice


@pytest.mark.parametrize("call", [DIVIDED, "torch.stack"])
def test_a_division_that_makes_no_doubles_widens_nothing(call: str) -> None:
    assert found(in_doubles(call, 0.1), "bytes_inflated") is None
