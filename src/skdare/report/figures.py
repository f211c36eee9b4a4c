"""Figures of a bench by matplotlib: drawn twice, for light and for dark pages."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdare.report.advice import advise
from skdare.report.summary import Summary

# Ink, faint lines, and the first and second colour of a theme. The blue and the orange can be told
# apart by people who see few colours, on either ground.
_THEMES = {
    "light": {"ink": "#222222", "faint": "#bbbbbb", "first": "#0b66c3", "second": "#c25a00"},
    "dark": {"ink": "#e8e8e8", "faint": "#666666", "first": "#6cb4ff", "second": "#ff9e4a"},
}
# Inches. A phone shows the picture at two thirds of its size, where its words can still be read.
_WIDTH = 5.6
_ROW = 0.42
_SIZE = 10.0
# Domains up to which each has a line of its own.
_MANY = 40


@dataclass(frozen=True)
class Figure:
    """A picture for a page: an address for each theme, and a caption."""

    light: str
    dark: str
    caption: str


def figures(summary: Summary) -> list[Figure]:
    """Differences from the baseline, and the advised head on every domain."""
    if len(summary.lines) < 2 or not len(summary.scores):
        return []
    base = summary.lines[summary.baseline].name
    unit = "in points" if summary.scale.unit else f"in {summary.scale.title}"
    drawn = [
        _figure(
            lambda ax, theme: plot_gains(summary, ax, theme),
            _ROW * (len(summary.lines) - 1),
            f"Difference from {base} on each held-out domain, {unit}: each dot is a domain, each "
            "bar the mean. Right of the line is better; losses are orange.",
        )
    ]
    head = advise(summary).head
    if head == summary.baseline:
        head = str(summary.scores.mean().idxmax())
    if head != summary.baseline and len(summary.scores) <= _MANY:
        line = summary.lines[head]
        name = line.name + (", adapted" if line.adapts else "")
        drawn.append(
            _figure(
                lambda ax, theme: plot_domains(summary, head, ax, theme),
                0.62 * _ROW * len(summary.scores),
                f"{summary.scale.title} of {base} (circle) and of {name} (dot) on each held-out "
                "domain. An orange line is a loss.",
            )
        )
    return drawn


def plot_gains(summary: Summary, ax: Any = None, theme: str = "light") -> Any:
    """A line for each head: its differences from the baseline, a dot a domain, and their mean."""
    ax = _axes(ax)
    colours, scale = _THEMES[theme], summary.scale
    heads = [head for head in summary.lines if head != summary.baseline]
    rng = np.random.default_rng(0)
    for place, head in enumerate(heads):
        differences = summary.gain(head).differences.to_numpy() * scale.factor
        # Dots that would hide one another lie a little above or below the line.
        y = place + rng.uniform(-0.16, 0.16, len(differences))
        colour = np.where(differences >= 0, colours["first"], colours["second"])
        ax.scatter(differences, y, s=22, c=colour, alpha=0.7, linewidths=0, zorder=2)
        mean = differences.mean() if len(differences) else np.nan
        ax.plot([mean, mean], [place - 0.3, place + 0.3], color=colours["ink"], lw=2.2, zorder=3)
    lines = [summary.lines[head] for head in heads]
    labels = [line.label + ("\nadapted" if line.adapts else "") for line in lines]
    ax.set_yticks(range(len(heads)), labels)
    ax.set_ylim(len(heads) - 0.5, -0.5)
    ax.axvline(0.0, color=colours["ink"], lw=0.8, zorder=1)
    unit = "points" if scale.unit else scale.title
    ax.set_xlabel(f"difference from {summary.lines[summary.baseline].name} ({unit})")
    return ax


def plot_domains(summary: Summary, head: str, ax: Any = None, theme: str = "light") -> Any:
    """A line for each held-out domain, from the baseline's score to that of a head."""
    ax = _axes(ax)
    colours, factor = _THEMES[theme], summary.scale.factor
    pair = summary.scores[[summary.baseline, head]].dropna().sort_values(summary.baseline)
    before, after = pair.to_numpy().T * factor
    places = np.arange(len(pair))
    colour = np.where(after >= before, colours["first"], colours["second"])
    ax.hlines(places, before, after, colors=colour, lw=2.0, zorder=1)
    ring = {"facecolors": "none", "edgecolors": colours["ink"], "linewidths": 1.0}
    ax.scatter(before, places, s=24, zorder=2, **ring)
    ax.scatter(after, places, s=26, c=colour, linewidths=0, zorder=3)
    names = [name if len(name) <= 18 else name[:17] + "…" for name in map(str, pair.index)]
    ax.set_yticks(places, [name.replace("$", r"\$") for name in names])
    ax.set_ylim(-0.7, len(pair) - 0.3)
    ax.set_xlabel(summary.scale.title)
    return ax


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots()[1]


def _figure(draw: Callable[[Any, str], Any], height: float, caption: str) -> Figure:
    """A figure in the colours of each theme, drawn without a window and the same every time."""
    import matplotlib as mpl
    from matplotlib.figure import Figure as Canvas

    names = ("text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor")
    images = {}
    for theme, colours in _THEMES.items():
        style: dict[Any, Any] = dict.fromkeys(names, colours["ink"])
        style |= dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), colours["faint"])
        style |= {"svg.hashsalt": "skdare", "svg.fonttype": "path", "font.size": _SIZE}
        style |= {"axes.spines.top": False, "axes.spines.right": False, "axes.spines.left": False}
        style |= {"axes.grid": True, "axes.grid.axis": "x", "grid.color": colours["faint"]}
        style |= {"grid.linewidth": 0.4, "ytick.major.size": 0, "axes.axisbelow": True}
        file = io.BytesIO()
        with mpl.rc_context(style):
            figure = Canvas(figsize=(_WIDTH, 0.75 + height), layout="constrained")
            draw(figure.add_subplot(), theme)
            figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
        encoded = base64.b64encode(file.getvalue()).decode("ascii")
        images[theme] = f"data:image/svg+xml;base64,{encoded}"
    return Figure(**images, caption=caption)
