"""Inverse square roots of shrunk second moments, each as an adjustment.

    ((1 - ρ) S + r I)^{-1/2}

Notation: S (d, d) second moment, ρ the shrinkage, r the ridge it adds, R (m, d) rows, W (d, d) the
root, Y and Z coupled iterates.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial

from skdare.arrays import (
    Array,
    as_float64,
    beside,
    like,
    namespace,
    on_accelerator,
    symmetric_eigen,
    to_numpy,
)
from skdare.whitening.adjustment import Adjustment

# The largest ratio of an eigenvalue to the ridge for a decomposition in float32.
_FLAT = 1e4
# Features from which the largest eigenvalues are removed first, and the size of the Krylov space.
_DEFLATED = 256
_BLOCK = 8
_BLOCKS = 10
# Relative error that a polynomial may have in place of the root.
_CLOSE = 1e-4
# Features from which an accelerator iterates: on an H200 a decomposition of 2,048 takes 27 ms in
# float64 and 31 in float32, and the iteration 10 to 15, to twelve digits.
_ITERATED = 512
_ITERATIONS = 40
_POWERS = 10


def root_of_matrix(S: Array, shrinkage: float, ridge: float, dtype: object) -> Adjustment:
    """((1 - ρ) S + r I)^{-1/2} for products in ``dtype``; in float32, to three or four digits.

    Without a ridge, directions within the rounding of S map to zero: a rank-deficient domain is
    projected, and its noise is not amplified.
    """
    xp = namespace(S)
    d = S.shape[0]
    keep = 1.0 - shrinkage
    if ridge > 0 and d >= _ITERATED and on_accelerator(S):
        W = _iterated_root(keep * S, ridge)
        if W is not None:
            return Adjustment(0.0, xp.astype(W, dtype))
    scale = float(xp.linalg.trace(S)) / d or 1.0  # float32 then holds the entries
    S = S / scale
    floor = ridge / scale
    if dtype == xp.float64 or not floor > 0 or d < _DEFLATED or on_accelerator(S):
        W = _root_by_eigen(S, keep, floor, xp.finfo(xp.float64 if floor > 0 else dtype).eps)
    else:
        W = _deflated_root(S, keep, floor, dtype)
    return Adjustment(0.0, xp.astype(W / scale**0.5, dtype, copy=False))


def _root_by_eigen(S: Array, keep: float, floor: float, eps: float = 0.0) -> Array:
    """(keep S + floor I)^{-1/2} in the dtype of S; zero where an eigenvalue is only rounding."""
    xp = namespace(S)
    values, V = symmetric_eigen(S)
    values = keep * xp.clip(as_float64(values), 0.0, None) + floor
    present = values > S.shape[0] * float(eps) * float(xp.max(values))
    roots = xp.where(present, xp.where(present, values, 1.0) ** -0.5, 0.0)
    # V diag(f) Vᵀ as A Aᵀ: a symmetric product costs half as much.
    A = V * xp.astype(roots**0.5, V.dtype)
    return A @ A.T


def _deflated_root(S: Array, keep: float, floor: float, dtype: object) -> Array:
    """(keep S + floor I)^{-1/2} in ``dtype``: the few largest eigenvalues apart from the rest.

    In float32 a decomposition gives eigenvalues to 1e-7 of the largest, and the largest by far of a
    raw second moment is that along the mean. With the largest removed in float64, the error of W
    on PACS at ρ = 0.1 fell from 3e-3 to 3e-4. At ρ = 0.9 the rest is so flat that a polynomial of
    one or two products replaces a decomposition, at a third of its cost. If the rest is still large
    the decomposition is in float64: on twin_gas in its raw units one in float32 left an error of
    3 % in the weights.
    """
    xp = namespace(S)

    def root(x: Array) -> Array:
        return (keep * x + floor) ** -0.5

    values, U, rest = _leading_pairs(S, floor / keep)
    if keep * rest > _FLAT * floor:
        return _root_by_eigen(S, keep, floor)
    flat = xp.astype(S - (U * values) @ U.T, dtype)
    W = _polynomial_root(flat, root, rest)
    if W is None:
        W = _root_by_eigen(flat, keep, floor)
    # Along U the rest is zero, and its root that of zero: more than it should be.
    A = xp.astype(U * (floor**-0.5 - root(xp.clip(values, 0.0, None))) ** 0.5, dtype)
    return W - A @ A.T


def _leading_pairs(S: Array, floor: float) -> tuple[Array, Array, float]:
    """The largest eigenvalues, with eigenvectors as columns, and about the largest of the others.

    From a block Krylov space; a pair is taken as exact as float32 would have it.
    """
    xp = namespace(S)
    start = beside(np.random.default_rng(0).normal(size=(S.shape[0], _BLOCK)), S)
    Q, _ = xp.linalg.qr(S @ start)
    K = Q
    images = []
    # With little shrinkage a decomposition follows, and needs the very largest taken out alone.
    blocks = _BLOCKS if floor > 1.0 else _BLOCKS // 2
    for number in range(blocks):
        images.append(S @ Q)
        if number + 1 < blocks:
            Q = images[-1]
            for _ in range(2):  # twice is enough for orthogonality to rounding
                Q = Q - K @ (K.T @ Q)
            Q, _ = xp.linalg.qr(Q)
            K = xp.concat([K, Q], axis=1)
    image = xp.concat(images, axis=1)
    T = K.T @ image
    values, V = xp.linalg.eigh((T + T.T) / 2)
    values, V = xp.flip(values), xp.flip(V, axis=1)
    U = K @ V
    residuals = to_numpy(xp.linalg.vector_norm(image @ V - U * values, axis=0))
    ritz = to_numpy(values)
    # An error ε along a direction of value θ changes the root by about ε / (θ + floor), relative.
    failed = np.flatnonzero(residuals > 1e-6 * (np.abs(ritz) + floor))
    r = int(failed[0]) if len(failed) else len(ritz) - 1
    return values[:r], U[:, :r], float(ritz[r] + residuals[r])


def _polynomial_root(S: Array, root: Callable[[Array], Array], top: float) -> Array | None:
    """root(S) for eigenvalues up to ``top``, by a polynomial of degree two or four; or None.

    Both consist of squares of symmetric matrices, which cost half of other products: a quartic is
    c (S² + a S + b I)² and a line.
    """
    grid = np.linspace(0.0, top, 200)
    for degree in (2, 4):
        fitted = Chebyshev.interpolate(root, degree, domain=[0.0, top])
        if np.max(np.abs(fitted(grid) / root(grid) - 1.0)) > _CLOSE:
            continue
        c = fitted.convert(kind=Polynomial).coef.tolist()
        one = like(np.eye(S.shape[0]), S)
        W = S @ S.T
        if degree == 2:
            W *= c[2]
        else:
            a = c[3] / (2.0 * c[4])
            b = (c[2] / c[4] - a**2) / 2.0
            W += a * S + b * one
            W = c[4] * (W @ W.T)
            c[1] -= 2.0 * c[4] * a * b
            c[0] -= c[4] * b**2
        W += c[1] * S + c[0] * one
        return W
    return None


def _iterated_root(S: Array, ridge: float) -> Array | None:
    """(S + r I)^{-1/2} in float64 by products alone, or None if that does not converge.

    Y → A^{1/2} and Z → A^{-1/2} for A scaled by its largest eigenvalue, by E = I - Z Y and
    multiplication with I + E/2 (coupled Newton and Schulz). It converges for eigenvalues below
    two, so that an estimate of the largest will do; the norm of A would take more iterations.
    """
    xp = namespace(S)
    one = xp.eye(S.shape[0], dtype=S.dtype, device=S.device)
    A = S + ridge * one
    v = beside(np.random.default_rng(0).normal(size=(S.shape[0], 8)), S)
    for _ in range(_POWERS):
        v = A @ v
        v = v / xp.linalg.matrix_norm(v)
    lengths = xp.linalg.vector_norm(A @ v, axis=0) / xp.linalg.vector_norm(v, axis=0)
    scale = float(xp.max(lengths))
    if not 0.0 < scale < float("inf"):
        return None
    Y = A / scale
    Z = one
    is_last = False
    for _ in range(_ITERATIONS):
        E = one - Z @ Y
        step = one + 0.5 * E
        Y = Y @ step
        Z = step @ Z
        if is_last:
            return (Z + Z.T) * (0.5 * scale**-0.5)
        # The error is squared by every iteration: once it is small, one more is enough.
        is_last = float(xp.linalg.matrix_norm(E)) < 1e-6 * S.shape[0] ** 0.5
    return None


def root_of_rows(R: Array, n: float, shrinkage: float, ridge: float) -> Adjustment:
    """The root for S = RᵀR / n of fewer rows than features: s I + Rᵀ C R, in m² d instead of d³.

    With K = R Rᵀ / n = Q diag(λ) Qᵀ and a root f on the eigenvalues, C = Q diag(g) Qᵀ / n where
    g = (f(λ) - f(0)) / λ. Directions that the rows do not span have f(0) = r^{-1/2}.
    """
    xp = namespace(R)
    exact = as_float64(R)
    values, Q = symmetric_eigen(exact @ exact.T / n)
    values = xp.clip(values, 0.0, None)
    spanned = values > 2.3e-16 * values.shape[0] * float(xp.max(values))
    shrunk = (1.0 - shrinkage) * values + ridge
    cut = R.shape[1] * float(xp.finfo(xp.float64 if ridge > 0 else R.dtype).eps)
    if ridge > cut * float(xp.max(shrunk)):
        # Written without the difference, so that small eigenvalues are harmless.
        outside = ridge**-0.5
        g = -(1.0 - shrinkage) * outside / (shrunk**0.5 * (shrunk**0.5 + ridge**0.5))
    else:
        outside = 0.0
        spanned = spanned & (shrunk > cut * float(xp.max(shrunk)))
        g = xp.where(spanned, shrunk, 1.0) ** -0.5 / xp.where(spanned, values, 1.0)
    A = Q * xp.where(spanned, xp.abs(g) / n, 0.0) ** 0.5  # all of g has one sign
    return Adjustment(outside, None, R.T, -A @ A.T if outside else A @ A.T)


def inverse_scales(variances: Array) -> Array:
    """D^{-1/2} of feature variances D; a feature that never varies has weight zero."""
    xp = namespace(variances)
    present = variances > 0
    return xp.where(present, xp.where(present, variances, 1.0) ** -0.5, 0.0)
