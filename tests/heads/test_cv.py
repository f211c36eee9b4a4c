"""Heads that choose: the search equals the loop one would write, and says what it chose."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skdare
from skdare import (
    DAREClassifier,
    DAREClassifierCV,
    DARERegressorCV,
    ERMClassifier,
    ReweightedClassifier,
)
from skdare._validation import InputError
from skdare.choosing.strategies import BY_DEFAULT, STRATEGIES
from skdare.datasets import load_digit_domains
from skdare.whitening import prior


@pytest.fixture(autouse=True, scope="module")
def few_rows_are_not_blended():
    """What is searched is adapting alone; a handful of rows is blended with the unadapted head."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prior, "HALF_ADAPTED", 0.0)
        yield


def by_hand(problem, make, *, adapt=False):
    """Score on each domain of a head trained on the others, written as a loop."""
    scores = []
    for label in problem.labels:
        new = problem.domains == label
        head = make().fit(problem.X[~new], problem.y[~new], domains=problem.domains[~new])
        if adapt:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                head = head.adapt(problem.X[new])
        scores.append(head.score(problem.X[new], problem.y[new]))
    return scores


def searched(head, strategy):
    """Scores of the only candidate of a strategy, domain by domain."""
    row = head.cv_results_["param_strategy"].tolist().index(strategy)
    return [head.cv_results_[f"split{e}_test_score"][row] for e in range(len(head.domains_))]


STANDARDIZE = {"shrinkage": 1.0, "shrinkage_target": "diagonal", "adaptation": "centered"}
WHITEN = {"shrinkage": 0.4, "shrinkage_target": "diagonal", "adaptation": "centered"}
BY_HAND = {
    "center": {"adjust": False, "adaptation": "centered"},
    "standardize": STANDARDIZE,
    "whiten": WHITEN,
    "raw": {"shrinkage": 0.4, "adaptation": "raw"},
    "center+mixture": {"adjust": False, "adaptation": "mixture"},
    "standardize+mixture": STANDARDIZE | {"adaptation": "mixture"},
}


@pytest.fixture(scope="module", params=["classification", "binary", "regression"])
def one_of_each(request, make):
    """A search with a single candidate of every strategy."""
    problem = make(request.param)
    return problem, every_strategy(problem, l2=(0.03,))


def every_strategy(problem, **options):
    numbers = problem.task == "regression"
    kind = DARERegressorCV if numbers else DAREClassifierCV
    names = tuple(name for name in STRATEGIES if not (numbers and STRATEGIES[name].mixture))
    search = kind(strategies=names, shrinkage=(0.4,), **options)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "leaving a training domain out still scores")
        return problem.fit(search)


def agree(scores, expected, problem):
    """To the last row of the smallest domain, or in three digits of R²."""
    apart = 1.1 / 25 if problem.task != "regression" else 2e-3
    return np.abs(scores - np.maximum(expected, -1.0)).max() <= apart


def head_of(problem, family, **options):
    kind = "Regressor" if problem.task == "regression" else "Classifier"
    return getattr(skdare, family + kind)(l2=0.03, tol=1e-7, **options)


@pytest.mark.parametrize("family", ["ERM", "Reweighted"])
def test_the_search_equals_the_loop_over_domains_with_a_baseline(one_of_each, family):
    problem, head = one_of_each
    expected = by_hand(problem, lambda: head_of(problem, family))
    assert agree(searched(head, family.lower()), expected, problem)


@pytest.mark.parametrize("strategy", sorted(BY_HAND))
def test_the_search_equals_the_loop_over_domains_with_adapted_heads(one_of_each, strategy):
    problem, head = one_of_each
    if strategy not in head.cv_results_["param_strategy"]:
        pytest.skip("numbers have no classes")
    make_head = lambda: head_of(problem, "DARE", **BY_HAND[strategy])  # noqa: E731
    expected = by_hand(problem, make_head, adapt=True)
    assert agree(searched(head, strategy), expected, problem)


def test_the_search_equals_the_loop_over_domains_with_the_average(one_of_each):
    problem, head = one_of_each
    options = {"shrinkage": 0.4, "mean_penalty": None, "guess": "mean"}
    expected = by_hand(problem, lambda: head_of(problem, "DARE", **options))
    assert agree(searched(head, "averaged"), expected, problem)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_the_search_equals_the_loop_over_domains_without_an_intercept(make, task):
    problem = make(task)
    head = every_strategy(problem, l2=(0.03,), fit_intercept=False)
    expected = by_hand(problem, lambda: head_of(problem, "ERM", fit_intercept=False))
    assert agree(searched(head, "erm"), expected, problem)


@pytest.mark.parametrize("task", ["classification", "binary"])
def test_the_search_equals_the_loop_where_one_domain_is_far_larger(make, task):
    problem = make(task)
    X = problem.X.copy()
    X[problem.rows("west"), 0] *= 1e3
    problem = replace(problem, X=X)
    options = {"strategies": ("erm",), "l2": (0.03,)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of that feature's variance
        head = problem.fit(DAREClassifierCV(**options))
        expected = by_hand(problem, lambda: head_of(problem, "ERM"))
    assert agree(searched(head, "erm"), expected, problem)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_the_ridge_may_be_zero(make, task):
    assert np.isfinite(every_strategy(make(task), l2=(0.0,)).best_score_)


def test_results_have_the_keys_of_a_search_in_scikit_learn(three_classes):
    head = three_classes.fit(DAREClassifierCV())
    results = head.cv_results_
    assert results["params"][head.best_index_] == head.best_params_
    assert results["mean_test_score"][head.best_index_] == head.best_score_
    splits = [results[f"split{e}_test_score"] for e in range(3)]
    np.testing.assert_allclose(np.mean(splits, axis=0), results["mean_test_score"])
    assert sorted(results["rank_test_score"]) == list(range(1, len(results["params"]) + 1))


def test_adapt_takes_the_highest_mean(three_classes):
    head = three_classes.fit(DAREClassifierCV(strategies=("erm", "center", "erm+mixture")))
    assert head.best_score_ == head.cv_results_["mean_test_score"].max()


@pytest.mark.parametrize(("standard_errors", "simplest"), [(0, False), (100, True)])
def test_predict_needs_a_sure_gain_to_leave_the_simplest_strategy(
    three_classes, standard_errors, simplest
):
    head = DAREClassifierCV(strategies=("erm", "averaged"), standard_errors=standard_errors)
    results = three_classes.fit(head).cv_results_
    highest = results["param_strategy"][results["mean_test_score"].argmax()]
    assert highest == "averaged"
    assert head.best_params_["strategy"] == ("erm" if simplest else "averaged")


def test_a_mixture_is_tried_at_the_best_ridge_of_what_it_starts_from(three_classes):
    head = three_classes.fit(DAREClassifierCV(strategies=("center", "center+mixture")))
    results = head.cv_results_
    base = results["param_strategy"] == "center"
    best = results["param_l2"][base][results["mean_test_score"][base].argmax()]
    assert results["param_l2"][~base].tolist() == [best]


def test_a_mixture_alone_needs_no_other_strategy_among_the_candidates(three_classes):
    head = three_classes.fit(DAREClassifierCV(strategies=("erm+translation",)))
    assert head.cv_results_["param_strategy"].tolist() == ["erm+translation"]
    assert head.adapts_


def test_mixtures_are_of_classes(make):
    problem = make("regression")
    names = problem.fit(DARERegressorCV()).cv_results_["param_strategy"]
    assert "whiten" in names
    assert "erm+mixture" not in names
    with pytest.raises(ValueError, match="numbers have no classes that could move"):
        problem.fit(DARERegressorCV(strategies=("erm", "erm+mixture")))


@pytest.mark.parametrize("name", ["erm", "reweighted"])
def test_predict_uses_the_chosen_options(three_classes, name):
    head = three_classes.fit(DAREClassifierCV(strategies=(name,), tol=1e-8))
    family = {"erm": ERMClassifier, "reweighted": ReweightedClassifier}[name]
    plain = three_classes.fit(family(tol=head.tol, l2=head.best_params_["l2"]))
    np.testing.assert_allclose(head.coef_, plain.coef_, rtol=0, atol=1e-6)


@pytest.mark.filterwarnings("ignore::skdare.LabelShiftWarning")
@pytest.mark.parametrize("name", sorted(BY_HAND))
def test_adapt_uses_the_chosen_options(three_classes, name):
    options = {"shrinkage": (0.4,), "standard_errors": 0, "tol": 1e-8}
    search = DAREClassifierCV(strategies=("erm", name), **options)
    head = three_classes.fit(search)
    if not head.adapts_:
        head = three_classes.fit(search.set_params(strategies=(name,)))
    options = {"l2": head.best_params_["l2"], "tol": head.tol}
    plain = three_classes.fit(DAREClassifier(**options, **BY_HAND[name]))
    X = three_classes.X[three_classes.rows("north")]
    np.testing.assert_allclose(head.adapt(X).coef_, plain.adapt(X).coef_, rtol=0, atol=1e-6)


def test_adapt_is_refused_where_leaving_out_says_it_hurts(three_classes):
    head = three_classes.fit(DAREClassifierCV(strategies=("standardize",)))
    head._domain_fit = replace(head._domain_fit, declined="No way of adapting was better.")
    with pytest.warns(UserWarning, match="adapting changed nothing"):
        same = head.adapt(three_classes.X)
    with pytest.warns(UserWarning, match="adapting changed nothing"):
        streamed = head.adapter().partial_fit(three_classes.X).head_
    np.testing.assert_array_equal(same.coef_, head.coef_)
    np.testing.assert_array_equal(streamed.coef_, head.coef_)


@pytest.mark.parametrize("strategies", [("erm",), ("erm", "reweighted", "averaged")])
def test_a_search_without_adapting_strategies_adapts_to_nothing(strategies, three_classes):
    head = three_classes.fit(DAREClassifierCV(strategies=strategies))
    with pytest.warns(UserWarning, match="adapting changed nothing. Without rows"):
        np.testing.assert_array_equal(head.adapt(three_classes.X).coef_, head.coef_)


def test_a_domain_of_one_target_has_no_say_in_a_regression_search(regression):
    y = regression.y.copy()
    y[regression.rows("west")] = 3.0
    head = DARERegressorCV().fit(regression.X, y, domains=regression.domains)
    assert np.isnan(head.cv_results_["split2_test_score"]).all()
    assert np.isfinite(head.best_score_)


def test_digit_styles_are_best_served_by_adapting():
    data = load_digit_domains()
    head = DAREClassifierCV(l2=(0.01,)).fit(data.X, data.y, domains=data.domains)
    assert head.adapts_
    assert head.best_score_ > np.mean(searched(head, "erm")) + 0.05
    assert "With them, adapt goes by" in head.choice_


@pytest.mark.filterwarnings("ignore:.*was given no domains")
def test_one_domain_leaves_none_to_hold_out_and_says_so(three_classes):
    head = DAREClassifierCV().fit(three_classes.X, three_classes.y)
    assert "There is only one domain" in head.choice_


def test_scores_too_good_for_unseen_domains_are_pointed_out():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 60)
    X = rng.normal(size=(120, 4)) + 6.0 * y[:, None]
    with pytest.warns(UserWarning, match="features were trained on them"):
        DAREClassifierCV(l2=(0.1,)).fit(X, y, domains=np.tile([0, 1, 2], 40))


class Scored:
    """A scorer that remembers how many rows it was given."""

    def __init__(self):
        self.sizes = []

    def __call__(self, head, X, y):
        self.sizes.append(len(y))
        return float(np.mean(head.predict(X) == y))


@pytest.fixture
def five_domains():
    rng = np.random.default_rng(1)
    domains = np.repeat(list("abcde"), 30)
    y = rng.integers(2, size=150)
    return rng.normal(size=(150, 4)) + 0.7 * y[:, None], y, domains


def test_domains_that_share_a_group_are_left_out_in_one_trial(five_domains):
    X, y, domains = five_domains
    groups = np.arange(150)
    groups[domains == "b"] = groups[domains == "d"]
    search = DAREClassifierCV(strategies=("erm",), l2=(0.1,))
    scores = searched(search.fit(X, y, domains=domains, groups=groups), "erm")
    for label, score in zip("abcde", scores, strict=True):
        out = np.isin(domains, ["b", "d"] if label in "bd" else [label])
        rows = domains == label
        by_hand = ERMClassifier(l2=0.1, tol=1e-7).fit(X[~out], y[~out])
        assert score == pytest.approx(by_hand.score(X[rows], y[rows]), abs=1.1 / 30)


def test_groups_within_their_domains_change_nothing(five_domains):
    X, y, domains = five_domains
    groups = [f"{domain}{i % 7}" for i, domain in enumerate(domains)]
    plain = DAREClassifierCV(l2=(0.1,)).fit(X, y, domains=domains)
    grouped = DAREClassifierCV(l2=(0.1,)).fit(X, y, domains=domains, groups=groups)
    np.testing.assert_array_equal(grouped.coef_, plain.coef_)
    means = "mean_test_score"
    np.testing.assert_array_equal(grouped.cv_results_[means], plain.cv_results_[means])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda groups, domains: np.tile(np.arange(30), 5), "group 0 is in every domain"),
        (
            lambda groups, domains: groups // 50,  # 0 is in a and b, 1 in b, c and d, 2 in d and e
            "the groups tie all 5 domains together \\(group 1 alone is in 3 of them\\)",
        ),
        (lambda groups, domains: groups[1:], "groups has 149 labels but X has 150 rows"),
        (lambda groups, domains: "patient", "groups is 'patient'; pass one label per row$"),
        (
            lambda groups, domains: np.where(groups == 3, np.nan, groups),
            "groups has no label in row 3",
        ),
    ],
)
def test_groups_that_leave_nothing_to_leave_out_are_named(five_domains, change, message):
    X, y, domains = five_domains
    scorer = Scored()
    with pytest.raises(InputError, match=message) as raised:
        DAREClassifierCV(scoring=scorer).fit(
            X, y, domains=domains, groups=change(np.arange(150), domains)
        )
    assert raised.value.argument == "groups"
    assert not scorer.sizes


def test_a_pipeline_routes_groups_without_a_request(five_domains):
    X, y, domains = five_domains
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = make_pipeline(StandardScaler(), DAREClassifierCV())
        with pytest.raises(ValueError, match="is in every domain"):
            pipe.fit(X, y, domains=domains, groups=np.tile(np.arange(30), 5))


def test_a_silent_search_prints_nothing(three_classes, capsys):
    three_classes.fit(DAREClassifierCV())
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("options", [{}, {"standardize": True}], ids=str)
def test_a_verbose_search_prints_a_line_a_strategy_with_its_best_score(
    three_classes, capsys, options
):
    head = three_classes.fit(DAREClassifierCV(verbose=1, **options))
    first, *lines, last = capsys.readouterr().out.splitlines()
    assert last == head.choice_
    assert first == "Leaving 3 domains out in 3 folds for each of 19 candidates"
    results = head.cv_results_
    for name, line in zip(BY_DEFAULT, lines, strict=True):
        best = results["mean_test_score"][results["param_strategy"] == name].max()
        assert re.fullmatch(rf"{re.escape(name)} +{best:.3f} at l2=0\.\d+; \d+\.\ds", line)


def test_a_more_verbose_search_also_says_when_each_is_done(three_classes, capsys):
    options = {"strategies": ("erm", "whiten"), "shrinkage": (0.3, 0.6), "verbose": 2}
    three_classes.fit(DAREClassifierCV(**options))
    done = [line for line in capsys.readouterr().out.splitlines() if line.startswith("[CV] END")]
    assert len(done) == 3
    assert "strategy=whiten, shrinkage=0.6" in done[2]


class Table(HTMLParser):
    """The cells of the tables of class skdare-choice, and what a page would load."""

    def __init__(self, page):
        super().__init__()
        self.cells, self.loaded, self._inside = [], [], False
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self._inside = self._inside or ("class", "skdare-choice") in attributes
        self.loaded += [value for name, value in attributes if name == "src"]
        self.loaded += [dict(attributes)["href"]] if tag == "link" else []
        if tag == "tr" and self._inside:
            self.cells.append([])

    def handle_data(self, data):
        if self._inside and self.cells:
            self.cells[-1].append(data)


def test_the_page_of_a_fitted_head_has_its_choice_and_a_row_a_strategy(three_classes):
    head = three_classes.fit(DAREClassifierCV())
    page = head._repr_html_()
    diagram = sklearn.utils.estimator_html_repr(clone(head))
    counted = r"sk-container-id-\d+"  # earlier versions number every diagram
    assert re.sub(counted, "", page)[:40] == re.sub(counted, "", diagram)[:40]
    assert head.choice_ in page
    assert head._repr_mimebundle_()["text/html"].endswith(page[page.index("skdare-choice") :])
    table = Table(page)
    assert not table.loaded
    heads, first, *rest = table.cells
    assert heads == ["strategy", "mean score", "worst domain", "gain over the simplest"]
    assert len(first) == 3  # the simplest gains nothing over itself
    for name, row in zip(BY_DEFAULT[1:], rest, strict=True):
        assert row[0].removesuffix(" (chosen)") == name
        best = head.cv_results_["mean_test_score"][head.cv_results_["param_strategy"] == name].max()
        gain = float(row[3].split(" ± ")[0].replace("\u2212", "-"))
        assert gain == pytest.approx(best - float(first[1]), abs=2e-3)
    chosen = [row[0] for row in table.cells if "(chosen)" in row[0]]
    assert chosen == [f"{head.best_params_['strategy']} (chosen)"]


@pytest.mark.filterwarnings("ignore:.*was given no domains")
def test_the_page_of_a_head_without_scores_has_no_table(three_classes):
    assert "skdare-choice" not in DAREClassifierCV()._repr_html_()
    head = DAREClassifierCV().fit(three_classes.X, three_classes.y)
    assert not Table(head._repr_html_()).cells
    head.choice_ = "<script>"
    assert "<p>&lt;script&gt;</p>" in head._repr_html_()
