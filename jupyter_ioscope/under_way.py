"""What a command on loaders says while its trials run, and what an interrupt does to them."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from jupyter_ioscope.progress_line import ProgressLine

if TYPE_CHECKING:
    from jupyter_ioscope.trials.progress import Progress


class UnderWay:
    """Shows progress on `line`. Once there is something to show for it, a first interrupt sets
    `cancel`, so that the command ends with what was measured; before that, and a second time, it is
    an interrupt like any other."""

    def __init__(self, line: ProgressLine) -> None:
        self.cancel = threading.Event()
        self._line = line
        self._measured = False
        self._before: Any = None

    def on_progress(self, progress: Progress) -> None:
        self._measured = self._measured or progress.pairs > 0
        self._line.show(progress.text)

    def __enter__(self) -> UnderWay:
        # Elsewhere than in the main thread no handler can be set, and no interrupt arrives.
        if threading.current_thread() is threading.main_thread():
            self._before = signal.getsignal(signal.SIGINT)
            if callable(self._before):
                signal.signal(signal.SIGINT, self._pressed)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._put_back()
        self._line.clear()

    def _pressed(self, number: int, frame: FrameType | None) -> None:
        before = self._before
        self._put_back()
        if self._measured:
            self.cancel.set()
        else:
            before(number, frame)

    def _put_back(self) -> None:
        if callable(self._before):
            signal.signal(signal.SIGINT, self._before)
            self._before = None
