"""Numbers in a published file that stand for names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from skdare._input_error import InputError


def numbered(text: str, *, first: int = 0) -> dict[float, str]:
    """Names that are written one after the other, by their numbers; ``--`` is a number left out."""
    return {i: name for i, name in enumerate(text.split(), start=first) if name != "--"}


def coded(codes: Iterable[str | float], names: Mapping[float, str], file: str) -> np.ndarray:
    """Names that codes stand for; a code without a name is an error.

    Parameters
    ----------
    codes : iterable of numbers, or of text that is one
    names : mapping of number to name
    file : str
        Where the codes are from, for errors.
    """
    found = []
    for code in codes:
        try:
            found.append(names[float(code)])
        except (KeyError, ValueError):
            raise InputError(f"{file} has a code {str(code)[:20]!r} that means nothing") from None
    return np.array(found)
