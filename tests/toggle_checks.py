"""Applies toggles as a comparison does: what they learn comes from a child process."""

from __future__ import annotations

import itertools
import sys
import types
from typing import Any

from jupyter_ioscope.model.comparison import SameData
from jupyter_ioscope.trials.isolation import Isolation
from jupyter_ioscope.trials.progress import Reporter
from jupyter_ioscope.trials.runner import Runner
from jupyter_ioscope.trials.same_data import same_data
from jupyter_ioscope.trials.spec import LoaderSpec, spec_of
from jupyter_ioscope.trials.toggle import chosen, refuse_or_pass

_MODULE = "toggle_code_"
_numbers = itertools.count()


def checked(loader: Any, *names: str) -> tuple[LoaderSpec, SameData]:
    """The spec with toggles applied, and what the same-data check says.

    Raises:
        TrialError: a toggle does not apply.
    """
    a = b = spec_of(loader)
    with Isolation() as isolation:
        runner = Runner(isolation, Reporter(None, 60), None, silence_s=30)
        for toggle in chosen(names):
            refuse_or_pass(toggle, b)
            if toggle.learn is None or toggle.apply_learnt is None:
                b = toggle.apply(b)
            else:
                b = toggle.apply_learnt(b, runner.learn(toggle, b))
        return b, same_data(runner.deliver, a, b, toggled=True)


def refusal(loader: Any, name: str) -> str:
    """Why a toggle does not apply, before any look at data; "" when it may."""
    return chosen([name])[0].refusal(spec_of(loader))


def run_code(code: str, loader: Any) -> Any:
    """What the code of a toggle makes of `loader`. It runs in a module of its own, as a notebook
    is one: what workers send back must be found by name."""
    from torch.utils.data import DataLoader

    module: Any = types.ModuleType(f"{_MODULE}{next(_numbers)}")
    module.loader, module.DataLoader = loader, DataLoader
    sys.modules[module.__name__] = module
    exec(compile(code, "<code of a toggle>", "exec"), vars(module))
    return module.loader


def forget_code() -> None:
    """Let go of the modules of `run_code`, and of the loaders and mapped files that they hold."""
    for name in [name for name in sys.modules if name.startswith(_MODULE)]:
        del sys.modules[name]
