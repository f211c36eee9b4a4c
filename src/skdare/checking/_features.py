"""Checks of features: scales, codes, leaks, missing values."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

from skdare._safe_text import counted
from skdare._validation import too_many_classes
from skdare.checking._finding import (
    DataFinding,
    columns_of,
    domains_of,
    percentage,
    significant,
    some,
)
from skdare.checking._table import LabelledRows, RowParts, scale_range

# No measurement is as large, in whatever unit.
_HUGE = 1e15
# Numbers that stand for a missing value where they lie far from all others.
_CODES = (-999.0, -9999.0, -99999.0, 999.0, 9999.0, 99999.0, 999999.0)
# By how many times the range of the others.
_FAR = 5.0
_FEW_ROWS = 50
# A value is not there by chance if all rows of a domain have it, at least this many, and fewer than
# this share of the rows elsewhere.
_FEW_ROWS_OF_A_DOMAIN = 10
_RARE = 0.5
# Rows that tell a value that is nearly everywhere from others.
_ROWS_THAT_SHOW = 200
# Whole numbers may be alike in this share of rows, and still count the rows.
_ALIKE = 0.05
# Share of the target's variance that a feature alone explains, from where on it is a leak.
_LEAK_OF_NUMBERS = 0.998
_LEAK_OF_CLASSES = 0.98
_NOT_A_VALUE = (
    "if it stands for a missing value, put NaN or nothing in its place, and fill that with "
    "preparation=SimpleImputer()"
)
_LEAVE_OUT = "leave it out: choose columns with features=, or drop it"


def feature_findings(rows: LabelledRows) -> Iterator[DataFinding]:
    """All that is odd about single features."""
    unusable = rows.constant | (rows.present == 0)
    yield from _leaks(rows, unusable)
    of_domain = _constant_within_domains(rows, unusable)
    yield from _domain_codes(rows, of_domain)
    yield from _constant_in_a_domain(rows, unusable | of_domain)
    yield from _row_numbers(rows, unusable | of_domain)
    yield from _codes_of_missing(rows, unusable | of_domain)
    yield from _scales(rows)
    yield from _missing(rows)
    constant = rows.constant & (rows.present == len(rows.y))
    if constant.any():
        names = rows.names(np.flatnonzero(constant))
        be = "has" if len(names) == 1 else "have"
        yield DataFinding(
            "constant",
            "note",
            f"{columns_of(names)} {be} one value in all rows",
            "it does no harm, and tells nothing" if len(names) == 1 else "they do no harm",
            names,
        )


def _scales(rows: LabelledRows) -> Iterator[DataFinding]:
    apart = scale_range(rows.scales)
    if apart is None or not apart.is_wide:
        return
    largest, usual = rows.names((apart.largest, apart.median))
    yield DataFinding(
        "scales",
        "caution",
        f"features have very different scales: the standard deviation of {largest!r} is "
        f"{significant(rows.scales[apart.largest])}, that of {usual!r}, the median one, "
        f"{significant(rows.scales[apart.median])}",
        "set standardize=True (the command line does so by default)",
        (largest, usual),
    )


def _constant_within_domains(rows: LabelledRows, unusable: np.ndarray) -> np.ndarray:
    """Which features have one value in each domain, and vary between domains."""
    parts = rows.domain_parts
    domains = len(parts.labels)
    if domains < 2 or len(rows.y) < 3 * domains:
        return np.zeros(len(unusable), dtype=bool)
    return np.asarray(~(parts.low < parts.high).any(axis=0) & ~unusable)


def _domain_codes(rows: LabelledRows, of_domain: np.ndarray) -> Iterator[DataFinding]:
    names = rows.names(np.flatnonzero(of_domain))
    if not names:
        return
    yield DataFinding(
        "domain code",
        "problem",
        f"{columns_of(names)} {'is' if len(names) == 1 else 'are'} constant within every domain, "
        "and so can only tell domains apart, never rows of a new one",
        _LEAVE_OUT,
        names,
    )


def _constant_in_a_domain(rows: LabelledRows, other: np.ndarray) -> Iterator[DataFinding]:
    """Features that have one whole number in a domain, which is rare elsewhere: a missing code."""
    parts = rows.domain_parts
    whole = parts.low == np.floor(parts.low)
    fixed = (
        (parts.low == parts.high)
        & whole
        & (parts.counts >= _FEW_ROWS_OF_A_DOMAIN)[:, None]
        & ~other
    )
    columns = []
    places = []
    for place in np.flatnonzero(fixed.any(axis=1)).tolist():
        candidates = np.flatnonzero(fixed[place])
        own = parts.present[place, candidates]
        elsewhere = rows.present[candidates] - own
        values = parts.low[place, candidates]
        # Wide tables of counts have zeros nearly everywhere, which a few rows show.
        step = max(1, len(parts.X) // _ROWS_THAT_SHOW)
        usual = (parts.X[::step, candidates] == values).mean(axis=0)
        likely = usual * rows.present[candidates] - own < 1.5 * _RARE * elsewhere
        alike = (parts.X[:, candidates[likely]] == values[likely]).sum(axis=0)
        rare = alike - own[likely] < _RARE * elsewhere[likely]
        found = candidates[likely][rare]
        found = found[_lie_apart(values[likely][rare], parts.X[::step, found])].tolist()
        columns += found
        places += [place] * len(found)
    if not columns:
        return
    names = rows.names(dict.fromkeys(columns))
    (name,) = rows.names(columns[:1])
    value = significant(float(parts.low[places[0], columns[0]]))
    domains = tuple(str(parts.labels[place]) for place in dict.fromkeys(places))
    text = f"column {name!r} is {value} in every row of domain {str(parts.labels[places[0]])!r}"
    if len(names) > 1:
        text += f"; {counted(len(names) - 1, 'other column')} likewise in some domain: "
        text += some(names[1:])
    yield DataFinding(
        "constant in a domain",
        "caution",
        text,
        _NOT_A_VALUE,
        names,
        domains,
    )


def _lie_apart(values: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Which values lie outside the usual ones of their column, by Tukey's fences.

    A cholesterol of 0 does; a blank pixel among dark and light ones does not.
    """
    X = np.where(values == X, np.nan, X)
    if X.shape[1] == 0:
        return np.zeros(0, dtype=bool)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of columns without another value
        low, high = np.nanquantile(X, (0.25, 0.75), axis=0)
    reach = 1.5 * (high - low)
    return np.asarray((reach > 0) & ((values < low - reach) | (values > high + reach)))


def _row_numbers(rows: LabelledRows, other: np.ndarray) -> Iterator[DataFinding]:
    if len(rows.y) < _FEW_ROWS:
        return
    whole = np.flatnonzero(rows.whole & ~other).tolist()
    found = [column for column in whole if _counts(rows, column)]
    names = rows.names(found)
    if names:
        yield DataFinding(
            "row number",
            "problem",
            f"{columns_of(names)} {'counts' if len(names) == 1 else 'count'} rows: whole numbers, "
            "hardly two alike, in order or without gaps",
            _LEAVE_OUT,
            names,
        )


def _counts(rows: LabelledRows, column: int) -> bool:
    """Whether whole numbers go up with the rows of each domain, or number all rows in any order."""
    parts = rows.domain_parts
    steps = np.diff(parts.X[:, column].astype(np.float64))
    within = np.ones(len(steps), dtype=bool)
    within[parts.starts[1:] - 1] = False
    steps = steps[within]
    least = max(1, (1 - _ALIKE) * len(steps))
    if (steps >= 0).all() and (steps > 0).sum() >= least:
        return True
    values = rows.X[:, column]
    n = len(values)
    if float(values.max()) - float(values.min()) > 2 * (int(rows.numbers[-1]) + 1):
        return False
    return len(np.unique(values)) >= (1 - _ALIKE) * n


def _leaks(rows: LabelledRows, unusable: np.ndarray) -> Iterator[DataFinding]:
    if len(rows.y) < _FEW_ROWS:
        return
    numbers = rows.task == "regression"
    leaks = _explains_numbers(rows) if numbers else _explains_classes(rows)
    names = rows.names(np.flatnonzero(leaks & ~unusable))
    if names:
        one = len(names) == 1
        target = "the target" if numbers else "the class of every row, or of nearly every one"
        yield DataFinding(
            "leak",
            "problem",
            f"{columns_of(names)} alone {'tells' if one else 'tell'} {target}",
            f"if {'it was' if one else 'they were'} made from the target, leave "
            f"{'it' if one else 'them'} out: choose columns with features=",
            names,
        )


def _explains_numbers(rows: LabelledRows) -> np.ndarray:
    """Which features correlate all but perfectly with the target."""
    y = rows.y.astype(np.float64)
    y = y - y.mean()
    missing = rows.domain_parts.missing
    X = rows.X if missing is None else np.where(np.isnan(rows.X), rows.mean, rows.X)
    products = y @ X  # of y about its mean, so that X need not be
    scales = rows.scales * np.sqrt(rows.present) * np.sqrt(y @ y)
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = np.where(scales > 0, products / scales, 0.0)
    return np.asarray((correlation**2 > _LEAK_OF_NUMBERS) & (rows.present > 0.5 * len(y)))


def _explains_classes(rows: LabelledRows) -> np.ndarray:
    """Which features differ between classes, and hardly within them."""
    parts = rows.class_parts
    classes = len(parts.labels)
    if classes < 2 or too_many_classes(classes, len(rows.y)) is not None:
        return np.zeros(rows.X.shape[1], dtype=bool)
    present = np.maximum(parts.present, 1)
    means = parts.sums / present
    between = (parts.present * (means - rows.mean) ** 2).sum(axis=0)
    total = rows.present * rows.scales**2
    explained = between >= _LEAK_OF_CLASSES * total
    return np.asarray((explained | _apart(parts)) & (rows.present > 0.5 * len(rows.y)))


def _apart(parts: RowParts) -> np.ndarray:
    """Whether the values of classes do not overlap, for each feature; rare classes do not count."""
    common = parts.counts >= 5
    if common.sum() < 2 or (parts.present[common] == 0).any():
        return np.zeros(parts.X.shape[1], dtype=bool)
    order = np.argsort(parts.low[common], axis=0)
    low = np.take_along_axis(parts.low[common], order, axis=0)
    high = np.take_along_axis(parts.high[common], order, axis=0)
    return np.asarray((high[:-1] < low[1:]).all(axis=0))


def _codes_of_missing(rows: LabelledRows, other: np.ndarray) -> Iterator[DataFinding]:
    parts = rows.domain_parts
    with np.errstate(invalid="ignore"):
        low = np.fmin.reduce(parts.low)
        high = np.fmax.reduce(parts.high)
        huge = (np.maximum(np.abs(low), np.abs(high)) > _HUGE) & ~other
    for column in np.flatnonzero(huge):
        (name,) = rows.names([column])
        reach = max(abs(float(low[column])), abs(float(high[column])))
        yield DataFinding(
            "huge value",
            "problem",
            f"column {name!r} reaches {reach:.0e}, which is hardly a measurement",
            _NOT_A_VALUE,
            (name,),
        )
    candidates = (np.isin(low, _CODES) | np.isin(high, _CODES)) & ~other
    for column in np.flatnonzero(candidates):
        values = rows.X[:, column]
        codes = np.isin(values, _CODES)
        rest = values[~codes & ~np.isnan(values)]
        if not codes.any() or len(rest) < 2 or codes.sum() < 2:
            continue
        code = float(values[codes][0])
        distance = min(abs(code - float(rest.min())), abs(code - float(rest.max())))
        if distance > _FAR * float(np.ptp(rest)):
            (name,) = rows.names([column])
            yield DataFinding(
                "code for missing",
                "problem",
                f"column {name!r} is {significant(code)} in {counted(int(codes.sum()), 'row')}, "
                "far from its other values",
                _NOT_A_VALUE,
                (name,),
            )


def _missing(rows: LabelledRows) -> Iterator[DataFinding]:
    n = len(rows.y)
    parts = rows.domain_parts
    share = 1 - rows.present / n
    empty = parts.present == 0
    mostly = share > 0.5
    in_domains = empty.any(axis=0) & ~mostly
    if mostly.any():
        columns = np.flatnonzero(mostly)
        columns = columns[np.argsort(-share[columns], kind="stable")]
        names = rows.names(columns)
        worst = share[columns[0]]
        yield DataFinding(
            "mostly missing",
            "caution",
            f"{columns_of(names)} {'is' if len(names) == 1 else 'are'} missing in "
            f"{'' if len(names) == 1 else 'up to '}{percentage(worst)} of the rows",
            "choose columns with features=",
            names,
        )
    if in_domains.any():
        names = rows.names(np.flatnonzero(in_domains))
        domains = [str(label) for label in parts.labels[empty[:, in_domains].any(axis=1)].tolist()]
        yield DataFinding(
            "missing in a domain",
            "caution",
            f"{columns_of(names)} {'has' if len(names) == 1 else 'have'} no value at all in "
            f"{domains_of(domains)}",
            "leave out what some domains do not measure, by choosing columns with features=: "
            "filled in, it names the domain",
            names,
            tuple(domains),
        )
    if share.any():
        names = rows.names(np.flatnonzero(share))
        yield DataFinding(
            "missing",
            "problem",
            f"missing values in {counted(len(names), 'feature')}: {some(names)}",
            "no head is fitted to them: fill them with preparation=SimpleImputer()",
            names,
        )
