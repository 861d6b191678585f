"""Plotly figures: valid, small, plain JSON, and built from the profile's own numbers."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.errors import InputError
from jupyter_ioscope.model.diagnosis import Ceiling
from jupyter_ioscope.views.colours import LIMITING
from jupyter_ioscope.views.figures import NAMES, figure
from jupyter_ioscope.views.histogram import histogram
from tests import builders
from tests.view_values import HOSTILE, diagnosis, empty_diagnosis, profile, waits

ROOT = Path(__file__).parent.parent
pytest.importorskip("plotly")


def made(name: str, **changes: Any) -> dict[str, Any]:
    """The figure's JSON, read back. plotly has validated every property by then."""
    text = figure(name, profile(batches=300), diagnosis(**changes), builders.comparison()).to_json()
    found: dict[str, Any] = json.loads(text)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_is_a_few_kilobytes_of_plain_json(name: str) -> None:
    found = made(name)
    text = json.dumps(found)
    assert len(text) < 20_000
    assert found["data"]
    assert len(json.dumps(found["layout"].get("template"))) < 100, "the default one is 7 kB"
    assert "bdata" not in text, "numpy arrays become base64 that not every renderer reads"


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_brings_its_light_page(name: str) -> None:
    assert made(name)["layout"]["paper_bgcolor"] == "#FFFFFF"


def test_the_timeline_stays_small_with_fifty_thousand_batches() -> None:
    value = profile()
    many = tuple(
        value.batches[i % len(value.batches)]._replace(
            wait_start_ns=value.start_ns + i * 1000, wait_end_ns=value.start_ns + i * 1000 + i % 97
        )
        for i in range(50_000)
    )
    value = builders.without(value, batches=many)
    assert len(figure("timeline", value, diagnosis()).to_json()) < 20_000
    assert len(figure("batch_times", value, diagnosis()).to_json()) < 8_000


def test_timeline_rows_do_not_overlap_and_share_the_time_axis() -> None:
    layout = made("timeline")["layout"]
    domains = sorted(axis["domain"] for name, axis in layout.items() if name.startswith("yaxis"))
    assert len(domains) == 7
    assert all(low[1] < high[0] for low, high in pairwise(domains))
    assert {trace.get("xaxis", "x") for trace in made("timeline")["data"]} == {"x"}


def test_ceilings_are_drawn_with_their_intervals_beside_the_measured_throughput() -> None:
    found = made("ceilings")
    (bars,) = found["data"]
    assert bars["y"][-1] == "2 workers", "plotly draws from below, the lowest ceiling is on top"
    assert bars["x"][-1] == 226
    assert (bars["error_x"]["array"][-1], bars["error_x"]["arrayminus"][-1]) == (13, 12)
    assert found["layout"]["shapes"][0]["x0"] == pytest.approx(214.2)
    assert bars["marker"]["color"][-2:] == [LIMITING, LIMITING]
    assert bars["marker"]["color"][1] != LIMITING


def test_batch_times_count_every_batch_once() -> None:
    for trace in made("batch_times")["data"]:
        assert sum(trace["y"]) == 300


def test_workers_bars_add_up_to_the_whole() -> None:
    found = made("workers")["data"]
    for row, name in enumerate(found[0]["y"]):
        assert sum(trace["x"][row] for trace in found) == pytest.approx(100, abs=0.1), name
    assert found[0]["y"] == ["worker 1", "worker 0", "consumer"]


def test_a_hundred_workers_are_merged_beyond_sixty_four() -> None:
    names = made("workers", waits=waits(100))["data"][0]["y"]
    assert len(names) == 66
    assert "36 more" in names


def test_a_comparison_shows_every_trial_and_both_intervals() -> None:
    value = builders.comparison(2.0, pairs=9)
    data = json.loads(figure("comparison", profile(), diagnosis(), value).to_json())["data"]
    assert [len(trace["x"]) for trace in data] == [9, 3, 9, 3]
    assert data[3]["x"][1] == pytest.approx(value.arms[1].samples_per_s, rel=1e-3)


def test_an_unknown_name_lists_the_names() -> None:
    with pytest.raises(InputError, match="timeline, ceilings, batch_times, workers, comparison"):
        figure("flame", profile(), diagnosis())


def test_a_comparison_that_was_not_made_says_what_to_do() -> None:
    with pytest.raises(InputError, match=r"\.compare\(\)"):
        figure("comparison", profile(), diagnosis())


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_profile_gives_a_figure_that_says_so(name: str) -> None:
    empty = builders.comparison(pairs=0)
    found = json.loads(figure(name, builders.empty_profile(), empty_diagnosis(), empty).to_json())
    assert found["layout"]["annotations"][0]["text"] == "nothing was recorded"


@pytest.mark.parametrize("name", NAMES)
def test_names_and_numbers_of_any_kind_stay_valid_json(name: str) -> None:
    odd = Ceiling("cpu", HOSTILE, 300.0, -math.inf, math.inf, HOSTILE)
    value = diagnosis(ceilings=(odd, *diagnosis().ceilings))
    text = figure(name, profile(), value, builders.comparison()).to_json()
    assert "\\u001b" not in text
    json.loads(text, parse_constant=lambda constant: pytest.fail(constant))


def test_real_diagnoses_can_be_drawn() -> None:
    value = profile(3)
    for name in NAMES[:-1]:
        assert figure(name, value, diagnose(value)).data


@pytest.mark.parametrize(
    "groups",
    [
        ([1.0, 2.0, 1000.0], [0.001]),
        ([0.0, -1.0, 5.0], []),
        ([7.0, 7.0, 7.0], [7.0]),
        ([0.0], [0.0, 0.0]),
        ([], []),
        ([math.nan, 3.0], [math.inf]),
    ],
)
def test_a_histogram_loses_no_value_and_has_rising_edges(groups: tuple[list[float], ...]) -> None:
    edges, counts = histogram(groups)
    assert edges == sorted(set(edges))
    assert all(edge > 0 for edge in edges), "the axis is logarithmic"
    for group, count in zip(groups, counts, strict=True):
        assert len(count) == len(edges) - 1
        assert sum(count) == sum(map(math.isfinite, group))


@pytest.mark.timeout(240)
def test_plotly_is_loaded_by_the_first_figure_and_not_before() -> None:
    code = (
        "import sys\n"
        "import jupyter_ioscope.views.figures as figures\n"
        "assert 'plotly' not in sys.modules\n"
        "from tests.view_values import diagnosis, profile\n"
        "figures.figure('workers', profile(), diagnosis())\n"
        "assert 'plotly' in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=150, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
