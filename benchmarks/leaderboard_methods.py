"""Methods of the table of frozen features: each is one function.

It takes the rows of the training domains (features, labels, domain of each row) and the rows of a
domain that nobody has seen, without labels, and returns a label for each of these. Its name is the
method's, and the first line of its docstring stands below the table. All rows are filled and
standardised by the training rows, so there is no NaN.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.neighbors import KNeighborsClassifier

from skdare import DAREClassifier, DAREClassifierCV, GroupDROClassifier, IRMClassifier

Method = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
# Ridges for one row, as heads have them; scikit-learn's C is for all rows.
RIDGES = np.array([1e-3, 1e-2, 1e-1])
MOST_PARTS = 5


def logistic_regression(X, y, domains, new_X):
    """ERM: scikit-learn's logistic regression, its C chosen by leaving training domains out."""
    parts = GroupKFold(min(MOST_PARTS, len(np.unique(domains))))
    strengths = 1.0 / (RIDGES * len(X))
    search = GridSearchCV(LogisticRegression(max_iter=300), {"C": strengths}, cv=parts)
    return search.fit(X, y, groups=domains).predict(new_X)


def discriminant_analysis(X, y, domains, new_X):
    """scikit-learn's linear discriminant analysis, its covariance shrunk by Ledoit and Wolf."""
    head = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    return head.fit(X, y).predict(new_X)


def random_forest(X, y, domains, new_X):
    """scikit-learn's random forest at its defaults: not linear."""
    return RandomForestClassifier(random_state=0).fit(X, y).predict(new_X)


def nearest_neighbours(X, y, domains, new_X):
    """scikit-learn's five nearest neighbours: not linear."""
    return KNeighborsClassifier().fit(X, y).predict(new_X)


def group_dro(X, y, domains, new_X):
    """skdare's GroupDRO at its defaults: the worst training domain counts most."""
    return GroupDROClassifier().fit(X, y, domains=domains).predict(new_X)


def irm(X, y, domains, new_X):
    """skdare's IRM at its defaults: one head that no training domain wants to rescale."""
    return IRMClassifier().fit(X, y, domains=domains).predict(new_X)


def dare(X, y, domains, new_X):
    """skdare's DARE at its defaults; nothing is used of the new domain."""
    return DAREClassifier().fit(X, y, domains=domains).predict(new_X)


def dare_adapted(X, y, domains, new_X):
    """The same DARE head after `adapt` on the new rows, without their labels."""
    return DAREClassifier().fit(X, y, domains=domains).adapt(new_X).predict(new_X)


def dare_cv(X, y, domains, new_X):
    """skdare's choosing head: whether and how to adjust is chosen on training domains left out."""
    return DAREClassifierCV().fit(X, y, domains=domains).predict(new_X)


def dare_cv_adapted(X, y, domains, new_X):
    """The choosing head after `adapt` on the new rows: it also chose whether and how to."""
    return DAREClassifierCV().fit(X, y, domains=domains).adapt(new_X).predict(new_X)


METHODS: tuple[Method, ...] = (
    logistic_regression,
    discriminant_analysis,
    random_forest,
    nearest_neighbours,
    group_dro,
    irm,
    dare,
    dare_cv,
    dare_adapted,
    dare_cv_adapted,
)
