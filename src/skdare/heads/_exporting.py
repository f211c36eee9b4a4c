"""A fitted head in other formats."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdare.export import LinearMap, needed
from skdare.persist import whole_file


class Exporting:
    """What every fitted head can be handed over as; heads adapted to a domain, too."""

    coef_: Any
    intercept_: Any

    def _linear_map(self) -> LinearMap:
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        return LinearMap(
            np.atleast_2d(np.asarray(self.coef_, dtype=np.float64)),
            np.atleast_1d(np.asarray(self.intercept_, dtype=np.float64)),
            getattr(self, "classes_", None),
            None if names is None else names.tolist(),
            type(self).__name__,
        )

    def to_onnx(self, path: str | PathLike[str] | None = None, *, adaptable: bool = False) -> Any:
        """An ONNX graph that predicts as this head does.

        Its input ``X`` is float32 of shape (n, d). A classifier gives ``label``,
        ``probabilities`` and ``scores``, the latter as ``decision_function``; a regressor gives
        ``y``. Sums inside are in float64, so that probabilities are those of ``predict_proba``
        to 1e-6 wherever the features lie.

        Parameters
        ----------
        path : str or path, optional
            Where to write the file, too.
        adaptable : bool, default=False
            True: a graph with three more inputs, ``whitener``, ``mean`` and ``intercept``, which
            `onnx_inputs` of an adapted head gives. One session then serves any number of domains.
            The whitener's seven digits cost some where features have very unequal units and
            ``shrinkage_target="pooled"``: standardise those.

        Returns
        -------
        onnx.ModelProto

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from skdare import ERMClassifier
        >>> model = ERMClassifier().fit(*load_iris(return_X_y=True)).to_onnx()
        >>> [output.name for output in model.graph.output]
        ['label', 'probabilities', 'scores']
        """
        linear = self._linear_map()
        canonical = self._onnx_weights() if adaptable else None
        needed("onnx", "to_onnx", "onnx")
        from skdare import __version__
        from skdare.export._onnx import adaptable_graph, plain_graph

        if canonical is None:
            model = plain_graph(linear, __version__)
        else:
            model = adaptable_graph(linear, canonical, __version__)
        if path is not None:
            with whole_file(Path(path)) as file:
                file.write(model.SerializeToString())
        return model

    def _onnx_weights(self) -> np.ndarray:
        """Canonical weights in the units of the targets, (d, m)."""
        raise ValueError(
            f"a {type(self).__name__} does not adapt; leave adaptable at False, or fit a DARE head"
        )

    def to_torch(self, *, one_logit: bool = False, dtype: Any = None, device: Any = None) -> Any:
        """A ``torch.nn.Linear`` with the weights of this head.

        It has an output for each class, and their softmax is ``predict_proba``; of two classes
        they are ∓ half the score. A regressor has one output. Features that lie far from zero
        beside their spread lose digits in float32: pass ``dtype=torch.float64`` for those.

        Parameters
        ----------
        one_logit : bool, default=False
            True: one output for two classes, the score of the second.
        dtype : torch.dtype, optional
            Default: float32.
        device : torch.device or str, optional
            Default: the CPU.

        Returns
        -------
        torch.nn.Linear
        """
        linear = self._linear_map()
        needed("torch", "to_torch", "torch")
        from skdare.export._torch import linear_layer

        return linear_layer(linear, one_logit=one_logit, dtype=dtype, device=device)

    def to_sklearn(self) -> Any:
        """A fitted ``LogisticRegression`` or ``Ridge`` of scikit-learn that predicts the same.

        For tools that know scikit-learn's own classes only. Its parameters are defaults and say
        nothing of how the weights came about: fitting it again gives another model.

        Returns
        -------
        LogisticRegression or Ridge

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from skdare import ERMClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> head = ERMClassifier().fit(X, y)
        >>> head.to_sklearn().score(X, y) == head.score(X, y)
        True
        """
        from skdare.export._sklearn import linear_model

        return linear_model(self._linear_map())

    def to_frame(self) -> Any:
        """A pandas data frame of the coefficients, by name.

        Rows are the intercept and the features, columns the classes. Two classes have one column,
        which is named after the second and raises its log-odds; a regressor's is ``coefficient``.

        Returns
        -------
        pandas.DataFrame

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from skdare import ERMClassifier
        >>> X, y = load_iris(as_frame=True, return_X_y=True)
        >>> ERMClassifier().fit(X, y).to_frame().shape
        (5, 3)
        """
        linear = self._linear_map()
        needed("pandas", "to_frame", "pandas")
        from skdare.export._frame import coefficient_frame

        return coefficient_frame(linear)
