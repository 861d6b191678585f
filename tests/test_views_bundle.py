"""One output, four forms, at most 150 kB in the saved notebook, whatever the profile holds."""

from __future__ import annotations

import base64
import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.model.profile import Gap, Profile
from jupyter_ioscope.views import bundle as bundle_module
from jupyter_ioscope.views import png
from jupyter_ioscope.views.bundle import LIMIT_BYTES, METADATA, mime_bundle, saved_bytes
from jupyter_ioscope.views.flame import check_columns
from jupyter_ioscope.views.flame_states import all_trees
from jupyter_ioscope.views.packed import packed, unpacked
from jupyter_ioscope.views.payload import report_payload
from jupyter_ioscope.views.shapes import MIME
from tests import builders
from tests.view_values import HOSTILE, diagnosis, empty_diagnosis, profile
from tests.view_values import stacks as many_stacks

FORMS = {MIME, "image/png", "text/html", "text/plain"}


def flames(bundle: dict[str, Any]) -> list[Any]:
    return [unpacked(flame) for flame in bundle[MIME]["flames"]]


def frames(bundle: dict[str, Any]) -> int:
    return sum(len(flame["x0"]) for flame in flames(bundle))


def points(bundle: dict[str, Any]) -> int:
    tracks = bundle[MIME]["timeline"]["tracks"]
    return max((len(unpacked(track)["x"]) for track in tracks), default=0)


def test_a_report_comes_in_four_forms_that_say_the_same() -> None:
    made = mime_bundle(profile(), diagnosis(), builders.offers(), [builders.comparison()])
    assert set(made) == FORMS
    assert base64.b64decode(made["image/png"]).startswith(b"\x89PNG")
    for form in ("text/html", "text/plain"):
        assert "The loop waited for data 81" in made[form]
    assert made[MIME]["headline"].startswith("The loop waited for data 81")


def test_the_size_is_that_of_the_file_that_jupyter_writes(tmp_path: Path) -> None:
    made = mime_bundle(profile(), diagnosis(), builders.offers())
    nbformat: Any = pytest.importorskip("nbformat")
    notebook = nbformat.v4.new_notebook()
    output = nbformat.v4.new_output("display_data", data=made, metadata=METADATA)
    notebook.cells.append(nbformat.v4.new_code_cell("", outputs=[output]))
    path = tmp_path / "a.ipynb"
    nbformat.write(notebook, path)
    with_output = path.stat().st_size
    notebook.cells[0].outputs = []
    nbformat.write(notebook, path)
    assert saved_bytes(made) == pytest.approx(with_output - path.stat().st_size, rel=0.02)


@pytest.mark.timeout(300)
def test_a_hundred_thousand_stacks_and_fifty_thousand_batches_stay_within_the_limit() -> None:
    value = profile(4)
    step_ns = value.wall_ns // 50_001
    batches = tuple(
        value.batches[i % len(value.batches)]._replace(
            wait_start_ns=value.start_ns + i * step_ns,
            wait_end_ns=value.start_ns + i * step_ns + i * 7919 % step_ns,
        )
        for i in range(50_000)
    )
    value = builders.without(value, batches=batches, stacks=many_stacks(100_000))
    comparisons = [builders.comparison(2.0, pairs=100) for _ in range(5)]
    made = mime_bundle(value, diagnosis(), builders.offers(), comparisons)
    assert saved_bytes(made) <= LIMIT_BYTES
    assert set(made) == FORMS
    assert frames(made) >= 150
    assert points(made) >= 100
    for flame in flames(made):
        check_columns(flame)
        assert "go on into frames too narrow" in flame["details"][0]


def test_flame_graphs_are_cut_first_then_the_timeline_then_the_picture_goes() -> None:
    value = builders.without(profile(), stacks=many_stacks(2000))
    limits = (400_000, 100_000, 74_000, 67_000, 36_000)
    made = [mime_bundle(value, diagnosis(), limit_bytes=limit) for limit in limits]
    for bundle, limit in zip(made, limits, strict=True):
        assert saved_bytes(bundle) <= limit
    roomy, cut, thin, without, bare = made
    assert frames(roomy) > frames(cut) > frames(thin) > 0
    assert points(roomy) == points(cut) > points(thin) > 0
    assert all("image/png" in bundle for bundle in (roomy, cut, thin))
    # its room goes to what can be dug in
    assert "image/png" not in without
    assert frames(without) > frames(thin)
    assert points(without) > points(thin)
    assert frames(bare) < frames(without)


def test_what_was_tried_takes_the_place_of_the_picture_not_of_what_can_be_dug_in() -> None:
    value = builders.without(profile(), stacks=many_stacks(2000))
    tried = [builders.comparison(2.4, pairs=20)] * 6
    made = mime_bundle(value, diagnosis(), builders.offers(), tried, limit_bytes=100_000)
    assert "image/png" in mime_bundle(value, diagnosis(), builders.offers(), limit_bytes=100_000)
    assert "image/png" not in made
    assert len(made[MIME]["comparisons"]) == 6
    assert frames(made) >= 80
    assert points(made) >= 60


def test_a_picture_that_was_left_out_is_said_in_every_form() -> None:
    value = builders.without(profile(), stacks=many_stacks(2000))
    made = mime_bundle(value, diagnosis(), limit_bytes=40_000)
    assert "summary picture" in made["text/html"]
    assert "summary picture" in made["text/plain"]
    assert any("summary picture" in gap["what"] for gap in made[MIME]["notMeasured"])


def test_without_pillow_the_missing_picture_is_said_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(png, "installed", lambda _: False)
    made = mime_bundle(profile(), diagnosis())
    assert "image/png" not in made
    assert "pip install" in made["text/plain"]


def test_hostile_texts_cannot_blow_it_up() -> None:
    text = HOSTILE * 300
    finding = Finding(text, text, text, 0.5, 0.4, 0.6, 1.0, (text,) * 50, text, (), text)
    value = builders.without(
        profile(60, batches=80),
        label=text,
        not_measured=tuple(Gap(f"{i}{text}", text) for i in range(200)),
    )
    offers = [
        offer._replace(title=text, effect=text, cost=text, code=text, refusal=text)
        for offer in builders.offers() * 20
    ]
    comparison = dataclasses.replace(
        builders.comparison(pairs=300), notes=(text,) * 60, code=text, cache_text=text
    )
    made = mime_bundle(
        value, diagnosis(headline=text, findings=(finding,) * 50), offers, [comparison] * 9
    )
    assert saved_bytes(made) <= LIMIT_BYTES
    assert made[MIME]["headline"].startswith("<script>alert")
    assert "parts of this report" in json.dumps(made[MIME]["notMeasured"])


@pytest.mark.parametrize("workers", [0, 2, 16])
def test_real_diagnoses_fit_with_room_for_the_widget(workers: int) -> None:
    value = profile(workers, batches=100)
    made = mime_bundle(value, diagnose(value), builders.offers(), [builders.comparison()])
    assert saved_bytes(made) <= LIMIT_BYTES
    assert set(made) == FORMS


def test_an_empty_profile_has_a_bundle_too() -> None:
    made = mime_bundle(builders.empty_profile(), empty_diagnosis())
    assert set(made) == FORMS
    assert made[MIME]["flames"] == []


def test_variable_and_report_id_reach_the_payload() -> None:
    made = mime_bundle(profile(), diagnosis(), variable="p", report_id="abc")
    assert (made[MIME]["variable"], made[MIME]["reportId"]) == ("p", "abc")


def test_stacks_are_grown_once_however_often_they_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []

    def counted(value: Profile) -> Any:
        calls.append(value)
        return all_trees(value)

    monkeypatch.setattr(bundle_module, "all_trees", counted)
    value = builders.without(profile(), stacks=many_stacks(2000))
    mime_bundle(value, diagnosis(), limit_bytes=85_000)
    assert len(calls) == 1


def test_packed_columns_come_back_equal_and_take_half_at_most() -> None:
    report = report_payload(builders.without(profile(3), stacks=many_stacks(500)), diagnosis())
    small = packed(report)
    for before, after in zip(report["flames"], small["flames"], strict=True):
        assert unpacked(dict(after)) == before
    tracks = report["timeline"]["tracks"]
    assert [unpacked(dict(row)) for row in small["timeline"]["tracks"]] == tracks
    assert saved_bytes({MIME: small["flames"]}) < 0.5 * saved_bytes({MIME: report["flames"]})


def test_the_selection_is_not_lost_with_the_picture() -> None:
    made = mime_bundle(profile(2), diagnosis(), builders.offers(), limit_bytes=45_000)
    assert "image/png" not in made
    assert made[MIME]["spans"]["batches"]
