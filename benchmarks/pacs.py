"""Tables of the paper's experiment on PACS, from its records.

    python benchmarks/pacs.py docs/results/pacs [--only table1 gains …]

Percent of the rows set aside. An interval is at 90 %: ± t has Student's factor for the trials
there are, ± z the paper's 1.645. Nothing is fitted; a cell without a record is a dash.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from houses import table

DOMAINS = {"art_painting": "art", "cartoon": "cartoon", "photo": "photo", "sketch": "sketch"}
HEADS = {
    "erm": "ERM",
    "reweighted": "Reweighted",
    "groupdro": "GroupDRO",
    "irm": "IRM",
    "dare": "DARE",
    "dare-adapted": "DARE adapted†",
}
# Tables 1, 2 and 3 of the paper.
PAPER = {
    "erm": (84.3, 79.5, 96.7, 74.9),
    "reweighted": (83.6, 78.8, 97.1, 76.5),
    "groupdro": (83.6, 79.1, 96.9, 76.8),
    "irm": (83.6, 79.2, 97.1, 76.4),
    "dare": (85.6, 80.5, 96.6, 76.7),
    "averaged adjustment": (0.052, 0.016, 0.025, 0.217),
    "with adjustment": (0.903, 0.896, 0.905, 0.903),
    "without adjustment": (0.863, 0.776, 0.827, 0.791),
}
Record = dict[str, Any]
# By trial and held-out domain.
Scores = dict[tuple[int, str], float]


def lines_of(folder: Path, pattern: str) -> list[Record]:
    """Records; those of the first two trials call a head otherwise."""
    paths = sorted(folder.glob(pattern))
    lines = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
    return [
        line | {"head": "dare-adapted"} if line.get("head") == "adapted" else line for line in lines
    ]


class Records:
    """What the folder has: networks, heads of the bench, single changes, and a repetition."""

    def __init__(self, folder: Path) -> None:
        self.networks = lines_of(folder, "networks.jsonl")
        self.heads = lines_of(folder, "heads-*.jsonl")
        self.changes = lines_of(folder, "changes-*.jsonl")
        self.again = lines_of(folder, "again-*.jsonl")

    @property
    def trials(self) -> list[int]:
        """Trials whose heads are in."""
        return sorted({record["trial"] for record in self.heads})

    def scores(self, head: str, **what: Any) -> Scores:
        """Scores of a head in the bench; by default in the paper's protocol, on its features."""
        wanted = {"study": "main", "protocol": "paper", "features": "given", "head": head, **what}
        return {
            (record["trial"], record["held_out"]): record["score"]
            for record in self.heads
            if all(record[name] == value for name, value in wanted.items())
        }

    def changed(self, change: str, head: str, what: str = "score_reserved", **more: Any) -> Scores:
        """A number of a head under a change."""
        wanted = {"change": change, "head": head, **more}
        return {
            (record["trial"], record["held_out"]): record[what]
            for record in self.changes
            if what in record and all(record.get(name) == v for name, v in wanted.items())
        }

    def chosen(self) -> dict[tuple[int, str], Record]:
        """The best of the five draws, where all five are in."""
        cells = defaultdict(list)
        for record in self.networks:
            if record["held_out"] is not None:
                cells[record["trial"], record["held_out"]].append(record)
        whole = {cell: draws for cell, draws in cells.items() if len(draws) == 5}
        best = {c: max(d, key=lambda r: (r["value"], -r["draw"])) for c, d in whole.items()}
        return {cell: best[cell] for cell in sorted(best)}


def of_domain(scores: Scores, domain: str) -> list[float]:
    """Values over trials."""
    return [value for (_, name), value in sorted(scores.items()) if name == domain]


def averages(scores: Scores) -> list[float]:
    """The mean over domains, of each trial that has all of them."""
    trials = sorted({trial for trial, _ in scores})
    cells = [[scores.get((trial, domain)) for domain in DOMAINS] for trial in trials]
    return [float(np.mean(values)) for values in cells if None not in values]


def columns(scores: Scores) -> list[list[float]]:
    """Values over trials of each domain, and of their average."""
    return [*(of_domain(scores, domain) for domain in DOMAINS), averages(scores)]


def half_width(values: Sequence[float], *, normal: bool = False) -> float | None:
    """Half of a 90 % interval of the mean."""
    if len(values) < 2:
        return None
    factor = 1.645 if normal else stats.t.ppf(0.95, len(values) - 1)
    return float(factor * np.std(values, ddof=1) / np.sqrt(len(values)))


def shown(values: Sequence[float], scale: float = 100, digits: int = 1, sign: str = "") -> str:
    if not values:
        return "–"
    return f"{scale * np.mean(values):{sign}.{digits}f}".replace("-", "−")


def row(name: str, scores: Scores, scale: float = 100, digits: int = 1) -> list[str]:
    return [name, *(shown(values, scale, digits) for values in columns(scores))]


def header(first: str, *more: str) -> list[str]:
    return [first, *DOMAINS.values(), "average", *more]


def draws(records: Records) -> str:
    """The network that is kept of each five."""
    lines = []
    for (trial, held_out), r in records.chosen().items():
        accuracy = [shown([r["accuracy"][part]]) for part in ("reserved", "rest")]
        kept = [str(r["draw"]), f"{r['step']:,}", shown([r["value"]])]
        lines.append([str(trial), DOMAINS[held_out], *kept, *accuracy])
    names = ["trial", "held out", "draw", "step", "validation", "20 %", "80 %"]
    return table(names, lines)


def table1(records: Records) -> str:
    """The paper's Table 1, mean ± t over trials; in brackets the paper's."""
    lines = []
    for i, domain in enumerate([*DOMAINS.values(), "average"]):
        line = [domain]
        for head in HEADS:
            values = columns(records.scores(head))[i]
            width = half_width(values)
            cell = shown(values) + ("" if width is None else f" ± {100 * width:.1f}")
            if head in PAPER:
                # Halves go up, as the paper's do.
                paper = PAPER[head][i] if i < 4 else float(np.mean(PAPER[head])) + 1e-9
                cell += f" ({paper:.1f})"
            line.append(cell)
        lines.append(line)
    return table(["held out", *HEADS.values()], lines)


def trials(records: Records) -> str:
    """Table 1 trial by trial."""
    lines = []
    for trial in records.trials:
        for head, name in HEADS.items():
            own = {cell: v for cell, v in records.scores(head).items() if cell[0] == trial}
            lines.append([str(trial), *row(name, own)])
    return table(["trial", *header("head")], lines)


def gains(records: Records) -> str:
    """Points over ERM on the same features, and the paper's one-sided paired test."""
    erm = records.scores("erm")
    lines = []
    for head in list(HEADS)[1:]:
        scores = records.scores(head)
        gain = {cell: 100 * (scores[cell] - erm[cell]) for cell in scores}
        for domain, values in zip([*DOMAINS.values(), "average"], columns(gain), strict=True):
            widths = [half_width(values), half_width(values, normal=True)]
            line = [HEADS[head], domain, shown(values, 1, sign="+")]
            line += ["–" if width is None else f"{width:.1f}" for width in widths]
            # Differences that are all alike, such as zero, have no test.
            alike = len(values) < 2 or np.std(values) == 0
            p = None if alike else stats.ttest_1samp(values, 0.0, alternative="greater").pvalue
            lines.append([*line, "–" if p is None else f"{p:.2f}"])
    return table(["head", "held out", "over ERM", "± t", "± z", "p, higher"], lines)


def oracles(records: Records) -> str:
    """Linear heads with labels of the held-out domain, on features before and after tuning."""
    erm = records.scores("erm")
    lines = [row(f"ERM ({counted(erm)})", erm)]
    for features in ("given", "pretrained"):
        for head, how in (("ceiling-sgd", "the paper's descent"), ("ceiling-exact", "solved")):
            scores = records.scores(head, study="ceiling", features=features)
            tuned = "fine-tuned" if features == "given" else "pretrained"
            name = f"oracle, {tuned}, {how} ({counted(scores)})"
            lines.append(row(name, scores))
    if scores := records.scores("end-to-end", study="ceiling"):
        lines.append(row(f"oracle, end to end ({counted(scores)})", scores))
    return table(header("on the same rows"), lines)


def counted(scores: Scores) -> str:
    """The trials behind a row."""
    own = sorted({trial for trial, _ in scores})
    return f"trial{'s' * (len(own) != 1)} {', '.join(map(str, own))}"


def table2(records: Records) -> str:
    """Normalised error of the averaged adjustment, the paper's Table 2."""
    lines = [["the paper", *paper_row("averaged adjustment")]]
    for head in ("averaged adjustment", "averaged scalar"):
        scores = records.scores(head, study="adjustment")
        lines.append(row(f"{head} ({counted(scores)})", scores, 1, 3))
    for change in ("training transform, once", "training transform, 5 times"):
        error = records.changed(change, "averaged adjustment", "error")
        lines.append(row(f"{change} ({counted(error)})", error, 1, 3))
    return table(header("error"), lines)


def paper_row(name: str) -> list[str]:
    return [f"{value:.3f}" for value in (*PAPER[name], np.mean(PAPER[name]))]


def table3(records: Records) -> str:
    """Mean cosine similarity of single-domain classifiers, the paper's Table 3."""
    lines = []
    for head in ("with adjustment", "without adjustment"):
        lines.append([f"the paper, {head}", *paper_row(head)])
        scores = records.scores(head, study="alignment")
        lines.append(row(f"{head} ({counted(scores)})", scores, 1, 3))
    return table(header("cosine"), lines)


def ablations(records: Records) -> str:
    """DARE with one part changed, in the paper's protocol."""
    names = {
        "erm": "ERM",
        "dare": "DARE",
        "no-whitening": "DARE without whitening",
        "no-constraint": "DARE without the constraint",
        "estimated-mean": "DARE with an estimated mean, no constraint",
    }
    own = {"no-whitening": "whitening", "no-constraint": "constraint", "estimated-mean": "mean"}
    lines = []
    for head, name in names.items():
        scores = records.scores(head, study=f"ablation:{own.get(head, 'whitening')}")
        lines.append(row(f"{name} ({counted(scores)})", scores))
    return table(header("head"), lines)


def swept(records: Records, sweep: str, heads: Sequence[str], sign: str) -> str:
    lines = []
    for head in heads:
        study = f"ablation:{sweep}"
        own = {r["x"] for r in records.heads if r["study"] == study and r["head"] == head}
        for x in sorted(own):
            scores = records.scores(head, study=study, x=x)
            lines.append(row(f"{HEADS[head]}, {sign} = {x:g}", scores))
    return table(header("head"), lines)


def lambdas(records: Records) -> str:
    """Weight of the constraint, and of IRM's penalty."""
    return swept(records, "lambda", ("dare", "irm"), "λ")


def shrinkages(records: Records) -> str:
    """DARE by its shrinkage; at 1 nothing is whitened."""
    return swept(records, "shrinkage", ("dare",), "ρ")


def solved(records: Records) -> str:
    """Our heads, solved to tolerance with a common ridge, on the same rows."""
    names = {
        "erm": "ERM",
        "dare": "DARE",
        "dare-adapted": "DARE adapted†",
        "dare-cv": "DARE-CV, which chooses",
        "dare-cv-adapted": "DARE-CV adapted†",
    }
    lines = [row(name, records.scores(head, protocol="default")) for head, name in names.items()]
    lines.append(row("T3A†", records.changed("T3A", "t3a")))
    for how in ("centred", "standardised"):
        for protocol, words in (("default", "solved"), ("paper", "paper's protocol")):
            scores = records.changed(f"{how} by domain", "erm", protocol=protocol)
            lines.append(row(f"ERM, {how} by domain†, {words}", scores))
    return table(header("head"), lines)


def transform(records: Records) -> str:
    """Features of training rows through the training transform, and what becomes of the gain."""
    lines = []
    own = {r["trial"] for r in records.changes}
    usual = {
        head: {cell: v for cell, v in records.scores(head).items() if cell[0] in own}
        for head in ("erm", "dare")
    }
    once = "training transform, once"
    several = "training transform, 5 times"
    named: dict[str, Callable[[str], Scores]] = {
        "test transform, once": lambda head: usual[head],
        once: lambda head: records.changed(once, head),
        several: lambda head: records.changed(several, head),
    }
    for change, scores in named.items():
        lines.append([change, *row("ERM", scores("erm")), ""])
        lines.append([change, *row("DARE", scores("dare")), over(scores("dare"), scores("erm"))])
    other = f"{several}, validated with the test transform"
    dare = records.changed(other, "dare")
    against = records.changed(several, "erm")
    lines.append([other, *row("DARE", dare), over(dare, against)])
    return table(["training rows", *header("head", "over ERM")], lines)


def over(scores: Scores, erm: Scores) -> str:
    return shown(averages({cell: scores[cell] - erm[cell] for cell in scores}), sign="+")


def scale(records: Records) -> str:
    """Features times a number at ρ = 0.1: the error of Table 2, and accuracy."""
    xs = sorted({r["x"] for r in records.changes if r["change"] == "scale"})
    lines = []
    for x in xs:
        error = records.changed("scale", "averaged adjustment", "error", x=x)
        erm = records.changed("scale", "erm", x=x)
        dare = records.changed("scale", "dare", x=x)
        errors = [shown(values, 1, 3) for values in columns(error)[:4]]
        row_of_dare = [shown(values) for values in columns(dare)]
        lines.append([f"{x:g}", *errors, *row_of_dare, over(dare, erm)])
    best = {
        domain: min(xs, key=lambda x: abs(np.log(errors_at(records, x, domain) / paper)))
        for domain, paper in zip(DOMAINS, PAPER["averaged adjustment"], strict=True)
    }
    matched = {
        head: {
            cell: value
            for domain, x in best.items()
            for cell, value in records.changed("scale", head, x=x).items()
            if cell[1] == domain
        }
        for head in ("erm", "dare")
    }
    lines.append(
        [
            "as in the paper",
            *(f"{errors_at(records, x, domain):.3f} at {x:g}" for domain, x in best.items()),
            *(shown(values) for values in columns(matched["dare"])),
            over(matched["dare"], matched["erm"]),
        ]
    )
    errors = [f"error, {name}" for name in DOMAINS.values()]
    return table(["times", *errors, *DOMAINS.values(), "average", "over ERM"], lines)


def errors_at(records: Records, x: float, domain: str) -> float:
    scores = records.changed("scale", "averaged adjustment", "error", x=x)
    return float(np.mean(of_domain(scores, domain)))


def stopping(records: Records) -> str:
    """The paper's whitening with another stop, guess or way of adapting."""
    own = {r["trial"] for r in records.changes}
    usual = {
        head: {cell: v for cell, v in records.scores(head).items() if cell[0] in own}
        for head in ("erm", "dare")
    }
    solved_erm = records.scores("erm", protocol="default")
    every = "validated at every iteration"
    erm = records.changed(every, "erm")
    lines = [
        ["the paper's protocol", *row("ERM", usual["erm"]), ""],
        ["the paper's protocol", *row("DARE", usual["dare"]), over(usual["dare"], usual["erm"])],
        [every, *row("ERM", erm), ""],
        [every, *row("DARE", records.changed(every, "dare")), ""],
        ["solved", *row("ERM", solved_erm), ""],
    ]
    lines[3][-1] = over(records.changed(every, "dare"), erm)
    for change, head in (
        ("solved", "dare"),
        ("solved, inverse root of the mean second moment", "dare"),
        ("adapted by a mixture", "dare-adapted"),
        ("adapted by mean and covariance", "dare-adapted"),
    ):
        scores = records.changed(change, head)
        how = change if change.startswith("solved") else f"solved, {change}†"
        lines.append([how, *row("DARE", scores), over(scores, solved_erm)])
    return table(["change", *header("head", "over ERM")], lines)


def again(records: Records) -> str:
    """The networks without art of trial 1, and the same seeds another time."""
    lines = []
    for change in ("training transform, once", "training transform, 5 times"):
        for name, source in (("kept", records.changes), ("again", records.again)):
            own = {
                r["head"]: r.get("score_reserved", r.get("error"))
                for r in source
                if (r["change"], r["trial"], r["held_out"]) == (change, 1, "art_painting")
            }
            percents = [shown([own[head]]) for head in ("erm", "dare")]
            gain = shown([own["dare"] - own["erm"]], sign="+")
            lines.append([change, name, *percents, gain, f"{own['averaged adjustment']:.3f}"])
    return table(["training rows", "networks", "ERM", "DARE", "over ERM", "error"], lines)


TABLES: dict[str, Callable[[Records], str]] = {
    "draws": draws,
    "table1": table1,
    "trials": trials,
    "gains": gains,
    "oracles": oracles,
    "table2": table2,
    "table3": table3,
    "ablations": ablations,
    "lambdas": lambdas,
    "shrinkages": shrinkages,
    "solved": solved,
    "transform": transform,
    "scale": scale,
    "stopping": stopping,
    "again": again,
}


def main(arguments: Iterable[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", choices=TABLES, default=list(TABLES))
    options = parser.parse_args(None if arguments is None else list(arguments))
    records = Records(options.folder)
    for name in options.only:
        print(f"{name}: {TABLES[name].__doc__}\n\n{TABLES[name](records)}\n")


if __name__ == "__main__":
    main()
