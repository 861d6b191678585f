"""The toggles as offered for one loader."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jupyter_ioscope.model.comparison import Offer
from jupyter_ioscope.trials.spec import spec_of
from jupyter_ioscope.trials.toggle import all_toggles


def offers(loader: Any, suggested: Iterable[str] = ()) -> tuple[Offer, ...]:
    """Every toggle, with why it does not apply here or "", and the code for it. Nothing is run.

    `suggested` names the toggles that a diagnosis points at.

    Raises:
        InputError: `loader` is not a torch DataLoader.
    """
    spec = spec_of(loader)
    wanted = set(suggested)
    made = []
    for toggle in all_toggles():
        refusal = toggle.refuse(spec)
        made.append(
            Offer(
                name=toggle.name,
                title=toggle.title,
                effect=toggle.effect,
                cost=toggle.cost,
                refusal=refusal,
                suggested=toggle.name in wanted and not refusal,
                code="" if refusal else toggle.code(spec),
            )
        )
    return tuple(made)
