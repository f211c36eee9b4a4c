"""Fits on a GPU, compared with their floor and with whitened copies by torch's L-BFGS.

    python benchmarks/gpu.py --cases small [--beside OTHER/src]
    python benchmarks/gpu.py --cases middle wide

Random separable float32 rows on the device, a DARE head, to a gradient of 1e-4 of the first. The
floor is a bare pair of products per iteration, and the Gram products. Without a
GPU it runs on the host ("tiny"), to see that it works. Seconds of the clock.
"""

from __future__ import annotations

import json
import os
import time

os.environ.setdefault("SCIPY_ARRAY_API", "1")

import numpy as np

from houses import arguments, best, measured, ratio, table

# rows, features, classes, domains
CASES = {
    "tiny": (4_000, 64, 7, 4),
    "small": (20_000, 256, 20, 4),
    "middle": (300_000, 1024, 100, 6),
    "wide": (586_575, 2048, 345, 6),
}
L2, RHO, RELATIVE = 1e-2, 0.9, 1e-4


def made(torch, device: str, n: int, d: int, k: int, E: int):
    """Classes around centres in a latent space, that every domain scales and moves."""
    generator = torch.Generator(device).manual_seed(0)
    normal = {"generator": generator, "device": device}
    domains = np.arange(n) * E // n
    y = torch.randint(k, (n,), **normal)
    centres = torch.randn((k, d), **normal) * 5 / d**0.5
    X = torch.empty((n, d), device=device)
    for e in range(E):
        rows = slice(*np.searchsorted(domains, [e, e + 1]).tolist())
        latent = torch.randn((rows.stop - rows.start, d), **normal) + centres[y[rows]]
        X[rows] = latent * torch.exp(torch.rand(d, **normal) - 0.5) + 0.3 * torch.randn(d, **normal)
    return X, y, domains


def script(torch, X, y, domains, k: int, tol: float) -> int:
    """Whitened copies, autograd, torch's L-BFGS with its line search; returns evaluations."""
    Z, share, means = torch.empty_like(X), torch.empty(len(X), device=X.device), []
    E = int(domains.max()) + 1
    for e in range(E):
        rows = slice(*np.searchsorted(domains, [e, e + 1]).tolist())
        S = X[rows].T @ X[rows] / (rows.stop - rows.start)
        S = (1 - RHO) * S + RHO * S.trace() / len(S) * torch.eye(len(S), device=X.device)
        values, vectors = torch.linalg.eigh(S)
        Z[rows] = X[rows] @ ((vectors * values**-0.5) @ vectors.T)
        share[rows] = 1 / (E * (rows.stop - rows.start))
        means.append(Z[rows].mean(dim=0))
    B = torch.zeros((X.shape[1], k), device=X.device, requires_grad=True)
    M, uniform = torch.stack(means), torch.full((E, k), 1 / k, device=X.device)
    limits = {"max_iter": 1000, "max_eval": 2000, "history_size": 20, "tolerance_change": 0.0}
    solver = torch.optim.LBFGS([B], tolerance_grad=tol, line_search_fn="strong_wolfe", **limits)
    cross_entropy, evaluations = torch.nn.functional.cross_entropy, 0

    def closure():
        nonlocal evaluations
        evaluations += 1
        solver.zero_grad()
        loss = (cross_entropy(Z @ B, y, reduction="none") * share).sum()
        loss = loss + cross_entropy(M @ B, uniform) + L2 / 2 * (B * B).sum()
        loss.backward()
        return loss

    solver.step(closure)
    return evaluations


def child(case: str, runs: int) -> dict[str, float]:
    import torch

    from skdare import DAREClassifier

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    X, y, domains = made(torch, device, *CASES[case])
    n, d, k, _ = CASES[case]

    def clock() -> float:
        if device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    def fit(adaptation):
        head = DAREClassifier(
            l2=L2, shrinkage=RHO, adaptation=adaptation, fit_intercept=False, tol=RELATIVE / k
        )
        return head.fit(X, y, domains=domains)

    labels = y.cpu().numpy()
    y, on_device = labels, y
    V, R = torch.randn((d, k), device=device), torch.randn((n, k), device=device)
    result = {"products": best(lambda: (X @ V, R.T @ X), runs, clock)[0]}
    result["grams"] = best(lambda: X.T @ X, runs, clock)[0]
    result["dare"], head = best(lambda: fit(None), runs, clock)
    result["with adapt"], _ = best(lambda: fit("raw"), runs, clock)
    result["iterations"] = head.solution_.n_iter
    result["script"], result["its evaluations"] = best(
        lambda: script(torch, X, on_device, domains, k, RELATIVE / k), 1, clock
    )
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        fit(None)
        result["memory"] = (torch.cuda.max_memory_allocated() - before) / (4 * n * d)
    return result


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=["tiny"])
    options = parser.parse_args()
    if options.child:
        print(json.dumps(child(options.child, options.runs)))
        return
    rows = []
    for case in options.cases:
        ours, *other = measured(__file__, case, options)
        n, d, k, E = CASES[case]
        floor = (ours["iterations"] + 1) * ours["products"] + ours["grams"]
        cells = [f"{n:,} × {d}, {k} classes, {E} domains", f"{ours['dare']:.3f}"]
        cells += [f"{ours['iterations']}", f"{ours['with adapt']:.3f}"]
        cells += [ratio(other[0][w], ours[w]) if other else "" for w in ("dare", "with adapt")]
        cells += [ratio(floor, ours["dare"]), ratio(ours["script"], ours["dare"])]
        cells += [f"{ours['its evaluations']}", f"{ours.get('memory', float('nan')):.2f} X"]
        rows.append(cells)
    header = ["case", "seconds", "iterations", "with adapt", "other checkout", "other, with adapt"]
    print(table([*header, "floor", "script", "its evaluations", "memory"], rows))


if __name__ == "__main__":
    main()
