"""The toggles as offered for one loader."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jupyter_ioscope.model.comparison import Offer
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.model.profile import Profile
from jupyter_ioscope.trials.predict import Predictor
from jupyter_ioscope.trials.spec import LoaderSpec, spec_of
from jupyter_ioscope.trials.toggle import Toggle, all_toggles


def offers(
    loader: Any,
    suggested: Iterable[str] = (),
    profile: Profile | None = None,
    findings: Sequence[Finding] = (),
) -> tuple[Offer, ...]:
    """Every toggle, with why it does not apply here or "", and the code for it. Nothing is run.

    `suggested` names the toggles that a diagnosis points at, the best first; with the `profile` of
    the loop each carries what it is expected to bring, by the model and by the `findings` of its
    diagnosis, and `workers` the number that the model would try.

    Raises:
        InputError: `loader` is not a torch DataLoader.
    """
    spec = spec_of(loader)
    predictor = Predictor(profile, spec, findings) if profile is not None else None
    named = tuple(suggested)
    made = []
    for toggle in fitted(all_toggles(), spec, predictor):
        refusal = toggle.refusal(spec) or (predictor.idle(toggle) if predictor else "")
        made.append(
            Offer(
                name=toggle.name,
                title=toggle.title,
                effect=toggle.effect,
                cost=toggle.cost,
                refusal=refusal,
                suggested=toggle.name.partition("=")[0] in named and not refusal,
                code="" if refusal else toggle.code(spec),
                predicted=predictor.one(toggle) if predictor and not refusal else None,
            )
        )
    places = {name: place for place, name in reversed(list(enumerate(named)))}
    return tuple(sorted(_worth(made), key=lambda offer: _use(offer, places)))


def _worth(made: Sequence[Offer]) -> list[Offer]:
    """Of several suggestions those that would bring nothing are none, where another one gains."""
    if not any(one.suggested and _hope(one) == 0 for one in made):
        return [*made]  # what is harmed may be something else than the time
    return [one._replace(suggested=one.suggested and _hope(one) < _NONE) for one in made]


def _use(offer: Offer, places: Mapping[str, int]) -> tuple[bool, int, int]:
    """Suggested ones first, in the order of the suggestions, then those that a gain is predicted
    for, those that nothing is known of, and those that would bring nothing."""
    place = places[offer.name.partition("=")[0]] if offer.suggested else len(places)
    return bool(offer.refusal), place, _hope(offer)


# A predicted ratio that two runs of one loader differ by as well.
_A_GAIN = 1.1
_NONE = 2


def _hope(offer: Offer) -> int:
    """0 where a gain is predicted, 1 where nothing is known, `_NONE` where none is predicted."""
    told = offer.predicted
    if told is None:
        return 1
    # Of a wide interval the upper end alone would make a gain of every guess.
    best = told.high if math.isnan(told.ratio) else told.ratio
    return 0 if best > _A_GAIN else _NONE


def fitted(
    toggles: Iterable[Toggle], spec: LoaderSpec, predictor: Predictor | None
) -> tuple[Toggle, ...]:
    """The toggles, `workers` with the number that the model would try, where it knows one: where
    fetches wait, that is more than there are cores."""
    made = tuple(toggles)
    # A loop of its own has no workers.
    if predictor is None or spec.direct or all(toggle.name != "workers" for toggle in made):
        return made
    best = predictor.best_workers()
    return tuple(
        toggle.number(best)
        if best and toggle.name == "workers" and toggle.number and best != spec.num_workers
        else toggle
        for toggle in made
    )
