"""Which second moment, how much shrinkage, which mean penalty and which ridge."""

from __future__ import annotations

from collections.abc import Iterator

from real_data import Fold
from skdare import (
    DAREClassifier,
    DARERegressor,
    ERMClassifier,
    ERMRegressor,
    ReweightedClassifier,
    ReweightedRegressor,
)
from tables import average, floored, percent, table, unique, worst

SHRINKAGES = (0.1, 0.3, 0.5, 0.7, 0.9, 0.97, 1.0, "ledoit-wolf", "oas")
PENALTIES = (0.0, 1.0, "exact")
MOMENTS = ("raw moment", "covariance")
RIDGES = (1e-3, 1e-2, 1e-1)
LEADING = ((0.5, 1.0), (0.9, 1.0), (0.9, 0.0))  # tried with every ridge
BASE = "ERM, l2 0.01"
MANY_FOLDS = 30
FEW = (
    "ERM",
    "reweighted",
    "DARE as printed",
    *(f"{m}, ρ {r}, λ {p}" for m in MOMENTS for r in (0.1, 0.5, 0.9) for p in PENALTIES[:2]),
)
HEADS = {
    "classification": (ERMClassifier, ReweightedClassifier, DAREClassifier),
    "regression": (ERMRegressor, ReweightedRegressor, DARERegressor),
}


def candidates(task: str) -> Iterator[tuple[str, object]]:
    """Every head in the comparison, with its name in the tables."""
    erm, reweighted, dare = HEADS[task]
    for l2 in RIDGES:
        yield f"ERM, l2 {l2:g}", erm(l2=l2)
        yield f"reweighted, l2 {l2:g}", reweighted(l2=l2)
    yield "DARE as printed (ρ 0.1 towards I)", dare.as_in_paper(l2=1e-2, adaptation=None)
    for centered in (False, True):
        for shrinkage in SHRINKAGES:
            for penalty in PENALTIES:
                for l2 in RIDGES if (shrinkage, penalty) in LEADING else RIDGES[1:2]:
                    options = {"l2": l2, "mean_penalty": penalty, "shrinkage": shrinkage}
                    head = dare(centered=centered, adaptation=None, **options)
                    yield dare_name(centered, shrinkage, penalty, l2), head
        for shrinkage in (0.1, 0.5, 0.9):
            options = {"mean_penalty": 1.0, "shrinkage": shrinkage, "shrinkage_target": "pooled"}
            head = dare(centered=centered, adaptation=None, **options)
            yield f"{_moment(centered)}, ρ {shrinkage} towards the pool", head


def dare_name(centered: bool, shrinkage: float | str, penalty: float | str, l2: float) -> str:
    """One DARE head in words."""
    return f"{_moment(centered)}, ρ {shrinkage}, λ {penalty}, l2 {l2:g}"


def _moment(centered: bool) -> str:
    return MOMENTS[centered]


def measure(folds: list[Fold]) -> list[dict]:
    """The held-out score of every candidate on every fold; of a few where folds are many."""
    records = []
    for fold in folds:
        for name, head in candidates(fold.task):
            if len(folds) > MANY_FOLDS and not name.startswith(FEW):
                continue
            head.fit(fold.train.X, fold.train.y, domains=fold.train.domains)
            record = {"part": "defaults", "set": fold.name, "held_out": fold.held_out}
            record |= {"head": name, "score": head.score(fold.test.X, fold.test.y)}
            if fold.test_reserved.any():
                for key, rows in (("20%", fold.test_reserved), ("80%", ~fold.test_reserved)):
                    record[key] = head.score(fold.test.X[rows], fold.test.y[rows])
            records.append(record)
    return records


def report(records: list[dict]) -> str:
    """Markdown: means over all sets, the PACS domains, and losses against ERM by domain."""
    return "\n".join((_means(records), _pacs(records), _losses(records)))


def _means(records: list[dict]) -> str:
    """Mean and worst held-out score of every candidate on every set."""
    means, least = average(records, "head", "set"), worst(records, "head", "set")
    sets = unique(records, "set")
    rows = []
    for head in unique(records, "head"):
        keys = [(head, name) for name in sets]
        cells = [f"{percent(means[k])} / {percent(least[k])}" if k in means else "" for k in keys]
        rows.append([head, *cells])
    return "## Held-out score, mean / worst domain\n\n" + table(["head", *sets], rows)


def _pacs(records: list[dict]) -> str:
    """PACS: every held-out domain, and the two parts of their rows."""
    chosen = [record for record in records if "20%" in record]
    if not chosen:
        return ""
    each, domains = average(chosen, "head", "held_out"), unique(chosen, "held_out")
    parts = [average(chosen, "head", value=key) for key in ("20%", "80%")]
    rows = []
    for head in unique(chosen, "head"):
        cells = [percent(each[head, domain]) for domain in domains]
        rows.append([head, *cells, *(percent(part[head,]) for part in parts)])
    return "## PACS by domain\n\n" + table(["head", *domains, "20 %", "80 %"], rows)


def _losses(records: list[dict]) -> str:
    """How many held-out domains a head loses, and wins, by more than a point against ERM."""
    erm = {(r["set"], r["held_out"]): r["score"] for r in records if r["head"] == BASE}
    sets = unique(records, "set")
    rows = []
    for head in unique(records, "head"):
        cells = []
        for name in sets:
            chosen = [r for r in records if (r["head"], r["set"]) == (head, name)]
            gaps = [floored(r["score"]) - floored(erm[name, r["held_out"]]) for r in chosen]
            lost, won = sum(gap < -0.01 for gap in gaps), sum(gap > 0.01 for gap in gaps)
            cells.append(f"{lost} / {won} of {len(gaps)}")
        rows.append([head, *cells])
    title = f"## Domains lost / won by more than a point against {BASE}"
    return f"{title}\n\n" + table(["head", *sets], rows)
