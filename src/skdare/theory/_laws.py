"""Laws of the latent residuals: independent coordinates with mean zero and variance one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

_FREEDOM = 5.0
# Two normal humps at ±0.8, each of variance 0.36: 0.64 + 0.36 = 1.
_HUMP = 0.8


def _student(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.standard_t(_FREEDOM, shape) * np.sqrt((_FREEDOM - 2.0) / _FREEDOM)


def _mixture(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    side = rng.choice([-_HUMP, _HUMP], shape)
    return side + np.sqrt(1.0 - _HUMP**2) * rng.standard_normal(shape)


def _skewed(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.exponential(size=shape) - 1.0


LAWS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]] = {
    "gaussian": lambda rng, shape: rng.standard_normal(shape),
    "laplace": lambda rng, shape: rng.laplace(scale=0.5**0.5, size=shape),
    "student": _student,
    "uniform": lambda rng, shape: rng.uniform(-(3**0.5), 3**0.5, shape),
    "mixture": _mixture,
    "skewed": _skewed,
}
