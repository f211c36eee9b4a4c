"""A search scores what fits without each domain score, and the head it gives is the one chosen."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import get_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from held_out_problems import TASKS, made, problem_of
from skdare import (
    DAREClassifier,
    DAREClassifierCV,
    DARERegressorCV,
    ERMClassifier,
    ERMRegressor,
    ReweightedClassifier,
    load,
)
from skdare.choosing import batched, search
from skdare.choosing.rule import Reason
from skdare.choosing.strategies import STRATEGIES
from skdare.data import load_digit_domains, make_latent_domains
from skdare.errors import DataNote, InputError
from skdare.fitting.domain_fit import Formulations, fit_domains
from skdare.fitting.hold_out import hold_out
from skdare.fitting.mixture import ClassPlaces, ClassSums, Sample
from skdare.fitting.score import score
from skdare.whitening import prior
from skdare.whitening.moments import Moments

NAMES = sorted(STRATEGIES)


def scaled(model):
    """After features are divided by their scales over all rows."""
    return make_pipeline(StandardScaler(with_mean=False), model)


def scores_of(head, strategy):
    """Scores of the only candidate of a strategy, by domain."""
    names = head.cv_results_["param_strategy"].tolist()
    return head.choice_.scores[names.index(strategy)]


@pytest.fixture(scope="module", params=TASKS)
def one_of_each(request):
    """A search with one candidate of every strategy, solved to the end."""
    table = made(request.param)
    names = [name for name in STRATEGIES if not (table.is_regression and STRATEGIES[name].mixture)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batched, "_TOL", 1e-8)
        patch.setattr(batched, "_MAX_ITER", 2000)
        head = table.choosing(strategies=names, l2=(0.03,), shrinkage=(0.4,), preparation=None)
        return table, head.fit(*table.rows)


def by_hand(table, candidate, e):
    """The score on one domain of a candidate that is fitted to the others by `fit_domains`."""
    held = hold_out(problem_of(table, preparation=None), [e])
    formulation = candidate.formulation(intercept=True, tol=1e-8, max_iter=5000)
    strategy = candidate.strategy
    fit = fit_domains(held.rest, Formulations(formulation, formulation, strategy.mixture))
    weights = fit.unseen.raw_weights()
    if strategy.adapts:
        problem = held.problem
        index = problem.index[e]
        moments = Moments.of(problem.X, index)
        sample = Sample(problem.X[index], problem.weight[index], moments)
        weights = fit.adapted(moments, fit.adaptation.trust(moments.n), sample).raw_weights()
    return score(held.problem, e, weights)


@pytest.mark.parametrize("name", NAMES)
def test_the_search_is_the_loop_over_held_out_domains(one_of_each, name):
    table, head = one_of_each
    if name not in head.cv_results_["param_strategy"]:
        pytest.skip("mixtures are of classes")
    row = head.cv_results_["param_strategy"].tolist().index(name)
    candidate = head.choice_.candidates[row]
    expected = [by_hand(table, candidate, e) for e in range(6)]
    # One row of 60, or two: the usual scale of a feature counts as one row, and a search takes it
    # from all domains.
    apart = 2e-3 if table.is_regression else 1.1 / 60
    if candidate.strategy.mixture is not None:
        apart = 2.1 / 60
    np.testing.assert_allclose(head.choice_.scores[row], expected, rtol=0, atol=apart)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("task", TASKS)
def test_plain_erm_scores_as_a_loop_of_scikit_learn_on_standardised_features(task, intercept):
    table = made(task)
    l2 = 0.05
    head = table.choosing(strategies=("erm",), l2=(l2,), fit_intercept=intercept).fit(*table.rows)
    for e in range(6):
        X, y, _ = table.without(e)
        if table.is_regression:
            model = Ridge(alpha=l2 * len(y), fit_intercept=intercept)
        else:
            model = LogisticRegression(
                C=1.0 / (l2 * len(y)), fit_intercept=intercept, tol=1e-8, max_iter=5000
            )
        expected = scaled(model).fit(X, y).score(*table.of(e))
        assert scores_of(head, "erm")[e] == pytest.approx(
            max(expected, -1.0), abs=1e-3 if table.is_regression else 1.1 / 60
        )


@pytest.mark.parametrize("task", ["classes", "binary"])
def test_one_domain_may_be_far_larger(task):
    table = made(task, E=4)
    table.X[table.domains == 2, 0] *= 1e3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataNote)  # of that feature's variance
        head = table.choosing(strategies=("erm",), l2=(0.03,), preparation=None).fit(*table.rows)
        for e in range(4):
            X, y, _ = table.without(e)
            model = scaled(ERMClassifier(l2=0.03, tol=1e-8))
            expected = model.fit(X, y).score(*table.of(e))
            assert scores_of(head, "erm")[e] == pytest.approx(expected, abs=1.1 / 60)


# -- Invariance -----------------------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS)
def test_units_of_features_do_not_matter(task):
    table = made(task)
    unit = 10.0 ** np.array([-6, 0, 3, 8, -2])
    names = [name for name in STRATEGIES if name not in ("averaged", "raw")]
    names = [name for name in names if not (table.is_regression and STRATEGIES[name].mixture)]
    scores = [
        table.choosing(strategies=names, preparation=None).fit(X, table.y, table.domains)
        for X in (table.X, table.X * unit)
    ]
    first, second = (head.choice_.scores for head in scores)
    np.testing.assert_allclose(
        first, second, rtol=0, atol=1e-6 if table.is_regression else 1.1 / 60
    )


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array], ids=str)
def test_units_of_features_change_no_prediction_of_the_default_head(task, storage):
    table = made(task, E=4)
    X, y, domains = table.without(3)
    new = table.of(3)[0]
    found = []
    for unit in (1.0, np.array([3e-7, 1.0, 700.0, 5e8, 0.03])):
        head = table.choosing(tol=1e-9).fit(storage(X * unit), y, domains)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataNote)  # of the safety check
            adapted = head.adapt(storage(new * unit))
        found.append(np.concatenate([(one.coef_ * unit).ravel() for one in (head, adapted)]))
    np.testing.assert_allclose(found[1], found[0], rtol=0, atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("feature", [2, 4, 6])
def test_a_feature_that_one_domain_records_in_another_unit_serves_elsewhere(seed, feature):
    data = make_latent_domains(random_state=seed)
    found = []
    for unit in (1.0, 1e3):
        X = data.X.copy()
        X[data.domains == 1, feature] *= unit
        train = data.domains != 3
        head = DAREClassifierCV(strategies=("standardize",))
        head.fit(X[train], data.y[train], data.domains[train])
        found.append(head.adapt(X[~train]).score(X[~train], data.y[~train]))
    assert found[1] >= found[0] - 0.01


@pytest.mark.parametrize("task", TASKS)
def test_neither_labels_of_domains_nor_the_order_of_rows_matter(task):
    table = made(task)
    order = np.random.default_rng(0).permutation(len(table.y))
    names = np.array([f"site {9 - e}" for e in range(6)])
    first = table.choosing(l2=(0.05,)).fit(*table.rows)
    second = table.choosing(l2=(0.05,)).fit(
        table.X[order], table.y[order], names[table.domains[order]]
    )
    np.testing.assert_allclose(
        second.choice_.scores[:, ::-1],
        first.choice_.scores,
        rtol=0,
        atol=1e-6 if table.is_regression else 1.1 / 60,
    )
    assert second.best_score_ == pytest.approx(first.best_score_, abs=1.1 / 60)


@pytest.mark.parametrize("task", ["classes", "regression"])
def test_a_weight_of_two_is_a_repeated_row(task):
    table = made(task)
    weight = np.random.default_rng(0).integers(1, 3, len(table.y))
    few = {"strategies": ("erm", "reweighted", "center"), "l2": (0.1,)}
    few |= {} if table.is_regression else {"class_weight": "balanced"}
    weighted = table.choosing(**few).fit(*table.rows, weight)
    repeated = table.choosing(**few).fit(*(np.repeat(a, weight, axis=0) for a in table.rows))
    np.testing.assert_allclose(weighted.choice_.scores, repeated.choice_.scores, atol=0.01)


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_the_unit_of_a_target_does_not_matter(scale):
    table = made("regression")
    first, second = (
        table.choosing().fit(table.X, y, table.domains) for y in (table.y, scale * table.y + scale)
    )
    np.testing.assert_allclose(first.choice_.scores, second.choice_.scores, atol=1e-6)
    assert first.best_params_ == second.best_params_


@pytest.mark.parametrize("kind", [sparse.csr_array, lambda X: X.astype(np.float16)])
def test_rows_of_any_kind_are_searched_alike(kind):
    table = made(n=30)
    X = kind(table.X.astype(np.float32))
    dense = np.asarray(X.todense() if sparse.issparse(X) else X, dtype=np.float32)
    first, second = (
        DAREClassifierCV(l2=(0.1,), strategies=("erm", "center", "erm+mixture")).fit(
            rows, table.y, table.domains
        )
        for rows in (X, dense)
    )
    np.testing.assert_allclose(first.choice_.scores, second.choice_.scores, atol=1.1 / 30)


def test_of_too_many_rows_every_domain_keeps_the_same_share(monkeypatch):
    table = made()
    options = {"strategies": ("erm", "center"), "l2": (0.1,), "standard_errors": 1e9}
    whole = table.choosing(**options).fit(*table.rows)
    monkeypatch.setattr(search, "_CELLS", table.X.size // 2)
    half = table.choosing(**options).fit(*table.rows)
    assert 0 < np.abs(half.choice_.scores - whole.choice_.scores).max() < 0.5
    np.testing.assert_allclose(half.coef_, whole.coef_, atol=1e-3)  # the final fit has all rows


def test_rows_that_need_no_preparation_are_searched_as_without_one():
    table = made()
    first, second = (
        table.choosing(l2=(0.1,), preparation=one).fit(*table.rows) for one in ("auto", None)
    )
    np.testing.assert_array_equal(first.choice_.scores, second.choice_.scores)


@pytest.mark.parametrize("task", ["classes", "regression"])
def test_cells_that_only_one_domain_lacks_are_filled_without_it(task):
    table = made(task, E=4)
    table.X[table.domains == 2, 1] = np.nan
    options = {"strategies": ("erm", "center"), "l2": (0.1,), "preparation": "auto"}
    head = table.choosing(**options).fit(*table.rows, rehearse=True)
    filled = table.X.copy()
    filled[table.domains == 2, 1] = np.median(table.X[table.domains != 2, 1])
    expected = table.choosing(**options).fit(filled, *table.rows[1:])
    np.testing.assert_allclose(
        head.choice_.scores[:, 2], expected.choice_.scores[:, 2], rtol=0, atol=1e-6
    )


# -- Mixtures -------------------------------------------------------------------------------------


def test_a_mixture_is_tried_at_the_best_ridge_of_the_strategy_it_starts_from():
    head = made().choosing(strategies=("center", "center+mixture")).fit(*made().rows)
    results = head.cv_results_
    base = results["param_strategy"] == "center"
    best = results["param_l2"][base][results["mean_test_score"][base].argmax()]
    assert results["param_l2"][~base].tolist() == [best]


def test_a_mixture_needs_no_other_strategy_among_the_candidates():
    table = made()
    head = table.choosing(strategies=("erm+translation",)).fit(*table.rows)
    assert head.cv_results_["param_strategy"].tolist() == ["erm+translation"]
    assert head.adapts_


def test_mixtures_are_of_classes():
    table = made("regression")
    names = table.choosing().fit(*table.rows).cv_results_["param_strategy"]
    assert "whiten" in names
    assert not any("+" in name for name in names)
    with pytest.raises(InputError, match="strategies names 'erm\\+mixture'"):
        table.choosing(strategies=("erm", "erm+mixture")).fit(*table.rows)


def test_class_places_of_a_fold_are_those_of_its_training_domains():
    table = made(E=4)
    grid = search.Grid(("center+mixture",), (0.5,), (0.05,), 8, None, intercept=True)
    trials = search.search(problem_of(table, preparation=None), grid)
    for held, fit in zip(trials.folds, trials.fits[0], strict=True):
        sums = [ClassSums.of(held.problem, e, held.moments[e]) for e in held.others]
        expected = ClassPlaces.of_domains(
            sums,
            held.among_others(held.moments),
            held.among_others(fit.adjustments),
            fit.adaptation.fit.formulation,
        )
        for name in vars(expected):
            np.testing.assert_array_equal(
                getattr(fit.adaptation.places, name), getattr(expected, name)
            )


# -- The head that is chosen ----------------------------------------------------------------------


def test_results_have_the_keys_of_a_search_in_scikit_learn():
    head = made().choosing().fit(*made().rows)
    results = head.cv_results_
    assert results["params"][head.best_index_] == head.best_params_
    assert results["mean_test_score"][head.best_index_] == head.best_score_
    splits = [results[f"split{e}_test_score"] for e in range(6)]
    np.testing.assert_allclose(np.mean(splits, axis=0), results["mean_test_score"])
    np.testing.assert_allclose(np.std(splits, axis=0), results["std_test_score"])
    np.testing.assert_array_equal(np.min(splits, axis=0), results["worst_test_score"])
    assert sorted(results["rank_test_score"]) == list(range(1, len(results["params"]) + 1))
    assert results["used_by_predict"].sum() == 1


@pytest.mark.parametrize("name", ["erm", "reweighted"])
def test_predict_is_the_head_that_was_chosen(name):
    table = made()
    head = table.choosing(strategies=(name,), tol=1e-8, preparation=None).fit(*table.rows)
    family = {"erm": ERMClassifier, "reweighted": ReweightedClassifier}[name]
    spread = table.X.std(axis=0)
    plain = family(tol=1e-8, l2=head.best_params_["l2"])
    plain.fit(table.X / spread, table.y, table.domains)
    np.testing.assert_allclose(head.coef_, plain.coef_ / spread, rtol=0, atol=1e-6)


STANDARDIZE = {"shrinkage": 1.0, "shrinkage_target": "diagonal", "adaptation": "centered"}
WAYS = {
    "standardize": STANDARDIZE,
    "whiten": STANDARDIZE | {"shrinkage": 0.4},
    "raw": {"shrinkage": 0.4, "adaptation": "raw"},
    "standardize+mixture": STANDARDIZE | {"adaptation": "mixture"},
    "erm+translation": {"adaptation": "translation"},
}


@pytest.mark.parametrize("name", sorted(WAYS))
def test_adapt_is_the_head_that_was_chosen(name, monkeypatch):
    # Few rows are blended with the unadapted head, which is another one here.
    monkeypatch.setattr(prior, "_HALF_ADAPTED", 0.0)
    table = made()
    head = table.choosing(strategies=(name,), shrinkage=(0.4,), tol=1e-8, preparation=None)
    head.fit(*table.rows)
    options = {"l2": head.best_params_["l2"], "tol": 1e-8, "centered": name != "raw"}
    # Every row counts the same in ERM, and here every domain has as many.
    spread = table.X.std(axis=0) if name == "erm+translation" else 1.0
    plain = DAREClassifier(**options, **WAYS[name])
    plain.fit(table.X / spread, table.y, table.domains)
    X = table.of(0)[0]
    expected = plain.adapt(X / spread).coef_ / spread
    np.testing.assert_allclose(head.adapt(X).coef_, expected, rtol=0, atol=1e-5)


def test_a_head_that_declined_predicts_as_before_in_one_piece_and_in_chunks():
    table = made()
    head = table.choosing(strategies=("erm", "reweighted")).fit(*table.rows)
    X = table.of(1)[0]
    assert head.choice_.declined.reason is Reason.NONE_TRIED
    with pytest.warns(DataNote, match="no strategy that adapts was tried"):
        adapted = head.adapt(X)
    with pytest.warns(DataNote, match="adapting was declined"):
        streamed = head.adapter().partial_fit(X[:30]).partial_fit(X[30:]).head_
    np.testing.assert_array_equal(adapted.coef_, head.coef_)
    np.testing.assert_array_equal(streamed.coef_, head.coef_)
    assert adapted.declined_ == str(head.choice_.declined)


def test_a_choice_survives_the_file(tmp_path):
    table = made("regression")
    head = table.choosing(strategies=("erm", "center"), cv=3).fit(*table.rows)
    head.save(tmp_path / "head.safetensors")
    copy = load(tmp_path / "head.safetensors")
    assert str(copy.choice_) == str(head.choice_)
    assert copy.choice_.declined == head.choice_.declined
    np.testing.assert_array_equal(copy.choice_.scores, head.choice_.scores)


@pytest.mark.slow
def test_digit_styles_are_best_served_by_adapting():
    data = load_digit_domains()
    head = DAREClassifierCV(l2=(0.01,)).fit(data.X, data.y, domains=data.domains)
    assert head.adapts_
    assert head.best_score_ > scores_of(head, "erm").mean() + 0.05


def test_an_instrument_that_moves_only_features_is_adapted_to_and_moving_targets_are_not_lost():
    rng = np.random.default_rng(0)
    weights = rng.normal(size=4)

    def rows(shifts, moves_target):
        for shift in shifts:
            Z = rng.normal(size=(80, 4))
            y = Z @ weights + 0.1 * rng.normal(size=80) + moves_target * shift
            yield Z + shift * weights / (weights @ weights), y

    def fitted(shifts, moves_target):
        X, y = (np.concatenate(each) for each in zip(*rows(shifts, moves_target), strict=True))
        head = DARERegressorCV(strategies=("erm", "center"), standard_errors=0.0)
        return head.fit(X, y, np.repeat(np.arange(len(shifts)), 80))

    head = fitted((0.0, 0.8, -0.8), 0.0)
    [(X, y)] = rows((6.0,), 0.0)
    assert head.adapts_
    assert head.adapt(X).score(X, y) > 0.9 > head.score(X, y)
    # Where both move, adapting would lose what the features say.
    head = fitted((0.0, 0.3, -0.2), 1.0)
    [(X, y)] = rows((0.4,), 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataNote)
        assert head.adapt(X).score(X, y) > head.score(X, y) - 0.02


# -- Few domains ----------------------------------------------------------------------------------


def test_one_domain_leaves_none_to_hold_out():
    table = made()
    with pytest.warns(DataNote, match="was given no domains"):
        head = DAREClassifierCV().fit(table.X, table.y)
    assert head.choice_.declined.reason is Reason.ONE_DOMAIN
    assert str(head.choice_) == (
        "There was one training domain, and none to hold out: it predicts by plain ERM."
    )


@pytest.mark.parametrize("E", [2, 3])
@pytest.mark.parametrize("task", TASKS)
def test_two_and_three_domains_are_searched(task, E):
    table = made(task, E=E)
    head = table.choosing().fit(*table.rows)
    assert np.isfinite(head.choice_.scores).all()
    assert np.isfinite(head.predict(table.X[:3])).all() if table.is_regression else True


@pytest.mark.filterwarnings("ignore:held-out training domains score")
def test_a_domain_without_which_one_class_is_left_is_not_used_to_choose():
    table = made(E=3)
    y = np.where(table.domains == 2, table.y > 0, 0)
    with pytest.warns(DataNote, match="without domain '2' the others have a single class"):
        head = DAREClassifierCV(l2=(0.1,)).fit(table.X, y, table.domains)
    assert np.isnan(head.choice_.scores[:, 2]).all()
    assert np.isfinite(head.choice_.scores[:, :2]).all()
    assert np.isfinite(head.best_score_)


@pytest.mark.filterwarnings("ignore:without domain", "ignore:every domain has one class only")
def test_where_no_domain_can_be_held_out_the_simplest_strategy_is_taken():
    table = made(E=2)
    head = DAREClassifierCV(l2=(0.1,)).fit(table.X, table.domains, table.domains)
    assert head.choice_.declined.reason is Reason.NOT_SCORED
    assert "predicts by plain ERM" in str(head.choice_)


def test_rows_of_a_class_that_no_other_domain_has_count_as_errors():
    table = made(E=3)
    y = np.where(table.domains == 1, 7, table.y % 2)
    head = DAREClassifierCV(strategies=("erm", "center"), l2=(0.1,)).fit(table.X, y, table.domains)
    np.testing.assert_array_equal(head.choice_.scores[:, 1], 0.0)


def test_a_domain_of_one_target_is_not_used_to_choose_in_a_regression():
    table = made("regression", E=4)
    table.y[table.domains == 2] = 3.1
    with pytest.warns(DataNote, match="domain '2' lacks targets that differ"):
        head = table.choosing().fit(*table.rows)
    assert np.isnan(head.choice_.scores[:, 2]).all()
    assert np.isfinite(head.best_score_)


def test_scores_too_good_for_unseen_domains_are_pointed_out():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 60)
    X = rng.normal(size=(120, 4)) + 6.0 * y[:, None]
    with pytest.warns(DataNote, match="features were trained on them"):
        DAREClassifierCV(l2=(0.1,)).fit(X, y, domains=np.tile([0, 1, 2], 40))


@pytest.mark.parametrize("task", TASKS)
def test_the_ridge_may_be_zero(task):
    table = made(task)
    assert np.isfinite(table.choosing(l2=(0.0,)).fit(*table.rows).best_score_)


# -- Scorers --------------------------------------------------------------------------------------


def loop(table, head, scoring):
    """Score on each domain of a head trained on the others."""
    heads = [clone(head).fit(*table.without(e)[:2]) for e in range(3)]
    return [get_scorer(scoring)(one, *table.of(e)) for e, one in enumerate(heads)]


@pytest.mark.parametrize("scoring", ["balanced_accuracy", "roc_auc", "neg_log_loss", "f1"])
def test_a_scorer_of_classes_scores_as_it_would_a_head(scoring):
    table = made("binary", E=3)
    head = table.choosing(strategies=("erm",), l2=(0.1,), scoring=scoring).fit(*table.rows)
    expected = loop(table, scaled(ERMClassifier(l2=0.1, tol=1e-8)), scoring)
    np.testing.assert_allclose(head.choice_.scores[0], expected, rtol=0, atol=0.02)


def test_a_scorer_of_numbers_sees_them_in_their_own_units():
    table = made("regression", E=3)
    table = replace(table, y=1000.0 * table.y)
    scoring = "neg_root_mean_squared_error"
    head = table.choosing(strategies=("erm",), l2=(0.1,), scoring=scoring).fit(*table.rows)
    expected = loop(table, scaled(ERMRegressor(l2=0.1, tol=1e-9)), scoring)
    np.testing.assert_allclose(head.choice_.scores[0], expected, rtol=1e-6)


def test_a_callable_scores_as_scikit_learn_calls_it():
    def share_of_first(head, X, y):
        return float(np.mean(head.predict(X) == head.classes_[0]))

    table = made()
    head = table.choosing(l2=(0.1,), scoring=share_of_first).fit(*table.rows)
    assert 0 < head.best_score_ < 1


@pytest.mark.parametrize("scoring", ["neg_log_loss", "roc_auc_ovr"])
def test_a_domain_that_lacks_a_class_is_scored_if_the_scorer_can(scoring):
    table = made(E=4)
    table.y[table.domains == 1] %= 2
    few = {"strategies": ("erm", "center"), "l2": (0.1,)}
    with pytest.warns(DataNote, match="domain '1' lacks what the scoring needs"):
        head = table.choosing(**few, scoring=scoring).fit(*table.rows)
    assert np.isnan(head.choice_.scores[:, 1]).all()
    assert np.isfinite(head.best_score_)
    head = table.choosing(**few, scoring="balanced_accuracy").fit(*table.rows)
    assert np.isfinite(head.choice_.scores).all()


@pytest.mark.parametrize(
    ("task", "scoring", "message"),
    [
        ("classes", "best", "no scoring is called 'best'"),
        ("regression", "roc_auc", "needs probabilities, and a regressor has none"),
        ("regression", "neg_log_loss", "needs probabilities, and a regressor has none"),
    ],
)
def test_a_scorer_that_cannot_score_is_refused_before_any_work(task, scoring, message):
    with pytest.raises(InputError, match=message):
        made(task).choosing(scoring=scoring).fit(None, None)


@pytest.mark.parametrize("task", ["classes", "regression"])
def test_a_scorer_that_gives_nan_is_refused(task):
    table = made(task, E=3)
    with pytest.raises(InputError, match="cannot score domain 0: the score is not a number"):
        table.choosing(scoring=lambda head, X, y: float("nan")).fit(*table.rows)


def test_a_scorer_without_a_score_on_any_domain_is_refused():
    table = made(E=2)
    y = table.y % 2 + 2 * table.domains
    with pytest.raises(InputError, match="gives no score on any domain"):
        DAREClassifierCV(scoring="neg_log_loss").fit(table.X, y, table.domains)
