"""The payload is what the page reads: same fields, finite, plain, bounded."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.model.diagnosis import Finding, Throughput, Unknown
from jupyter_ioscope.model.profile import Cost, Gap, Profile
from jupyter_ioscope.model.readings import Series
from jupyter_ioscope.views import shapes
from jupyter_ioscope.views.payload import (
    Size,
    comparison_payload,
    cost_text,
    ended_text,
    progress_payload,
    report_payload,
)
from tests import builders
from tests.view_values import HOSTILE, UNICODE, diagnosis, empty_diagnosis, is_inert, profile
from tests.view_values import stacks as many_stacks

PAYLOAD_TS = Path(__file__).parent.parent / "labextension" / "src" / "payload.ts"
# Types that payload.ts writes in place and Python gives a name.
IN_PLACE = {"INow", "ITimeline", "ITick", "ILegend", "IGap"}


def plain(text: str) -> str:
    return text.replace("\u00a0", " ")


def interfaces() -> dict[str, dict[str, str]]:
    """Interface -> field (with `?` where it may be absent) -> type, as payload.ts declares them."""
    source = re.sub(r"/\*.*?\*/|//[^\n]*", "", PAYLOAD_TS.read_text("utf-8"), flags=re.DOTALL)
    found = {}
    for name, body in re.findall(r"export interface (\w+) \{(.*?)\n\}", source, re.DOTALL):
        fields = re.findall(r"^  (\w+\??): (.+?);$", body, re.MULTILINE)
        found[name] = dict(fields)
    return found


def typed_dict(name: str) -> dict[str, Any]:
    made = getattr(shapes, name)
    optional = made.__optional_keys__
    hints = get_type_hints(made, vars(shapes))
    return {field + ("?" if field in optional else ""): hint for field, hint in hints.items()}


def test_payload_ts_is_read_at_all() -> None:
    assert {"IReport", "IFlame", "IComparison", "IProgress", "IToggle"} <= set(interfaces())
    assert len(interfaces()["IReport"]) > 20


@pytest.mark.parametrize("name", sorted(interfaces()))
def test_every_interface_has_the_same_fields_in_python(name: str) -> None:
    assert set(typed_dict(name)) == set(interfaces()[name])


def test_python_has_no_shape_that_the_page_does_not_know() -> None:
    ours = {n for n, v in vars(shapes).items() if n.startswith("I") and isinstance(v, type)}
    assert ours - IN_PLACE == set(interfaces())


SCALARS = {"string": str, "number": (int, float), "boolean": bool}


def mismatches(
    value: Any, kind: str, known: dict[str, dict[str, str]], where: str
) -> Iterator[str]:
    """Where a JSON value is not of a TypeScript type; a little of the language, strictly."""
    kind = kind.strip()
    if kind.endswith("[]"):
        if not isinstance(value, list):
            yield f"{where}: no list"
            return
        for i, item in enumerate(value):
            yield from mismatches(item, kind[:-2], known, f"{where}[{i}]")
    elif kind.startswith("{") and kind.endswith("}"):
        fields = dict(re.findall(r"(\w+\??): ([^;}]+)", kind[1:-1]))
        yield from object_mismatches(value, fields, known, where)
    elif "|" in kind:
        options = [part.strip() for part in kind.split("|")]
        if all(any(mismatches(value, option, known, where)) for option in options):
            yield f"{where}: {value!r} is none of {kind}"
    elif kind in known:
        yield from object_mismatches(value, known[kind], known, where)
    elif kind == "null":
        if value is not None:
            yield f"{where}: not null"
    elif kind in SCALARS:
        wrong_bool = isinstance(value, bool) and kind != "boolean"
        if wrong_bool or not isinstance(value, SCALARS[kind]):  # type: ignore[arg-type]
            yield f"{where}: {value!r} is no {kind}"
    elif json.loads(kind.replace("'", '"')) != value:
        yield f"{where}: {value!r} is not {kind}"


def object_mismatches(
    value: Any, fields: dict[str, str], known: dict[str, dict[str, str]], where: str
) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{where}: no object"
        return
    names = {field.rstrip("?") for field in fields}
    yield from (f"{where}.{name}: unknown" for name in set(value) - names)
    for field, kind in fields.items():
        name = field.rstrip("?")
        if name in value:
            yield from mismatches(value[name], kind, known, f"{where}.{name}")
        elif not field.endswith("?"):
            yield f"{where}.{name}: missing"


def wrong(value: Any, kind: str) -> list[str]:
    return list(mismatches(value, kind, interfaces(), kind))


def test_the_reader_of_types_finds_mistakes() -> None:
    good = progress_payload("running", "x", 0.5)
    assert wrong(good, "IProgress") == []
    assert wrong({**good, "state": "lost"}, "IProgress")
    assert wrong({**good, "fraction": "half"}, "IProgress")
    assert wrong({**good, "more": 1}, "IProgress")
    assert wrong({"state": "idle", "text": ""}, "IProgress")
    assert wrong({"tracks": [], "start": "0 s", "end": 3}, interfaces()["IReport"]["timeline"])


PROFILES = {
    "decode": lambda: profile(),
    "no workers": lambda: profile(0),
    "many workers": lambda: profile(20, batches=60),
    "records only": lambda: builders.profile(tier="in_process"),
    "zero batches": lambda: builders.profile(batches=0),
    "nothing": lambda: builders.empty_profile(),
    "killed worker": lambda: builders.with_killed_worker(profile()),
    "workers before": lambda: builders.with_workers_before_profile(profile()),
    "no stacks": lambda: builders.without(profile(), stacks=None),
    "many stacks": lambda: builders.without(profile(), stacks=many_stacks(3000)),
}


@pytest.mark.parametrize("name", PROFILES)
def test_real_diagnoses_of_odd_profiles_give_what_the_page_reads(name: str) -> None:
    value = PROFILES[name]()
    report = report_payload(value, diagnose(value), builders.offers(), [builders.comparison()])
    assert wrong(report, "IReport") == []
    assert json.loads(json.dumps(report, allow_nan=False)) == report


def test_a_report_without_an_id_has_none_and_one_with_it_carries_it() -> None:
    assert "reportId" not in report_payload(profile(), diagnosis())
    report = report_payload(profile(), diagnosis(), report_id="abc")
    assert report["reportId"] == "abc"
    assert wrong(report, "IReport") == []


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


@pytest.mark.parametrize("text", [HOSTILE, UNICODE, HOSTILE * 500])
def test_names_become_plain_bounded_text_wherever_they_stand(text: str) -> None:
    finding = Finding(text, text, text, 0.5, 0.4, 0.6, 1.0, (text,) * 50, text, (), text)
    value = builders.without(
        profile(),
        label=text,
        ended_by=text,
        not_measured=tuple(Gap(f"{text}{i}", text) for i in range(100)),
    )
    report = report_payload(
        value,
        diagnosis(
            headline=text,
            detail=text,
            findings=(finding,) * 50,
            would_separate=text,
            unknown=(Unknown(text, text),) * 50,
        ),
        [
            offer._replace(title=text, effect=text, cost=text, code=text)
            for offer in builders.offers()
        ],
        variable=text,
    )
    assert wrong(report, "IReport") == []
    assert all(map(is_inert, strings(report)))
    assert max(map(len, strings(report))) <= 1000
    assert len(json.dumps(report)) < 90_000


def test_texts_of_the_head_are_readable_numbers() -> None:
    figures = report_payload(profile(), diagnosis())["figures"]
    values = {figure["label"]: plain(figure["value"]) for figure in figures}
    assert values["steady, ± 6.1"] == "214 samples/s"
    assert values["to the first batch"] == "1.9 s"
    assert values["GPU busy"] == "17 %"
    assert re.fullmatch(r"1\.\d+ GB", values["peak memory, all processes"])
    assert re.fullmatch(r"\d+ MB", values["read from disk"])


def test_a_figure_has_one_name_whatever_is_known_of_it() -> None:
    def named(value: Profile) -> dict[str, str]:
        figures = report_payload(value, diagnose(value))["figures"]
        return {one["name"]: plain(one.get("whole", one["value"])) for one in figures}

    full, empty = named(profile()), named(builders.empty_profile())
    assert {"peak memory", "read from disk", "batches recorded"} <= full.keys() & empty.keys()
    assert empty["peak memory"] == "not measured"
    assert re.fullmatch(r"\d+ in [\d.]+ s", full["batches recorded"])
    assert "±" in full["steady throughput"]


def test_what_could_not_be_decided_for_one_reason_is_told_once() -> None:
    reason = "no stack sample fell into a fetch"
    unknown = (Unknown("text_parse", reason), Unknown("gil", "not seen"), Unknown("lock", reason))
    shown = report_payload(profile(), diagnosis(unknown=unknown))["notMeasured"]
    told = {gap["what"]: gap["reason"] for gap in shown}
    assert told["causes “text parse”, “lock”"] == reason
    assert told["cause “gil”"] == "not seen"


@pytest.mark.parametrize(("received", "told"), [(892, False), (40_000_000, True)])
def test_what_comes_from_the_network_is_told_where_it_may_be_the_loaders(
    received: int, told: bool
) -> None:
    value = builders.profile()
    times = (value.start_ns, value.end_ns)
    network = Series("net_received_bytes", "bytes", "cumulative", "machine", times, (0.0, received))
    figures = report_payload(
        builders.without(value, series={"net_received_bytes": network}), diagnosis()
    )["figures"]
    assert any("network" in figure["name"] for figure in figures) == told


def test_what_adding_floats_leaves_is_no_doubt_of_a_throughput() -> None:
    throughput = Throughput(3478.26, 1.6e-13, 434.8, 0.25, 3000, 24_000)
    figure = report_payload(profile(), diagnosis(throughput=throughput))["figures"][0]
    assert figure["label"] == "steady"
    assert "±" not in figure["title"] + figure["whole"]


def test_a_throughput_of_one_batch_is_not_called_steady() -> None:
    value = profile(batches=1)
    labels = [one["label"] for one in report_payload(value, diagnose(value))["figures"]]
    assert not any(label.startswith("steady") for label in labels)


def test_a_number_that_is_missing_says_why() -> None:
    value = builders.empty_profile(
        not_measured=(Gap("memory of the tree without double counting (PSS)", "not permitted"),)
    )
    figures = report_payload(value, empty_diagnosis())["figures"]
    missing = next(figure for figure in figures if "memory" in figure["label"])
    assert missing["value"] == "–"
    assert missing["title"] == "not permitted"


def test_a_finding_carries_its_interval_and_its_cost() -> None:
    finding = report_payload(profile(), diagnosis())["findings"][0]
    assert plain(finding["share"]) == "68 % (64 – 72 %)"
    assert plain(finding["cost"]) == "4.1 s"


def test_what_was_not_measured_is_said_once_and_long_lists_say_how_many_more() -> None:
    gap = Gap("block-layer latency", "needs root")
    many = tuple(Gap(f"counter {i}", "no right") for i in range(100))
    report = report_payload(
        builders.without(profile(), not_measured=(gap, *many)), diagnosis(not_measured=(gap, gap))
    )
    listed = report["notMeasured"]
    assert [row["what"] for row in listed].count("block-layer latency") == 1
    assert len(listed) == 16
    assert listed[-1]["what"] == "87 more"


def test_flame_graphs_share_the_frames_they_are_given() -> None:
    value = builders.without(profile(), stacks=many_stacks(3000))
    for frames in (900, 300, 60):
        flames = report_payload(value, diagnosis(), size=Size(frames, 10))["flames"]
        assert flames[0]["key"] == "workers"
        assert sum(len(flame["x0"]) for flame in flames) <= frames
        assert len(flames[0]["x0"]) == max(len(flame["x0"]) for flame in flames)


def test_the_source_of_stacks_is_named_with_its_rate() -> None:
    assert report_payload(profile(), diagnosis())["flameSource"].startswith("py-spy, 25")
    assert (
        report_payload(builders.without(profile(), stacks=None), diagnosis())["flameSource"] == ""
    )


def test_cost_is_in_shares_of_one_core_largest_first() -> None:
    text = plain(cost_text(Cost(0.09, 0.41, 0.0001), 10.0))
    assert text == (
        "Profiling itself used 5.0 % of one core: stack sampler 4.1 %, state sampler 0.9 %, "
        "records below 0.1 %."
    )
    assert plain(cost_text(Cost(0.05), 0.02)) == (
        "Profiling itself used CPU time: state sampler 50 ms."
    )
    assert "not measured" in cost_text(Cost(), 10.0)
    assert "not measured" in cost_text(Cost(0.1), 0.0)


def test_how_a_cell_ended_is_said_when_it_did_not_simply_finish() -> None:
    assert ended_text(profile()) == ""
    assert "KeyboardInterrupt" in ended_text(
        builders.without(profile(), ended_by="KeyboardInterrupt")
    )
    early = builders.without(profile(), stopped_early=True)
    assert f" and {len(early.batches)} batches (--seconds" in ended_text(early)


def test_progress_keeps_to_what_the_page_knows() -> None:
    assert progress_payload("running", "pair 3", 0.25)["fraction"] == 0.25
    for odd in (float("nan"), -3.0, 1.5):
        assert progress_payload("running", "", odd)["fraction"] == -1.0
    assert wrong(progress_payload("unheard of", HOSTILE), "IProgress") == []


def test_a_comparison_alone_is_what_the_page_reads() -> None:
    assert wrong(comparison_payload(builders.comparison()), "IComparison") == []
