"""Files that are damaged, or of other kinds: an InputError or rows that agree, and nothing else."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import scipy.sparse

from damage import SEED, damaged, harmless
from skdare.data import DomainData, read, stream, to_store
from skdare.data.read import read_text
from skdare.errors import InputError
from small_tables import NAMES, WRITERS, table

pytestmark = [pytest.mark.hostile, pytest.mark.filterwarnings("ignore")]


def outcome(action, path: Path):
    """What comes of a file, or None if it is refused in one harmless sentence."""
    try:
        return action(path)
    except InputError as error:
        text = str(error)
    assert len(text) < 1200, text
    assert text.isprintable(), ascii(text)
    return None


def streamed(path: Path) -> list[DomainData]:
    return list(stream(path, features=NAMES, rows=7))


def obeys_the_law(path: Path, rng: np.random.Generator) -> int:
    with harmless(path):
        whole = outcome(read, path)
        parts = outcome(streamed, path)
    if whole is not None:
        assert whole.X.shape[0] == len(whole.y) > 0
        assert whole.X.shape[1] == len(whole.feature_names) > 0
        assert whole.X.dtype.kind == "f"
        assert all(
            len(values) == len(whole.y) for values in (*whole.labels.values(), *whole.ids.values())
        )
        if scipy.sparse.issparse(whole.X):
            whole.X @ np.ones(whole.X.shape[1])
        elif isinstance(whole.X, np.ndarray) and not path.is_dir():
            assert not np.isinf(whole.X).any()
        assert whole.task in ("classification", "regression")
    for part in parts or ():
        assert part.feature_names.tolist() == NAMES
        assert part.X.shape == (part.X.shape[0], len(NAMES))
    if rng.random() < 0.1:
        store = path.with_name("store")
        if outcome(lambda path: to_store(path, store, rows=5) or 1, path):
            assert read(store).X.shape[0] == len(read(store).y)
    return (whole is not None) + (parts is not None)


def cases(name: str, n: int):
    """Numbers of cases, each with randomness of its own: case 31 is the same whatever runs."""
    for case in range(n):
        yield case, np.random.default_rng([SEED, zlib.crc32(name.encode()), case])


@pytest.mark.parametrize("form", WRITERS)
def test_damaged_bytes(form, tmp_path):
    n = 60 if form in ("commas", "parquet", "feather", "npz", "sparse npz", "store") else 20
    good = 0
    for case, rng in cases(form, n):
        folder = tmp_path / str(case)
        folder.mkdir()
        task = ["classification", "codes", "regression"][rng.integers(3)]
        path = WRITERS[form](folder, table(task, missing=rng.random() < 0.5))
        victims = sorted(path.glob("*.*")) if path.is_dir() else [path]
        victim = victims[rng.integers(len(victims))]
        victim.write_bytes(damaged(victim.read_bytes(), rng))
        good += obeys_the_law(path, rng)
    assert good < 2 * n


# -- Text ------------------------------------------------------------------------------------------

CELLS = ["", " ", "nan", "NaN", "inf", "-Infinity", "1e999", "1e-999", "0x10", "1_000", "1,5", '"']
CELLS += ['"a\nb"', "\0", "é", "\ud800", "'; drop", "=cmd()", "9" * 400, "-", "+", "True", "None"]
CELLS += ["a" * 200_000, "٣", "\ufeff", "\u2028", "domain", "12", "-0.0", "\x1a", "\t", "\x9b31m"]
CELLS += ["108,000", '"108,000"', "site", "y", "id", "\x85", "\x0c", "\v1", "1 2", "1e5", "007"]


@pytest.mark.parametrize("form", ["commas", "semicolons", "gz"])
@pytest.mark.parametrize("wide", [1, 256])
def test_odd_cells(form, wide, tmp_path, monkeypatch):
    monkeypatch.setattr("skdare.data.csv_source._WIDE", wide)
    for case, rng in cases(f"{form}{wide}", 80):
        folder = tmp_path / str(case)
        folder.mkdir()
        path = WRITERS[form](folder, table("codes", missing=False))
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt", encoding="utf-8", newline="") as file:
            lines = file.read().splitlines()
        separator = ";" if form == "semicolons" else ","
        for _ in range(rng.integers(1, 4)):
            i = int(rng.integers(len(lines)))
            if rng.random() < 0.2:
                i = 0
            row = lines[i].split(separator)
            row[rng.integers(len(row))] = CELLS[rng.integers(len(CELLS))]
            match rng.integers(8):
                case 0:
                    lines.insert(i, lines[i])
                case 1:
                    lines[i] = separator.join(row * 2)
                case 2:
                    del lines[max(i, 1) :]
                case 3:
                    lines[i] = separator.join(row[:-1])
                case _:
                    lines[i] = separator.join(row)
        ending = ["\n", "\r\n", "\r"][rng.choice(3, p=[0.5, 0.4, 0.1])]
        with opener(path, "wb") as file:
            file.write(ending.join(lines).encode("utf-8", "surrogatepass"))
        obeys_the_law(path, rng)
        outcome(read_text, path)


@pytest.mark.parametrize("length", [1, 1 << 20, 1 << 26])
def test_one_line_of_any_length_is_no_header(length, tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"a" * (length + 1), 1, mtime=0))
    with pytest.raises(InputError, match=r"a\.csv\.gz|usual name"):
        read(path)


# -- Arrays ----------------------------------------------------------------------------------------

SHAPES = ["(10**12, 3)", "(-1, 3)", "()", "(24,)", "(3, 4, 6)", "(0, 3)", "(24, 0)", "(2**62, 4)"]
SHAPES += ["(24, 3.0)", "(True, 3)", "('a',)", "None", "(24, 10**30)", "[24, 3]", "(72,)", "(24, 3"]
DTYPES = ["'|O'", "'<f8'", "'|V8'", "'<U7'", "'>f4'", "'<c16'", "'<M8[s]'", "'|b1'", "'|S3'"]
DTYPES += ["'float128'", "'x'", "[('a', '<f8')]", "'<U1000000000'", "'<f2'", "'|O8'", "3"]


def odd_array(rng: np.random.Generator) -> bytes:
    """An npy file whose header is not that of its bytes."""
    shape = SHAPES[rng.integers(len(SHAPES))] if rng.random() < 0.7 else "(24, 3)"
    descr = DTYPES[rng.integers(len(DTYPES))] if rng.random() < 0.7 else "'<f8'"
    order = ["False", "True", "__import__('os').system('true')"][rng.choice(3, p=[0.6, 0.3, 0.1])]
    header = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()
    version = [b"\x01\x00", b"\x02\x00", b"\x09\x00"][rng.choice(3, p=[0.6, 0.3, 0.1])]
    size = struct.pack("<H" if version[0] == 1 else "<I", len(header))
    return b"\x93NUMPY" + version + size + header + rng.bytes(24 * 3 * 8)


def as_npy(values) -> bytes:
    file = io.BytesIO()
    np.save(file, values)
    return file.getvalue()


def test_arrays_whose_headers_lie(tmp_path):
    data = table("codes")
    for case, rng in cases("headers", 300):
        path = tmp_path / f"{case}.npz"
        with zipfile.ZipFile(path, "w") as archive:
            for name, values in {"X": data.X, "y": data.y, "site": data.domains}.items():
                odd = rng.random() < 0.4
                archive.writestr(f"{name}.npy", odd_array(rng) if odd else as_npy(values))
            if rng.random() < 0.2:
                archive.writestr("../../away.npy", odd_array(rng))
            if rng.random() < 0.2:
                archive.writestr("text.txt", b"no array")
        obeys_the_law(path, rng)


ENTRIES = [-1, -(1 << 62), 1 << 30, 1 << 62, 0, 5, 23, 24, 1000]


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_sparse_matrices_of_any_indices(layout, tmp_path):
    X = table(missing=False).X
    for case, rng in cases(layout, 150):
        matrix = scipy.sparse.coo_array(X).asformat(layout)
        names = ("row", "col") if layout == "coo" else ("indices", "indptr")
        held = {"data": matrix.data, "shape": np.array(matrix.shape), "format": layout.encode()}
        places = matrix.coords if layout == "coo" else (matrix.indices, matrix.indptr)
        held |= dict(zip(names, places, strict=True))
        for _ in range(rng.integers(1, 3)):
            name = ["shape", "data", *names][rng.integers(4)]
            values = np.array(held[name], dtype=np.int64 if name != "data" else np.float64)
            match rng.integers(5):
                case 0:
                    values = values[: rng.integers(len(values) + 1)]
                case 1:
                    values = np.append(values, values)
                case 2:
                    values = values.astype([np.int8, np.float32, np.uint64, "U5"][rng.integers(4)])
                case _ if len(values):
                    values[rng.integers(len(values))] = ENTRIES[rng.integers(len(ENTRIES))]
            held[name] = values
        path = tmp_path / f"{case}.npz"
        np.savez(path, **held, y=np.arange(24) % 3)
        obeys_the_law(path, rng)


# -- Parquet and Feather ---------------------------------------------------------------------------


def odd_columns(rng: np.random.Generator) -> dict[str, pa.Array]:
    """Columns of every type that Arrow has, and of lists, structures and dictionaries of these."""
    n = int(rng.choice([0, 1, 2, 24]))
    integers = rng.integers(-3, 3, n).tolist()

    def some(values: list) -> list:
        return [None if rng.random() < 0.1 else value for value in values]

    makers = [
        lambda: pa.array(some(integers), pa.int64()),
        lambda: pa.array(rng.normal(size=n)),
        lambda: pa.array(rng.normal(size=n).astype(np.float16)),
        lambda: pa.array([float("inf"), *rng.normal(size=max(0, n - 1))][:n]),
        lambda: pa.array([str(i) for i in integers]),
        lambda: pa.array([str(i).encode() + b"\xff\x9b" for i in integers]),
        lambda: pa.array([str(i) for i in integers]).dictionary_encode(),
        lambda: pa.array(integers, pa.int64()).dictionary_encode(),
        lambda: pa.array(some([i % 2 == 0 for i in integers]), pa.bool_()),
        lambda: pa.array([None] * n, pa.null()),
        lambda: pa.array([10**9 * abs(i) for i in integers], pa.timestamp("us")),
        lambda: pa.array([abs(i) for i in integers], pa.date32()),
        lambda: pa.array(some(integers), pa.decimal128(20, 3)),
        lambda: pa.array([{"a": i} for i in integers], pa.struct([("a", pa.int64())])),
        lambda: pa.array(some([[1.0, 2.0, 3.0]] * n), pa.list_(pa.float64())),
        lambda: pa.array([[1.0] * abs(i) for i in integers], pa.list_(pa.float64())),
        lambda: pa.array([[[1.0]]] * n, pa.list_(pa.list_(pa.float64()))),
        lambda: pa.array([["a", "b"]] * n, pa.list_(pa.string())),
        lambda: pa.array(some([[1.0, 2.0, 3.0]] * n), pa.list_(pa.float32(), 3)),
        lambda: pa.array([[("a", 1)]] * n, pa.map_(pa.string(), pa.int64())),
        lambda: pa.array([2**63 + abs(i) for i in integers], pa.uint64()),
        lambda: pa.array([abs(i) for i in integers], pa.duration("s")),
        lambda: pa.array(["a\x9b", "b\0"][:n] * (n // 2), pa.large_string()),
    ]
    names = ["X", *NAMES, "split", "a", "b", "id", "é", "", "feat_0", "x\x9b"]
    names = ["y", "site", *rng.permutation(names)[: rng.integers(1, len(names))].tolist()]
    columns = {name: makers[rng.integers(len(makers))]() for name in names}
    lengths = {name: len(column) for name, column in columns.items()}
    return {name: columns[name] for name in columns if lengths[name] == lengths["y"]}


@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_tables_of_any_schema(kind, tmp_path):
    good = 0
    for case, rng in cases(kind, 150):
        path = tmp_path / f"{case}.{kind}"
        rows = pa.table(odd_columns(rng))
        if kind == "parquet":
            pyarrow.parquet.write_table(rows, path, row_group_size=5)
        else:
            pyarrow.feather.write_feather(rows, path)
        good += obeys_the_law(path, rng)
    assert good > 5


def test_what_stands_in_a_file_is_no_reason_to_believe_its_name(tmp_path):
    contents = []
    for form in ("commas", "gz", "parquet", "feather", "npz"):
        folder = tmp_path / form
        folder.mkdir()
        contents.append(WRITERS[form](folder, table()).read_bytes())
    contents += [
        b"",
        b"\0" * 99,
        b"PK\3\4",
        b"\x1f\x8b\x08",
        b"PAR1",
        b"ARROW1\0\0",
        b"BZh9",
        b"\xfd7zXZ",
    ]
    for case, rng in cases("kinds", len(contents)):
        for suffix in (
            ".csv",
            ".tsv",
            ".csv.gz",
            ".csv.bz2",
            ".csv.xz",
            ".parquet",
            ".feather",
            ".npz",
        ):
            path = tmp_path / f"{case}{suffix}"
            path.write_bytes(contents[case])
            obeys_the_law(path, rng)
