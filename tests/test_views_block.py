"""The table of block devices in the report: numbers, who asked, and everything as plain text."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.diagnose import diagnose
from jupyter_ioscope.model.block import BlockTrace
from jupyter_ioscope.views.block import block_rows
from jupyter_ioscope.views.html import report_html
from jupyter_ioscope.views.payload import report_payload
from jupyter_ioscope.views.text import report_text
from tests import builders
from tests.block_values import issuer, requests, trace
from tests.view_values import HOSTILE, is_inert

PLAIN = builders.profile(2, batches=20)


def plain(text: str) -> str:
    return text.replace("\u00a0", " ")


def traced(value: BlockTrace) -> tuple[str, str]:
    profile = builders.without(PLAIN, block=value)
    found = diagnose(profile)
    return plain(report_text(profile, found)), plain(report_html(profile, found))


def test_a_row_has_latencies_of_the_device_and_who_asked() -> None:
    (row,) = block_rows(
        trace(
            issuer(worker=0, requests=500),
            issuer(worker=1, requests=470),
            issuer("consumer", -1, requests=20),
            issuer("other", -1, name="backup", requests=10),
        )
    )
    assert plain(" ".join(str(value) for value in row.values())).startswith(
        "vda reads 1,000 65.5 MB 100 µs 400 µs 900 µs 3.0 µs workers 97 %, loop 2.0 %"
    )
    assert "1,000 from 64" in row["title"]


def test_what_took_longest_in_all_comes_first_and_rows_are_bounded() -> None:
    rows = [requests(f"sd{n}", count=n) for n in range(1, 30)]
    names = [row["name"] for row in block_rows(trace(rows=rows))]
    assert names[:2] == ["sd29 reads", "sd28 reads"]
    assert len(names) == 8


def test_text_and_html_have_the_table_and_reports_without_a_trace_do_not() -> None:
    for form in traced(trace(issuer(requests=1000))):
        for word in ("Block devices", "vda reads", "99.9 %", "400 µs", "workers 100 %"):
            assert word in form, word
    assert "Block devices" not in report_text(PLAIN, diagnose(PLAIN))
    assert "block" not in report_payload(PLAIN, diagnose(PLAIN))


def test_without_issuers_the_row_stays() -> None:
    text, html = traced(trace(knows_issuers=False))
    assert "vda reads" in text
    assert "vda reads" in html


def test_names_of_programs_and_devices_are_inert() -> None:
    value = trace(
        issuer("other", -1, name=HOSTILE, device=HOSTILE), rows=[requests(device=HOSTILE)]
    )
    text, html = traced(value)
    assert is_inert(text)
    assert is_inert(html)
    assert "<script" not in html


def test_lines_of_text_fit_a_terminal() -> None:
    long = [requests("nvme0c0n1" * 3, operation="discard", count=123_456_789)]
    text, _ = traced(trace(issuer("other", -1, name="x" * 90), rows=long))
    assert max(map(len, text.splitlines())) <= 100
