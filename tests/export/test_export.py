"""A head in ONNX, torch, scikit-learn and pandas predicts what it predicts here."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.validation import check_is_fitted

import skdare
from skdare import (
    AnchorRegressor,
    DAREClassifier,
    DAREClassifierCV,
    DARERegressor,
    DARERegressorCV,
    ERMClassifier,
)
from skdare.export import LinearMap, head_to_onnx

FAMILIES = ["ERM", "Reweighted", "DARE", "GroupDRO", "IRM"]
FORMATS = {"to_onnx": "onnx", "to_torch": "torch", "to_frame": "pandas"}
ignore_shift = pytest.mark.filterwarnings("ignore::skdare.LabelShiftWarning")


def session(model):
    """A session of onnxruntime with a graph."""
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    return runtime.InferenceSession(model.SerializeToString())


def answers(running, X, **inputs):
    """All outputs by name."""
    names = [output.name for output in running.get_outputs()]
    given = {"X": np.asarray(X, dtype=np.float32), **inputs}
    return dict(zip(names, running.run(names, given), strict=True))


def assert_predicts_as(head, found, X):
    """Outputs of a graph are those of a head, shapes included."""
    if not hasattr(head, "classes_"):
        assert list(found) == ["y"]
        np.testing.assert_allclose(found["y"], head.predict(X), rtol=1e-6, atol=1e-6)
        return
    assert list(found) == ["label", "probabilities", "scores"]
    scores = head.decision_function(X)
    assert found["scores"].shape == scores.shape
    np.testing.assert_allclose(found["scores"], scores, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found["probabilities"], head.predict_proba(X), rtol=0, atol=1e-6)
    np.testing.assert_array_equal(found["label"], head.predict(X))


@pytest.fixture(params=FAMILIES)
def fitted(request, problem, head_for):
    return problem.fit(head_for(problem.task, request.param)), problem


def test_a_graph_predicts_as_the_head(fitted):
    pytest.importorskip("onnx", reason="onnx is not installed")
    head, problem = fitted
    running = session(head.to_onnx())
    for rows in (problem.X, problem.X[:1], problem.X[:0]):
        found = answers(running, rows)
        assert all(len(values) == len(rows) for values in found.values())
    assert_predicts_as(head, answers(running, problem.X), problem.X)


def test_anchor_regression_has_a_graph_too(regression):
    pytest.importorskip("onnx", reason="onnx is not installed")
    head = regression.fit(AnchorRegressor(adjust=True))
    assert_predicts_as(head, answers(session(head.to_onnx()), regression.X), regression.X)


@pytest.mark.filterwarnings("ignore:the features vary little beside their mean")
@pytest.mark.parametrize("offset", [1e2, 1e4])
def test_features_far_from_zero_lose_no_digits_in_a_graph(classification_problem, offset):
    pytest.importorskip("onnx", reason="onnx is not installed")
    problem = classification_problem
    X = (problem.X + offset * np.arange(1, 6)).astype(np.float32).astype(np.float64)
    head = problem.fit(ERMClassifier(), X)
    assert_predicts_as(head, answers(session(head.to_onnx()), X), X)


def test_a_graph_of_raw_sensor_readings_is_within_a_millionth(real_data):
    pytest.importorskip("onnx", reason="onnx is not installed")
    with np.load(real_data("gas_drift/gas_drift.npz")) as file:
        X, y = file["X"].astype(np.float32), file["y"]
    head = ERMClassifier(tol=1e-3).fit(X, y)
    found = answers(session(head.to_onnx()), X)["probabilities"]
    expected = head.predict_proba(X.astype(np.float64))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "classes",
    [
        np.array([-3, 0, 7]),
        np.array([0, 1, 255], dtype=np.uint8),
        np.array(["ill", "very ill", "well — ça va"]),
        np.array(["a", "b", "c"], dtype=object),
        np.array([0.0, 1.0, 2.0], dtype=np.float32),
        np.array([False, True]),
    ],
    ids=lambda classes: str(classes.dtype),
)
def test_labels_of_any_kind_come_out_of_a_graph_as_they_were(make, classes):
    pytest.importorskip("onnx", reason="onnx is not installed")
    problem = make("classification" if len(classes) == 3 else "binary")
    head = DAREClassifier().fit(problem.X, classes[problem.y], domains=problem.domains)
    found = answers(session(head.to_onnx()), problem.X)
    assert_predicts_as(head, found, problem.X)
    assert found["label"].dtype.kind == {"u": "i", "U": "O"}.get(
        classes.dtype.kind, classes.dtype.kind
    )


def test_labels_that_onnx_cannot_hold_are_refused():
    onnx_module = pytest.importorskip("skdare.export._onnx", reason="onnx is not installed")
    with pytest.raises(ValueError, match="fit with strings or whole numbers"):
        onnx_module.label_values(np.array([1, 2**63], dtype=np.uint64))


def test_a_graph_says_where_it_comes_from_and_asks_little_of_a_runtime(three_classes):
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame(three_classes.X, columns=list("abcde"))
    model = three_classes.fit(DAREClassifier(), frame).to_onnx()
    onnx.checker.check_model(model, full_check=True)
    known = {entry.key: entry.value for entry in model.metadata_props}
    assert known["head"] == "DAREClassifier"
    assert json.loads(known["feature_names"]) == list("abcde")
    assert (model.producer_name, model.producer_version) == ("skdare", skdare.__version__)
    assert (model.ir_version, model.opset_import[0].version) == (7, 13)
    assert model.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.FLOAT


@ignore_shift
@pytest.mark.parametrize("target", ["scaled", "identity", "pooled", "diagonal"])
@pytest.mark.parametrize("adaptation", ["raw", "centered", "covariance"])
def test_one_session_serves_every_tenant(problem, head_for, adaptation, target):
    pytest.importorskip("onnx", reason="onnx is not installed")
    options = {"adaptation": adaptation, "shrinkage_target": target, "shrinkage": 0.3}
    head = problem.fit(head_for(problem.task, "DARE", **options))
    running = session(head.to_onnx(adaptable=True))
    tenants = [head, *(head.adapt(problem.X[problem.rows(e)]) for e in problem.labels)]
    tenants.append(head.adapt(problem.X[:20], prior_rows=0))
    for tenant in tenants:
        inputs = tenant.onnx_inputs()
        assert all(values.dtype == np.float32 for values in inputs.values())
        assert_predicts_as(tenant, answers(running, problem.X, **inputs), problem.X)
    assert np.abs(tenants[1].coef_ - tenants[2].coef_).max() > 1e-3


@ignore_shift
def test_a_device_of_a_fleet_has_inputs_for_the_graph(three_classes):
    pytest.importorskip("onnx", reason="onnx is not installed")
    head = three_classes.fit(DAREClassifier())
    fleet = head.fleet(rank=2).partial_fit(three_classes.X, three_classes.domains)
    tenant, running = fleet.head_of("west"), session(head.to_onnx(adaptable=True))
    found = answers(running, three_classes.X, **tenant.onnx_inputs())
    assert_predicts_as(tenant, found, three_classes.X)


@ignore_shift
def test_tenants_far_from_zero_lose_no_digits(classification_problem):
    pytest.importorskip("onnx", reason="onnx is not installed")
    problem = classification_problem
    X = (problem.X + 300 * np.arange(1, 6)).astype(np.float32).astype(np.float64)
    head = problem.fit(DAREClassifier(adaptation="centered", centered=True, mean_penalty=0), X)
    tenant, running = head.adapt(X[problem.rows("west")]), session(head.to_onnx(adaptable=True))
    assert_predicts_as(tenant, answers(running, X, **tenant.onnx_inputs()), X)


@ignore_shift
def test_a_head_fitted_in_float32_has_inputs_before_it_is_adapted(three_classes):
    pytest.importorskip("onnx", reason="onnx is not installed")
    X = three_classes.X.astype(np.float32)
    head = three_classes.fit(DAREClassifier(), X)
    running = session(head.to_onnx(adaptable=True))
    for tenant in (head, head.adapt(X)):
        assert_predicts_as(tenant, answers(running, X, **tenant.onnx_inputs()), three_classes.X)


@ignore_shift
def test_an_adapted_head_is_exported_as_any_other(problem, head_for):
    pytest.importorskip("onnx", reason="onnx is not installed")
    adapted = problem.fit(head_for(problem.task, "DARE")).adapt(problem.X[:40])
    assert_predicts_as(adapted, answers(session(adapted.to_onnx()), problem.X), problem.X)
    np.testing.assert_allclose(adapted.to_sklearn().predict(problem.X), adapted.predict(problem.X))


def test_fitting_again_forgets_the_rows_adapted_to(three_classes):
    adapted = three_classes.fit(DAREClassifier()).adapt(three_classes.X)
    again = three_classes.fit(adapted)
    plain = three_classes.fit(DAREClassifier())
    assert again.adapted_rows_ is None
    for name, values in plain.onnx_inputs().items():
        np.testing.assert_allclose(again.onnx_inputs()[name], values, atol=1e-6)


@pytest.mark.parametrize(
    ("head", "remedy"),
    [
        (ERMClassifier(), "fit a DARE head"),
        (DAREClassifier(adaptation=None), "set adaptation='centered' or 'raw' and fit again"),
        (DAREClassifierCV(strategies=("erm", "reweighted")), "leave adaptable at False"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_head_that_does_not_adapt_has_no_adaptable_graph(three_classes, head, remedy):
    three_classes.fit(head)
    with pytest.raises(ValueError, match=remedy):
        head.to_onnx(adaptable=True)


def test_a_file_is_written_whole_or_not_at_all(three_classes, tmp_path, monkeypatch):
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    head, path = three_classes.fit(DAREClassifier()), tmp_path / "head.onnx"
    model = head.to_onnx(path)
    assert onnx.load(path) == model

    def refuse(*_):
        raise OSError("no room")

    monkeypatch.setattr("os.replace", refuse)
    with pytest.raises(OSError, match="no room"):
        head.adapt(three_classes.X).to_onnx(path)
    assert onnx.load(path) == model
    assert list(tmp_path.iterdir()) == [path]


@ignore_shift
def test_a_saved_tenant_has_the_same_inputs(three_classes, tmp_path):
    tenant = three_classes.fit(DAREClassifier()).adapt(three_classes.X)
    tenant.save(tmp_path / "head.safetensors")
    again = skdare.load(tmp_path / "head.safetensors")
    for name, values in tenant.onnx_inputs().items():
        np.testing.assert_array_equal(again.onnx_inputs()[name], values)
    tenant.save(tmp_path / "head.safetensors", adaptable=False)
    with pytest.raises(ValueError, match="saved with adaptable=False"):
        skdare.load(tmp_path / "head.safetensors").to_onnx(adaptable=True)


@pytest.mark.parametrize("name", ["to_onnx", "to_torch", "to_sklearn", "to_frame", "onnx_inputs"])
def test_an_unfitted_head_asks_to_be_fitted(name):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(DAREClassifier(), name)()


@pytest.mark.parametrize("name", FORMATS)
def test_a_missing_package_is_named_with_its_extra(three_classes, monkeypatch, name):
    head, package = three_classes.fit(ERMClassifier()), FORMATS[name]
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"{name} needs .* pip install 'skdare\[{package}\]'"):
        getattr(head, name)()


def test_the_softmax_of_a_torch_layer_is_predict_proba(classification_problem):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    head = classification_problem.fit(DAREClassifier())
    before = torch.random.get_rng_state()
    single, double = head.to_torch(), head.to_torch(dtype=torch.float64)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert isinstance(single, torch.nn.Linear)
    assert single.out_features == len(head.classes_)
    for layer, atol in ((single, 1e-5), (double, 1e-12)):
        X = torch.from_numpy(classification_problem.X).to(layer.weight.dtype)
        found = layer(X).softmax(dim=1).detach().numpy()
        np.testing.assert_allclose(
            found, head.predict_proba(classification_problem.X), rtol=0, atol=atol
        )


def test_two_classes_are_one_logit_where_that_is_asked_for(binary, three_classes):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    head = binary.fit(DAREClassifier())
    layer = head.to_torch(one_logit=True, dtype=torch.float64)
    found = layer(torch.from_numpy(binary.X))[:, 0].detach().numpy()
    np.testing.assert_allclose(found, head.decision_function(binary.X), atol=1e-12)
    with pytest.raises(ValueError, match="leave one_logit at False"):
        three_classes.fit(DAREClassifier()).to_torch(one_logit=True)


def test_a_regressor_is_a_layer_with_one_output(regression):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    head = regression.fit(DARERegressor())
    layer = head.to_torch(dtype=torch.float64)
    found = layer(torch.from_numpy(regression.X))[:, 0].detach().numpy()
    np.testing.assert_allclose(found, head.predict(regression.X), atol=1e-12)


def test_a_scikit_learn_model_predicts_the_same(fitted):
    head, problem = fitted
    model = head.to_sklearn()
    check_is_fitted(model)
    if problem.task == "regression":
        np.testing.assert_allclose(model.predict(problem.X), head.predict(problem.X), atol=1e-12)
    else:
        np.testing.assert_array_equal(model.predict(problem.X), head.predict(problem.X))
        found, expected = model.predict_proba(problem.X), head.predict_proba(problem.X)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    assert model.score(problem.X, problem.y) == pytest.approx(head.score(problem.X, problem.y))


def test_a_scikit_learn_model_has_every_attribute_that_fit_sets(problem, head_for):
    model = problem.fit(head_for(problem.task, "DARE")).to_sklearn()
    kind = Ridge if problem.task == "regression" else LogisticRegression
    theirs = kind().fit(problem.X, problem.y)
    assert type(model) is kind
    assert vars(theirs).keys() == vars(model).keys()
    for name in ("coef_", "intercept_"):
        assert np.shape(getattr(model, name)) == np.shape(getattr(theirs, name))


def test_changing_a_scikit_learn_model_leaves_the_head_alone(three_classes):
    head = three_classes.fit(DAREClassifier())
    coef = head.coef_.copy()
    head.to_sklearn().coef_[:] = 0
    np.testing.assert_array_equal(head.coef_, coef)


def test_skops_trusts_a_scikit_learn_model_as_it_is(problem, head_for):
    skops = pytest.importorskip("skops.io", reason="skops is not installed")
    head = problem.fit(head_for(problem.task, "DARE"))
    held = skops.dumps(head.to_sklearn())
    assert skops.get_untrusted_types(data=held) == []
    np.testing.assert_array_equal(
        skops.loads(held).predict(problem.X), head.to_sklearn().predict(problem.X)
    )


def test_a_frame_names_features_and_classes(three_classes):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    given = pandas.DataFrame(three_classes.X, columns=list("abcde"))
    words = np.array(["ill", "mild", "well"])[three_classes.y]
    head = DAREClassifier().fit(given, words, domains=three_classes.domains)
    frame = head.to_frame()
    assert frame.index.tolist() == ["intercept", *"abcde"]
    assert frame.columns.tolist() == ["ill", "mild", "well"]
    np.testing.assert_array_equal(frame.loc["intercept"], head.intercept_)
    np.testing.assert_array_equal(frame.loc["c", "well"], head.coef_[2, 2])


def test_two_classes_and_a_number_have_one_column(binary, regression):
    pytest.importorskip("pandas", reason="pandas is not installed")
    frame = binary.fit(DAREClassifier()).to_frame()
    assert (frame.columns.tolist(), frame.index[1]) == ([1], "x0")
    head = regression.fit(DARERegressor())
    assert head.to_frame().columns.tolist() == ["coefficient"]
    assert head.to_frame().loc["intercept", "coefficient"] == head.intercept_


@pytest.mark.parametrize("k", [2, 3])
def test_classes_in_another_order_have_the_same_probabilities(make, k):
    problem = make("classification" if k == 3 else "binary")
    linear = LinearMap.of(problem.fit(DAREClassifier()))
    order = list(range(k))[::-1]
    V, b = linear.by_class()
    turned, c = linear.reordered(order).by_class()
    np.testing.assert_array_equal(problem.X @ turned.T + c, (problem.X @ V.T + b)[:, order])


@pytest.mark.parametrize("options", [{}, {"with_mean": False}, {"with_std": False}], ids=str)
def test_a_pipeline_that_standardises_is_one_map(problem, head_for, options):
    pipe = make_pipeline(StandardScaler(**options), "passthrough", head_for(problem.task, "ERM"))
    pipe.fit(problem.X, problem.y)
    linear = LinearMap.of(pipe)
    scores = problem.X @ linear.coef.T + linear.intercept
    expected = getattr(pipe, "decision_function", pipe.predict)(problem.X)
    np.testing.assert_allclose(np.squeeze(scores), expected, atol=1e-12)


def test_a_pipeline_with_other_steps_is_refused(three_classes):
    pipe = make_pipeline(SimpleImputer(), ERMClassifier()).fit(three_classes.X, three_classes.y)
    with pytest.raises(ValueError, match="SimpleImputer before the weights"):
        LinearMap.of(pipe)


CLIP = FunctionTransformer(np.clip, kw_args={"a_min": -1.5, "a_max": 1.5})
PREPARATIONS = {
    "fill": SimpleImputer(),
    "fill and scale": make_pipeline(SimpleImputer(strategy="median"), StandardScaler()),
    "scale, fill and clip": make_pipeline(StandardScaler(), SimpleImputer(), CLIP, "passthrough"),
    "constant, clip below": make_pipeline(
        SimpleImputer(strategy="constant", fill_value=2.0),
        StandardScaler(with_mean=False),
        FunctionTransformer(np.clip, kw_args={"min": -1.0, "max": None}),
        StandardScaler(with_std=False),
    ),
}


@pytest.mark.parametrize(
    ("name", "place"), list(zip(PREPARATIONS, 2 * ["in the head", "in a pipeline"], strict=True))
)
def test_a_graph_prepares_rows_as_the_head_does(problem, name, place):
    pytest.importorskip("onnx", reason="onnx is not installed")
    X = problem.X.astype(np.float32).astype(np.float64)
    X[::3, 1] = np.nan
    X[1::4, 0] = np.nan
    kind = DARERegressorCV if problem.task == "regression" else DAREClassifierCV
    options = {"strategies": ("erm",), "l2": (0.1,)}
    preparation = clone(PREPARATIONS[name])
    if place == "in the head":
        model = kind(preparation=preparation, **options)
        model.fit(X, problem.y, domains=problem.domains)
    else:
        model = Pipeline([("before", preparation), ("head", kind(**options))])
        model.fit(X, problem.y, head__domains=problem.domains)
    assert_predicts_as(model, answers(session(head_to_onnx(model)), X), X)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (SimpleImputer(add_indicator=True), "more than filling"),
        (SimpleImputer(missing_values=-1), "more than filling"),
        (FunctionTransformer(np.sqrt), "FunctionTransformer before the weights"),
        (PCA(2), "PCA before the weights"),
        (SimpleImputer(), "drops features without values"),
    ],
)
@pytest.mark.filterwarnings("ignore:Skipping features without any observed values")
def test_a_preparation_without_a_graph_is_refused(step, message):
    X = np.arange(24.0).reshape(8, 3) ** 2
    if "drops" in message:
        X[:, 0] = np.nan
    pipe = make_pipeline(step, ERMClassifier()).fit(X, [0, 1] * 4)
    with pytest.raises(ValueError, match=message):
        head_to_onnx(pipe)


def test_importing_loads_nothing_that_only_a_format_needs():
    code = "import sys, skdare; assert not {'onnx', 'torch', 'transformers'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_something_else_than_a_head_is_refused():
    with pytest.raises(TypeError, match="pass a fitted head of skdare"):
        LinearMap.of(LogisticRegression())
