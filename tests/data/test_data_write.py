"""Written tables read back the same, and no spreadsheet runs what they hold."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from skdare.cli.outputs import TABLES
from skdare.data import DomainData, RowWriter, read, source, write, write_store
from skdare.errors import InputError
from small_tables import NAMES, N, dense, table

pytestmark = pytest.mark.filterwarnings("ignore::skdare.errors.DataNote")

FORMATS = ["t.csv", "t.tsv", "t.csv.gz", "t.csv.bz2", "t.tsv.xz", "t.parquet", "t.feather", "t.npz"]
ROWS = ["p.csv", "p.csv.gz", "p.tsv", "p.jsonl", "p.parquet"]


@pytest.mark.parametrize("task", ["classification", "codes", "regression"])
@pytest.mark.parametrize("name", FORMATS)
def test_a_written_table_reads_back_the_same(name, task, tmp_path):
    data = table(task)
    write(data, tmp_path / name)
    back = read(tmp_path / name, groups="groups")
    assert back.fingerprint() == data.fingerprint()
    assert dense(back.X).tobytes() == data.X.tobytes()


@pytest.mark.parametrize("name", FORMATS)
def test_a_sparse_table_reads_back_the_same_numbers(name, tmp_path):
    data = table(missing=False)
    write(replace(data, X=scipy.sparse.csr_array(data.X)), tmp_path / name)
    back = read(tmp_path / name, groups="groups")
    assert scipy.sparse.issparse(back.X) == name.endswith("npz")
    np.testing.assert_array_equal(dense(back.X), data.X)


def test_a_table_on_disk_is_written_as_one_in_memory(tmp_path):
    write_store(tmp_path / "store", table())
    write(read(tmp_path / "store"), tmp_path / "t.csv")
    assert read(tmp_path / "t.csv", groups="groups").fingerprint() == table().fingerprint()


def test_every_format_that_is_read_is_written_and_is_a_table_to_commands():
    assert {f".{name.split('.')[1]}" for name in FORMATS} == set(source.FORMATS)
    assert {*source.FORMATS, *source.COMPRESSED} == TABLES


LABELS = ["a,b", 'a"b', "a;b", "é ☃", "x" * 200, "a\tb", "a  b", "1e5x", "-", "a\nb", "a\rb"]


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.parquet", "t.npz"])
def test_labels_of_any_text_come_back(name, tmp_path):
    y = np.array(LABELS * 2)
    data = DomainData.of(np.eye(len(y)), y, domains=np.arange(len(y)) % 2)
    write(data, tmp_path / name)
    assert read(tmp_path / name).y.tolist() == y.tolist()


def test_a_table_that_could_not_be_read_back_is_not_written(tmp_path):
    X = pd.DataFrame(np.eye(3), columns=["a", "y", "b"])
    with pytest.raises(InputError, match="a feature is called 'y', as a label is"):
        write(DomainData.of(X, [0, 1, 0]), tmp_path / "t.csv")
    for name in ("t.xlsx", "t", "t.parquet.gz", "t.npy"):
        with pytest.raises(InputError, match=r"its name must end in \.csv, \.tsv"):
            write(table(), tmp_path / name)
    with pytest.raises(InputError, match="there is no folder"):
        write(table(), tmp_path / "nowhere" / "t.csv")
    assert not list(tmp_path.iterdir())


def rows_of(path) -> pd.DataFrame:
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    if path.suffix == ".jsonl":
        return pd.DataFrame([json.loads(line) for line in path.read_text().splitlines()])
    return pd.read_csv(path, sep="\t" if path.suffix == ".tsv" else ",")


@pytest.mark.parametrize("step", [1, 7, N])
@pytest.mark.parametrize("name", ROWS)
def test_rows_written_in_parts_are_one_table(name, step, tmp_path):
    columns = {"id": np.arange(N), "=name": table().y, "score": table().X[:, 0]}
    with RowWriter(tmp_path / name) as writer:
        for start in range(0, N, step):
            writer.write({name: v[start : start + step] for name, v in columns.items()})
    pd.testing.assert_frame_equal(rows_of(tmp_path / name), pd.DataFrame(columns))
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ROWS)
def test_rows_that_fail_halfway_leave_nothing_and_what_was_there(name, tmp_path):
    (tmp_path / name).write_text("old")

    def fail() -> None:
        with RowWriter(tmp_path / name) as writer:
            writer.write({"id": np.arange(3)})
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert (tmp_path / name).read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == [name]


FORMULAS = ["=1+1", "+1", "-1+2", "@SUM(A1)", "\tx", "\rx"]


@pytest.mark.parametrize("name", ["p.csv", "p.tsv", "p.csv.gz"])
def test_no_spreadsheet_runs_a_cell_or_a_header(name, tmp_path):
    columns = {"=name": [*FORMULAS, "plain"], "score": np.arange(-3.0, 4.0)}
    with RowWriter(tmp_path / name, spreadsheet_safe=True) as writer:
        writer.write(columns)
    back = rows_of(tmp_path / name)
    assert back.columns[0] == "'=name"
    assert back["'=name"].tolist() == [*(f"'{text}" for text in FORMULAS), "plain"]
    assert back["score"].tolist() == columns["score"].tolist()  # numbers stay numbers


def test_a_label_with_a_line_end_stays_in_its_row(tmp_path):
    labels = ["a\rb", "a\nb", 'a"b', "plain"]
    with RowWriter(tmp_path / "p.csv") as writer:
        writer.write({"label": labels, "score": np.arange(4)})
    with (tmp_path / "p.csv").open(newline="") as file:
        assert [row["label"] for row in csv.DictReader(file)] == labels


def test_columns_that_change_their_type_are_refused_where_a_format_cannot_hold_it(tmp_path):
    def fail() -> None:
        with RowWriter(tmp_path / "p.parquet") as writer:
            writer.write({"id": [1, 2]})
            writer.write({"id": ["a", "b"]})

    with pytest.raises(InputError, match=r"column 'id' has .* which Parquet cannot hold; write to"):
        fail()
    assert not list(tmp_path.iterdir())
    with RowWriter(tmp_path / "p.csv") as writer:
        writer.write({"id": [1, 2]})
        writer.write({"id": ["a", "b"]})
    assert rows_of(tmp_path / "p.csv")["id"].tolist() == ["1", "2", "a", "b"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("p.xlsx", "its name must end in .csv, .csv.gz, .tsv, .jsonl, .parquet"),
        ("p.tsv.gz", "its name must end in"),
        ("nowhere/p.csv", "there is no folder '.*nowhere'"),
        ("folder.csv", "it is a folder; give the name of a file"),
    ],
)
def test_a_name_that_cannot_be_written_is_refused_before_any_row(name, words, tmp_path):
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match=words):
        RowWriter(tmp_path / name)


def test_rows_on_the_standard_output_are_csv(capsys):
    with RowWriter("-") as writer:
        writer.write({name: [1.5] for name in NAMES})
        writer.write({name: [2.5] for name in NAMES})
    assert capsys.readouterr().out == "height,width,mass\n1.5,1.5,1.5\n2.5,2.5,2.5\n"
