"""The report as one HTML page for a file on disk: our own script in it, tables beneath.

With JavaScript it is the report of the notebook, with its flame graphs and its timeline; without,
the tables of `html`. The page's own policy forbids every request and every script but this one.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from html import escape
from pathlib import Path

from jupyter_ioscope.model.comparison import Offer
from jupyter_ioscope.model.diagnosis import Diagnosis
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.views.html import html_of
from jupyter_ioscope.views.payload import Size, report_payload
from jupyter_ioscope.views.results import Result
from jupyter_ioscope.views.shapes import IReport

SCRIPT = Path(__file__).parent.parent / "static" / "page.js"
_SIZE = Size(frames=6000, points=300)  # a page is no notebook: it need not stay below 150 kB
_PAGE_STYLE = (
    ":root{color-scheme:light dark;background:Canvas;color:CanvasText}"
    "body{font:14px/1.45 system-ui,sans-serif;margin:20px auto;max-width:1080px;padding:0 16px}"
)


def page(
    profile: Profile,
    diagnosis: Diagnosis,
    offers: Sequence[Offer] = (),
    comparisons: Sequence[Result] = (),
    variable: str = "",
    script: Path = SCRIPT,
) -> str:
    """A whole HTML page for one file on disk: the report as in a notebook, drawn by a script that
    lies in the page; without JavaScript the tables. It loads nothing and is forbidden to."""
    report = report_payload(profile, diagnosis, offers, comparisons, variable, size=_SIZE)
    return page_of(report, script)


def page_of(report: IReport, script: Path = SCRIPT) -> str:
    """The page of a report that exists already."""
    title = escape(f"ioscope: {report['label']}" if report["label"] else "ioscope")
    code = _script(script)
    allowed = f"'sha256-{_digest(code)}'" if code else "'none'"
    rules = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src {allowed}"
    drawn = (
        f'<script type="application/json" id="ioscope-report-data">{_data(report)}</script>'
        f"<script>{code}</script>"
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{rules}">'
        f'<meta name="viewport" content="width=device-width"><style>{_PAGE_STYLE}</style></head>'
        f'<body><main><div id="ioscope-report-static">{html_of(report)}</div></main>'
        f"{drawn if code else ''}</body></html>\n"
    )


def _script(path: Path) -> str:
    """The front end's script; empty in a source checkout that was not built."""
    try:
        code = path.read_text("utf-8")
    except OSError:
        return ""
    return code.replace("</script", "<\\/script").strip()


def _digest(code: str) -> str:
    return base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()


def _data(report: IReport) -> str:
    """JSON in which no character ends or begins anything in a page."""
    text = json.dumps(report, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
