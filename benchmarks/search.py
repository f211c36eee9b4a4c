"""Time of a search, compared with the same grid in scikit-learn's GridSearchCV.

    python benchmarks/search.py
    python benchmarks/search.py --beside OTHER/src

"Same grid" is three ridges of plain regression with every domain held out, and the final fit, by
`GridSearchCV(LeaveOneGroupOut)` and by `DARE…CV(strategies=("erm",))`. "All strategies" is the
search by default. Seconds of the processor, one BLAS thread.
"""

from __future__ import annotations

import json
import warnings

import numpy as np

from houses import arguments, best, measured, ratio, table

L2 = (1e-3, 1e-2, 1e-1)
# rows, features, domains; classes, or 0 for regression
CASES = {
    "few domains": (1_200, 30, 4, 3),
    "many domains": (1_500, 25, 25, 6),
    "digits": (1_797, 64, 8, 10),
    "features": (2_000, 256, 4, 5),
    "regression": (2_000, 40, 10, 0),
}


def made(n: int, d: int, E: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    domains = np.arange(n) % E
    B = rng.normal(size=(d, max(k, 1)))
    Z = rng.normal(size=(n, d))
    F = Z @ B + rng.normal(size=(n, max(k, 1))) * d**0.5
    y = F.argmax(axis=1) if k else F[:, 0]
    X = Z * np.exp(rng.uniform(-0.5, 0.5, (E, d)))[domains] + rng.normal(size=(E, d))[domains]
    return X, y, domains


def child(case: str, runs: int) -> dict[str, float]:
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.model_selection import GridSearchCV, LeaveOneGroupOut

    import skdare

    warnings.simplefilter("ignore")
    n, _, E, k = CASES[case]
    X, y, domains = made(*CASES[case])
    kind = "Classifier" if k else "Regressor"
    model = LogisticRegression(max_iter=1000) if k else Ridge()
    grid = {"C": [1 / (l2 * n) for l2 in L2]} if k else {"alpha": [l2 * n for l2 in L2]}
    theirs = GridSearchCV(model, grid, cv=LeaveOneGroupOut())
    head = getattr(skdare, f"DARE{kind}CV")
    same = head(strategies=("erm",), l2=L2, cv=E)
    fit = getattr(skdare, f"ERM{kind}")(tol=1e-4)
    return {
        "fit": best(lambda: fit.fit(X, y), runs)[0],
        "sklearn": best(lambda: theirs.fit(X, y, groups=domains), runs)[0],
        "same": best(lambda: same.fit(X, y, domains=domains), runs)[0],
        "all": best(lambda: head(l2=L2).fit(X, y, domains=domains), runs)[0],
    }


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
        n, d, E, k = CASES[case]
        rows.append(
            [
                f"{case}: {n:,} × {d}, {E} domains, {f'{k} classes' if k else 'numbers'}",
                f"{ours['fit']:.2f}",
                f"{ours['same']:.2f}",
                ratio(ours["sklearn"], ours["same"]),
                f"{ours['all']:.2f}",
                ratio(other[0]["all"], ours["all"]) if other else "",
            ]
        )
    header = ["case", "a fit", "same grid", "scikit-learn", "all strategies", "other checkout"]
    print(table(header, rows))


if __name__ == "__main__":
    main()
