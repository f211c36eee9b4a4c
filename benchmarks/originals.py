"""The sets of the tables as they are published: fetched, and brought to the form of the arrays.

`skdare.datasets.fetch_…` reads the publishers' files. What the tables do to them beyond that is
here: two batches of gas measurements left out, missing values of SUPPORT2 filled. The windows of
``har`` have the publisher's 561 features, where the tables have 177 others of the same recordings.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from skdare import datasets
from skdare.datasets import DomainData

# As in real_data.LOADERS; the others have no publisher's file with their features.
SETS = (
    *("office", "gas", "wisdm", "heart", "gas-log-ppm", "prsa", "crime"),
    *("music", "har", "vowel", "support2", "corn", "turbine", "student"),
)
# They were not to be had when the tables were made.
GAS_LEFT_OUT = ("batch7", "batch10")
# What the data's description says to fill in where a value was not measured; else the median.
SUPPORT2_NORMAL = {
    "alb": 3.5,
    "pafi": 333.3,
    "bili": 1.01,
    "crea": 1.01,
    "bun": 6.51,
    "wblc": 9.0,
    "urine": 2502.0,
}
SUPPORT2_LOGARITHMS = ("wblc", "pafi", "bili", "crea", "glucose", "bun", "urine")


class Originals:
    """Arrays of public sets, under the names of the folders that hold the prepared ones.

    Parameters
    ----------
    data_home : Path, optional
        Where the publishers' files are kept; default: as `skdare.datasets` has it.
    """

    def __init__(self, data_home: Path | None = None) -> None:
        self.data_home = data_home

    def arrays(self, folder: str) -> dict[str, np.ndarray]:
        """X, y, domains and what else a set has."""
        if folder not in READERS:
            raise SystemExit(f"{folder} cannot be fetched; --sets can name {', '.join(SETS)}")
        return READERS[folder](self.data_home)


def _plain(fetch: Callable[..., DomainData]) -> Callable[[Path | None], dict[str, np.ndarray]]:
    def read(data_home: Path | None) -> dict[str, np.ndarray]:
        return _arrays(fetch(data_home=data_home))

    return read


def _arrays(data: DomainData) -> dict[str, np.ndarray]:
    arrays = {"X": data.X.astype(np.float32), "y": data.y, "domains": data.domains}
    if data.feature_names is not None:
        arrays["feature_names"] = np.array(data.feature_names)
    return arrays


def _gas(data_home: Path | None) -> dict[str, np.ndarray]:
    gases = _arrays(datasets.fetch_gas_drift(data_home=data_home))
    amounts = datasets.fetch_gas_drift(target="concentration", data_home=data_home).y
    kept = ~np.isin(gases["domains"], GAS_LEFT_OUT)
    return {name: values[kept] for name, values in (gases | {"concentration": amounts}).items()}


def _heart(data_home: Path | None) -> dict[str, np.ndarray]:
    arrays = _arrays(datasets.fetch_heart_disease(data_home=data_home))
    return arrays | {"y_bin": arrays["y"]}


def _support2(data_home: Path | None) -> dict[str, np.ndarray]:
    data = datasets.fetch_support2(data_home=data_home)
    X = data.X.copy()
    for j, name in enumerate(data.feature_names or ()):
        column = X[:, j]
        column[np.isnan(column)] = SUPPORT2_NORMAL.get(name) or np.nanmedian(column)
        if name in SUPPORT2_LOGARITHMS:
            X[:, j] = np.log1p(column)
    return _arrays(data) | {"X": X.astype(np.float32)}


READERS: dict[str, Callable[[Path | None], dict[str, np.ndarray]]] = {
    "gas_drift": _gas,
    "heart_disease": _heart,
    "support2": _support2,
    "office_caltech10_surf": _plain(datasets.fetch_office_caltech),
    "wisdm_har": _plain(datasets.fetch_wisdm),
    "prsa_beijing": _plain(datasets.fetch_beijing_air),
    "communities_crime": _plain(datasets.fetch_communities_crime),
    "corn": _plain(datasets.fetch_corn),
    "music_speech_noise": _plain(datasets.fetch_music_speech),
    "har": _plain(datasets.fetch_har),
    "vowel": _plain(datasets.fetch_vowels),
    "gas_turbine": _plain(datasets.fetch_gas_turbine),
    "student": _plain(datasets.fetch_student_performance),
}
