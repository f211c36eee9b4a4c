"""A head as an ONNX graph: float32 in, float32 out, sums in float64 between.

Notation: X (n, d) rows, V (d, m) weights, b (m,) intercept, F (n, m) scores.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np

from skdare.errors import InputError
from skdare.export.linear_map import Fill, LinearMap
from skdare.files import whole_file
from skdare.version import __version__

try:
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ModuleNotFoundError as error:
    what = "to_onnx needs onnx; pip install 'skdare[onnx]'"
    raise ModuleNotFoundError(what, name="onnx") from error

# The oldest with a softmax over one axis; onnxruntime reads both since 1.6.
OPSET = 13
IR_VERSION = 7


def to_onnx(
    head: Any, path: str | PathLike[str] | None = None, *, adaptable: bool = False
) -> onnx.ModelProto:
    """An ONNX graph that predicts as a head does; see `Head.to_onnx`."""
    linear = LinearMap.of(head)
    m, d = linear.coef.shape
    graph = Graph()
    rows = graph.float64("X", ["n", d])
    for number, step in enumerate(linear.steps):
        if isinstance(step, Fill):
            values = graph.constant(f"filling_{number}", step.values)
            rows = graph.add("Where", graph.add("IsNaN", rows), values, rows)
            continue
        # Max and Min rather than Clip, because limits differ by feature.
        for kind, limit in (("Max", step.low), ("Min", step.high)):
            if limit is not None:
                rows = graph.add(kind, rows, graph.constant(f"{kind.lower()}_{number}", limit))
    if adaptable:
        # About a point near the rows, so that weights of seven digits cost none where features lie
        # far from zero.
        rows = graph.add("Sub", rows, graph.float64("origin", [d]))
        F = graph.add("Gemm", rows, graph.float64("coef", [d, m]), graph.float64("intercept", [m]))
    else:
        V = graph.constant("coef", linear.coef.T)
        F = graph.add("Gemm", rows, V, graph.constant("intercept", linear.intercept))
    graph.predict(F, linear)
    model = graph.model(linear)
    if path is not None:
        with whole_file(path) as file:
            file.write(model.SerializeToString())
    return model


def onnx_inputs(head: Any) -> dict[str, np.ndarray]:
    """Inputs of the adaptable graph other than ``X``; see `Head.onnx_inputs`."""
    linear = LinearMap.of(head)
    assert linear.origin is not None
    origin = linear.origin.astype(np.float32)
    return {
        "coef": linear.coef.T.astype(np.float32),
        "origin": origin,
        "intercept": (linear.coef @ origin + linear.intercept).astype(np.float32),
    }


class Graph:
    """Inputs, constants and nodes, as they are put together.

    Sums are in float64: in float32, probabilities of real features were off by up to 8e-6, and by
    up to 6e-6 if the training mean was subtracted first, against 3e-8 so, which is the rounding
    of what comes out.
    """

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []

    def add(self, kind: str, *inputs: str, name: str | None = None, **options: Any) -> str:
        """One node; the name of what it gives."""
        name = name or f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **options))
        return name

    def constant(self, name: str, values: np.ndarray) -> str:
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def float64(self, name: str, shape: Sequence[Any]) -> str:
        """An input in float32, and its float64 form."""
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return self.add("Cast", name, to=TensorProto.DOUBLE)

    def output(self, name: str, values: str, shape: Sequence[Any]) -> None:
        """Give float64 values in float32."""
        self.add("Cast", values, name=name, to=TensorProto.FLOAT)
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))

    def predict(self, F: str, linear: LinearMap) -> None:
        """Outputs from scores, shaped as those of the head."""
        classes = linear.classes
        single = len(linear.coef) == 1
        flat = self.add("Squeeze", F, self.constant("columns", np.array([1]))) if single else F
        if classes is None:
            self.output("y", flat, ["n"])
            return
        by_class = F
        if single:
            by_class = self.add("MatMul", F, self.constant("halves", np.array([[-0.5, 0.5]])))
        labels = self.constant("classes", label_values(classes))
        place = self.add("ArgMax", by_class, axis=1, keepdims=0)
        self.add("Gather", labels, place, name="label", axis=0)
        kind = self.constants[-1].data_type
        self.outputs.append(helper.make_tensor_value_info("label", kind, ["n"]))
        k = len(classes)
        self.output("probabilities", self.add("Softmax", by_class, axis=1), ["n", k])
        self.output("scores", flat, ["n"] if single else ["n", k])

    def model(self, linear: LinearMap) -> onnx.ModelProto:
        """The checked model."""
        graph = helper.make_graph(self.nodes, "head", self.inputs, self.outputs, self.constants)
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="skdare",
            producer_version=__version__,
        )
        properties = {"head": linear.head}
        if linear.feature_names is not None:
            properties["feature_names"] = json.dumps(linear.feature_names)
        helper.set_model_props(model, properties)
        onnx.checker.check_model(model, full_check=True)
        return model


def label_values(classes: np.ndarray) -> np.ndarray:
    """Class labels in a type that ONNX has: strings, 64-bit integers, booleans or floats."""
    if classes.dtype.kind == "O":
        classes = np.array(classes.tolist())
    if classes.dtype.kind in "UT":
        return classes.astype(object)
    if classes.dtype.kind in "iu" and int(classes.max()) < 2**63:
        return classes.astype(np.int64)
    if classes.dtype.kind == "f":
        return classes.astype(np.float32 if classes.itemsize <= 4 else np.float64)
    if classes.dtype.kind == "b":
        return classes
    raise InputError(
        f"the classes are of type {classes.dtype}, which ONNX has no labels of",
        "fit with strings or whole numbers",
    )
