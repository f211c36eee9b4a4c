"""Draw how the choosing head fares on each held-out domain of some real sets, beside ERM.

    python benchmarks/evidence.py --data DIR --parts choice --records choice.jsonl
    python docs/held_out.py choice.jsonl

The first command measures; the second writes docs/held-out.csv from its records, and from that one
picture a set, docs/figures/SET.svg, and prints the table of docs/when-to-use.md. Without records
both are made from the CSV as it is.
Text takes the colour of the page around it, and the other colours can be told apart on white and
on black.
"""

from __future__ import annotations

import csv
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

HERE = Path(__file__).parent
SCORES = HERE / "held-out.csv"
FIGURES = HERE / "figures"
SETS = {
    "twin-gas": "5 copies of a gas sensor board",
    "music": "5 kinds of noise",
    "ravdess": "10 of 24 actors",
    "vowel": "10 of 15 speakers",
    "office": "4 cameras and shops",
    "pacs": "4 drawing styles",
    "gas": "8 batches of a drifting gas sensor",
    "har": "10 of 30 people with a phone",
    "heart": "4 hospitals",
    "wisdm": "10 of 36 people with a phone",
    "fcon": "10 of 23 brain scanners",
    "support2": "8 groups of patients",
    "corn": "3 spectrometers",
    "gas-log-ppm": "8 batches of a drifting gas sensor",
    "prsa": "10 of 12 weather stations",
    "turbine": "5 years of a gas turbine",
    "student": "4 schools and subjects",
    "crime": "10 of 30 states",
}
DRAWN = ("music", "twin-gas", "gas", "corn", "heart", "har", "wisdm", "ravdess")
HEADS = {"erm": "erm", "dare-cv": "chosen", "dare-cv-adapted": "chosen, adapted"}
WIDTH, LEFT, RIGHT, TOP, ROW = 420, 104, 296, 74, 24
GAIN, LOSS = "#2f8fc4", "#dd6b1f"
STYLE = """
.held-out { color: #57606a; font: 13px system-ui, -apple-system, 'Segoe UI', sans-serif }
.held-out text { fill: currentColor }
.held-out .title { font-size: 15px; font-weight: 600 }
.held-out line { stroke: currentColor }
@media (prefers-color-scheme: dark) { .held-out { color: #aab1bc } }
"""


@dataclass(frozen=True)
class Score:
    """What heads scored on one held-out domain: accuracy, or R² cut at −1."""

    name: str
    domain: str
    is_regression: bool
    erm: float
    chosen: float
    adapted: float
    strategy: str

    def text(self, value: float) -> str:
        """A score as it is written everywhere."""
        shown = f"{value:z.2f}" if self.is_regression else f"{100 * value:z.1f}"
        return shown.replace("-", "−")


def gathered(records: list[dict]) -> list[Score]:
    """One line for each held-out domain, in the order of the records."""
    domains = {(r["set"], r["held_out"]): r for r in records}
    scores = {(r["set"], r["held_out"], r["head"]): r["score"] for r in records}
    return [
        Score(
            *key,
            record["task"] == "regression",
            *(scores[*key, head] for head in HEADS.values()),
            record["strategy"],
        )
        for key, record in domains.items()
    ]


def write_scores(scores: list[Score]) -> None:
    """All scores as a table."""
    with SCORES.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["set", "held out", "task", *HEADS, "chosen"])
        for score in scores:
            task = "regression" if score.is_regression else "classification"
            values = [f"{value:.5f}" for value in (score.erm, score.chosen, score.adapted)]
            rows.writerow([score.name, score.domain, task, *values, score.strategy])


def read_scores() -> list[Score]:
    """The table as it was written."""
    with SCORES.open(encoding="utf-8", newline="") as file:
        return [
            Score(
                row["set"],
                row["held out"],
                row["task"] == "regression",
                *(float(row[head]) for head in HEADS),
                row["chosen"],
            )
            for row in csv.DictReader(file)
        ]


def picture(scores: list[Score]) -> str:
    """One row a domain, from ERM's score to that of the adapted head; the lowest first."""
    scores = sorted(scores, key=lambda score: score.erm)
    first = scores[0]
    pairs = [(score.erm, score.adapted) for score in scores]
    low, high = min(map(min, pairs)), max(map(max, pairs))

    def at(value: float) -> float:
        return LEFT + (value - low) / (high - low) * (RIGHT - LEFT)

    what = "R²" if first.is_regression else "accuracy in %"
    means = [sum(column) / len(scores) for column in zip(*pairs, strict=True)]
    mean = " → ".join(first.text(value) for value in means)
    height = TOP + ROW * len(scores)
    label = f"{SETS[first.name]}: {what}, ERM and DARE-CV adapted, mean {mean}"
    marks = [
        f'<text class="title" x="0" y="16">{SETS[first.name]}</text>',
        f'<text x="0" y="37">{what}, each held out whole; mean {mean}</text>',
        '<circle cx="6" cy="54" r="4.5" fill="none" stroke="currentColor" stroke-width="1.6"/>',
        '<text x="16" y="58">ERM</text>',
        '<text x="60" y="58">DARE-CV adapted:</text>',
        f'<circle cx="192" cy="54" r="5" fill="{GAIN}"/><text x="202" y="58">higher</text>',
        f'<circle cx="260" cy="54" r="5" fill="{LOSS}"/><text x="270" y="58">lower</text>',
    ]
    for number, score in enumerate(scores):
        y = TOP + ROW * number + 8
        colour = GAIN if score.adapted >= score.erm else LOSS
        start, end = at(score.erm), at(score.adapted)
        marks += [
            f'<text x="0" y="{y + 4}">{escape(score.domain)}</text>',
            f'<line x1="{LEFT}" y1="{y}" x2="{RIGHT}" y2="{y}" stroke-opacity=".15"/>',
            f'<path d="M{start:.1f} {y}H{end:.1f}" stroke="{colour}" stroke-width="2.5"/>',
            f'<circle cx="{start:.1f}" cy="{y}" r="4.5" fill="none" stroke="currentColor" '
            'stroke-width="1.6"/>',
            f'<circle cx="{end:.1f}" cy="{y}" r="5" fill="{colour}"/>',
            f'<text x="{WIDTH}" y="{y + 4}" text-anchor="end">'
            f"{score.text(score.erm)} → {score.text(score.adapted)}</text>",
        ]
    size = f'viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{label}"'
    inner = "\n".join([f"<style>{STYLE}</style>", *marks])
    return f'<svg xmlns="http://www.w3.org/2000/svg" class="held-out" {size}>\n{inner}\n</svg>\n'


def by_set() -> dict[str, list[Score]]:
    """The scores of each set."""
    scores: dict[str, list[Score]] = {name: [] for name in SETS}
    for score in read_scores():
        scores[score.name].append(score)
    return scores


def summaries() -> list[str]:
    """A line of a Markdown table for each set: mean / worst by head, and domains won and lost."""
    return [_summary(name, scores) for name, scores in by_set().items()]


def _summary(name: str, scores: list[Score]) -> str:
    columns = zip(*((s.erm, s.chosen, s.adapted) for s in scores), strict=True)
    cells = [
        f"{scores[0].text(sum(column) / len(column))} / {scores[0].text(min(column))}"
        for column in columns
    ]
    gains = [score.adapted - score.erm for score in scores]
    better = sum(gain > 0.01 for gain in gains)
    worse = sum(gain < -0.01 for gain in gains)
    counts = f"{better} / {worse} of {len(scores)}"
    return f"| {name}, {SETS[name]} | {' | '.join(cells)} | {counts} |"


def pictures() -> dict[str, str]:
    """The pictures by the name of their set."""
    scores = by_set()
    return {name: picture(scores[name]) for name in DRAWN}


def main(arguments: list[str]) -> None:
    """Renew the table if there are records, and the pictures; print a summary of each set."""
    if arguments:
        lines = Path(arguments[0]).read_text(encoding="utf-8").splitlines()
        write_scores(gathered([json.loads(line) for line in lines]))
    FIGURES.mkdir(exist_ok=True)
    for name, drawn in pictures().items():
        (FIGURES / f"{name}.svg").write_text(drawn, encoding="utf-8")
    print("\n".join(summaries()))


if __name__ == "__main__":
    main(sys.argv[1:])
