"""Where public data sets are published, and what their files' checksums are.

No address could be tried when this was written. Checksums are those that public repositories state
which downloaded the same address; a file without one was stated by nobody that was found, and its
first download that can be read sets it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from os import PathLike
from pathlib import Path

from skdare.datasets._remote_file import RemoteFile, data_folder

_UCI = "https://archive.ics.uci.edu/static/public"

SOURCES: dict[str, RemoteFile] = {
    "beijing_air": RemoteFile(
        f"{_UCI}/501/beijing+multi+site+air+quality+data.zip",
        "b04da438b2f331ac0ffd45aebdfec0d20d2367feb5f6948c4b1f7ce1191e33c4",
    ),
    "communities_crime": RemoteFile(f"{_UCI}/183/communities+and+crime.zip"),
    "corn": RemoteFile(
        "https://eigenvector.com/wp-content/uploads/2019/06/corn.mat_.zip",
        "8a2d1a03648b6ad334caaafa5d8377bf945ba1477a5082c4963d705d07cca795",
    ),
    "gas_drift": RemoteFile(
        f"{_UCI}/270/gas+sensor+array+drift+dataset+at+different+concentrations.zip",
        "98fe3a30981a222dd4518fbcc3dddd45d5c0ce9b03ef6dc6fe5cf7a04cfbff5e",
    ),
    "gas_turbine": RemoteFile(
        f"{_UCI}/551/gas+turbine+co+and+nox+emission+data+set.zip",
        "55fdb1acc25f05bd9c77aac285c424e9154ffb0dbf1bbadb56b69a1142231295",
    ),
    "har": RemoteFile(
        f"{_UCI}/240/human+activity+recognition+using+smartphones.zip",
        "c00b803081a5c797cd5e4b83700a9810b38d53d9d84e01917e090e1fdbc81031",
    ),
    "heart_disease": RemoteFile(
        f"{_UCI}/45/heart+disease.zip",
        "b17cd273da9ce1caa4710fce80227ea454d4dbf9fcbc8e6a9121672751563adc",
    ),
    "music_speech": RemoteFile(
        "https://raw.githubusercontent.com/eddardd/WBTransport/"
        "7d0cb902d38be7a57c7b6b350e92eb41761eba15/data/MSD.npy",
    ),
    "office_caltech": RemoteFile(
        "http://www-scf.usc.edu/~boqinggo/domain_adaptation/GFK_v1.zip",
    ),
    "student_performance": RemoteFile(f"{_UCI}/320/student+performance.zip"),
    "support2": RemoteFile(
        f"{_UCI}/880/data.csv",
        "9da794bbd5c3a6a816e677cc17535e58c122d9ef4cbefd404489330a9f9cd2de",
    ),
    "vowels": RemoteFile(
        "https://archive.ics.uci.edu/ml/machine-learning-databases/undocumented/"
        "connectionist-bench/vowel/vowel-context.data",
    ),
    "wisdm": RemoteFile(
        "https://www.cis.fordham.edu/wisdm/includes/datasets/latest/WISDM_ar_latest.tar.gz",
    ),
}


def fetched(
    name: str, data_home: str | PathLike[str] | None, download_if_missing: bool
) -> AbstractContextManager[Path]:
    """The file of a data set, in the folder called like the set, downloaded if need be.

    It is read within the context, which turns any failure into an InputError about the file.
    """
    folder = data_folder(data_home) / name
    return SOURCES[name].local(folder, download_if_missing=download_if_missing)


def origin(name: str) -> dict[str, str]:
    """What a table says of where it comes from."""
    return {"source": SOURCES[name].address}
