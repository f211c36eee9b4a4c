"""Heads of a bench: the same models as elsewhere, with the rows of a new domain and no labels."""

from __future__ import annotations

import inspect
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from held_out_problems import made
from skdare import DAREClassifier, DAREClassifierCV, DARERegressorCV, compare
from skdare.bench import Settings
from skdare.bench.heads import DEFAULT_HEADS, HEADS, Training, heads_of
from skdare.bench.run import run_bench, split
from skdare.data import DomainData, load_diabetes_domains, load_penguin_domains
from skdare.errors import DataNote, InputError
from skdare.fitting.preparation import AutoPreparation
from skdare.heads import table as table_of_heads

pytestmark = pytest.mark.filterwarnings("ignore::skdare.errors.DataNote")

HEADS_OF_TASK = [(task, name) for name, head in HEADS.items() for task in head.tasks]


def table(task="classification", groups=None, **options) -> DomainData:
    made_of = made("classes" if task == "classification" else task, E=4, n=30, **options)
    names = np.array(list("abcd"))[made_of.domains]
    return DomainData.of(made_of.X, made_of.y, domains=names, groups=groups)


def held_out(data, domain="b", task="classification", chooses=True):
    """What heads are fitted to, and the table of the held-out domain."""
    train, test = split(data, domain)
    metric = "accuracy" if task == "classification" else "r2"
    return Training(train, task, metric, chooses), test


# -- The same models ------------------------------------------------------------------------------


@pytest.mark.parametrize(("task", "name"), HEADS_OF_TASK)
def test_a_head_of_the_bench_is_the_one_that_fit_makes_by_the_same_name(task, name):
    head = HEADS[name]
    training, test = held_out(table(task), task=task)
    fitted = training.fit(head, test.X)
    kind = table_of_heads.HEADS[head.fits]
    options = {} if head.fits in ("dare-cv", "by-hand") else {"l2": training.ridge}
    model = kind.estimator(task, **options)
    data = training.data
    model.fit(data.X, data.y, domains=data.domains)
    model = model.adapt(test.X) if head.adapts else model
    np.testing.assert_array_equal(fitted.model.predict(fitted.X), model.predict(test.X))


def test_by_hand_is_erm_on_domains_standardised_by_themselves():
    data = load_penguin_domains()
    for domain in data.domain_names:
        training, test = held_out(data, domain)
        fitted = training.fit(HEADS["by-hand"], test.X)
        train = training.data
        X = train.X.copy()
        for other in np.unique(train.domains):
            X[train.domains == other] = StandardScaler().fit_transform(X[train.domains == other])
        l2 = fitted.model.best_params_["l2"]
        by_hand = LogisticRegression(C=1.0 / (l2 * len(X)), tol=1e-8).fit(X, train.y)
        np.testing.assert_allclose(
            fitted.model.decision_function(fitted.X),
            by_hand.decision_function(StandardScaler().fit_transform(test.X)),
            atol=1e-2,  # where the solvers stop
        )


def test_the_options_of_fit_and_bench_are_named_alike():
    from skdare.cli.fit import fit

    parameter = inspect.signature(fit, eval_str=True).parameters["head"]
    assert set(parameter.annotation.__args__) == set(table_of_heads.HEADS)
    assert {head.fits for head in HEADS.values()} == set(table_of_heads.HEADS)
    assert set(DEFAULT_HEADS) <= set(HEADS)


@pytest.mark.parametrize("name", sorted(table_of_heads.CLASSES))
def test_every_class_of_the_table_is_public(name):
    import skdare

    assert getattr(skdare, name) is table_of_heads.class_named(name)


# -- Leakage --------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_labels_of_the_held_out_domain_change_no_record(task, tmp_path):
    data = table(task)
    heads = tuple(name for name, head in HEADS.items() if task in head.tasks)
    inside = data.domains == "b"
    y = data.y.copy()
    y[inside] = y[inside][::-1]
    predictions = []
    for labels in (data.y, y):
        training, test = held_out(replace(data, y=labels), task=task)
        fits = [training.fit(HEADS[name], test.X) for name in heads]
        predictions.append([fit.model.predict(fit.X) for fit in fits])
    np.testing.assert_array_equal(*predictions)


@pytest.mark.parametrize("name", [name for name, head in HEADS.items() if not head.adapts])
def test_a_head_that_does_not_adapt_sees_no_row_of_the_held_out_domain(name):
    data = table()
    if "classification" not in HEADS[name].tasks:
        pytest.skip("a head of regression")
    X = data.X.copy()
    X[data.domains == "b"] *= 1e3
    coefs = []
    for rows in (data.X, X):
        training, test = held_out(replace(data, X=rows))
        coefs.append(training.fit(HEADS[name], test.X).model.coef_)
    np.testing.assert_array_equal(*coefs)


def test_the_held_out_domain_and_its_groups_are_never_trained_on():
    groups = np.random.default_rng(0).integers(25, size=120)
    data = table(groups=groups)
    for domain in "abcd":
        train, test = split(data, domain)
        assert set(test.domains) == {domain}
        assert domain not in train.domains
        assert not set(train.groups) & set(test.groups)


def test_repeats_keep_the_same_share_of_every_training_domain():
    data = table()
    parts = [split(data, "a", repeat, 0.8)[0] for repeat in range(2)]
    for part in parts:
        names, counts = np.unique(part.domains, return_counts=True)
        assert names.tolist() == list("bcd")
        assert counts.tolist() == [24, 24, 24]
    assert not np.array_equal(parts[0].X, parts[1].X)
    # A domain keeps the same rows whatever the others are.
    alone = split(data.rows(np.flatnonzero(data.domains != "d")), "a", 0, 0.8)[0]
    np.testing.assert_array_equal(
        alone.X[alone.domains == "b"], parts[0].X[parts[0].domains == "b"]
    )


def test_the_ridge_is_chosen_on_training_domains():
    training, _ = held_out(table(), chooses=False)
    data = training.data
    best = DAREClassifierCV(strategies=("erm",)).fit(data.X, data.y, domains=data.domains)
    results = best.cv_results_
    scores = results["mean_test_score"]
    ridges = results["param_l2"][scores == scores.max()]
    assert training.ridge == max(ridges)
    assert training.search.cv_results_["param_strategy"].tolist() == ["erm"] * 3
    # The same ridge is best whether or not other strategies are tried.
    assert held_out(table())[0].ridge == training.ridge


def test_one_search_one_preparation_and_one_fit_serve_all_rows_of_a_comparison(monkeypatch):
    counts = {"search": 0, "dare": 0, "prepared": 0}

    def counting(kind, name, key):
        before = getattr(kind, name)

        def fit(self, *arguments, **options):
            counts[key] += 1
            return before(self, *arguments, **options)

        monkeypatch.setattr(kind, name, fit)

    counting(DAREClassifierCV, "_fitted", "search")
    counting(DAREClassifier, "_fitted", "dare")
    counting(AutoPreparation, "fit", "prepared")
    training, test = held_out(table())
    for name in ("erm", "dare-cv", "dare-cv-adapted", "dare", "dare-adapted"):
        training.fit(HEADS[name], test.X)
    # Once for all heads; by the search once for all rows and once without each domain.
    assert counts == {"search": 1, "dare": 1, "prepared": 1 + 1 + 3}


def test_missing_values_are_filled_from_the_training_rows():
    data = table()
    X = data.X.copy()
    X[data.domains == "b", 0] = np.nan  # a column that is complete in training
    X[3, 1] = np.nan
    training, test = held_out(replace(data, X=X))
    filled = training.preparation.transform(test.X)[:, 0]
    expected = AutoPreparation().fit(training.data.X).transform(test.X)[:, 0]
    np.testing.assert_array_equal(filled, expected)
    assert np.isfinite(filled).all()
    for name in DEFAULT_HEADS:
        fitted = training.fit(HEADS[name], test.X)
        assert len(fitted.model.predict(fitted.X)) == 30


@pytest.mark.filterwarnings("always::skdare.errors.DataNote")
def test_groups_in_all_training_domains_are_left_out_of_the_choice_and_it_is_noted():
    groups = np.tile(np.arange(30), 4)
    groups[:30] += 100  # a is alone, the others are tied
    training, _ = held_out(table(groups=groups), "a")
    with pytest.warns(DataNote, match="the choice was made without groups"):
        training.search  # noqa: B018


# -- compare --------------------------------------------------------------------------------------


class Shifted(BaseEstimator):
    """Predicts the class whose mean is nearest, from the mean of the rows of a domain on."""

    def fit(self, X, y, domains=None):
        self.classes_ = np.unique(y)
        self.domains_seen_ = None if domains is None else sorted(set(domains))
        self.centre_ = X.mean(axis=0)
        self.means_ = np.stack([X[y == label].mean(axis=0) for label in self.classes_])
        return self

    def adapt(self, X):
        adapted = clone(self)
        adapted.__dict__.update(self.__dict__, centre_=X.mean(axis=0), means_=self.means_)
        adapted.means_ = self.means_ - self.centre_ + adapted.centre_
        return adapted

    def predict(self, X):
        distances = ((X[:, None, :] - self.means_) ** 2).sum(axis=2)
        return self.classes_[distances.argmin(axis=1)]


@pytest.fixture(scope="module")
def comparison():
    data = table()
    heads = {"logistic": LogisticRegression(), "nothing": DummyClassifier(), "shifted": Shifted()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return data, compare(data.X, data.y, domains=data.domains, heads=heads)


def test_an_estimator_is_scored_as_scikit_learn_scores_it(comparison):
    data, result = comparison
    for domain in "abcd":
        new = data.domains == domain
        model = LogisticRegression().fit(data.X[~new], data.y[~new])
        assert result.scores.loc[domain, "logistic"] == model.score(data.X[new], data.y[new])


def test_what_can_adapt_is_scored_twice_and_is_given_domains(comparison):
    data, result = comparison
    assert list(result.scores) == ["erm", "logistic", "nothing", "shifted", "shifted-adapted"]
    new = data.domains == "c"
    model = Shifted().fit(data.X[~new], data.y[~new], domains=data.domains[~new])
    assert result.scores.loc["c", "shifted-adapted"] == np.mean(
        model.adapt(data.X[new]).predict(data.X[new]) == data.y[new]
    )
    frame = result.frame
    uses = frame[frame["head"] == "shifted-adapted"]["uses"]
    assert set(uses) == {"unlabelled rows"}
    training, test = held_out(data)
    own = heads_of(Shifted(), "s")["s"]
    assert training.fit(own, test.X).model.domains_seen_ == ["a", "c", "d"]


def test_named_heads_score_as_in_a_bench(tmp_path):
    data = table()
    result = compare(data.X, data.y, domains=data.domains, heads=["dare"])
    records = run_bench(data, tmp_path, Settings(heads=("dare",))).records()
    for record in records:
        assert result.scores.loc[record.held_out, record.head] == record.score


def test_an_error_of_an_estimator_is_reported_and_the_others_go_on():
    class Broken(LogisticRegression):
        def fit(self, X, y):
            raise RuntimeError("out of luck")

    data = table()
    result = compare(data.X, data.y, domains=data.domains, heads=[Broken()])
    assert result.scores["erm"].notna().all()
    assert result.scores["Broken"].isna().all()
    assert "out of luck" in str(result)


def test_other_options_of_an_estimator_are_another_trial(tmp_path):
    data = table()
    options = {"domains": data.domains, "out": tmp_path, "held_out": ("a",)}
    compare(data.X, data.y, heads={"mine": LogisticRegression(C=1e-6)}, **options)
    result = compare(data.X, data.y, heads={"mine": LogisticRegression(C=10.0)}, **options)
    new = data.domains == "a"
    model = LogisticRegression(C=10.0).fit(data.X[~new], data.y[~new])
    assert result.scores.loc["a", "mine"] == model.score(data.X[new], data.y[new])


@pytest.mark.parametrize(
    ("heads", "message"),
    [
        (["ermm"], "no head is called 'ermm'"),
        ([LogisticRegression], "pass estimators, not fitted, and names"),
        ([LogisticRegression(), LogisticRegression(C=2.0)], "two of a name"),
        ({"erm": LogisticRegression()}, "a head of the bench is called erm"),
        ({"mine": 3}, "heads has 3"),
    ],
    ids=["typo", "class", "twice", "taken", "number"],
)
def test_heads_that_cannot_be_compared_are_refused(heads, message):
    data = table()
    with pytest.raises(InputError, match=message):
        compare(data.X, data.y, domains=data.domains, heads=heads)


def test_a_regression_is_compared_by_r2():
    data = load_diabetes_domains()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = compare(data.X, data.y, domains=data.domains, heads=["dare-cv"])
    new = data.domains == data.domain_names[0]
    head = DARERegressorCV().fit(data.X[~new], data.y[~new], domains=data.domains[~new])
    assert result.scores.loc[data.domain_names[0], "dare-cv"] == pytest.approx(
        head.score(data.X[new], data.y[new])
    )
