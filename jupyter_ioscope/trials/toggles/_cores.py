"""What a loader's workers may use of the machine, in words."""

from __future__ import annotations

from jupyter_ioscope.capture.cores import sharing_ranks


def cores_text(cores: int) -> str:
    """`3 cores`, with the reason where other ranks of the job have the rest."""
    ranks = sharing_ranks()
    part = f" (its part of them: {ranks} ranks train here)" if ranks > 1 else ""
    return f"{cores} core{'' if cores == 1 else 's'}{part}"
