"""What a trial may use: nothing of the held-out domain, unless its record says so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from skdare import ERMClassifier
from skdare.bench import run
from skdare.bench._ceilings import fit_ceiling
from skdare.bench._default_protocol import choose_l2, fit_default
from skdare.bench._heads import HEADS
from skdare.bench._paper_protocol import fit_paper
from skdare.bench._preparation import Projection
from skdare.bench._record import LABELS
from skdare.datasets import DomainData
from skdare.whitening.moments import Moments
from small_bench import CLASSIFIERS, FAST, IN_PAPER, fold_of, poisoned, small_plan, table


@pytest.mark.filterwarnings("ignore:adapting changed nothing")
@pytest.mark.parametrize(
    ("protocol", "name"),
    [(fit_default, name) for name in CLASSIFIERS] + [(fit_paper, name) for name in IN_PAPER],
)
def test_no_head_sees_the_held_out_labels_and_only_adapted_ones_its_features(protocol, name):
    prepared = {"impute": "median", "standardize": True, "clip": 5.0}
    settings = replace(FAST, l2="matched", l2_grid=(0.01, 0.1), **prepared)

    def weights(data):
        head = protocol(fold_of(data, settings), name, {}, settings).predictor
        return head.V if hasattr(head, "V") else head.coef_

    clean = weights(table())
    np.testing.assert_array_equal(weights(poisoned(table(), labels=True)), clean)
    other = weights(poisoned(table(), features=True))
    # The choosing head may choose not to adapt.
    if HEADS[name].adapts and name != "dare-cv-adapted":
        assert not np.allclose(other, clean)
    elif not HEADS[name].adapts:
        np.testing.assert_array_equal(other, clean)


@pytest.mark.parametrize("name", ["ceiling-exact", "ceiling-sgd"])
def test_a_ceiling_does_see_the_held_out_labels(name):
    heads = [
        fit_ceiling(fold_of(data), name, FAST).predictor
        for data in (table(), poisoned(table(), labels=True))
    ]
    first, second = (h.V if hasattr(h, "V") else h.coef_ for h in heads)
    assert not np.allclose(first, second)


@pytest.mark.parametrize("projection", [None, Projection("pca", 3), Projection("random", 3)])
def test_prepared_training_rows_do_not_depend_on_the_held_out_domain(projection):
    data = table()
    data.X[::7, 2] = np.nan
    settings = replace(FAST, impute="median", standardize=True, clip=3.0)
    clean = fold_of(data, settings, projection=projection)
    other = fold_of(poisoned(data, features=True), settings, projection=projection)
    np.testing.assert_array_equal(clean.train.X, other.train.X)
    assert np.isfinite(clean.train.X).all()
    assert np.isfinite(clean.test.X).all()


def test_l2_is_chosen_without_the_held_out_domain_and_by_leaving_training_domains_out():
    settings = replace(FAST, l2_grid=(1e-3, 1e-1, 10.0))
    data = table()
    fold = fold_of(data)
    chosen = choose_l2(fold, HEADS["erm"], {}, settings)
    means = {}
    for l2 in settings.l2_grid:
        scores = []
        for left_out in fold.training_domains:
            inner, outer = fold.without(left_out), fold.training_rows(left_out)
            head = ERMClassifier(l2=l2).fit(inner.X, inner.y)
            scores.append(head.score(outer.X, outer.y))
        means[l2] = np.mean(scores)
    assert means[chosen] == max(means.values())


def test_poisoned_labels_change_no_record_of_a_head_without_labels():
    clean, other = (
        {
            record.values["cell"]: [record.values.get(f"score:{d}") for d in "acd"]
            for record in run(
                small_plan(data, trials=1, extras=["ceilings"], held_out=["b"], heads=CLASSIFIERS)
            )
            if record.uses != LABELS
        }
        for data in (table(), poisoned(table(), labels=True))
    )
    assert clean == other
    assert len(clean) == len(CLASSIFIERS)


def test_a_domain_is_split_alike_whatever_the_other_domains_are():
    data = table()
    whole = fold_of(data)
    fewer = fold_of(DomainData(*(v[data.domains != "d"] for v in (data.X, data.y, data.domains))))
    np.testing.assert_array_equal(whole.reserved, fewer.reserved)
    assert whole.reserved.sum() == 12
    assert len(whole.train.y) == 3 * 48


def test_trial_zero_takes_the_split_of_the_file_and_others_draw_their_own():
    data = replace(table(), split=np.arange(240) % 3 == 0)
    first, second = (fold_of(data, number=number) for number in (0, 1))
    np.testing.assert_array_equal(first.reserved, data.split[data.domains == "b"])
    assert first.split == "of the file"
    assert second.reserved.sum() == 12


def test_a_drawn_split_validates_only_on_rows_that_the_file_sets_aside_too():
    data = replace(table(), split=np.arange(240) % 3 == 0)
    aside = {tuple(row) for row in data.X[data.split]}
    fold = fold_of(data, number=1)
    assert 0 < len(fold.valid.y) < 36
    assert all(tuple(row) in aside for row in fold.valid.X)


def test_fewer_training_domains_are_prepared_by_their_own_rows_alone():
    settings = replace(FAST, standardize=True)
    fold = fold_of(table(), settings, training_domains=("a", "d"))
    assert set(fold.train.domains) == {"a", "d"}
    np.testing.assert_allclose(fold.train.X.mean(axis=0), 0.0, atol=1e-9)


@pytest.mark.parametrize("jobs", [1, 3])
def test_moments_are_computed_once_for_each_domain_and_split(monkeypatch, jobs):
    calls = []
    original = Moments.of.__func__

    def counted(cls, *arguments, **more):
        calls.append(1)
        return original(cls, *arguments, **more)

    monkeypatch.setattr(Moments, "of", classmethod(counted))
    heads = ["erm", "reweighted", "groupdro", "irm", "dare"]
    records = list(run(small_plan(trials=2, heads=heads, extras=["diagnostics"]), jobs=jobs))
    assert all(record.status == "ok" for record in records)
    assert len(calls) == 2 * 4
