"""Exported heads predict what the head predicts: ONNX to 1e-6, torch, and one matrix."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import skdare
from domain_problems import FAMILIES, head_for, make_problem
from skdare import AnchorRegressor, DAREClassifier, ERMClassifier
from skdare.export import LinearMap

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdare.errors.DataNote"),
]
TASKS = ("classification", "binary", "regression")
CLIP = FunctionTransformer(np.clip, kw_args={"a_min": -1.5, "a_max": 1.5})
PREPARATIONS = {
    "auto": "auto",
    "fill": SimpleImputer(),
    "fill and scale": make_pipeline(SimpleImputer(strategy="median"), StandardScaler()),
    "scale, fill and clip": make_pipeline(StandardScaler(), SimpleImputer(), CLIP, "passthrough"),
    "scale twice, clip below": make_pipeline(
        SimpleImputer(),
        StandardScaler(with_mean=False),
        FunctionTransformer(np.clip, kw_args={"min": -1.0, "max": None}),
        StandardScaler(with_std=False),
    ),
}


def session(model):
    pytest.importorskip("onnx", reason="onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    return runtime.InferenceSession(model.SerializeToString())


def graph_of(head, **options):
    pytest.importorskip("onnx", reason="onnx is not installed")
    return session(head.to_onnx(**options))


def answers(running, X, **inputs):
    """All outputs by name."""
    names = [output.name for output in running.get_outputs()]
    given = {"X": np.asarray(X, dtype=np.float32), **inputs}
    return dict(zip(names, running.run(names, given), strict=True))


def assert_predicts_as(head, found, X):
    """Outputs of a graph are those of a head, shapes included."""
    if not hasattr(head, "classes_"):
        assert list(found) == ["y"]
        scale = np.abs(head.predict(X)).max()
        np.testing.assert_allclose(found["y"], head.predict(X), rtol=1e-6, atol=1e-6 * scale)
        return
    assert list(found) == ["label", "probabilities", "scores"]
    F, P = head.decision_function(X), head.predict_proba(X)
    assert found["scores"].shape == F.shape
    np.testing.assert_allclose(found["scores"], F, rtol=1e-6, atol=2e-6)
    np.testing.assert_allclose(found["probabilities"], P, rtol=0, atol=1e-6)
    sure = np.sort(P)[:, -1] - np.sort(P)[:, -2] > 1e-5
    np.testing.assert_array_equal(found["label"][sure], head.predict(X)[sure])


# -- ONNX ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("task", "family"), FAMILIES)
def test_a_graph_predicts_as_the_head(task, family):
    problem = make_problem(task)
    head = problem.fit(head_for(task, family))
    running = graph_of(head)
    for rows in (problem.X, problem.X[:1]):
        assert_predicts_as(head, answers(running, rows), rows)
    assert all(len(values) == 0 for values in answers(running, problem.X[:0]).values())


@pytest.mark.parametrize("offset", [1e2, 1e4])
@pytest.mark.parametrize("task", TASKS)
def test_features_far_from_zero_lose_no_digits_in_a_graph(task, offset):
    problem = make_problem(task)
    X = (problem.X + offset * np.arange(1, 6)).astype(np.float32).astype(np.float64)
    head = problem.fit(head_for(task, "ERM"), X)
    assert_predicts_as(head, answers(graph_of(head), X), X)


@pytest.mark.parametrize("name", PREPARATIONS)
@pytest.mark.parametrize("task", TASKS)
def test_a_graph_prepares_rows_as_the_head_does(task, name):
    problem = make_problem(task)
    X = (problem.X * [1, 1, 1e3, 1, 1]).astype(np.float32).astype(np.float64)
    X[::3, 1] = np.nan
    X[1::4, 0] = np.nan
    preparation = PREPARATIONS[name]
    head = head_for(task, "DARE", preparation="auto" if name == "auto" else clone(preparation))
    problem.fit(head, X)
    for one in (head, head.adapt(X[problem.rows("west")])):
        assert_predicts_as(one, answers(graph_of(one), X), X)


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
def test_labels_of_any_kind_come_out_of_a_graph_as_they_were(classes):
    problem = make_problem("classification" if len(classes) == 3 else "binary")
    head = DAREClassifier().fit(problem.X, classes[problem.y], domains=problem.domains)
    found = answers(graph_of(head), problem.X)
    assert_predicts_as(head, found, problem.X)
    kinds = {"u": "i", "U": "O"}
    assert found["label"].dtype.kind == kinds.get(classes.dtype.kind, classes.dtype.kind)


def test_labels_that_onnx_cannot_hold_are_refused():
    pytest.importorskip("onnx", reason="onnx is not installed")
    problem = make_problem("binary")
    for classes in (
        np.array([1, 2**63], dtype=np.uint64),
        np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]"),
    ):
        head = ERMClassifier().fit(problem.X, classes[problem.y])
        with pytest.raises(ValueError, match="fit with strings or whole numbers"):
            head.to_onnx()


def test_a_graph_names_its_head_and_runs_on_old_runtimes(tmp_path):
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    problem = make_problem("classification")
    head = problem.fit(DAREClassifier(), pd.DataFrame(problem.X, columns=list("abcde")))
    model = head.to_onnx(tmp_path / "head.onnx")
    assert onnx.load(tmp_path / "head.onnx") == model
    onnx.checker.check_model(model, full_check=True)
    known = {entry.key: entry.value for entry in model.metadata_props}
    assert known["head"] == "DAREClassifier"
    assert json.loads(known["feature_names"]) == list("abcde")
    assert (model.producer_name, model.producer_version) == ("skdare", skdare.__version__)
    assert (model.ir_version, model.opset_import[0].version) == (7, 13)


ADAPTED = [
    *(("regression", adaptation) for adaptation in ("raw", "centered", "covariance")),
    *((task, a) for task in TASKS[:2] for a in ("raw", "centered", "mixture", "translation")),
]


@pytest.mark.parametrize("offset", [0.0, 100.0])
@pytest.mark.parametrize(("task", "adaptation"), ADAPTED)
def test_one_session_serves_every_domain(task, adaptation, offset):
    problem = make_problem(task)
    X = (problem.X + offset).astype(np.float32).astype(np.float64)
    head = problem.fit(head_for(task, "DARE", adaptation=adaptation, preparation="auto"), X)
    running = graph_of(head, adaptable=True)
    for one in (head, *(head.adapt(X[problem.rows(label)]) for label in problem.labels)):
        found = answers(running, X, **one.onnx_inputs())
        if task == "regression":
            scale = np.abs(one.predict(X)).max()
            np.testing.assert_allclose(found["y"], one.predict(X), rtol=1e-5, atol=1e-5 * scale)
        else:
            P = one.predict_proba(X)
            np.testing.assert_allclose(found["probabilities"], P, rtol=0, atol=2e-5)


# -- torch ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [None, *PREPARATIONS])
@pytest.mark.parametrize("task", TASKS)
def test_a_module_predicts_as_the_head(task, name):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    problem = make_problem(task)
    X = problem.X.copy()
    preparation = PREPARATIONS[name] if name else None
    if name:
        X[::3, 1] = np.nan
    head = head_for(
        task,
        "ERM",
        preparation=preparation if isinstance(preparation, str | None) else clone(preparation),
    )
    problem.fit(head, X)
    before = torch.random.get_rng_state()
    for dtype, atol in ((torch.float32, 1e-5), (torch.float64, 1e-12)):
        module = head.to_torch() if dtype == torch.float32 else head.to_torch(dtype=dtype)
        F = module(torch.from_numpy(X).to(dtype)).detach()
        if task == "regression":
            found, expected = F[:, 0].numpy(), head.predict(X)
        else:
            found, expected = F.softmax(dim=1).numpy(), head.predict_proba(X)
        np.testing.assert_allclose(found, expected, rtol=0, atol=10 * atol)
    assert torch.equal(torch.random.get_rng_state(), before)
    if name is None:
        assert isinstance(module, torch.nn.Linear)
        assert module.out_features == (1 if task == "regression" else len(head.classes_))


# -- One matrix ----------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"with_mean": False}, {"with_std": False}], ids=str)
@pytest.mark.parametrize("task", TASKS)
def test_scaling_is_part_of_the_matrix(task, options):
    problem = make_problem(task)
    head = problem.fit(head_for(task, "ERM", preparation=StandardScaler(**options)))
    linear = LinearMap.of(head)
    F = problem.X @ linear.coef.T + linear.intercept
    expected = head.predict if task == "regression" else head.decision_function
    np.testing.assert_allclose(np.squeeze(F), expected(problem.X), atol=1e-12)
    assert linear.steps == ()


@pytest.mark.parametrize("task", TASKS[:2])
def test_the_softmax_of_weights_by_class_is_predict_proba(task):
    problem = make_problem(task)
    head = problem.fit(DAREClassifier())
    V, b = LinearMap.of(head).by_class()
    E = np.exp(problem.X @ V.T + b)
    expected = head.predict_proba(problem.X)
    np.testing.assert_allclose(E / E.sum(axis=1, keepdims=True), expected, rtol=1e-10)


def test_anchor_regression_is_exported_too():
    problem = make_problem("regression")
    head = problem.fit(AnchorRegressor(adjust=True))
    assert_predicts_as(head, answers(graph_of(head), problem.X), problem.X)


# -- What is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (SimpleImputer(add_indicator=True), "does more than"),
        (SimpleImputer(missing_values=-1), "does more than"),
        (FunctionTransformer(np.sqrt), "is not np.clip between two limits"),
        (PCA(2), "the preparation has a PCA"),
    ],
    ids=str,
)
def test_a_preparation_that_no_graph_can_hold_is_named(step, message):
    pytest.importorskip("onnx", reason="onnx is not installed")
    X = np.arange(24.0).reshape(8, 3) ** 2
    head = ERMClassifier(preparation=step).fit(X, [0, 1] * 4)
    with pytest.raises(ValueError, match=message):
        head.to_onnx()


def test_an_unfitted_head_and_a_graph_that_cannot_be_written_leave_no_file(tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed")
    with pytest.raises(NotFittedError):
        DAREClassifier().to_onnx(tmp_path / "head.onnx")
    with pytest.raises(NotFittedError):
        DAREClassifier().onnx_inputs()
    head = make_problem("binary").fit(ERMClassifier())
    with pytest.raises(ValueError, match="there is no folder"):
        head.to_onnx(tmp_path / "nowhere" / "head.onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("method", "package"), [("to_onnx", "onnx"), ("to_torch", "torch")])
def test_a_missing_package_is_named_with_what_installs_it(method, package, monkeypatch):
    head = make_problem("binary").fit(ERMClassifier())
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"skdare.export.{package}", raising=False)
    with pytest.raises(ImportError, match=rf"needs {package}; pip install 'skdare\[{package}\]'"):
        getattr(head, method)()


def test_importing_loads_nothing_that_only_a_format_needs():
    code = (
        "import sys, skdare.export; skdare.ERMClassifier;"
        "assert not {'onnx', 'torch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
