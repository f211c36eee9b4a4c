"""Public data sets are fetched once, checked, and read from the files as they are published."""

from __future__ import annotations

import hashlib
import inspect
import io
import re
import threading
import tracemalloc
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from skdare import datasets
from skdare._input_error import InputError
from skdare.datasets import (
    fetch_beijing_air,
    fetch_communities_crime,
    fetch_corn,
    fetch_gas_drift,
    fetch_gas_turbine,
    fetch_har,
    fetch_heart_disease,
    fetch_music_speech,
    fetch_office_caltech,
    fetch_student_performance,
    fetch_support2,
    fetch_vowels,
    fetch_wisdm,
)
from skdare.datasets._public_sources import SOURCES
from small_originals import ORIGINALS, STUDENTS, gas_line, put_by_hand, zipped

FETCHERS = {
    name.removeprefix("fetch_"): name for name in dir(datasets) if name.startswith("fetch_")
}
# Rows, features, domains in order of the rows.
EXPECTED = {
    "beijing_air": (4, 16, ["Aotizhongxin", "Tiantan"]),
    "communities_crime": (2, 122, ["CO", "WY"]),
    "corn": (6, 700, ["m5", "mp5", "mp6"]),
    "gas_drift": (4, 128, ["batch1", "batch2", "batch10"]),
    "gas_turbine": (4, 9, ["2011", "2012"]),
    "har": (3, 3, ["s01", "s30", "s02"]),
    "heart_disease": (6, 13, ["cleveland", "hungarian", "va"]),
    "music_speech": (10, 58, ["noiseless", "buccaneer2", "destroyerengine", "f16", "factory2"]),
    "office_caltech": (8, 800, ["amazon", "caltech", "dslr", "webcam"]),
    "student_performance": (3, 38, ["GP_mat", "MS_mat", "GP_por"]),
    "support2": (3, 25, ["Lung Cancer", "Cirrhosis", "CHF"]),
    "vowels": (3, 10, ["Andrew", "David", "Wendy"]),
    "wisdm": (3, 2, ["user33", "user17", "user06"]),
}


@dataclass
class Publisher:
    """A server of files, which counts what it is asked for."""

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    cut_short: bool = False
    requests: list[str] = field(default_factory=list)

    def handler(self) -> type[BaseHTTPRequestHandler]:
        publisher = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                publisher.requests.append(self.path)
                content = publisher.files.get(self.path)
                if content is None:
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content[: len(content) // 2] if publisher.cut_short else content)

            def log_message(self, *_: object) -> None:
                """Keep quiet."""

        return Handler


@pytest.fixture
def publisher(monkeypatch) -> Iterator[Publisher]:
    """All public sets in miniature, on a server of this machine; no checksum is known."""
    publisher = Publisher()
    server = ThreadingHTTPServer(("127.0.0.1", 0), publisher.handler())
    publisher.address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("SKDARE_DATA_HOME", raising=False)
    for name, source in SOURCES.items():
        path = f"/{name}/{source.name}"
        publisher.files[path] = ORIGINALS[name]
        local = replace(source, address=publisher.address + path, sha256=None)
        monkeypatch.setitem(SOURCES, name, local)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield publisher
    server.shutdown()
    thread.join()
    server.server_close()


def fetch(name: str, home: Path, **options):
    """What a fetcher gives."""
    return getattr(datasets, FETCHERS[name])(data_home=home, **options)


def pin(monkeypatch, name: str, sha256: str) -> None:
    """Let a checksum be known."""
    monkeypatch.setitem(SOURCES, name, replace(SOURCES[name], sha256=sha256))


def left(home: Path) -> list[str]:
    """Files below a folder."""
    return sorted(str(path.relative_to(home)) for path in home.rglob("*") if path.is_file())


def unzipped(content: bytes) -> dict[str, bytes]:
    """Files of a zip by name."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def nested(content: bytes, levels: int) -> bytes:
    """A zip in a zip in a zip."""
    for _ in range(levels):
        content = zipped({"inner.zip": content})
    return content


def flagged(archive: bytes, local: int, central: int, value: int) -> bytes:
    """A zip of one file, with a byte of its two headers changed."""
    changed = bytearray(archive)
    changed[changed.index(b"PK\x03\x04") + local] = value
    changed[changed.index(b"PK\x01\x02") + central] = value
    return bytes(changed)


def vowel_line(*, speaker: object = 0, vowel: object = 0) -> bytes:
    """One utterance."""
    return f"0 {speaker} 0 {'0.1 ' * 10} {vowel}\n".encode()


def crime_line(state: int) -> str:
    """One community."""
    return ",".join([str(state), "?", "?", "city", "1", *["0.1"] * 123])


def saved(array: np.ndarray) -> bytes:
    """The .npy file of an array."""
    content = io.BytesIO()
    np.save(content, array)
    return content.getvalue()


def har_with(file: str, text: str) -> bytes:
    """The windows of `fetch_har` with one file replaced."""
    files = unzipped(unzipped(ORIGINALS["har"])["UCI HAR Dataset.zip"])
    (name,) = [name for name in files if name.endswith(f"/{file}")]
    return zipped(files | {name: text.encode()})


def test_every_source_has_a_fetcher_and_every_fetcher_a_source():
    assert FETCHERS.keys() == SOURCES.keys() == EXPECTED.keys() == ORIGINALS.keys()


@pytest.mark.parametrize("name", SOURCES)
def test_a_set_has_the_rows_and_domains_of_the_published_file(name, publisher, tmp_path):
    rows, features, domains = EXPECTED[name]
    data = fetch(name, tmp_path)
    assert data.X.shape == (rows, features)
    assert data.X.dtype == np.float64
    assert data.y.shape == data.domains.shape == (rows,)
    assert list(dict.fromkeys(data.domains.tolist())) == domains
    assert data.feature_names is None or len(data.feature_names) == features
    assert data.name
    assert data.target_name
    assert data.domain_name
    assert data.made == {"source": SOURCES[name].address}


@pytest.mark.parametrize("name", SOURCES)
def test_a_docstring_tells_address_checksum_licence_and_citation(name):
    text = " ".join(inspect.getdoc(getattr(datasets, FETCHERS[name])).replace("``", "").split())
    known = "known from" in text and "SHA-256" in text
    assert f"not tried when this was written: {SOURCES[name].address} Its SHA-256" in text
    assert known == (SOURCES[name].sha256 is not None)
    assert known != ("SHA-256 is not known: that of your first download is recorded" in text)
    assert "Licence: " in text
    assert "Please cite " in text


@pytest.mark.parametrize("source", SOURCES.values(), ids=list(SOURCES))
def test_a_checksum_is_one(source):
    assert source.sha256 is None or len(bytes.fromhex(source.sha256)) == 32


def test_gases_and_concentrations_are_those_of_the_lines(publisher, tmp_path):
    gas = fetch_gas_drift(data_home=tmp_path)
    assert gas.y.tolist() == ["ethanol", "acetaldehyde", "ethylene", "toluene"]
    np.testing.assert_allclose(gas.X[0], 15596.1621 + np.arange(128))
    concentration = fetch_gas_drift(target="concentration", data_home=tmp_path)
    assert concentration.y.tolist() == [10.0, 20.0, 50.0, 100.0]
    assert gas.domains.tolist() == ["batch1", "batch1", "batch2", "batch10"]


def test_question_marks_are_missing_and_grades_become_disease_or_none(publisher, tmp_path):
    patients = fetch_heart_disease(data_home=tmp_path)
    assert patients.y.tolist() == [0, 1, 0, 1, 0, 1]
    assert fetch_heart_disease(target="grade", data_home=tmp_path).y.tolist()[:2] == [0, 2]
    missing = np.isnan(patients.X)
    assert [patients.feature_names[j] for j in np.flatnonzero(missing[3])] == [
        "chol",
        "slope",
        "ca",
        "thal",
    ]
    assert not missing[:2].any()


def test_hours_without_dust_are_left_out_and_the_wind_is_a_direction(publisher, tmp_path):
    air = fetch_beijing_air(data_home=tmp_path)
    column = {name: air.X[:, j] for j, name in enumerate(air.feature_names)}
    assert air.y.tolist() == [4.0, 7.0, 4.0, 7.0]
    np.testing.assert_allclose(column["wd_sin"][0], np.sin(np.deg2rad(337.5)))
    np.testing.assert_allclose(column["wd_cos"][0], np.cos(np.deg2rad(337.5)))
    assert np.isnan(column["wd_sin"][1])
    assert np.isnan(column["CO"][1])
    assert column["TEMP"].tolist() == [-0.7, -1.1, -0.7, -1.1]


def test_people_of_both_parts_keep_their_windows(publisher, tmp_path):
    windows = fetch_har(data_home=tmp_path)
    assert windows.y.tolist() == ["STANDING", "WALKING", "WALKING_UPSTAIRS"]
    np.testing.assert_allclose(windows.X[:, 0], [0.28858451, 0.27841883, 0.25717778])
    assert windows.feature_names == [
        "tBodyAcc-mean()-X",
        "fBodyAcc()-1,8 (2)",
        "fBodyAcc()-1,8 (3)",
    ]


def test_windows_of_an_arff_file_have_its_classes_and_gaps(publisher, tmp_path):
    windows = fetch_wisdm(data_home=tmp_path)
    assert windows.y.tolist() == ["Jogging", "Walking", "Walking"]
    np.testing.assert_array_equal(windows.X, [[0.04, 2075], [0.12, np.nan], [0.14, 1525.5]])
    assert windows.feature_names == ["X0", "XPEAK"]


def test_a_pupil_in_both_files_is_one_group(publisher, tmp_path):
    pupils = fetch_student_performance(data_home=tmp_path)
    assert pupils.groups.tolist() == [0, 1, 0]
    assert pupils.y.tolist() == [6.0, 0.0, 6.0]
    first = dict(zip(pupils.feature_names, pupils.X[0], strict=True))
    chosen = {name for name, value in first.items() if "_" in name and value}
    assert chosen == {
        "address_U",
        "Fjob_teacher",
        "guardian_mother",
        "schoolsup_yes",
        "nursery_yes",
        "higher_yes",
    }
    assert not {"G1", "G2", "G3"} & first.keys()


def test_a_patient_who_died_after_180_days_did_not_die_within_them(publisher, tmp_path):
    patients = fetch_support2(data_home=tmp_path)
    assert patients.y.tolist() == [0, 1, 0]
    first = dict(zip(patients.feature_names, patients.X[0], strict=True))
    assert (first["male"], first["ca_yes"], first["ca_metastatic"]) == (1.0, 0.0, 1.0)
    assert np.isnan(first["glucose"])
    assert first["pafi"] == 388.0


def test_a_vowel_is_the_word_it_was_said_in(publisher, tmp_path):
    utterances = fetch_vowels(data_home=tmp_path)
    assert utterances.y.tolist() == ["hid", "hed", "hId"]
    assert utterances.X[1, 0] == -2.704


def test_nitrogen_oxides_are_the_target_and_carbon_monoxide_is_no_feature(publisher, tmp_path):
    turbine = fetch_gas_turbine(data_home=tmp_path)
    assert turbine.y.tolist() == [81.952, 82.377] * 2
    assert turbine.X[0, -1] == 11.898


def test_a_sample_of_corn_has_its_value_on_every_instrument(publisher, tmp_path):
    spectra = fetch_corn(data_home=tmp_path)
    assert spectra.y.tolist() == [8.746, 8.658] * 3
    assert spectra.groups.tolist() == [0, 1] * 3
    assert spectra.X[:, 0].tolist() == [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]
    assert (spectra.feature_names[0], spectra.feature_names[-1]) == ("1100 nm", "2498 nm")
    assert fetch_corn(target="moisture", data_home=tmp_path).y[0] == 10.448


def test_a_recording_under_every_noise_is_one_group(publisher, tmp_path):
    recordings = fetch_music_speech(data_home=tmp_path)
    assert recordings.y.tolist() == [0, 1] * 5
    assert recordings.groups.tolist() == [0, 1] * 5
    assert recordings.X[-1, 0] == 4.0


def test_what_is_missing_of_a_community_is_nan(publisher, tmp_path):
    communities = fetch_communities_crime(data_home=tmp_path)
    assert communities.y.tolist() == [0.2, 0.67]
    assert np.isnan(communities.X[0, -1])
    assert communities.X[0, 0] == 0.19


def test_a_file_is_downloaded_once(publisher, tmp_path):
    first = fetch_vowels(data_home=tmp_path)
    again = fetch_vowels(data_home=tmp_path, download_if_missing=False)
    assert len(publisher.requests) == 1
    np.testing.assert_array_equal(first.X, again.X)


def test_the_environment_names_the_folder(publisher, tmp_path, monkeypatch):
    monkeypatch.setenv("SKDARE_DATA_HOME", str(tmp_path / "data"))
    # The folder of prepared arrays is another one.
    monkeypatch.setenv("SKDARE_DATA", str(tmp_path / "prepared"))
    fetch_vowels()
    assert (tmp_path / "data" / "vowels" / "vowel-context.data").is_file()


def test_without_an_environment_the_folder_is_in_the_home(publisher, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    fetch_vowels()
    assert (tmp_path / "skdare_data" / "vowels" / "vowel-context.data").is_file()


def test_nothing_is_downloaded_if_that_is_not_wanted(publisher, tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        fetch_vowels(data_home=tmp_path, download_if_missing=False)
    assert publisher.requests == []
    assert SOURCES["vowels"].address in str(error.value)
    assert str(tmp_path / "vowels" / "vowel-context.data") in str(error.value)
    assert left(tmp_path) == []


def test_a_file_put_there_by_hand_is_used(publisher, tmp_path):
    folder = tmp_path / "vowels"
    folder.mkdir()
    (folder / "vowel-context.data").write_bytes(ORIGINALS["vowels"])
    assert len(fetch_vowels(data_home=tmp_path).y) == 3
    assert publisher.requests == []


def test_a_download_with_the_known_checksum_is_kept(publisher, tmp_path, monkeypatch):
    pin(monkeypatch, "har", hashlib.sha256(ORIGINALS["har"]).hexdigest())
    fetch_har(data_home=tmp_path)
    assert left(tmp_path) == [f"har/{SOURCES['har'].name}"]


def test_a_download_with_another_checksum_leaves_nothing(publisher, tmp_path, monkeypatch):
    pin(monkeypatch, "har", "0" * 64)
    with pytest.raises(InputError) as error:
        fetch_har(data_home=tmp_path)
    assert left(tmp_path) == []
    assert hashlib.sha256(ORIGINALS["har"]).hexdigest() in str(error.value)
    assert "0" * 64 in str(error.value)
    assert SOURCES["har"].address in str(error.value)


def test_the_checksum_of_a_first_download_holds_for_later_ones(publisher, tmp_path):
    fetch_vowels(data_home=tmp_path)
    path = tmp_path / "vowels" / "vowel-context.data"
    record = path.with_name("vowel-context.data.sha256")
    digest = hashlib.sha256(ORIGINALS["vowels"]).hexdigest()
    assert record.read_text() == f"{digest}  vowel-context.data\n"
    path.unlink()
    publisher.files["/vowels/vowel-context.data"] = ORIGINALS["vowels"] * 2
    with pytest.raises(InputError, match=f"and {digest} was expected"):
        fetch_vowels(data_home=tmp_path)
    assert not path.exists()
    record.unlink()
    assert len(fetch_vowels(data_home=tmp_path).y) == 6


def test_a_file_that_changed_in_the_folder_is_refused_and_stays(publisher, tmp_path):
    fetch_vowels(data_home=tmp_path)
    path = tmp_path / "vowels" / "vowel-context.data"
    path.write_bytes(b"0 0")
    with pytest.raises(InputError, match="was expected"):
        fetch_vowels(data_home=tmp_path)
    assert path.read_bytes() == b"0 0"


def test_a_checksum_that_a_user_records_counts_before_the_known_one(
    publisher, tmp_path, monkeypatch
):
    pin(monkeypatch, "vowels", "0" * 64)
    digest = hashlib.sha256(ORIGINALS["vowels"]).hexdigest()
    (tmp_path / "vowels").mkdir()
    (tmp_path / "vowels" / "vowel-context.data.sha256").write_text(digest.upper())
    assert len(fetch_vowels(data_home=tmp_path).y) == 3


def test_a_download_that_ends_early_leaves_nothing(publisher, tmp_path):
    publisher.cut_short = True
    with pytest.raises(ConnectionError, match="ended after"):
        fetch_vowels(data_home=tmp_path)
    assert left(tmp_path) == []


@pytest.mark.parametrize("name", ["har", "music_speech", "vowels"])
def test_a_page_to_sign_in_is_refused_and_does_not_bar_the_file(name, publisher, tmp_path):
    path = f"/{name}/{SOURCES[name].name}"
    publisher.files[path] = b"\n<!DOCTYPE HTML><p>sign in to this network</p>"
    with pytest.raises(ConnectionError, match="answered with a web page"):
        fetch(name, tmp_path)
    assert left(tmp_path) == []
    publisher.files[path] = ORIGINALS[name]
    assert len(fetch(name, tmp_path).y) == EXPECTED[name][0]


def test_what_is_called_an_archive_and_is_none_is_refused(publisher, tmp_path):
    publisher.files[f"/har/{SOURCES['har'].name}"] = b"try again later"
    with pytest.raises(ConnectionError, match="did not answer with an archive"):
        fetch_har(data_home=tmp_path)
    assert left(tmp_path) == []


@pytest.mark.parametrize("name", ["gas_drift", "music_speech", "vowels"])
def test_a_file_that_cannot_be_read_sets_no_checksum(name, publisher, tmp_path):
    path = tmp_path / name / SOURCES[name].name
    path.parent.mkdir()
    path.write_bytes(ORIGINALS[name][:-20])
    with pytest.raises(InputError, match=re.escape(f"delete {path}, and try again")):
        fetch(name, tmp_path)
    assert left(tmp_path) == [f"{name}/{path.name}"]
    path.unlink()
    assert len(fetch(name, tmp_path).y) == EXPECTED[name][0]


def test_where_a_recorded_checksum_disagrees_both_files_are_to_be_deleted(publisher, tmp_path):
    fetch_vowels(data_home=tmp_path)
    path = tmp_path / "vowels" / "vowel-context.data"
    record = path.with_name("vowel-context.data.sha256")
    path.write_bytes(ORIGINALS["vowels"] * 2)
    with pytest.raises(InputError, match=re.escape(f"delete {path} and {record}, and")):
        fetch_vowels(data_home=tmp_path)


def test_a_refusal_names_the_address_and_where_to_put_the_file(publisher, tmp_path):
    publisher.files.clear()
    with pytest.raises(ConnectionError, match="404") as error:
        fetch_wisdm(data_home=tmp_path)
    assert SOURCES["wisdm"].address in str(error.value)
    assert f"put it into {tmp_path / 'wisdm'} as WISDM_ar_latest.tar.gz" in str(error.value)
    assert left(tmp_path) == []


def test_without_a_network_the_error_names_the_address_and_where_to_put_the_file(
    publisher, tmp_path, monkeypatch
):
    # Nobody listens at port 9.
    nowhere = replace(SOURCES["vowels"], address="http://127.0.0.1:9/vowel-context.data")
    monkeypatch.setitem(SOURCES, "vowels", nowhere)
    with pytest.raises(ConnectionError) as error:
        fetch_vowels(data_home=tmp_path)
    assert "cannot download http://127.0.0.1:9/vowel-context.data (" in str(error.value)
    assert f"put it into {tmp_path / 'vowels'} as vowel-context.data" in str(error.value)


def test_a_folder_that_cannot_be_made_is_named_before_anything_is_asked(publisher, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError, match="pass data_home") as error:
        fetch_vowels(data_home=tmp_path / "file")
    assert str(tmp_path / "file") in str(error.value)
    assert publisher.requests == []


def test_a_name_that_leads_out_of_an_archive_is_left_aside(publisher, tmp_path):
    evil = {
        "../../batch1.dat": gas_line(1, 1, 666.0),
        "/batch3.dat": gas_line(1, 1, 666.0),
        "..\\batch4.dat": gas_line(1, 1, 666.0),
        "Dataset/batch1.dat": gas_line(1, 10, 1.0),
    }
    publisher.files[f"/gas_drift/{SOURCES['gas_drift'].name}"] = zipped(evil)
    gas = fetch_gas_drift(data_home=tmp_path / "home")
    assert gas.X[:, 0].tolist() == [1.0]
    folder = f"home/gas_drift/{SOURCES['gas_drift'].name}"
    assert left(tmp_path) == [folder, f"{folder}.sha256"]


@pytest.mark.parametrize("name", ["gas_drift", "wisdm"])
def test_a_damaged_archive_is_named(name, publisher, tmp_path):
    path = tmp_path / name / SOURCES[name].name
    path.parent.mkdir()
    path.write_bytes(ORIGINALS[name][:-50])
    with pytest.raises(InputError) as error:
        fetch(name, tmp_path)
    assert f"{path} is damaged or not the published file" in str(error.value)


def test_an_archive_in_an_archive_is_read_and_one_deeper_is_not(publisher, tmp_path):
    path = f"/gas_drift/{SOURCES['gas_drift'].name}"
    batch = zipped({"batch1.dat": gas_line(1, 10, 1.0)})
    publisher.files[path] = nested(batch, 1)
    assert fetch_gas_drift(data_home=tmp_path / "flat").domains.tolist() == ["batch1"]
    for levels in (2, 1200):
        publisher.files[path] = nested(batch, levels)
        with pytest.raises(InputError, match="it holds no file called batch"):
            fetch_gas_drift(data_home=tmp_path / str(levels))


def bomb(name: str) -> bytearray:
    """A small zip of a file of 257 MiB."""
    content = io.BytesIO()
    with (
        zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open(name, "w") as file,
    ):
        for _ in range(257):
            file.write(bytes(1 << 20))
    return bytearray(content.getvalue())


def refused_within_memory(archive: bytes, problem: str, home: Path) -> None:
    """Fetch an archive that is refused before much of it is unpacked."""
    put_by_hand(home, "gas_drift", archive)
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=problem):
            fetch_gas_drift(data_home=home)
        assert tracemalloc.get_traced_memory()[1] < 1 << 26
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["batch1.dat", "inner.zip"])
def test_a_file_far_larger_than_any_of_a_public_set_is_not_unpacked(name, tmp_path):
    refused_within_memory(bomb(name), f"{name} in it has {257 << 20} bytes", tmp_path)


def test_a_file_that_unpacks_to_more_than_it_says_is_refused(tmp_path):
    archive = bomb("batch1.dat")
    size = archive.index(b"PK\x01\x02") + 24
    archive[size : size + 4] = (100).to_bytes(4, "little")
    refused_within_memory(archive, "Bad CRC-32", tmp_path)


def test_what_a_system_leaves_in_an_archive_is_no_part_of_a_set(publisher, tmp_path):
    files = unzipped(ORIGINALS["office_caltech"])
    files |= {"__MACOSX/data/._amazon_SURF_L10.mat": b"\0", "data/.old_SURF_L10.mat": b"\0"}
    publisher.files["/office_caltech/GFK_v1.zip"] = zipped(files)
    objects = fetch_office_caltech(data_home=tmp_path)
    assert np.unique(objects.domains).tolist() == EXPECTED["office_caltech"][2]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("gas_drift", zipped({"other.dat": ""}), "holds no file called batch"),
        ("gas_drift", zipped({"batch1.dat": "1 1:2.5\n"}), "a line that is not of a gas"),
        ("gas_drift", zipped({"batch1.dat": "1;10 129:2.5\n"}), "a line that is not of a gas"),
        ("gas_drift", zipped({"batch1.dat": "1;10 1:2.5\n"}), "a line that is not of a gas"),
        ("gas_drift", zipped({"batch1.dat": gas_line(0, 10, 1.0)}), "has a code '0'"),
        ("gas_drift", zipped({"batch1.dat": gas_line(7, 10, 1.0)}), "has a code '7'"),
        ("gas_drift", zipped({"batch1.dat": "é"}), "'ascii' codec can't decode"),
        ("gas_drift", flagged(zipped({"batch1.dat": ""}), 6, 8, 1), "is encrypted"),
        ("gas_drift", flagged(zipped({"batch1.dat": ""}), 8, 10, 99), "compression method"),
        ("har", har_with("y_train.txt", "5\n9\n"), "has a code '9'"),
        ("har", har_with("X_train.txt", "1 2 3\n4 5\n"), "number of columns changed"),
        ("gas_turbine", zipped({"gt_2011.csv": "AT,NOX\n1,2\n"}), "has no column AP"),
        ("gas_turbine", zipped({"gt_2011.csv": "AT,NOX\n1,2,3\n"}), "a row of 3 values"),
        ("gas_turbine", zipped({"gt_2011.csv": ""}), "has no rows"),
        ("vowels", b"0 0 0 a b c d e f g h i j 0\n", "column feature_0 of vowel-context.data"),
        ("vowels", vowel_line(speaker=-1), "vowel-context.data has a code '-1'"),
        ("vowels", vowel_line(speaker=15), "vowel-context.data has a code '15'"),
        ("vowels", vowel_line(vowel="a"), "vowel-context.data has a code 'a'"),
        ("music_speech", ORIGINALS["vowels"], "the magic string is not correct"),
        ("music_speech", b"", "EOF"),
        ("music_speech", zipped({"X.npy": b""}), "the magic string is not correct"),
        ("music_speech", saved(np.zeros((3, 59))), "has not 60 columns"),
        ("music_speech", saved(np.full((3, 60), 5.0)), "MSD.npy has a code '5.0'"),
        ("music_speech", saved(np.full((3, 60), 0.5)), "MSD.npy has a code '0.5'"),
        ("communities_crime", zipped({"communities.data": crime_line(0)}), "has a code '0'"),
        ("communities_crime", zipped({"communities.data": crime_line(3)}), "has a code '3'"),
        ("corn", zipped({"corn.mat": b"MATLAB"}), "corn.mat has no matrices m5spec"),
        (
            "office_caltech",
            zipped({"amazon_SURF_L10.mat": ORIGINALS["vowels"]}),
            "amazon_SURF_L10.mat has no matrices fts, labels",
        ),
        ("student_performance", zipped({"student-mat.csv": STUDENTS}), "called student-por.csv"),
    ],
)
def test_a_file_of_another_form_is_refused_by_what_is_wrong(
    name, content, problem, publisher, tmp_path
):
    publisher.files[f"/{name}/{SOURCES[name].name}"] = content
    with pytest.raises(InputError, match=problem) as error:
        fetch(name, tmp_path)
    path = tmp_path / name / SOURCES[name].name
    assert f"{path} is damaged or not the published file" in str(error.value)
    assert left(tmp_path) == [f"{name}/{path.name}"]


def test_an_unknown_target_is_refused_before_anything_is_asked(publisher, tmp_path):
    with pytest.raises(InputError, match="use one of 'gas', 'concentration'"):
        fetch_gas_drift(target="colour", data_home=tmp_path)
    assert publisher.requests == []
