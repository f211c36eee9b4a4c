"""The Cholesky factor of a matrix that rounding may have spoilt."""

from __future__ import annotations

import numpy as np
from scipy import linalg


def cholesky(matrix: np.ndarray) -> tuple[np.ndarray, bool]:
    """Factor of a matrix that is positive definite but for rounding, for ``cho_solve``.

    One row far out leaves nothing of the others in float32; as much as it takes is then added to
    the diagonal.
    """
    size = float(np.abs(np.diagonal(matrix)).mean()) or 1.0
    for added in (0.0, *(size * 10.0**power for power in range(-9, 3))):
        shifted = matrix.copy()
        shifted[np.diag_indices(len(matrix))] += added
        try:
            factor: tuple[np.ndarray, bool] = linalg.cho_factor(
                shifted, lower=True, overwrite_a=True, check_finite=False
            )
            return factor
        except linalg.LinAlgError:
            continue
    raise ValueError(
        "these rows have no covariance that is a number; look for values far too large"
    )
