"""Tables of features that others wrote, or that are damaged, in every format that is read."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import shutil
import struct
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import skdare
from damage import damaged, forged, spoiled_json
from skdare.datasets import DomainData, make_latent_domains, read, read_unlabelled
from small_tables import WRITERS, table
from watching import LIBRARY_ROOM, assert_consistent, command, harmless, read_or_refuse, size_of

FORMS = [form for form in WRITERS if "store" not in form]
# NumPy parses the header of an array with Python's own parser; zipfile, pyarrow and torch are
# imported when they are needed, and compile patterns.
ALLOWED = ("compile", "exec")


@pytest.fixture(scope="module")
def head(tmp_path_factory) -> Path:
    """A saved head of as many features as the tables have."""
    data = make_latent_domains(n_features=3, random_state=0)
    path = tmp_path_factory.mktemp("head") / "head.safetensors"
    skdare.DAREClassifier().fit(data.X, data.y, domains=data.domains).save(path)
    return path


def whole_table(rng: np.random.Generator) -> DomainData:
    """Labels of some kind; with or without missing values."""
    data = table(["classification", "codes", "regression"][rng.integers(3)])
    return data if rng.random() < 0.3 else replace(data, X=np.nan_to_num(data.X))


def obeys_the_law(path: Path, head: Path, rng: np.random.Generator) -> None:
    """Read, read without labels, and by commands: consistent, or refused with the file's name."""
    with harmless(size_of(path), room=LIBRARY_ROOM, allowed=ALLOWED):
        data = read_or_refuse(read, path)
        rows = read_or_refuse(read_unlabelled, path)
    if data is not None:
        assert_consistent(data)
    if rows is not None:
        assert rows.ndim == 2
        assert not np.isinf(np.asarray(rows)).any()
    out = path.parent / ["out.csv", "out.npz", "store"][rng.integers(3)]
    by_command = {
        0: ("features", "info", path),
        1: ("features", "convert", path, out),
        2: ("predict", head, path, "--out", out.with_suffix(".csv")),
        3: ("diagnose", head, path, "--json"),
        4: ("fit", path, "--out", path.parent / "new.safetensors"),
    }
    result = command(*by_command[int(rng.integers(5))])
    if result.exit_code:
        # What can be read may still be no good for a head, which knows of no file.
        readable = data is not None or rows is not None
        assert readable or path.name in result.stderr, result.stderr
        assert sorted(path.parent.iterdir()) == [path]  # nothing half-written


@pytest.mark.parametrize("form", FORMS)
def test_damaged_bytes(hunt, head, form):
    for case in hunt(rate=20):
        with case:
            path = WRITERS[form](case.folder, whole_table(case.rng))
            path.write_bytes(damaged(path.read_bytes(), case.rng))
            obeys_the_law(path, head, case.rng)


# -- npz and npy: members and headers that lie -----------------------------------------------------


SHAPES = ["(10**12, 3)", "(-1, 3)", "()", "(12,)", "(3, 4, 5)", "(0, 3)", "(12, 0)", "(2**62, 4)"]
SHAPES += ["(12, 3.0)", "(True, 3)", "('a',)", "None", "(12, 10**30)", "[12, 3]", "(36,)"]
DTYPES = ["'|O'", "'<f8'", "'|V8'", "'<U7'", "'>f4'", "'<c16'", "'<M8[s]'", "'|b1'", "'|S3'"]
DTYPES += ["'float128'", "'x'", "[('a', '<f8')]", "'<U1000000000'", "'<f2'", "'|O8'", "3"]


def odd_member(rng: np.random.Generator) -> bytes:
    """An npy file whose header says something else than its bytes."""
    shape = SHAPES[rng.integers(len(SHAPES))] if rng.random() < 0.7 else "(12, 3)"
    descr = DTYPES[rng.integers(len(DTYPES))] if rng.random() < 0.7 else "'<f8'"
    order = ["False", "True", "__import__('os').system('true')"][rng.choice(3, p=[0.6, 0.3, 0.1])]
    header = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()
    version = [b"\x01\x00", b"\x02\x00", b"\x09\x00"][rng.choice(3, p=[0.6, 0.3, 0.1])]
    size = struct.pack("<H" if version[0] == 1 else "<I", len(header))
    body = rng.bytes(12 * 3 * 8) if rng.random() < 0.8 else pickle.dumps([print, "run"])
    return b"\x93NUMPY" + version + size + header + body


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_arrays_whose_headers_lie(hunt, head, suffix):
    for case in hunt(rate=50):
        with case:
            path = case.folder / f"table{suffix}"
            if suffix == ".npy":
                path.write_bytes(odd_member(case.rng))
            else:
                with zipfile.ZipFile(path, "w") as archive:
                    for key, values in as_arrays(whole_table(case.rng)).items():
                        odd = case.rng.random() < 0.4
                        archive.writestr(key, odd_member(case.rng) if odd else values)
                    if case.rng.random() < 0.2:
                        archive.writestr("../../away.npy", odd_member(case.rng))
            obeys_the_law(path, head, case.rng)


def as_arrays(data: DomainData) -> dict[str, bytes]:
    """The npy files of an npz."""
    members = {}
    for name, values in (("X", data.X), ("y", data.y), ("domain", data.domains)):
        file = io.BytesIO()
        np.save(file, values)
        members[f"{name}.npy"] = file.getvalue()
    return members


# -- Text ------------------------------------------------------------------------------------------


CELLS = ["", " ", "nan", "NaN", "inf", "-Infinity", "1e999", "1e-999", "0x10", "1_000", "1,5", '"']
CELLS += ['"a\nb"', "\0", "é", "\ud800", "'; drop", "=cmd()", "9" * 400, "-", "+", "True", "None"]
CELLS += ["a" * 200_000, "1e400", "٣", "\ufeff", "\u2028", "domain", "12", "-0.0", "\x1a", "\t"]


@pytest.mark.parametrize("form", ["csv", "csv.gz", "csv with semicolons"])
def test_text_with_odd_cells(hunt, head, form):
    for case in hunt(rate=30):
        with case:
            path = WRITERS[form](case.folder, whole_table(case.rng))
            opener = gzip.open if path.suffix == ".gz" else open
            with opener(path, "rt", encoding="utf-8", newline="") as file:
                rows = [line.rstrip("\r\n") for line in file]
            for _ in range(case.rng.integers(1, 4)):
                i = int(case.rng.integers(len(rows)))
                delimiter = ";" if "semicolons" in form else ","
                cells = rows[i].split(delimiter)
                cells[case.rng.integers(len(cells))] = CELLS[case.rng.integers(len(CELLS))]
                match case.rng.integers(8):
                    case 0:
                        rows.insert(i, rows[i])
                    case 1:
                        rows[i] = delimiter.join(cells * 2)
                    case 2:
                        del rows[max(i, 1) :]
                    case _:
                        rows[i] = delimiter.join(cells)
            ending = ["\n", "\r\n", "\r"][case.rng.integers(3)]
            with opener(path, "wb") as file:
                file.write(ending.join(rows).encode("utf-8", "surrogatepass"))
            obeys_the_law(path, head, case.rng)


def test_text_with_very_many_columns(hunt, head):
    for case in hunt(rate=0.5):
        with case:
            width = int(case.rng.integers(10_000, 40_000))
            names = ",".join(f"f{j}" for j in range(width))
            row = ",".join(["1.5"] * width)
            path = case.folder / "table.csv"
            path.write_text(f"{names},y,domain\n{row},0,a\n{row},1,b\n", encoding="utf-8")
            data = read(path)
            assert data.X.shape == (2, width)
            obeys_the_law(path, head, case.rng)


# -- Parquet and safetensors: files that are whole, of other kinds ---------------------------------


def odd_columns(pa, rng: np.random.Generator) -> dict:
    """Columns of every type that Arrow has, and of lists, structures and dictionaries of these."""
    n = int(rng.choice([0, 1, 2, 12]))
    integers = rng.integers(-3, 3, n).tolist()
    some = lambda values: [None if rng.random() < 0.1 else v for v in values]  # noqa: E731
    makers = [
        lambda: pa.array(some(integers), pa.int64()),
        lambda: pa.array(rng.normal(size=n)),
        lambda: pa.array(rng.normal(size=n).astype(np.float16)),
        lambda: pa.array([float("inf"), *rng.normal(size=max(0, n - 1))][:n]),
        lambda: pa.array([str(i) for i in integers]),
        lambda: pa.array([str(i).encode() + b"\xff" for i in integers]),
        lambda: pa.array([str(i) for i in integers]).dictionary_encode(),
        lambda: pa.array([i % 2 == 0 for i in integers]),
        lambda: pa.array([None] * n, pa.null()),
        lambda: pa.array([10**9 * abs(i) for i in integers], pa.timestamp("us")),
        lambda: pa.array(integers, pa.decimal128(20, 3)),
        lambda: pa.array([{"a": i} for i in integers], pa.struct([("a", pa.int64())])),
        lambda: pa.array(some([[1.0, 2.0, 3.0]] * n), pa.list_(pa.float64())),
        lambda: pa.array([[1.0] * abs(i) for i in integers], pa.list_(pa.float64())),
        lambda: pa.array([[[1.0]]] * n, pa.list_(pa.list_(pa.float64()))),
        lambda: pa.array([["a", "b"]] * n, pa.list_(pa.string())),
        lambda: pa.array(some([[1.0, 2.0, 3.0]] * n), pa.list_(pa.float32(), 3)),
        lambda: pa.array([[("a", 1)]] * n, pa.map_(pa.string(), pa.int64())),
        lambda: pa.array([2**63 + abs(i) for i in integers], pa.uint64()),
        lambda: pa.array([abs(i) for i in integers], pa.duration("s")),
    ]
    names = ["X", "y", "domain", "split", "a", "b", "id", "é", "", "feat_0", "y.x"]
    names = rng.permutation(names)[: rng.integers(1, len(names))].tolist()
    if rng.random() < 0.8:
        names = list(dict.fromkeys(["y", "domain", *names]))
    return {name: makers[rng.integers(len(makers))]() for name in names}


def test_parquet_of_any_schema(hunt, head):
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    for case in hunt(rate=40):
        with case:
            path = case.folder / "table.parquet"
            pq.write_table(pa.table(odd_columns(pa, case.rng)), path, row_group_size=5)
            obeys_the_law(path, head, case.rng)


def test_safetensors_whose_header_lies(hunt, head):
    pytest.importorskip("safetensors", reason="safetensors is not installed")
    for case in hunt(rate=60):
        with case:
            path = WRITERS["safetensors"](case.folder, whole_table(case.rng))
            content = path.read_bytes()
            length = int.from_bytes(content[:8], "little")
            header, arrays = json.loads(content[8 : 8 + length]), content[8 + length :]
            if case.rng.random() < 0.3:
                names = [[1, 2], "ab", {}, None, ["a", ["b"]], 3, ["a"], [], ["a", "a", "b", "c"]]
                chosen = json.dumps(names[case.rng.integers(len(names))])
                key = ["classes", "domains"][case.rng.integers(2)]
                header.setdefault("__metadata__", {})[key] = chosen
            else:
                header = forged(header, case.rng)
            text = json.dumps(header).encode()
            path.write_bytes(len(text).to_bytes(8, "little") + text + arrays)
            obeys_the_law(path, head, case.rng)


# -- What torch saves ------------------------------------------------------------------------------


def test_torch_files_of_any_kind(hunt, head):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    X = torch.arange(36.0).reshape(12, 3)
    values = [
        *(X, X.T, X.to_sparse(), X.to(torch.bfloat16), X.to(torch.complex64), X.int(), X[:0]),
        *(X.requires_grad_(), X.flatten(), X.reshape(2, 6, 3), torch.tensor(3.0), X * torch.inf),
        *(list(range(12)), ["a", "b"] * 6, [["a"], "b"] * 6, "text", None, 3, {}, [], {"X": X}),
        *([1, "a", None] * 4, [1.5] * 12, [float("nan")] * 12, [[1, 2], [3]] * 6, (1, 2)),
        *([b"a", b"b"] * 6, [10**30] * 12, torch.nn.Parameter(X), [X, X], torch.zeros(12, 0)),
        *(torch.quantize_per_tensor(X.detach(), 0.1, 0, torch.quint8), X.to("meta"), {1: 2}),
    ]
    for case in hunt(rate=60):
        with case:
            data = whole_table(case.rng)
            held = {"X": torch.tensor(data.X), "y": data.y.tolist()}
            held |= {"domain": data.domains.tolist()}
            for _ in range(case.rng.integers(1, 3)):
                key = ["X", "y", "domain", "more", 7][case.rng.integers(5)]
                held[key] = values[case.rng.integers(len(values))]
            whole = held if case.rng.random() < 0.9 else values[case.rng.integers(len(values))]
            if case.rng.random() < 0.1:
                whole = {**held, "run": print}
            path = case.folder / "table.pt"
            old = case.rng.random() < 0.2
            torch.save(whole, path, _use_new_zipfile_serialization=not old)
            obeys_the_law(path, head, case.rng)


# -- Folders of Hugging Face -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved_dataset(tmp_path_factory) -> Path:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    data = table("codes")
    columns = {"embedding": np.nan_to_num(data.X).tolist(), "label": data.y.tolist()}
    columns["domain"] = data.domains.tolist()
    rows = datasets.Dataset.from_dict(columns)
    rows = rows.cast_column("label", datasets.ClassLabel(names=["cat", "dog", "élan"]))
    path = tmp_path_factory.mktemp("saved") / "dataset"
    rows.save_to_disk(path)
    return path


def test_damaged_folders_of_hugging_face(hunt, head, saved_dataset):
    for case in hunt(rate=60):
        with case:
            path = case.folder / "dataset"
            shutil.copytree(saved_dataset, path)
            files = sorted(path.iterdir())
            file = files[case.rng.integers(len(files))]
            match case.rng.integers(7):
                case 0:
                    file.unlink()
                case 1:
                    file.write_bytes(files[case.rng.integers(len(files))].read_bytes())
                case 2:
                    splits = [b'{"splits": []}', b'{"splits": [1]}', b'{"splits": "train"}', b"[]"]
                    splits += [b"{}", b'{"splits": ["train"]}', b"null"]
                    name = path / "dataset_dict.json"
                    name.write_bytes(splits[case.rng.integers(len(splits))])
                case _ if file.suffix == ".json":
                    file.write_bytes(spoiled_json(file.read_bytes(), case.rng))
                case _:
                    file.write_bytes(damaged(file.read_bytes(), case.rng))
            obeys_the_law(path, head, case.rng)
