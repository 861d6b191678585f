"""Texts of a batch tokenised by one call, while the dataset still asks for them one by one."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

CALLS = ("encode", "__call__")


def tokenisers(dataset: Any) -> dict[str, Any]:
    """Attributes of the dataset that are tokenisers of the tokenizers or transformers library."""
    found = {}
    for name, value in getattr(dataset, "__dict__", {}).items():
        if any(f"{c.__module__}.{c.__name__}" in _KINDS for c in type(value).__mro__):
            found[name] = value
    return found


_KINDS = frozenset(
    (
        "tokenizers.Tokenizer",
        "builtins.Tokenizer",  # how compiled releases call it
        "tokenizers.implementations.base_tokenizer.BaseTokenizer",
        "transformers.tokenization_utils_base.PreTrainedTokenizerBase",
    )
)


class Proxy:
    """A tokeniser that notes what it is asked, or answers out of what was prepared."""

    def __init__(self, tokeniser: Any) -> None:
        self._tokeniser = tokeniser
        self._noted: list[tuple[str, Any, tuple[Any, ...], dict[str, Any]]] = []
        self._ready: dict[str, Any] = {}

    def encode(self, text: Any, *args: Any, **kwargs: Any) -> Any:
        return self._answer("encode", text, args, kwargs)

    def __call__(self, text: Any, *args: Any, **kwargs: Any) -> Any:
        return self._answer("__call__", text, args, kwargs)

    def _answer(self, call: str, text: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if isinstance(text, str) and text in self._ready:
            return self._ready[text]
        self._noted.append((call, text, args, kwargs))
        return getattr(self._tokeniser, call)(text, *args, **kwargs)

    def __len__(self) -> int:
        return len(self._tokeniser)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._tokeniser, name)


class TokenisedBatches:
    """The samples of `dataset`, made batch by batch: first all texts of the batch are tokenised by
    one call, then each sample finds its own answer ready.

    The dataset is used through a shallow copy whose attribute `name` is the proxy.
    """

    def __init__(
        self, dataset: Any, name: str, call: str, options: dict[str, Any], text_of: TextOf
    ) -> None:
        self.dataset, self._name, self._call = dataset, name, call
        self._options, self._text_of = options, text_of
        self._copy, self._proxy = with_proxy(dataset, name)

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: Any) -> Any:
        return self.dataset[index]

    def __getitems__(self, indices: Sequence[Any]) -> list[Any]:
        texts = list(dict.fromkeys(self._text_of(index) for index in indices))
        tokeniser = getattr(self.dataset, self._name)
        made = in_batch(tokeniser, self._call, texts, self._options)
        self._proxy._ready = dict(zip(texts, made, strict=True))
        try:
            return [self._copy[index] for index in indices]
        finally:
            self._proxy._ready = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "dataset" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.dataset, name)


def with_proxy(dataset: Any, name: str) -> tuple[Any, Proxy]:
    """A shallow copy of the dataset whose tokeniser is a proxy, and the proxy."""
    proxy = Proxy(getattr(dataset, name))
    other = copy.copy(dataset)
    vars(other)[name] = proxy
    return other, proxy


def in_batch(tokeniser: Any, call: str, texts: list[str], options: dict[str, Any]) -> list[Any]:
    """What `tokeniser.call(text)` gives for each text, by one call."""
    if call == "encode" and hasattr(tokeniser, "encode_batch"):
        return list(tokeniser.encode_batch(texts, **options))
    if call == "encode":  # transformers: lists of ids
        return list(tokeniser(texts, **options)["input_ids"])
    together = tokeniser(texts, **options)
    encodings = getattr(together, "encodings", None)
    kind: Callable[..., Any] = type(together)
    return [
        kind(
            {key: values[at] for key, values in together.items()},
            encodings[at] if encodings is not None else None,
        )
        for at in range(len(texts))
    ]


class TextOf:
    """The text of an index: `attribute[index]`, or its element `place`."""

    def __init__(self, dataset: Any, attribute: str, place: int | str | None) -> None:
        self.dataset, self.attribute, self.place = dataset, attribute, place

    def __call__(self, index: Any) -> str:
        row = getattr(self.dataset, self.attribute)[index]
        return str(row if self.place is None else row[self.place])


def text_of(dataset: Any, seen: dict[Any, str]) -> tuple[str, int | str | None] | None:
    """Where the dataset keeps the text that each index in `seen` was tokenised from, found by
    its values: (attribute, place in its rows)."""
    first = next(iter(seen))
    for name, rows in list(vars(dataset).items()):
        if isinstance(rows, (str, bytes, dict)) or not hasattr(rows, "__getitem__"):
            continue
        try:
            row = rows[first]
            places = [None, *(row if isinstance(row, dict) else (0, 1))]
        except Exception:
            continue
        for place in places:
            if all(_is(rows, index, place, text) for index, text in seen.items()):
                return name, place
    return None


def _is(rows: Any, index: Any, place: Any, text: str) -> bool:
    try:
        row = rows[index]
        return bool((row if place is None else row[place]) == text)
    except Exception:
        return False
