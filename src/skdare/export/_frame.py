"""A head as a table."""

from __future__ import annotations

import numpy as np
import pandas as pd

from skdare.export._linear_map import LinearMap


def coefficient_frame(linear: LinearMap) -> pd.DataFrame:
    """Intercept and features by classes."""
    if linear.classes is None:
        columns = pd.Index(["coefficient"])
    else:
        shown = linear.classes[1:] if linear.is_binary else linear.classes
        columns = pd.Index(shown.tolist(), name="class")
    values = np.vstack([linear.intercept, linear.coef.T])
    index = pd.Index(["intercept", *linear.names], name="feature")
    return pd.DataFrame(values, index=index, columns=columns)
