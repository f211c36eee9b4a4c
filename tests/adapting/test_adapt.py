"""Just-in-time adaptation: a new head from unlabelled rows in any chunks, the old one untouched."""

import copy
import warnings

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

import oracle
from heads_alike import assert_same_head
from skdare import DAREClassifier, ERMClassifier, LabelShiftWarning
from skdare.datasets import make_latent_domains
from skdare.fitting.canonical_fit import raw_weights
from skdare.fitting.domain_fit import domain_fit_of
from skdare.whitening.moments import Moments

FORMS = ["raw", "centered"]
ignore_label_shift = pytest.mark.filterwarnings("ignore::skdare.LabelShiftWarning")


def hold_out(problem):
    """The problem without 'west', and the unlabelled rows of 'west'."""
    seen = problem.permuted(np.flatnonzero(problem.domains != "west"))
    return seen, problem.X[problem.rows("west")]


@pytest.fixture
def split(problem):
    return hold_out(problem)


@pytest.fixture
def classification_split(classification_problem):
    return hold_out(classification_problem)


def canonical_regression(seen, form, whitening):
    """scikit-learn's weights on whitened rows without any penalty on the means."""
    rows, targets, weight = [], [], []
    centered = form == "centered"
    domains = [seen.X[seen.rows(label)] for label in seen.labels]
    roots = oracle.adjustments(domains, centered=centered, **whitening)
    for label, X, W in zip(seen.labels, domains, roots, strict=True):
        rows.append((X - X.mean(axis=0) if centered else X) @ W)
        targets.append(seen.y[seen.rows(label)])
        weight.append(np.full(len(X), 1 / (len(domains) * len(X))))
    ridge = oracle.ridge(domains, 0.01, target=whitening["target"], centered=centered)
    model = LogisticRegression(C=1 / ridge, tol=1e-12, max_iter=10_000)
    model.fit(np.concatenate(rows), np.concatenate(targets), sample_weight=np.concatenate(weight))
    return model.coef_.T, model.intercept_, roots


@ignore_label_shift
@pytest.mark.parametrize("prior_rows", [0.0, 20.0])
@pytest.mark.parametrize("form", FORMS)
def test_adapting_whitens_the_new_rows_by_their_own_moments(classification_split, form, prior_rows):
    seen, new = classification_split
    whitening = {"shrinkage": 0.3, "target": "scaled"}
    B, b, roots = canonical_regression(seen, form, whitening)
    (own,) = oracle.adjustments([new], centered=form == "centered", **whitening)
    trust = len(new) / (len(new) + prior_rows)
    V = (trust * own + (1 - trust) * np.mean(roots, axis=0)) @ B
    if form == "centered":
        average = np.mean([seen.X[seen.rows(e)].mean(axis=0) for e in seen.labels], axis=0)
        b = b - (trust * new.mean(axis=0) + (1 - trust) * average) @ V
    head = seen.fit(DAREClassifier(shrinkage=0.3, adaptation=form, tol=1e-9, max_iter=5000))
    adapted = head.adapt(new, prior_rows=prior_rows)
    np.testing.assert_allclose(adapted.coef_.T, V, rtol=0, atol=5e-5)
    # Softmax intercepts are free up to a constant.
    centre = np.mean if len(b) > 1 else np.zeros_like
    ours, theirs = adapted.intercept_ - centre(adapted.intercept_), b - centre(b)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=5e-4)


@ignore_label_shift
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("sizes", [[2, 59], [1, 1, 30, 29]], ids=str)
def test_a_stream_in_chunks_ends_at_the_head_of_one_adapt(
    split, head_for, array_library, form, sizes
):
    seen, new = split
    head = seen.fit(head_for(seen.task, "DARE", adaptation=form))
    adapter = head.adapter()
    for chunk in np.split(new, np.cumsum(sizes)[:-1]):
        assert adapter.partial_fit(array_library.asarray(chunk)) is adapter
    assert adapter.n_seen_ == len(new)
    assert_same_head(adapter.head_, head.adapt(new), atol=1e-9)


@ignore_label_shift
@pytest.mark.parametrize("form", FORMS)
def test_a_head_fitted_in_any_array_library_adapts_alike(split, head_for, array_library, form):
    seen, new = split
    expected = seen.fit(head_for(seen.task, "DARE", adaptation=form)).adapt(new)
    held = seen.fit(head_for(seen.task, "DARE", adaptation=form), array_library.asarray(seen.X))
    assert_same_head(held.adapt(array_library.asarray(new)), expected, atol=1e-5)


@ignore_label_shift
def test_adapting_leaves_the_head_and_the_rows_untouched(split, head_for):
    seen, new = split
    head = seen.fit(head_for(seen.task, "DARE"))
    before, rows, said = copy.deepcopy(vars(head)), new.copy(), head.predict(seen.X)
    adapted = head.adapt(new)
    assert adapted is not head
    assert type(adapted) is type(head)
    assert np.abs(adapted.coef_ - head.coef_).max() > 1e-3
    assert vars(head).keys() == before.keys()
    np.testing.assert_array_equal(head.coef_, before["coef_"])
    np.testing.assert_array_equal(head.intercept_, before["intercept_"])
    np.testing.assert_array_equal(
        head.adjustment_.dense(), before["_domain_fit"].adjustment.dense()
    )
    np.testing.assert_array_equal(head.predict(seen.X), said)
    np.testing.assert_array_equal(new, rows)


@ignore_label_shift
def test_adapting_an_adapted_head_forgets_the_first_rows(split, head_for):
    seen, new = split
    head = seen.fit(head_for(seen.task, "DARE"))
    assert_same_head(head.adapt(new[:30]).adapt(new[30:]), head.adapt(new[30:]), atol=1e-9)


@ignore_label_shift
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("constant", [1e-3, 1e3])
def test_adapting_does_not_depend_on_the_unit_of_the_features(split, head_for, form, constant):
    seen, new = split
    unit = seen.fit(head_for(seen.task, "DARE", adaptation=form)).adapt(new)
    scaled = seen.fit(head_for(seen.task, "DARE", adaptation=form), constant * seen.X)
    scaled = scaled.adapt(constant * new)
    np.testing.assert_allclose(constant * scaled.coef_, unit.coef_, rtol=0, atol=1e-5)
    np.testing.assert_allclose(scaled.intercept_, unit.intercept_, rtol=0, atol=1e-5)


@ignore_label_shift
@pytest.mark.parametrize("form", FORMS)
def test_with_many_prior_rows_the_averaged_adjustment_stays(split, head_for, form):
    seen, new = split
    options = {"adaptation": form, "centered": form == "centered"}
    head = seen.fit(head_for(seen.task, "constrained DARE", **options))
    few, many = (head.adapt(new, prior_rows=p) for p in (0.0, 1e12))
    np.testing.assert_allclose(many.adjustment_.dense(), head.adjustment_.dense(), atol=1e-8)
    assert np.abs(few.adjustment_.dense() - head.adjustment_.dense()).max() > 1e-2


def test_shifted_class_shares_are_warned_of_and_even_ones_are_not(binary):
    head = binary.fit(DAREClassifier())
    said = head.predict(binary.X)
    with pytest.warns(LabelShiftWarning, match="compare with the head before adapt"):
        head.adapt(binary.X[said == 1])
    head.adapt(binary.X)


@pytest.mark.parametrize(
    ("options", "rows", "error", "remedy"),
    [
        ({"adaptation": None}, 10, ValueError, "set adaptation='centered' or 'raw'"),
        ({"adjust": False}, 10, ValueError, "set adaptation='centered' or 'raw'"),
        ({}, 1, ValueError, "at least 2 rows of the new domain"),
    ],
)
def test_a_head_that_cannot_adapt_says_what_to_do(binary, options, rows, error, remedy):
    head = binary.fit(DAREClassifier(**options))
    with pytest.raises(error, match=remedy):
        head.adapt(binary.X[:rows])


def test_an_unfitted_head_asks_to_be_fitted_before_it_adapts(binary):
    with pytest.raises(NotFittedError, match="call fit before adapt"):
        DAREClassifier().adapt(binary.X)


def test_one_row_that_decides_a_domains_moments_is_pointed_out(three_classes):
    X = three_classes.X.copy()
    X[three_classes.rows("west")[0]] *= 1e4
    with pytest.warns(UserWarning, match="rows of domain west hold most of their variance"):
        three_classes.fit(DAREClassifier(), X)


def test_the_covariance_form_undoes_the_latent_model():
    data = make_latent_domains(4, 4000, 6, shift=1.0, random_state=3)
    new = data.domains == 0
    head = DAREClassifier(adaptation="covariance", shrinkage=0.0, l2=1e-6)
    head.fit(data.X[~new], data.y[~new], domains=data.domains[~new])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelShiftWarning)
        adapted = head.adapt(data.X[new], prior_rows=0)
    # A head fitted to the new domain's own labels is the ceiling.
    ceiling = ERMClassifier(l2=1e-6).fit(data.X[new], data.y[new])
    assert adapted.score(data.X[new], data.y[new]) > ceiling.score(data.X[new], data.y[new]) - 0.01
    assert head.score(data.X[new], data.y[new]) < ceiling.score(data.X[new], data.y[new]) - 0.01


def test_noisy_labels_are_no_label_shift():
    # A head that predicts the common class too often does so everywhere.
    rng = np.random.default_rng(0)
    X, domains = rng.normal(size=(4000, 3)), rng.integers(0, 4, 4000)
    y = (X[:, 0] + 2 * rng.normal(size=4000) > 1.5).astype(int)
    head = DAREClassifier().fit(X, y, domains=domains)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        head.adapt(rng.normal(size=(2000, 3)))


def test_a_frame_can_be_adapted_to_without_a_word(three_classes):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(three_classes.X, columns=list("abcde"))
    head = three_classes.fit(DAREClassifier(), frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        head.adapt(frame)


@pytest.mark.parametrize("adaptation", ["raw", "centered", "covariance"])
def test_rows_of_a_stuck_sensor_are_no_domain_to_adapt_to(three_classes, adaptation):
    head = three_classes.fit(DAREClassifier(adaptation=adaptation))
    with pytest.raises(ValueError, match="all the same, as from a stuck sensor"):
        head.adapt(np.repeat(three_classes.X[:1], 200, axis=0))


@pytest.mark.filterwarnings("ignore::skdare.LabelShiftWarning")
@pytest.mark.parametrize("kind", ["adapter", "fleet"])
def test_a_stream_goes_by_the_last_fit_of_its_head(kind):
    data = make_latent_domains(random_state=0)
    seen, new = data.domains != 3, data.X[data.domains == 3]
    rows = data.X[seen], data.y[seen], data.domains[seen]
    head = DAREClassifier(adaptation="centered").fit(*rows)
    devices = np.zeros(len(new))
    if kind == "adapter":
        stream = head.adapter().partial_fit(new)
    else:
        stream = head.fleet(rank=8).partial_fit(new, devices)
    head.set_params(adaptation="raw", shrinkage=0.3).fit(*rows)
    expected = head.adapt(new).decision_function(new)
    if kind == "adapter":
        scores = stream.head_.decision_function(new)
    else:
        scores = stream.decision_function(new, devices)
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-4 * np.abs(expected).max())


@pytest.mark.filterwarnings("ignore::skdare.LabelShiftWarning")
@pytest.mark.parametrize("n", [2, 10, 60])
def test_a_handful_of_rows_moves_a_head_only_part_of_the_way(three_classes, n):
    head = three_classes.fit(DAREClassifier(adaptation="centered"))
    X = three_classes.X[three_classes.rows("west")][:n]
    adaptation = domain_fit_of(head).adaptation
    trust = adaptation.trust(n)
    assert trust.head == pytest.approx(n**2 / (n**2 + 100))
    moments = Moments.of(X)
    W = adaptation.blended(adaptation.adjustment(moments, None), trust)
    V, _ = raw_weights((adaptation.B, adaptation.b), W)
    expected = trust.head * V.T + (1.0 - trust.head) * head.coef_
    np.testing.assert_allclose(head.adapt(X).coef_, expected, rtol=0, atol=1e-9)
