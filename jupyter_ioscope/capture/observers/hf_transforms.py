"""Gives the transforms of `datasets` that the loader plug-in noted to the profile."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from jupyter_ioscope.capture.loaders._hf_transforms import log_of
from jupyter_ioscope.capture.observers._observer import InWorker, Observed, Watched
from jupyter_ioscope.model.profile import Gap


class HfTransforms:
    """The plug-in. Hooks are set by the loader plug-in, once the library has been imported."""

    name = "transforms of datasets"

    def start(self, watched: Watched) -> Callable[[dict[int, int]], Observed]:
        log = log_of(watched.recorder)

        def end(_: dict[int, int]) -> Observed:
            gaps = (Gap("some transforms of datasets", log.gap),) if log.gap else ()
            return Observed(transforms=log.finished(), gaps=gaps)

        return end

    def start_in_worker(self, settings: InWorker, stack: contextlib.ExitStack) -> None:
        """Transforms in workers are not noted: loaders make their datasets before."""


OBSERVER = HfTransforms()
