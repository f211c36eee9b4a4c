"""What rows of a class count in the loss, whatever they count in the moments of their domain.

A class weight is about the cost of errors. Means and covariances go by the rows as they are: those
of a new domain come without classes, and nobody can weigh them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from skdare._validation import InputError, check_number

ClassWeight = str | Mapping[Any, float] | None


def check_class_weight(class_weight: Any) -> None:
    """Refuse what is neither None, "balanced" nor a mapping to positive numbers."""
    if class_weight is None or (isinstance(class_weight, str) and class_weight == "balanced"):
        return
    if not isinstance(class_weight, Mapping):
        raise InputError(
            f"class_weight is {class_weight!r}",
            "use None, 'balanced', or a mapping from class to weight",
            argument="class_weight",
        )
    for label, weight in class_weight.items():
        check_number(f"the weight of class {label!r} in class_weight", weight)
        if not weight > 0:
            raise InputError(
                f"class_weight gives class {label!r} the weight 0",
                "drop the rows of a class that is not to count",
                argument="class_weight",
            )


def class_factors(
    class_weight: str | Mapping[Any, float],
    classes: np.ndarray,
    T: np.ndarray,
    weight: np.ndarray,
) -> np.ndarray:
    """What the rows of each class count, as in scikit-learn, (k,).

    Parameters
    ----------
    class_weight : "balanced" or mapping from class to weight
        Balanced: the rows of every class count the same together. A class that the mapping lacks
        counts 1.
    classes : array of shape (k,)
    T : array of int of shape (n,)
        Class numbers of the rows.
    weight : array of shape (n,)
    """
    if isinstance(class_weight, str):
        counts = np.bincount(T, weight, len(classes))
        present = counts > 0
        even = weight.sum() / (present.sum() * np.where(present, counts, 1.0))
        return np.where(present, even, 1.0)
    labels = classes.tolist()
    unknown = [label for label in class_weight if label not in labels]
    if unknown:
        raise InputError(
            f"class_weight names class {unknown[0]!r}",
            f"the classes are {labels}",
            argument="class_weight",
        )
    return np.array([float(class_weight.get(label, 1.0)) for label in labels])
