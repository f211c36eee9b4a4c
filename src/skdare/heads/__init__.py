"""Every head as a scikit-learn estimator."""

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
