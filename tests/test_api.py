"""The public names: few, in one place, and light to import."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import jupyter_ioscope
from jupyter_ioscope import api, arguments
from jupyter_ioscope.errors import InputError, IoscopeError
from tests import builders
from tests.test_views_tuning import tuning


def test_every_public_name_is_there() -> None:
    for name in jupyter_ioscope.__all__:
        assert getattr(jupyter_ioscope, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = jupyter_ioscope.nonsense


def test_a_recording_answers_only_after_its_end() -> None:
    p = api.profile()
    with pytest.raises(IoscopeError, match="has not ended yet"):
        _ = p.diagnosis
    assert "not ended" in repr(p)


def test_a_recording_is_used_once() -> None:
    p = api.Recording.of(builders.profile())
    with pytest.raises(InputError, match="used before"):
        p.start()
    with pytest.raises(InputError, match="nothing is being recorded"):
        p.stop()


def test_a_finished_recording_answers_everything() -> None:
    built = builders.profile()
    p = api.Recording.of(built)
    assert p.profile is built
    assert p.waits is p.diagnosis.waits
    assert p.batches == built.batches
    assert p.series == built.series
    assert p.stacks == built.stacks
    assert p.cost == built.cost
    assert p.diagnosis.headline in str(p)
    assert p.figure("timeline").data
    assert {"text/plain", "text/html"} <= set(p._repr_mimebundle_())


def test_every_result_has_its_figure() -> None:
    def title(made: Any) -> Any:
        return made.layout.title.text

    assert title(api.figure(builders.comparison())) == "A/B: every trial"
    assert "workers" in title(api.figure(tuning()))
    recording = api.Recording.of(builders.profile())
    assert title(api.figure(recording)) == title(api.figure(recording.profile)) == "Timeline"
    assert title(api.figure(recording, "ceilings")) == title(recording.figure("ceilings"))
    with pytest.raises(InputError, match="no figure of a str: give a profile, or a result"):
        api.figure("run.ioscope.json")  # type: ignore[arg-type]


def test_saving_and_loading_gives_the_same_back(tmp_path: Path) -> None:
    path = tmp_path / "run.ioscope.json"
    p = api.Recording.of(builders.profile())
    p.save(path)
    again = api.load(path)
    assert again.profile == p.profile
    assert again.diagnosis == p.diagnosis
    assert str(again) == str(p)


def test_a_loaded_recording_says_that_it_has_no_loader() -> None:
    p = api.Recording.of(builders.profile())
    assert p.offers == ()
    with pytest.raises(InputError, match="holds no DataLoader"):
        p.compare(["workers"])


@pytest.mark.parametrize(
    "options",
    [
        {"seconds": 0}, {"batches": -1}, {"rate_hz": 0}, {"rate_hz": 1e6}, {"seconds": "5"},
        {"seconds": True}, {"batches": "5"}, {"rate_hz": "x"}, {"stacks": "no"}, {"label": 5},
        {"block_trace": "yes"},
    ],
)  # fmt: skip
def test_impossible_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"^{next(iter(options))} is"):
        api.profile(**options)


@pytest.mark.parametrize(
    ("call", "wrong"),
    [
        (api.compare, {"step_s": "1"}),
        (api.compare, {"step_s": -1}),
        (api.compare, {"toggles": 5}),
        (api.compare, {"whole_cell": "no"}),
        (api.compare, {"on_progress": 5}),
        (api.compare_parts, {"cancel": "later"}),
        (api.tune, {"on_progress": 5}),
        (api.check_storage, {"quick": "no"}),
        (api.check_storage, {"silence_s": "5"}),
        (api.check_storage, {"profile": 5}),
        (api.bench, {"cancel": 5}),
        (api.bench, {"on_progress": "print"}),
        (api.limits, {"profile": 5}),
        (api.save_baseline, {"block_trace": "no"}),
        (api.save_baseline, {"on_step": "print"}),
        (api.check_baseline, {"on_step": 5}),
    ],
)
def test_an_argument_of_the_wrong_kind_is_told_in_a_sentence(
    call: Any, wrong: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    needed = {
        api.compare_parts: (object(), ["workers", "prefetch"]), api.bench: ("json", ["1"]),
        api.limits: (), api.check_storage: (tmp_path,),
    }.get(call, (object(),))  # fmt: skip
    with pytest.raises(InputError, match=f"^{next(iter(wrong))} is"):
        call(*needed, **wrong)


@pytest.mark.parametrize(("value", "text"), [(5, "an int"), ("", "a str"), (b"", "a bytes")])
def test_a_kind_has_its_article(value: object, text: str) -> None:
    assert arguments.kind(value) == text


@pytest.mark.timeout(240)
def test_comparing_while_recording_is_refused() -> None:
    with api.profile(stacks=False), pytest.raises(InputError, match="is being recorded"):
        api.compare(object(), toggles=["workers"])


def test_a_single_toggle_may_be_given_by_its_name_alone() -> None:
    with pytest.raises(InputError, match="'wrokers'"):
        api.compare(object(), toggles="wrokers")
    with pytest.raises(InputError, match="torch DataLoader"):
        api.compare(object(), toggles="workers")
