"""Statistics that say whether one head is better: intervals, paired tests, marks of a table.

Notation: a, b scores of two heads trial by trial, d = a - b, n trials. Every test but McNemar's
is one-sided: a small p says that the mean of a, or of d, is the higher.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from skdare._validation import check_count, check_number

NORMAL_90 = 1.645  # as the paper prints it
ENUMERATED = 16  # trials up to which all 2ⁿ sign vectors are listed
# Accuracies are counts over counts, so true differences are far above this share of them; what
# is below comes from the subtraction, and must not turn a tie into the smallest p there is.
ROUNDING = 1e-10

Marks = dict[str, str]


@dataclass(frozen=True)
class Interval:
    """A mean with the same half width on either side."""

    mean: float
    half_width: float

    @property
    def low(self) -> float:
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        return self.mean + self.half_width


def normal_interval(values: ArrayLike) -> Interval:
    """The paper's interval: mean ± 1.645 σ̂/√n, with σ̂² the sum of squares over n - 1.

    It takes σ̂ for the truth: of three trials it covers the mean 76 times in 100, not 90. One
    value has no spread to measure, and its half width is NaN.
    """
    x = _trials("values", values)
    return Interval(float(x.mean()), NORMAL_90 * _standard_error(x))


def t_interval(values: ArrayLike, level: float = 0.9) -> Interval:
    """Mean ± t σ̂/√n, with t the quantile of Student's law at n - 1 degrees of freedom.

    Exact for normal values, however few; one value gives a half width of NaN.
    """
    check_number("level", level, 0.0, 1.0)
    x = _trials("values", values)
    factor = float(stats.t.ppf(0.5 + level / 2, len(x) - 1))
    return Interval(float(x.mean()), factor * _standard_error(x))


def prediction_interval(values: ArrayLike, level: float = 0.8) -> Interval:
    """Where one more value like these would fall: mean ± t σ̂ √(1 + 1/n), n - 1 degrees of freedom.

    Exact for normal values, however few; one value gives a half width of NaN.
    """
    check_number("level", level, 0.0, 1.0)
    x = _trials("values", values)
    factor = float(stats.t.ppf(0.5 + level / 2, len(x) - 1))
    return Interval(float(x.mean()), factor * _standard_error(x) * float(len(x) + 1) ** 0.5)


def differences(a: ArrayLike, b: ArrayLike) -> np.ndarray:
    """a - b, in which what is zero or constant up to rounding is exactly so."""
    x = _trials("a", a)
    y = _trials("b", b)
    if len(x) != len(y):
        raise ValueError(f"a has {len(x)} values but b has {len(y)}; pair them trial by trial")
    noise = ROUNDING * float(max(np.abs(x).max(), np.abs(y).max()))
    d = x - y
    d = np.full_like(d, d[0]) if np.ptp(d) <= noise else d
    return np.where(np.abs(d) <= noise, 0.0, d)


def paired_t(a: ArrayLike, b: ArrayLike) -> float:
    """One-sided p-value that the mean of a is above that of b, by Student's t on a - b.

    One pair gives NaN. Differences that are all equal, up to rounding, have no variance to
    weigh them by: the sign-flip test, which needs none, stands in.
    """
    d = differences(a, b)
    if len(d) < 2:
        return np.nan
    if np.ptp(d) == 0:
        return sign_flip(d).p
    return float(stats.t.sf(d.mean() / _standard_error(d), len(d) - 1))


@dataclass(frozen=True)
class SignFlip:
    """A sign-flip p-value, the smallest that n trials can reach, and whether it is exact."""

    p: float
    smallest: float
    n: int
    exact: bool


def sign_flip(differences: ArrayLike, *, n_draws: int = 100_000, seed: int = 0) -> SignFlip:
    """Share of sign vectors under which the mean difference is at least the one observed.

    Assumes only that differences are as likely as their negatives. All 2ⁿ vectors up to n = 16;
    above, ``n_draws`` at random with the observed one added, so p is never zero.

    Examples
    --------
    >>> from skdare.report.summary.statistics import sign_flip
    >>> sign_flip([2.8, 1.1, 3.4])
    SignFlip(p=0.125, smallest=0.125, n=3, exact=True)
    """
    d = _trials("differences", differences)
    p = joint_sign_flip(d[None], n_draws=n_draws, seed=seed)
    n = len(d)
    exact = n <= ENUMERATED
    return SignFlip(float(p[0]), 0.5**n if exact else 1 / (n_draws + 1), n, exact)


def joint_sign_flip(differences: ArrayLike, *, n_draws: int = 100_000, seed: int = 0) -> np.ndarray:
    """Sign-flip p-value of each of m rows of differences, corrected for picking the best of them.

    A sign vector flips all m rows at once, so what they share stays shared. The p-value
    of a row is the share of vectors under which the highest of all rows, each divided by its own
    size, is at least what that row is unflipped. So if the signs of the columns are chance, some
    row falls below α with probability α at most, and the smallest p is 1/2ⁿ however many rows
    there are; Holm's correction would need a p m times as small. NaN stands for a difference that
    a row lacks. One row gives `sign_flip`.

    Examples
    --------
    >>> from skdare.report.summary.statistics import joint_sign_flip
    >>> joint_sign_flip([[2.8, 1.1, 3.4], [1.0, -2.0, 0.5]])
    array([0.125, 0.875])
    """
    check_count("n_draws", n_draws, 1)
    D = np.nan_to_num(np.asarray(differences, dtype=np.float64))
    n = D.shape[1]
    # Divided by its size, a row's sum is an increasing function of its t: heads that vary much
    # do not drown those that vary little.
    size = np.sqrt(np.sum(D**2, axis=1, keepdims=True))
    D = np.divide(D, size, out=np.zeros_like(D), where=size > 0)
    # Flipping a set of trials lowers a row's sum by twice their own sum.
    observed = D.sum(axis=1)
    tie = ROUNDING * n
    count = np.zeros(len(D))
    drawn = n > ENUMERATED
    for flips in _drawn_flips(n, n_draws, seed) if drawn else [_all_flips(n)]:
        highest = np.max(observed - 2 * (flips @ D.T), axis=1)
        count += np.count_nonzero(highest[:, None] >= observed - tie, axis=0)
    return (count + 1) / (n_draws + 1) if drawn else count / 2**n


def _all_flips(n: int) -> np.ndarray:
    """Every set of n trials, one in each row."""
    return (np.arange(2**n)[:, None] >> np.arange(n)) & 1


def _drawn_flips(n: int, n_draws: int, seed: int) -> Iterator[np.ndarray]:
    """Sets of n trials at random, some at a time."""
    rng = np.random.default_rng(seed)
    block = max(1, 2**22 // n)
    for start in range(0, n_draws, block):
        yield rng.integers(0, 2, size=(min(block, n_draws - start), n), dtype=np.int8)


def holm(p: Mapping[str, float]) -> dict[str, float]:
    """Holm's p-values: the i-th smallest of m times m - i + 1, made monotone, at most one.

    A NaN is a test that was not made: it stays NaN, and does not count in m.

    Examples
    --------
    >>> from skdare.report.summary.statistics import holm
    >>> holm({"irm": 0.25, "dare": 0.125, "groupdro": float("nan")})
    {'irm': 0.25, 'dare': 0.25, 'groupdro': nan}
    """
    names = sorted((name for name in p if not np.isnan(p[name])), key=lambda name: p[name])
    for name in names:
        check_number(f"the p-value of {name!r}", p[name], 0.0, 1.0)
    steps = [(len(names) - i) * float(p[name]) for i, name in enumerate(names)]
    adjusted = np.minimum(np.maximum.accumulate(steps), 1.0).tolist() if names else []
    return {name: float("nan") for name in p} | dict(zip(names, adjusted, strict=True))


@dataclass(frozen=True)
class PairedDifference:
    """Mean of a - b with its t interval, and what tests make of "a is higher"."""

    mean: float
    low: float
    high: float
    p: float
    sign_flip: SignFlip
    n: int


def paired_difference(a: ArrayLike, b: ArrayLike, level: float = 0.9) -> PairedDifference:
    """Mean of a - b over n trials, its t interval, and one-sided paired t and sign-flip tests."""
    d = differences(a, b)
    t = t_interval(d, level)
    return PairedDifference(
        mean=t.mean,
        low=t.low,
        high=t.high,
        p=paired_t(a, b),
        sign_flip=sign_flip(d),
        n=len(d),
    )


@dataclass(frozen=True)
class McNemar:
    """How many of n rows only one of two heads has right, and the two-sided p of an even split."""

    only_a: int
    only_b: int
    p: float
    n: int

    @property
    def difference(self) -> Interval:
        """Accuracy of a minus that of b, ± 1.645 standard errors of a mean of 1, 0 and -1.

        For many discordant rows: with none its width is zero, and ``p`` is what to read.
        """
        mean = (self.only_a - self.only_b) / self.n
        variance = (self.only_a + self.only_b) / self.n - mean**2
        return Interval(mean, NORMAL_90 * (variance / self.n) ** 0.5)


def mcnemar(correct_a: ArrayLike, correct_b: ArrayLike) -> McNemar:
    """Exact binomial test that the rows which only one of two heads has right split evenly.

    The rows vary here and the fitted heads do not: it says which of these two fits is better
    on rows like these, not which head would win on a new seed or domain.
    """
    right_a = _right("correct_a", correct_a)
    right_b = _right("correct_b", correct_b)
    if len(right_a) != len(right_b):
        raise ValueError(
            f"correct_a has {len(right_a)} rows but correct_b has {len(right_b)}; "
            "score both heads on the same rows"
        )
    only_a = int(np.sum(right_a & ~right_b))
    only_b = int(np.sum(right_b & ~right_a))
    tail = float(stats.binom.cdf(min(only_a, only_b), only_a + only_b, 0.5))
    return McNemar(only_a, only_b, min(1.0, 2 * tail), len(right_a))


def mark_best(scores: Mapping[str, ArrayLike], baseline: str, level: float = 0.1) -> Marks:
    """Bold for the mean above every other head's, underline for another above the baseline's.

    The rule of the paper's Table 1: one-sided paired t-tests at ``level``, not corrected for
    their number. One trial, or one head, gets no marks. ``level`` is at most one half, so that
    a significant difference is positive and at most one head is bold.
    """
    check_number("level", level, 0.0, 0.5)
    if baseline not in scores:
        raise ValueError(f"baseline is {baseline!r}, which has no scores; use one of {[*scores]}")
    trials = {head: _trials(f"scores[{head!r}]", values) for head, values in scores.items()}
    sizes = {head: len(x) for head, x in trials.items()}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"scores has numbers of trials {sizes}; give every head the same trials")
    marks: Marks = {}
    for head, ours in trials.items():
        above = {name: paired_t(ours, x) < level for name, x in trials.items() if name != head}
        best = bool(above) and all(above.values())
        marks[head] = "bold" if best else "underline" if above.get(baseline) else ""
    return marks


def _standard_error(x: np.ndarray) -> float:
    """σ̂/√n, NaN for one value."""
    return float(x.std(ddof=1)) / len(x) ** 0.5 if len(x) > 1 else np.nan


def _trials(name: str, values: ArrayLike) -> np.ndarray:
    """Finite float64 values, one for each trial."""
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 1 or not len(x):
        raise ValueError(f"{name} has shape {x.shape}; pass one value for each trial")
    bad = np.flatnonzero(~np.isfinite(x))
    if len(bad):
        raise ValueError(f"{name} is {x[bad[0]]} in trial {bad[0]}; rerun or drop that trial")
    return x


def _right(name: str, correct: ArrayLike) -> np.ndarray:
    """Booleans, one for each row: anything else is likely predictions, passed by mistake."""
    x = np.asarray(correct)
    if x.ndim != 1 or not len(x) or x.dtype != bool:
        raise ValueError(
            f"{name} has shape {x.shape} and dtype {x.dtype}; "
            "pass one boolean for each row, as predicted == y"
        )
    return x
