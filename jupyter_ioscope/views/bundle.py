"""One output in four forms: payload for our renderer, picture, HTML, text; never above 150 kB.

The size is that of the saved notebook file, where every number of a list takes a line of its own
(nbformat writes with an indent), not that of compact JSON.
"""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Iterator, Sequence

from jupyter_ioscope.model.comparison import Offer
from jupyter_ioscope.model.diagnosis import Diagnosis
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.views.flame import Tree
from jupyter_ioscope.views.flame_states import all_trees
from jupyter_ioscope.views.html import html_of
from jupyter_ioscope.views.packed import packed
from jupyter_ioscope.views.payload import Size, flames, report_payload
from jupyter_ioscope.views.png import MISSING, WIDTH, png_of
from jupyter_ioscope.views.results import Result
from jupyter_ioscope.views.shapes import MIME, Bundle, IGap, IReport, ITimeline
from jupyter_ioscope.views.text import text_of
from jupyter_ioscope.views.timeline import timeline

LIMIT_BYTES = 150_000
METADATA = {"image/png": {"width": WIDTH}}
_LEFT_OUT = "left out to keep the notebook small"
# What is given up, in this order, until the output is small enough: frames first, then points.
_SIZES = tuple(
    Size(frames, points)
    for frames, points in (
        (2400, 120), (1600, 120), (1200, 120), (900, 120), (700, 120), (560, 120), (460, 120),
        (380, 120), (310, 120), (250, 120),
        (160, 120), (160, 60), (80, 60), (80, 30), (40, 16), (0, 0),
    )
)  # fmt: skip
# A picture is for places that show nothing else: it goes before flame graphs and timeline are so
# small that nobody can dig in them.
_BESIDE_A_PICTURE = tuple(size for size in _SIZES if size.frames >= 80 and size.points >= 60)


def mime_bundle(
    profile: Profile,
    diagnosis: Diagnosis,
    offers: Sequence[Offer] = (),
    comparisons: Sequence[Result] = (),
    variable: str = "_ioscope",
    report_id: str | None = None,
    *,
    limit_bytes: int = LIMIT_BYTES,
) -> Bundle:
    """The output of one `display()`: MIME type -> content, as JSON values and text.

    Bounded by `limit_bytes` as saved in a notebook: flame graphs are cut and the timeline is
    thinned first, then the picture left out (which the report then says), then both are cut
    further, then long lists shortened.
    """
    grown = all_trees(profile)
    report = report_payload(
        profile, diagnosis, offers, comparisons, variable, report_id, size=_SIZES[0], grown=grown
    )
    png = png_of(report)
    if png is None:
        report["notMeasured"].append(IGap(what="summary picture", reason=MISSING))
    timelines = {_SIZES[0].points: report["timeline"]}  # a long run takes its time to thin
    for candidate, picture in _candidates(report, png):
        bundle = _without_payload(candidate, picture)
        sizes = _SIZES if picture is None else _BESIDE_A_PICTURE
        if _fit(bundle, candidate, profile, grown, timelines, sizes, limit_bytes):
            return bundle
    return bundle


def _candidates(report: IReport, png: bytes | None) -> Iterator[tuple[IReport, bytes | None]]:
    yield report, png
    if png is not None:
        report = copy.copy(report)
        gap = IGap(what="summary picture", reason=_LEFT_OUT)
        report["notMeasured"] = [*report["notMeasured"], gap]
        yield report, None
    yield _essentials(report), None


def _without_payload(report: IReport, png: bytes | None) -> Bundle:
    bundle: Bundle = {"text/plain": text_of(report), "text/html": html_of(report)}
    if png is not None:
        bundle["image/png"] = base64.b64encode(png).decode("ascii")
    return bundle


def _fit(
    bundle: Bundle,
    report: IReport,
    profile: Profile,
    grown: Sequence[Tree],
    timelines: dict[int, ITimeline],
    sizes: Sequence[Size],
    limit_bytes: int,
) -> bool:
    """Puts the largest payload into `bundle` that keeps it within the limit."""
    for size in sizes:
        report["flames"] = flames(grown, size.frames) if size.frames else []
        if size.points not in timelines:
            timelines[size.points] = timeline(profile, max(2, size.points))
        report["timeline"] = timelines[size.points]
        shown = report
        if not size.points:
            shown = copy.copy(report)
            shown["timeline"] = {**report["timeline"], "tracks": []}
            shown.pop("spans", None)
        bundle[MIME] = packed(shown)
        if saved_bytes(bundle) <= limit_bytes:
            return True
    return False


def _essentials(report: IReport) -> IReport:
    """The report with its lists cut to what the verdict rests on."""
    small = copy.deepcopy(report)
    small["findings"] = small["findings"][:3]
    for finding in small["findings"]:
        finding["evidence"] = finding["evidence"][:2]
    small["toggles"] = small["toggles"][:6]
    small["comparisons"] = small["comparisons"][-1:]
    small["notMeasured"] = [
        *small["notMeasured"][:4],
        IGap(what="parts of this report", reason=_LEFT_OUT),
    ]
    return small


def saved_bytes(bundle: Bundle) -> int:
    """Bytes that an output with this bundle takes in a notebook file, as nbformat writes it."""
    output = {"data": bundle, "metadata": METADATA, "output_type": "display_data"}
    notebook = {"cells": [{"outputs": [output]}]}
    return len(json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True).encode())
