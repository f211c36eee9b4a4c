"""Records made by hand: runs whose every number is known before they are summarised."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from skdare.bench import Log
from skdare.bench._record import Record, pack_bits

VERSIONS = {"version:skdare": "0.3.0", "version:numpy": "2.3.1", "version:python": "3.12.4"}
HEADS = ("erm", "reweighted", "groupdro", "irm", "dare", "adapted")


def record(head: str = "erm", held_out: str = "art", trial: int = 0, **changes: Any) -> Record:
    """One finished trial of the main study, with these changes."""
    fields: dict[str, Any] = {
        "study": "main",
        "data": "pacs",
        "features": "given",
        "protocol": "default",
        "task": "classification",
        "x": None,
        "status": "ok",
        "reason": "",
        "uses": "unlabelled rows" if head == "adapted" else "nothing",
        "metric": "accuracy",
        "score": 0.8,
        "seconds": 0.5,
        "values": dict(VERSIONS, split="20 % of every domain aside", tested_on="all"),
    } | changes
    names = ("study", "data", "features", "x", "protocol")
    key = str((head, held_out, trial, *(fields[name] for name in names)))
    key += str(fields["values"].get("option:projection"))
    return Record(key=key, head=head, held_out=held_out, trial=trial, **fields)


def failed(head: str, held_out: str, trial: int, reason: str, **changes: Any) -> Record:
    """A trial without a score."""
    return record(head, held_out, trial, status="failed", reason=reason, score=None, **changes)


def run_folder(records: Iterable[Record], folder: Path) -> Path:
    """The folder of a run with these records."""
    with Log(folder).open() as writer:
        for r in records:
            writer.append(r)
    return folder


def main_study(
    scores: dict[str, Sequence[Sequence[float]]], domains: Sequence[str]
) -> list[Record]:
    """Records of these scores, (domains, trials) for each head."""
    return [
        record(head, domain, trial, score=score)
        for head, rows in scores.items()
        for domain, row in zip(domains, rows, strict=True)
        for trial, score in enumerate(row)
    ]


class Story:
    """A data set with its whole bench, drawn at random with a fixed seed.

    Parameters
    ----------
    data : str
    domains : sequence of str
    level : sequence of float
        What ERM scores on each domain.
    """

    def __init__(self, data: str, domains: Sequence[str], level: Sequence[float], **changes: Any):
        self.data = data
        self.domains = domains
        self.level = level
        self.trials: int = changes.pop("trials", 3)
        self.noise: float = changes.pop("noise", 0.01)
        self.changes = changes
        self.regression = changes.get("task") == "regression"
        self.rng = np.random.default_rng(7)

    def _one(
        self, head: str, shift: float, study: str = "main", **changes: Any
    ) -> Iterator[Record]:
        for domain, level in zip(self.domains, self.level, strict=True):
            of_domain = 0.6 * self.noise * self.rng.normal()
            for trial in range(self.trials):
                of_trial = 0.5 * self.noise * np.random.default_rng(trial).normal()
                score = level + shift + of_domain + of_trial
                score += 0.3 * self.noise * self.rng.normal()
                lowest, highest = (-np.inf, 0.99) if self.regression else (0.02, 0.998)
                score = float(np.clip(score, lowest, highest))
                yield self._record(head, domain, trial, score, study, **changes)

    def _record(
        self, head: str, domain: str, trial: int, score: float, study: str, **changes: Any
    ) -> Record:
        values = (
            record().values | {"option:l2": 0.01, "option:tol": 1e-6} | changes.pop("values", {})
        )
        values |= {"score_reserved": score - 0.004, "n_test": 400}
        if head == "dare":
            values |= {"option:mean_penalty": 1.0, "option:shrinkage": 0.1}
        if self.regression:
            values["rmse"] = 40.0 * float(np.sqrt(max(1.0 - score, 0.0)))
        else:
            values["correct"] = pack_bits(self.rng.random(400) < score)
        fields = {"data": self.data, "study": study, "score": score, "values": values}
        return record(head, domain, trial, **(fields | self.changes | changes))

    def main(self, heads: Sequence[str] = HEADS) -> Iterator[Record]:
        shifts = dict(zip(HEADS, (0.0, 0.002, 0.003, -0.004, 0.012, 0.02), strict=True))
        for head in heads:
            yield from self._one(head, shifts[head])

    def ceilings(self) -> Iterator[Record]:
        saw = {"uses": "labels", "study": "ceiling", "values": {"tested_on": "reserved"}}
        gap = (0.95 - np.mean(self.level)) * 0.9
        yield from self._one("ceiling-exact", gap, **saw)
        yield from self._one("ceiling-sgd", gap - 0.005, **saw)
        yield from self._one("ceiling-exact", gap - 0.09, **saw, features="pretrained")
        for r in self._one("end-to-end", gap + 0.01, **saw, status="given"):
            if r.trial == 0:
                yield r

    def curve(self) -> Iterator[Record]:
        sizes = (1, 2, 5, 10, 20, 50, 100)
        for i, m in enumerate(sizes):
            part = i / (len(sizes) - 1)
            saw = {"study": "curve", "uses": "labels", "x": float(m)}
            yield from self._one("retrain", -0.35 * (1 - part) ** 2 + 0.1 * part, **saw)
            yield from self._one("retrain+sources", 0.1 * part**0.7 + 0.003, **saw)

    def diagnostics(self) -> Iterator[Record]:
        for r in self._one("dare", 0.0, "adjustment", metric="error"):
            yield Record(**(vars(r) | {"score": abs(0.9 - (r.score or 0.0)) / 3}))
        yield from self._one("with adjustment", 0.05, "alignment", metric="cosine")
        yield from self._one("without adjustment", -0.03, "alignment", metric="cosine")

    def ablations(self) -> Iterator[Record]:
        for name, heads in {
            "whitening": {"erm": 0.0, "dare": 0.012, "no-whitening": 0.004},
            "constraint": {"dare": 0.012, "no-constraint": 0.002, "exact-constraint": 0.011},
            "mean": {"dare": 0.012, "estimated-mean": 0.018},
        }.items():
            for head, shift in heads.items():
                yield from self._one(head, shift, f"ablation:{name}")
        decades = (0.0, *(10.0**k for k in range(-3, 6)))
        yield from self._sweep("lambda", "dare", decades, lambda x: 0.012 * min(1.0, x**0.3))
        yield from self._sweep("lambda", "irm", decades, lambda x: -0.002 * np.log1p(x))
        rhos = (0.0, 0.001, 0.01, 0.05, 0.1, 0.3, 0.5, 0.9, 1.0)
        yield from self._sweep("shrinkage", "dare", rhos, lambda x: 0.02 - 0.06 * (x - 0.4) ** 2)
        yield from self._one("erm", 0.0, "ablation:shrinkage")
        sizes = (16.0, 64.0, 256.0, 1024.0, 2048.0)
        for way in ("random", "pca"):
            drop = 0.12 if way == "random" else 0.05
            more = {"values": {"option:projection": way}}
            for head in ("erm", "dare"):
                lost = lambda x, drop=drop: -drop * (1 - np.log2(x) / 11)  # noqa: E731
                yield from self._sweep("dimension", head, sizes, lost, **more)
        for head in ("erm", "dare"):
            counts = (1.0, 2.0, 3.0)
            yield from self._sweep("domains", head, counts, lambda x: -0.06 / x + 0.02)

    def _sweep(
        self, name: str, head: str, x: Sequence[float], shift: Callable[[float], float], **more: Any
    ) -> Iterator[Record]:
        for value in x:
            yield from self._one(head, float(shift(value)), f"ablation:{name}", x=value, **more)

    def whole(self) -> list[Record]:
        parts = (self.main(), self.ceilings(), self.curve(), self.diagnostics(), self.ablations())
        return [r for part in parts for r in part]


def pacs(**changes: Any) -> Story:
    """Four domains, seven classes."""
    names = ("art_painting", "cartoon", "photo", "sketch")
    return Story("pacs", names, (0.843, 0.795, 0.967, 0.749), **changes)


def air() -> Story:
    """A regression with twelve domains, on one of which every head fails badly."""
    names = ("Aotizhongxin", "Changping", "Dingling", "Dongsi", "Guanyuan", "Gucheng", "Huairou")
    names += ("Nongzhanguan", "Shunyi", "Tiantan", "Wanliu", "Wanshouxigong")
    level = [*np.linspace(0.86, 0.55, 11), -2.4]
    return Story("prsa_beijing", names, level, task="regression", metric="r2", noise=0.02)


def people() -> Story:
    """Thirty-six domains."""
    names = [f"person {i}" for i in range(1, 37)]
    level = 0.75 + 0.2 * np.sin(np.arange(36) * 1.7)
    return Story("wisdm_har", names, level.tolist(), noise=0.03)
