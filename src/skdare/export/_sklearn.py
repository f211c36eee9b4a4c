"""A head as a fitted estimator of scikit-learn's own."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge

from skdare.export._linear_map import LinearMap


def linear_model(linear: LinearMap) -> LogisticRegression | Ridge:
    """With every attribute that ``fit`` would have set."""
    model: LogisticRegression | Ridge
    if linear.classes is None:
        model = Ridge()
        model.coef_, model.intercept_ = linear.coef[0].copy(), float(linear.intercept[0])
        model.n_iter_, model.solver_ = None, "cholesky"
    else:
        model = LogisticRegression()
        model.coef_, model.intercept_ = linear.coef.copy(), linear.intercept.copy()
        model.classes_, model.n_iter_ = linear.classes.copy(), np.array([0], dtype=np.int32)
    model.n_features_in_ = linear.d
    if linear.feature_names is not None:
        model.feature_names_in_ = np.array(linear.feature_names, dtype=object)
    return model
