"""The one palette: colours of the parts of time, and what is readable on them.

Okabe and Ito's colour-blind-safe palette (Color Universal Design, 2008) where it reaches, greys for
time in which nothing happened, and darker hues for the rarer parts. Colour never carries meaning
alone: every drawing has labels. The style sheet of the JupyterLab extension defines the same names
as `--ioscope-<part>`.
"""

from __future__ import annotations

PART_COLOURS: dict[str, str] = {
    "step": "#56B4E9",
    "cpu": "#0072B2",
    "run_queue": "#E69F00",
    "disk": "#D55E00",
    "page_fault": "#CC79A7",
    "network": "#F0E442",
    "sleep": "#A6761D",
    "process": "#7FCDBB",
    "gil": "#8B5FBF",
    "lock": "#5E3C99",
    "hand_over": "#009E73",
    "start_up": "#882255",
    "idle": "#E9EDF1",
    "other": "#8A929C",
    "rest": "#C3CAD2",
}

# PNG and plotly figures bring this light background along, so that they read on dark pages too.
PAPER = "#FFFFFF"
INK = "#1B1F24"
BLACK = "#000000"
INK_SOFT = "#5B6470"
LINE = "#D9DEE4"
BAR = "#9FB3C8"
# What to look at: limiting ceilings, outliers. No part of time has this colour, and it is seen on
# white and on the dark grounds of GitHub and JupyterLab.
LIMITING = "#D81B60"
ARM_A = "#5B6470"
ARM_B = "#0072B2"

_MINIMUM_CONTRAST = 4.5  # WCAG 2.1, success criterion 1.4.3


def css_variable(part: str) -> str:
    """Name of the CSS variable that holds the colour of a part."""
    return f"--ioscope-{part}"


def part_colour(part: str) -> str:
    """Colour of a part of time as `#RRGGBB`; an unknown part looks like `rest`."""
    return PART_COLOURS.get(part, PART_COLOURS["rest"])


def luminance(colour: str) -> float:
    """Relative luminance (0-1) of `#RRGGBB`, by WCAG 2.1."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Contrast ratio (1-21) of two `#RRGGBB` colours, by WCAG 2.1."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def ink_on(colour: str) -> str:
    """The text colour for a coloured area: white where it reads, else dark or black."""
    readable = (ink for ink in (PAPER, INK) if contrast(ink, colour) >= _MINIMUM_CONTRAST)
    return next(readable, BLACK)
