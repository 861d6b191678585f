"""A report's line to its pages: commands in, progress and comparisons out, and nothing else."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jupyter_ioscope.views import widget as widget_module
from jupyter_ioscope.views.anywidget_report import VIEW_MIME, report_widget, view_part
from jupyter_ioscope.views.bundle import mime_bundle
from jupyter_ioscope.views.commands import read_command
from jupyter_ioscope.views.comms import TARGET, Reports
from jupyter_ioscope.views.payload import progress_payload
from jupyter_ioscope.views.shapes import MIME
from jupyter_ioscope.views.widget import KEPT, ReportChannel
from tests import builders
from tests.view_values import HOSTILE, diagnosis, profile

ROOT = Path(__file__).parent.parent
CANCEL = {"cmd": "cancel"}


class FakeComm:
    """The kernel's end of a comm, as the `comm` package offers it."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.closed = False
        self.gone = False
        self._msg: Callable[[dict[str, Any]], None] = lambda _: None
        self._close: Callable[[dict[str, Any]], None] = lambda _: None

    def send(self, data: dict[str, Any]) -> None:
        if self.gone:
            raise ConnectionError("the page is gone")
        self.sent.append(json.loads(json.dumps(data)))

    def close(self) -> None:
        self.closed = True

    def on_msg(self, callback: Callable[[dict[str, Any]], None]) -> None:
        self._msg = callback

    def on_close(self, callback: Callable[[dict[str, Any]], None]) -> None:
        self._close = callback

    def page_says(self, data: object) -> None:
        self._msg({"content": {"data": data}})

    def page_leaves(self) -> None:
        self._close({})


class FakeManager:
    """A kernel's comm manager."""

    def __init__(self) -> None:
        self.targets: dict[str, Callable[[Any, dict[str, Any]], None]] = {}
        self.registered = 0

    def register_target(self, name: str, callback: Callable[[Any, dict[str, Any]], None]) -> None:
        self.targets[name] = callback
        self.registered += 1

    def page_opens(self, data: object) -> FakeComm:
        comm = FakeComm()
        self.targets[TARGET](comm, {"content": {"data": data}})
        return comm


class Kernel:
    def __init__(self) -> None:
        self.manager, self.reports = FakeManager(), Reports()

    def channel(self, report_id: str = "r1") -> ReportChannel:
        return ReportChannel(report_id, reports=self.reports, manager=self.manager)


@pytest.fixture
def kernel() -> Iterator[Kernel]:
    yield Kernel()
    for channel in list(widget_module._open.values()):
        channel.close()


@pytest.mark.parametrize(
    ("content", "command"),
    [
        ({"cmd": "cancel"}, {"cmd": "cancel"}),
        ({"cmd": "cancel", "more": 1}, {"cmd": "cancel"}),
        ({"cmd": "tune"}, {"cmd": "tune"}),
        ({"cmd": "run_ab", "toggles": ["workers"]}, {"cmd": "run_ab", "toggles": ["workers"]}),
        ({"cmd": "run_ab", "toggles": ["workers=8"]}, {"cmd": "run_ab", "toggles": ["workers=8"]}),
        ({"cmd": "run_ab", "toggles": ["a", "b", "a"]}, {"cmd": "run_ab", "toggles": ["a", "b"]}),
        ({"cmd": "run_ab", "toggles": []}, {"cmd": "run_ab", "toggles": []}),
        (
            {"cmd": "run_ab", "toggles": ["a"], "wholeCell": True},
            {"cmd": "run_ab", "toggles": ["a"], "wholeCell": True},
        ),
        (
            {"cmd": "run_ab", "toggles": ["a"], "wholeCell": "rm"},
            {"cmd": "run_ab", "toggles": ["a"]},
        ),
    ],
)
def test_commands_are_understood(content: object, command: dict[str, Any]) -> None:
    assert read_command(content) == command


@pytest.mark.parametrize(
    "content",
    [
        None, "cancel", 7, [], {}, {"cmd": None}, {"cmd": "exec", "code": "1"}, {"cmd": ["cancel"]},
        {"cmd": "run_ab"}, {"cmd": "run_ab", "toggles": "workers"},
        {"cmd": "run_ab", "toggles": [1]}, {"cmd": "run_ab", "toggles": {"a": 1}},
        {"cmd": "run_ab", "toggles": ["a b"]}, {"cmd": "run_ab", "toggles": ["x" * 65]},
        {"cmd": "run_ab", "toggles": ["../x"]}, {"cmd": "run_ab", "toggles": [HOSTILE]},
        {"cmd": "run_ab", "toggles": ["a\n"]}, {"cmd": "run_ab", "toggles": ["a"] * 33},
    ],
)  # fmt: skip
def test_everything_else_is_ignored_and_logged(
    content: object, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    assert read_command(content) is None
    assert "ignored a message" in caplog.text
    assert "\x1b" not in caplog.text


def test_a_page_that_opens_is_answered_and_can_send_commands(kernel: Kernel) -> None:
    heard: list[Any] = []
    kernel.channel().on_command(heard.append)
    comm = kernel.manager.page_opens({"report_id": "r1"})
    assert comm.sent == [{}], "an answer, though there is nothing to tell yet"
    comm.page_says({"cmd": "run_ab", "toggles": ["workers"]})
    comm.page_says({"cmd": "format_disk"})
    comm.page_says(CANCEL)
    assert heard == [{"cmd": "run_ab", "toggles": ["workers"]}, CANCEL]


@pytest.mark.parametrize("data", [{"report_id": "r2"}, {"report_id": ["r1"]}, {}, None, "r1"])
def test_a_page_of_an_unknown_report_is_turned_away(kernel: Kernel, data: object) -> None:
    kernel.channel()
    comm = kernel.manager.page_opens(data)
    assert comm.closed
    assert comm.sent == []


def test_the_target_is_registered_once_a_kernel(kernel: Kernel) -> None:
    for report_id in ("r1", "r2", "r3"):
        kernel.channel(report_id)
    assert kernel.manager.registered == 1


def test_every_page_of_a_report_hears_it_and_no_page_of_another(kernel: Kernel) -> None:
    one, other = kernel.channel("r1"), kernel.channel("r2")
    pages = [kernel.manager.page_opens({"report_id": name}) for name in ("r1", "r1", "r2")]
    one.progress(progress_payload("running", "pair 1", 0.1))
    other.comparisons([])
    assert pages[0].sent == pages[1].sent
    assert pages[0].sent[-1]["progress"]["text"] == "pair 1"
    assert pages[2].sent[-1] == {"comparisons": []}


def test_a_page_that_opens_late_is_told_how_things_stand(kernel: Kernel) -> None:
    channel = kernel.channel()
    channel.progress(progress_payload("running", "pair 1"))
    channel.comparisons([{"title": "A/B"}])
    (state,) = kernel.manager.page_opens({"report_id": "r1"}).sent
    assert state["progress"]["text"] == "pair 1"
    assert state["comparisons"] == [{"title": "A/B"}]


def test_pages_that_left_or_failed_are_dropped(kernel: Kernel) -> None:
    channel = kernel.channel()
    left, failing, staying = (kernel.manager.page_opens({"report_id": "r1"}) for _ in range(3))
    left.page_leaves()
    failing.gone = True
    channel.progress(progress_payload("running", "1"))
    failing.gone = False
    channel.progress(progress_payload("running", "2"))
    channel.close()
    assert [len(page.sent) for page in (left, failing, staying)] == [1, 1, 3]
    assert staying.sent[-1]["progress"]["text"] == "2"
    assert staying.closed


def test_a_command_whose_handler_fails_is_logged_and_the_next_one_works(
    kernel: Kernel, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Any] = []
    channel = kernel.channel()

    def broken(_: object) -> None:
        raise RuntimeError("boom")

    channel.on_command(broken)
    channel.on_command(heard.append)
    kernel.manager.page_opens({"report_id": "r1"}).page_says(CANCEL)
    assert heard == [CANCEL]
    assert "boom" in caplog.text


def test_a_closed_channel_delivers_what_waited_and_hears_nothing_more(kernel: Kernel) -> None:
    heard: list[Any] = []
    channel = kernel.channel()
    channel.on_command(heard.append)
    comm = kernel.manager.page_opens({"report_id": "r1"})
    for text in ("1", "2", "3"):
        channel.progress(progress_payload("done", text))
    channel.close()
    assert comm.sent[-1]["progress"]["text"] == "3"
    assert comm.closed
    comm.page_says(CANCEL)
    channel.progress(progress_payload("running", "4"))
    assert heard == []
    assert comm.sent[-1]["progress"]["text"] == "3"
    assert kernel.manager.page_opens({"report_id": "r1"}).closed


def test_only_the_newest_reports_are_kept_alive(kernel: Kernel) -> None:
    for n in range(KEPT + 3):
        kernel.channel(f"r{n}")
    assert kernel.manager.page_opens({"report_id": "r2"}).closed
    assert not kernel.manager.page_opens({"report_id": "r3"}).closed
    assert len(widget_module._open) == KEPT


def test_outside_a_kernel_a_channel_is_inert() -> None:
    channel = ReportChannel("r1")
    channel.on_command(lambda _: pytest.fail("nobody can send"))
    channel.progress(progress_payload("running", "1"))
    channel.comparisons([])
    made = channel.bundle(recorded())
    channel.close()
    assert VIEW_MIME not in made
    assert made[MIME]["reportId"] == "r1"
    assert not widget_module._open
    assert not [t for t in threading.enumerate() if t.name == "ioscope-report"]


def recorded() -> Any:
    return SimpleNamespace(
        profile=profile(),
        diagnosis=diagnosis(),
        offers=builders.offers(),
        results=[builders.comparison()],
    )


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "widget.js"
    path.write_text("export default { render() {} };\n", encoding="utf-8")
    return path


def test_without_a_built_front_end_there_is_no_widget(tmp_path: Path) -> None:
    made = mime_bundle(profile(), diagnosis())
    assert report_widget(made, made[MIME], tmp_path / "widget.js") is None


def test_the_widget_shows_itself_and_everything_that_works_without_it(script: Path) -> None:
    pytest.importorskip("anywidget")
    made = mime_bundle(profile(), diagnosis())
    widget: Any = report_widget(made, made[MIME], script)
    data, _ = widget._repr_mimebundle_()
    assert set(data) == {VIEW_MIME, MIME, "image/png", "text/html", "text/plain"}
    assert data["text/plain"] == made["text/plain"]
    assert view_part(widget)[VIEW_MIME]["model_id"] == widget.model_id
    assert widget.report == made[MIME]
    assert {"report", "progress", "comparisons"} <= set(widget.keys)


def test_in_colab_the_display_says_which_manager_loads_the_widget(
    kernel: Kernel, script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = SimpleNamespace(_installed_url="manager.min.js")
    colab = SimpleNamespace(enable_custom_widget_manager=lambda: None, _widgets=there)
    monkeypatch.setitem(sys.modules, "google.colab.output", colab)  # what anywidget looks for
    pytest.importorskip("anywidget")
    monkeypatch.setattr(widget_module, "kernel_comm_manager", lambda: kernel.manager)
    monkeypatch.setattr(
        widget_module, "report_widget", lambda made, report: report_widget(made, report, script)
    )
    channel = kernel.channel()
    made = channel.bundle(recorded())
    assert channel.metadata[VIEW_MIME] == {
        "colab": {"custom_widget_manager": {"url": "manager.min.js"}}
    }
    assert set(channel.metadata) <= set(made)


def test_the_channel_carries_the_same_values_over_the_widget(kernel: Kernel, script: Path) -> None:
    pytest.importorskip("anywidget")
    heard: list[Any] = []
    channel = kernel.channel()
    channel.on_command(heard.append)
    made = mime_bundle(profile(), diagnosis())
    widget: Any = report_widget(made, made[MIME], script)
    channel.attach(widget)
    widget._handle_custom_msg(CANCEL, [])
    widget._handle_custom_msg({"cmd": "nonsense"}, [])
    channel.progress(progress_payload("running", "pair 1", 0.5))
    channel.comparisons([{"title": "A/B"}])
    channel.close()
    assert heard == [CANCEL]
    assert widget.progress == {"state": "running", "text": "pair 1", "fraction": 0.5}
    assert widget.comparisons == [{"title": "A/B"}]


@pytest.mark.timeout(240)
def test_widgets_are_loaded_by_the_first_report_in_a_kernel_and_not_before() -> None:
    code = (
        "import sys\n"
        "import jupyter_ioscope.views.widget as widget\n"
        "from tests.test_views_widget import recorded\n"
        "widget.ReportChannel('r').bundle(recorded())\n"
        "assert not {'anywidget', 'ipywidgets', 'traitlets'} & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=150, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr


IN_A_KERNEL = """
from IPython.display import display
from jupyter_ioscope.views.payload import progress_payload
from jupyter_ioscope.views.widget import ReportChannel
from tests.test_views_widget import recorded
heard = []
channel = ReportChannel("r1")
channel.on_command(heard.append)
display(channel.bundle(recorded()), raw=True)
"""


@pytest.mark.timeout(300)
def test_a_real_kernel_answers_a_real_comm_and_shows_all_forms() -> None:
    manager_module = pytest.importorskip("jupyter_client.manager")
    manager, client = manager_module.start_new_kernel(
        kernel_name="python3", startup_timeout=180, cwd=str(ROOT)
    )
    try:
        shown: dict[str, Any] = {}

        def output(message: dict[str, Any]) -> None:
            if message["msg_type"] == "display_data":
                shown.update(message["content"]["data"])
            assert message["msg_type"] != "error", message["content"]

        client.execute_interactive(IN_A_KERNEL, timeout=180, output_hook=output)
        assert {MIME, "image/png", "text/html", "text/plain"} <= set(shown)
        content = {"comm_id": "c1", "target_name": TARGET, "data": {"report_id": "r1"}}
        say(client, "comm_open", content)
        say(client, "comm_msg", {"comm_id": "c1", "data": {"cmd": "cancel"}})
        printed: list[str] = []

        def heard(message: dict[str, Any]) -> None:
            if message["msg_type"] == "comm_msg" and message["content"]["comm_id"] == "c1":
                answers.append(message["content"]["data"])
            if message["msg_type"] == "stream":
                printed.append(message["content"]["text"])

        answers: list[Any] = []
        code = "channel.progress(progress_payload('running', 'pair 1')); print(heard)"
        client.execute_interactive(code, timeout=180, output_hook=heard)
        deadline_messages = 20
        while not any("progress" in answer for answer in answers) and deadline_messages:
            deadline_messages -= 1
            heard(client.get_iopub_msg(timeout=10))
        assert answers[-1]["progress"]["text"] == "pair 1"
        assert "{'cmd': 'cancel'}" in "".join(printed)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def say(client: Any, kind: str, content: dict[str, Any]) -> None:
    client.shell_channel.send(client.session.msg(kind, content))
