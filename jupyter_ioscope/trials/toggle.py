"""One optimisation that can be switched on for a loader, and where all of them are found."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from jupyter_ioscope.errors import InputError, TrialError
from jupyter_ioscope.registry import plugins
from jupyter_ioscope.trials.spec import LoaderSpec

MOST = 1024  # workers or batches ahead that anybody may ask for


@dataclass(frozen=True)
class Toggle:
    """A function spec -> spec with a stated effect, a stated cost and a reason to refuse.

    `refuse` gives the reason why it does not apply, or "". `code` gets the user's spec and gives
    what they would write. `learn` runs inside a trial's child before anything is timed and returns
    JSON-ready facts; `apply_learnt` then replaces `apply`, or raises TrialError with the reason.
    `end_point` is "steady", or "epochs" when what it changes happens between epochs.
    `order`: toggles that make others possible come first. `saves` are the kinds of work (see
    `diagnosis.work_kinds`) that it makes cheaper. `number` gives the same toggle with a number of
    the user's, for names like "workers=8". `direct`: it also fits loops over a dataset itself.
    `decides` names the one thing that it settles: of toggles that settle the same, one can be on.
    """

    name: str
    title: str
    effect: str
    cost: str
    refuse: Callable[[LoaderSpec], str]
    apply: Callable[[LoaderSpec], LoaderSpec]
    code: Callable[[LoaderSpec], str]
    learn: Callable[[LoaderSpec], dict[str, Any]] | None = None
    apply_learnt: Callable[[LoaderSpec, dict[str, Any]], LoaderSpec] | None = None
    end_point: str = "steady"
    order: int = 50
    saves: tuple[str, ...] = ()
    number: Callable[[int], Toggle] | None = None
    direct: bool = False
    decides: str = ""

    def refusal(self, spec: LoaderSpec) -> str:
        """Why it does not apply to `spec`, or "". Cheap, and raises nothing."""
        if spec.direct and not self.direct:
            return "the loop iterates the dataset itself, not a torch DataLoader"
        return self.refuse(spec)


def all_toggles() -> tuple[Toggle, ...]:
    """Every known toggle, in the order in which they are applied."""
    from jupyter_ioscope.trials import toggles

    found = plugins(toggles, "TOGGLE", "ioscope.toggles")
    return tuple(sorted(found, key=lambda toggle: (toggle.order, toggle.name)))


def chosen(toggles: Iterable[str | Toggle]) -> tuple[Toggle, ...]:
    """The toggles meant by names or Toggle objects, each once, in order of application. A name may
    carry a number: "workers=8".

    Raises:
        InputError: a name is not known, or its number cannot be used; the text says what can.
    """
    if isinstance(toggles, (str, Toggle)):
        toggles = (toggles,)
    known = {toggle.name: toggle for toggle in all_toggles()}
    picked: dict[str, Toggle] = {}
    for item in toggles:
        toggle = item if isinstance(item, Toggle) else _named(item, known)
        picked[toggle.name.partition("=")[0]] = toggle
    return tuple(sorted(picked.values(), key=lambda toggle: (toggle.order, toggle.name)))


def _named(item: object, known: Mapping[str, Toggle]) -> Toggle:
    name, equals, text = item.partition("=") if isinstance(item, str) else ("", "", "")
    toggle = known.get(name)
    if toggle is None:
        near = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]}? There are" if near else "choose from"
        names = ", ".join(sorted(known))
        raise InputError(f"toggles holds {item!r}, which is not known; {hint} {names}")
    if not equals:
        return toggle
    if toggle.number is None:
        raise InputError(f"toggles holds {item!r}, but {name} takes no number: write {name!r}")
    if not text.isdigit() or not 0 < int(text) <= MOST:
        none = "; for none, write 'no_workers'" if item == "workers=0" else ""
        raise InputError(
            f"toggles holds {item!r}: give {name} a whole number from 1 to {MOST}{none}"
        )
    return toggle.number(int(text))


def agree_or_pass(toggles: Iterable[Toggle]) -> None:
    """Raises TrialError when two of the toggles settle the same thing, each in its own way."""
    known: dict[str, Toggle] = {}
    for toggle in toggles:
        other = known.setdefault(toggle.decides, toggle) if toggle.decides else toggle
        if other is not toggle:
            raise TrialError(
                f"arm B: {other.name!r} and {toggle.name!r} both decide {toggle.decides}: give one "
                "of them"
            )


def refuse_or_pass(toggle: Toggle, spec: LoaderSpec) -> None:
    """Raises TrialError with the reason when `toggle` does not apply to `spec`."""
    raise_if(toggle.refusal(spec), toggle.name)


def raise_if(reason: str, name: str) -> None:
    """Raises TrialError that the toggle `name` does not apply, where there is a reason."""
    if reason:
        raise TrialError(f"arm B: the toggle {name!r} does not apply: {reason}")
