"""Public sets of measuring devices: gas sensors, spectrometers, air stations, phones, microphones.

`fetch_gas_drift` describes in full the parameters that all fetchers have in common.
"""

from __future__ import annotations

import re
from collections import Counter
from io import BytesIO
from os import PathLike
from pathlib import Path

import numpy as np

from skdare._input_error import InputError
from skdare._validation import check_choice
from skdare.datasets._archive import archived_files
from skdare.datasets._codes import coded, numbered
from skdare.datasets._domain_data import DomainData
from skdare.datasets._matlab import matlab_variables
from skdare.datasets._natural import natural
from skdare.datasets._public_sources import fetched, origin
from skdare.datasets._text_columns import TextColumns, words

_GASES = numbered("ethanol ethylene ammonia acetaldehyde acetone toluene", first=1)
_GAS_FEATURES = 128
_TURBINE = ("AT", "AP", "AH", "AFDP", "GTEP", "TIT", "TAT", "TEY", "CDP")
_AIR_BEFORE_WIND = ("year", "month", "day", "hour", "TEMP", "PRES", "DEWP", "RAIN", "WSPM")
_AIR_AFTER_WIND = ("PM10", "SO2", "NO2", "CO", "O3")
# Clockwise from north, in steps of a sixteenth of a turn.
_WINDS = words("N NNE NE ENE E ESE SE SSE S SSW SW WSW W WNW NW NNW")
_HAR_LISTS = ("activity_labels.txt", "features.txt")
_HAR_PARTS = [f"{role}_{part}.txt" for role in ("X", "y", "subject") for part in ("train", "test")]
_SPECTROMETERS = ("m5", "mp5", "mp6")
_CORN_TARGETS = ("moisture", "oil", "protein", "starch")
_MUSIC_FEATURES = 58
_NOISES = numbered("noiseless buccaneer2 destroyerengine f16 factory2")
_ATTRIBUTE = re.compile(r'@attribute\s+"?([^"\s]+)"?', re.IGNORECASE)


def fetch_gas_drift(
    *,
    target: str = "gas",
    data_home: str | PathLike[str] | None = None,
    download_if_missing: bool = True,
) -> DomainData:
    """Gas sensors that drift: 13,910 measurements of six gases, in ten batches over three years.

    128 features of 16 sensors; a domain is a batch, ``batch1`` to ``batch10``.

    Parameters
    ----------
    target : {"gas", "concentration"}
        Which gas, or how much of it, in ppmv.
    data_home : path, optional
        The folder that holds data sets, one folder for each. Default: what the environment
        variable ``SKDARE_DATA_HOME`` says, else ``~/skdare_data``.
    download_if_missing : bool
        Whether to download the file if it is not there; if False, that is a FileNotFoundError.

    Returns
    -------
    DomainData

    Notes
    -----
    Address, not tried when this was written:
    https://archive.ics.uci.edu/static/public/270/gas+sensor+array+drift+dataset+at+different+concentrations.zip
    Its SHA-256 is known from public repositories that downloaded it.

    Licence: CC BY 4.0 at the UCI repository; its page adds that the data "can be used exclusively
    for research purposes. Commercial purposes are fully excluded."

    Please cite A. Vergara, S. Vembu, T. Ayhan, M. A. Ryan, M. L. Homer and R. Huerta (2012),
    "Chemical gas sensor drift compensation using classifier ensembles", Sensors and Actuators B
    166, 320-329, and I. Rodriguez-Lujan, J. Fonollosa, A. Vergara, M. Homer and R. Huerta (2014),
    "On the calibration of sensor arrays for pattern recognition using the minimal number of
    experiments", Chemometrics and Intelligent Laboratory Systems 130, 123-134; data:
    https://doi.org/10.24432/C5MK6M.

    Examples
    --------
    >>> from skdare.datasets import fetch_gas_drift
    >>> gas = fetch_gas_drift()  # doctest: +SKIP
    >>> gas.X.shape  # doctest: +SKIP
    (13910, 128)
    """
    check_choice("target", target, ("gas", "concentration"))
    with fetched("gas_drift", data_home, download_if_missing) as path:
        files = archived_files(path, "batch*.dat")
        X, gases, concentrations, domains = [], [], [], []
        for name in sorted(files, key=natural):
            for line in files[name].decode("ascii").splitlines():
                if not line.strip():
                    continue
                row, gas, concentration = _gas_row(name, line)
                X.append(row)
                gases.append(gas)
                concentrations.append(concentration)
                domains.append(name.removesuffix(".dat"))
        names = coded(gases, _GASES, path.name)
        return DomainData(
            np.array(X),
            names if target == "gas" else np.array(concentrations),
            np.array(domains),
            name="gas drift",
            made=origin("gas_drift"),
            target_name=target,
            domain_name="batch",
        )


def _gas_row(file: str, line: str) -> tuple[list[float], str, float]:
    """Features, gas and concentration of a line "GAS;CONCENTRATION 1:VALUE 2:VALUE …"."""
    label, *values = line.split()
    try:
        gas, concentration = label.split(";")
        numbers = dict(value.split(":") for value in values)
        row = [float(numbers[str(column)]) for column in range(1, _GAS_FEATURES + 1)]
        if len(values) != len(row):
            raise ValueError
        return row, gas, float(concentration)
    except (ValueError, KeyError):
        raise InputError(
            f"{file} has a line that is not of a gas, its concentration and {_GAS_FEATURES} "
            f"numbered values: {line[:40]!r}"
        ) from None


def fetch_gas_turbine(
    *, data_home: str | PathLike[str] | None = None, download_if_missing: bool = True
) -> DomainData:
    """A gas turbine over five years: 36,733 hours, to predict its nitrogen oxides.

    Nine features of the weather and the turbine; a domain is a year, ``2011`` to ``2015``.

    Parameters
    ----------
    data_home : path, optional
        The folder that holds data sets; see `fetch_gas_drift`.
    download_if_missing : bool

    Returns
    -------
    DomainData

    Notes
    -----
    Address, not tried when this was written:
    https://archive.ics.uci.edu/static/public/551/gas+turbine+co+and+nox+emission+data+set.zip
    Its SHA-256 is known from public repositories that downloaded it.

    Licence: CC BY 4.0.

    Please cite H. Kaya, P. Tüfekci and E. Uzun (2019), "Predicting CO and NOx emissions from gas
    turbines: novel data and a benchmark PEMS", Turkish Journal of Electrical Engineering and
    Computer Sciences 27, 4783-4796; data: https://doi.org/10.24432/C5WC95.

    Examples
    --------
    >>> from skdare.datasets import fetch_gas_turbine
    >>> turbine = fetch_gas_turbine()  # doctest: +SKIP
    """
    with fetched("gas_turbine", data_home, download_if_missing) as path:
        files = archived_files(path, "gt_*.csv")
        tables = {name: TextColumns.read(name, files[name]) for name in sorted(files)}
        years = [name.removeprefix("gt_").removesuffix(".csv") for name in tables]
        return DomainData(
            np.concatenate([table.numbers(_TURBINE) for table in tables.values()]),
            np.concatenate([table.numbers(["NOX"])[:, 0] for table in tables.values()]),
            np.repeat(years, [len(table) for table in tables.values()]),
            name="gas turbine",
            feature_names=list(_TURBINE),
            made=origin("gas_turbine"),
            target_name="NOX",
            domain_name="year",
        )


def fetch_beijing_air(
    *, data_home: str | PathLike[str] | None = None, download_if_missing: bool = True
) -> DomainData:
    """Air at twelve stations in Beijing: 412,029 hours, to predict fine dust (PM2.5).

    16 features: the time, the weather, the wind's direction as a sine and a cosine, and other
    pollutants. A domain is a station. Hours without PM2.5 are left out; other values may be NaN.

    Parameters
    ----------
    data_home : path, optional
        The folder that holds data sets; see `fetch_gas_drift`.
    download_if_missing : bool

    Returns
    -------
    DomainData

    Notes
    -----
    Address, not tried when this was written:
    https://archive.ics.uci.edu/static/public/501/beijing+multi+site+air+quality+data.zip
    Its SHA-256 is known from public repositories that downloaded it.

    Licence: CC BY 4.0.

    Please cite S. Zhang, B. Guo, A. Dong, J. He, Z. Xu and S. X. Chen (2017), "Cautionary tales on
    air-quality improvement in Beijing", Proceedings of the Royal Society A 473, 20170457; data:
    https://doi.org/10.24432/C5RK5G.

    Examples
    --------
    >>> from skdare.datasets import fetch_beijing_air
    >>> air = fetch_beijing_air()  # doctest: +SKIP
    """
    with fetched("beijing_air", data_home, download_if_missing) as path:
        files = archived_files(path, "PRSA_Data_*.csv")
        angle = {wind: 2 * np.pi * i / len(_WINDS) for i, wind in enumerate(_WINDS)}
        X, y, domains = [], [], []
        for name in sorted(files):
            table = TextColumns.read(name, files[name])
            dust = table.numbers(["PM2.5"])[:, 0]
            winds = np.array([angle.get(wind, np.nan) for wind in table.text("wd")])
            features = (
                table.numbers(_AIR_BEFORE_WIND),
                np.column_stack([np.sin(winds), np.cos(winds)]),
                table.numbers(_AIR_AFTER_WIND),
            )
            measured = np.isfinite(dust)
            X.append(np.hstack(features)[measured])
            y.append(dust[measured])
            domains.append(table.text("station")[measured])
        return DomainData(
            np.concatenate(X),
            np.concatenate(y),
            np.concatenate(domains),
            name="Beijing air",
            feature_names=[*_AIR_BEFORE_WIND, "wd_sin", "wd_cos", *_AIR_AFTER_WIND],
            made=origin("beijing_air"),
            target_name="PM2.5",
            domain_name="station",
        )


def fetch_har(
    *, data_home: str | PathLike[str] | None = None, download_if_missing: bool = True
) -> DomainData:
    """Six activities of 30 people with a phone on the waist: 10,299 windows, 561 features.

    A domain is a person, ``s01`` to ``s30``. The publisher's training and test people are put
    together again. Features whose name the publisher uses more than once have their number too.

    Parameters
    ----------
    data_home : path, optional
        The folder that holds data sets; see `fetch_gas_drift`.
    download_if_missing : bool

    Returns
    -------
    DomainData

    Notes
    -----
    Address, not tried when this was written:
    https://archive.ics.uci.edu/static/public/240/human+activity+recognition+using+smartphones.zip
    Its SHA-256 is known from public repositories that downloaded it.

    Licence: CC BY 4.0 at the UCI repository; the file's README adds "Any commercial use is
    prohibited."

    Please cite D. Anguita, A. Ghio, L. Oneto, X. Parra and J. L. Reyes-Ortiz (2013), "A public
    domain dataset for human activity recognition using smartphones", ESANN; data:
    https://doi.org/10.24432/C54S4K.

    Examples
    --------
    >>> from skdare.datasets import fetch_har
    >>> windows = fetch_har()  # doctest: +SKIP
    """
    with fetched("har", data_home, download_if_missing) as path:
        files = archived_files(path, *_HAR_LISTS, *_HAR_PARTS)
        X = [np.loadtxt(BytesIO(files[f"X_{part}.txt"]), ndmin=2) for part in ("train", "test")]
        codes, people = (
            [
                code
                for part in ("train", "test")
                for code in files[f"{role}_{part}.txt"].decode().split()
            ]
            for role in ("y", "subject")
        )
        activities, features = (
            TextColumns.read(file, files[file], ("number", "name"), delimiter=None)
            for file in _HAR_LISTS
        )
        numbers = map(float, activities.text("number"))
        activity = dict(zip(numbers, activities.text("name"), strict=True))
        return DomainData(
            np.concatenate(X),
            coded(codes, activity, path.name),
            np.array([f"s{int(person):02d}" for person in people]),
            name="activities, phone",
            feature_names=_distinct(features.text("name").tolist()),
            made=origin("har"),
            target_name="activity",
            domain_name="person",
        )


def _distinct(names: list[str]) -> list[str]:
    """Names of which those that occur several times are numbered by their place, from 1."""
    times = Counter(names)
    return [f"{name} ({i})" if times[name] > 1 else name for i, name in enumerate(names, 1)]


def fetch_wisdm(
    *, data_home: str | PathLike[str] | None = None, download_if_missing: bool = True
) -> DomainData:
    """Six activities of 36 people with a phone in a pocket: 5,418 windows, 43 features.

    Features of three axes of acceleration over ten seconds; those of peaks may be NaN. A domain is
    a person, ``user01`` to ``user36``.

    Parameters
    ----------
    data_home : path, optional
        The folder that holds data sets; see `fetch_gas_drift`.
    download_if_missing : bool

    Returns
    -------
    DomainData

    Notes
    -----
    Address, not tried when this was written:
    https://www.cis.fordham.edu/wisdm/includes/datasets/latest/WISDM_ar_latest.tar.gz
    Its SHA-256 is not known: that of your first download is recorded.

    Licence: none is named; the file's readme asks for a citation, and that it goes along when the
    data are passed on.

    Please cite J. R. Kwapisz, G. M. Weiss and S. A. Moore (2010), "Activity recognition using cell
    phone accelerometers", Fourth International Workshop on Knowledge Discovery from Sensor Data
    (at KDD-10).

    Examples
    --------
    >>> from skdare.datasets import fetch_wisdm
    >>> windows = fetch_wisdm()  # doctest: +SKIP
    """
    with fetched("wisdm", data_home, download_if_missing) as path:
        ((file, content),) = archived_files(path, "WISDM_ar_*_transformed.arff").items()
        header, _, body = content.partition(b"@data")
        names = _ATTRIBUTE.findall(header.decode("utf-8"))
        table = TextColumns.read(file, body, names)
        features = [name for name in names if name not in ("UNIQUE_ID", "user", "class")]
        return DomainData(
            table.numbers(features),
            table.text("class"),
            np.array([f"user{int(user):02d}" for user in table.text("user")]),
            name="activities, pocket",
            feature_names=features,
            made=origin("wisdm"),
            target_name="activity",
            domain_name="person",
        )


def fetch_corn(
    *,
    target: str = "protein",
    data_home: str | PathLike[str] | None = None,
    download_if_missing: bool = True,
) -> DomainData:
    """Near-infrared spectra of 80 samples of corn, each on three instruments: 240 rows, 700 bands.

    A domain is an instrument: m5, mp5, mp6. ``groups`` has the sample of each row, so that one is
    not trained on and tested at once.

    Parameters
    ----------
    target : {"protein", "moisture", "oil", "starch"}
        What to predict of a sample.
    data_home : path, optional
        The folder that holds data sets; see `fetch_gas_drift`.
    download_if_missing : bool

    Returns
    -------
    DomainData

    Notes
    -----
    Address, not tried when this was written:
    ``https://eigenvector.com/wp-content/uploads/2019/06/corn.mat_.zip``
    Its SHA-256 is known from public repositories that downloaded it.

    Licence: none is named; the data were taken at Cargill, and the publisher thanks those who let
    it distribute them.

    Please cite Eigenvector Research, "NIR of corn samples for standardization benchmarking",
    https://eigenvector.com/resources/data-sets/.

    Examples
    --------
    >>> from skdare.datasets import fetch_corn
    >>> spectra = fetch_corn()  # doctest: +SKIP
    """
    check_choice("target", target, _CORN_TARGETS)
    with fetched("corn", data_home, download_if_missing) as path:
        ((file, content),) = archived_files(path, "corn.mat").items()
        names = [*(f"{instrument}spec" for instrument in _SPECTROMETERS), "propvals"]
        *spectra, properties = matlab_variables(file, content, names)
        values = properties[:, _CORN_TARGETS.index(target)].astype(np.float64)
        samples = len(values)
        return DomainData(
            np.concatenate(spectra).astype(np.float64),
            np.tile(values, len(spectra)),
            np.repeat(_SPECTROMETERS, samples),
            name="corn",
            feature_names=[f"{1100 + 2 * band} nm" for band in range(spectra[0].shape[1])],
            made=origin("corn"),
            target_name=target,
            domain_name="instrument",
            groups=np.tile(np.arange(samples), len(spectra)),
        )


def fetch_music_speech(
    *, data_home: str | PathLike[str] | None = None, download_if_missing: bool = True
) -> DomainData:
    """Music or speech under five noises: 128 recordings, each five times, 58 features.

    A domain is a noise that was laid over the recordings: noiseless, buccaneer2, destroyerengine,
    f16, factory2. Targets are the publisher's numbers, 0 and 1. ``groups`` has the recording of
    each row.

    Parameters
    ----------
    data_home : path, optional
        The folder that holds data sets; see `fetch_gas_drift`.
    download_if_missing : bool

    Returns
    -------
    DomainData

    Notes
    -----
    Address, not tried when this was written:
    https://raw.githubusercontent.com/eddardd/WBTransport/7d0cb902d38be7a57c7b6b350e92eb41761eba15/data/MSD.npy
    Its SHA-256 is not known: that of your first download is recorded.

    Licence: none is named.

    Please cite E. F. Montesuma and F. M. N. Mboula (2021), "Wasserstein barycenter transport for
    acoustic adaptation", ICASSP, 3405-3409, and for the recordings G. Tzanetakis and P. Cook
    (2002), "Musical genre classification of audio signals", IEEE Transactions on Speech and Audio
    Processing 10, 293-302.

    Examples
    --------
    >>> from skdare.datasets import fetch_music_speech
    >>> recordings = fetch_music_speech()  # doctest: +SKIP
    """
    with fetched("music_speech", data_home, download_if_missing) as path:
        table = _music_table(path)
        *features, kinds, noises = table.T
        # Every noise has the recordings in the same order.
        recordings = np.empty(len(table), dtype=np.int64)
        for noise in np.unique(noises):
            rows = noises == noise
            recordings[rows] = np.arange(rows.sum())
        return DomainData(
            np.column_stack(features).astype(np.float64),
            kinds.astype(np.int64),
            coded(noises, _NOISES, path.name),
            name="music or speech",
            made=origin("music_speech"),
            target_name="kind",
            domain_name="noise",
            groups=recordings,
        )


def _music_table(path: Path) -> np.ndarray:
    """Features, kind and noise of every row."""
    # np.load would take a zip for several arrays.
    with path.open("rb") as file:
        table = np.lib.format.read_array(file, allow_pickle=False)
    if table.shape[1:] != (_MUSIC_FEATURES + 2,):
        raise InputError(f"an array of shape {table.shape} has not {_MUSIC_FEATURES + 2} columns")
    return table
