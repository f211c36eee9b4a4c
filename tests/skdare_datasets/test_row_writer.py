"""Rows on their way out: `rows_to` a file, whole or not at all, or to a stream."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from skdare.datasets import rows_to


def test_parquet_on_a_stream_is_whole_when_its_writer_ends():
    pq = pytest.importorskip("pyarrow.parquet", reason="Parquet needs pyarrow")
    stream = io.BytesIO()
    with rows_to(stream, kind=".parquet") as writer:
        writer.write({"id": np.arange(3)})
    assert pq.read_table(io.BytesIO(stream.getvalue())).to_pydict() == {"id": [0, 1, 2]}


@pytest.mark.parametrize("name", ["p.csv", "p.csv.gz", "p.jsonl", "p.parquet"])
def test_rows_that_fail_halfway_leave_nothing_and_what_was_there(tmp_path, name):
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    (tmp_path / name).write_text("old")

    def fail() -> None:
        with rows_to(tmp_path / name) as writer:
            writer.write({"id": np.arange(3)})
            raise RuntimeError("halfway")

    with pytest.raises(RuntimeError, match="halfway"):
        fail()
    assert (tmp_path / name).read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_link_stays_one_and_what_it_points_to_is_replaced(tmp_path):
    (tmp_path / "p.csv").write_text("old")
    (tmp_path / "latest.csv").symlink_to("p.csv")
    with rows_to(tmp_path / "latest.csv") as writer:
        writer.write({"id": np.arange(1)})
    assert (tmp_path / "latest.csv").is_symlink()
    assert (tmp_path / "p.csv").read_text() == "id\n0\n"


@pytest.mark.parametrize("kind", ["csv", ".csv.gz", ".xls"])
def test_a_stream_of_no_known_kind_is_refused(kind):
    chosen = rows_to(io.StringIO(), kind=kind)
    with pytest.raises(ValueError, match=r"choose \.csv, \.jsonl, \.parquet"), chosen:
        pass


def test_a_label_with_a_carriage_return_stays_in_its_row(tmp_path):
    labels = np.array(["a\rb", "a\nb", 'a"b', "plain"])
    with rows_to(tmp_path / "p.csv") as rows:
        rows.write({"label": labels, "score": np.arange(4)})
    with (tmp_path / "p.csv").open(newline="") as file:
        read = list(csv.DictReader(file))
    assert [row["label"] for row in read] == labels.tolist()
    assert (tmp_path / "p.csv").read_bytes().endswith(b"plain,3\n")
