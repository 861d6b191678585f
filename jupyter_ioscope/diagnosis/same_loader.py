"""Loaders made anew with the same settings count as one: a cell may make one for every epoch."""

from __future__ import annotations

from dataclasses import replace

from jupyter_ioscope.model.profile import Profile


def numbers_of_loaders(profile: Profile) -> dict[int, int]:
    """Number of a loader -> number of the first loader with the same settings."""
    first: dict[object, int] = {}
    return {
        info.loader: first.setdefault(
            replace(info, loader=0, workers_before_profile=False), info.loader
        )
        for info in profile.loaders
    }
