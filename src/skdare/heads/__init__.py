"""Every head as a scikit-learn estimator."""

from skdare.heads._adapter import Adapter
from skdare.heads._anchor import AnchorRegressor
from skdare.heads._base import fit_sharing as fit_sharing
from skdare.heads._cv import DAREClassifierCV, DARERegressorCV
from skdare.heads._dare import DAREClassifier, DARERegressor
from skdare.heads._fleet import Fleet
from skdare.heads._groupdro import GroupDROClassifier, GroupDRORegressor
from skdare.heads._inspection import inspect_file
from skdare.heads._irm import IRMClassifier, IRMRegressor
from skdare.heads._label_shift import LabelShiftWarning
from skdare.heads._persistence import load, save
from skdare.heads._split import LeaveOneDomainOut
from skdare.heads._unadjusted import (
    ERMClassifier,
    ERMRegressor,
    ReweightedClassifier,
    ReweightedRegressor,
)

__all__ = [
    "Adapter",
    "AnchorRegressor",
    "DAREClassifier",
    "DAREClassifierCV",
    "DARERegressor",
    "DARERegressorCV",
    "ERMClassifier",
    "ERMRegressor",
    "Fleet",
    "GroupDROClassifier",
    "GroupDRORegressor",
    "IRMClassifier",
    "IRMRegressor",
    "LabelShiftWarning",
    "LeaveOneDomainOut",
    "ReweightedClassifier",
    "ReweightedRegressor",
    "inspect_file",
    "load",
    "save",
]
