"""Numbers as people read them: intervals, p-values, values of what varies, times."""

from __future__ import annotations

import math

from skdare._safe_text import typographic
from skdare._scale import NONE, Scale, scale_of
from skdare.report.summary.grid import Grid

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def scale_of_grid(*grids: Grid) -> Scale:
    """The scale of the scores in grids of one metric."""
    return scale_of(grids[0].metric, (float(v) for grid in grids for v in grid.S.ravel()))


def spread(scale: Scale, half_width: float, *, sign: bool = True) -> str:
    """The half width of an interval as text; empty if it is missing."""
    if math.isnan(half_width):
        return ""
    text = f"{scale.scaled(half_width):.{scale.digits}f}"
    return f"± {text}" if sign else text


def p_value(p: float) -> str:
    """A p-value to three decimals."""
    return NONE if math.isnan(p) else "<0.001" if p < 0.001 else f"{p:.3f}"


def number(x: float) -> str:
    """A value of a varied quantity: powers of ten far from one as such, others in full."""
    power = math.log10(abs(x)) if x else 0.0
    if power == round(power) and abs(power) > 3:
        return "10" + str(round(power)).translate(_SUPERSCRIPT)
    return typographic(f"{x:.4g}" if abs(x) < 10_000 else f"{x:,.0f}")


def duration(seconds: float) -> str:
    """``12.3 s``, ``3 min 12 s``, ``2 h 5 min``."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
