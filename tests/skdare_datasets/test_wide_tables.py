"""Tables of more columns than anyone counts: read in time that grows with their cells, fitted thin.

Nothing is timed: what is quadratic in 60,000 columns does not end, and a matrix of features by
features is seen in memory.
"""

import sys
import tracemalloc
from unittest.mock import Mock

import numpy as np
import pytest

import skdare
from skdare.datasets import (
    DomainData,
    _csv,
    read,
    read_unlabelled,
    stream_table,
    write,
    write_store,
)
from skdare.datasets._row_source import RowSource

WIDE = 60_000
ROWS = 4
NAMES = [f"g{j}" for j in range(WIDE)]


def wide_csv(path, between=""):
    """Rows of a wide table; ``between`` is a column of text amid the numbers."""
    X = np.arange(ROWS * WIDE).reshape(ROWS, WIDE) / 8
    middle = len(NAMES) // 2
    lines = [[*NAMES[:middle], *([between] if between else []), *NAMES[middle:], "y", "site"]]
    for i, row in enumerate(X.tolist()):
        text = ["word"] if between else []
        lines.append(
            [*map(str, row[:middle]), *text, *map(str, row[middle:]), str(i % 2), "ab"[i // 2]]
        )
    path.write_text("\n".join(map(",".join, lines)) + "\n")
    return X


@pytest.mark.filterwarnings("ignore:.* left out of the features")
@pytest.mark.parametrize("between", ["", "note"])
def test_a_csv_of_very_many_columns_is_read_by_every_reader(between, tmp_path):
    path = tmp_path / "wide.csv"
    X = wide_csv(path, between)
    data = read(path)
    assert data.feature_names == NAMES
    assert data.y.tolist() == [0, 1, 0, 1]
    assert data.domains.tolist() == list("aabb")
    assert np.array_equal(data.X, X)
    assert np.array_equal(read_unlabelled(path, names=NAMES[::-1]), X[:, ::-1])
    assert np.array_equal(stream_table(path).X[:], X)
    chunks = [chunk.X for chunk in RowSource(path, names=NAMES).chunks()]
    assert np.array_equal(np.concatenate(chunks), X)


def test_columns_can_be_listed_by_the_ten_thousand(tmp_path):
    path = tmp_path / "wide.csv"
    X = wide_csv(path)
    assert np.array_equal(read(path, features=",".join(NAMES[1:])).X, X[:, 1:])


@pytest.mark.parametrize("kind", ["npz", "parquet", "safetensors", "store", "csv"])
def test_every_format_gives_a_wide_table_back(kind, tmp_path):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    pytest.importorskip("safetensors", reason="safetensors is not installed")
    X = np.random.default_rng(0).normal(size=(6, 3000)).astype(np.float32)
    names = [f"g{j}" for j in range(3000)]
    data = DomainData(X, np.arange(6) % 2, np.arange(6) // 3, None, "wide", names)
    path = tmp_path / f"wide.{kind}"
    (write_store if kind == "store" else write)(path, data)
    assert np.array_equal(read(path).X, X)
    assert np.array_equal(read_unlabelled(path, names=names), X)
    assert np.array_equal(stream_table(path).X[:], X)


def test_a_parquet_of_other_types_and_missing_values_is_read_column_by_column(tmp_path):
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    columns = {"a": pa.array([1.5, None, 2.5, 3.0]), "b": pa.array([1, 2, 3, 4], pa.int16())}
    columns |= {"y": [0, 1, 0, 1], "site": list("aabb")}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    expected = [[1.5, 1], [np.nan, 2], [2.5, 3], [3, 4]]
    assert np.array_equal(read(tmp_path / "a.parquet").X, expected, equal_nan=True)
    only = read(tmp_path / "a.parquet", features="a").X
    assert np.array_equal(only, np.array(expected)[:, :1], equal_nan=True)


CELLS = ["1", "-0", "+2.5", " 3 ", "1e5", "1E-300", "4.9e-324", "1e400", "-1e-400", "inf", "nan"]
CELLS += ["", "NA", " NA ", "?", "1_2", "0x10", "1e", "1.2.3", "--1", "1-2", ".5", "5.", "-", "e5"]
CELLS += ["0.1", "0.30000000000000004", "123456789012345678901234567890", "١", "nan(1)", "1 2"]
CELLS += ['"7"', '"7,5"', '"a""b"', "9007199254740993", "2.2250738585072011e-308"]


def as_read(path):
    """What reading a file comes to, as text, so that -0, NaN and errors count too."""
    try:
        data = read(path, features="a,b")
    except ValueError as error:
        return str(error)
    return data.X.dtype, data.X.tobytes(), data.y.tolist(), data.domains.tolist()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\n\n"])
@pytest.mark.parametrize("delimiter", [",", "\t"])
@pytest.mark.parametrize("package", ["pyarrow", "numpy"])
@pytest.mark.parametrize("cell", CELLS)
def test_quick_and_careful_readings_of_csv_agree(
    cell, package, delimiter, ending, tmp_path, monkeypatch
):
    if package == "pyarrow":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    path = tmp_path / "a.csv"
    rows = [["a", "b", "y", "site"], ["1", cell, "0", "n"], ["2", "3", "1", "s"]]
    path.write_text(ending.join(map(delimiter.join, rows)) + ending, newline="")
    with monkeypatch.context() as patch:
        if package == "numpy":
            patch.setitem(sys.modules, "pyarrow", None)
        quick = as_read(path)
    monkeypatch.setattr(_csv.PlainCells, "of", lambda *_: None)
    assert quick == as_read(path)


def test_only_what_needs_care_is_read_with_care(tmp_path, monkeypatch):
    careful = Mock(side_effect=AssertionError)
    monkeypatch.setattr(_csv._BlockParser, "_split_all", careful)
    rows = "1, 2.5 ,0,n\r\n,NA,1,s\r\n-3e2,?,0,Zürich"
    (tmp_path / "a.csv").write_text(f"a,b,y,site\r\n{rows}", newline="", encoding="utf-8")
    data = read(tmp_path / "a.csv")
    nan = np.nan
    assert np.array_equal(data.X, [[1, 2.5], [nan, nan], [-300, nan]], equal_nan=True)
    assert data.domains.tolist() == ["n", "s", "Zürich"]
    (tmp_path / "a.csv").write_text("a,b,y,site\n1,x,0,n\n2,3,1,s\n")
    with pytest.raises(AssertionError):
        read(tmp_path / "a.csv")


def test_rows_that_are_quoted_further_down_are_read_on(tmp_path, monkeypatch):
    monkeypatch.setattr(_csv, "_BYTES_AT_A_TIME", 16)
    rows = "".join(f"{i},{i / 4},{i % 2},n\n" for i in range(20))
    (tmp_path / "a.csv").write_text(f'a,b,y,site\n{rows}20,"5",0,"s, t"\n21,5.25,1,s\n')
    data = read(tmp_path / "a.csv")
    assert data.X.tolist() == [[i, i / 4] for i in range(22)]
    assert data.domains.tolist() == ["n"] * 20 + ["s, t", "s"]


FEATURES = 20_000
HEADS = [name for name in skdare.__all__ if name.endswith(("Classifier", "Regressor", "CV"))]


@pytest.fixture(scope="module")
def expression():
    """Fewer rows than a thousandth of the features, in three domains."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(18, FEATURES)).astype(np.float32)
    y = np.arange(18) % 2
    X[:, :500] += y[:, None]
    return X, y, np.arange(18) // 6


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", HEADS)
def test_no_head_makes_a_matrix_of_features_by_features(name, expression, tmp_path):
    X, y, domains = expression
    target = y if "Classifier" in name else y + X[:, 0]
    tracemalloc.start()
    head = getattr(skdare, name)().fit(X, target, domains=domains)
    head.predict(X)
    if hasattr(head, "adapt"):
        head.adapt(X[:12]).predict(X)
        head.diagnose(X[:12])
        if head._domain_fit.declined is None:
            stream = head.adapter()
            for row in range(12):
                stream.partial_fit(X[row : row + 1])
            stream.head_.predict(X)
            stream.save(tmp_path / "stream")
            head.resume(tmp_path / "stream").partial_fit(X[:2]).head_.predict(X)
    head.save(tmp_path / "head")
    skdare.load(tmp_path / "head").predict(X)
    skdare.inspect_file(tmp_path / "head")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50 * X.astype(np.float64).nbytes < FEATURES**2
