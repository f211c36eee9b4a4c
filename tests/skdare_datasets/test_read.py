"""Readers: one table, every format, the same data; and every mistake in one clear sentence."""

from __future__ import annotations

import json
import os
import pickle
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from skdare.checking import check_data
from skdare.datasets import (
    _csv,
    guess_task,
    make_latent_domains,
    read,
    write_store,
)
from skdare.datasets._domain_data import fingerprint
from small_tables import WRITERS, D, N, parquet, table, write_one_shard


@pytest.fixture
def save(tmp_path) -> Callable[..., Path]:
    """Write arrays to an npz: those of the table, some of them replaced or (None) left out."""

    def write(**arrays) -> Path:
        data = table("codes")
        held = {"X": data.X, "y": data.y, "domain": data.domains} | arrays
        np.savez(tmp_path / "a.npz", **{k: v for k, v in held.items() if v is not None})
        return tmp_path / "a.npz"

    return write


@pytest.fixture
def text(tmp_path) -> Callable[[str], Path]:
    def write(lines: str) -> Path:
        (tmp_path / "a.csv").write_text(lines, encoding="utf-8")
        return tmp_path / "a.csv"

    return write


@pytest.mark.parametrize("task", ["classification", "codes", "regression"])
@pytest.mark.parametrize("form", WRITERS)
def test_every_format_gives_the_same_data(form, task, tmp_path):
    data = table(task)
    back = read(WRITERS[form](tmp_path, data))
    np.testing.assert_array_equal(back.X, data.X)
    assert back.X.dtype == data.X.dtype
    for role in ("y", "domains", "split"):
        np.testing.assert_array_equal(getattr(back, role), getattr(data, role))
        assert getattr(back, role).dtype.kind == getattr(data, role).dtype.kind
    assert back.name == "table"
    assert fingerprint(back) == fingerprint(data)


# Text that ends with a line looks whole, so a plain CSV cannot tell.
@pytest.mark.parametrize("form", [f for f in WRITERS if f == "csv.gz" or "csv" not in f])
def test_a_file_cut_short_is_refused_by_name(form, tmp_path):
    path = WRITERS[form](tmp_path, table())
    broken = path / "features-00000.npy" if path.is_dir() else path
    if form in ("store of two shards", "store of version 1"):
        broken = sorted(path.glob("labels-*1.npy"))[0]
    broken.write_bytes(broken.read_bytes()[: broken.stat().st_size * 2 // 3])
    with pytest.raises(ValueError, match=broken.name):
        read(path)


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".csv.gz", ".parquet", ".safetensors", ".pt"])
@pytest.mark.parametrize("content", [b"", b"\xff\xfe nothing \x00 of the kind"])
def test_a_file_of_another_kind_is_refused_by_name(suffix, content, tmp_path):
    path = tmp_path / f"a{suffix}"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"a{suffix}"):
        read(path)


def test_a_file_that_is_none_of_torch_s_is_refused_without_torch(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    (tmp_path / "a.pt").write_bytes(b"X,y,domain\n")
    with pytest.raises(ValueError, match=r"a\.pt cannot be read as a dict of tensors"):
        read(tmp_path / "a.pt")


@pytest.mark.parametrize("kind", [{}, {"_use_new_zipfile_serialization": False}])
def test_both_of_torch_s_formats_are_read(tmp_path, kind):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    data = table()
    held = {"X": torch.tensor(data.X), "y": data.y.tolist(), "domain": data.domains.tolist()}
    torch.save(held, tmp_path / "a.pt", **kind)
    np.testing.assert_array_equal(read(tmp_path / "a.pt").X, data.X)


@pytest.mark.parametrize(
    ("form", "package", "extra"),
    [
        ("parquet", "pyarrow", "parquet"),
        ("safetensors", "safetensors", "safetensors"),
        ("torch", "torch", "torch"),
    ],
)
def test_a_missing_package_says_what_to_install(form, package, extra, tmp_path, monkeypatch):
    path = WRITERS[form](tmp_path, table())
    for name in [n for n in sys.modules if n.split(".")[0] == package]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=rf"pip install 'skdare\[{extra}\]'"):
        read(path)


def test_a_path_that_leads_nowhere_or_to_an_unknown_kind_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"a\.npz does not exist"):
        read(tmp_path / "a.npz")
    (tmp_path / "a.xlsx").write_text("x")
    with pytest.raises(ValueError, match=r"cannot read .*a\.xlsx: its name must end in \.npz, "):
        read(tmp_path / "a.xlsx")


def test_names_are_guessed_whatever_their_case_and_can_be_given(save):
    path = save(X=None, y=None, domain=None, EMB=np.eye(4), Label=[1, 2, 1, 2], site=[0, 0, 1, 1])
    assert read(path).y.tolist() == [1, 2, 1, 2]
    assert read(path, target="site", domains="Label").y.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("arrays", "options", "message"),
    [
        (
            {"y": None, "gas": np.arange(N)},
            {},
            r"no target found in .*a\.npz: it has X \(12 × 3 numbers\), domain \(12 texts\), gas "
            r"\(12 numbers\); name one with target=",
        ),
        ({}, {"domains": "place"}, r"no 'place' for domains in .*: it has X \(12 × 3 numbers\)"),
        ({"X": None, "A": np.eye(N)}, {"features": "X"}, r"no 'X' for features"),
        ({"X": None}, {}, r"no features found"),
        (
            {"X": None, "A": np.eye(N), "B": np.eye(N)},
            {},
            r"2 candidates for features: A \(12 ",
        ),
        ({"feats": np.eye(N)}, {}, r"2 candidates for features: X \(12 × 3 numbers\), feats"),
        ({"label": np.arange(N)}, {}, r"2 candidates for target: y .*, label .*; name one with"),
        ({"batch": np.arange(N)}, {}, r"2 candidates for domains: domain .*, batch "),
        ({"y": np.arange(9)}, {}, r"rows do not agree: features 'X' .* has 12, target 'y' .* 9"),
        ({"y": np.eye(N)}, {}, r"'y' .* has shape \(12, 12\); one label per row"),
        ({"X": np.zeros((N, 2, 2))}, {}, r"'X' .* has shape \(12, 2, 2\); features must be rows"),
        ({"X": np.zeros((N, 0))}, {}, r"shape \(12, 0\)"),
        ({"X": np.full((N, 2), "a")}, {}, r"dtype <U1; features must be numbers"),
        ({"X": np.full((N, 2), 1j)}, {}, r"dtype complex128; features must be numbers"),
        ({"y": np.array([None] * N)}, {}, r"y in .*a\.npz is an object array"),
        ({"y": np.arange(N) * 1j}, {}, r"dtype complex128; labels must be"),
        (
            {"y": np.where(np.arange(N) % 4, 1.0, np.nan)},
            {},
            r"in 3 of 12 rows, the first 'nan' in",
        ),
        (
            {"y": np.where(np.arange(N) > 3, "a", "")},
            {},
            r"'y' .* 4 of 12 rows.*row 0 .*; leave",
        ),
        ({"domain": np.where(np.arange(N) > 1, "a", "NA")}, {}, r"'domain' .* in 2 of 12 rows"),
        ({"split": np.arange(N)}, {}, r"split 'split' .* has the value 2; use 0 or train"),
        ({"fold": np.full(N, "later")}, {}, r"split 'fold' .* has the value 'later'"),
        ({"X": np.zeros((0, 2)), "y": [], "domain": []}, {}, r"no rows"),
    ],
)
def test_what_cannot_be_used_is_refused_in_words(arrays, options, message, save):
    with pytest.raises(ValueError, match=message):
        read(save(**arrays), **options)


def test_infinity_is_refused_with_its_place(save, visit_in_chunks_of):
    X = np.zeros((N, D), dtype=np.float16)
    X[7, 2] = -np.inf
    visit_in_chunks_of(5)
    with pytest.raises(ValueError, match=r"infinity in row 7 \(counted from 0\), column 2"):
        read(save(X=X))


def test_infinity_in_a_table_is_refused_with_the_name_of_its_column(text):
    with pytest.raises(ValueError, match=r"features in .*a\.csv has infinity in line 3, .* 'b'"):
        read(text("a,b,y,site\n1,2,0,n\n1,-inf,1,s\n"))


def test_a_candidate_of_another_length_is_passed_over(save):
    assert len(read(save(label=np.arange(3), d=np.array(7))).y) == N


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("uint8", "float32"),
        ("int64", "float32"),
        ("bool", "float32"),
        ("float16", "float16"),
        ("float32", "float32"),
        (">f4", "float32"),
        ("float64", "float64"),
    ],
)
def test_floats_keep_their_type_and_integers_become_float32(given, kept, save):
    X = np.arange(N * D).reshape(N, D).astype(given)
    back = read(save(X=X)).X
    assert back.dtype == np.dtype(kept)
    np.testing.assert_array_equal(back, X)


@pytest.mark.parametrize("form", ["safetensors", "torch"])
def test_bfloat16_becomes_float32(form, tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    data = table("codes")
    held = {
        "X": torch.tensor(data.X).to(torch.bfloat16),
        "y": torch.tensor(data.y),
        "d": torch.tensor(data.y),
    }
    if form == "torch":
        torch.save(held, tmp_path / "a.pth")
    else:
        pytest.importorskip("safetensors.torch").save_file(held, tmp_path / "a.safetensors")
    back = read(next(tmp_path.iterdir()))
    assert back.X.dtype == np.float32
    np.testing.assert_array_equal(back.X, held["X"].float().numpy())


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (np.array([b"a", b"b"] * 6), ["a", "b"]),
        (np.array([[1.0], [2.0]] * 6), [1, 2]),
        (np.array([0.5, 2.0] * 6), ["0.5", "2.0"]),
        (np.array([True, False] * 6), [1, 0]),
    ],
)
def test_domains_become_strings_or_integers(given, kept, save):
    domains = read(save(domain=given)).domains
    assert domains.dtype.kind in "Ui"
    assert domains[:2].tolist() == kept


@pytest.mark.parametrize(
    "values",
    [[0, 1], [0.0, 1.0], [False, True], ["train", "test"], ["in", "out"], ["Train", "VALID"]],
)
def test_a_split_is_told_by_any_of_its_words(values, save):
    split = read(save(fold=np.array(values * 6))).split
    assert split.tolist() == [False, True] * 6


def test_a_split_that_is_something_else_can_be_left_out(save):
    assert read(save(fold=np.arange(N)), split="").split is None


def test_feature_names_beside_the_features_are_kept(save):
    assert read(save(feature_names=["a", "b", "c"])).feature_names == ["a", "b", "c"]
    assert read(save(feature_names=["a", "b"])).feature_names is None


# Tables of columns


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_columns_are_chosen_by_name_list_or_pattern(form, tmp_path):
    data = table()
    path = WRITERS[form](tmp_path, data)
    assert read(path).feature_names == ["feat_0", "feat_1", "feat_2"]
    assert read(path, features="feat_2, feat_0").feature_names == ["feat_2", "feat_0"]
    assert read(path, features="feat_[12]").feature_names == ["feat_1", "feat_2"]
    np.testing.assert_array_equal(read(path, features="feat_0").X, data.X[:, :1])
    assert "y" not in read(path, features="feat_*,*d").feature_names
    with pytest.raises(ValueError, match=r"no 'other_.' for features"):
        read(path, features="feat_0,other_*")


def test_text_and_second_labels_are_left_out_of_the_features_with_a_warning(text):
    path = text("a,note,site,hospital,y\n1,x,0,h,0\n2,y,1,g,1\n")
    with pytest.warns(UserWarning, match="note, site left out of the features"):
        assert read(path, domains="hospital").feature_names == ["a"]
    with pytest.raises(ValueError, match=r"column 'note' of .* is text"):
        read(path, domains="hospital", features="a,note")
    assert read(path, domains="hospital", features="a,site").X.tolist() == [[1, 0], [2, 1]]


def test_missing_cells_of_features_are_nan(text):
    X = read(text("a,b,y,site\n,NA,0,n\n?,nan,1,s\n3, 4 ,1,s\n")).X
    np.testing.assert_array_equal(X, [[np.nan, np.nan], [np.nan, np.nan], [3, 4]])


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["0", "-7"], [0, -7]),
        (["1.5", "2"], [1.5, 2.0]),
        (["007", "7"], ["007", "7"]),
        (["1_0", "2_0"], ["1_0", "2_0"]),
        (["a", " b"], ["a", "b"]),
    ],
)
def test_labels_in_text_are_numbers_only_where_all_are(cells, kind, text):
    rows = "".join(f"{i},{cell},{i}\n" for i, cell in enumerate(cells))
    assert read(text("a,y,d\n" + rows)).y.tolist() == kind


def test_a_column_that_turns_into_text_late_is_text_throughout(text, monkeypatch):
    monkeypatch.setattr(_csv, "_BYTES_AT_A_TIME", 8)
    path = text("a,code,y,site\n1,01,0,n\n2,02,1,s\n3,03,1,s\n4,x4,0,n\n5,05,1,n\n")
    contents = _csv.read_csv(path, lambda name: name in ("y", "site"))
    a, code = contents.load(["a", "code"])
    assert code.tolist() == ["01", "02", "03", "x4", "05"]
    assert a.tolist() == [1, 2, 3, 4, 5]


def test_a_blank_line_and_a_cell_of_two_lines_count_as_lines_but_not_as_rows(text):
    path = text('a,y,site\n\n1,0,"n\no"\n2,1\n')
    with pytest.raises(ValueError, match=r"line 5 of .* has 2 cells"):
        read(path)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("1,2,3\n4,5,6\n", "starts with numbers; a header"),
        ("a,,y\n1,2,3\n", "column 1 of .* has no name"),
        ("a,a,y\n1,2,3\n", "2 columns called 'a'"),
        ("a,y,site\n1,2,n\n1,2\n", r"line 3 of .* has 2 cells, but the header has 3"),
        ("a,y,site\n1,0,n\n2,,s\n", r"target 'y' in .* in 1 of 2 rows.*line 3"),
        ("a,y,site\n", "no rows"),
        ("site,y\nn,1\ns,2\n", r"no features found in .*: it has site \(text\), y;"),
        ('a,y,site\n1,0,n\n2,1,"s\n', "cannot be read as CSV"),
        ("\n\n", "empty"),
    ],
)
def test_a_csv_that_cannot_be_used_is_refused_in_words(lines, message, text):
    with pytest.raises(ValueError, match=message):
        read(text(lines))


def test_an_unnamed_first_column_numbers_the_rows(text):
    assert read(text(",a,y,site\n0,5,0,n\n1,6,1,s\n")).feature_names == ["a"]


def test_parquet_lists_of_several_lengths_are_refused(tmp_path):
    pa, pq = parquet()
    held = {"x": [[1.0], [1.0, 2.0]], "y": [0, 1], "site": ["a", "b"]}
    pq.write_table(pa.table(held), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"x in .*a\.parquet has lists of several lengths"):
        read(tmp_path / "a.parquet")


@pytest.mark.parametrize("values", [["a", None, "b"], [1, None, 2], [True, None, False]])
def test_missing_labels_in_parquet_are_refused(values, tmp_path):
    pa, pq = parquet()
    columns = {"a": [1.0, 2.0, 3.0], "y": values, "site": ["a", "b", "b"]}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"target 'y' in .* in 1 of 3 rows.*row 1"):
        read(tmp_path / "a.parquet")


def _save(folder, suffix, y):
    """A table with this target; None is missing."""
    path = folder / f"a{suffix}"
    X = np.arange(2.0 * len(y)).reshape(-1, 2)
    site = ["n", "s"] * (len(y) // 2)
    if suffix == ".npz":
        np.savez(path, X=X, y=np.array(y, dtype=float), site=site)
    elif suffix == ".csv":
        rows = [
            f"{a},{b},{'' if t is None else t},{s}" for (a, b), t, s in zip(X, y, site, strict=True)
        ]
        path.write_text("\n".join(["a,b,y,site", *rows]))
    else:
        pa, pq = parquet()
        pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1], "y": y, "site": site}), path)
    return path


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".parquet"])
@pytest.mark.parametrize("kind", [int, float])
def test_a_target_is_the_same_with_rows_that_lack_it_left_out_and_without_them(
    suffix, kind, tmp_path
):
    # Whole numbers of 25 values in 900 rows: classes if they are integers, else a measurement.
    whole = [kind(t) for t in np.arange(900) % 25]
    expected = read(_save(tmp_path, suffix, whole))
    path = _save(tmp_path, suffix, [None, None, *whole])
    with pytest.warns(UserWarning, match="2 of 902 rows have no label"):
        dropped = read(path, missing="drop")
    assert dropped.y.dtype == expected.y.dtype
    assert not isinstance(dropped.y, np.ma.MaskedArray)
    np.testing.assert_array_equal(dropped.y, expected.y)
    task = guess_task(expected.y)
    assert task == ("classification" if kind is int and suffix != ".npz" else "regression")
    found = read(path, missing="keep")
    assert check_data(found.X, found.y, domains=found.domains).task == task


# The feature store


def test_a_store_of_one_shard_stays_on_disk(tmp_path):
    assert isinstance(read(write_one_shard(tmp_path, table())).X, np.memmap)


def test_a_store_keeps_types_and_feature_names(tmp_path):
    data = replace(table("codes"), X=table().X.astype(np.float16), feature_names=["a", "b", "c"])
    back = read(write_one_shard(tmp_path, data))
    assert back.X.dtype == np.float16
    assert back.feature_names == ["a", "b", "c"]


def test_a_store_is_never_overwritten_nor_left_half_written(tmp_path, monkeypatch):
    store = write_one_shard(tmp_path, table())
    with pytest.raises(FileExistsError, match="exists already"):
        write_store(store, table())
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_store(tmp_path / "other", table())
    assert list(tmp_path.iterdir()) == [store]


def test_data_that_could_not_be_read_back_is_not_written(tmp_path):
    with pytest.raises(ValueError, match="rows do not agree: X has 12, y has 3"):
        write_store(tmp_path / "a", replace(table(), y=np.arange(3)))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "zarr"}, r"manifest\.json has format 'zarr'"),
        ({"version": 3}, r"has version 3, and this skdare reads up to 2; install a newer one"),
        ({"rows": 99}, "has 99 rows, but its shards have 12"),
        ({"features": 4}, r"features-00000\.npy has shape \(12, 3\), but .* gives \(12, 4\)"),
        ({"dtype": "float32"}, r"features-00000\.npy has dtype float64, but"),
        ({"shards": []}, "needs shards"),
        ({"domains": ["one"]}, r"code 1 in row 1 \(counted from 0\), but only 1 names"),
        ({"domains": "north"}, "a JSON list is needed"),
        ({"classes": None, "rows": None}, "has None rows"),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(change, message, tmp_path):
    store = write_one_shard(tmp_path, table())
    manifest = json.loads((store / "manifest.json").read_text())
    (store / "manifest.json").write_text(json.dumps(manifest | change))
    with pytest.raises(ValueError, match=message):
        read(store)


@pytest.mark.parametrize("name", ["manifest.json", "features-00000.npy", "split-00000.npy"])
def test_a_store_that_lacks_a_file_is_refused_by_its_name(name, tmp_path):
    store = write_one_shard(tmp_path, table())
    (store / name).unlink()
    with pytest.raises(ValueError, match=name):
        read(store)


def test_a_manifest_lacking_a_key_is_refused(tmp_path):
    store = write_one_shard(tmp_path, table())
    manifest = json.loads((store / "manifest.json").read_text())
    del manifest["shards"]
    (store / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match=r"manifest\.json lacks shards"):
        read(store)


# The task, the fingerprint, and the data itself


@pytest.mark.parametrize(
    ("y", "task"),
    [
        (["a", "b"] * 500, "classification"),
        ([True, False], "classification"),
        (np.arange(20), "classification"),
        (np.arange(21), "regression"),
        (np.arange(10_000) % 65, "classification"),
        (np.arange(10_000) % 101, "regression"),
        ([0.0, 1.0, 2.0], "classification"),
        ([0.0, 1.5], "regression"),
    ],
)
def test_the_task_follows_from_the_values(y, task):
    assert guess_task(np.array(y)) == task


def test_a_fingerprint_changes_with_any_value_and_not_with_storage(tmp_path, visit_in_chunks_of):
    data = table()
    print_ = fingerprint(data)
    X, y = data.X.copy(), data.y.copy()
    X[-1, -1] += 1
    y[0] = "cow"
    others = [
        replace(data, X=X),
        replace(data, X=data.X.reshape(D, N).T),
        replace(data, X=data.X.astype(np.float32)),
        replace(data, y=y),
        replace(data, domains=data.domains[::-1]),
        replace(data, split=None),
        replace(data, split=~data.split),
    ]
    assert len({print_, *map(fingerprint, others)}) == 1 + len(others)
    assert fingerprint(replace(data, name="b", X=np.asfortranarray(data.X))) == print_
    assert fingerprint(replace(data, y=data.y.astype("U40"))) == print_
    visit_in_chunks_of(5)
    assert fingerprint(read(write_one_shard(tmp_path, data))) == print_


def test_data_survives_pickling():
    data = make_latent_domains(n_rows=5, random_state=0)
    back = pickle.loads(pickle.dumps(data))
    assert fingerprint(back) == fingerprint(data)
    assert back.split is None


def test_a_sparse_matrix_is_read_with_labels_in_files_of_their_own(tmp_path):
    X = np.eye(6) * np.arange(6.0)
    paths = {name: tmp_path / f"{name}.npy" for name in ("gas", "site")}
    sparse.save_npz(tmp_path / "X.npz", sparse.csr_matrix(X))
    np.save(paths["gas"], np.arange(6) % 2)
    np.save(paths["site"], np.array(list("nnnsss")))
    data = read(tmp_path / "X.npz", target=str(paths["gas"]), domains=str(paths["site"]))
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, np.arange(6) % 2)
    assert list(data.domains) == list("nnnsss")
    np.save(paths["gas"], np.arange(5))
    with pytest.raises(ValueError, match=r"gas.npy.*has 5"):
        read(tmp_path / "X.npz", target=str(paths["gas"]), domains=str(paths["site"]))
