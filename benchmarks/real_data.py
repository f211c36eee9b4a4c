"""Real multi-domain data sets as leave-one-domain-out folds.

Rows are prepared as `skdare bench FILE --impute median` prepares them: missing values are filled,
and features are standardised only where their scales are very different. A search does both anew
for every domain that it leaves out, so folds have rows as they are stored, and a preparation for
them.

The files are not part of this repository. Point ``SKDARE_DATA`` at the folder that holds them;
without it, ``../shared/data`` beside the repository is tried. Or let the publishers' own files be
fetched, for the sets that have a fetcher: ``--data fetch``, or ``--data fetch:DIR`` to keep them in
a folder (else below ``SKDARE_DATA_HOME``), in any script that takes its sets from here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from originals import SETS as FETCHED
from originals import Originals
from skdare.bench._preparation import Preparation, PreparationStep
from skdare.checking._check import scales_differ

# A folder of prepared arrays, or the publishers' files.
Root = Path | Originals
FETCH = "fetch"
DEFAULT_ROOT = Path(__file__).resolve().parents[1] / ".." / "shared" / "data"
PACS_DOMAINS = ("art", "cartoon", "photo", "sketch")
HEART_DROPPED = ("ca", "thal", "slope")  # mostly missing outside Cleveland
PRSA_ROWS = 1500
CRIME_ROWS = 20
# One row of batch 2 lies 30,000 standard deviations out, and alone decides its batch's moments.
GAS_LIMIT = 10.0


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows of several domains, and which domains to hold out.

    Parameters
    ----------
    name : str
    X : array of shape (n, d)
        May hold NaN.
    y, domains : arrays of shape (n,)
    task : "classification" or "regression"
    held_out : sequence of domain labels, optional
        Domains to hold out in turn; default: every one.
    reserved : bool array of shape (n,), optional
        Rows never trained on (the 20 % of every PACS domain).
    standardize : bool, optional
        Whether features are standardised; default: as `skdare bench` decides.
    limit : float, optional
        Clip standardised features here.
    """

    name: str
    X: np.ndarray
    y: np.ndarray
    domains: np.ndarray
    task: str
    held_out: Sequence | None = None
    reserved: np.ndarray | None = None
    standardize: bool | None = None
    limit: float | None = None

    @property
    def preparation(self) -> Preparation:
        """What is done to the rows of a set before any head."""
        impute = "median" if np.isnan(self.X).any() else None
        standardize = scales_differ(self.X) if self.standardize is None else self.standardize
        return Preparation(impute, standardize, self.limit)

    def folds(self) -> Iterator[Fold]:
        """One fold for each held-out domain."""
        for domain in self.held_out or np.unique(self.domains):
            yield self.fold(domain)

    def fold(self, domain) -> Fold:
        """Train on the other domains."""
        test = self.domains == domain
        reserved = np.zeros(len(test), dtype=bool) if self.reserved is None else self.reserved
        rows = [
            Rows(self.X[i], self.y[i], self.domains[i])
            for i in (~test & ~reserved, test, ~test & reserved)
        ]
        step = PreparationStep(self.preparation) if self.preparation.is_fitted else None
        return Fold(self.name, str(domain), self.task, *rows, reserved[test], step)


@dataclass(frozen=True, eq=False)
class Rows:
    """Features, targets and domain labels of some rows."""

    X: np.ndarray
    y: np.ndarray
    domains: np.ndarray

    def __getitem__(self, index) -> Rows:
        return Rows(self.X[index], self.y[index], self.domains[index])


@dataclass(frozen=True, eq=False)
class Fold:
    """Training rows, and the rows of the domain held out.

    ``aside`` are reserved rows of the training domains; ``test_reserved`` marks the reserved
    rows of the held-out one; ``preparation`` is a transformer that is not fitted yet, if any.
    """

    name: str
    held_out: str
    task: str
    train: Rows
    test: Rows
    aside: Rows
    test_reserved: np.ndarray
    preparation: PreparationStep | None

    def prepared(self) -> Fold:
        """The fold with all rows prepared by its training rows."""
        if self.preparation is None:
            return self
        step = self.preparation.fit(self.train.X)
        parts = {
            name: replace(rows, X=step.transform(rows.X))
            for name, rows in (("train", self.train), ("test", self.test), ("aside", self.aside))
            if len(rows.y)
        }
        return replace(self, **parts, preparation=None)


def load_pacs(root: Root) -> list[Dataset]:
    """PACS features, one set for each held-out domain: fine-tuned on the other three."""
    sets = []
    for i, held_out in enumerate(PACS_DOMAINS):
        file = read_arrays(root, "pacs_finetuned", f"q{i}")
        reserved = np.zeros(len(file["y"]), dtype=bool)
        for j in range(len(PACS_DOMAINS)):
            reserved[file[f"va{j}"]] = True
        X = file["q"] * file["s"]
        domains = np.array(PACS_DOMAINS)[file["d"]]
        fields = {"held_out": (held_out,), "reserved": reserved, "standardize": False}
        sets.append(Dataset("pacs", X, file["y"], domains, "classification", **fields))
    return sets


def load_gas(root: Root) -> list[Dataset]:
    """Gas sensor drift: which of six gases; eight batches over three years."""
    file = read_arrays(root, "gas_drift")
    fields = {"task": "classification", "limit": GAS_LIMIT}
    return [Dataset("gas", file["X"], file["y"], file["domains"], **fields)]


def load_gas_concentration(root: Root) -> list[Dataset]:
    """Gas sensor drift: the logarithm of the concentration, which spans three decades."""
    file = read_arrays(root, "gas_drift")
    y = np.log10(file["concentration"].astype(np.float64))
    fields = {"task": "regression", "limit": GAS_LIMIT}
    return [Dataset("gas-log-ppm", file["X"], y, file["domains"], **fields)]


def load_office(root: Root) -> list[Dataset]:
    """Office-Caltech 10, SURF histograms: ten classes; four cameras and shops."""
    file = read_arrays(root, "office_caltech10_surf")
    return [Dataset("office", file["X"], file["y"], file["domains"], "classification")]


def load_heart(root: Root) -> list[Dataset]:
    """Heart disease or not, at four hospitals; cholesterol 0 stands for missing."""
    file = read_arrays(root, "heart_disease")
    names = list(file["feature_names"])
    X = file["X"].copy()
    cholesterol = X[:, names.index("chol")]
    cholesterol[cholesterol == 0] = np.nan
    X = X[:, [name not in HEART_DROPPED for name in names]]
    return [Dataset("heart", X, file["y_bin"], file["domains"], "classification")]


def load_wisdm(root: Root) -> list[Dataset]:
    """Which of six activities, from accelerometer features; 36 people."""
    file = read_arrays(root, "wisdm_har")
    return [Dataset("wisdm", file["X"], file["y"], file["domains"], "classification")]


def load_prsa(root: Root, rows: int = PRSA_ROWS) -> list[Dataset]:
    """PM2.5 from weather and other pollutants; a fixed sample of rows at twelve stations."""
    file = read_arrays(root, "prsa_beijing")
    X, y, domains = file["X"][:, 4:16], file["y"], file["domains"]
    whole = np.flatnonzero(np.isfinite(X).all(axis=1) & np.isfinite(y))
    rng = np.random.default_rng(0)
    kept = [rng.choice(whole[domains[whole] == e], rows, replace=False) for e in np.unique(domains)]
    index = np.sort(np.concatenate(kept))
    return [Dataset("prsa", X[index], y[index], domains[index], "regression")]


def load_crime(root: Root) -> list[Dataset]:
    """Violent crime per head in communities; states with at least 20 of them."""
    file = read_arrays(root, "communities_crime")
    X = file["X"][:, np.isfinite(file["X"]).all(axis=0)]
    states, counts = np.unique(file["domains"], return_counts=True)
    kept = np.isin(file["domains"], states[counts >= CRIME_ROWS])
    return [Dataset("crime", X[kept], file["y"][kept], file["domains"][kept], "regression")]


def load_plain(name: str, folder: str, task: str) -> Callable[[Root], list[Dataset]]:
    """A set that is used as it is stored."""

    def load(root: Root) -> list[Dataset]:
        file = read_arrays(root, folder)
        return [Dataset(name, file["X"], file["y"], file["domains"], task)]

    return load


LOADERS: dict[str, Callable[[Root], list[Dataset]]] = {
    "pacs": load_pacs,
    "office": load_office,
    "gas": load_gas,
    "wisdm": load_wisdm,
    "heart": load_heart,
    "gas-log-ppm": load_gas_concentration,
    "prsa": load_prsa,
    "crime": load_crime,
    "twin-gas": load_plain("twin-gas", "twin_gas", "classification"),
    "music": load_plain("music", "music_speech_noise", "classification"),
    "ravdess": load_plain("ravdess", "ravdess", "classification"),
    "har": load_plain("har", "har", "classification"),
    "vowel": load_plain("vowel", "vowel", "classification"),
    "support2": load_plain("support2", "support2", "classification"),
    "fcon": load_plain("fcon", "fcon1000", "classification"),
    "corn": load_plain("corn", "corn", "regression"),
    "turbine": load_plain("turbine", "gas_turbine", "regression"),
    "student": load_plain("student", "student", "regression"),
}


def data_root(given: str | None = None) -> Root:
    """The folder of the data: as given, else from SKDARE_DATA, else beside the repository.

    "fetch" stands for the publishers' files, and "fetch:DIR" for the same, kept in DIR.
    """
    word, _, home = (given or "").partition(":")
    if word == FETCH:
        return Originals(Path(home) if home else None)
    root = Path(given or os.environ.get("SKDARE_DATA") or DEFAULT_ROOT)
    if not root.is_dir():
        raise SystemExit(f"no data at {root}; pass --data DIR or --data fetch, or set SKDARE_DATA")
    return root


def available(root: Root) -> list[str]:
    """Names of the sets that can be had there."""
    return list(FETCHED) if isinstance(root, Originals) else list(LOADERS)


def folds(name: str, root: Root) -> list[Fold]:
    """Every leave-one-domain-out fold of a named set."""
    return [fold for dataset in LOADERS[name](root) for fold in dataset.folds()]


def standardized_folds(name: str, root: Root) -> list[Fold]:
    """The same folds for heads whose ridge is fixed, and which thus need features of one scale.

    All are filled and standardised by training rows, but for those of PACS' network.
    """
    sets = LOADERS[name](root)
    return [
        fold.prepared()
        for data in sets
        for fold in replace(data, standardize=data.standardize is not False).folds()
    ]


def read_arrays(root: Root, folder: str, stem: str | None = None) -> dict[str, np.ndarray]:
    """What is stored of a set, under the names that newer files have."""
    if isinstance(root, Originals):
        return root.arrays(folder)
    with np.load(root / folder / f"{stem or folder}.npz", allow_pickle=False) as file:
        # The older files have the singular.
        return {"domains" if key == "domain" else key: file[key] for key in file.files}
