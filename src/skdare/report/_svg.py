"""SVG for a page: colours, fonts and text size are the page's, ids are the figure's own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape

# Stands for the colour of the text around the figure.
INK = "#010203"
# Stands for the colour of the page.
PAPER = "#fdfefe"
# The baseline's grey first. Darkened Okabe-Ito, 3:1 against white; a page may set --c0 to --c7
# to others where its background is dark.
PALETTE = (
    "#6b6b6b",
    "#0067a5",
    "#c44e00",
    "#00795b",
    "#a0487f",
    "#8f6400",
    "#3f8fc4",
    "#5b4a9c",
)


@dataclass(frozen=True)
class Look:
    """Colours of a bar: inside, around, and of the number on it."""

    fill: str
    edge: str
    text: str


# The bars of the paper's first figure in its colours; a page may set --f0 to --f6 to others.
BLUE = "#1d3e7c"
ORANGE = "#e58313"
GREY = "#cbcbc9"
DARK = "#5a5c60"
SKY = "#a8d0ee"
GREY_EDGE = "#8e8e8c"
SKY_EDGE = "#5d9cc8"
ON_DARK = "#ffffff"
ON_LIGHT = "#111213"
FIRST = {
    "network": Look("none", BLUE, INK),
    "erm": Look(BLUE, BLUE, ON_DARK),
    "dare": Look(ORANGE, ORANGE, ON_LIGHT),
    "ceiling": Look(GREY, GREY_EDGE, ON_LIGHT),
    "end-to-end": Look(DARK, DARK, ON_DARK),
    "pretrained": Look(SKY, SKY_EDGE, ON_LIGHT),
}
_FIRST_COLOURS = (BLUE, ORANGE, GREY, DARK, SKY, GREY_EDGE, SKY_EDGE)
_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_GEOMETRY = re.compile(r'(?<= )(?:d|x|y|x1|y1|x2|y2|width|height|transform|points)="[^"]*"')


def inline(svg: str, name: str, title: str, alt: str) -> str:
    """A figure as an element of a page.

    Text and axes take the colour and font of the page, series its ``--c0`` to ``--c7``; names
    inside are made unique by ``name``, so that figures do not borrow each other's parts.
    """
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r"<(metadata|style)\b.*?</\1>", "", svg, flags=re.S)
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.S)
    svg = _GEOMETRY.sub(lambda match: _NUMBER.sub(_rounded, match[0]), svg)
    svg = svg.replace("xlink:href", "href")
    svg = _unique(svg, name)
    svg = re.sub(r"font: ?([^;\"]*?)([\d.]+)px[^;\"]*", r"font-size: \2px", svg)
    svg = re.sub(r"font-family:[^;\"]*;? ?", "", svg)
    svg = _coloured(svg)
    box = re.search(r'viewBox="[^"]*"', svg)
    assert box is not None
    head = (
        f'<svg class="plot" {box[0]} role="img" aria-labelledby="{name}-title {name}-desc">'
        f'<title id="{name}-title">{escape(title)}</title>'
        f'<desc id="{name}-desc">{escape(alt)}</desc>'
    )
    svg = re.sub(r"<svg\b[^>]*>", lambda _: head, svg, count=1)
    return re.sub(r">\s+<", "><", svg)


def _rounded(match: re.Match[str]) -> str:
    text = f"{float(match[0]):.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _unique(svg: str, name: str) -> str:
    """Drop ids that nothing refers to, and begin the others with the figure's name."""
    used = {a or b for a, b in re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', svg)}
    svg = re.sub(
        r' id="([^"]+)"',
        lambda match: f' id="{name}-{match[1]}"' if match[1] in used else "",
        svg,
    )
    return re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", svg)


def _coloured(svg: str) -> str:
    svg = svg.replace(INK, "currentColor").replace(PAPER, f"var(--page, {PAPER})")
    for i, colour in enumerate(PALETTE):
        svg = svg.replace(colour, f"var(--c{i}, {colour})")
    for i, colour in enumerate(_FIRST_COLOURS):
        svg = svg.replace(colour, f"var(--f{i}, {colour})")
    return svg
