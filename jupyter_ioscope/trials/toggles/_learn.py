"""What toggles share that look at samples first: all of it runs in a trial's child."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from jupyter_ioscope.trials.build import build
from jupyter_ioscope.trials.counting import samples_in, seed_all
from jupyter_ioscope.trials.samples import split
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggle import raise_if
from jupyter_ioscope.trials.values import values_digest

_SEED = 11
BATCHES = 4  # enough to see a loader's usual way; the same-data check looks at more


def alone(spec: LoaderSpec) -> LoaderSpec:
    """The same loader in the main process."""
    return spec.changed(num_workers=0, prefetch_factor=None, persistent_workers=False)


def first_batches(spec: LoaderSpec, most: int = BATCHES) -> Iterator[Any]:
    """The first batches under one fixed seed, made in this process: one at least, and no more than
    there is time for."""
    until = time.monotonic() + spec.look_s
    seed_all(_SEED)
    for change in spec.in_child:
        change.install()
    for number, batch in enumerate(build(alone(spec)), 1):
        yield batch
        if number >= most or time.monotonic() > until:
            return


def values_of(spec: LoaderSpec, most: int = BATCHES) -> list[str]:
    """A digest of the values of each sample of the first batches, whatever holds them (of each
    batch, where batches do not split). Raises whatever the user's code raises."""
    found = []
    for batch in first_batches(spec, most):
        collated = spec.batch_size is not None
        parts = split(batch, samples_in(batch, spec.batch_size)) if collated else None
        found += [values_digest(part) for part in ([batch] if parts is None else parts)]
    return found


def agree(wanted: Sequence[str], found: Sequence[str]) -> bool:
    """Whether two looks saw the same, as far as both came in their time."""
    number = min(len(wanted), len(found))
    return number > 0 and wanted[:number] == found[:number]


def raise_refusal(name: str, facts: dict[str, Any]) -> None:
    """Raises TrialError where `facts` hold a reason under "refusal"."""
    raise_if(facts.get("refusal") or "", name)


def short(error: BaseException) -> str:
    """An exception in one line of at most 160 characters."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text if len(text) <= 160 else text[:159] + "…"
