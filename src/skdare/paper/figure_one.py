"""The paper's first figure: heads on a domain they have not seen, and ceilings that have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from skdare.paper.drawing import Figure, Theme, figure, legend

# Inside and edge of each bar, in the colours of the paper.
_LOOKS = {
    "ERM network": ("none", "#3f6fc8"),
    "ERM": ("#3f6fc8", "#3f6fc8"),
    "DARE": ("#e58313", "#e58313"),
    "Linear ceiling*": ("#cbcbc9", "#8e8e8c"),
    "End-to-end ceiling*": ("#76787c", "#76787c"),
    "Linear ceiling, pretrained*": ("#a8d0ee", "#5d9cc8"),
}
_WIDE = 0.84
_LOWEST = 10.0  # points below the lowest bar


def figure_one(bars: pd.DataFrame) -> Figure | None:
    """Bars by held-out domain, the average last; None without a head to show."""
    if not {"ERM", "DARE"} & set(bars):
        return None
    caption = (
        "Accuracy in % with and without a look at the held-out domain, on rows set aside. Bars "
        "with * have seen labels of it, on other rows. The axis does not begin at zero."
    )
    return figure(lambda axes, theme: plot_figure_one(bars, axes, theme), 3.4, caption)


def plot_figure_one(bars: pd.DataFrame, axes: Any, theme: Theme) -> None:
    """Draw the bars, with their numbers."""
    values = 100.0 * bars
    wide = _WIDE / len(values.columns)
    places = np.arange(len(values))
    floor = max(0.0, float(values.min().min()) - _LOWEST)
    for j, name in enumerate(values):
        inside, edge = _LOOKS[str(name)]
        x = places + (j - (len(values.columns) - 1) / 2) * wide
        heights = values[name].to_numpy() - floor
        axes.bar(x, heights, 0.9 * wide, floor, color=inside, edgecolor=edge, label=name, lw=0.8)
        for at, value in zip(x, values[name], strict=True):
            if np.isfinite(value):
                axes.annotate(
                    f"{value:.0f}", (at, value), (0, 1), textcoords="offset points", ha="center",
                    fontsize=5.5, color=theme.ink,
                )  # fmt: skip
    axes.axvline(len(values) - 1.5, color=theme.faint, lw=0.6)
    axes.set_xticks(places, [str(name).replace("_", " ") for name in values.index])
    axes.tick_params(axis="x", length=0)
    axes.set_ylabel("accuracy in %")
    axes.set_ylim(floor, min(100.0, float(values.max().max()) + 4.0))
    axes.grid(axis="y")
    legend(axes, list(map(str, values)))
