"""How often the intervals over trials cover what a reader may take them for.

    python benchmarks/coverage.py [--repetitions 250]

Four Gaussian domains of 200 rows, drawn anew each time from the same four laws; the bench holds out
one of them in three trials, which are splits of the same rows. An interval covers if it has the
expected score of such a bench in it, the mean over all repetitions.
"""

from __future__ import annotations

import argparse

import numpy as np

from skdare.bench import Settings, bench_plan, run
from skdare.datasets import DomainData
from skdare.report.summary.statistics import normal_interval, t_interval

DOMAINS, ROWS, FEATURES, HEADS = 4, 200, 8, ("erm", "dare")


class Laws:
    """Four domains, each with its own linear map and mean; one rule for the classes."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        shape = (DOMAINS, FEATURES, FEATURES)
        self.maps = np.eye(FEATURES) + 0.35 * self.rng.normal(size=shape)
        self.means = 0.5 * self.rng.normal(size=(DOMAINS, FEATURES))
        self.beta = self.rng.normal(size=FEATURES)

    def draw(self) -> DomainData:
        """Rows of every domain."""
        latent = self.rng.normal(size=(DOMAINS, ROWS, FEATURES))
        noise = self.rng.logistic(size=(DOMAINS, ROWS))
        X = np.einsum("enf,egf->eng", latent, self.maps) + self.means[:, None]
        y = (latent @ self.beta + noise > 0).astype(int)
        return DomainData(X.reshape(-1, FEATURES), y.ravel(), np.repeat(np.arange(DOMAINS), ROWS))


def scores(laws: Laws, tested_on: str) -> np.ndarray:
    """Scores of both heads in three trials, (heads, trials)."""
    settings = Settings(l2=0.01, test_on=tested_on)
    plan = bench_plan(laws.draw(), heads=HEADS, held_out=["0"], settings=settings, extras=[])
    found = {(record.head, record.trial): record.score for record in run(plan)}
    return np.array([[found[head, trial] for trial in range(3)] for head in HEADS])


def coverage(values: np.ndarray) -> tuple[float, float]:
    """Shares of the t and the normal interval that have the mean of all in them."""
    truth = values.mean()
    inside = [
        [i.low <= truth <= i.high for i in (t_interval(row), normal_interval(row))]
        for row in values
    ]
    t, normal = np.mean(inside, axis=0)
    return float(t), float(normal)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=250)
    given = parser.parse_args()
    for tested_on in ("all", "reserved"):
        laws = Laws(1)
        S = np.stack([scores(laws, tested_on) for _ in range(given.repetitions)])
        for name, values in (("erm", S[:, 0]), ("dare - erm", S[:, 1] - S[:, 0])):
            t, normal = coverage(values)
            print(
                f"rows scored: {tested_on:9} {name:11} t 90 %: {t:.0%}  normal 90 %: {normal:.0%}"
            )


if __name__ == "__main__":
    main()
