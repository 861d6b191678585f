"""The one place where numbers become text: durations, bytes, rates, fractions, ratios."""

from __future__ import annotations

import math

NS_PER_S = 1_000_000_000
NBSP = "\u00a0"
_BYTE_STEPS = ("B", "kB", "MB", "GB", "TB", "PB")


def is_number(value: object) -> bool:
    """Whether what a user gave is a finite number (`True` is none)."""
    plain = isinstance(value, (int, float)) and not isinstance(value, bool)
    return plain and math.isfinite(value)  # type: ignore[arg-type]


def significant(value: float, digits: int = 3) -> str:
    """`value` with at least `digits` significant digits and no exponent: 0.0123, 12.3, 12,345."""
    if not math.isfinite(value):
        return "–" if math.isnan(value) else ("∞" if value > 0 else "-∞")
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text and decimals > digits else text


def seconds(value_s: float, digits: int = 2) -> str:
    """A duration in the unit a person would choose: ns, µs, ms, s, min."""
    size = abs(value_s)
    if not math.isfinite(value_s):
        return "–"
    if size >= 120:
        return f"{significant(value_s / 60, digits)}{NBSP}min"
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if size >= factor:
            return f"{significant(value_s / factor, digits)}{NBSP}{unit}"
    return f"{significant(value_s / 1e-9, digits)}{NBSP}ns" if value_s else f"0{NBSP}s"


def nanoseconds(value_ns: float, digits: int = 2) -> str:
    """A duration given in nanoseconds, as `seconds` writes it."""
    return seconds(value_ns / NS_PER_S, digits)


def bytes_text(value_bytes: float, digits: int = 3) -> str:
    """A size in decimal units (1 kB = 1000 B)."""
    if not math.isfinite(value_bytes):
        return "–"
    size, step = abs(value_bytes), 0
    while size >= 999.5 and step < len(_BYTE_STEPS) - 1:
        size /= 1000
        step += 1
    sign = "-" if value_bytes < 0 else ""
    number = f"{size:.0f}" if step == 0 else significant(size, digits)
    return f"{sign}{number}{NBSP}{_BYTE_STEPS[step]}"


def rate(value_per_s: float, what: str = "samples", digits: int = 3) -> str:
    """A throughput such as `214 samples/s`."""
    return f"{significant(value_per_s, digits)}{NBSP}{what}/s"


def percent(fraction: float, decimals: int | None = None) -> str:
    """A fraction (0-1) as percent; small values keep one decimal."""
    if not math.isfinite(fraction):
        return "–"
    if decimals is None:
        decimals = 1 if 0 < abs(fraction) < 0.0995 else 0
    return f"{100 * fraction:.{decimals}f}{NBSP}%"


def ratio(value: float) -> str:
    """A factor such as `× 2.41`."""
    return f"×{NBSP}{significant(value, 3)}"


def ratio_range(low: float, high: float) -> str:
    """A range of factors such as `× 2.28 – 2.55`."""
    return f"×{NBSP}{significant(low, 3)} – {significant(high, 3)}"


def plus_minus(value: float, error: float, digits: int = 2) -> str:
    """`value ± error`, both with the decimals that the error's first digits deserve.

    An error below a millionth of the value is that of adding floats, and is left out like none.
    """
    if not math.isfinite(error) or error <= 1e-6 * abs(value):
        return significant(value, 3)
    decimals = max(0, digits - 1 - math.floor(math.log10(error)))
    return f"{value:,.{decimals}f}{NBSP}±{NBSP}{error:,.{decimals}f}"
