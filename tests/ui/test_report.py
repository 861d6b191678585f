"""A report in JupyterLab, drawn from a payload: no kernel side is needed for any of this."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.ui.harness import REPOSITORY, Lab

pytestmark = [pytest.mark.browser, pytest.mark.timeout(400)]

FIXTURE = REPOSITORY / "labextension" / "test" / "fixtures" / "report.json"
HTML_FALLBACK = "<p class='fallback'>the static tables</p>"

# what the kernel side of a report answers, in twenty lines: see labextension/src/protocol.ts
KERNEL_SIDE = """
import json
from IPython.display import display
report = json.loads(open({fixture!r}).read())
seen = []
def opened(comm, message):
    if message["content"]["data"] != {{"report_id": report["reportId"]}}:
        comm.close()
        return
    def say(state, text):
        comm.send({{"progress": {{"state": state, "text": text, "fraction": -1}}}})
    say("idle", "")
    def received(message):
        command = message["content"]["data"]
        seen.append(command)
        if command["cmd"] == "run_ab":
            say("running", "pair 1 of 9")
        else:
            say("cancelled", "Cancelled.")
    comm.on_msg(received)
get_ipython().kernel.comm_manager.register_target("ioscope.report", opened)
"""


def show(**changes: object) -> str:
    """A cell that displays the fixture with `changes` in it."""
    return (
        "import json\nfrom IPython.display import display\n"
        f"shown = json.loads(open({str(FIXTURE)!r}).read()) | json.loads({json.dumps(changes)!r})\n"
        f"display({{'application/vnd.ioscope.report+json': shown, 'text/html': {HTML_FALLBACK!r}, "
        "'text/plain': 'plain'}, raw=True)"
    )


def unfold(lab: Lab, title: str) -> None:
    """Open a section for those who dig."""
    lab.page.locator(f".ioscope-deep[data-section='{title}'] > summary").click()


def test_a_report_is_drawn_before_html_in_both_themes(lab: Lab) -> None:
    lab.write("themes.ipynb", show())
    lab.open("themes.ipynb")
    lab.run_all()
    report = lab.page.locator(".ioscope-report")
    report.wait_for()
    assert lab.page.locator(".fallback").count() == 0
    canvas = lab.page.locator(".ioscope-flame canvas")
    assert not canvas.is_visible()
    for title in ("Ceilings", "Timeline", "Flame graph"):
        unfold(lab, title)
    canvas.wait_for()
    assert canvas.evaluate(
        "c => [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data].some(v => v)"
    )
    pixel = "c => [...c.getContext('2d').getImageData(3, 24, 1, 1).data].join()"
    colours, fills = set(), set()
    for name in ("JupyterLab Light", "JupyterLab Dark"):
        lab.theme(name)
        lab.page.wait_for_timeout(300)  # the theme's style sheet is applied with the next frame
        lab.screenshot(f"report-{name.split()[1].lower()}")
        colours.add(report.evaluate("e => getComputedStyle(e).color"))
        fills.add(canvas.evaluate(pixel))
    lab.theme("JupyterLab Light")
    assert len(colours) == len(fills) == 2
    assert lab.watch.errors == []
    assert lab.watch.outside == []


def test_a_hostile_report_runs_nothing(lab: Lab) -> None:
    hostile = "<img src=x onerror='window.attacked = 1'><script>window.attacked = 1</script>"
    lab.write("hostile.ipynb", show(headline=hostile, detail=hostile, cost=hostile))
    lab.open("hostile.ipynb")
    lab.run_all()
    assert lab.page.locator(".ioscope-headline").first.text_content() == hostile
    assert lab.page.locator(".ioscope-report :is(img, script)").count() == 0
    assert lab.page.evaluate("() => window.attacked") is None


def test_the_buttons_reach_the_kernel_that_knows_the_report(lab: Lab) -> None:
    lab.write("live.ipynb", KERNEL_SIDE.format(fixture=str(FIXTURE)), show(), "print(seen)")
    lab.open("live.ipynb")
    lab.run_all()
    page = lab.page
    progress = page.locator(".ioscope-progress")
    run = page.get_by_role("button", name="Run A/B")
    page.locator("[data-toggle=workers]").check()
    run.click()
    progress.get_by_text("pair 1 of 9").wait_for()
    assert run.is_disabled()
    page.get_by_role("button", name="Cancel").click()
    progress.get_by_text("Cancelled.").wait_for()
    assert run.is_enabled()
    lab.run_last()
    sent = "[{'cmd': 'run_ab', 'toggles': ['draft_decode', 'workers']}, {'cmd': 'cancel'}]"
    page.locator(".jp-OutputArea-output").get_by_text(sent).wait_for()
    assert lab.watch.errors == []


def test_after_a_restart_the_buttons_say_what_is_missing(lab: Lab) -> None:
    lab.write("restart.ipynb", KERNEL_SIDE.format(fixture=str(FIXTURE)), show())
    lab.open("restart.ipynb")
    lab.run_all()
    run = lab.page.get_by_role("button", name="Run A/B")
    lab.page.wait_for_function("() => !document.querySelector('.ioscope-primary').disabled")
    lab.page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()"
    )
    lab.page.get_by_text("To try a fix, run the cell again").wait_for()
    assert run.is_disabled()
    assert lab.page.locator(".jp-OutputArea-output[data-mime-type*=stderr]").count() == 0


def test_a_saved_report_is_drawn_without_a_kernel(lab: Lab) -> None:
    lab.write("saved.ipynb", show())
    lab.open("saved.ipynb")
    lab.run_all()
    lab.page.locator(".ioscope-report").wait_for()
    lab.command("docmanager:save")
    lab.page.wait_for_function("() => !window.jupyterapp.shell.currentWidget.context.model.dirty")
    lab.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    saved = json.loads((lab.root / "saved.ipynb").read_text())
    saved["metadata"]["kernelspec"] = {"name": "absent", "display_name": "Absent"}
    (lab.root / "absent.ipynb").write_text(json.dumps(saved))
    lab.open("absent.ipynb", kernel=False)
    lab.page.locator(".ioscope-report").wait_for()
    assert lab.page.locator(".ioscope-flame canvas").count() == 1
    lab.page.get_by_text("To try a fix, run the cell again").wait_for()
    assert lab.page.locator(".ioscope-primary").is_disabled()


def test_code_is_inserted_below_the_report_and_not_run(lab: Lab) -> None:
    lab.write("insert.ipynb", "1", show(), "2")
    lab.open("insert.ipynb")
    lab.run_all()
    lab.page.locator(".ioscope-comparison").get_by_role("button", name="Insert code").click()
    report = json.loads(FIXTURE.read_text())
    assert lab.sources()[2:] == [report["comparisons"][0]["code"], "2"]
    assert "[ ]:" in (lab.page.locator(".jp-Cell").nth(2).text_content() or "")


def test_a_frame_of_a_cell_leads_to_the_cell_and_its_line(lab: Lab) -> None:
    report = json.loads(FIXTURE.read_text())
    flame = next(one for one in report["flames"] if one["key"] == "consumer")
    flame["details"][1] = "In [1], line 3"
    lab.write("lines.ipynb", "a = 1\n\nb = 2\n", *["pass"] * 3, show(flames=[flame]))
    lab.open("lines.ipynb")
    lab.run_all()
    unfold(lab, "Flame graph")
    lab.page.locator(".ioscope-flame canvas").focus()
    for _ in range(2):
        lab.page.keyboard.press("ArrowDown")
    lab.page.get_by_role("button", name="Go to In [1], line 3").click()
    lab.page.wait_for_function(
        """() => {
            const notebook = window.jupyterapp.shell.currentWidget.content;
            const line = notebook.activeCell.editor?.getCursorPosition().line;
            return notebook.activeCellIndex === 0 && line === 2;
        }"""
    )


def test_keys_in_the_report_are_no_shortcuts_of_the_notebook(lab: Lab) -> None:
    lab.write("keys.ipynb", show())
    lab.open("keys.ipynb")
    lab.run_all()
    unfold(lab, "Flame graph")
    canvas = lab.page.locator(".ioscope-flame canvas")
    canvas.focus()
    for key in ("ArrowDown", "ArrowDown", "b", "d", "d", "Enter"):
        lab.page.keyboard.press(key)
    assert len(lab.sources()) == 1
    assert "fetch" in (lab.page.locator(".ioscope-flame [aria-live]").text_content() or "")
    assert lab.page.get_by_role("button", name="Show all").is_visible()


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("with.ioscope.json", {"profile": {}, "report": "FIXTURE"}, "The loop waited for data"),
        ("without.ioscope.json", {"profile": {}}, "ioscope.load"),
        ("foreign.ioscope.json", {"a": 1}, "no ioscope profile"),
    ],
)
def test_a_profile_file_opens_as_a_report(
    lab: Lab, name: str, content: dict[str, object], expected: str
) -> None:
    if content.get("report"):
        content = {**content, "report": json.loads(FIXTURE.read_text())}
    Path(lab.root / name).write_text(json.dumps(content))
    lab.visit(name)
    document = lab.page.locator(".jp-MimeDocument")
    document.get_by_text(expected).first.wait_for()
    assert lab.watch.errors == []


def test_a_cut_off_profile_file_says_so(lab: Lab) -> None:
    (lab.root / "cut.ioscope.json").write_text(json.dumps({"profile": [1, 2, 3]})[:-5])
    lab.visit("cut.ioscope.json")
    lab.page.locator(".jp-MimeDocument").get_by_text("damaged or cut off").wait_for()
