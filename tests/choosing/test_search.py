"""What a search sees: folds of whole domains, rows in memory, the rule by which it chooses."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import GroupKFold, GroupShuffleSplit, KFold, LeaveOneGroupOut

from skdare import DAREClassifierCV, LeaveOneDomainOut, load
from skdare._input_error import InputError
from skdare.choosing import sample
from skdare.choosing.folds import folds_of, units_of
from skdare.choosing.rule import choose
from skdare.choosing.strategies import BY_DEFAULT, STRATEGIES, Candidate, candidates_of
from skdare.datasets import make_latent_domains


@pytest.mark.parametrize(("sizes", "folds"), [([5] * 30, 8), ([100, 1, 1, 1], 2), ([7, 7, 7], 3)])
def test_folds_are_whole_domains_and_each_is_left_out_once(sizes, folds):
    parts = folds_of(sizes, folds)
    assert sorted(e for part in parts for e in part) == list(range(len(sizes)))
    assert len(parts) == folds


def test_a_large_domain_is_left_out_alone():
    assert [0] in folds_of([100, 1, 1, 1], 2)


def test_few_domains_are_left_out_one_by_one():
    assert sorted(folds_of([3, 9, 4], 8)) == [[0], [1], [2]]


@pytest.mark.parametrize(
    ("codes", "units"),
    [
        ([0, 1, 2, 3, 4, 5, 6, 7], [[0], [1], [2], [3]]),
        ([0, 1, 1, 3, 4, 5, 6, 7], [[0, 1], [2], [3]]),
        ([0, 1, 1, 2, 4, 2, 6, 7], [[0, 1, 2], [3]]),  # by a chain: 0 with 1, and 1 with 2
    ],
)
def test_domains_that_share_a_group_are_one_unit(codes, units):
    index = [slice(2 * e, 2 * e + 2) for e in range(4)]
    assert units_of(index, np.array(codes), list("abcd"), list(range(8))) == units


@pytest.mark.parametrize("at_most", [2, 3, 8])
def test_units_are_never_parted(at_most):
    units = [[0, 3], [1], [2], [4, 5]]
    folds = folds_of([5, 9, 4, 1, 2, 2], at_most, units)
    assert sorted(e for fold in folds for e in fold) == list(range(6))
    assert all(any(set(unit) <= set(fold) for fold in folds) for unit in units)


def test_candidates_come_from_the_simplest_on_whatever_the_order():
    names = [c.strategy for c in candidates_of(("whiten", "erm", "center"), (0.5, 0.1), (1.0,))]
    assert names == ["erm", "center", "whiten", "whiten"]


def test_only_what_whitens_has_a_shrinkage_to_choose():
    strengths = {c.strategy: c.shrinkage for c in candidates_of(tuple(STRATEGIES), (0.3,), (1.0,))}
    assert {name for name, rho in strengths.items() if rho is not None} == {
        "averaged",
        "whiten",
        "raw",
    }


def candidates(*names):
    return [Candidate(name, None) for name in names]


@pytest.mark.parametrize(
    ("scores", "chosen"),
    [
        ([[0.70, 0.80, 0.75], [0.72, 0.77, 0.77]], "erm"),  # within its own noise
        ([[0.70, 0.80, 0.75], [0.90, 0.99, 0.74]], "center"),  # far better, if not everywhere
        ([[0.80, 0.80, 0.80], [0.70, 0.90, 0.70]], "erm"),  # worse on average
        ([[0.80, 0.80, 0.80], [0.80, 0.80, 0.80]], "erm"),  # the same
        ([[0.70, 0.70, 0.70], [0.71, 0.71, 0.71]], "center"),  # small, and sure
        ([[0.5, 0.9, 0.9], [0.5, 0.9, np.nan]], "erm"),  # no domain is scored for one alone
    ],
)
def test_a_candidate_must_gain_more_than_the_noise_of_its_gain(scores, chosen):
    number = choose(candidates("erm", "center"), np.array(scores), 1.0)
    assert candidates("erm", "center")[number].strategy == chosen


def test_the_highest_mean_among_those_that_pass_is_taken():
    scores = np.array([[0.5, 0.5, 0.5], [0.6, 0.6, 0.6], [0.7, 0.71, 0.7]])
    assert choose(candidates("erm", "center", "whiten"), scores, 1.0) == 2


def test_the_best_ridge_of_the_simplest_strategy_is_what_others_must_beat():
    scores = np.array([[0.5, 0.5, 0.5], [0.8, 0.8, 0.8], [0.7, 0.7, 0.7]])
    assert choose(candidates("erm", "erm", "center"), scores, 1.0) == 1


@pytest.mark.parametrize("kind", [sparse.csr_array, lambda X: X.astype(np.float16)])
def test_rows_that_are_not_plain_floats_are_brought_to_the_search(three_classes, kind):
    X = kind(three_classes.X.astype(np.float32))
    dense = np.asarray(X.todense() if sparse.issparse(X) else X, dtype=np.float32)
    given, plain = (
        DAREClassifierCV(l2=(0.1,)).fit(rows, three_classes.y, domains=three_classes.domains)
        for rows in (X, dense)
    )
    for name, values in plain.cv_results_.items():
        if name.endswith("_score"):
            np.testing.assert_allclose(given.cv_results_[name], values)


def test_of_too_many_rows_every_domain_keeps_a_share(three_classes, monkeypatch):
    whole = three_classes.fit(DAREClassifierCV(l2=(0.1,)))
    monkeypatch.setattr(sample, "_CELLS", three_classes.X.size // 2)
    half = three_classes.fit(DAREClassifierCV(l2=(0.1,)))
    assert half.cv_results_["param_strategy"].tolist() == list(BY_DEFAULT)
    difference = half.cv_results_["mean_test_score"] - whole.cv_results_["mean_test_score"]
    assert 0 < np.abs(difference).max() < 0.3
    # The final fit has all rows.
    if half.best_params_ == whole.best_params_:
        np.testing.assert_allclose(half.coef_, whole.coef_)


def test_a_gain_of_rounding_is_none():
    scores = np.array([[0.8, 0.7, 0.9], [0.8 + 1e-9, 0.7 + 1e-9, 0.9 + 1e-9]])
    assert choose(candidates("erm", "reweighted"), scores, 1.0) == 0


@pytest.mark.parametrize("n_jobs", [0, "a", 1.5])
def test_a_number_of_jobs_that_is_none_is_refused(n_jobs):
    with pytest.raises(ValueError, match=r"n_jobs is .*; use None, a whole number from 1"):
        DAREClassifierCV(n_jobs=n_jobs).fit(np.eye(4), [0, 1, 0, 1], domains=[0, 0, 1, 1])


@pytest.fixture(scope="module")
def six_domains():
    return make_latent_domains(6, 40, 4, random_state=0)


def searched(data, cv, **options):
    head = DAREClassifierCV(strategies=("erm", "center"), l2=(0.05,), cv=cv)
    return head.fit(data.X, data.y, domains=data.domains, **options)


@pytest.mark.parametrize("cv", [LeaveOneGroupOut(), LeaveOneDomainOut(), GroupKFold(6)], ids=str)
def test_a_splitter_leaves_out_what_as_many_folds_do(six_domains, cv):
    results = searched(six_domains, cv).cv_results_
    expected = searched(six_domains, 6).cv_results_
    np.testing.assert_array_equal(results["mean_test_score"], expected["mean_test_score"])


def test_domains_that_are_never_left_out_have_no_score(six_domains):
    rows = np.arange(len(six_domains.y))
    pairs = [(rows[six_domains.domains != e], rows[six_domains.domains == e]) for e in (0, 3)]
    results = searched(six_domains, pairs).cv_results_
    scored = [e for e in range(6) if np.isfinite(results[f"split{e}_test_score"]).all()]
    assert scored == [0, 3]
    assert np.isfinite(results["mean_test_score"]).all()


@pytest.mark.parametrize(
    ("cv", "says"),
    [
        (KFold(5), "cv leaves out some rows of domain 1 and not others"),
        (GroupShuffleSplit(9, random_state=0), "cv leaves out domain . twice"),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:The groups parameter is ignored by KFold")
def test_splits_that_are_not_of_whole_domains_are_refused(six_domains, cv, says):
    with pytest.raises(InputError, match=says):
        searched(six_domains, cv)


def test_splits_keep_groups_together(six_domains):
    with pytest.raises(InputError, match="without others that share a group with it"):
        searched(six_domains, LeaveOneGroupOut(), groups=six_domains.domains // 2)


def test_a_splitter_is_no_part_of_a_saved_head(six_domains, tmp_path):
    head = searched(six_domains, LeaveOneGroupOut())
    head.save(tmp_path / "head.skdare")
    assert load(tmp_path / "head.skdare").cv == 8
