"""The report as script-free HTML: tables and inline style, for pages that run nothing.

GitHub, nbconvert and untrusted notebooks remove scripts, frames, images from elsewhere and often
styles too. So every number stands in a table, colour comes from attributes as well as styles, and
text and borders take the page's own colours, light or dark. Everything shown goes through `_text`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from jupyter_ioscope.model.comparison import Comparison, Offer
from jupyter_ioscope.model.diagnosis import Diagnosis
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.views.colours import BAR, INK, LIMITING, ink_on, part_colour
from jupyter_ioscope.views.payload import Size, comparison_payload, report_payload
from jupyter_ioscope.views.shapes import IBar, ICeiling, IComparison, IReport, IToggle

_TEXT_FITS = 0.07  # share of a bar from which on its percentage fits inside
_NO_FLAMES = Size(frames=1, points=2)
_LEFT = "text-align:left;padding:2px 10px 2px 0;vertical-align:top"
_RIGHT = "text-align:right;padding:2px 0 2px 14px;vertical-align:top"
_TABLE = '<table style="border-collapse:collapse;margin:2px 0 10px 0">'
_WIDE = (
    '<table width="100%" style="border-collapse:collapse;width:100%;max-width:860px;margin:2px 0 6px 0">'
)


def report_html(
    profile: Profile,
    diagnosis: Diagnosis,
    offers: Sequence[Offer] = (),
    comparisons: Sequence[Comparison] = (),
    variable: str = "_ioscope",
) -> str:
    """The whole report as an HTML fragment."""
    return html_of(
        report_payload(
            profile, diagnosis, offers, comparisons, variable, size=_NO_FLAMES, grown=()
        )
    )


def comparison_html(comparison: Comparison) -> str:
    """One comparison as an HTML fragment."""
    return _block(_comparison(comparison_payload(comparison)))


def html_of(report: IReport) -> str:
    """The HTML of a payload that exists already."""
    return _block(
        piece
        for pieces in (
            _head(report),
            _bars(report["bars"]),
            _numbers(report),
            _ceilings(report),
            _findings(report),
            _toggles(report["toggles"]),
            *(_comparison(one) for one in report["comparisons"]),
            _foot(report),
        )
        for piece in pieces
    )


def _block(pieces: Iterable[str]) -> str:
    return '<div style="max-width:880px">' + "\n".join(pieces) + "</div>"


def _text(text: object) -> str:
    return escape(str(text), quote=True)


def _name(text: str) -> str:
    """A name in a direction of its own: right-to-left names must not turn the row around."""
    return f"<bdi>{_text(text)}</bdi>"


def _title(text: str) -> str:
    return f'<p style="margin:12px 0 2px 0"><b>{_text(text)}</b></p>'


def _row(cells: Sequence[str], tag: str = "td") -> str:
    """A row of ready-made cell contents: the first to the left, the others to the right."""
    styles = (_LEFT, *[_RIGHT] * (len(cells) - 1))
    made = (
        f'<{tag} style="{style}">{cell}</{tag}>' for cell, style in zip(cells, styles, strict=True)
    )
    return f"<tr>{''.join(made)}</tr>"


def _head(report: IReport) -> Iterator[str]:
    yield (
        '<p style="font-size:140%;margin:0 0 4px 0">'
        f"<b>{_text(report['headline'] or 'No verdict.')}</b></p>"
    )
    for text in (report["ended"], report["detail"]):
        if text:
            yield f'<p style="margin:0 0 4px 0">{_text(text)}</p>'
    if not report["separated"] and report["wouldSeparate"]:
        yield f"<p>Not told apart: {_text(report['wouldSeparate'])}</p>"
    figures = report["figures"]
    if figures:
        cells = (
            f'<td title="{_text(f.get("title", ""))}" style="{_LEFT};padding-right:26px">'
            f'<b style="font-size:125%">{_text(f["value"])}</b><br><small>{_text(f["label"])}</small></td>'
            for f in figures
        )
        yield f"{_TABLE}<tr>{''.join(cells)}</tr></table>"


def _bars(bars: Sequence[IBar]) -> Iterator[str]:
    if not bars:
        return
    yield _title("Where the time went")
    rows = (
        f'<tr><td width="12%" style="{_LEFT};width:12%;white-space:nowrap">{_name(bar["who"])}</td>'
        f'<td title="{_text(bar["title"])}" style="padding:2px 0;width:88%">{_pieces(bar)}</td></tr>'
        for bar in bars
    )
    yield f"{_WIDE}{''.join(rows)}</table>"


def _pieces(bar: IBar) -> str:
    cells = []
    for part in bar["parts"]:
        width, colour = f"{100 * part['fraction']:.1f}%", part_colour(part["name"])
        inside = part["text"] if part["fraction"] >= _TEXT_FITS else "&nbsp;"
        inside = inside if inside == "&nbsp;" else _text(inside)
        cells.append(
            f'<td width="{width}" bgcolor="{colour}" title="{_text(part["label"])} {_text(part["text"])}"'
            f' style="width:{width};background-color:{colour};color:{ink_on(colour)};padding:2px 0;'
            f'text-align:center;font-size:85%;white-space:nowrap">{inside}</td>'
        )
    start = '<table width="100%" style="border-collapse:collapse;width:100%;table-layout:fixed;margin:0">'
    return f"{start}<tr>{''.join(cells)}</tr></table>"


def _numbers(report: IReport) -> Iterator[str]:
    """The bars as numbers: a row a part of time, a column a thread."""
    bars = report["bars"]
    if not bars:
        return
    rows = [_row(["", *(_name(bar["who"]) for bar in bars)], "th")]
    for entry in report["legend"]:
        colour = part_colour(entry["name"])
        swatch = (
            f'<span style="background-color:{colour};border:1px solid #8a929c">&nbsp;&nbsp;&nbsp;</span> '
        )
        texts = [
            next((p["text"] for p in bar["parts"] if p["name"] == entry["name"]), "–")
            for bar in bars
        ]
        rows.append(_row([swatch + _text(entry["label"]), *map(_text, texts)]))
    yield f"{_TABLE}{''.join(rows)}</table>"


def _ceilings(report: IReport) -> Iterator[str]:
    if not report["ceilings"]:
        return
    now = report["ceilingNow"]
    yield _title("Ceilings: what each resource alone would allow" + (f" ({now['text']})" if now else ""))
    rows = (_ceiling(row) for row in report["ceilings"])
    yield f"{_WIDE}{''.join(rows)}</table>"


def _ceiling(row: ICeiling) -> str:
    colour = LIMITING if row["limiting"] else BAR
    width = f"{max(0.5, 100 * row['fraction']):.1f}%"
    note = " <b>limiting</b>" if row["limiting"] else ""
    bar = (
        '<table width="100%" style="border-collapse:collapse;width:100%;table-layout:fixed;margin:0"><tr>'
        f'<td width="{width}" bgcolor="{colour}" style="width:{width};background-color:{colour};'
        f'padding:2px 0;font-size:85%;color:{INK}">&nbsp;</td><td style="padding:0"></td></tr></table>'
    )
    return (
        f'<tr title="{_text(row["how"])}"><td width="18%" style="{_LEFT};width:18%">{_name(row["label"])}</td>'
        f'<td width="45%" style="width:45%;padding:2px 0">{bar}</td>'
        f'<td width="37%" style="text-align:left;padding:2px 0 2px 12px">{_text(row["text"])}{note}</td></tr>'
    )


def _findings(report: IReport) -> Iterator[str]:
    if not report["findings"]:
        return
    yield _title("Findings: share of the time that removing the cause would free")
    for number, finding in enumerate(report["findings"], 1):
        where = f" <code>{_text(finding['where'])}</code>" if finding["where"] else ""
        yield (
            f'<p style="margin:4px 0 0 0">{number}. <b>{_text(finding["share"])}</b>, '
            f"{_text(finding['cost'])}: <b>{_text(finding['title'])}</b>{where}</p>"
        )
        points = "".join(f"<li>{_text(line)}</li>" for line in finding["evidence"])
        advice = f"<li><b>{_text(finding['advice'])}</b></li>" if finding["advice"] else ""
        yield f'<ul style="margin:0 0 4px 0">{points}{advice}</ul>'


def _toggles(toggles: Sequence[IToggle]) -> Iterator[str]:
    if not toggles:
        return
    yield _title("To try")
    rows = []
    for toggle in toggles:
        star = "★ " if toggle["suggested"] and not toggle["refusal"] else ""
        text = f"does not apply: {toggle['refusal']}" if toggle["refusal"] else toggle["effect"]
        cost = "" if toggle["refusal"] else f"<br><small>Cost: {_text(toggle['cost'])}</small>"
        gain = f"<br>{_text(toggle['predicted'])}" if toggle["predicted"] else ""
        rows.append(
            f'<tr><td style="{_LEFT}">{star}<b>{_name(toggle["title"])}</b>{gain}</td>'
            f'<td style="{_LEFT}">{_text(text)}{cost}</td></tr>'
        )
    yield f"{_TABLE}{''.join(rows)}</table>"


def _comparison(comparison: IComparison) -> Iterator[str]:
    yield _title(comparison["title"])
    yield f'<p style="font-size:125%;margin:0 0 4px 0"><b>{_text(comparison["headline"])}</b></p>'
    yield "<p>" + "<br>".join(_text(line) for line in comparison["lines"]) + "</p>"
    head = ("", "samples/s", "CPU / sample", "first batch", "peak memory", "trials")
    rows = [_row([_text(text) for text in head], "th")]
    for arm in comparison["arms"]:
        texts = (arm["throughput"], arm["cpu"], arm["firstBatch"], arm["memory"], arm["trials"])
        rows.append(_row([f"{_text(arm['name'])} {_name(arm['label'])}", *map(_text, texts)]))
    yield f"{_TABLE}{''.join(rows)}</table>"
    for note in comparison["notes"]:
        yield f"<p><small>Note: {_text(note)}</small></p>"
    if comparison["code"]:
        yield f"<pre>{_text(comparison['code'])}</pre>"


def _foot(report: IReport) -> Iterator[str]:
    missing = "; ".join(f"{gap['what']}: {gap['reason']}" for gap in report["notMeasured"])
    texts = [report["cost"]]
    if missing:
        texts.append(f"Not measured: {missing}.")
    if report["variable"]:
        texts.append(f"The profile is in {report['variable']}.")
    yield f'<p style="margin:10px 0 0 0"><small>{_text(" ".join(texts))}</small></p>'
