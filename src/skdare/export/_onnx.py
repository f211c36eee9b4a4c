"""A head as an ONNX graph: float32 in, float32 out, sums in float64 between.

Notation: X (n, d) rows, W (d, d) whitener, B (d, m) canonical weights, F (n, m) scores.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from skdare.export._linear_map import LinearMap
from skdare.export._prepared_map import Clipping, Filling, PreparedMap, Standardizing

# The oldest with a softmax over one axis; onnxruntime reads both since 1.6.
OPSET = 13
IR_VERSION = 7


def plain_graph(prepared: PreparedMap, version: str) -> onnx.ModelProto:
    """The graph from ``X`` to predictions; a preparation is part of it."""
    linear = prepared.linear
    graph = Graph(linear)
    rows = graph.float64("X", ["n", linear.d])
    for number, step in enumerate(prepared.steps):
        rows = graph.prepared(rows, step, number)
    V = graph.constant("coef", linear.coef.T)
    b = graph.constant("intercept", linear.intercept)
    return graph.model(graph.add("Gemm", rows, V, b), version)


def adaptable_graph(linear: LinearMap, B: np.ndarray, version: str) -> onnx.ModelProto:
    """The graph from ``X``, ``whitener``, ``mean`` and ``intercept``: (X - mean) W B + b.

    The intercept is the score at the mean, so that few digits are lost where features lie far
    from zero and the whitener has seven.
    """
    graph = Graph(linear)
    (d, m) = B.shape
    rows = graph.float64("X", ["n", d])
    W = graph.float64("whitener", [d, d])
    mean = graph.float64("mean", [d])
    b = graph.float64("intercept", [m])
    V = graph.add("MatMul", W, graph.constant("canonical_coef", B))
    return graph.model(graph.add("Gemm", graph.add("Sub", rows, mean), V, b), version)


class Graph:
    """Inputs, constants and steps, as they are put together.

    Sums are in float64: in float32, probabilities of real features were off by up to 8e-6, and by
    up to 6e-6 where the training mean was subtracted first, against 3e-8 so, which is the rounding
    of what comes out (benchmarks/onnx_precision.py).
    """

    def __init__(self, linear: LinearMap) -> None:
        self.linear = linear
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []

    def add(self, kind: str, *inputs: str, name: str | None = None, **options: Any) -> str:
        """One step; the name of what it gives."""
        name = name or f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **options))
        return name

    def constant(self, name: str, values: np.ndarray) -> str:
        """Numbers or strings that the graph holds."""
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def float64(self, name: str, shape: list[Any]) -> str:
        """An input in float32, and its float64 form."""
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return self.add("Cast", name, to=TensorProto.DOUBLE)

    def prepared(self, rows: str, step: Filling | Standardizing | Clipping, number: int) -> str:
        """Rows after a step of the preparation."""
        if isinstance(step, Filling):
            values = self.constant(f"filling_{number}", step.values)
            return self.add("Where", self.add("IsNaN", rows), values, rows)
        if isinstance(step, Standardizing):
            less = self.add("Sub", rows, self.constant(f"mean_{number}", step.mean))
            return self.add("Div", less, self.constant(f"scale_{number}", step.scale))
        # Max and Min rather than Clip, because either limit may be missing.
        for kind, limit in (("Max", step.low), ("Min", step.high)):
            if limit is not None:
                bound = self.constant(f"{kind.lower()}_{number}", np.float64(limit).reshape(1))
                rows = self.add(kind, rows, bound)
        return rows

    def output(self, name: str, kind: int, shape: list[Any]) -> None:
        """What the graph gives."""
        self.outputs.append(helper.make_tensor_value_info(name, kind, shape))

    def float32(self, F: str, name: str, shape: list[Any]) -> None:
        """Give something in float32."""
        self.add("Cast", F, name=name, to=TensorProto.FLOAT)
        self.output(name, TensorProto.FLOAT, shape)

    def _predictions(self, F: str) -> None:
        """Outputs from the scores, shaped as those of the head."""
        classes = self.linear.classes
        single = len(self.linear.coef) == 1
        flat = self.add("Squeeze", F, self.constant("columns", np.array([1]))) if single else F
        if classes is None:
            return self.float32(flat, "y", ["n"])
        k = len(classes)
        by_class = F
        if single:
            by_class = self.add("MatMul", F, self.constant("halves", np.array([[-0.5, 0.5]])))
        names = label_values(classes)
        place = self.add("ArgMax", by_class, axis=1, keepdims=0)
        self.add("Gather", self.constant("classes", names), place, name="label", axis=0)
        self.output("label", self.constants[-1].data_type, ["n"])
        self.float32(self.add("Softmax", by_class, axis=1), "probabilities", ["n", k])
        return self.float32(flat, "scores", ["n"] if single else ["n", k])

    def model(self, F: str, version: str) -> onnx.ModelProto:
        """The checked model, from scores on."""
        self._predictions(F)
        graph = helper.make_graph(self.nodes, "head", self.inputs, self.outputs, self.constants)
        opset = [helper.make_opsetid("", OPSET)]
        about = {"producer_name": "skdare", "producer_version": version}
        model = helper.make_model(graph, opset_imports=opset, ir_version=IR_VERSION, **about)
        properties = {"head": self.linear.head}
        if self.linear.feature_names is not None:
            properties["feature_names"] = json.dumps(list(self.linear.feature_names))
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
    raise ValueError(
        f"the classes are of type {classes.dtype}, which ONNX has no labels of; fit with strings "
        "or whole numbers"
    )
