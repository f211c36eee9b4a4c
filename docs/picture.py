"""Draw the picture of the README: python docs/picture.py writes docs/picture.svg.

Three domains as they arrive, whitened by what the head has fitted, and a new one with the
boundaries of ERM and DARE. Points, boundaries and accuracies are computed; nothing is placed by
hand. Colours are told apart on white and on black.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from skdare import DAREClassifier, ERMClassifier
from skdare.theory import LatentDomain, LatentModel

WIDTH, HEIGHT, TOP, SIDE, BETWEEN = 840, 300, 38, 260, 30
COLOURS = ("#3b8bc2", "#2a9a78", "#b0609c")
ERM, DARE = "#8b919a", "#e07b28"
STYLE = """
text { font: 600 13.5px system-ui, -apple-system, 'Segoe UI', sans-serif; fill: #6f7682 }
.said { font-weight: 400 } .dare { fill: #d9701c }
@media (prefers-color-scheme: dark) { text { fill: #aab1bc } .dare { fill: #e8842f } }
"""


def stretch(degrees: float, along: float, across: float) -> np.ndarray:
    """A symmetric matrix that scales by two factors along turned axes."""
    t = np.deg2rad(degrees)
    U = np.array([[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]])
    return U @ np.diag([along, across]) @ U.T


def sample(*domains: tuple[np.ndarray, float], n: int, seed: int):
    """Rows of domains that are given as a matrix and the first entry of a latent mean."""
    made = [LatentDomain(A, np.array([mean, 0.0])) for A, mean in domains]
    return LatentModel(np.array([0.5, 2.5]), made, "classification").sample(n, random_state=seed)


class Panel:
    """A square of the picture, with a scale and a centre of its own."""

    def __init__(self, number: int, title: str, centre: np.ndarray, half: float) -> None:
        self.left = number * (SIDE + BETWEEN)
        self.centre, self.scale = centre, SIDE / 2 / half
        clip = f'<clipPath id="p{number}"><rect x="{self.left}" y="{TOP}" width="{SIDE}"'
        self.marks = [f'{clip} height="{SIDE - 50}" rx="8"/></clipPath>']
        self.marks.append(f'<text x="{self.left}" y="{TOP - 16}">{title}</text>')
        self.marks.append(f'<g clip-path="url(#p{number})">')

    def at(self, points: np.ndarray) -> np.ndarray:
        middle = np.array([self.left + SIDE / 2, TOP + (SIDE - 50) / 2])
        return middle + self.scale * (points - self.centre) * [1, -1]

    def rows(self, X: np.ndarray, y: np.ndarray, colour: str, n: int = 70) -> None:
        """Some rows, filled for one class and open for the other, and their ellipse."""
        for (u, v), label in zip(self.at(X[:n]), y[:n], strict=True):
            face = colour if label else "none"
            look = f'fill="{face}" stroke="{colour}" stroke-opacity=".75" fill-opacity=".6"'
            self.marks.append(f'<circle cx="{u:.1f}" cy="{v:.1f}" r="2.3" {look}/>')
        turn = np.linspace(0, 2 * np.pi, 73)
        circle = np.stack([np.cos(turn), np.sin(turn)], axis=1)
        edge = self.at(X.mean(axis=0) + 2 * circle @ np.linalg.cholesky(np.cov(X.T)).T)
        path = "L".join(f"{u:.1f} {v:.1f}" for u, v in edge)
        look = f'fill="{colour}" fill-opacity=".1" stroke="{colour}" stroke-width="1.8"'
        self.marks.append(f'<path d="M{path}Z" {look}/>')

    def boundary(self, head, colour: str, centre: np.ndarray, reach: float, width: float) -> None:
        """Where the score of a head is zero, about a point of the plane."""
        coef = np.ravel(head.coef_)
        along = np.array([-coef[1], coef[0]]) / np.linalg.norm(coef)
        foot = centre - (coef @ centre + float(np.squeeze(head.intercept_))) * coef / (coef @ coef)
        (a, b), (c, d) = self.at(np.stack([foot - reach * along, foot + reach * along]))
        ends = f'x1="{a:.1f}" y1="{b:.1f}" x2="{c:.1f}" y2="{d:.1f}"'
        self.marks.append(f'<line {ends} stroke="{colour}" stroke-width="{width}"/>')

    def svg(self, *said: tuple[str, str]) -> str:
        texts = []
        for line, (kind, words) in enumerate(said):
            place = f'x="{self.left}" y="{TOP + SIDE - 28 + 19 * line}"'
            texts.append(f'<text class="said {kind}" {place}>{words}</text>')
        return "\n".join([*self.marks, "</g>", *texts])


def of_training(data, dare) -> list[str]:
    """Every domain with the best boundary for it alone, before whitening and after."""
    arrive = Panel(0, "Three hospitals as they measure", np.zeros(2), 5.4)
    white = Panel(1, "Each whitened by its own rows", np.array([0.3, 0.0]), 4.4)
    for e, colour in enumerate(COLOURS):
        own = data.domains == e
        X, y, W = data.X[own], data.y[own], dare.adjustments_[e].dense()
        for panel, rows, reach in ((arrive, X, 2.6), (white, X @ W, 2.2)):
            best = ERMClassifier(l2=1e-3).fit(rows, y)
            panel.rows(rows, y, colour)
            panel.boundary(best, colour, rows.mean(axis=0), reach, 3)
    return [
        arrive.svg(("", "the best line differs in each")),
        white.svg(("", "now one direction serves all")),
    ]


def of_new(new, erm, dare) -> str:
    """A domain that was not there, and what both heads make of it."""
    mean = new.X.mean(axis=0)
    panel = Panel(2, "One that nobody has seen", mean, 5.4)
    panel.rows(new.X, new.y, ERM, n=110)
    panel.boundary(erm, ERM, mean, 20, 3.2)
    panel.boundary(dare, DARE, mean, 20, 3.2)
    return panel.svg(
        ("erm", f"ERM {erm.score(new.X, new.y):.0%}: one line for all rows"),
        ("dare", f"DARE {dare.score(new.X, new.y):.0%}: blind to the means"),
    )


def picture() -> str:
    """The three panels."""
    seen = [(stretch(40, 2.0, 0.6), -1.0), (stretch(-40, 2.0, 0.6), -0.2)]
    data = sample(*seen, (stretch(90, 1.8, 0.6), 1.5), n=400, seed=0)
    new = sample((stretch(10, 1.6, 1.0), 2.0), n=2000, seed=1)
    # Two features and hundreds of rows: whitened completely, without the shrinkage of many.
    options = {"shrinkage": 0.0, "centered": True, "adaptation": None, "l2": 1e-3}
    dare = DAREClassifier(mean_penalty=10.0, **options).fit(data.X, data.y, domains=data.domains)
    erm = ERMClassifier(l2=1e-3).fit(data.X, data.y)
    label = "Three domains, whitened, and the boundaries of ERM and DARE on a fourth"
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}"'
    panels = [*of_training(data, dare), of_new(new, erm, dare)]
    inner = "\n".join([f"<style>{STYLE}</style>", *panels])
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n{inner}\n</svg>\n'


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(picture(), encoding="utf-8")
