"""Oddities of a table: one function each, which yields its findings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from skdare.checking.sorted_table import SortedTable
from skdare.data.domain_data import FEW_VALUES
from skdare.data.roles import ENCODING, is_classes, may_be_domains, with_reasons
from skdare.errors import counted, listed, quoted

LEVELS = ("problem", "caution", "note")
"""Results will be wrong; results may mislead; good to know."""

# Fewer rows of a domain give a poor mean, and no covariance.
_FEW_ROWS = 10
# Rows of a class that a domain lacks, expected from its share elsewhere, to be reported.
_EXPECTED = 3.0
# Class shares are compared between domains of this many rows; by how much they must differ.
_ROWS_FOR_SHARES = 20
_DIFFERENT_SHARES = 0.2
# Ratio of the largest to the median scale from which heads are fitted to standardised rows.
_WIDE = 100.0
# Numbers that stand for a missing value if they are far from all others.
_CODES = [s * (10.0**k - 1) for k in range(3, 7) for s in (-1, 1)]
_FAR = 5.0
# With fewer rows a feature may determine the target by chance.
_ENOUGH = 50
_LEAK = 0.998
_LEAK_OF_CLASSES = 0.98
# Share of a domain's variance in two rows from which they determine its moments.
_OWNED = 0.5
_WHOLLY_OWNED = 0.9
# With fewer features rows may be alike by chance.
_FEATURES_FOR_COPIES = 5
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}")


@dataclass(frozen=True)
class Finding:
    """Something odd: how bad it is, what it is, and what to do about it."""

    level: str
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.level}: {self.what}\n  {self.remedy}"


Findings = Iterator[Finding]


def one_domain(table: SortedTable) -> Findings:
    if len(table.domains) > 1:
        return
    data = table.data
    where = f", {quoted(table.domains[0])}" if data.domains is not None else ""
    likely = may_be_domains(data.ids)
    yield Finding(
        "problem",
        f"all rows are of one domain{where}, so nothing shows what a new one is like",
        "name the column that says where each row came from: "
        + (f"domains={_given(likely[0])}" if likely else "domains="),
    )


def small_domains(table: SortedTable) -> Findings:
    small = table.domains[table.sizes < _FEW_ROWS]
    if len(small) and len(table.domains) > 1:
        yield Finding(
            "caution",
            f"{_some(len(small), len(table.domains))} fewer than {_FEW_ROWS} rows: "
            f"{listed(small, 4)}",
            "merge small domains, or leave their rows out",
        )


def wide_domains(table: SortedTable) -> Findings:
    d = table.X.shape[1]
    wide = (table.sizes < d) & (table.sizes >= _FEW_ROWS)
    if wide.any():
        yield Finding(
            "note",
            f"{_some(int(wide.sum()), len(table.domains))} fewer rows than the {d:,} features",
            "nothing to do: shrinkage takes care of it",
        )


def one_target(table: SortedTable) -> Findings:
    y = table.data.y
    if (y == y[0]).all():
        yield Finding(
            "problem",
            f"every row has the target {quoted(y[0])}, so there is nothing to learn",
            "name another target, or add rows of other classes",
        )


def too_many_classes(table: SortedTable) -> Findings:
    n, k = len(table.data.y), len(table.classes)
    if table.is_classification and k > max(FEW_VALUES, n / 4):
        numbers = table.data.y.dtype.kind in "iuf"
        yield Finding(
            "problem",
            f"the target has {k:,} classes in {n:,} rows",
            "name another target" + (", or give task=regression" if numbers else ""),
        )


def classes_of_domains(table: SortedTable) -> Findings:
    """Domains of one class, domains that lack one, and shares that differ."""
    counts, k = table.counts, table.counts.shape[1]
    if not table.is_classification or k < 2 or len(table.domains) < 2:
        return
    if ((counts > 0).sum(axis=1) == 1).all():
        yield Finding(
            "problem",
            "every domain has rows of one class only, so classes cannot be separated from domains",
            "name another column of domains, or add rows of other classes",
        )
        return
    sizes = counts.sum(axis=1, keepdims=True)
    shares = counts / sizes
    lacking = (counts == 0) & (shares.mean(axis=0) * sizes >= _EXPECTED)
    if lacking.any():
        some = np.flatnonzero(lacking.any(axis=1))
        absent = table.classes[np.flatnonzero(lacking[some[0]])[0]]
        more = len(some) - 1
        others = f", and {counted(more, 'more domain')} {'lack' if more > 1 else 'lacks'} a class"
        others = others if more else ""
        yield Finding(
            "caution",
            f"domain '{table.domains[some[0]]}' has no row of class '{absent}'{others}",
            "adapting assumes that a domain has all classes, and may lose there: see the bench",
        )
    large = sizes[:, 0] >= _ROWS_FOR_SHARES
    if large.sum() < 2:
        return
    shares, sizes, names = shares[large], sizes[large, 0], table.domains[large]
    distance = 0.5 * np.abs(shares - shares.mean(axis=0)).sum(axis=1)
    if (distance > _DIFFERENT_SHARES + 0.5 * np.sqrt(k / sizes)).any():
        c = int(np.ptp(shares, axis=0).argmax())
        low, high = int(shares[:, c].argmin()), int(shares[:, c].argmax())
        yield Finding(
            "caution",
            f"class shares differ between domains: '{table.classes[c]}' is "
            f"{100 * shares[low, c]:.0f} % of '{names[low]}' and {100 * shares[high, c]:.0f} % of "
            f"'{names[high]}'",
            "adapting may lose there; the bench shows on which domains it does",
        )


def shared_groups(table: SortedTable) -> Findings:
    data = table.data
    if data.groups is None or data.domains is None:
        return
    groups, codes = np.unique(data.groups, return_inverse=True)
    domains = np.unique(data.domains, return_inverse=True)[1]
    pairs = np.unique(codes * len(table.domains) + domains)
    shared = int((np.bincount(pairs // len(table.domains)) > 1).sum())
    if shared and data.groups_tie_all_domains:
        yield Finding(
            "caution",
            f"{shared:,} of {counted(len(groups), 'group')} in several domains tie all domains "
            "together, and a strategy cannot be chosen without rows of a group on both sides",
            "leave groups out for fitting; the bench never trains on a group that it scores",
        )
    elif shared:
        yield Finding(
            "note",
            f"{shared:,} of {counted(len(groups), 'group')} in several domains",
            "nothing to do: no group is ever on both sides of a split",
        )


def leaks(table: SortedTable) -> Findings:
    """Features that determine the target."""
    if len(table.X) < _ENOUGH or (table.is_classification and table.counts.shape[1] < 2):
        return
    Z, total = table.centred, table.spread**2 * table.present
    if table.is_classification:
        k = len(table.classes)
        if k > len(table.X) / 4:
            return
        order = np.argsort(table.y, kind="stable")
        starts = np.searchsorted(table.y[order], np.arange(k))
        starts = starts[starts < len(order)]
        sizes = np.diff([*starts, len(order)])
        sums = np.add.reduceat(Z[order], starts, axis=0)
        explained = (sums**2 / sizes[:, None]).sum(axis=0)
        leaking = explained >= _LEAK_OF_CLASSES * total
        common = sizes >= 5
        if common.sum() > 1:  # classes whose values do not overlap, however far they spread
            low = np.fmin.reduceat(table.X[order], starts, axis=0)[common]
            high = np.fmax.reduceat(table.X[order], starts, axis=0)[common]
            places = np.argsort(low, axis=0)
            low, high = (np.take_along_axis(ends, places, axis=0) for ends in (low, high))
            with np.errstate(invalid="ignore"):
                leaking |= (high[:-1] < low[1:]).all(axis=0)
    else:
        y = table.y - table.y.mean()
        explained = (y @ Z) ** 2
        leaking = explained > _LEAK * total * (y @ y)
    leaking &= table.usual & (table.present > 0.5 * len(table.X))
    if leaking.any():
        names = table.names(leaking)
        yield Finding(
            "problem",
            f"{_columns(names)} alone determine{'s' * (len(names) == 1)} the target",
            f"if made from the target, leave it out: drop={_given(names[0])}",
        )


def no_features(table: SortedTable) -> Findings:
    """Features that count or name rows, or are constant within every domain."""
    endings = {
        "is called like an id": ("is called like an id", "are called like ids"),
        "counts the rows": ("counts the rows", "count the rows"),
        "repeats the domain": (
            "is constant within every domain, and says nothing about rows of a new one",
            "are constant within every domain, and say nothing about rows of a new one",
        ),
    }
    for reason, (one, several) in endings.items():
        names = [name for name, why in table.no_features.items() if why == reason]
        if names:
            yield Finding(
                "problem",
                f"{_columns(names)} {one if len(names) == 1 else several}",
                f"leave it out: drop={_given(names[0])}",
            )


def left_out(table: SortedTable) -> Findings:
    reasons = {name: why for name, why in table.data.left_out.items() if why != "is text"}
    if reasons:
        yield Finding(
            "note",
            f"left out of the features: {with_reasons(reasons)}",
            f"nothing to do; keep={next(iter(reasons))} uses it all the same",
        )


def text(table: SortedTable) -> Findings:
    """Columns of text that would be features if they were numbers: classes, and dates."""
    names = [name for name, why in table.data.left_out.items() if why == "is text"]
    classes = [name for name in names if is_classes(table.data.ids[name])]
    dates = [name for name in names if _DATE.match(str(table.data.ids[name][0]))]
    if classes := [name for name in classes if name not in dates]:
        yield Finding(
            "note",
            f"{_columns(classes)} {'is' if len(classes) == 1 else 'are'} text, and not used",
            f"to use text as a feature, encode it as numbers, {ENCODING}",
        )
    if dates:
        yield Finding(
            "note",
            f"{_columns(dates)} {'has' if len(dates) == 1 else 'have'} dates, and "
            f"{'is' if len(dates) == 1 else 'are'} not used",
            "nothing to do; if the season or the hour matters, add it as a number",
        )


def codes_of_missing(table: SortedTable) -> Findings:
    """Codes of missing values, such as -999, and numbers that are not measurements."""
    low, high = np.fmin.reduce(table.low), np.fmax.reduce(table.high)
    for j in np.flatnonzero(table.huge):
        reach = max(abs(low[j]), abs(high[j]))
        yield Finding(
            "problem",
            f"{_columns(table.names([j]))} reaches {reach:.0e}, which is hardly a measurement",
            "if it stands for a missing value, leave those cells empty",
        )
    for j in np.flatnonzero(np.isin(low, _CODES) | np.isin(high, _CODES)):
        values = table.X[:, j]
        coded = np.isin(values, _CODES)
        others = values[~coded & ~np.isnan(values)]
        if coded.sum() < 2 or len(others) < 2:
            continue
        code = float(values[coded][0])
        if min(abs(code - others.min()), abs(code - others.max())) > _FAR * np.ptp(others):
            yield Finding(
                "problem",
                f"{_columns(table.names([j]))} is {code:g} in {counted(int(coded.sum()), 'row')}, "
                "far from its other values",
                "if it stands for a missing value, leave those cells empty",
            )


def constant_in_a_domain(table: SortedTable) -> Findings:
    """One whole number in all rows of a domain, far from the values elsewhere."""
    fixed = (table.low == table.high) & (table.low == np.floor(table.low)) & table.usual
    fixed &= (table.seen >= _FEW_ROWS)[:, None] & (table.missing < table.seen[:, None])
    places: list[tuple[int, int]] = []
    for j in np.flatnonzero(fixed.any(axis=0)).tolist():
        e = int(np.flatnonzero(fixed[:, j])[0])
        values = table.X[:, j]
        others = values[(values != table.low[e, j]) & ~np.isnan(values)]
        elsewhere = (values == table.low[e, j]).sum() - table.seen[e]
        if len(others) < _FEW_ROWS or elsewhere > 0.5 * (len(values) - table.seen[e]):
            continue
        # Outside Tukey's fences: a cholesterol of 0 is, a blank pixel is not.
        q1, q3 = np.quantile(others, (0.25, 0.75))
        if q3 > q1 and not q1 - 1.5 * (q3 - q1) <= table.low[e, j] <= q3 + 1.5 * (q3 - q1):
            places.append((e, j))
    if places:
        e, j = places[0]
        more = f", and {counted(len(places) - 1, 'other column')} with one value in some domain"
        more = more if len(places) > 1 else ""
        yield Finding(
            "caution",
            f"{_columns(table.names([j]))} is {table.low[e, j]:g} in every row of domain "
            f"'{table.domains[e]}'{more}",
            "if it stands for a missing value, leave those cells empty",
        )


def missing_values(table: SortedTable) -> Findings:
    if not table.has_missing:
        return
    n = len(table.X)
    share = table.missing.sum(axis=0) / n
    mostly = share > 0.5
    if mostly.any():
        names = table.names(np.flatnonzero(mostly)[np.argsort(-share[mostly], kind="stable")])
        yield Finding(
            "caution",
            f"{_columns(names)} {'is' if len(names) == 1 else 'are'} empty in up to "
            f"{100 * share.max():.0f} % of the rows",
            f"consider leaving out what is not needed: drop={_given(names[0])}",
        )
    empty = (table.missing == table.seen[:, None]) & ~mostly
    if empty.any():
        names = table.names(empty.any(axis=0))
        where = listed(table.domains[empty.any(axis=1)], 3)
        yield Finding(
            "caution",
            f"{_columns(names)} {'has' if len(names) == 1 else 'have'} no value at all in {where}",
            f"once filled in it identifies the domain; leave it out: drop={_given(names[0])}",
        )
    total = int(table.missing.sum())
    yield Finding(
        "note",
        f"{total:,} of {table.X.size:,} values are missing, in "
        f"{counted(int((share > 0).sum()), 'feature')}",
        "nothing to do: they are filled with the median of the training rows",
    )


def wide_scales(table: SortedTable) -> Findings:
    varying = np.flatnonzero((table.spread > 0) & ~table.constant)
    if len(varying) < 2:
        return
    largest = varying[table.spread[varying].argmax()]
    ratio = table.spread[largest] / np.median(table.spread[varying])
    if ratio > _WIDE:
        yield Finding(
            "note",
            f"the spread of '{table.names([largest])[0]}' is {ratio:,.0f} times the median one",
            "nothing to do: features are standardised before a fit where scales differ so much",
        )


def constant_features(table: SortedTable) -> Findings:
    constant = table.constant & (table.present > 0)
    if constant.any():
        names = table.names(constant)
        yield Finding(
            "note",
            f"{_columns(names)} {'has' if len(names) == 1 else 'have'} one value in all rows",
            "nothing to do: a head gives it no weight",
        )


def outliers(table: SortedTable) -> Findings:
    """Two rows that hold most of a domain's variance."""
    varying = table.spread[table.spread > 0]
    unit = np.ones(table.X.shape[1])
    if len(varying) > 1 and varying.max() > _WIDE * np.median(varying):
        # As for heads, in units of the median spread within domains, which no outlier inflates.
        within = np.median(table.spread_within, axis=0)
        usual = np.where(table.spread > 0, table.spread, 1.0)
        unit = np.where(within > 1e-6 * usual, within, usual)  # what is less is rounding
    worst: tuple[float, int, int, int] | None = None
    domains = []
    for e in np.flatnonzero(table.seen >= 2 * _FEW_ROWS).tolist():
        Z = table.X[table.part(e)] - table.mean_within[e]
        Z[np.isnan(Z)] = 0.0
        Z[:, table.huge] = 0.0
        Z /= unit
        squares = np.einsum("ij,ij->i", Z, Z)
        total = squares.sum()
        share = np.sort(squares)[-2:].sum() / total if total > 0 else 0.0
        if share > _OWNED:
            domains.append(e)
            row = int(squares.argmax())
            column = int(np.abs(Z[row]).argmax())
            worst = max(worst or (0.0, 0, 0, 0), (float(share), row, column, e))
    if worst is None:
        return
    share, row, column, e = worst
    place = table.starts[e] + row
    more = f"; so in {counted(len(domains) - 1, 'other domain')}" if len(domains) > 1 else ""
    yield Finding(
        "problem" if share > _WHOLLY_OWNED else "caution",
        f"two rows hold {100 * share:.0f} % of the variance of domain '{table.domains[e]}': row "
        f"{table.places[place] + 1:,} has {table.X[place, column]:.3g} in column "
        f"'{table.names([column])[0]}'{more}",
        "correct that value, or leave the row out",
    )


def copies(table: SortedTable) -> Findings:
    """Rows with the same features, in one domain or in several."""
    n, d = table.X.shape
    if d < _FEATURES_FOR_COPIES or n < 2:
        return
    # Sums of products modulo 2⁶⁴ with odd factors: equal rows share one, others hardly ever.
    words = (table.X + 0.0).view(np.uint64)
    factors = 2 * np.random.default_rng(0).integers(1 << 62, size=d, dtype=np.uint64) + 1
    digests = ((words ^ (words >> np.uint64(29))) * factors).sum(axis=1)
    _, kind, times = np.unique(digests, return_inverse=True, return_counts=True)
    codes = np.repeat(np.arange(len(table.domains)), table.seen)
    first, last = np.full(len(times), len(codes)), np.full(len(times), -1)
    np.minimum.at(first, kind, codes)
    np.maximum.at(last, kind, codes)
    again = times[kind] > 1
    across = int((again & (first < last)[kind]).sum())
    within = int(again.sum()) - across
    if across > 0.001 * n:
        yield Finding(
            "caution",
            f"{counted(across, 'row')} of {n:,} have the same features as a row of another domain, "
            "and a head that has seen them there scores too well",
            "leave them out of one of the domains",
        )
    if within > 0.01 * n:
        yield Finding(
            "note",
            f"{counted(within, 'row')} of {n:,} have the same features as another row of their "
            "domain",
            "leave the copies out if they are not separate measurements",
        )


FINDINGS: tuple[Callable[[SortedTable], Findings], ...] = (
    *(one_domain, one_target, too_many_classes, classes_of_domains, shared_groups),
    *(small_domains, leaks, no_features, codes_of_missing, constant_in_a_domain, outliers),
    *(copies, missing_values, wide_domains, wide_scales, constant_features, left_out, text),
)


def _given(name: str) -> str:
    """A name as the value of an argument."""
    return name if name.isidentifier() else quoted(name)


def _columns(names: list[str]) -> str:
    return f"column{'s' * (len(names) > 1)} {listed(names, 3)}"


def _some(few: int, all_of_them: int) -> str:
    if few == all_of_them > 1:
        return f"all {few:,} domains have"
    return f"{few:,} of {all_of_them:,} domains {'has' if few == 1 else 'have'}"
