"""Fits on a GPU beside their floor, whitened copies with torch's L-BFGS, and scikit-learn.

    python benchmarks/gpu.py [domainnet] [imagenet] [small]

``domainnet``: 586,575 rows of 2,048 features, 345 classes, 6 domains, a DARE head; ``imagenet``:
1,281,167 rows of 768 features, 1,000 classes, an ERM head; float32, random but separable. All
stop at a gradient of 1e-4 of the first one, which is measured anew for each, by one function.
The floor is as many bare pairs of products as there were evaluations, and the Gram products.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

os.environ.setdefault("SCIPY_ARRAY_API", "1")

import numpy as np
import torch

from skdare import DAREClassifier, ERMClassifier
from skdare.objective.coordinates import Coordinates
from skdare.objective.losses import SOFTMAX
from skdare.objective.objective import Objective
from skdare.objective.rows import DomainBlock, WeightedRows
from skdare.whitening.adjustment import Adjustment
from skdare.whitening.moments import Moments

GIB = 2**30


@dataclass(frozen=True)
class Size:
    """WeightedRows, features, classes, domains."""

    n: int
    d: int
    k: int
    domains: int


SIZES = {
    "domainnet": Size(586_575, 2048, 345, 6),
    "imagenet": Size(1_281_167, 768, 1000, 1),
    "small": Size(20_000, 256, 20, 4),
}
L2, RELATIVE = 1e-2, 1e-4


class Data:
    """Classes around centres in a latent space, that every domain stretches and moves."""

    def __init__(self, size: Size, device: str) -> None:
        generator = torch.Generator(device).manual_seed(0)
        n, d, k, E = size.n, size.d, size.k, size.domains
        normal = {"generator": generator, "device": device}
        self.size = size
        self.domains = np.arange(n) * E // n
        self.y = torch.randint(k, (n,), **normal)
        self.X = torch.empty((n, d), device=device)
        centres = torch.randn((k, d), **normal) * 5 / d**0.5
        self.bounds = [int(np.searchsorted(self.domains, e)) for e in range(E + 1)]
        for e in range(E):
            A = torch.diag(torch.exp(torch.rand(d, **normal) - 0.5))
            A += 0.3 * torch.randn((d, d), **normal) / d**0.5
            mean = 0.3 * torch.randn(d, **normal)
            for start in range(self.bounds[e], self.bounds[e + 1], 50_000):
                rows = slice(start, min(start + 50_000, self.bounds[e + 1]))
                latents = torch.randn((rows.stop - start, d), **normal) + centres[self.y[rows]]
                self.X[rows] = latents @ A + mean

    def parts(self) -> list[slice]:
        """The rows of each domain."""
        return [slice(a, b) for a, b in zip(self.bounds, self.bounds[1:], strict=False)]

    def objective(self, adjustments: list[Adjustment], ridge: float, penalty: float) -> Objective:
        """The objective in canonical weights and a plain intercept."""
        blocks, E = [], self.size.domains
        for rows, W in zip(self.parts(), adjustments, strict=True):
            m = rows.stop - rows.start
            weight = torch.full((m,), 1 / (E * m), device=self.X.device, dtype=torch.float64)
            blocks.append(DomainBlock(W, (WeightedRows(self.X, rows, self.y[rows], weight),)))
            if penalty:
                mean = self.X[rows].mean(dim=0, keepdim=True)
                uniform = torch.full((1, self.size.k), 1 / self.size.k, device=mean.device).double()
                one = torch.full((1,), penalty / E, device=mean.device).double()
                row = WeightedRows(mean, slice(0, 1), uniform, one, intercept=False)
                blocks[-1] = DomainBlock(W, (*blocks[-1].rows, row))
        return Objective(blocks, SOFTMAX, Coordinates(self.size.d, self.size.k), ridge)


def seconds(function: Callable[[], object], repeats: int = 3) -> float:
    """The shortest of several runs, after one that does not count."""
    function()
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        function()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return min(times)


def bare(data: Data) -> tuple[float, float]:
    """Seconds of the two products of an evaluation, and of all Gram products."""
    X, V = data.X, torch.randn((data.size.d, data.size.k), device=data.X.device)
    R = torch.randn((data.size.n, data.size.k), device=X.device)
    products = seconds(lambda: X @ V) + seconds(lambda: R.T @ X)
    return products, seconds(lambda: [X[rows].T @ X[rows] for rows in data.parts()])


def whitened_copies(
    data: Data, roots: list[torch.Tensor], tol: float, penalty: float, ridge: float
):
    """What one would script: adjusted copies, autograd, torch's L-BFGS with its line search."""
    Z = torch.empty_like(data.X)
    means = []
    for rows, W in zip(data.parts(), roots, strict=True):
        Z[rows] = data.X[rows] @ W
        means.append(Z[rows].mean(dim=0))
    M, k, E = torch.stack(means), data.size.k, data.size.domains
    share = torch.empty(len(Z), device=Z.device)
    for rows in data.parts():
        share[rows] = 1 / (E * (rows.stop - rows.start))
    B = torch.zeros((data.size.d, k), device=Z.device, requires_grad=True)
    b = torch.zeros(k, device=Z.device, requires_grad=True)
    solver = torch.optim.LBFGS(
        [B, b],
        max_iter=1000,
        max_eval=2000,
        history_size=20,
        tolerance_grad=tol,
        tolerance_change=0.0,
        line_search_fn="strong_wolfe",
    )
    evaluations = 0

    def closure() -> torch.Tensor:
        nonlocal evaluations
        evaluations += 1
        solver.zero_grad()
        losses = torch.nn.functional.cross_entropy(Z @ B + b, data.y, reduction="none")
        loss = (losses * share).sum() + ridge / 2 * (B * B).sum()
        if penalty:
            uniform = torch.full((E, k), 1 / k, device=Z.device)
            loss = loss + penalty * torch.nn.functional.cross_entropy(M @ B, uniform)
        loss.backward()
        return loss

    solver.step(closure)
    return B.detach().double(), b.detach().double(), evaluations


def script(data: Data, shrinkage: float, tol: float, penalty: float, ridge: float):
    """Second moments, their inverse roots and a fit to whitened copies, by hand."""
    roots = []
    for rows in data.parts():
        S = data.X[rows].T @ data.X[rows] / (rows.stop - rows.start)
        S = (1 - shrinkage) * S + shrinkage * S.trace() / len(S) * torch.eye(
            len(S), device=S.device
        )
        values, vectors = torch.linalg.eigh(S)
        roots.append((vectors * values**-0.5) @ vectors.T)
    return whitened_copies(data, roots, tol, penalty, ridge)


def sklearn_on_copies(data: Data, adjustments: list[Adjustment], penalty: float, ridge: float):
    """scikit-learn's L-BFGS on the same GPU, on whitened copies with the means as further rows."""
    from sklearn import config_context
    from sklearn.linear_model import LogisticRegression

    Z, share = torch.empty_like(data.X), torch.empty(data.size.n, device=data.X.device)
    for rows, W in zip(data.parts(), adjustments, strict=True):
        Z[rows] = W.apply(data.X[rows].T).T
        share[rows] = 1 / (data.size.domains * (rows.stop - rows.start))
    model = LogisticRegression(C=1 / ridge, tol=RELATIVE * 1e-2, max_iter=1000)
    with config_context(array_api_dispatch=True):
        model.fit(Z, data.y.to(torch.float32), sample_weight=share)
    return model.coef_.T.double(), model.intercept_.double(), int(model.n_iter_[0])


def relative_gradient(objective: Objective, B: torch.Tensor, b: torch.Tensor) -> float:
    """The largest entry of the gradient, beside the first one."""
    device = objective.blocks[0].rows[0].X.device
    theta = torch.cat([B.ravel(), b]).to(device)
    first = objective.value_and_gradient(torch.zeros_like(theta))[1].abs().max()
    return float(objective.value_and_gradient(theta)[1].abs().max() / first)


def watched(function: Callable[[], object], X: torch.Tensor) -> tuple[object, float, float]:
    """The result, the shortest of three runs in seconds, and GiB held beside X."""
    result, best, peak = None, np.inf, 0.0
    for _ in range(3):
        result = None
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        result = function()
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - begin)
        peak = (torch.cuda.max_memory_allocated() - before) / GIB
    return result, best, peak


def measure(name: str, others: bool) -> None:
    """Print the table of one size."""
    size = SIZES[name]
    data = Data(size, "cuda")
    dare = size.domains > 1
    penalty, shrinkage = (1.0, 0.9) if dare else (0.0, 1.0)
    gib = data.X.element_size() * data.X.numel() / GIB
    products, grams = bare(data)
    print(f"\n## {name}: {size.n:,} × {size.d}, {size.k} classes, {size.domains} domains")
    print(f"\nX has {gib:.2f} GiB; its two products take {1e3 * products:.1f} ms, ", end="")
    print(f"all Gram products {1e3 * grams:.1f} ms; {torch.cuda.get_device_name()}")

    def head(tol: float):
        if dare:
            return DAREClassifier(l2=L2, tol=tol, adaptation=None, max_iter=1000)
        return ERMClassifier(l2=L2, tol=tol, max_iter=1000)

    def fit(tol: float):
        if dare:
            return head(tol).fit(data.X, data.y, domains=data.domains)
        return head(tol).fit(data.X, data.y)

    if dare:
        fitted = fit(1e-1)
        adjustments = [
            Adjustment(size.d, 0.0, torch.asarray(A.matrix, device="cuda").float())
            for A in fitted.adjustments_.values()
        ]
        scale = np.mean([m.scale(centered=False) for m in fitted.moments_.values()])
        moments = list(fitted.moments_.values())
        whole = sum(moments[1:], moments[0])
        ridge = L2 * whole.scale() / float(scale)
        del fitted, moments, whole
    else:
        unit = Moments.of(data.X).scale()
        adjustments, ridge = [Adjustment(size.d, unit**-0.5)], L2
    objective = data.objective(adjustments, ridge, penalty)
    zero = torch.zeros(objective.size, device="cuda", dtype=torch.float64)
    first = float(objective.value_and_gradient(zero)[1].abs().max())
    evaluation = seconds(lambda: objective.value_and_gradient(zero))
    coarse = seconds(lambda: objective.coarsened().value_and_gradient(zero))
    ratio = evaluation / products
    print(f"\nAn evaluation takes {1e3 * evaluation:.1f} ms, {ratio:.2f} × its products; ", end="")
    print(f"in TF32 {1e3 * coarse:.1f} ms\n")
    tol = RELATIVE * first
    found, took, held = watched(lambda: fit(tol), data.X)
    solution = found.solution_
    if dare:
        B, b = torch.asarray(found.canonical_coef_.T), torch.asarray(found._canonical[1])
    else:
        B, b = (torch.asarray(part) for part in found._canonical)
    floor = solution.n_evaluations * products + grams * dare
    print("| | seconds | × | evaluations | relative gradient | GiB beside X |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    print(f"| floor | {floor:.3f} | {floor / took:.2f} | {solution.n_evaluations} | | |")
    gradient = relative_gradient(objective, B, b)
    print(
        f"| skdare | {took:.3f} | 1 | {solution.n_evaluations} ({solution.n_coarse} in TF32) | "
        f"{gradient:.1e} | {held:.2f} ({held / gib:.0%}) |"
    )
    if not others:
        return
    found, took_b, held = watched(lambda: script(data, shrinkage, tol, penalty, ridge), data.X)
    gradient = relative_gradient(objective, found[0], found[1])
    print(
        f"| whitened copies, torch L-BFGS | {took_b:.3f} | {took_b / took:.2f} | {found[2]} | "
        f"{gradient:.1e} | {held:.2f} |"
    )
    if gradient > 2 * RELATIVE:  # its line search ends there, in float32
        found, took_there, _ = watched(lambda: fit(gradient * first), data.X)
        print(
            f"| skdare, to a gradient of {gradient:.0e} | {took_there:.3f} | "
            f"{took_there / took:.2f} | {found.solution_.n_evaluations} "
            f"({found.solution_.n_coarse} in TF32) | | |"
        )
    found = None
    torch.cuda.empty_cache()
    try:
        found, took_c, held = watched(
            lambda: sklearn_on_copies(data, adjustments, penalty, ridge), data.X
        )
    except Exception as error:
        print(f"| scikit-learn, array API | {type(error).__name__}: {error} | | | | |")
        return
    plain = data.objective(adjustments, ridge, 0.0)
    gradient = relative_gradient(plain, found[0], found[1])
    print(
        f"| scikit-learn, array API, without the penalty | {took_c:.3f} | {took_c / took:.2f} | "
        f"{found[2]} iterations | {gradient:.1e} | {held:.2f} |"
    )


def main() -> None:
    """Print a table for each size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="*", default=["domainnet", "imagenet"])
    parser.add_argument("--alone", action="store_true", help="skdare and its floor only")
    args = parser.parse_args()
    for name in args.sizes:
        measure(name, not args.alone)


if __name__ == "__main__":
    main()
