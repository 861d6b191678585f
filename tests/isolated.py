"""Jobs in a child process of their own, as trials run them."""

from __future__ import annotations

from typing import Any

from jupyter_ioscope.trials.child import Job
from jupyter_ioscope.trials.isolation import Isolation
from jupyter_ioscope.trials.outcome import Watch


def acted(job: Job) -> dict[str, Any]:
    """What the job returned."""
    with Isolation() as isolation:
        return isolation.run(job, Watch(silence_s=30))[0]
