"""Damaged, cut off and forged files are refused by name, or harmless."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest

import skdare
from damage import damaged, harmless
from domain_problems import make_problem
from file_damage import forged
from new_domains import fitted as dare
from new_domains import new_rows, partly
from skdare import DAREClassifier, DAREClassifierCV, ERMRegressor, inspect_file
from skdare.saving.saved_file import SavedFile

pytestmark = [pytest.mark.hostile, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A file of every kind: its content, what reads it, and what uses what was read."""
    folder = tmp_path_factory.mktemp("files")
    data = make_problem("classification")
    X, y = new_rows()
    adaptable = dare(adaptation="mixture")
    stream = adaptable.adapter(half_life=30.0).partial_fit(X, partly(y, np.arange(20)))
    search = data.fit(DAREClassifierCV(strategies=("erm", "standardize", "whiten"), cv=3))
    prepared = DAREClassifier(preparation="auto", guess={"north": 1.0})
    data.fit(prepared, 1e3 * data.X * [1, 1e-6, 1, 1, 1])
    prepared.rehearse(data.X * [1, 1e-6, 1, 1, 1], data.y, domains=data.domains)
    labelled = adaptable.adapt(X, partly(y, np.arange(20)))
    numbers = make_problem("regression").fit(ERMRegressor())
    written = {
        "mixture": adaptable,
        "search": search,
        "prepared": prepared,
        "labelled": labelled,
        "numbers": numbers,
    }
    found = {}
    for name, head in written.items():
        head.save(folder / name)

        def use(one, d=head.n_features_in_):
            rows = X[:, :d]
            one.predict(rows)
            if hasattr(one, "adapt"):
                one.adapt(rows)
                one.adapt(rows, partly(one.predict(rows), np.arange(9)), force=True)
                repr(one.rehearsal_)

        use(skdare.load(folder / name))  # imports and evaluates annotations, once
        found[name] = ((folder / name).read_bytes(), "head", skdare.load, use)
    stream.save(folder / "stream")
    adaptable.resume(folder / "stream")
    content = (folder / "stream").read_bytes()
    found["stream"] = (content, "stream", adaptable.resume, lambda one: one.partial_fit(X).head_)
    return found


def read_or_refuse(read, path):
    """What is made of a file, or None if it is refused by name."""
    try:
        return read(path)
    except ValueError as error:
        if path.name not in str(error):
            raise AssertionError(f"refused without the file's name: {error}") from error
        return None


def use_or_refuse(use, made):
    """Use it, or refuse it in words."""
    try:
        use(made)
    except ValueError as error:
        if len(str(error)) < 10:
            raise AssertionError("refused, but not in words") from error


KINDS = ("mixture", "search", "prepared", "labelled", "numbers", "stream")


@pytest.mark.parametrize("kind", KINDS)
def test_flipped_and_cut_files_are_refused_by_name(tmp_path, files, kind):
    content, _, read, _ = files[kind]
    path = tmp_path / "damaged"
    rng = np.random.default_rng(7)
    for _ in range(150):
        spoiled = damaged(content, rng)
        if spoiled == content:
            continue
        path.write_bytes(spoiled)
        with harmless(path):
            read_or_refuse(inspect_file, path)
        with harmless(path), pytest.raises(ValueError, match="damaged"):
            read(path)


@pytest.mark.parametrize("kind", KINDS)
def test_forged_headers_are_refused_or_harmless(tmp_path, files, kind):
    content, what, read, use = files[kind]
    path = tmp_path / "forged"
    path.write_bytes(content)
    file = SavedFile.read(path, what)
    rng = np.random.default_rng(1)
    used = 0
    for _ in range(250):
        header = forged(dict(file.header), rng)
        try:
            SavedFile(what, header, file.arrays).write(path)
        except (UnicodeEncodeError, ValueError):
            continue  # safetensors or JSON cannot hold it
        with harmless(path):
            json.dumps(read_or_refuse(inspect_file, path))
            made = read_or_refuse(read, path)
        if made is not None:
            used += 1
            with np.errstate(all="ignore"):
                use_or_refuse(use, made)
    assert used < 60


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_that_are_exchanged_or_spoiled_are_refused_or_harmless(tmp_path, files, kind):
    content, what, read, use = files[kind]
    path = tmp_path / "forged"
    path.write_bytes(content)
    file = SavedFile.read(path, what)
    rng = np.random.default_rng(2)
    names = sorted(file.arrays)
    for _ in range(120):
        arrays = {name: array.copy() for name, array in file.arrays.items()}
        name = names[rng.integers(len(names))]
        match rng.integers(5):
            case 0:
                del arrays[name]
            case 1:
                arrays[name] = arrays[names[rng.integers(len(names))]]
            case 2:
                arrays[name] = arrays[name][..., :-1]
            case 3:
                arrays[name] = arrays[name].astype(rng.choice(["float32", "int64", "uint8"]))
            case 4:
                flat = arrays[name].astype(float).ravel()
                if len(flat):
                    flat[rng.integers(len(flat))] = rng.choice([np.nan, np.inf, -1e300, 1e300])
                arrays[name] = flat.reshape(arrays[name].shape)
        SavedFile(what, file.header, arrays).write(path)
        made = read_or_refuse(read, path)
        if made is not None:
            with np.errstate(all="ignore"):
                use_or_refuse(use, made)


def test_a_header_cannot_name_another_class_or_module(tmp_path, files):
    content, what, _, _ = files["mixture"]
    path = tmp_path / "forged"
    path.write_bytes(content)
    file = SavedFile.read(path, what)
    for name in ("os.system", "Head", "AdaptableHead", "LeaveOneDomainOut", "", None, 7, ["x"]):
        header = copy.deepcopy(dict(file.header)) | {"class": name}
        SavedFile(what, header, file.arrays).write(path)
        with pytest.raises(ValueError, match="forged cannot be read"):
            skdare.load(path)
