"""Adapting to unlabelled rows: a new head from rows in any chunks, the old one untouched."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import paper_formulas as paper
import skdare
from domain_problems import assert_same_bits, assert_same_head, make_problem
from new_domains import (
    ADAPTATIONS,
    classes_of_domains,
    fitted,
    moved_domains,
    new_rows,
    rows_of_a_domain,
    training,
)
from skdare import DAREClassifier, DAREClassifierCV, DARERegressor, ERMClassifier
from skdare.data import make_latent_domains

HEADS = [
    *(("classification", adaptation) for adaptation in ADAPTATIONS),
    *(("regression", adaptation) for adaptation in ADAPTATIONS[:3]),
]
every_head = pytest.mark.parametrize(("task", "adaptation"), HEADS)


def fed(adapter, X, sizes, y=None):
    """The adapter after X in chunks of these sizes, over and over."""
    start = i = 0
    while start < len(X):
        part = slice(start, start + sizes[i % len(sizes)])
        adapter.partial_fit(X[part], None if y is None else y[part])
        start, i = part.stop, i + 1
    return adapter


# -- The formula ---------------------------------------------------------------------------------


@pytest.mark.parametrize("prior_rows", [0.0, 20.0])
@pytest.mark.parametrize("adaptation", ["raw", "centered", "covariance"])
@pytest.mark.parametrize("task", ["classification", "binary"])
def test_adapting_whitens_the_new_rows_by_their_own_moments(task, adaptation, prior_rows):
    problem, new, _ = make_problem(task).without("west")
    centered = adaptation != "raw"
    whitening = {"shrinkage": 0.3, "shrinkage_target": "scaled", "centered": centered}
    domains, targets = problem.parts()
    roots = paper.adjustments(domains, **whitening)
    shifts = [X.mean(axis=0) * (adaptation == "centered") for X in domains]
    rows = [(X - m) @ W for X, m, W in zip(domains, shifts, roots, strict=True)]
    weight = np.concatenate([np.full(len(y), 0.5 / len(y)) for y in targets])
    ridge = paper.ridge(domains, 0.01, shrinkage_target="scaled", centered=centered)
    stacked = np.concatenate(rows), np.concatenate(targets), weight
    coef, b = paper.logistic_regression(*stacked, ridge, intercept=True)
    [own] = paper.adjustments([new], **whitening)
    trust = len(new) / (len(new) + prior_rows)
    V = (trust * own + (1 - trust) * np.mean(roots, axis=0)) @ coef.T
    if adaptation == "centered":
        b = b - (trust * new.mean(axis=0) + (1 - trust) * np.mean(shifts, axis=0)) @ V
    head = DAREClassifier(shrinkage=0.3, adaptation=adaptation, tol=1e-9, max_iter=5000)
    adapted = problem.fit(head).adapt(new, prior_rows=prior_rows)
    np.testing.assert_allclose(adapted.coef_.T, V, rtol=0, atol=1e-4)
    centre = b.mean() if len(b) > 1 else 0.0
    ours = adapted.intercept_ - (adapted.intercept_.mean() if len(b) > 1 else 0.0)
    np.testing.assert_allclose(ours, b - centre, rtol=0, atol=1e-3)


@pytest.mark.parametrize("n", [2, 10, 60])
def test_few_rows_move_a_head_only_part_of_the_way(n):
    problem = make_problem("classification")
    head = problem.fit(DAREClassifier(adaptation="centered"))
    X = problem.X[problem.rows("west")][:n]
    moved = head.adapt(X).coef_ - head.coef_
    whole = head.adapt(X, prior_rows=0).coef_ - head.coef_
    assert 0 < np.linalg.norm(moved) < np.linalg.norm(whole)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_with_many_prior_rows_the_average_adjustment_stays(task):
    options = {"centered": True, "adaptation": "centered", "mean_penalty": 1.0, "guess": "mean"}
    head = fitted(task, **options)
    X, _ = new_rows(task)
    average = head.adjustment_.apply(np.eye(X.shape[1]))
    far = head.adapt(X, prior_rows=1e12).adjustment_.apply(np.eye(X.shape[1]))
    own = head.adapt(X, prior_rows=0).adjustment_.apply(np.eye(X.shape[1]))
    np.testing.assert_allclose(far, average, atol=1e-8)
    assert np.abs(own - average).max() > 1e-2


def test_the_covariance_undoes_the_latent_model():
    data = make_latent_domains(4, 2000, 6, shift=1.0, random_state=3)
    new = data.domains == 0
    head = DAREClassifier(adaptation="covariance", shrinkage=0.0, l2=1e-6)
    head.fit(data.X[~new], data.y[~new], domains=data.domains[~new])
    X, y = data.X[new], data.y[new]
    oracle = LogisticRegression(C=1e6, max_iter=1000).fit(X, y).score(X, y)
    assert head.score(X, y) < oracle - 0.01
    assert head.adapt(X, prior_rows=0).score(X, y) > oracle - 0.015


# -- The head itself, order, chunks, storage -----------------------------------------------------


@every_head
def test_adapting_leaves_the_head_and_the_rows_untouched(task, adaptation):
    head = fitted(task, adaptation=adaptation)
    X, _ = new_rows(task)
    before, rows = pickle.dumps(head), X.copy()
    adapted = head.adapt(X)
    assert type(adapted) is type(head)
    assert adapted.adapted_rows_ == len(X)
    assert adapted.labelled_rows_ is None
    assert head.adapted_rows_ is None
    assert adapted.get_params() == head.get_params()
    assert np.abs(adapted.coef_ - head.coef_).max() > 1e-3
    assert pickle.dumps(head) == before
    np.testing.assert_array_equal(X, rows)


@pytest.mark.parametrize("half_life", [None, 30.0])
@pytest.mark.parametrize("sizes", [[1], [1, 2, 30, 57], [7, 300]], ids=str)
@pytest.mark.parametrize("n", [20, 700])
@every_head
def test_a_stream_in_any_chunks_is_adapted_to_as_at_once(task, adaptation, n, sizes, half_life):
    if n == 700 and sizes == [1] and adaptation != "raw":
        pytest.skip("one adaptation is enough for a long stream of single rows")
    head = fitted(task, adaptation=adaptation)
    X = rows_of_a_domain(n, 9)
    whole = head.adapter(half_life=half_life).partial_fit(X).head_
    adapter = fed(head.adapter(half_life=half_life), X, sizes)
    assert adapter.n_seen_ == n
    assert_same_head(adapter.head_, whole, rtol=1e-10)
    if half_life is None:
        assert_same_head(whole, head.adapt(X), rtol=1e-12)


@every_head
def test_the_order_of_the_rows_does_not_matter(task, adaptation):
    head = fitted(task, adaptation=adaptation)
    X, _ = new_rows(task)
    order = np.random.default_rng(0).permutation(len(X))
    assert_same_head(head.adapt(X[order]), head.adapt(X), rtol=1e-9)


@every_head
def test_rows_may_be_stored_in_any_library(task, adaptation):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    head = fitted(task, adaptation=adaptation)
    X, _ = new_rows(task)
    expected = head.adapt(X)
    adapter = head.adapter().partial_fit(X[:20]).partial_fit(torch.from_numpy(X[20:50]))
    adapter.partial_fit(sparse.csr_array(X[50:70])).partial_fit(np.asfortranarray(X[70:]))
    for adapted in (
        head.adapt(torch.from_numpy(X)),
        head.adapt(sparse.csr_matrix(X)),
        adapter.head_,
    ):
        assert_same_head(adapted, expected, rtol=1e-9)
    single = head.adapt(X.astype(np.float32))
    assert_same_head(single, expected, rtol=1e-3)


def test_the_caller_may_use_one_buffer_for_every_chunk():
    head = fitted()
    X, _ = new_rows()
    buffer = np.empty((9, X.shape[1]))
    adapter = head.adapter()
    for chunk in np.split(X, 10):
        buffer[:] = chunk
        adapter.partial_fit(buffer)
    assert_same_head(adapter.head_, head.adapt(X), rtol=1e-12)


@pytest.mark.parametrize("size", [100, 1024])
def test_float32_chunks_keep_their_digits_beside_a_large_mean(size):
    X = (rows_of_a_domain(2000, 9) + 1000.0).astype(np.float32)
    head = fitted(adaptation="centered")
    exact = head.adapt(X.astype(np.float64), prior_rows=0)
    streamed = fed(head.adapter(prior_rows=0), X, [size]).head_
    np.testing.assert_allclose(streamed.coef_, exact.coef_, rtol=0, atol=1e-5)


@every_head
def test_adapting_an_adapted_head_forgets_the_first_rows(task, adaptation):
    head = fitted(task, adaptation=adaptation)
    X, _ = new_rows(task)
    assert_same_bits(head.adapt(X[:30]).adapt(X[30:]), head.adapt(X[30:]))


@every_head
@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_the_unit_of_the_features_does_not_matter(task, adaptation, unit):
    X, y, domains = training(task)
    new, _ = new_rows(task)
    kind = DARERegressor if task == "regression" else DAREClassifier
    head = kind(adaptation=adaptation, tol=1e-8).fit(X, y, domains=domains)
    other = kind(adaptation=adaptation, tol=1e-8).fit(unit * X, y, domains=domains)
    adapted, scaled = head.adapt(new), other.adapt(unit * new)
    np.testing.assert_allclose(unit * scaled.coef_, adapted.coef_, rtol=0, atol=2e-5)


def test_a_stream_belongs_to_its_head_as_it_was():
    X, y, domains = training()
    new, _ = new_rows()
    head = DAREClassifier(adaptation="centered").fit(X, y, domains=domains)
    expected = head.adapt(new)
    stream = head.adapter().partial_fit(new[:50])
    head.set_params(adaptation="raw", shrinkage=0.3).fit(X, y, domains=domains)
    assert_same_head(stream.partial_fit(new[50:]).head_, expected, rtol=1e-10)


# -- Fading rows ---------------------------------------------------------------------------------


@pytest.mark.parametrize("adaptation", ["raw", "centered"])
def test_a_row_counts_half_after_its_half_life(adaptation):
    # Rows of weight two stand for a row twice, so integer weights give the same moments.
    head = fitted(adaptation=adaptation)
    X = rows_of_a_domain(30, 9)
    faded = head.adapter(half_life=10.0, prior_rows=0)
    faded.partial_fit(X[:10]).partial_fit(X[10:20]).partial_fit(X[20:])
    ages = np.arange(29, -1, -1)
    counts = 2.0 ** (-ages / 10.0)
    mean = counts @ X / counts.sum()
    Z = X - mean if adaptation == "centered" else X
    S = (Z * counts[:, None]).T @ Z / counts.sum()
    d = len(S)
    W = paper.inverse_root(0.1 * S + 0.9 * np.trace(S) / d * np.eye(d))
    own = faded.head_.adjustment_.apply(np.eye(d))
    np.testing.assert_allclose(own, W, atol=1e-9)


def test_a_stream_that_forgets_ends_at_the_rows_that_it_remembers():
    head = fitted(adaptation="mixture")
    old, new = rows_of_a_domain(600, 10), rows_of_a_domain(600, 9)
    long = head.adapter(half_life=10.0).partial_fit(old).partial_fit(new).head_
    short = head.adapter(half_life=10.0).partial_fit(new).head_
    assert_same_head(long, short, rtol=1e-6)


# -- What cannot be adapted to -------------------------------------------------------------------


@pytest.mark.parametrize("rows", [0, 1])
def test_adapting_needs_two_rows(rows):
    head = fitted()
    X, _ = new_rows()
    adapter = head.adapter()
    if rows:
        adapter.partial_fit(X[:1])
        with pytest.raises(ValueError, match="at least 2 rows of the new domain, and there is 1"):
            head.adapt(X[:1])
    with pytest.raises(ValueError, match=f"at least 2 rows.*{rows}"):
        _ = adapter.head_


@pytest.mark.parametrize("adaptation", ADAPTATIONS)
def test_rows_of_a_stuck_sensor_are_no_domain_to_adapt_to(adaptation):
    with pytest.raises(ValueError, match="all the same, as from a stuck sensor"):
        fitted(adaptation=adaptation).adapt(np.repeat(new_rows()[0][:1], 200, axis=0))


def test_a_head_that_cannot_adapt_says_what_to_do():
    with pytest.raises(ValueError, match="set adaptation='raw' or 'centered' and fit again"):
        fitted(adaptation=None).adapt(new_rows()[0])


@pytest.mark.parametrize("spoil", [lambda X: 1e150 * X, lambda X: X * np.nan], ids=["huge", "nan"])
def test_a_stream_refuses_rows_that_would_spoil_it_and_goes_on(spoil):
    head = fitted()
    X, _ = new_rows()
    adapter = head.adapter().partial_fit(X[:20])
    with pytest.raises(ValueError, match="feature 0"):
        adapter.partial_fit(spoil(X))
    assert adapter.n_seen_ == 20
    assert_same_head(adapter.head_, head.adapt(X[:20]), rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prior_rows": -1}, "prior_rows is -1"),
        ({"half_life": 0}, "half_life is 0"),
        ({"half_life": "long"}, "half_life is 'long'"),
        ({"force": "yes"}, "force is 'yes'; use one of True, False"),
        ({"prior_labels": -2}, "prior_labels is -2"),
        ({"new_classes": 1}, "new_classes is 1; use one of True, False"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        fitted().adapter(**options)


# -- Adapting that is declined -------------------------------------------------------------------


@pytest.fixture(scope="module")
def careful():
    """A search that chose to adapt, with a safety check."""
    X, y, domains = moved_domains()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        head = DAREClassifierCV().fit(X, y, domains=domains)
    assert head.adapts_
    return head


def test_a_domain_like_the_others_is_adapted_to(careful):
    X, y, _ = moved_domains(n=200, domains=1, seed=11)
    adapted = careful.adapt(X)
    assert (adapted.adapted_rows_, adapted.declined_) == (200, None)
    assert adapted.score(X, y) > careful.score(X, y)
    chunks = fed(careful.adapter(), X, [3, 50, 120]).head_
    assert_same_head(chunks, adapted, rtol=1e-9)


def test_rows_without_classes_are_declined_unless_forced(careful):
    X = np.random.default_rng(0).normal(size=(400, 5))  # one cloud, however it is cut
    with pytest.warns(UserWarning, match="adapting was declined.*set force=True"):
        same = careful.adapt(X)
    assert_same_bits(same, careful)
    assert same.adapted_rows_ is None
    assert same.declined_
    forced = careful.adapt(X, force=True)
    assert (forced.adapted_rows_, forced.declined_) == (400, None)
    assert np.abs(forced.coef_ - careful.coef_).max() > 1e-3


def test_a_handful_of_rows_of_one_class_is_no_objection(careful):
    X, y, _ = moved_domains(n=200, domains=1, seed=11)
    assert careful.adapt(X[y == 0][:5]).adapted_rows_ == 5


@pytest.mark.parametrize("strategies", [("erm",), ("erm", "reweighted")])
def test_a_search_without_adapting_strategies_adapts_to_nothing(strategies):
    X, y, domains = moved_domains()
    head = DAREClassifierCV(strategies=strategies).fit(X, y, domains=domains)
    assert not head.adapts_
    with pytest.warns(UserWarning, match="adapting was declined"):
        same = head.adapt(X[:50])
    assert_same_bits(same, head)


# -- Prepared rows -------------------------------------------------------------------------------


PREPARATIONS = {
    "auto": "auto",
    "scaler": StandardScaler(),
    "imputer and scaler": make_pipeline(SimpleImputer(strategy="median"), StandardScaler()),
}


@pytest.mark.parametrize("name", PREPARATIONS)
@every_head
def test_rows_are_adapted_to_as_they_are_recorded(task, adaptation, name):
    X, y, domains = training(task)
    new, _ = new_rows(task)
    units = 10.0 ** np.arange(-6, 6)
    X, new = X * units, new * units
    if name != "scaler":
        X, new = X.copy(), new.copy()
        X[::7, 1] = new[::5, 1] = np.nan
    kind = DARERegressor if task == "regression" else DAREClassifier
    head = kind(adaptation=adaptation, preparation=PREPARATIONS[name])
    head.fit(X, y, domains=domains)
    adapted = head.adapt(new)
    assert_same_head(fed(head.adapter(), new, [4, 31]).head_, adapted, rtol=1e-9)
    Z = head.state_.preparation.transform(new)
    plain = kind(adaptation=adaptation)
    plain.fit(head.state_.preparation.transform(X), y, domains=domains)
    assert_same_head(plain.adapt(Z), adapted, rtol=1e-9)
    np.testing.assert_array_equal(plain.adapt(Z).predict(Z), adapted.predict(new))


def test_a_frame_can_be_adapted_to_without_a_word():
    pandas = pytest.importorskip("pandas")
    problem = make_problem("classification")
    frame = pandas.DataFrame(problem.X, columns=list("abcde"))
    head = problem.fit(DAREClassifier(), frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        head.adapt(frame)
    with pytest.warns(UserWarning, match="feature names"):
        head.adapt(problem.X)


# -- Mixtures ------------------------------------------------------------------------------------

MIXTURES = ("mixture", "translation")


def of_classes(k=3, **options):
    X, y, domains = classes_of_domains(k)
    return DAREClassifier(**options).fit(X, y, domains=domains)


def test_classes_that_moved_apart_from_each_other_are_found():
    moved = np.zeros((3, 6))
    moved[0, 0], moved[1, 0] = 4.0, -4.0
    X, y, _ = classes_of_domains(3, seed=8, domains=1, n=600, moved=moved)
    centred = of_classes(adaptation="centered", centered=True).adapt(X).score(X, y)
    assert of_classes(adaptation="mixture", centered=True).adapt(X).score(X, y) > centred + 0.1


def test_a_translation_is_told_from_other_proportions():
    X, y, _ = classes_of_domains(3, 8, domains=1, n=600, moved=1.5, shares=[0.8, 0.1, 0.1])
    head = of_classes(adaptation="translation", mean_penalty=None, guess=None)
    centred = of_classes(adaptation="centered").adapt(X)
    assert head.adapt(X).score(X, y) > max(head.score(X, y), centred.score(X, y)) + 0.05


@pytest.mark.parametrize("adaptation", MIXTURES)
def test_rows_of_training_change_little(adaptation):
    X, y, domains = classes_of_domains(3)
    head = of_classes(adaptation=adaptation, mean_penalty=None, guess=None)
    adapted = head.adapt(X[domains == 0])
    assert adapted.score(X, y) > head.score(X, y) - 0.01
    assert not np.allclose(adapted.coef_, head.coef_)


@pytest.mark.parametrize("n", [2, 5, 30])
@pytest.mark.parametrize("adaptation", MIXTURES)
def test_few_rows_of_one_class_are_enough(adaptation, n):
    head = of_classes(4, adaptation=adaptation)
    X, y, _ = classes_of_domains(4, seed=8, domains=1)
    assert np.isfinite(head.adapt(X[y == 1][:n]).predict_proba(X)).all()


@pytest.mark.parametrize("adaptation", MIXTURES)
def test_a_class_that_some_domains_lack_is_no_obstacle(adaptation):
    X, y, domains = classes_of_domains(3)
    kept = (y != 2) | (domains == 0)
    head = DAREClassifier(adaptation=adaptation).fit(X[kept], y[kept], domains=domains[kept])
    new, labels, _ = classes_of_domains(3, seed=8, domains=1)
    assert head.adapt(new).score(new, labels) > 0.5


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("adaptation", MIXTURES)
@pytest.mark.filterwarnings("ignore::skdare.errors.DataNote")
def test_an_outlier_or_other_units_give_a_head_all_the_same(adaptation, dtype):
    head = of_classes(adaptation=adaptation, preparation=StandardScaler())
    X = classes_of_domains(3, seed=8, domains=1, n=60)[0].astype(dtype)
    outlier = X.copy()
    outlier[0] *= 1e5
    for rows in (outlier, 1000.0 * X):
        assert np.isfinite(head.adapt(rows.astype(dtype)).coef_).all()


def test_an_offset_of_all_rows_changes_no_probability_of_a_translated_mixture():
    X, y, domains = classes_of_domains(3)
    new, _, _ = classes_of_domains(3, seed=8, domains=1)
    found = []
    for offset in (0.0, 1e4):
        head = DAREClassifier(adaptation="translation", mean_penalty=None, guess=None, tol=1e-9)
        head.fit(X + offset, y, domains=domains)
        found.append(head.adapt(new + offset).predict_proba(new + offset))
    np.testing.assert_allclose(*found, atol=1e-4)


def test_mixtures_are_refused_for_too_many_features_before_any_work():
    X = np.random.default_rng(0).normal(size=(12, 4097))
    with pytest.raises(ValueError, match="'mixture', and 4,097 features are too many"):
        DAREClassifier(adaptation="mixture").fit(X, np.arange(12) % 2, domains=np.arange(12) // 4)


def test_an_oddity_of_the_new_rows_is_warned_of():
    X, _ = new_rows()
    X = X.copy()
    X[0] *= 1e4
    with pytest.warns(UserWarning, match="one or two of the new rows hold most of their variance"):
        fitted().adapt(X)


def test_erm_does_not_adapt():
    assert not hasattr(ERMClassifier(), "adapt")
    assert {name for name in skdare.__all__ if hasattr(getattr(skdare, name), "adapt")} == {
        "DAREClassifier",
        "DAREClassifierCV",
        "DARERegressor",
        "DARERegressorCV",
    }


def test_a_stream_can_be_copied():
    head = fitted()
    X, _ = new_rows()
    first = head.adapter().partial_fit(X[:40])
    second = copy.deepcopy(first).partial_fit(X[40:])
    assert (first.n_seen_, second.n_seen_) == (40, 90)
    assert_same_head(second.head_, head.adapt(X), rtol=1e-12)
    assert repr(first) == "Adapter(DAREClassifier, 40 rows seen)"
