"""Whether two heads are the same."""

from __future__ import annotations

from typing import Any

import numpy as np


def assert_same_head(
    head: Any, expected: Any, *, rtol: float = 0.0, atol: float = 0.0, intercept_factor: float = 1.0
) -> None:
    """Coefficients and intercepts agree, to ``rtol`` of the largest coefficient plus ``atol``.

    Intercepts may differ ``intercept_factor`` times as much: they are sums over all features.
    """
    bound = atol + rtol * np.abs(expected.coef_).max()
    np.testing.assert_allclose(head.coef_, expected.coef_, rtol=0, atol=bound)
    np.testing.assert_allclose(
        head.intercept_, expected.intercept_, rtol=0, atol=intercept_factor * bound
    )
