"""What comes before a head is fitted anew whenever a domain is held out."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skdare import DAREClassifier, DAREClassifierCV, DARERegressorCV
from skdare._validation import InputError
from skdare.datasets import make_latent_domains
from skdare.diagnosis import _rehearsing, diagnose, rehearse
from skdare.diagnosis._score_scale import read

UNITS = np.array([1e-2, 1.0, 30.0, 1e3, 5.0, 1.0])
SEEN: list[np.ndarray] = []


class Watched(StandardScaler):
    """A scaler that tells which rows it was fitted to; the last column has their domain."""

    def fit(self, X, y=None):
        SEEN.append(np.unique(X[:, -1]))
        return super().fit(X, y)


@pytest.fixture(scope="module")
def data():
    data = make_latent_domains(5, 120, 6, random_state=0)
    train = data.domains != 4
    return data.X[train], data.y[train], data.domains[train], data.X[~train]


def alike(ours, theirs):
    for one, other in zip(ours.domains, theirs.domains, strict=True):
        for name in ("as_is", "both_right", "disagreement", "moved"):
            assert getattr(one, name) == pytest.approx(getattr(other, name), abs=1e-6), name
        for name in ("adapted", "errors"):
            assert getattr(one, name) == pytest.approx(getattr(other, name), abs=1e-6), name
        # A head that prepares also sees the labelled rows; steps before it do not.
        assert one.retrained == pytest.approx(other.retrained, abs=0.02)


def test_a_step_that_does_nothing_changes_nothing(data):
    X, y, domains, new = data
    pipe = make_pipeline(FunctionTransformer(), DAREClassifier())
    pipe.fit(X, y, dareclassifier__domains=domains)
    head = DAREClassifier().fit(X, y, domains=domains).rehearse(X, y, domains)
    alike(rehearse(pipe, X, y, domains), head.rehearsal_)
    assert str(diagnose(pipe, new)) == str(head.diagnose(new))


def test_no_step_is_fitted_to_rows_of_the_domain_that_is_held_out(data):
    X, y, domains, _ = data
    marked = np.column_stack([X, domains])
    pipe = make_pipeline(Watched(), DAREClassifier())
    pipe.fit(marked, y, dareclassifier__domains=domains)
    SEEN.clear()
    rehearse(pipe, marked, y, domains)
    assert [set(range(4)) - set(seen) for seen in SEEN] == [{0}, {1}, {2}, {3}]


FITTED: list[tuple[set, set]] = []


class Noting(FunctionTransformer):
    """A step that notes the domains and the groups it is fitted to: the last two columns."""

    def fit(self, X, y=None):
        FITTED.append((set(X[:, -2]), set(X[:, -1])))
        return super().fit(X, y)


@pytest.mark.parametrize("kind", [DAREClassifier, DAREClassifierCV])
def test_rows_of_one_group_are_never_on_both_sides(data, monkeypatch, kind):
    X, y, domains, _ = data
    groups = np.arange(len(y)) // 5
    groups[domains == 1] = groups[domains == 3]  # every patient of 1 is in 3, too
    marked = np.column_stack([X, domains, groups / 50])
    pipe = make_pipeline(Noting(), kind())
    pipe.fit(marked, y, **{f"{kind.__name__.lower()}__domains": domains})
    asides = []
    monkeypatch.setattr(
        _rehearsing, "read", lambda h, X, i=None: asides.append((X, i)) or read(h, X, i)
    )
    FITTED.clear()
    rehearse(pipe, marked, y, domains, groups=groups)
    left_out = [set(range(4)) - present for present, _ in FITTED]
    assert left_out == [{0}, {1, 3}, {2}, {1, 3}]
    # The first reading of each trial is of the rows set aside.
    firsts = [rows for rows in asides if rows[1] is not None and len(rows[1]) > 30][:1]
    (rows, index) = firsts[0]
    assert not set(rows[index, -1]) & FITTED[0][1]


def test_a_group_in_every_domain_leaves_nothing_to_rehearse(data):
    X, y, domains, _ = data
    head = DAREClassifier().fit(X, y, domains=domains)
    with pytest.raises(InputError, match="group 0 is in every domain"):
        head.rehearse(X, y, domains, groups=np.zeros(len(y), dtype=int))
    assert head.rehearsal_ is None


def test_units_that_a_scaler_takes_out_say_nothing(data):
    X, y, domains, new = data
    heads = []
    for rows in (X, X * UNITS):
        pipe = make_pipeline(StandardScaler(), DAREClassifier(tol=1e-8))
        pipe.fit(rows, y, dareclassifier__domains=domains)
        heads.append((pipe, rehearse(pipe, rows, y, domains)))
    (plain, ours), (other, theirs) = heads
    alike(ours, theirs)
    assert diagnose(plain, new).recommendation == diagnose(other, new * UNITS).recommendation


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.filterwarnings("ignore:adapting changed nothing", "ignore::skdare.LabelShiftWarning")
def test_a_choosing_head_is_rehearsed_with_its_own_preparation(task):
    data = make_latent_domains(5, 120, 6, task=task, random_state=0)
    train = data.domains != 4
    X, y, domains = data.X[train] * UNITS, data.y[train], data.domains[train]
    X[::9, 1] = np.nan
    kind = DARERegressorCV if task == "regression" else DAREClassifierCV
    options = {"strategies": ("erm", "standardize"), "l2": (0.05,), "tol": 1e-9}
    inside = kind(preparation=SimpleImputer(), standardize=True, **options)
    inside = inside.fit(X, y, domains=domains).rehearse(X, y, domains)
    outside = make_pipeline(SimpleImputer(), kind(standardize=True, **options))
    outside.fit(X, y, **{f"{kind.__name__.lower()}__domains": domains})
    alike(inside.rehearsal_, rehearse(outside, X, y, domains))
    new = data.X[~train] * UNITS
    assert str(inside.diagnose(new)) == str(diagnose(outside, new))
    assert np.isnan(X).any()


def test_steps_that_look_at_targets_are_refused(data):
    X, y, domains, _ = data
    pipe = make_pipeline(SelectKBest(k=3), DAREClassifier())
    pipe.fit(X, y, dareclassifier__domains=domains)
    with pytest.raises(InputError, match="the pipeline has a SelectKBest, which looks at y"):
        rehearse(pipe, X, y, domains)


@pytest.mark.parametrize("model", [LogisticRegression(), make_pipeline(LogisticRegression())])
def test_only_heads_that_know_their_domains_are_rehearsed(data, model):
    X, y, domains, new = data
    with pytest.raises(TypeError, match="a LogisticRegression keeps nothing of its training"):
        rehearse(model, X, y, domains)
    with pytest.raises(TypeError, match="pass a fitted DARE head"):
        diagnose(model, new)
