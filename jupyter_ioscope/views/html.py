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
from jupyter_ioscope.views.block import HEAD, block_cells
from jupyter_ioscope.views.colours import BAR, LIMITING, ink_on, part_colour
from jupyter_ioscope.views.payload import (
    Size,
    comparison_payload,
    report_payload,
    worth_showing,
)
from jupyter_ioscope.views.results import Result
from jupyter_ioscope.views.shapes import (
    IBar,
    ICeiling,
    IComparison,
    IFigure,
    IGrid,
    IOutlier,
    IOutliers,
    IPart,
    IReport,
    IToggle,
)

_TEXT_FITS = 0.07  # share of a bar from which on its percentage fits inside
_LETTER = 0.012  # share of a bar that a letter of it takes at a width of some 700 pixels
_LEAST_MARK = 0.006  # of a strip's width: some 5 pixels
_NO_FLAMES = Size(frames=1, points=2)
_LEFT = "text-align:left;padding:2px 10px 2px 0;vertical-align:top"
_RIGHT = "text-align:right;padding:2px 0 2px 14px;vertical-align:top"
_TABLE = '<table style="border-collapse:collapse;margin:2px 0 10px 0">'
_WIDE = (
    '<table width="100%" style="border-collapse:collapse;width:100%;max-width:860px;'
    'margin:2px 0 6px 0">'
)
# A bar is a table of one row: its cells keep their widths and colours as attributes where a page
# removes styles.
_BAR = (
    '<table width="100%" style="border-collapse:collapse;width:100%;table-layout:fixed;margin:0">'
    "<tr>"
)


def report_html(
    profile: Profile,
    diagnosis: Diagnosis,
    offers: Sequence[Offer] = (),
    comparisons: Sequence[Result] = (),
    variable: str = "_ioscope",
) -> str:
    """The whole report as an HTML fragment."""
    return html_of(
        report_payload(profile, diagnosis, offers, comparisons, variable, size=_NO_FLAMES, grown=())
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
            _phases(report),
            _traced(report),
            _ceilings(report),
            _findings(report),
            _outliers(report["outliers"]),
            _transforms(report),
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
    if cells := "".join(_figure(figure) for figure in report["figures"]):
        yield f"{_TABLE}<tr>{cells}</tr></table>"


def _figure(figure: IFigure) -> str:
    return (
        f'<td title="{_text(figure.get("title", ""))}" style="{_LEFT};padding-right:26px">'
        f'<b style="font-size:125%">{_text(figure["value"])}</b><br>'
        f"<small>{_text(figure['label'])}</small></td>"
    )


def _cell(content: str, width: str, style: str = "padding:2px 0", title: str = "") -> str:
    size = f' width="{width}"' if width else ""
    wide = f"width:{width};" if width else ""
    hover = f' title="{_text(title)}"' if title else ""
    return f'<td{size}{hover} style="{wide}{style}">{content}</td>'


def _area(content: str, fraction: float, colour: str, title: str = "") -> str:
    """One coloured cell of a bar."""
    style = (
        f"background-color:{colour};color:{ink_on(colour)};padding:2px 0;text-align:center;"
        "font-size:85%;white-space:nowrap"
    )
    cell = _cell(content or "&nbsp;", f"{100 * fraction:.1f}%", style, title)
    return cell.replace("<td ", f'<td bgcolor="{colour}" ', 1)


def _bars(bars: Sequence[IBar]) -> Iterator[str]:
    if not bars:
        return
    yield _title("Where the time went")
    name_style = f"{_LEFT};white-space:nowrap"
    rows = (
        f"<tr>{_cell(_name(bar['who']), '12%', name_style)}"
        f"{_cell(_pieces(bar), '88%', title=bar['title'])}</tr>"
        for bar in bars
    )
    yield f"{_WIDE}{''.join(rows)}</table>"


def _pieces(bar: IBar) -> str:
    cells = (
        _area(
            _text(_inside(part)),
            part["fraction"],
            part_colour(part["name"]),
            f"{part['label']} {part['text']}",
        )
        for part in bar["parts"]
    )
    return f"{_BAR}{''.join(cells)}</tr></table>"


def _inside(part: IPart) -> str:
    """What fits into a piece of a bar: its name and share, its share, or nothing."""
    whole = f"{part['label']} {part['text']}"
    if part["fraction"] >= _LETTER * len(whole):
        return whole
    return part["text"] if part["fraction"] >= _TEXT_FITS else ""


def _numbers(report: IReport) -> Iterator[str]:
    """The bars as numbers: a row a part of time, a column a thread."""
    bars = report["bars"]
    if not bars:
        return
    rows = [_row(["share of time", *(_name(bar["who"]) for bar in bars)], "th")]
    for entry in report["legend"]:
        colour = part_colour(entry["name"])
        swatch = (
            f'<span style="background-color:{colour};border:1px solid #8a929c">'
            "&nbsp;&nbsp;&nbsp;</span> "
        )
        texts = [
            next((p["text"] for p in bar["parts"] if p["name"] == entry["name"]), "–")
            for bar in bars
        ]
        rows.append(_row([swatch + _text(entry["label"]), *map(_text, texts)]))
    yield f"{_TABLE}{''.join(rows)}</table>"


def _phases(report: IReport) -> Iterator[str]:
    """What the fetching threads were in the middle of; who wanted the cores."""
    if report["phases"]:
        head = _row(["By phase", "a batch", "of their time", "of that on a core"], "th")
        rows = (
            _row(
                [_text(text) for text in (row["label"], row["perBatch"], row["share"], row["cpu"])]
            )
            for row in report["phases"]
        )
        yield f"{_TABLE}{head}{''.join(rows)}</table>"
    if report["cores"]:
        yield f'<p style="margin:0 0 4px 0">{_text(report["cores"])}</p>'


def _traced(report: IReport) -> Iterator[str]:
    """Requests of block devices, where they were traced."""
    if rows := report.get("block", []):
        table = [_row(HEAD, "th")]
        table += [_row([_text(cell) for cell in block_cells(row)]) for row in rows]
        yield f"{_TABLE}{''.join(table)}</table>"


def _outliers(outliers: IOutliers) -> Iterator[str]:
    """Where in the run the outliers lay, and each of them with its likely cause."""
    if not outliers["summary"]:
        return
    yield _title("Batches that stood out")
    yield f'<p style="margin:0 0 4px 0">{_text(outliers["summary"])}</p>'
    if outliers["stalls"]:
        points = "".join(f"<li>{_text(text)}</li>" for text in outliers["stalls"])
        yield f'<ul style="margin:0 0 4px 0">{points}</ul>'
    if rows := outliers["rows"]:
        yield _strip(rows)
        head = "".join(
            f'<th style="{_LEFT}">{name}</th>'
            for name in ("outlier", "at", "what", "took", "usually", "likely")
        )
        yield f"{_TABLE}<tr>{head}</tr>{''.join(map(_outlier, rows))}</table>"


def _strip(rows: Sequence[IOutlier]) -> str:
    """The run as one bar with a mark where each outlier was."""
    cells, at = [], 0.0
    for row in sorted(rows, key=lambda one: one["x0"]):
        start = max(at, row["x0"])
        end = min(1.0, max(row["x1"], start + _LEAST_MARK))
        if start > at:
            cells.append(_area("", start - at, part_colour("idle")))
        if end > start:
            cells.append(_area("", end - start, LIMITING, row["title"]))
        at = max(at, end)
    if at < 1:
        cells.append(_area("", 1 - at, part_colour("idle")))
    return f"{_WIDE}<tr><td>{_BAR}{''.join(cells)}</tr></table></td></tr></table>"


def _outlier(row: IOutlier) -> str:
    texts = (row["batch"], row["when"], row["phase"], row["time"], row["usual"], row["cause"])
    cells = "".join(f'<td style="{_LEFT}">{_text(text)}</td>' for text in texts)
    return f'<tr title="{_text(row["title"])}">{cells}</tr>'


def _ceilings(report: IReport) -> Iterator[str]:
    if not report["ceilings"]:
        return
    now = f" ({report['ceilingNow']['text']})" if report["ceilingNow"] else ""
    yield _title(f"Ceilings: what each resource alone would allow{now}")
    rows = (_ceiling(row) for row in report["ceilings"])
    yield f"{_WIDE}{''.join(rows)}</table>"


def _ceiling(row: ICeiling) -> str:
    length = max(0.005, row["fraction"])
    bar = _area("", length, LIMITING if row["limiting"] else BAR) + _cell("", "", "padding:0")
    note = " <b>limiting</b>" if row["limiting"] else ""
    return (
        f'<tr title="{_text(row["how"])}">{_cell(_name(row["label"]), "18%", _LEFT)}'
        f"{_cell(f'{_BAR}{bar}</tr></table>', '45%')}"
        f"{_cell(_text(row['text']) + note, '37%', 'text-align:left;padding:2px 0 2px 12px')}</tr>"
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


def _transforms(report: IReport) -> Iterator[str]:
    rows = report.get("transforms", [])
    if not rows:
        return
    yield _title("Transforms of datasets: how many came from the cache")
    table = [_row(["transform", "from cache", "rows", "time", "why not"], "th")]
    for row in rows:
        texts = (row["hits"], row["rows"], row["time"], row["why"])
        table.append(_row([_name(row["name"]), *map(_text, texts)]))
    yield f"{_TABLE}{''.join(table)}</table>"


def _toggles(toggles: Sequence[IToggle]) -> Iterator[str]:
    if not toggles:
        return
    shown, others, refused = worth_showing(toggles)
    yield _title("To try" + ", ★ suggested" * any(toggle["suggested"] for toggle in shown))
    rows = []
    for toggle in shown:
        star = "★ " if toggle["suggested"] else ""
        cost = f"<br><small>Cost: {_text(toggle['cost'])}</small>"
        gain = f"<br>{_text(toggle['predicted'])}" if toggle["predicted"] else ""
        rows.append(
            f'<tr><td style="{_LEFT}">{star}<b>{_name(toggle["title"])}</b>{gain}</td>'
            f'<td style="{_LEFT}">{_text(toggle["effect"])}{cost}</td></tr>'
        )
    yield f"{_TABLE}{''.join(rows)}</table>"
    if others:
        yield f"<p><small>Also: {_text(', '.join(others))}.</small></p>"
    if refused:
        lines = "<br>".join(f"{_text(line)}" for line in refused)
        yield f"<p><small>Does not apply:<br>{lines}</small></p>"


def _comparison(comparison: IComparison) -> Iterator[str]:
    yield _title(comparison["title"])
    yield f'<p style="font-size:125%;margin:0 0 4px 0"><b>{_text(comparison["headline"])}</b></p>'
    lines = (*comparison["lines"], *comparison.get("how", []))
    yield "<p>" + "<br>".join(_text(line) for line in lines) + "</p>"
    if grid := comparison.get("grid"):
        yield _grid(grid)
    if comparison["arms"]:
        yield _arms(comparison)
    for note in comparison["notes"]:
        yield f"<p><small>Note: {_text(note)}</small></p>"
    if comparison["code"]:
        yield f"<pre>{_text(comparison['code'])}</pre>"


def _grid(grid: IGrid) -> str:
    """A search: samples/s of every setting; bold what was timed, a star at what to use."""
    rows = [_row([_text(grid["corner"]), *map(_text, grid["columns"])], "th")]
    for row in grid["rows"]:
        cells = [
            f"<b>{_text(cell['text'])}</b>{' ★' * cell['best']}"
            if cell["timed"]
            else _text(cell["text"])
            for cell in row["cells"]
        ]
        rows.append(_row([_text(row["label"]), *cells]))
    told = "<p><small>samples/s: bold was timed, the others predicted; ★ is what to use</small></p>"
    return f"{_TABLE}{''.join(rows)}</table>{told}"


def _arms(comparison: IComparison) -> str:
    head = ("loader", "samples/s", "CPU / sample", "first batch", "peak memory", "trials")
    rows = [_row([_text(text) for text in head], "th")]
    for arm in comparison["arms"]:
        texts = (arm["throughput"], arm["cpu"], arm["firstBatch"], arm["memory"], arm["trials"])
        rows.append(_row([f"{_text(arm['name'])} {_name(arm['label'])}", *map(_text, texts)]))
    return f"{_TABLE}{''.join(rows)}</table>"


def _foot(report: IReport) -> Iterator[str]:
    missing = "; ".join(f"{gap['what']}: {gap['reason']}" for gap in report["notMeasured"])
    texts = [text for text in (report["tier"], report["cost"]) if text]
    if missing:
        texts.append(f"Not measured: {missing}.")
    if report["variable"]:
        texts.append(f"The profile is in {report['variable']}.")
    yield f'<p style="margin:10px 0 0 0"><small>{_text(" ".join(texts))}</small></p>'
