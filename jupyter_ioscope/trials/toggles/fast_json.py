"""JSON parsed by orjson or msgspec instead of the standard library."""

from __future__ import annotations

import functools
from typing import Any

from jupyter_ioscope.optional import installed, loaded
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggle import Toggle, raise_if
from jupyter_ioscope.trials.toggles._json_swap import PARSERS, FastJson, difference, parser
from jupyter_ioscope.trials.toggles._look import look
from jupyter_ioscope.trials.toggles._rebind import rebind

_TEXTS, _TEXT_BYTES = 400, 8_000_000  # kept for the comparison of the parsers


def refuse(spec: LoaderSpec) -> str:
    if loaded("json") is None:
        return "no JSON is parsed: json is not imported by this program"
    if not any(installed(name) for name in PARSERS):
        return "neither orjson nor msgspec is installed: pip install orjson"
    return ""


def learn(spec: LoaderSpec) -> dict[str, Any]:
    """What json.loads is given, and whether each parser reads the same out of it. Runs in a
    child."""
    import json

    original: Any = json.loads
    texts: list[Any] = []
    room, with_options, calls = _TEXT_BYTES, 0, 0

    @functools.wraps(original)
    def noted(text: Any, **options: Any) -> Any:
        nonlocal room, with_options, calls
        calls += 1
        if options:
            with_options += 1
        elif len(texts) < _TEXTS and room > 0:
            # A copy: the program may write to its buffer again.
            texts.append(text if isinstance(text, str) else bytes(text))
            room -= len(text)
        return original(text, **options)

    rebind(json, "loads", noted)
    samples = look(spec).samples
    facts: dict[str, Any] = {"samples": samples, "calls": calls, "options": with_options}
    return facts | {"texts": len(texts), "differences": _differences(texts, original)}


def _differences(texts: list[Any], standard: Any) -> dict[str, str]:
    """Parser -> the first difference on these texts, or ""."""
    found = {}
    for name in PARSERS:
        if installed(name):
            found[name] = next((d for t in texts if (d := _of(t, standard, parser(name)))), "")
    return found


def _of(text: Any, standard: Any, fast: Any) -> str:
    try:
        other = fast(text)
    except Exception:
        return ""  # what it refuses, the standard parser reads after all
    try:
        return difference(standard(text), other)
    except Exception as error:
        return f"the standard parser refuses a text ({type(error).__name__})"


def apply(spec: LoaderSpec) -> LoaderSpec:
    return spec


def apply_learnt(spec: LoaderSpec, facts: dict[str, Any]) -> LoaderSpec:
    same = [name for name, text in facts["differences"].items() if not text]
    reason = ""
    if not facts["calls"]:
        reason = f"json.loads is not called while samples are made (the first {facts['samples']})"
    elif not facts["texts"]:
        reason = "json.loads is called with options (hooks, its own classes) each time"
    elif not same:
        said = "; ".join(f"{name}: {text}" for name, text in facts["differences"].items())
        reason = f"the values would change on these lines ({said})"
    raise_if(reason, "fast_json")
    return spec.changed(in_child=(*spec.in_child, FastJson(same[0])))


def code(spec: LoaderSpec) -> str:
    names = [c.library for c in spec.in_child if isinstance(c, FastJson)]
    name = names[0] if names else next((n for n in PARSERS if installed(n)), "orjson")
    return (
        f"import {PARSERS[name].rpartition('.')[0]}\n\n"
        f"value = {PARSERS[name]}(line)  # instead of json.loads(line); takes bytes, too"
    )


TOGGLE = Toggle(
    name="fast_json",
    title="Parse JSON with a faster library",
    effect="json.loads goes to orjson (or msgspec), which parses several times faster. Both read "
    "the lines of the first samples first, and must agree in every value, type and order.",
    cost="Integers beyond 64 bits and numbers with very many digits can come out otherwise on "
    "lines that were not looked at; NaN and invalid UTF-8 are refused by the faster library and "
    "left to the standard one here.",
    refuse=refuse,
    apply=apply,
    code=code,
    learn=learn,
    apply_learnt=apply_learnt,
    order=56,
    saves=("text_parse",),
)
