"""Preparation is fitted anew in every fold, and is nothing that who uses the head need know of."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import SelectFromModel, SelectKBest, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    StandardScaler,
    TargetEncoder,
)
from sklearn.random_projection import GaussianRandomProjection

import skdare
from skdare import DAREClassifierCV, DARERegressorCV, ERMClassifier
from skdare._validation import InputError
from skdare.choosing.strategies import STRATEGIES
from skdare.datasets import DomainData, open_table, write_store
from skdare.persist import TensorFile

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdare.LabelShiftWarning"),
    pytest.mark.filterwarnings("ignore:leaving a training domain out still scores"),
]
UNITS = np.array([1e-3, 1.0, 40.0, 1e4, 7.0])


def search_of(problem, **options):
    if problem.task == "regression" and STRATEGIES[options.get("strategies", ("erm",))[0]].mixture:
        pytest.skip("numbers have no classes")
    kind = DARERegressorCV if problem.task == "regression" else DAREClassifierCV
    return kind(**{"l2": (0.05,), "tol": 1e-8, **options})


def scaled(problem):
    """The same rows in unequal units."""
    return problem.X * UNITS


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_standardize_equals_a_scaler_whose_weights_are_folded_back(problem, strategy):
    X = scaled(problem)
    scaler = StandardScaler().fit(X)
    head = search_of(problem, strategies=(strategy,))
    by_hand = clone(head).fit(scaler.transform(X), problem.y, domains=problem.domains)
    head = head.set_params(standardize=True).fit(X, problem.y, domains=problem.domains)
    new = X[problem.rows("west")]
    pairs = [(head, by_hand)]
    if head.adapts_:
        pairs.append((head.adapt(new), by_hand.adapt(scaler.transform(new))))
    for ours, theirs in pairs:
        coef = theirs.coef_ / scaler.scale_
        np.testing.assert_allclose(ours.coef_ * UNITS, coef * UNITS, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(
            ours.intercept_, theirs.intercept_ - coef @ scaler.mean_, rtol=1e-5, atol=1e-7
        )


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_standardize_knows_no_units(problem, strategy):
    options = {"strategies": (strategy,), "standardize": True}
    plain = problem.fit(search_of(problem, **options))
    other = problem.fit(search_of(problem, **options), scaled(problem))
    np.testing.assert_allclose(other.coef_ * UNITS, plain.coef_, rtol=1e-5, atol=1e-8)
    scores = "mean_test_score"
    np.testing.assert_allclose(other.cv_results_[scores], plain.cv_results_[scores], atol=1e-3)


PLAIN = ["ERM", "Reweighted", "GroupDRO", "IRM", "DARE", "Anchor"]


@pytest.mark.parametrize("family", PLAIN)
@pytest.mark.filterwarnings("ignore:.*IRM", "ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_head_standardizes_as_a_scaler_does(regression, family):
    X = scaled(regression)
    scaler = StandardScaler().fit(X)
    kind = getattr(skdare, f"{family}Regressor")
    head = regression.fit(kind(standardize=True), X)
    by_hand = regression.fit(kind(), scaler.transform(X))
    np.testing.assert_allclose(
        head.predict(X), by_hand.predict(scaler.transform(X)), rtol=1e-6, atol=1e-8
    )
    np.testing.assert_allclose(head.predict(X), X @ head.coef_ + head.intercept_)


@pytest.mark.parametrize("family", ["ERM", "DARE"])
def test_a_standardized_head_without_an_intercept_has_none(three_classes, family):
    kind = getattr(skdare, f"{family}Classifier")
    head = three_classes.fit(kind(standardize=True, fit_intercept=False), scaled(three_classes))
    np.testing.assert_array_equal(head.intercept_, 0.0)


def test_a_standardized_head_is_rehearsed_with_its_own_scales(three_classes):
    X = scaled(three_classes)
    head = three_classes.fit(skdare.DAREClassifier(standardize=True, tol=1e-8), X)
    head.rehearse(X, three_classes.y, three_classes.domains)
    plain = three_classes.fit(skdare.DAREClassifier(standardize=True, tol=1e-8))
    plain.rehearse(three_classes.X, three_classes.y, three_classes.domains)
    for ours, theirs in zip(head.rehearsal_.domains, plain.rehearsal_.domains, strict=True):
        assert ours.as_is == theirs.as_is
        assert ours.errors == pytest.approx(theirs.errors, rel=1e-5)


def scores_by_hand(problem, X, preparation, **options):
    """Scores of a search of two domains, with what it chose from used on the third, in a loop."""
    scores = []
    for label in problem.labels:
        out = problem.domains == label
        fitted = clone(preparation).fit(X[~out])
        Z = fitted.transform(X)
        head = search_of(problem, strategies=("erm",), **options)
        head = head.fit(Z[~out], problem.y[~out], domains=problem.domains[~out])
        scores.append(head.score(Z[out], problem.y[out]))
    return np.maximum(scores, -1.0)


def erm_scores(head):
    row = head.cv_results_["param_strategy"].tolist().index("erm")
    return [head.cv_results_[f"split{e}_test_score"][row] for e in range(len(head.domains_))]


def wild(problem):
    """Rows of which one domain has far larger scales than the others."""
    X = problem.X.copy()
    X[problem.rows("west"), 0] *= 1e3
    return X


@pytest.mark.parametrize(
    "options", [{"standardize": True}, {"preparation": StandardScaler()}], ids=str
)
def test_scores_equal_a_loop_that_fits_the_scaler_in_every_fold(problem, options):
    X = wild(problem)
    head = search_of(problem, **options).fit(X, problem.y, domains=problem.domains)
    expected = scores_by_hand(problem, X, StandardScaler())
    apart = 1.1 / 25 if problem.task != "regression" else 5e-3
    np.testing.assert_allclose(erm_scores(head), expected, atol=apart)


def test_a_scaler_of_all_domains_would_hide_the_shift(regression):
    X = wild(regression)
    Z = StandardScaler().fit_transform(X)
    once = search_of(regression).fit(Z, regression.y, domains=regression.domains)
    each = search_of(regression, standardize=True).fit(X, regression.y, domains=regression.domains)
    assert np.abs(np.subtract(erm_scores(once), erm_scores(each))).max() > 0.1


def test_weights_of_rows_count_in_the_standard_deviation(three_classes):
    X = wild(three_classes)
    twice = np.r_[np.arange(len(X)), np.arange(0, len(X), 2)]
    weight = np.ones(len(X))
    weight[::2] = 2.0
    head = search_of(three_classes, standardize=True, strategies=("erm", "center"))
    weighted = clone(head).fit(
        X, three_classes.y, domains=three_classes.domains, sample_weight=weight
    )
    repeated = clone(head).fit(
        X[twice], three_classes.y[twice], domains=three_classes.domains[twice]
    )
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kind", [sparse.csr_array, lambda X: X.astype(np.float32)])
def test_standardize_takes_rows_of_any_kind(three_classes, kind):
    X = three_classes.X
    options = {"standardize": True, "strategies": ("center",)}
    plain = search_of(three_classes, **options).fit(
        X, three_classes.y, domains=three_classes.domains
    )
    head = search_of(three_classes, **options).fit(
        kind(X), three_classes.y, domains=three_classes.domains
    )
    np.testing.assert_allclose(head.coef_, plain.coef_, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(
        head.adapt(kind(X)).coef_, plain.adapt(X).coef_, rtol=1e-3, atol=1e-4
    )


@pytest.mark.parametrize("form", ["array", "store"])
def test_standardize_takes_rows_on_disk(three_classes, tmp_path, form):
    X = scaled(three_classes)
    np.save(tmp_path / "X.npy", X)
    on_disk = np.load(tmp_path / "X.npy", mmap_mode="r")
    if form == "store":
        data = DomainData(X, three_classes.y, three_classes.domains)
        write_store(tmp_path / "store", data, dtype="float64")
        on_disk = open_table(tmp_path / "store").X
    options = {"standardize": True, "strategies": ("erm", "standardize")}
    plain = three_classes.fit(search_of(three_classes, **options), X)
    head = three_classes.fit(search_of(three_classes, **options), on_disk)
    np.testing.assert_allclose(head.coef_, plain.coef_, rtol=1e-6)
    np.testing.assert_allclose(head.predict_proba(on_disk), plain.predict_proba(X))
    forced = search_of(three_classes, standardize=True, strategies=("standardize",))
    adapted = [three_classes.fit(clone(forced), rows).adapt(rows) for rows in (X, on_disk)]
    np.testing.assert_allclose(adapted[1].coef_, adapted[0].coef_, rtol=1e-6)


def streamed(head, X):
    adapter = head.adapter()
    for chunk in np.array_split(X, 4):
        adapter = adapter.partial_fit(chunk)
    return adapter.head_


def holes(problem):
    X = scaled(problem)
    X[::7, 1] = np.nan
    return X


PREPARED = {
    "standardize": {"standardize": True},
    "imputer": {"preparation": SimpleImputer(), "standardize": True},
    "pipeline": {"preparation": make_pipeline(SimpleImputer(strategy="median"), StandardScaler())},
}


@pytest.fixture(params=sorted(PREPARED))
def prepared(request, problem):
    X = scaled(problem) if request.param == "standardize" else holes(problem)
    head = search_of(problem, strategies=("raw",), **PREPARED[request.param])
    return head.fit(X, problem.y, domains=problem.domains), X, problem


def test_a_prepared_head_takes_rows_as_they_are(prepared):
    head, X, problem = prepared
    new = X[problem.rows("west")]
    steps = head.preparation_
    Z = new if steps is None else steps.transform(new)
    F = head._scores(new)
    np.testing.assert_allclose(F, Z @ np.atleast_2d(head.coef_).T + head.intercept_)
    adapted = head.adapt(new)
    np.testing.assert_allclose(streamed(head, new).coef_, adapted.coef_, rtol=1e-9)
    np.testing.assert_array_equal(adapted.predict(new).shape, (len(new),))


def test_a_fleet_of_a_prepared_head_predicts_as_the_head_of_a_device(prepared):
    head, X, problem = prepared
    new = X[problem.rows("west")]
    fleet = head.fleet(rank=5).partial_fit(new, ["w"] * len(new))
    alone = fleet.head_of("w")
    F = fleet._scores(new, ["w"] * len(new))
    np.testing.assert_allclose(alone._scores(new), F, rtol=1e-4, atol=1e-4)
    unseen = fleet._scores(new, ["other"] * len(new))
    np.testing.assert_allclose(unseen, head._scores(new), rtol=1e-9, atol=1e-9)


def test_a_prepared_head_is_saved_with_its_preparation(prepared, tmp_path):
    head, X, problem = prepared
    new = X[problem.rows("west")]
    head.save(tmp_path / "head.safetensors")
    again = skdare.load(tmp_path / "head.safetensors")
    np.testing.assert_array_equal(again.predict(new), head.predict(new))
    np.testing.assert_array_equal(again.adapt(new).coef_, head.adapt(new).coef_)
    assert again.standardize == head.standardize
    assert type(again.preparation) is type(head.preparation)
    refitted = again.fit(X, problem.y, domains=problem.domains)
    np.testing.assert_allclose(refitted.coef_, head.coef_)


@pytest.mark.parametrize(
    "damage",
    [
        {"preparation": 7},
        {"preparation": {"pipeline": True, "steps": []}},
        {"preparation": {"pipeline": False, "steps": [7]}},
        {"preparation": {"pipeline": "no", "steps": []}},
        {"class": "ERMClassifier"},
    ],
    ids=str,
)
def test_a_file_whose_preparation_is_not_one_is_refused(three_classes, tmp_path, damage):
    head = search_of(three_classes, preparation=SimpleImputer())
    path = tmp_path / "head.safetensors"
    three_classes.fit(head).save(path)
    file = TensorFile.read(path)
    TensorFile("head", {**file.header, **damage}, file.arrays).write(path)
    with pytest.raises(ValueError, match="cannot be read"):
        skdare.load(path)


def test_a_file_that_lacks_its_standard_deviations_is_refused(three_classes, tmp_path):
    path = tmp_path / "head.safetensors"
    three_classes.fit(search_of(three_classes, standardize=True)).save(path)
    file = TensorFile.read(path)
    state = {k: v for k, v in file.header["state"].items() if k != "_standardization"}
    TensorFile("head", {**file.header, "state": state}, file.arrays).write(path)
    with pytest.raises(ValueError, match="what it was standardised by is missing"):
        skdare.load(path)


def test_a_step_that_no_file_holds_is_named(three_classes, tmp_path):
    head = three_classes.fit(search_of(three_classes, preparation=PCA(3)))
    assert head.coef_.shape == (3, 3)
    with pytest.raises(TypeError, match="is a PCA, which cannot be saved"):
        head.save(tmp_path / "head.safetensors")
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="there is a PCA before the weights"):
        head.to_sklearn()


def test_standardized_weights_are_exported_in_the_units_of_the_features(problem):
    onnxruntime = pytest.importorskip("onnxruntime")
    X = problem.X * np.array([0.1, 1.0, 10.0, 50.0, 7.0])
    new = X[problem.rows("west")]
    head = search_of(problem, strategies=("raw",), standardize=True)
    head = head.fit(X, problem.y, domains=problem.domains)
    adapted = head.adapt(new)
    output = "y" if problem.task == "regression" else "scores"
    scores = adapted.predict if output == "y" else adapted.decision_function
    whole = onnxruntime.InferenceSession(adapted.to_onnx().SerializeToString())
    (plain,) = whole.run([output], {"X": new.astype(np.float32)})
    np.testing.assert_allclose(plain, scores(new.astype(np.float32)), rtol=1e-4, atol=1e-4)
    session = onnxruntime.InferenceSession(head.to_onnx(adaptable=True).SerializeToString())
    inputs = {"X": new.astype(np.float32), **adapted.onnx_inputs()}
    (adaptable,) = session.run([output], inputs)
    np.testing.assert_allclose(adaptable, plain, rtol=1e-3, atol=1e-3)


def test_a_scaler_as_preparation_is_exported_with_the_weights(three_classes):
    X = scaled(three_classes)
    head = three_classes.fit(search_of(three_classes, preparation=StandardScaler()), X)
    np.testing.assert_array_equal(head.to_sklearn().predict(X), head.predict(X))
    with pytest.raises(ValueError, match="a head with preparation has no adaptable graph"):
        three_classes.fit(
            search_of(three_classes, preparation=StandardScaler(), strategies=("raw",)), X
        ).to_onnx(adaptable=True)


def test_columns_of_a_data_frame_are_prepared_by_name(three_classes):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(three_classes.X, columns=list("abcde"))
    frame["colour"] = np.where(three_classes.X[:, 0] > 0, "red", "blue")
    preparation = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["colour"]), remainder=StandardScaler()
    )
    head = three_classes.fit(search_of(three_classes, preparation=preparation), frame)
    assert head.coef_.shape[1] == 7
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        adapted = head.adapt(frame[:40])
    assert adapted.predict(frame[:40]).shape == (40,)


def test_a_head_that_is_fitted_again_without_preparation_forgets_it(three_classes):
    head = search_of(three_classes, preparation=PCA(3), standardize=True)
    head = three_classes.fit(head).set_params(preparation=None, standardize=False)
    plain = three_classes.fit(search_of(three_classes))
    np.testing.assert_array_equal(three_classes.fit(head).coef_, plain.coef_)
    np.testing.assert_array_equal(head.predict(three_classes.X), plain.predict(three_classes.X))


LOOKING = {
    "SelectKBest": SelectKBest(k=2),
    "SelectFromModel": make_pipeline(StandardScaler(), SelectFromModel(LogisticRegression())),
    "TargetEncoder": make_column_transformer((TargetEncoder(), [0])),
    "LinearDiscriminantAnalysis": make_union(PCA(2), LinearDiscriminantAnalysis()),
}


@pytest.mark.parametrize("name", sorted(LOOKING))
def test_steps_that_look_at_targets_are_refused_by_name(three_classes, name):
    calls = []
    first = FunctionTransformer(lambda X: calls.append(1) or X)
    with pytest.raises(InputError, match=f"preparation has a {name}, which looks at y") as raised:
        three_classes.fit(DAREClassifierCV(preparation=make_pipeline(first, LOOKING[name])))
    assert raised.value.argument == "preparation"
    assert not calls


@pytest.mark.parametrize("wrong", ["standardize", StandardScaler, ERMClassifier(), 3])
def test_what_does_not_transform_is_refused(three_classes, wrong):
    with pytest.raises(InputError, match="pass a transformer of scikit-learn"):
        three_classes.fit(DAREClassifierCV(preparation=wrong))


def test_a_preparation_that_fails_in_a_fold_names_the_domain(three_classes):
    X = three_classes.X.copy()
    X[:, 0] = (three_classes.domains == "west").astype(float)
    encoder = make_column_transformer((OneHotEncoder(), [0]), remainder="passthrough")
    with pytest.raises(InputError, match="fitted without domain 'west', failed: ValueError"):
        three_classes.fit(DAREClassifierCV(preparation=encoder), X)


def test_what_preparation_leaves_unfit_is_refused(three_classes):
    X = three_classes.X.copy()
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match="contains NaN"):
        three_classes.fit(DAREClassifierCV(preparation=StandardScaler()), X)


def test_a_preparation_may_give_other_features_without_a_domain(three_classes):
    search = DAREClassifierCV(preparation=VarianceThreshold())
    X = np.column_stack([three_classes.X, three_classes.domains == "north"]).astype(float)
    head = three_classes.fit(search, X)
    assert head.n_features_in_ == X.shape[1]


def test_a_random_preparation_is_fitted_once_a_fold(three_classes):
    counted = CountedProjection(4)
    CountedProjection.fits = 0
    three_classes.fit(DAREClassifierCV(preparation=counted))
    assert CountedProjection.fits == 1 + len(three_classes.labels)


class CountedProjection(GaussianRandomProjection):
    fits = 0

    def fit(self, X, y=None):
        CountedProjection.fits += 1
        return super().fit(X, y)


def test_a_preparation_that_drops_rows_is_refused(three_classes):
    head = DAREClassifierCV(preparation=FunctionTransformer(lambda X: X[1:]))
    with pytest.raises(InputError, match=r"preparation gave \d+ rows of"):
        three_classes.fit(head)
