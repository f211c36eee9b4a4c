"""Odd data: rows, labels and domains that a head may be given, and that hypothesis can make small.

What makes a problem odd is drawn by hypothesis one by one, so that a failure is reduced to the
oddities that it needs; the numbers themselves come from a generator that is seeded with one draw.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

import skdare

HEADS = [name for name in skdare.__all__ if name.endswith(("Classifier", "Regressor", "CV"))]
# A search over the defaults would take most of the time.
FEW = {"l2": (0.01,), "shrinkage": (0.5,), "strategies": ("erm", "raw")}
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "DARE": [
        *({"shrinkage": 0.0}, {"shrinkage": 1.0}, {"shrinkage": "ledoit-wolf"}, {"l2": 0.0}),
        *({"shrinkage": "oas"}, {"shrinkage_target": "pooled"}, {"shrinkage_target": "identity"}),
        *({"mean_penalty": 0.0}, {"mean_penalty": "exact"}, {"mean_penalty": 1e6}),
        *({"centered": True}, {"adaptation": "raw"}, {"adjust": False}, {"guess": "covariance"}),
    ],
    "Anchor": [{"adjust": True}, {"gamma": 0.0}, {"gamma": 1e6}],
    "IRM": [{"penalty": 0.0}, {"penalty": 1e4}],
    "ERM": [{"l2": 0.0}],
}
LARGE = (1e-300, 1e-150, 1e-25, 1e-8, 1e8, 1e25, 1e150, 1e300)
DTYPES = ("float64", "float32", "float16", "int64", "uint8", "bool", "longdouble", "object")
ODDITIES = (
    *("zero rows", "one repeated row", "constant column", "one domain alike", "zero domain"),
    *("huge value", "nan", "infinity", "thin", "one row", "no rows", "no columns", "one feature"),
    *("offset", "two scales", "identical columns", "lonely domain", "one domain", "subnormal"),
)
STORAGES = ("array", "Fortran", "list", "csr", "frame", "read-only", "strided")


@dataclass(frozen=True)
class Problem:
    """Rows with labels; ``told`` is how they came about, for whoever reads a failure."""

    X: Any
    y: Any
    domains: Any
    told: str

    def __repr__(self) -> str:
        return self.told


def heads(name: str, *, plain: bool = False) -> st.SearchStrategy[Any]:
    """A head of this class, with one option off its default at times."""
    few = FEW if name.endswith("CV") else {}
    family = name.removesuffix("CV").removesuffix("Classifier").removesuffix("Regressor")
    others = [] if plain or few else OPTIONS.get(family, [])
    return st.sampled_from([{}, *others]).map(lambda o: getattr(skdare, name)(**few, **o))


@st.composite
def problems(draw: Any, task: str, features: int | None = None) -> Problem:
    """Rows of any shape, size, type and degeneracy."""
    seed = draw(st.integers(0, 999))
    n = draw(st.integers(2, 40))
    d = features or draw(st.integers(1, 6))
    scale = draw(st.one_of(st.just(1.0), st.sampled_from(LARGE)))
    odd = draw(st.lists(st.sampled_from(ODDITIES), max_size=2, unique=True))
    dtype = draw(st.one_of(st.just("float64"), st.sampled_from(DTYPES)))
    storage = draw(st.one_of(st.just("array"), st.sampled_from(STORAGES)))
    labels = draw(st.sampled_from(LABELS[task]))
    naming = draw(st.sampled_from(sorted(NAMINGS)))
    rng = np.random.default_rng(seed)
    domains = rng.integers(0, 3, n)
    X = rng.normal(size=(n, d)) + rng.normal(size=(3, d))[domains]
    y = X[:, 0] + rng.normal(size=n)
    X, y, domains = _made_odd(X, y, domains, odd, rng)
    told = f"Problem(seed={seed}, n={n}, d={d}, scale={scale}, odd={odd}, dtype={dtype!r}, "
    told += f"storage={storage!r}, labels={labels!r}, naming={naming!r})"
    with np.errstate(all="ignore"):
        rows = _stored((X * scale).astype(dtype), storage)
        named = [NAMINGS[naming](domain) for domain in domains.tolist()]
        return Problem(rows, labelled(y, labels), named, told)


def _made_odd(
    X: np.ndarray, y: np.ndarray, domains: np.ndarray, odd: list[str], rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    n, d = X.shape
    i, j, some = int(rng.integers(n)), int(rng.integers(d)), rng.random(n) < 0.5
    for what in odd:
        if what == "zero rows":
            X[some] = 0.0
        elif what == "one repeated row":
            X[:] = X[i % len(X)]
        elif what == "constant column":
            X[:, j] = 3.0
        elif what == "one domain alike":
            X[domains == domains[0]] = X[0]
        elif what == "zero domain":
            X[domains == domains[0]] = 0.0
        elif what == "huge value":
            X[i, j] = rng.choice([1e10, 1e100, -1e200, 1e308])
        elif what == "nan":
            X[i, j] = np.nan
        elif what == "infinity":
            X[i, j] = -np.inf
        elif what == "thin":
            X = np.hstack([X, rng.normal(size=(len(X), 60))])
        elif what == "offset":
            X += 1e7
        elif what == "two scales":
            X[:, j] *= 1e-12
        elif what == "identical columns":
            X[:] = X[:, :1]
        elif what == "lonely domain":
            domains[0] = 9
        elif what == "one domain":
            domains[:] = 1
        elif what == "subnormal":
            X *= 5e-324 / max(np.abs(X).min(), 1e-300)
    # What changes the shape comes last.
    columns = {"no columns": 0, "one feature": 1}
    rows = {"one row": 1, "no rows": 0}
    width = min([X.shape[1], *(columns[what] for what in odd if what in columns)])
    length = min([n, *(rows[what] for what in odd if what in rows)])
    return X[:length, :width], y[:length], domains[:length]


def _stored(X: np.ndarray, storage: str) -> Any:
    if storage == "list":
        return X.tolist()
    if storage == "csr" and X.dtype.kind in "f" and X.dtype.itemsize in (4, 8):
        return sparse.csr_array(X)
    if storage == "frame":
        import pandas

        return pandas.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])])
    if storage == "Fortran":
        return np.asfortranarray(X)
    if storage == "strided":
        return np.repeat(X, 2, axis=0)[::2]
    if storage == "read-only":
        X.setflags(write=False)
    return X


LABELS = {
    "classification": ("two", "three", "text", "bool", "rare", "one class", "floats", "huge codes"),
    "regression": ("numbers", "whole", "constant", "large", "small", "with nan", "float32", "wide"),
}
NAMINGS = {
    "numbers": lambda domain: domain,
    "text": lambda domain: f"plate {domain}",
    "unicode": lambda domain: "é☃\n"[:1] * (domain + 1),
    "floats": lambda domain: domain + 0.5,
    "pairs": lambda domain: ("plate", domain),
    "mixed": lambda domain: [2.5, "sketch", ("a", 1), True, None][domain % 4],
    "empty text": lambda domain: "x" * domain,
}


def labelled(y: np.ndarray, labels: str) -> Any:
    """Targets of a kind, from numbers."""
    signs, thirds = y > 0, np.digitize(y, [-0.5, 0.5])
    made = {
        "two": lambda: signs.astype(int),
        "three": lambda: thirds,
        "text": lambda: np.array(["no", "yes, ☃", ""])[thirds],
        "bool": lambda: signs,
        "rare": lambda: (np.arange(len(y)) == 0).astype(int),
        "one class": lambda: np.zeros(len(y), int),
        "floats": lambda: signs * 2.0,
        "huge codes": lambda: np.where(signs, 2**62, -(2**62)),
        "numbers": lambda: y,
        "whole": lambda: np.round(y).astype(int),
        "constant": lambda: np.full(len(y), 2.0),
        "large": lambda: y * 1e200,
        "small": lambda: y * 1e-200,
        "with nan": lambda: np.where(np.arange(len(y)) == 1, np.nan, y),
        "float32": lambda: y.astype(np.float32),
        "wide": lambda: np.where(np.arange(len(y)) == 0, 1e308, y),
    }
    return made[labels]()


@st.composite
def fair_problems(draw: Any, task: str) -> Problem:
    """Rows that nothing is wrong with: several domains with more rows than features, each of them
    with every class."""
    seed = draw(st.integers(0, 999))
    sizes = draw(st.lists(st.integers(25, 60), min_size=2, max_size=4))
    d = draw(st.integers(1, 5))
    k = draw(st.sampled_from([2, 3]))
    rng = np.random.default_rng(seed)
    domains = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    means = rng.normal(size=(len(sizes), d))
    spreads = np.exp(0.3 * rng.normal(size=(len(sizes), d)))
    X = rng.normal(size=(len(domains), d)) * spreads[domains] + means[domains]
    scores = X @ rng.normal(size=(d, k)) + 2.0 * rng.gumbel(size=(len(X), k))
    y = scores[:, 0] if task == "regression" else scores.argmax(axis=1)
    for e in range(len(sizes)) if task != "regression" else ():
        y[np.flatnonzero(domains == e)[:k]] = np.arange(k)
    told = f"fair(seed={seed}, sizes={sizes}, d={d}, k={k})"
    return Problem(X, y, domains, told)
