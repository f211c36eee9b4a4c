"""Every head as a scikit-learn estimator."""

from skdare.heads._anchor import AnchorRegressor
from skdare.heads._baselines import (
    ERMClassifier,
    ERMRegressor,
    GroupDROClassifier,
    GroupDRORegressor,
    IRMClassifier,
    IRMRegressor,
    ReweightedClassifier,
    ReweightedRegressor,
)
from skdare.heads._dare import DAREClassifier, DARERegressor

__all__ = [
    "AnchorRegressor",
    "DAREClassifier",
    "DARERegressor",
    "ERMClassifier",
    "ERMRegressor",
    "GroupDROClassifier",
    "GroupDRORegressor",
    "IRMClassifier",
    "IRMRegressor",
    "ReweightedClassifier",
    "ReweightedRegressor",
]
