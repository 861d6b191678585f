"""What is looked up once the loop is over, about files that the profile names."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from jupyter_ioscope.capture.generators import generators
from jupyter_ioscope.capture.image_sizes import image_sizes
from jupyter_ioscope.capture.line_calls import line_calls
from jupyter_ioscope.model.profile import Gap, Profile

log = logging.getLogger("ioscope")


def with_details(profile: Profile) -> Profile:
    """The profile with what its lines call, which functions yield, how large its pictures are.
    Never raises: what fails becomes a gap."""
    profile = _with(profile, "calls", lambda: line_calls(profile.stacks, profile.cells))
    profile = _with(profile, "generators", lambda: generators(profile.stacks, profile.cells))
    return _with(profile, "images", lambda: image_sizes(profile.files))


def _with(profile: Profile, field: str, look: Callable[[], Any]) -> Profile:
    try:
        return replace(profile, **{field: look()})
    except Exception as error:
        log.warning("ioscope: no %s", field, exc_info=True)
        gap = Gap(f"{field} of the code", f"{type(error).__name__}: {error}")
        return replace(profile, not_measured=(*profile.not_measured, gap))
