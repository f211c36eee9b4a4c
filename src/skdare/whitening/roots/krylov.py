"""Inverse root of a strongly shrunk second moment from part of its spectrum, to 1e-4.

With shrinkage the eigenvalues that matter are few and large, and the rest are nearly flat. The
large ones are found by a block Krylov method and taken out; a polynomial of degree one, two or
four does the rest with at most two matrix products.

Notation: S (d, d) second moment, K (d, m) Krylov basis, U (d, r) Ritz vectors, W inverse root.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial

from skdare.arrays import Array, identity, like, namespace, symmetric_eigen, to_numpy

TOLERANCE = 1e-4
# Below this the full decomposition is quick, and below this shrinkage the rest is not flat enough.
MIN_FEATURES = 768
MIN_SHRINKAGE = 0.7
_BLOCKS = 6


@dataclass(frozen=True, eq=False)
class _Leading:
    """Converged leading eigenpairs, and a bound on the eigenvalues that are left."""

    values: np.ndarray
    U: Array
    rest: float


def deflated_inverse_root(S: Array, shrinkage: float, ridge: float, dtype: object) -> Array | None:
    """``((1 - ρ) S + ridge I)^{-1/2}`` to a relative error of 1e-4, or None if that takes more.

    The result is checked on random vectors, ``W Σ W z = z``, before it is given.
    """
    xp = namespace(S)
    d = S.shape[0]
    scale = float(xp.linalg.trace(S)) / d
    S = S / scale
    ridge = ridge / scale

    def root(x: np.ndarray) -> np.ndarray:
        return ((1.0 - shrinkage) * x + ridge) ** -0.5

    leading = _leading_eigenpairs(S, ridge / (1.0 - shrinkage))
    polynomial = _cheapest_polynomial(root, leading.rest)
    if polynomial is None:
        return None
    U = leading.U
    flat = like(S - (U * like(leading.values, S)) @ xp.matrix_transpose(U), S, dtype)
    # Along U the flat part is zero, so the polynomial gives its constant there.
    # Values that are zero but for rounding have no excess.
    excess = np.maximum(polynomial.coef[0] - root(leading.values), 0.0)
    A = like(U * like(excess**0.5, S), S, dtype)
    W = _evaluate(polynomial, flat) - A @ xp.matrix_transpose(A)
    probe = like(np.random.default_rng(1).normal(size=(d, 4)), S)
    once = like(W @ like(probe, W), S)
    back = like(W @ like((1.0 - shrinkage) * (S @ once) + ridge * once, W), S)
    error = float(xp.linalg.vector_norm(back - probe) / xp.linalg.vector_norm(probe))
    return W / scale**0.5 if error <= 4 * TOLERANCE else None


def _leading_eigenpairs(S: Array, floor: float) -> _Leading:
    """Leading eigenpairs by a block Krylov space, full orthogonalisation and Rayleigh–Ritz."""
    xp = namespace(S)
    d = S.shape[0]
    start = like(np.random.default_rng(0).normal(size=(d, d // 32)), S)
    blocks = [xp.linalg.qr(S @ start)[0]]
    images = []
    for number in range(_BLOCKS):
        images.append(S @ blocks[-1])
        if number + 1 < _BLOCKS:
            K = xp.concat(blocks, axis=1)
            new = images[-1]
            for _ in range(2):  # twice is enough for orthogonality to rounding
                new = new - K @ (xp.matrix_transpose(K) @ new)
            blocks.append(xp.linalg.qr(new)[0])
    K = xp.concat(blocks, axis=1)
    SK = xp.concat(images, axis=1)
    T = xp.matrix_transpose(K) @ SK
    values, vectors = symmetric_eigen((T + xp.matrix_transpose(T)) / 2)
    values = xp.flip(values)
    vectors = xp.flip(vectors, axis=1)
    U = K @ vectors
    ritz = to_numpy(values)
    residuals = to_numpy(xp.linalg.vector_norm(SK @ vectors - U * values, axis=0))
    # An error ε in a direction of value θ changes the root by about ε / (θ + floor), relative.
    failed = np.flatnonzero(residuals > 0.25 * TOLERANCE * (np.abs(ritz) + floor))
    r = int(failed[0]) if len(failed) else len(ritz) - 1
    return _Leading(ritz[:r], U[:, :r], float(ritz[r] + residuals[r]))


def _cheapest_polynomial(root: Callable[[np.ndarray], np.ndarray], top: float) -> Polynomial | None:
    """The polynomial of least degree within the tolerance of the root on [0, top]."""
    grid = np.linspace(0.0, top, 200)
    for degree in (1, 2, 4):
        fitted = Chebyshev.interpolate(root, degree, domain=[0.0, top])
        if np.max(np.abs(fitted(grid) / root(grid) - 1.0)) <= TOLERANCE:
            return fitted.convert(kind=Polynomial)
    return None


def _evaluate(polynomial: Polynomial, S: Array) -> Array:
    """P(S) for a degree of one, two or four: none, one or two products."""
    xp = namespace(S)
    c = [float(value) for value in polynomial.coef]
    W = c[1] * S
    if len(c) > 2:
        square = S @ xp.matrix_transpose(S)  # written so that BLAS sees a symmetric product
        W = W + c[2] * square
        if len(c) > 3:
            W = W + square @ (c[3] * S + c[4] * square)
    return W + c[0] * identity(S)
