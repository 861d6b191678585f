"""Texts tokenised a batch at a time instead of one by one."""

from __future__ import annotations

from typing import Any

from jupyter_ioscope.optional import loaded
from jupyter_ioscope.trials.counting import seed_all
from jupyter_ioscope.trials.samples import sample_of
from jupyter_ioscope.trials.spec import LoaderSpec
from jupyter_ioscope.trials.toggle import Toggle
from jupyter_ioscope.trials.toggles._learn import raise_refusal, short
from jupyter_ioscope.trials.toggles._look import indices
from jupyter_ioscope.trials.toggles._tokenising import (
    TextOf,
    TokenisedBatches,
    text_of,
    tokenisers,
    with_proxy,
)

_SAMPLES = 24
_PLACES = "return_tensors", "text_pair"
_MOVE = "tokenise all texts once in a batched map instead"


def refuse(spec: LoaderSpec) -> str:
    if loaded("tokenizers") is None and loaded("transformers") is None:
        return "no text is tokenised: neither tokenizers nor transformers is imported"
    if spec.iterable:
        return f"an iterable dataset decides itself which text comes next; {_MOVE}"
    if not tokenisers(spec.dataset):
        return f"the dataset holds no tokeniser as an attribute; {_MOVE}"
    if spec.batch_size is None and spec.batch_sampler is None:
        return "samples are fetched one by one, without batches"
    return ""


def learn(spec: LoaderSpec) -> dict[str, Any]:
    """How the dataset asks its tokeniser, and whether a batch gives the same. Runs in a child."""
    drawn = indices(spec, _SAMPLES)
    reasons = []
    for name in tokenisers(spec.dataset):
        found = _looked(spec.dataset, name, drawn)
        if isinstance(found, dict):
            return found
        reasons.append(found)
    return {"refusal": f"{'; '.join(dict.fromkeys(reasons))}; {_MOVE}"}


def _looked(dataset: Any, name: str, drawn: list[Any]) -> dict[str, Any] | str:
    """The facts for one tokeniser, or why it cannot be asked in batches."""
    other, proxy = with_proxy(dataset, name)
    seen: dict[Any, str] = {}
    calls = set()
    for index in drawn:
        proxy._noted.clear()
        other[index]
        if len(proxy._noted) != 1:
            return f"a sample asks its tokeniser {len(proxy._noted)} times"
        call, text, args, options = proxy._noted[0]
        if not isinstance(text, str) or args or any(key in options for key in _PLACES):
            return "the tokeniser is asked for more than the tokens of one text"
        if options.get("padding") in (True, "longest") or getattr(proxy, "padding", None):
            return "the tokeniser pads to the longest of a batch"
        calls.add((call, repr(sorted(options.items()))))
        seen[index] = text
    if len(calls) != 1:
        return "the tokeniser is asked with changing options"
    place = text_of(dataset, seen)
    if place is None:
        return "the text of a sample is not in a list of the dataset"
    facts = {"name": name, "call": call, "options": options, "text": list(place)}
    return facts if _same(dataset, drawn, facts) else "a batch does not give the same tokens"


def _same(dataset: Any, drawn: list[Any], facts: dict[str, Any]) -> bool:
    seed_all(1)
    plain = [sample_of(dataset[index]).digest for index in drawn]
    seed_all(1)
    batched = _wrapped(dataset, facts).__getitems__(drawn)
    return plain == [sample_of(item).digest for item in batched]


def _wrapped(dataset: Any, facts: dict[str, Any]) -> TokenisedBatches:
    where = TextOf(dataset, *facts["text"])
    return TokenisedBatches(dataset, facts["name"], facts["call"], facts["options"], where)


def apply(spec: LoaderSpec) -> LoaderSpec:
    return spec


def apply_learnt(spec: LoaderSpec, facts: dict[str, Any]) -> LoaderSpec:
    raise_refusal(TOGGLE.name, facts)
    try:
        return spec.changed(dataset=_wrapped(spec.dataset, facts))
    except Exception as error:  # a dataset that cannot be copied
        raise_refusal(TOGGLE.name, {"refusal": f"the dataset cannot be copied: {short(error)}"})
        raise


def code(spec: LoaderSpec) -> str:
    return (
        "# once, before the loader is made: all texts, many at a time\n"
        "encoded = tokenizer.encode_batch(texts)  # transformers: tokenizer(texts, ...)\n"
        "# Hugging Face datasets:\n"
        '#     dataset = dataset.map(lambda rows: tokenizer(rows["text"]), batched=True)\n'
        "\n"
        "# or in the dataset, a batch at a time:\n"
        "def __getitems__(self, indices):\n"
        "    encoded = self.tokenizer.encode_batch([self.texts[i] for i in indices])\n"
        "    return [self.sample(i, one) for i, one in zip(indices, encoded)]"
    )


TOGGLE = Toggle(
    name="batched_tokenise",
    title="Tokenise a batch at a time",
    effect="All texts of a batch go to the tokeniser by one call, which shares them out over cores "
    "and pays its fixed cost once. The samples of the first batches are compared first.",
    cost="Only where the dataset keeps its texts in a list and asks for one text a sample, always "
    "with the same options. In workers, and in the forked processes of a comparison, the "
    "tokeniser's own threads are off, so that a loop without workers may gain more.",
    refuse=refuse,
    apply=apply,
    code=code,
    learn=learn,
    apply_learnt=apply_learnt,
    order=71,
    saves=("tokenise",),
)
