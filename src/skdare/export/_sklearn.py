"""A head as a fitted estimator of scikit-learn's own."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge

from skdare.export._linear_map import LinearMap


def linear_model(linear: LinearMap) -> LogisticRegression | Ridge:
    """A fitted estimator, with every attribute that ``fit`` would have set."""
    model: LogisticRegression | Ridge
    if linear.classes is None:
        model = Ridge()
        model.coef_ = linear.coef[0].copy()
        model.intercept_ = float(linear.intercept[0])
        model.n_iter_ = None
        model.solver_ = "cholesky"
    else:
        model = LogisticRegression()
        model.coef_ = linear.coef.copy()
        model.intercept_ = linear.intercept.copy()
        model.classes_ = linear.classes.copy()
        model.n_iter_ = np.array([0], dtype=np.int32)
    model.n_features_in_ = linear.d
    if linear.feature_names is not None:
        model.feature_names_in_ = np.array(linear.feature_names, dtype=object)
    return model
