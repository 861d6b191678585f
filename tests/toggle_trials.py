"""What the tests of toggles that look at samples first have in common."""

from __future__ import annotations

from typing import Any, NamedTuple

from jupyter_ioscope.trials.delivery import Limit
from jupyter_ioscope.trials.isolation import Isolation
from jupyter_ioscope.trials.progress import Reporter
from jupyter_ioscope.trials.runner import Runner
from jupyter_ioscope.trials.spec import LoaderSpec, spec_of
from jupyter_ioscope.trials.toggle import Toggle, refuse_or_pass


class Tried(NamedTuple):
    """The spec with the toggle on, and whether both deliver the same bytes in the same order."""

    spec: LoaderSpec
    same: bool
    samples: int


def tried(toggle: Toggle, loader: Any) -> Tried:
    """Learn, apply and deliver, as a comparison does; the toggle's refusal is raised."""
    spec = spec_of(loader)
    refuse_or_pass(toggle, spec)
    with Isolation() as isolation:
        runner = Runner(isolation, Reporter(None, 60), None, silence_s=40)
        assert toggle.apply_learnt is not None
        changed = toggle.apply_learnt(spec, runner.learn(toggle, spec))
        a = runner.deliver("A", spec, Limit())
        # Twice: what the first run converts or keeps is what the second one reads.
        runner.deliver("B", changed, Limit())
        b = runner.deliver("B", changed, Limit())
    number = min(a.samples, b.samples)  # a slow arm delivers for a few seconds only
    same = a.digests[:number] == b.digests[:number] and a.forms[:number] == b.forms[:number]
    return Tried(changed, same and number > 0, b.samples)


def runs(code: str, **names: Any) -> dict[str, Any]:
    """The names that a toggle's code binds."""
    exec(compile(code, "<code>", "exec"), names)
    return names


def compiles(toggle: Toggle, spec: LoaderSpec) -> str:
    code = toggle.code(spec)
    compile(code, "<code>", "exec")
    return code
