"""Axes that a user shows or saves, in the style of the report's figures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from skdare.report._canvas import STYLE
from skdare.report._figures import draw_on
from skdare.report._plot import Plot


@contextmanager
def house_style() -> Iterator[None]:
    """Fonts, lines and legends as in a report; how text is written to SVG stays the user's."""
    with matplotlib.rc_context({k: v for k, v in STYLE.items() if not k.startswith("svg.")}):
        yield


def axes_or_new(axes: Axes | None, width: float = 5.0, height: float = 3.4) -> Axes:
    """These axes, or those of a new figure of this size in inches."""
    if axes is not None:
        return axes
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def drawn(plot: Plot, axes: Axes | None) -> Axes:
    """Draw a plot of a report on these axes, or on new ones as large as it needs."""
    with house_style():
        given = axes is not None
        axes = axes_or_new(axes)
        figure: Any = axes.figure
        size = figure.get_size_inches()
        draw_on(axes, plot)
        if given:  # the figure is the user's, and so is its size
            figure.set_size_inches(size)
        axes.set_title(plot.title, fontsize=9, loc="left")
    return axes
