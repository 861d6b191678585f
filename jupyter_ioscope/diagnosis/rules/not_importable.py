"""Workers end before they begin: they cannot load what they were sent."""

from __future__ import annotations

from jupyter_ioscope.diagnosis.facts import Facts
from jupyter_ioscope.diagnosis.rules._rule import Rule
from jupyter_ioscope.model.diagnosis import Finding
from jupyter_ioscope.model.records import LoaderInfo
from jupyter_ioscope.units import seconds

# What pickle raises in this process for something that has no importable name.
_UNPICKLABLE = ("PicklingError", "AttributeError", "TypeError")
# What a loader raises when a worker is gone, or cannot load what it got.
_GONE = ("RuntimeError", "AttributeError", "ModuleNotFoundError", "ImportError", "EOFError",
         "BrokenPipeError", "ConnectionResetError")  # fmt: skip


def judge(facts: Facts) -> Finding | None:
    """A loop with new interpreters as workers that ended with an error before any of them ran."""
    profile = facts.profile
    if profile.batches or profile.fetches or not profile.ended_by:
        return None
    loader = _spawning(facts)
    if loader is None or any(row.entered_ns >= 0 for row in profile.workers):
        return None
    begun = any(row.worker >= 0 for row in profile.threads) or bool(profile.workers)
    packing = profile.ended_by in _UNPICKLABLE and not begun
    if not packing and profile.ended_by not in _GONE:
        return None
    wall_s = profile.wall_s
    return Finding(
        cause="not_importable_in_worker",
        resource="start_up",
        title="The dataset cannot be sent to the workers"
        if packing
        else "Workers end at once: they cannot import the dataset's class",
        share=1.0,
        low=1.0,
        high=1.0,
        cost_s=wall_s,
        evidence=(
            f"Workers are started by {loader.start_method}: each is a new interpreter that imports "
            "every class and function it is sent.",
            _where(loader),
            f"The loop ended with {profile.ended_by} after {seconds(wall_s)}; no worker began to "
            "fetch.",
        ),
        advice="Put the dataset's class, its transforms and the collate function into a module "
        "(%%writefile my_data.py, then import it)"
        + (', or use multiprocessing_context="fork".' if profile.machine.system.startswith("Linux")
           else ".")
        + " In a script, start the loop under `if __name__ == \"__main__\":`.",
    )  # fmt: skip


def _spawning(facts: Facts) -> LoaderInfo | None:
    begun = {row.loader for row in facts.profile.epochs}
    rows = [
        row
        for row in facts.profile.loaders
        if row.loader in begun and row.num_workers and row.start_method not in (None, "fork")
    ]
    return rows[-1] if rows else None


def _where(loader: LoaderInfo) -> str:
    """Classes of `__main__` are recorded without a module."""
    if "." not in loader.dataset_class.replace(".<locals>.", ""):
        return (
            f"The class {loader.dataset_class} is defined in the notebook (or script) itself, "
            "which a worker cannot import."
        )
    return "The traceback above the error names what could not be found."


RULE = Rule("not_importable", judge, without_batches=True)
