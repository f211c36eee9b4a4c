"""Variables of a MATLAB file, up to its version 7."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO

import numpy as np

from skdare._input_error import InputError


def matlab_variables(file: str, content: bytes, names: Sequence[str]) -> list[np.ndarray]:
    """Matrices of a MATLAB file, by name; of a structure or data set, its field ``data``.

    Parameters
    ----------
    file : str
        Its name, for errors.
    content : bytes
    names : sequence of str
    """
    from scipy.io import loadmat

    try:
        variables = loadmat(BytesIO(content), variable_names=list(names))
        arrays = [variables[name] for name in names]
        return [a["data"][0, 0] if a.dtype.names is not None else a for a in arrays]
    # A damaged file can raise almost anything there.
    except Exception as error:
        raise InputError(
            f"{file} has no matrices {', '.join(names)} that can be read: {error}"
        ) from error
