"""What each of several toggles adds: each alone, and all together."""

from __future__ import annotations

from dataclasses import dataclass

from jupyter_ioscope.model.comparison import Comparison
from jupyter_ioscope.units import ratio, ratio_range


@dataclass(frozen=True)
class Parts:
    """`alone` holds a comparison a toggle, `together` that of all of them, each against the loader
    as it is. The intervals are corrected for their number: the chance that any of them misses the
    truth is 5 % (Bonferroni). `failed` holds (toggle, reason) of those that could not be tried.
    """

    alone: tuple[Comparison, ...]
    together: Comparison | None
    failed: tuple[tuple[str, str], ...] = ()
    cancelled: bool = False

    @property
    def product(self) -> float:
        """What the parts would make if they did not meet: the product of their ratios."""
        value = 1.0
        for row in self.alone:
            value *= row.ratio
        return value

    def __str__(self) -> str:
        lines = [_line(row.arms[1].label, row) for row in self.alone]
        if self.together is not None:
            lines.append(_line("all together", self.together))
            lines.append(f"product of the parts: {ratio(self.product)}")
        lines += [f"{name}: not tried: {reason}" for name, reason in self.failed]
        return "\n".join(lines)


def _line(label: str, row: Comparison) -> str:
    ends = ratio_range(row.ratio_low, row.ratio_high)
    return f"{label}: {row.verdict}, {ratio(row.ratio)} ({row.confidence:.1%} sure {ends})"
