"""The one table behind every claim: heads on real data sets, each domain held out in turn.

    python benchmarks/evidence.py --data DIR --out evidence

DIR has the folders of `SETS` (see the docstring of `load`). Each set is compared twice: with its
features as they come, and standardised by all rows first. At most ten domains are held out, evenly
spread over the names, with at most 500 rows each; domains that share recordings, specimens or
persons are held out without them. Finished trials are kept, so that a stopped run goes on. The
result is OUT/evidence.csv (one row a set, head and form of the features) and OUT/evidence.md.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from rivals import rivals
from skdare import compare

OURS = ("erm", "by-hand", "dare-adapted", "dare-cv", "dare-cv-adapted")
MOST_DOMAINS = 10
MOST_ROWS = 500
POINT = 0.01


@dataclass(frozen=True, eq=False)
class Table:
    X: np.ndarray
    y: np.ndarray
    domains: np.ndarray
    groups: np.ndarray | None = None


# Folder, target, column of groups; a set with numbers as targets is a regression.
CLASSES = {
    "vowel": ("vowel", "y", None),
    "ravdess": ("ravdess", "y", None),
    "heart": ("heart_disease", "y_bin", None),
    "twin-gas": ("twin_gas", "y", "unit"),
    "gas": ("gas_drift", "y", None),
    "har": ("har", "y", None),
    "wisdm": ("wisdm_har", "y", None),
    "fcon": ("fcon1000", "y", None),
    "music": ("music_speech_noise", "y", "unit"),
    "office": ("office_caltech10_surf", "y", None),
    "support2": ("support2", "y", None),
}
NUMBERS = {
    "corn": ("corn", "y", "unit"),
    "student": ("student", "y", "unit"),
    "gas-log-ppm": ("gas_drift", "concentration", None),
    "crime": ("communities_crime", "y", None),
    "turbine": ("gas_turbine", "y", None),
    "prsa": ("prsa_beijing", "y", None),
}


def load(root: Path, name: str) -> Table:
    """Rows as they are stored: X, y and domains (or domain) of ``FOLDER/FOLDER.npz``."""
    folder, target, unit = (CLASSES | NUMBERS)[name]
    with np.load(root / folder / f"{folder}.npz", allow_pickle=False) as file:
        stored = {key: file[key] for key in file.files}
    X = np.asarray(stored["X"], dtype=np.float64)
    y = stored[target]
    domains = stored.get("domains", stored.get("domain")).astype(str)
    groups = stored[unit] if unit else None
    if name == "heart":
        # Zero is how a missing cholesterol was written; three columns exist in one hospital only.
        names = [str(feature) for feature in stored["feature_names"]]
        column = names.index("chol")
        X[X[:, column] == 0, column] = np.nan
        X = X[:, [feature not in ("ca", "thal", "slope") for feature in names]]
    if name == "prsa":
        X = X[:, 4:16]  # weather and other pollutants
    if name == "crime":
        X = X[:, np.isfinite(X).all(axis=0)]
    if name == "gas-log-ppm":
        y = np.log10(y.astype(np.float64))
    if name in NUMBERS:
        y = y.astype(np.float64) + 0.5  # grades, which are whole, would be taken for classes
        whole = np.isfinite(y)
        X, y, domains = X[whole], y[whole], domains[whole]
        groups = groups[whole] if groups is not None else None
    return sampled(Table(X, y, domains, groups))


def sampled(table: Table) -> Table:
    """Domains of 20 rows or more, and at most MOST_ROWS of each."""
    rng = np.random.default_rng(0)
    rows = []
    for domain in np.unique(table.domains):
        inside = np.flatnonzero(table.domains == domain)
        if len(inside) >= 20 and len(np.unique(table.y[inside])) > 1:
            rows.append(rng.permutation(inside)[:MOST_ROWS])
    kept = np.sort(np.concatenate(rows))
    groups = None if table.groups is None else table.groups[kept]
    return Table(table.X[kept], table.y[kept], table.domains[kept], groups)


def standardized(X: np.ndarray) -> np.ndarray:
    spread = np.nanstd(X, axis=0)
    return (X - np.nanmean(X, axis=0)) / np.where(spread > 0, spread, 1.0)


def trials(table: Table) -> list[tuple[str, Table]]:
    """Held-out domains, each with the rows that are scored and trained on.

    Where every domain has the same units (recordings, specimens, persons), a held-out domain is
    scored on one half of them after training on the other, and the other way round.
    """
    names = np.unique(table.domains)
    spread = np.linspace(0, len(names) - 1, min(len(names), MOST_DOMAINS)).round().astype(int)
    groups = table.groups
    if groups is None:
        return [(name, table) for name in names[spread]]
    shared = [np.isin(groups, groups[table.domains == name]).mean() for name in names]
    if min(shared) < 0.5:
        return [(name, table) for name in names[spread]]
    units = np.random.default_rng(0).permutation(np.unique(groups))
    found = []
    for name in names[spread]:
        for half in (units[::2], units[1::2]):
            rows = np.isin(groups, half) == (table.domains == name)
            found.append((name, Table(table.X[rows], table.y[rows], table.domains[rows])))
    return found


def scores(root: Path, out: Path, name: str, form: str) -> pd.Series:
    """Mean score of every head over the held-out domains."""
    whole = load(root, name)
    if form == "standardised":
        whole = replace(whole, X=standardized(whole.X))
    others = rivals("regression" if name in NUMBERS else "classification")
    rows = []
    for number, (domain, table) in enumerate(trials(whole)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            summary = compare(
                table.X,
                table.y,
                domains=table.domains,
                groups=table.groups,
                heads=[*OURS, *others],
                held_out=[domain],
                out=out / f"{name}-{form.replace(' ', '-')}" / str(number),
            )
        rows.append(summary.scores)
    means = pd.concat(rows).groupby(level=0).mean().mean()
    means = means.rename(lambda head: head.replace("Regressor", ""))
    kept = (*OURS, "Sklearn")
    return means[[head for head in means.index if head in kept or head.endswith("-adapted")]]


def headline(table: pd.DataFrame) -> pd.DataFrame:
    """By head: average, median and range over sets of what it gains over ERM, in points."""
    gains = table.sub(table["erm"], axis=0).drop(columns="erm") * 100
    over = table.sub(table["by-hand"], axis=0).drop(columns="erm") * 100
    return pd.DataFrame(
        {
            "average": gains.mean(),
            "median": gains.median(),
            "least": gains.min(),
            "most": gains.max(),
            "sets gained": (gains >= 100 * POINT).sum(),
            "sets lost": (gains <= -100 * POINT).sum(),
            "over by hand": over.mean(),
            "least over by hand": over.min(),
        }
    )


def markdown(frame: pd.DataFrame, index: str) -> list[str]:
    lines = [f"| {index} | " + " | ".join(frame.columns) + " |"]
    lines.append("|---|" + "---:|" * len(frame.columns))
    for name, row in frame.iterrows():
        cells = [
            ""
            if np.isnan(v)
            else f"{v:.0f}"
            if float(v) == int(v) and "sets" in c
            else f"{v:+.1f}"
            if index == "head"
            else f"{100 * v:.1f}"
            for c, v in row.items()
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("evidence"))
    parser.add_argument("--sets", default="", help="some sets, with commas between them")
    options = parser.parse_args()
    wanted = [name for name in options.sets.split(",") if name]
    text = ["<!-- made by benchmarks/evidence.py -->", ""]
    rows = []
    for title, sets in (("Classification, accuracy", CLASSES), ("Regression, R²", NUMBERS)):
        for form in ("standardised", "as they come"):
            found = {}
            for name in wanted or sets:
                if name in sets:
                    found[name] = scores(options.data, options.out, name, form)
                    print(name, form, found[name].round(3).to_dict(), flush=True)
            if not found:
                continue
            table = pd.DataFrame(found).T
            rows.append(table.assign(task=title, features=form))
            text += [f"## {title}; features {form}", "", *markdown(table, "set"), ""]
            text += ["Points gained over ERM:", "", *markdown(headline(table), "head"), ""]
    pd.concat(rows).rename_axis("set").to_csv(options.out / "evidence.csv")
    (options.out / "evidence.md").write_text("\n".join(text), encoding="utf-8")


if __name__ == "__main__":
    main()
