"""How far the values of two deliveries lie apart."""

from __future__ import annotations

from typing import Any, NamedTuple

from jupyter_ioscope.trials.delivery import Delivered
from jupyter_ioscope.units import percent, significant

# Mean difference, as a share of the range of values, up to which samples count as close. Pictures
# decoded at another size differ by 1-2 % on average; two unrelated photographs by 20-30 %.
CLOSE_FRACTION = 0.05


class Difference(NamedTuple):
    """`close`: the same samples with slightly other values. `largest` is in units of the values."""

    close: bool
    text: str
    largest: float | None = None


def difference(a: Delivered, b: Delivered) -> Difference:
    """Compare unit by unit, in order. Both deliveries must have the same units."""
    for number, (form_a, form_b) in enumerate(zip(a.forms, b.forms, strict=False)):
        if form_a != form_b:
            forms = f"{_cut(form_a)} in A and {_cut(form_b)} in B"
            return Difference(False, f"sample {number} is {forms}")
    for number, (exact_a, exact_b) in enumerate(zip(a.exact, b.exact, strict=False)):
        if exact_a != exact_b:
            return Difference(
                False, f"sample {number} differs in a label, a text or another exact value"
            )
    worst = _Worst()
    for values_a, values_b in zip(a.numbers(), b.numbers(), strict=False):
        for (name, array_a), (_, array_b) in zip(values_a, values_b, strict=False):
            worst.add(name, array_a, array_b)
    return worst.judged()


class _Worst:
    def __init__(self) -> None:
        self.largest = 0.0
        self.share = self.largest_share = 0.0
        self.eight_bit = False
        self.sums: dict[str, list[float]] = {}  # name -> [sum of shares, number of units]

    def add(self, name: str, a: Any, b: Any) -> None:
        import numpy

        if not a.size:
            return
        wide = "complex128" if a.dtype.kind == "c" else "float64"
        wide_a, wide_b = a.astype(wide), b.astype(wide)
        gap = numpy.abs(wide_a - wide_b)
        gap = numpy.where(numpy.isnan(wide_a) & numpy.isnan(wide_b), 0.0, gap)
        if not numpy.isfinite(gap).all():
            gap = numpy.where(wide_a == wide_b, 0.0, gap)
        gap = numpy.nan_to_num(gap, nan=numpy.inf, posinf=numpy.inf)
        whole = 255.0 if a.dtype.itemsize == 1 else _range(wide_a, wide_b)
        self.eight_bit = self.eight_bit or a.dtype.itemsize == 1
        largest, share = float(gap.max()), float(gap.mean()) / whole
        self.largest = max(self.largest, largest)
        self.largest_share = max(self.largest_share, largest / whole)
        total = self.sums.setdefault(name, [0.0, 0.0])
        total[0] += share
        total[1] += 1

    def judged(self) -> Difference:
        shares = {name: total / count for name, (total, count) in self.sums.items()}
        name, mean = max(shares.items(), key=lambda item: item[1], default=("", 0.0))
        of = "the range of 8-bit values" if self.eight_bit else "their range"
        if not mean <= CLOSE_FRACTION:
            where = f" at {name}" if name else ""
            return Difference(False, f"values{where} differ by {percent(mean)} of {of} on average")
        text = (
            f"values differ by at most {significant(self.largest)} "
            f"({percent(self.largest_share)} of {of}), by {percent(mean)} on average"
        )
        return Difference(True, text, self.largest)


def _range(a: Any, b: Any) -> float:
    """What a difference is measured against: the spread of A's values, or their size when they
    are all alike (a single number)."""
    import numpy

    finite = numpy.abs(a[numpy.isfinite(a)])
    if not finite.size:
        return 1.0
    real = a[numpy.isfinite(a)].real
    spread = float(real.max() - real.min())
    return spread or float(finite.max()) or 1.0


def _cut(text: str, most: int = 120) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
