"""What tests of several areas share."""

from __future__ import annotations

import pytest


@pytest.fixture
def short_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials of a fifth of a second instead of one and a half. A clear effect is then decided
    after four pairs within seconds, and on a busy machine, whose trials differ more, the budget
    holds the dozens of pairs that the verdict may need."""
    from jupyter_ioscope.trials import plan

    monkeypatch.setattr(plan, "_STRETCH_S", 0.2)
    monkeypatch.setattr(plan, "_PILOT_S", 0.2)
    monkeypatch.setattr(plan, "_BATCHES", 8)
