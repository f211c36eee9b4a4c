"""A rehearsal shows what holding a domain out gives, whichever way it is asked for."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from held_out_problems import TASKS, made
from skdare import DAREClassifier, DAREClassifierCV, DARERegressor, ERMClassifier, load
from skdare.diagnosis import rehearsal as rehearsals
from skdare.errors import DataNote, InputError
from skdare.heads import adaptable
from skdare.whitening import prior

pytestmark = pytest.mark.filterwarnings("ignore::skdare.errors.DataNote")


def plain(table, **options):
    return (DARERegressor if table.is_regression else DAREClassifier)(**options)


def scores_of(rehearsal):
    """All numbers of a rehearsal."""
    return [
        (d.domain, d.rows, d.unadapted, d.disagreement, d.both_right, d.adapted, d.labelled)
        for d in rehearsal.domains
    ]


@pytest.mark.parametrize("task", TASKS)
def test_scores_are_those_of_a_head_fitted_to_the_others(task):
    table = made(task, E=4, n=90)
    rehearsal = plain(table).fit(*table.rows).rehearse(*table.rows)
    for e, scores in enumerate(rehearsal.domains):
        without = plain(table).fit(*table.without(e))
        X, y = table.of(e)
        assert scores.domain == e
        assert scores.rows == 90
        assert scores.unadapted == pytest.approx(max(without.score(X, y), -1.0), abs=1e-9)
        adapted = without.adapt(X)
        assert scores.adapted_by_all == pytest.approx(max(adapted.score(X, y), -1.0), abs=1e-9)
        if task != "regression":
            before, after = without.predict(X), adapted.predict(X)
            assert scores.disagreement == pytest.approx(np.mean(before != after))
            assert scores.both_right == pytest.approx(np.mean((before == y) & (after == y)))


@pytest.mark.parametrize("task", TASKS)
def test_fit_and_rehearse_say_the_same(task):
    table = made(task, E=9, n=45)  # in eight folds two domains are held out together
    at_once = table.choosing(l2=(0.05,)).fit(*table.rows, rehearse=True)
    later = clone(at_once).fit(*table.rows)
    assert later.rehearsal_ is None
    later.rehearse(*table.rows)
    assert scores_of(later.rehearsal_) == scores_of(at_once.rehearsal_)


@pytest.mark.parametrize("task", ["classes", "regression"])
def test_each_domain_is_held_out_from_what_the_others_would_have_chosen(task, monkeypatch):
    monkeypatch.setattr(prior, "_HALF_ADAPTED", 0.0)  # no blend with another unadapted head
    table = made(task, E=5, spread=4.0)
    names = ("erm", "reweighted", "center", "standardize")
    head = table.choosing(strategies=names, standard_errors=0.0, tol=1e-8, preparation=None)
    head.fit(*table.rows, rehearse=True)
    choice = head.choice_
    assert choice.adapts
    for e, scores in enumerate(head.rehearsal_.domains):
        for chosen, score in (
            (choice.predicting_without[e], scores.unadapted),
            (choice.adapting_without[e], scores.adapted_by_all),
        ):
            tried = choice.candidates[chosen]
            alone = clone(head).set_params(strategies=(tried.name,), l2=(tried.l2,))
            alone.fit(*table.without(e))
            X, y = table.of(e)
            model = alone.adapt(X) if tried.strategy.adapts else alone
            assert score == pytest.approx(max(model.score(X, y), -1.0), abs=1e-6)


def test_labels_are_rehearsed_though_adapting_was_declined():
    table = made(E=4, n=60)
    head = table.choosing(strategies=("erm", "reweighted")).fit(*table.rows)
    assert head.choice_.declined is not None
    rehearsal = head.rehearse(*table.rows)
    assert all(scores.adapted is None for scores in rehearsal.domains)
    assert all(scores.labelled is not None for scores in rehearsal.domains)


@pytest.mark.parametrize("task", TASKS)
def test_rows_of_the_held_out_domain_change_nothing_but_its_own_scores(task):
    table = made(task, E=4)
    inside = table.domains == 2
    X, y = table.X.copy(), table.y.copy()
    X[inside] = X[inside][::-1] * 3.0
    changed = replace(table, X=X, y=y)
    first, second = (plain(t).fit(*t.rows) for t in (table, changed))
    heads = []
    for head, t in ((first, table), (second, changed)):
        problem, _ = head._problem(*t.rows, None)
        for held, without in head._without_each(problem, head.state_):
            if held.domains == [2]:
                heads.append((*without.unseen.raw_weights(),))
    for a, b in zip(*heads, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)


def test_a_rehearsal_changes_no_prediction_and_keeps_no_rows():
    table = made()
    head = plain(table).fit(*table.rows)
    coef = head.coef_.copy()
    adapted = head.adapt(table.of(1)[0]).coef_
    head.rehearse(*table.rows)
    np.testing.assert_array_equal(head.coef_, coef)
    np.testing.assert_array_equal(head.adapt(table.of(1)[0]).coef_, adapted)


def test_a_new_fit_forgets_the_rehearsal():
    table = made()
    head = plain(table).fit(*table.rows)
    head.rehearse(*table.rows)
    assert head.fit(*table.rows).rehearsal_ is None


def test_a_rehearsal_survives_the_file(tmp_path):
    table = made(E=4)
    head = table.choosing(l2=(0.1,)).fit(*table.rows, rehearse=True)
    head.save(tmp_path / "head.safetensors")
    copy = load(tmp_path / "head.safetensors").rehearsal_
    assert scores_of(copy) == scores_of(head.rehearsal_)
    assert str(copy) == str(head.rehearsal_)


def test_a_preparation_is_fitted_anew_without_each_domain():
    table = made(E=4)
    table.X[table.domains == 3] *= 1e3
    head = plain(table, preparation=StandardScaler()).fit(*table.rows)
    for e, scores in enumerate(head.rehearse(*table.rows).domains):
        without = plain(table, preparation=StandardScaler()).fit(*table.without(e))
        assert scores.unadapted == pytest.approx(without.score(*table.of(e)), abs=1e-9)


def test_domains_that_share_a_group_are_held_out_together():
    table = made(E=5)
    groups = np.arange(len(table.y))
    groups[table.domains == 3] = groups[table.domains == 1]
    head = plain(table).fit(*table.rows)
    scores = head.rehearse(*table.rows, groups=groups).domains
    for e in range(5):
        tied = (1, 3) if e in (1, 3) else (e,)
        without = plain(table).fit(*table.without(*tied))
        assert scores[e].unadapted == pytest.approx(without.score(*table.of(e)), abs=1e-9)


def test_groups_that_fit_had_are_missed_by_a_rehearsal(tmp_path):
    table = made(E=3)
    groups = np.arange(len(table.y)) // 2
    head = table.choosing(strategies=("erm",)).fit(*table.rows, groups=groups)
    head.save(tmp_path / "head.safetensors")
    for each in (head, load(tmp_path / "head.safetensors")):
        with pytest.raises(InputError, match=r"fitted with groups.*; pass the same groups"):
            each.rehearse(*table.rows)
    assert head.rehearse(*table.rows, groups=groups) is head.rehearsal_


def test_weights_of_rows_count():
    table = made(E=3, n=40)
    weight = np.random.default_rng(0).integers(1, 3, len(table.y))
    weighted = plain(table).fit(*table.rows, weight).rehearse(*table.rows, weight)
    for e, scores in enumerate(weighted.domains):
        keep = table.domains != e
        without = plain(table).fit(*table.without(e), weight[keep])
        assert scores.unadapted == pytest.approx(without.score(*table.of(e)), abs=1e-9)


def test_classes_may_count_the_same():
    table = made(E=3)
    for options in ({"class_weight": "balanced"}, {"scoring": "balanced_accuracy"}):
        head = table.choosing(l2=(0.1,), strategies=("erm",), **options)
        rehearsal = head.fit(*table.rows, rehearse=True).rehearsal_
        assert rehearsal.metric.name == "balanced_accuracy"
        assert rehearsal.metric.guessing == pytest.approx(1 / 3)


@pytest.mark.parametrize("n", [3, 4])
def test_domains_of_few_rows_are_rehearsed(n):
    table = made("binary", E=12, n=n)
    rehearsal = plain(table).fit(*table.rows).rehearse(*table.rows)
    assert [scores.rows for scores in rehearsal.domains] == [n] * 12


def test_a_domain_without_which_one_class_is_left_is_not_rehearsed():
    table = made(E=4)
    y = np.where(table.domains == 1, table.y, 0)
    head = DAREClassifier().fit(table.X, y, table.domains)
    rehearsal = head.rehearse(table.X, y, table.domains)
    assert [scores.domain for scores in rehearsal.domains] == [0, 2, 3]
    two = made(E=2)
    head = DAREClassifier().fit(two.X, two.domains, two.domains)
    with pytest.raises(InputError, match="no training domain can be held out"):
        head.rehearse(two.X, two.domains, two.domains)


@pytest.mark.parametrize("kind", ["csr", "float32", "torch"])
def test_rows_of_any_kind_are_rehearsed_alike(kind):
    table = made(E=4)
    X = sparse.csr_array(table.X) if kind == "csr" else table.X.astype(np.float32)
    if kind == "torch":
        X = pytest.importorskip("torch", reason="torch is not installed").asarray(table.X)
    rehearsed, expected = (
        plain(table).fit(rows, *table.rows[1:]).rehearse(rows, *table.rows[1:])
        for rows in (X, table.X)
    )
    for first, second in zip(rehearsed.domains, expected.domains, strict=True):
        assert first.unadapted == pytest.approx(second.unadapted, abs=1.1 / 60)
        assert first.adapted_by_all == pytest.approx(second.adapted_by_all, abs=1.1 / 60)


def test_of_too_many_rows_every_domain_is_rehearsed_with_the_same_share(monkeypatch):
    table = made(E=4)
    head = plain(table).fit(*table.rows)
    monkeypatch.setattr(adaptable, "_CELLS", table.X.size // 3)
    scores = head.rehearse(*table.rows).domains
    assert [each.rows for each in scores] == [20] * 4
    some = [rows[::3] for rows in table.without(2)]
    without = plain(table).fit(*some)
    X, y = (rows[::3] for rows in table.of(2))
    assert scores[2].unadapted == pytest.approx(without.score(X, y), abs=1e-9)


def test_numbers_of_rows_and_labels_grow_to_all_rows_and_half_of_them():
    table = made(E=4, n=450)
    rehearsal = plain(table).fit(*table.rows).rehearse(*table.rows)
    for scores in rehearsal.domains:
        assert scores.adapted.numbers == [25, 100, 400, 450]
        assert scores.labelled.numbers == [20, 50, 200]


def test_of_many_domains_some_are_labelled():
    table = made("binary", E=12, n=45)
    rehearsal = plain(table).fit(*table.rows).rehearse(*table.rows)
    labelled = [scores.domain for scores in rehearsal.domains if scores.labelled is not None]
    assert 1 < len(labelled) <= rehearsals._MOST_LABELLED


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: (t.X[t.domains != 0], t.y[t.domains != 0], t.domains[t.domains != 0]), "pass"),
        (lambda t: (t.X, t.y, t.domains.astype(str)), "pass the training rows"),
        (lambda t: (t.X[:, :3], t.y, t.domains), "360 rows of 3 features are not those that"),
        (lambda t: (t.X[1:], t.y[1:], t.domains[1:]), "359 rows of 5 features are not those that"),
    ],
    ids=["domain left out", "labels of another kind", "features left out", "row left out"],
)
def test_a_rehearsal_on_other_rows_is_refused(change, message):
    table = made()
    head = plain(table).fit(*table.rows)
    with pytest.raises(ValueError, match=message):
        head.rehearse(*change(table))
    assert head.rehearsal_ is None


def test_one_domain_cannot_be_rehearsed():
    table = made()
    head = DAREClassifier().fit(table.X, table.y)
    with pytest.raises(InputError, match="rehearsing holds a domain out, and there is one"):
        head.rehearse(table.X, table.y)
    with pytest.raises(InputError, match="there is one"):
        DAREClassifierCV().fit(table.X, table.y, rehearse=True)


def test_only_heads_that_adapt_are_rehearsed():
    assert not hasattr(ERMClassifier(), "rehearse")


@pytest.mark.filterwarnings("error")
def test_a_rehearsal_repeats_no_warning_for_each_domain():
    table = made(E=3)
    head = plain(table)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataNote)
        head.fit(*table.rows)
    head.rehearse(*table.rows)
