"""Pictures for a page: drawn for light and for dark grounds, as SVG within the page itself."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

# Ink, faint lines, the page, and the colours of curves; they can be told apart by people who see
# few colours. The last one is the baseline's grey.
_COLOURS = {
    "light": ("#0067a5", "#c44e00", "#00795b", "#a0487f", "#8f6400", "#3f8fc4", "#5b4a9c"),
    "dark": ("#6cb4ff", "#ff9e4a", "#4fc79f", "#e08fc0", "#d8b040", "#9fd0f0", "#b3a4f0"),
}


@dataclass(frozen=True)
class Theme:
    """Colours of one ground."""

    ink: str
    faint: str
    page: str
    colours: Sequence[str]


THEMES = {
    "light": Theme("#222222", "#bbbbbb", "#ffffff", (*_COLOURS["light"], "#6b6b6b")),
    "dark": Theme("#e8e8e8", "#666666", "#16181b", (*_COLOURS["dark"], "#a0a0a0")),
}
MARKERS = "osD^vPX<"
# Inches; a phone shows it at two thirds of its size, where its words can still be read.
WIDTH = 5.6


@dataclass(frozen=True)
class Figure:
    """A picture for a page: an address for each ground, and what it shows in words."""

    light: str
    dark: str
    caption: str


def figure(draw: Callable[[Any, Theme], None], height: float, caption: str) -> Figure:
    """What ``draw(axes, theme)`` draws, on both grounds."""
    addresses = {}
    for name, theme in THEMES.items():
        svg = base64.b64encode(drawn(draw, height, theme, "svg")).decode("ascii")
        addresses[name] = f"data:image/svg+xml;base64,{svg}"
    return Figure(**addresses, caption=caption)


def drawn(
    draw: Callable[[Any, Theme], None], height: float, theme: Theme, kind: str, page: str = "none"
) -> bytes:
    """A file of one kind, "svg" or "png", the same every time."""
    import matplotlib as mpl
    from matplotlib.figure import Figure as Canvas

    names = ("text.color", "axes.labelcolor", "xtick.color", "ytick.color", "axes.edgecolor")
    style: dict[Any, Any] = dict.fromkeys(names, theme.ink)
    style |= {"svg.hashsalt": "skdare", "font.size": 9.0, "text.parse_math": False}
    style |= {"axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.6}
    style |= {"axes.axisbelow": True, "legend.frameon": False, "grid.color": theme.faint}
    style |= {"grid.linewidth": 0.4}
    metadata: Any = {"Date": None} if kind == "svg" else {"Software": None}
    with mpl.rc_context(style):
        canvas = Canvas(figsize=(WIDTH, height), layout="constrained", facecolor=page)
        axes = canvas.add_subplot()
        axes.patch.set_alpha(0.0)
        draw(axes, theme)
        file = io.BytesIO()
        canvas.savefig(file, format=kind, metadata=metadata, dpi=220)
    return file.getvalue()


def legend(axes: Any, names: Sequence[str]) -> None:
    """Names above the plot, in as many columns as they leave room for."""
    widest = 30 + 5.2 * max(map(len, names))
    columns = max(1, min(len(names), int(WIDTH * 72 // widest)))
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1.01), ncols=columns, borderaxespad=0, fontsize=8
    )
