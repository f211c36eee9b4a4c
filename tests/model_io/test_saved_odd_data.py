"""What fits odd data can be saved, loaded, and used to the bit; what cannot be fitted says why."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import skdare

HEADS = [name for name in skdare.__all__ if name.endswith(("Classifier", "Regressor", "CV"))]
# The same examples in every run; how long one takes depends on the machine.
FIXED = settings(
    derandomize=True,
    max_examples=25,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
COLUMNS = ("varies", "constant", "zero", "jumps", "offset")
DOMAINS = ("varies", "one row", "zeros", "tiny")
OPTIONS = (
    {},
    {"centered": True, "adaptation": "centered"},
    {"shrinkage_target": "pooled"},
    {"shrinkage": 0.0, "centered": True},
    {"shrinkage": "ledoit-wolf"},
    {"adjust": False},
)


@st.composite
def features(draw) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a few domains, of any unit, some columns and domains with nothing in them."""
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    domains, rows = draw(st.integers(1, 4)), draw(st.integers(2, 12))
    d = draw(st.integers(1, 20))
    scale = 10.0 ** draw(st.floats(-30, 30))
    X = rng.normal(size=(domains, rows, d)) + rng.normal(size=(domains, 1, d))
    for e in range(domains):
        kind = draw(st.sampled_from(DOMAINS))
        if kind == "one row":
            X[e] = X[e, 0]
        elif kind != "varies":
            X[e] *= 0.0 if kind == "zeros" else 1e-20
    for j in range(d):
        kind = draw(st.sampled_from(COLUMNS)) if draw(st.booleans()) else "varies"
        if kind in ("constant", "zero"):
            X[:, :, j] = 1.1 if kind == "constant" else 0.0
        elif kind in ("jumps", "offset"):
            X[0, 0, j] += 1e8 if kind == "jumps" else 0.0
            X[:, :, j] += 1e8 if kind == "offset" else 0.0
    X = (scale * X).reshape(domains * rows, d)
    dtype = draw(st.sampled_from([np.float64, np.float32]))
    with np.errstate(over="ignore"):
        return X.astype(dtype), np.repeat(np.arange(domains), rows)


ODD_TEXT = st.text(st.characters(codec=None), min_size=1, max_size=8)
LABELS = st.one_of(
    st.lists(ODD_TEXT, min_size=2, max_size=6, unique=True).map(
        lambda names: np.array(names, dtype=object)
    ),
    st.lists(st.integers(-(2**62), 2**62), min_size=2, max_size=6, unique=True).map(np.array),
    st.lists(st.dates(), min_size=2, max_size=6, unique=True).map(
        lambda days: np.array(days, dtype="datetime64[D]")
    ),
    st.integers(2, 40).map(lambda k: np.array([*(f"c{i}" for i in range(k - 1)), "x" * 20_000])),
    st.just(np.array([False, True])),
    st.sampled_from([np.float32, np.int8, np.uint64]).map(lambda dtype: np.arange(3).astype(dtype)),
)
NAMES = st.one_of(
    ODD_TEXT,
    st.integers(),
    st.dates(),
    st.datetimes(),
    st.floats(allow_nan=False),
    st.tuples(st.integers(), ODD_TEXT),
)


def arithmetic_is_right(heard) -> None:
    for one in heard:
        assert not issubclass(one.category, RuntimeWarning), one.message


@pytest.mark.parametrize("name", HEADS)
@FIXED
@given(data=st.data())
def test_what_fits_saves_loads_predicts_and_adapts_to_the_bit(name, data):
    X, numbers = data.draw(features())
    rng = np.random.default_rng(len(X))
    if "Classifier" in name:
        labels = data.draw(LABELS)
        y = labels[rng.integers(0, len(labels), len(X))]
    else:
        y = 10.0 ** data.draw(st.floats(-120, 120)) * (X[:, 0] * 0.0 + rng.normal(size=len(X)))
    names = data.draw(st.lists(NAMES, min_size=4, max_size=4, unique_by=repr))
    domains = [names[e] for e in numbers]
    options = data.draw(st.sampled_from(OPTIONS)) if name in ADJUSTED else {}
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        head = getattr(skdare, name)(**options)
        try:
            head.fit(X, y, domains=domains)
        except ValueError as error:
            assert len(str(error)) > 20  # noqa: PT017
            return
        assert np.isfinite(head.coef_).all()
        assert np.isfinite(head.intercept_).all()
        with tempfile.TemporaryDirectory() as folder:
            is_the_same_after_saving(head, X, Path(folder))
    arithmetic_is_right(heard)


ADJUSTED = ("DAREClassifier", "DARERegressor")


def is_the_same_after_saving(head, X, folder: Path) -> None:
    head.save(folder / "head")
    again = skdare.load(folder / "head")
    np.testing.assert_array_equal(again.predict(X), head.predict(X))
    assert again.predict(X).dtype.kind == head.predict(X).dtype.kind
    assert again.domains_ == head.domains_
    if not hasattr(head, "adapt") or head._domain_fit.adaptation is None:
        return
    try:
        adapted = head.adapt(X)
    except ValueError as error:
        with pytest.raises(type(error)):
            again.adapt(X)
        return
    assert np.isfinite(adapted.coef_).all()
    np.testing.assert_array_equal(again.adapt(X).coef_, adapted.coef_)
    adapted.save(folder / "adapted")
    np.testing.assert_array_equal(skdare.load(folder / "adapted").predict(X), adapted.predict(X))
    adapter = head.adapter().partial_fit(X)
    adapter.save(folder / "adapter")
    np.testing.assert_array_equal(again.resume(folder / "adapter").head_.coef_, adapter.head_.coef_)
