"""Every head as a scikit-learn estimator."""

from skdare.heads._anchor import AnchorRegressor
from skdare.heads._cv import DAREClassifierCV, DARERegressorCV
from skdare.heads._dare import DAREClassifier, DARERegressor
from skdare.heads._erm import ERMClassifier, ERMRegressor, ReweightedClassifier, ReweightedRegressor
from skdare.heads._estimator import fit_sharing as fit_sharing
from skdare.heads._groupdro import GroupDROClassifier, GroupDRORegressor
from skdare.heads._irm import IRMClassifier, IRMRegressor
from skdare.heads._pipeline import DomainAdjusted, make_domain_adjusted
from skdare.heads._split import LeaveOneDomainOut

__all__ = [
    "AnchorRegressor",
    "DAREClassifier",
    "DAREClassifierCV",
    "DARERegressor",
    "DARERegressorCV",
    "DomainAdjusted",
    "ERMClassifier",
    "ERMRegressor",
    "GroupDROClassifier",
    "GroupDRORegressor",
    "IRMClassifier",
    "IRMRegressor",
    "LeaveOneDomainOut",
    "ReweightedClassifier",
    "ReweightedRegressor",
    "make_domain_adjusted",
]
