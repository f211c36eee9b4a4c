"""Public data sets: addresses, checksums, licences, and how each becomes rows. Needs pooch.

    python benchmarks/public.py heart_disease heart.csv

No address could be tried when this was written. Checksums are those stated by public repositories
that downloaded the same address; for the others, that of the first download is kept with the file,
and later downloads must agree.
"""

from __future__ import annotations

import fnmatch
import io
import os
import re
import sys
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from hashlib import file_digest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from skdare.data import DomainData, write
from skdare.errors import InputError, unknown
from skdare.files import whole_file

if TYPE_CHECKING:
    import pandas as pd

VARIABLE = "SKDARE_DATA_HOME"
_UCI = "https://archive.ics.uci.edu/static/public"
# Publishers put one archive into another, and none goes deeper.
_LEVELS = 2
# Four times the largest file that is needed, which bounds what a damaged archive unpacks.
_MOST_BYTES = 1 << 28

Files = Mapping[str, bytes]


@dataclass(frozen=True)
class PublicSet:
    """A set that others publish.

    Parameters
    ----------
    about : str
        What it is, in a sentence.
    domain : str
        What a domain is.
    address : str
    sha256 : str or None
    licence, cite : str
    members : tuple of str
        Patterns of the files in the archive; none for a file that is no archive.
    rows : function of (files, target)
        From their contents to a table.
    targets : tuple of str
        What can be predicted, the default first.
    """

    about: str
    domain: str
    address: str
    sha256: str | None
    licence: str
    cite: str
    members: tuple[str, ...]
    rows: Callable[[Files, str], DomainData]
    targets: tuple[str, ...]


def fetch(
    name: str,
    *,
    target: str = "",
    folder: str | Path | None = None,
    download: bool = True,
) -> DomainData:
    """A public set, downloaded once and kept.

    Parameters
    ----------
    name : str
        One of `PUBLIC_SETS`, which also has licences and what to cite.
    target : str, optional
        What to predict. Default: the first of the set's ``targets``.
    folder : path, optional
        Where sets are kept. Default: what the environment variable ``SKDARE_DATA_HOME`` says, else
        the cache folder of the user.
    download : bool
        Whether to download what is not there.

    Returns
    -------
    DomainData

    """
    if name not in PUBLIC_SETS:
        raise unknown("public set", name, list(PUBLIC_SETS))
    entry = PUBLIC_SETS[name]
    if target and target not in entry.targets:
        raise unknown(f"target of {name}", target, entry.targets)
    path = _local(name, entry, folder, download)
    target = target or entry.targets[0]
    try:
        files = _members(path, entry.members) if entry.members else {path.name: path.read_bytes()}
        data = entry.rows(files, target)
    except MemoryError:
        raise
    # A file that is damaged, or another one, can raise almost anything.
    except Exception as error:
        raise InputError(
            f"'{path}' is damaged or not the published file: {error}", "delete it, and try again"
        ) from error
    kept = _checksum_file(path)
    if not kept.exists():  # only now, that the file could be read
        with path.open("rb") as file, whole_file(kept) as checksum:
            checksum.write(f"{file_digest(file, 'sha256').hexdigest()}  {path.name}\n".encode())
    return replace(data, name=name, columns={"target": target, "domains": entry.domain})


def _checksum_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _local(name: str, entry: PublicSet, folder: str | Path | None, download: bool) -> Path:
    """The file, downloaded if need be, with its checksum right."""
    import pooch

    pooch.get_logger().setLevel("ERROR")  # it advises developers on every download
    home = Path(folder or os.environ.get(VARIABLE) or pooch.os_cache("skdare")).expanduser() / name
    path = home / entry.address.rpartition("/")[2]
    kept = _checksum_file(path)
    expected = kept.read_text().split()[0] if kept.exists() else entry.sha256
    by_hand = f"download {entry.address} by hand and put it into {home}"
    if not path.exists() and not download:
        raise InputError(f"there is no file '{path}'", by_hand)
    try:
        pooch.retrieve(
            entry.address, known_hash=f"sha256:{expected}" if expected else None,
            fname=path.name, path=home, progressbar=False,
        )  # fmt: skip
    except ValueError as error:  # of a checksum that is another one
        raise InputError(
            f"{entry.address} gave a file with another checksum than the published one",
            f"if you trust it, {by_hand}, and its SHA-256 into {kept.name} beside it",
        ) from error
    except Exception as error:  # requests has its own for each thing that can happen
        raise InputError(f"cannot download {entry.address}: {error}", by_hand) from error
    return path


def _members(path: Path, patterns: tuple[str, ...]) -> dict[str, bytes]:
    """Files of an archive, and of archives in it, whose own name fits a pattern. None is unpacked
    to disk, so a name in it is only a name."""
    files: dict[str, bytes] = {}

    def collect(content: Any, levels: int) -> None:
        for name, size, read in _entries(content):
            own = name.replace("\\", "/").rpartition("/")[2]
            wanted = any(fnmatch.fnmatchcase(own, pattern) for pattern in patterns)
            packed = levels > 1 and own.endswith((".zip", ".tar", ".tar.gz", ".tgz"))
            if size > _MOST_BYTES and (wanted or packed):
                raise InputError(f"{own} in it has {size:,} bytes")
            if wanted and not own.startswith("."):
                files.setdefault(own, read())
            elif packed:
                collect(io.BytesIO(read()), levels - 1)

    with path.open("rb") as file:
        collect(file, _LEVELS)
    for pattern in patterns:
        if not fnmatch.filter(files, pattern):
            raise InputError(f"it holds no file called {pattern}")
    return dict(sorted(files.items(), key=lambda item: _natural(item[0].lower())))


def _entries(archive: Any) -> Any:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as packed:
            for info in packed.infolist():
                yield info.filename, info.file_size, partial(packed.read, info)
        return
    archive.seek(0)
    with tarfile.open(fileobj=archive) as tape:
        for entry in tape:
            if entry.isfile():
                yield entry.name, entry.size, partial(_taped, tape, entry)


def _taped(tape: tarfile.TarFile, entry: tarfile.TarInfo) -> bytes:
    file = tape.extractfile(entry)
    assert file is not None  # it is one of the files
    return file.read()


def _natural(name: str) -> list[tuple[int, str]]:
    """Sort key by which "batch2" comes before "batch10"."""
    return [(int(p), "") if p.isdigit() else (-1, p) for p in re.split(r"(\d+)", name)]


# -- How each becomes rows -------------------------------------------------------------------------


def _words(text: str) -> list[str]:
    return text.split()


def _csv(content: bytes, names: str | None = None, **options: Any) -> pd.DataFrame:
    import pandas as pd

    columns = {"names": names.split(), "header": None} if names else {}
    options = {"na_values": ["?"], "skipinitialspace": True, **columns, **options}
    return pd.read_csv(io.BytesIO(content), **options)


def _table(X: pd.DataFrame | np.ndarray, y: Any, domains: Any, groups: Any = None) -> DomainData:
    X = X.astype(np.float64)
    return DomainData.of(X, y, domains=np.asarray(domains, dtype=str), groups=groups)


def _stacked(files: Files, read: Callable[[bytes], pd.DataFrame]) -> pd.DataFrame:
    """Tables one below the other; ``file`` says from which each row came."""
    import pandas as pd

    return pd.concat([read(content).assign(file=name) for name, content in files.items()])


_HEART = "age sex cp trestbps chol fbs restecg thalach exang oldpeak slope ca thal grade"


def _heart_disease(files: Files, target: str) -> DomainData:
    table = _stacked(files, lambda content: _csv(content, _HEART))
    y = table["grade"].astype(int)
    y = y if target == "grade" else (y > 0).astype(int)
    return _table(table[_HEART.split()[:-1]], y, table["file"].str.split(".").str[1])


_SUPPORT = _words(
    "age num.co scoma hday diabetes dementia meanbp wblc hrt resp temp pafi alb bili crea sod "
    "ph glucose bun urine adlsc edu"
)


def _support2(files: Files, target: str) -> DomainData:
    (table,) = (_csv(content) for content in files.values())
    X = table[_SUPPORT].assign(
        male=table["sex"] == "male",
        ca_yes=table["ca"] == "yes",
        ca_metastatic=table["ca"] == "metastatic",
    )
    died = (table["death"] == 1) & (table["d.time"] <= 180)
    return _table(X, died.astype(int), table["dzgroup"])


# By these the publisher finds pupils of one file in the other.
_PUPIL = _words(
    "school sex age address famsize Pstatus Medu Fedu Mjob Fjob reason nursery internet"
)


def _student_performance(files: Files, target: str) -> DomainData:
    import pandas as pd

    table = _stacked(files, lambda content: _csv(content, sep=";"))
    pupils = pd.factorize(table[_PUPIL].astype(str).agg(" ".join, axis=1))[0]
    domains = table["school"] + "_" + table["file"].str[8:11]
    X = pd.get_dummies(table.drop(columns=["school", "G1", "G2", "G3", "file"]), drop_first=True)
    return _table(X, table["G3"].astype(float), domains, pupils)


def _communities_crime(files: Files, target: str) -> DomainData:
    (table,) = (_csv(content, header=None) for content in files.values())
    # State, county, community, its name and a fold come before the features; the target is last.
    X = table.iloc[:, 5:-1]
    X.columns = [f"feature {j}" for j in range(X.shape[1])]
    return _table(X, table.iloc[:, -1].astype(float), "state " + table[0].astype(str))


_VOWELS = _words("hid hId hEd hAd hYd had hOd hod hUd hud hed")
_SPEAKERS = _words("Andrew Bill David Mark Jo Kate Penny Rose Mike Nick Rich Tim Sarah Sue Wendy")


def _vowels(files: Files, target: str) -> DomainData:
    (content,) = files.values()
    part = np.loadtxt(io.BytesIO(content))
    speakers, vowels = (np.array(names) for names in (_SPEAKERS, _VOWELS))
    return _table(part[:, 3:13], vowels[part[:, 13].astype(int)], speakers[part[:, 1].astype(int)])


_GASES = _words("ethanol ethylene ammonia acetaldehyde acetone toluene")


def _gas_drift(files: Files, target: str) -> DomainData:
    X, labels, domains = [], [], []
    for name, content in files.items():
        for line in content.decode("ascii").splitlines():  # GAS;CONCENTRATION 1:VALUE 2:VALUE …
            label, *values = line.split()
            X.append([float(value.split(":")[1]) for value in values])
            labels.append([float(number) for number in label.split(";")])
            domains.append(name.removesuffix(".dat"))
    gas, concentration = np.array(labels).T
    y = np.array(_GASES)[gas.astype(int) - 1] if target == "gas" else concentration
    return _table(np.array(X), y, domains)


def _gas_turbine(files: Files, target: str) -> DomainData:
    table = _stacked(files, _csv)
    return _table(table.drop(columns=["CO", "NOX", "file"]), table["NOX"], table["file"].str[3:7])


_WINDS = _words("N NNE NE ENE E ESE SE SSE S SSW SW WSW W WNW NW NNW")


def _beijing_air(files: Files, target: str) -> DomainData:
    table = _stacked(files, _csv).dropna(subset="PM2.5")
    turns = {wind: 2 * np.pi * i / len(_WINDS) for i, wind in enumerate(_WINDS)}
    angle = table["wd"].map(turns).astype(float)
    X = table.drop(columns=["No", "PM2.5", "wd", "station", "file"])
    X = X.assign(wd_sin=np.sin(angle), wd_cos=np.cos(angle))
    return _table(X, table["PM2.5"], table["station"])


def _har(files: Files, target: str) -> DomainData:
    def both(kind: str) -> np.ndarray:
        parts = (files[f"{kind}_{part}.txt"] for part in ("train", "test"))
        return np.concatenate([np.loadtxt(io.BytesIO(part), ndmin=2) for part in parts])

    activities = _csv(files["activity_labels.txt"], "number name", sep=r"\s+")
    names = dict(zip(activities["number"], activities["name"], strict=True))
    people = [f"s{person:02.0f}" for person in both("subject").ravel()]
    return _table(both("X"), [names[code] for code in both("y").ravel()], people)


def _wisdm(files: Files, target: str) -> DomainData:
    (content,) = files.values()
    header, _, body = content.partition(b"@data")
    names = re.findall(r'@attribute\s+"?([^"\s]+)"?', header.decode(), re.IGNORECASE)
    table = _csv(body.strip(), " ".join(names))
    people = [f"user{person:02d}" for person in table["user"].astype(int)]
    return _table(table.drop(columns=["UNIQUE_ID", "user", "class"]), table["class"], people)


_CORN = ("protein", "moisture", "oil", "starch")


def _corn(files: Files, target: str) -> DomainData:
    from scipy.io import loadmat

    (content,) = files.values()
    variables = loadmat(io.BytesIO(content))
    instruments = ("m5", "mp5", "mp6")
    *spectra, values = (
        variables[name]["data"][0, 0] if variables[name].dtype.names else variables[name]
        for name in (*(f"{instrument}spec" for instrument in instruments), "propvals")
    )
    y = values[:, ("moisture", "oil", "protein", "starch").index(target)].astype(float)
    n = len(y)
    return _table(
        np.concatenate(spectra), np.tile(y, 3), np.repeat(instruments, n), np.tile(np.arange(n), 3)
    )


_NOISES = _words("noiseless buccaneer2 destroyerengine f16 factory2")


def _music_speech(files: Files, target: str) -> DomainData:
    (content,) = files.values()
    table = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    noises = np.array(_NOISES)[table[:, -1].astype(int)]
    recordings = np.empty(len(table), dtype=np.int64)
    for noise in _NOISES:  # each has the recordings in the same order
        recordings[noises == noise] = np.arange((noises == noise).sum())
    return _table(table[:, :-2], table[:, -2].astype(int), noises, recordings)


def _office_caltech(files: Files, target: str) -> DomainData:
    from scipy.io import loadmat

    X, y, domains = [], [], []
    for name, content in files.items():
        part = loadmat(io.BytesIO(content), variable_names=["fts", "labels"])
        X.append(part["fts"])
        y.append(part["labels"].ravel().astype(int))
        domains += [name.removesuffix("_SURF_L10.mat").lower().removesuffix("10")] * len(y[-1])
    return _table(np.concatenate(X), np.concatenate(y), domains)


_CC = "CC BY 4.0"
_NONE = "none is named"
PUBLIC_SETS: dict[str, PublicSet] = {
    "beijing_air": PublicSet(
        "Air in Beijing over four years: 412,029 hours, 16 features, fine dust.",
        "a station",
        f"{_UCI}/501/beijing+multi+site+air+quality+data.zip",
        "b04da438b2f331ac0ffd45aebdfec0d20d2367feb5f6948c4b1f7ce1191e33c4",
        _CC,
        "Zhang et al. (2017), Proc. R. Soc. A 473, 20170457; https://doi.org/10.24432/C5RK5G",
        ("PRSA_Data_*.csv",), _beijing_air, ("PM2.5",),
    ),
    "communities_crime": PublicSet(
        "Communities of the USA: 1,994 of them, 122 features, violent crime per head.",
        "a state",
        f"{_UCI}/183/communities+and+crime.zip",
        None,
        _CC,
        "Redmond and Baveja (2002), EJOR 141, 660-678; https://doi.org/10.24432/C53W3X",
        ("communities.data",), _communities_crime, ("ViolentCrimesPerPop",),
    ),
    "corn": PublicSet(
        "Near-infrared spectra of 80 samples of corn on three instruments, 700 bands.",
        "an instrument",
        "https://eigenvector.com/wp-content/uploads/2019/06/corn.mat_.zip",
        "8a2d1a03648b6ad334caaafa5d8377bf945ba1477a5082c4963d705d07cca795",
        _NONE,
        "Eigenvector Research, https://eigenvector.com/resources/data-sets/",
        ("corn.mat",), _corn, _CORN,
    ),
    "gas_drift": PublicSet(
        "Gas sensors that drift: 13,910 measurements, 128 features, six gases.",
        "a batch of some months",
        f"{_UCI}/270/gas+sensor+array+drift+dataset+at+different+concentrations.zip",
        "98fe3a30981a222dd4518fbcc3dddd45d5c0ce9b03ef6dc6fe5cf7a04cfbff5e",
        f"{_CC}; its page adds that commercial use is excluded",
        "Vergara et al. (2012), Sensors and Actuators B 166, 320-329; "
        "https://doi.org/10.24432/C5MK6M",
        ("batch*.dat",), _gas_drift, ("gas", "concentration"),
    ),
    "gas_turbine": PublicSet(
        "A gas turbine over five years: 36,733 hours, nine features, nitrogen oxides.",
        "a year",
        f"{_UCI}/551/gas+turbine+co+and+nox+emission+data+set.zip",
        "55fdb1acc25f05bd9c77aac285c424e9154ffb0dbf1bbadb56b69a1142231295",
        _CC,
        "Kaya, Tüfekci and Uzun (2019), Turk. J. Elec. Eng. & Comp. Sci. 27, 4783-4796",
        ("gt_*.csv",), _gas_turbine, ("NOX",),
    ),
    "har": PublicSet(
        "Six activities with a phone on the waist: 10,299 windows, 561 features.",
        "a person",
        f"{_UCI}/240/human+activity+recognition+using+smartphones.zip",
        "c00b803081a5c797cd5e4b83700a9810b38d53d9d84e01917e090e1fdbc81031",
        f"{_CC}; its README prohibits commercial use",
        "Anguita et al. (2013), ESANN; https://doi.org/10.24432/C54S4K",
        ("activity_labels.txt", *(f"{kind}_{part}.txt" for kind in ("X", "y", "subject")
                                  for part in ("train", "test"))), _har, ("activity",),
    ),
    "heart_disease": PublicSet(
        "Heart disease: 920 patients, 13 features, many of them missing.",
        "a hospital",
        f"{_UCI}/45/heart+disease.zip",
        "b17cd273da9ce1caa4710fce80227ea454d4dbf9fcbc8e6a9121672651563adc",
        _CC,
        "Detrano et al. (1989), Am. J. Cardiology 64, 304-310; https://doi.org/10.24432/C52P4X",
        ("processed.*.data",), _heart_disease, ("disease", "grade"),
    ),
    "music_speech": PublicSet(
        "Music or speech: 128 recordings, each under five noises, 58 features.",
        "a noise",
        "https://raw.githubusercontent.com/eddardd/WBTransport/"
        "7d0cb902d38be7a57c7b6b350e92eb41761eba15/data/MSD.npy",
        None,
        _NONE,
        "Montesuma and Mboula (2021), ICASSP, 3405-3409; Tzanetakis and Cook (2002), IEEE TSAP 10",
        (), _music_speech, ("kind",),
    ),
    "office_caltech": PublicSet(
        "Ten kinds of objects in images: 2,533 histograms of 800 SURF words.",
        "a collection of images",
        "http://www-scf.usc.edu/~boqinggo/domain_adaptation/GFK_v1.zip",
        None,
        _NONE,
        "Gong et al. (2012), CVPR; Saenko et al. (2010), ECCV; Griffin et al. (2007)",
        ("*_SURF_L10.mat",), _office_caltech, ("object",),
    ),
    "student_performance": PublicSet(
        "Pupils of two schools in two subjects: 1,044 final grades.",
        "a school and subject",
        f"{_UCI}/320/student+performance.zip",
        None,
        _CC,
        "Cortez and Silva (2008), FUBUTEC, 5-12; https://doi.org/10.24432/C5TG7T",
        ("student-mat.csv", "student-por.csv"), _student_performance, ("G3",),
    ),
    "support2": PublicSet(
        "Seriously ill patients: 9,105 of them, 25 features, death within 180 days.",
        "a group by disease",
        f"{_UCI}/880/data.csv",
        "9da794bbd5c3a6a816e677cc17535e58c122d9ef4cbefd404489330a9f9cd2de",
        f"{_CC} on the beta page of the UCI repository",
        "Knaus et al. (1995), Annals of Internal Medicine 122, 191-203; "
        "https://doi.org/10.3886/ICPSR02957.v2",
        (), _support2, ("death within 180 days",),
    ),
    "vowels": PublicSet(
        "Eleven vowels: 990 utterances, ten features.",
        "a speaker",
        "https://archive.ics.uci.edu/ml/machine-learning-databases/undocumented/"
        "connectionist-bench/vowel/vowel-context.data",
        None,
        "none was found stated for this file; ask the UCI repository",
        "Deterding, Niranjan and Robinson, https://doi.org/10.24432/C58P4S; Turney (1993)",
        (), _vowels, ("vowel",),
    ),
    "wisdm": PublicSet(
        "Six activities with a phone in a pocket: 5,418 windows, 43 features.",
        "a person",
        "https://www.cis.fordham.edu/wisdm/includes/datasets/latest/WISDM_ar_latest.tar.gz",
        None,
        f"{_NONE}; its readme asks for a citation",
        "Kwapisz, Weiss and Moore (2010), SensorKDD",
        ("WISDM_ar_*_transformed.arff",), _wisdm, ("activity",),
    ),
}  # fmt: skip


def main() -> None:
    name, out = sys.argv[1:]
    write(fetch(name), out)


if __name__ == "__main__":
    main()
