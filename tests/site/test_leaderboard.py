"""One function adds a row to the table of frozen features, and the sets can be fetched."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from small_originals import AS_PUBLISHED, ORIGINALS, put_by_hand

ROOT = Path(__file__).resolve().parents[2]
MAJORITY = '''
import numpy as np

def majority(X, y, domains, new_X):
    """The most frequent label."""
    values, counts = np.unique(y, return_counts=True)
    return np.full(len(new_X), values[np.argmax(counts)])
'''


@pytest.fixture(autouse=True)
def beside_the_benchmarks(monkeypatch):
    """Scripts import their neighbours."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")


@pytest.fixture
def data(tmp_path) -> Path:
    """A folder with one set: two classes, well apart, the first a little more frequent."""
    rng = np.random.default_rng(0)
    y = np.tile([0, 0, 0, 1, 1], 18)
    X = rng.normal(size=(90, 3)) + 6.0 * y[:, None]
    folder = tmp_path / "data" / "vowel"
    folder.mkdir(parents=True)
    np.savez(folder / "vowel.npz", X=X, y=y, domains=np.repeat(["a", "b", "c"], 30))
    return tmp_path / "data"


def board(capsys, data: Path, *more: str) -> dict[str, list[str]]:
    """Cells of the printed table by method, all but the seconds."""
    import leaderboard

    leaderboard.main(["--data", str(data), "--sets", "vowel", *more])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| `")]
    cells = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: row[1:-1] for row in cells}


def written(tmp_path: Path, text: str) -> Path:
    """A stranger's file."""
    path = tmp_path / "mine.py"
    path.write_text(text)
    return path


def test_a_function_in_any_file_adds_a_row(capsys, data, tmp_path):
    from leaderboard_methods import METHODS

    mine = written(tmp_path, MAJORITY)
    rows = board(capsys, data, "--method", f"{mine}:majority")
    assert rows.keys() == {"majority"} | {method.__name__ for method in METHODS}
    assert rows["majority"] == ["60.0", "60.0"]
    assert rows["logistic_regression"] == ["100.0", "100.0"]
    assert list(rows)[-1] == "majority"


def test_what_is_known_is_not_measured_again_unless_the_function_changes(capsys, data, tmp_path):
    records = tmp_path / "scores.jsonl"
    mine = written(tmp_path, MAJORITY)
    options = ("--records", str(records), "--method", f"{mine}:majority")
    first = board(capsys, data, *options)
    known = records.read_text()
    assert board(capsys, data, *options) == first
    assert records.read_text() == known
    written(tmp_path, MAJORITY.replace("np.argmax", "np.argmin"))
    assert board(capsys, data, *options)["majority"] == ["40.0", "40.0"]
    added = [json.loads(line) for line in records.read_text()[len(known) :].splitlines()]
    assert {record["method"] for record in added} == {"majority"}
    assert len(added) == 3


def test_a_method_that_works_in_place_leaves_the_data_of_the_next_one(capsys, data, tmp_path):
    spoil = """
def spoil(X, y, domains, new_X):
    X[:] = 0.0
    y[:] = 1
    domains[:] = "a"
    return y[:1].repeat(len(new_X))
"""
    mine = written(tmp_path, MAJORITY + spoil)
    rows = board(capsys, data, "--method", f"{mine}:spoil", "--method", f"{mine}:majority")
    assert rows["spoil"] == ["40.0", "40.0"]
    assert rows["majority"] == ["60.0", "60.0"]


def test_a_method_with_the_name_of_another_is_refused_first(data, tmp_path):
    import leaderboard

    mine = written(tmp_path, MAJORITY.replace("majority", "dare"))
    records = tmp_path / "scores.jsonl"
    options = ["--data", str(data), "--records", str(records)]
    with pytest.raises(SystemExit, match="2 methods are called dare"):
        leaderboard.main([*options, "--method", f"{mine}:dare"])
    assert not records.exists()


def test_what_is_known_is_measured_again_if_rows_have_other_domains(capsys, data, tmp_path):
    folder = data / "vowel"
    with np.load(folder / "vowel.npz") as file:
        arrays = dict(file)
    mine = written(tmp_path, MAJORITY)
    records = tmp_path / "scores.jsonl"
    options = ("--records", str(records), "--domains", "1", "--method", f"{mine}:majority")
    board(capsys, data, *options)
    known = len(records.read_text().splitlines())
    # The domain held out has the same rows as before.
    arrays["domains"][arrays["domains"] == "c"] = np.tile(["c", "d"], 15)
    np.savez(folder / "vowel.npz", **arrays)
    board(capsys, data, *options)
    assert len(records.read_text().splitlines()) == 2 * known


def test_what_failed_is_tried_again_at_the_next_start(capsys, data, tmp_path):
    needed = tmp_path / "needed"
    body = f"    open({str(needed)!r}).close()\n    return [0] * len(new_X)\n"
    mine = written(tmp_path, f"def lucky(X, y, domains, new_X):\n{body}")
    options = ("--records", str(tmp_path / "scores.jsonl"), "--method", f"{mine}:lucky")
    assert board(capsys, data, *options)["lucky"] == ["–", "–"]
    needed.touch()
    assert board(capsys, data, *options)["lucky"] == ["60.0", "60.0"]
    needed.unlink()
    assert board(capsys, data, *options)["lucky"] == ["60.0", "60.0"]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("raise RuntimeError('no such luck')", "RuntimeError: no such luck"),
        ("return [0]", "returned an array of shape (1,)"),
    ],
)
def test_a_method_that_fails_has_no_score_and_says_why(body, problem, capsys, data, tmp_path):
    import leaderboard

    mine = written(tmp_path, f"def broken(X, y, domains, new_X):\n    {body}\n")
    place = f"{mine}:broken"
    leaderboard.main(["--data", str(data), "--sets", "vowel", "--method", place])
    out = capsys.readouterr().out
    assert "| `broken` | – | – | – |" in out
    assert f"- broken on vowel a: {problem}" in out
    assert "| `dare` | 100.0 |" in out


@pytest.mark.parametrize(
    ("place", "problem"), [("none.py:f", "no file none.py"), ("mine.py:f", "has no function f")]
)
def test_a_method_that_is_not_there_is_refused_first(place, problem, data, tmp_path, monkeypatch):
    import leaderboard

    written(tmp_path, MAJORITY)
    monkeypatch.chdir(tmp_path)
    records = tmp_path / "scores.jsonl"
    with pytest.raises(SystemExit, match=problem):
        leaderboard.main(["--data", str(data), "--method", place, "--records", str(records)])
    assert not records.exists()


def put_all_by_hand(home: Path) -> None:
    """All public sets in miniature."""
    for name, content in ORIGINALS.items():
        put_by_hand(home, name, content)


def test_every_set_that_can_be_fetched_has_the_arrays_of_a_prepared_one(tmp_path):
    from originals import READERS, Originals

    put_all_by_hand(tmp_path)
    for folder in READERS:
        arrays = Originals(tmp_path).arrays(folder)
        assert len(arrays["X"]) == len(arrays["y"]) == len(arrays["domains"]) > 0
    assert {"batch10"}.isdisjoint(Originals(tmp_path).arrays("gas_drift")["domains"])
    assert np.isfinite(Originals(tmp_path).arrays("support2")["X"]).all()


def test_folds_of_fetched_sets_are_those_of_the_loaders(tmp_path):
    from originals import SETS
    from real_data import LOADERS, available, data_root, standardized_folds

    put_all_by_hand(tmp_path)
    root = data_root(f"fetch:{tmp_path}")
    assert available(root) == list(SETS)
    assert set(SETS) < LOADERS.keys()
    gas, heart = (standardized_folds(name, root) for name in ("gas", "heart"))
    assert [fold.held_out for fold in gas] == ["batch1", "batch2"]
    assert [fold.held_out for fold in heart] == ["cleveland", "hungarian", "va"]
    assert heart[0].train.X.shape == (4, 10)
    assert np.isfinite(heart[0].train.X).all()


def test_a_set_without_a_publisher_is_named(tmp_path):
    from real_data import data_root, folds

    with pytest.raises(SystemExit, match="ravdess cannot be fetched; --sets can name office, gas"):
        folds("ravdess", data_root(f"fetch:{tmp_path}"))


@pytest.mark.slow
@pytest.mark.parametrize("name", AS_PUBLISHED)
def test_arrays_of_the_tables_come_back_from_the_form_they_are_published_in(
    name, real_data, tmp_path
):
    from real_data import LOADERS, data_root, read_arrays

    source, write = AS_PUBLISHED[name]
    prepared = real_data(f"{source}/{source}.npz").parents[1]
    put_by_hand(tmp_path, source, write(read_arrays(prepared, source)))
    (ours,) = LOADERS[name](prepared)
    (theirs,) = LOADERS[name](data_root(f"fetch:{tmp_path}"))
    np.testing.assert_array_equal(ours.X, theirs.X)
    np.testing.assert_array_equal(ours.domains, theirs.domains)
    renamed = {ours.y[i]: theirs.y[i] for i in range(len(ours.y))}
    assert [renamed[label] for label in ours.y] == theirs.y.tolist()
