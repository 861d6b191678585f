"""The report as an anywidget, for VS Code, Colab, and JupyterLab without our extension.

anywidget and ipywidgets are imported when the first report is shown, never before.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from jupyter_ioscope.optional import installed
from jupyter_ioscope.views.shapes import Bundle

log = logging.getLogger("ioscope")

SCRIPT = Path(__file__).parent.parent / "static" / "widget.js"
VIEW_MIME = "application/vnd.jupyter.widget-view+json"


def report_widget(bundle: Bundle, report: Any, script: Path = SCRIPT) -> Any | None:
    """A widget that shows `report` (`IReport`), or None where there cannot be one.

    `bundle` is what the widget shows where widgets do not run. A source checkout whose front end
    was not built has no script, and so no widget.
    """
    if not (installed("anywidget") and script.is_file()):
        return None
    try:
        return _widget_class(script)(report=report, bundle=bundle)
    except Exception:
        log.warning("ioscope: the widget could not be made", exc_info=True)
        return None


@lru_cache(maxsize=2)
def _widget_class(script: Path) -> type[Any]:
    import anywidget
    import traitlets

    class ReportWidget(anywidget.AnyWidget):
        """Traits of labextension/src/payload.ts: `report`, `progress`, `comparisons`."""

        _esm = script.read_text("utf-8")
        report = traitlets.Dict().tag(sync=True)
        progress = traitlets.Dict().tag(sync=True)
        comparisons: Any = traitlets.List().tag(sync=True)

        def __init__(self, report: dict[str, Any], bundle: Bundle) -> None:
            super().__init__(report=report)
            self._bundle = bundle

        def on_command(self, callback: Callable[[object], None]) -> None:
            """`callback` gets the content of every custom message, unchecked."""
            self.on_msg(lambda _widget, content, _buffers: callback(content))

        def set_trait_values(self, state: dict[str, Any]) -> None:
            """Set several traits; the page gets one message."""
            with self.hold_sync():
                for name, value in state.items():
                    self.set_trait(name, value)

        def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
            made: Any = super()._repr_mimebundle_(**kwargs) or {}
            data, metadata = made if isinstance(made, tuple) else (made, {})
            return {**data, **self._bundle}, metadata

    return ReportWidget


def view_part(widget: Any) -> Bundle:
    """The widget's own entry of a MIME bundle."""
    data, _ = widget._repr_mimebundle_()
    return {VIEW_MIME: data[VIEW_MIME]} if VIEW_MIME in data else {}


def view_metadata(widget: Any) -> dict[str, Any]:
    """What a display of `view_part` says of it: in Colab which widget manager loads it."""
    _, metadata = widget._repr_mimebundle_()
    return {VIEW_MIME: metadata[VIEW_MIME]} if VIEW_MIME in metadata else {}
