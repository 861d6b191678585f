"""The table of transforms: hits per function, reasons of misses, and everything as plain text."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.model.observed import FIRST_RUN, Transform
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.views.html import report_html
from jupyter_ioscope.views.payload import report_payload
from jupyter_ioscope.views.text import WIDTH, report_text
from jupyter_ioscope.views.transforms import transform_rows
from tests.builders import profile, without


def transform(function: str, seconds: float, *, cached: bool = False, why: str = "") -> Transform:
    end_ns = int(seconds * 1e9)
    return Transform("datasets", "map", function, 1_000, False, -1, 1, 0, end_ns, end_ns, cached,
                     why, ("x",))  # fmt: skip


THREE = (
    transform("quick", 0.1, why=FIRST_RUN),
    transform("clean.<locals>.<lambda>", 4, why="clean.lock cannot be hashed: lock"),
    transform("quick", 0.01, cached=True),
)


def with_transforms(*rows: Transform) -> Profile:
    return without(profile(0), transforms=rows)


def test_runs_of_one_function_are_one_row_with_its_hits_slowest_first() -> None:
    slow, quick = transform_rows(THREE)
    assert (slow["name"], slow["hits"]) == ("map(clean.<lambda>)", "0 of 1")
    assert (quick["name"], quick["hits"], quick["rows"]) == ("map(quick)", "1 of 2", "2,000")
    assert quick["why"] == FIRST_RUN


def test_text_and_html_show_the_table_and_the_reason() -> None:
    value = with_transforms(*THREE)
    text, page = report_text(value, diagnose(value)), report_html(value, diagnose(value))
    for shown in (text, page):
        assert "how many came from the cache" in shown
        assert "1 of 2" in shown
        assert "clean.lock cannot be hashed: lock" in " ".join(shown.split())
    assert max(len(line) for line in text.split("\n")) <= WIDTH


def test_without_transforms_there_is_no_table() -> None:
    value = with_transforms()
    assert "transforms" not in report_payload(value, diagnose(value))
    assert "Transforms of datasets" not in report_text(value, diagnose(value))
    assert "Transforms of datasets" not in report_html(value, diagnose(value))


def test_names_and_reasons_are_untrusted() -> None:
    value = with_transforms(transform("<script>x</script>", 1, why="<img src=x>"))
    page = report_html(value, diagnose(value))
    assert "<script>" not in page
    assert "<img" not in page


def test_many_functions_do_not_grow_the_report_without_bound() -> None:
    assert len(transform_rows([transform(f"f{i}", 1) for i in range(500)])) == 12
