"""Time of a fit, compared with scikit-learn and with the paper as one would script it.

    python benchmarks/compare.py                         # all cases, one BLAS thread
    python benchmarks/compare.py --cases 20k --beside OTHER/src

Every fit of a case has the same float32 rows and the same ridge, and runs until its objective,
evaluated in float64, is within 1e-5 of the best one, relative: tolerances are tightened until it
is, or it is "missed". Seconds are of the processor, the shortest of some runs. "script" whitens
every domain into a new array and minimises the same sum with SciPy's L-BFGS.
"""

from __future__ import annotations

import json
import warnings

import numpy as np

from houses import arguments, best, made, measured, ratio, table

# rows, features, classes, domains
CASES = {
    "2k": (2_000, 64, 5, 4),
    "20k": (20_000, 256, 10, 4),
    "60k": (60_000, 1024, 3, 4),
    "8k": (8_000, 1280, 7, 3),
}
L2, RHO, GOAL = 1e-2, 0.9, 1e-5
TOLERANCES = (1e-3, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6)


def log_loss(F: np.ndarray, y: np.ndarray) -> float:
    if F.shape[1] == 1:
        return float(np.mean(np.logaddexp(0.0, F[:, 0]) - y * F[:, 0]))
    top = F.max(axis=1, keepdims=True)
    return float(np.mean(np.log(np.exp(F - top).sum(axis=1)) + top[:, 0] - F[np.arange(len(y)), y]))


def to_goal(fit, objective, least: float, runs: int) -> float | None:
    """Seconds at the first tolerance that reaches the goal."""
    for tol in TOLERANCES:
        if objective(fit(tol)) <= (1 + GOAL) * least:
            return best(lambda tol=tol: fit(tol), runs)[0]
    return None


class Script:
    """The paper as one would write it: whitened copies, mean rows, SciPy's L-BFGS."""

    def __init__(self, X, y, domains, k: int, scale: float) -> None:
        self.parts, roots, sizes = [], [], []
        for e in np.unique(domains):
            rows = X[domains == e]
            S = (rows.T @ rows / len(rows)).astype(np.float64)
            sizes.append(np.trace(S) / len(S))
            S = (1 - RHO) * S + RHO * sizes[-1] * np.eye(len(S))
            values, vectors = np.linalg.eigh(S)
            roots.append((vectors * values**-0.5) @ vectors.T)
            Z = rows @ roots[-1].astype(np.float32)
            self.parts.append((Z, np.eye(k)[y[domains == e]]))
            self.parts.append((Z.mean(axis=0, keepdims=True), np.full((1, k), 1 / k)))
        self.average, self.ridge = np.mean(roots, axis=0), L2 * scale / float(np.mean(sizes))
        self.shape = X.shape[1], k

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        B = theta.reshape(self.shape)
        total, gradient = 0.5 * self.ridge * float(theta @ theta), self.ridge * B
        for Z, T in self.parts:
            F = (Z @ B.astype(np.float32)).astype(np.float64)
            F -= F.max(axis=1, keepdims=True)
            P = np.exp(F)
            P /= P.sum(axis=1, keepdims=True)
            share = 2 / (len(Z) * len(self.parts))
            total -= share * float(np.sum(T * np.log(np.maximum(P, 1e-300))))
            gradient = gradient + share * (Z.T @ (P - T).astype(np.float32))
        return total, gradient.ravel()

    def minimised(self, tol: float) -> np.ndarray:
        from scipy.optimize import minimize

        options = {"gtol": tol, "ftol": 0.0, "maxiter": 20_000, "maxfun": 40_000, "maxcor": 20}
        start = np.zeros(self.shape[0] * self.shape[1])
        return minimize(self, start, jac=True, method="L-BFGS-B", options=options).x


def child(case: str, runs: int) -> dict[str, float | None]:
    from sklearn.linear_model import LogisticRegression

    from skdare import DAREClassifier, ERMClassifier

    warnings.simplefilter("ignore")
    X, y, domains = made(*CASES[case])
    k = CASES[case][2]
    scale = float(X.var(axis=0, dtype=np.float64).mean())

    def erm(tol):
        return ERMClassifier(l2=L2, tol=tol, max_iter=20_000).fit(X, y)

    def theirs(tol):
        model = LogisticRegression(C=1 / (len(y) * L2 * scale), tol=tol, max_iter=20_000)
        return model.fit(X, y)

    def objective(model) -> float:
        F = X.astype(np.float64) @ model.coef_.T + model.intercept_
        return log_loss(F, y) + 0.5 * L2 * scale * float(np.sum(model.coef_.astype(float) ** 2))

    def dare(adaptation):
        options = {"l2": L2, "shrinkage": RHO, "adaptation": adaptation, "fit_intercept": False}
        return lambda tol: DAREClassifier(tol=tol, max_iter=20_000, **options).fit(
            X, y, domains=domains
        )

    def script(tol):
        return Script(X, y, domains, k, scale).minimised(tol)

    written_out = Script(X, y, domains, k, scale)

    def lagrangian(found) -> float:
        if not isinstance(found, np.ndarray):
            found = np.linalg.solve(written_out.average, found.coef_.T.astype(float)).ravel()
        return written_out(found)[0]

    least = objective(erm(1e-7))
    result = {"erm": to_goal(erm, objective, least, runs)}
    result["lbfgs"] = to_goal(theirs, objective, least, runs)
    least = lagrangian(dare(None)(1e-6))
    result["dare"] = to_goal(dare(None), lagrangian, least, runs)
    result["with adapt"] = to_goal(dare("raw"), lagrangian, least, runs)
    result["script"] = to_goal(script, lagrangian, least, 1)
    return result


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    options = parser.parse_args()
    if options.child:
        print(json.dumps(child(options.child, options.runs)))
        return
    rows = []
    for case in options.cases:
        ours, *other = measured(__file__, case, options)
        n, d, k, E = CASES[case]
        for what, rival in (("erm", "lbfgs"), ("dare", "script"), ("with adapt", "script")):
            seconds = "missed" if ours[what] is None else f"{ours[what]:.2f}"
            before = ratio(other[0][what], ours[what]) if other else ""
            ratios = [before, ratio(ours[rival], ours[what])]
            rows.append([f"{n:,} × {d}, {k} classes, {E} domains", what, seconds, *ratios])
    header = ["case", "fit", "seconds", "other checkout", "scikit-learn or script"]
    print(table(header, rows))


if __name__ == "__main__":
    main()
