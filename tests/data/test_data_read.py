"""One table, every format, the same rows; and every mistake in one sentence."""

from __future__ import annotations

import csv
import gzip
import io
import math
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from skdare.data import DomainData, Store, read, stream, to_store
from skdare.data.read import read_text
from skdare.errors import DataNote, InputError
from small_tables import ARRAYS, NAMES, TEXT, WRITERS, D, N, cells, dense, npz, roles, table

pytestmark = pytest.mark.filterwarnings("ignore::skdare.errors.DataNote")


def text_file(folder, content: str | bytes, name: str = "a.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def notes_of(path, **options) -> tuple[DomainData, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data = read(path, **options)
    return data, [str(each.message) for each in caught]


# -- The same rows ---------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["classification", "codes", "regression"])
@pytest.mark.parametrize("form", WRITERS)
def test_every_format_gives_the_same_rows_to_the_bit(form, task, tmp_path):
    data = table(task)
    back = read(WRITERS[form](tmp_path, data), **roles(form))
    assert dense(back.X).tobytes() == data.X.tobytes()
    assert back.feature_names.tolist() == NAMES
    for name, values in data.labels.items():
        np.testing.assert_array_equal(getattr(back, name), values)
        assert getattr(back, name).dtype.kind == values.dtype.kind
    assert back.name.lower() == "table"
    assert back.task == ("regression" if task == "regression" else "classification")


@pytest.mark.parametrize("form", WRITERS)
def test_the_fingerprint_is_that_of_the_rows_and_not_of_the_file(form, tmp_path):
    data = table()
    data = replace(data, X=scipy.sparse.csr_array(data.X)) if form == "sparse npz" else data
    back = read(WRITERS[form](tmp_path, data), **roles(form))
    assert back.fingerprint() == data.fingerprint()
    other = replace(data, y=np.where(np.arange(N) == 5, "cat", data.y))
    assert other.fingerprint() != data.fingerprint()


@pytest.mark.parametrize("rows", [5, 100])
@pytest.mark.parametrize("form", WRITERS)
def test_a_stream_is_one_read_in_parts_with_features_in_the_order_of_the_head(form, rows, tmp_path):
    data = table("codes")
    path = WRITERS[form](tmp_path, data)
    parts = list(stream(path, features=NAMES[::-1], target="y", domains=None, rows=rows))
    assert max(part.X.shape[0] for part in parts) == min(rows, N)
    X = np.concatenate([dense(part.X) for part in parts])
    assert X.tobytes() == np.ascontiguousarray(data.X[:, ::-1]).tobytes()
    assert np.concatenate([part.y for part in parts]).tolist() == data.y.tolist()
    assert np.concatenate([part.domains for part in parts]).tolist() == data.domains.tolist()


@pytest.mark.parametrize("form", ["commas", "parquet", "npz", "store"])
def test_a_stream_needs_no_target_and_ignores_what_the_head_does_not_know(form, tmp_path):
    (part,) = stream(WRITERS[form](tmp_path, table()), features=NAMES[:2])
    np.testing.assert_array_equal(dense(part.X), table().X[:, :2])
    assert part.y is None
    assert part.domains is None


def test_a_stream_from_the_standard_input_is_that_of_a_file(tmp_path, monkeypatch):
    content = WRITERS["commas"](tmp_path, table()).read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    parts = list(stream("-", features=NAMES, rows=7))
    assert [part.X.shape[0] for part in parts] == [7, 7, 7, 3]
    assert {part.name for part in parts} == {"stdin"}


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["1,2,3"] * 8 + ["1,2"], "row 9 of 'the standard input' has 2 cells, and the header 3"),
        (["1,2,3"] * 8 + ["1,2,3,4"], "row 9 has more cells than the header"),
        (["1,2,3"] * 8 + ["1,x,3"], "column 'width' has 'x' in row 9"),
        ([], "has no rows"),
    ],
)
def test_the_standard_input_is_checked_as_a_file_is(lines, words, monkeypatch):
    content = "\n".join([",".join(NAMES), *lines, ""]).encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    with pytest.raises(InputError, match=words):
        list(stream("-", features=NAMES, rows=4))


def test_cells_of_several_lines_stay_together_on_the_standard_input(monkeypatch):
    content = b"note,height,width,mass\n" + b'"a\n\nb",1,2,3\n\n' * 5
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    parts = list(stream("-", features=NAMES, rows=2))
    assert [note for part in parts for note in part.ids["note"]] == ["a\n\nb"] * 5


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_a_sparse_matrix_is_read_in_any_layout(layout, tmp_path):
    from small_tables import sparse_npz

    data = table(missing=False)
    back = read(sparse_npz(tmp_path, data, layout))
    assert back.X.format == "csr"
    np.testing.assert_array_equal(back.X.toarray(), data.X)


@pytest.mark.parametrize("list_size", [-1, D])
def test_a_column_of_lists_is_many_features(list_size, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = table()
    columns = cells(data).drop(columns=NAMES)
    lists = pa.array(data.X.tolist(), pa.list_(pa.float64(), list_size))
    rows = pa.Table.from_pandas(columns).append_column("embedding", lists)
    pq.write_table(rows, tmp_path / "a.parquet")
    back = read(tmp_path / "a.parquet")
    assert back.feature_names.tolist() == ["patient", *(f"embedding_{j}" for j in range(D))]
    np.testing.assert_array_equal(back.X[:, 1:], data.X)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64", ">f4", "bool"])
def test_numbers_of_any_type_keep_their_values(dtype, tmp_path):
    X = (np.arange(12).reshape(4, 3) % 100).astype(dtype)
    if dtype == "int64":
        X[0, 0] = (1 << 24) + 1  # which float32 has not
    np.savez(tmp_path / "a.npz", X=X, y=[0, 1, 0, 1])
    back = read(tmp_path / "a.npz").X
    assert back.dtype.kind == "f"
    assert back.dtype.isnative
    np.testing.assert_array_equal(back, X)


def test_parquet_of_other_types_of_numbers_is_numbers(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {
        "decimal": pa.array([1, 2, 4, 3], pa.decimal128(20, 3)),
        "truth": pa.array([True, None, False, True]),
        "hole": pa.array([1.5, None, 2.5, 3.0]),
        "small": pa.array([3, 2, 1, 2], pa.int16()),
        "empty": pa.nulls(4),
        "y": pa.array([0, 1, 0, 1]),
        "site": pa.array(list("aabb")).dictionary_encode(),
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    back = read(tmp_path / "a.parquet")
    nan = np.nan
    expected = [[1, 1, 1.5, 3, nan], [2, nan, nan, 2, nan], [4, 0, 2.5, 1, nan], [3, 1, 3, 2, nan]]
    np.testing.assert_array_equal(back.X, expected)
    assert back.domains.tolist() == list("aabb")


def frames(X: np.ndarray):
    yield "pandas", pd.DataFrame(X, columns=NAMES)
    yield "nullable", pd.DataFrame(X, columns=NAMES).convert_dtypes()
    import pyarrow as pa

    yield "Arrow", pa.table({name: X[:, j] for j, name in enumerate(NAMES)})
    try:
        import polars
    except ImportError:
        return
    yield "polars", polars.DataFrame({name: X[:, j] for j, name in enumerate(NAMES)})


def test_data_frames_of_every_library_are_the_same_table():
    data = table()
    for library, frame in frames(data.X):
        made = DomainData.of(frame, data.y, domains=data.domains, groups=data.groups)
        assert made.fingerprint() == data.fingerprint(), library


# -- Exact numbers ---------------------------------------------------------------------------------


def test_every_float_is_read_exactly(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.integers(1 << 63, size=4000, dtype=np.uint64).view(np.float64).reshape(-1, 4)
    X[~np.isfinite(X)] = 1.0
    lines = [",".join(map(repr, row)) + f",{i % 2}" for i, row in enumerate(X.tolist())]
    path = text_file(tmp_path, "a,b,c,d,y\n" + "\n".join(lines))
    assert read(path).X.tobytes() == X.tobytes()


CELLS = ["1", "-0", "+2.5", " 3 ", "1e5", "1E-300", "4.9e-324", "1e400", "inf", "nan", "", "NA"]
CELLS += [" NA ", "?", "1_2", "0x10", "1e", "--1", ".5", "5.", "-", "e5", "0.30000000000000004"]
CELLS += ["123456789012345678901234567890", "١", "1 2", '"7"', '"7,5"', '"a""b"', "1,5", "True"]
CELLS += ["9007199254740993", "2.2250738585072011e-308", "007", "\x0c7", "\u20037"]


@pytest.mark.parametrize("cell", CELLS)
def test_the_quick_reading_of_wide_tables_is_that_of_others(cell, tmp_path, monkeypatch):
    ending = "\r\n" if CELLS.index(cell) % 2 else "\n"
    rows = ["a,b,y,site", f"1,{cell},0,n", *(f"2,{j},1,s" for j in range(25))]
    path = text_file(tmp_path, ending.join([*rows, ""]))

    def outcome() -> object:
        try:
            data = read(path)
        except InputError as error:
            return str(error)
        return data.X.tobytes(), data.feature_names.tolist(), data.y.tolist(), data.left_out

    usual = outcome()
    monkeypatch.setattr("skdare.data.csv_source._WIDE", 1)
    assert outcome() == usual


@pytest.mark.parametrize("wide", [1, 256])
def test_a_label_that_is_no_text_is_refused_in_wide_and_narrow_tables(wide, tmp_path, monkeypatch):
    monkeypatch.setattr("skdare.data.csv_source._WIDE", wide)
    path = text_file(tmp_path, b"a,b,y,site\n1,2,0,n\n1,3,1,\xed\xa0\x80\n")
    with pytest.raises(InputError, match="is not text in UTF-8: it has the byte 0xed"):
        read(path)


def test_a_wide_table_is_read_in_every_format(tmp_path):
    X = np.random.default_rng(0).normal(size=(6, 2000))
    frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(2000)])
    data = DomainData.of(frame, np.arange(6) % 2, domains=list("aabbcc"))
    from skdare.data import write

    for kind in ("csv", "npz", "parquet", "feather"):
        write(data, tmp_path / f"wide.{kind}")
        assert read(tmp_path / f"wide.{kind}").X.tobytes() == X.tobytes()


# -- Roles -----------------------------------------------------------------------------------------

PATIENTS = "patient_id,hospital,age,bp,note,diagnosis\n" + "".join(
    f"{9000 + i},{i % 3 + 1},{20 + i * 7 % 30},{90 + i * 11 % 40}.5,{['ok', 'ill'][i % 2]},"
    f"{['sick', 'well'][i // 2 % 2]}\n"
    for i in range(60)
)


def test_columns_have_the_roles_that_their_names_say(tmp_path):
    data, notes = notes_of(text_file(tmp_path, PATIENTS), target="diagnosis")
    assert data.feature_names.tolist() == ["age", "bp"]
    assert data.domains[:4].tolist() == [1, 2, 3, 1]
    assert dict(data.columns) == {"target": "diagnosis", "domains": "hospital"}
    assert list(data.ids) == ["note", "patient_id"]
    assert dict(data.left_out) == {"patient_id": "is called like an id", "note": "is text"}
    assert "'patient_id' is called like an id (keep=patient_id uses it" in notes[0]
    assert "text is not used as features: 'note'; encode it as numbers" in notes[1]


@pytest.mark.parametrize(
    ("options", "features"),
    [
        ({"keep": ["patient_id"]}, ["patient_id", "age", "bp"]),
        ({"keep": ["pat*"]}, ["patient_id", "age", "bp"]),
        ({"drop": ["b*"]}, ["age"]),
        ({"domains": ""}, ["age", "bp"]),
        ({"groups": "patient_id"}, ["age", "bp"]),
    ],
)
def test_columns_are_kept_and_dropped_by_name(options, features, tmp_path):
    data = read(text_file(tmp_path, PATIENTS), target="diagnosis", **options)
    assert data.feature_names.tolist() == features
    assert (data.domains is None) == (options.get("domains") == "")
    assert (data.groups is None) == ("groups" not in options)


def test_the_order_of_columns_does_not_matter_to_a_head(tmp_path):
    frame = cells(table("codes"))
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame[frame.columns[::-1]].assign(more=1.5).to_csv(tmp_path / "b.csv", index=False)
    (a,), (b,) = (stream(tmp_path / name, features=NAMES) for name in ("a.csv", "b.csv"))
    assert a.X.tobytes() == b.X.tobytes()


@pytest.mark.parametrize("form", ["commas", "parquet", "npz", "store"])
def test_a_feature_that_is_not_there_is_named(form, tmp_path):
    path = WRITERS[form](tmp_path, table())
    with pytest.raises(InputError, match=r"4 features, and .* 'heigth'; did you mean 'height'"):
        list(stream(path, features=[*NAMES, "heigth"]))


def test_arrays_without_names_are_taken_by_place(tmp_path):
    np.savez(tmp_path / "a.npz", X=table().X)
    (part,) = stream(tmp_path / "a.npz", features=NAMES)
    assert part.feature_names.tolist() == NAMES
    with pytest.raises(InputError, match="fitted to 2 features, and a has 3 features"):
        list(stream(tmp_path / "a.npz", features=NAMES[:2]))


def counter(values) -> str:
    """A table of which column ``n`` has these values."""
    rng = np.random.default_rng(0)
    return "n,a,y,site\n" + "".join(
        f"{value},{rng.normal()},{i % 2},{'ab'[i % 2]}\n" for i, value in enumerate(values)
    )


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (range(40), "counts the rows"),
        (range(5000, 5040), "counts the rows"),
        (np.random.default_rng(1).permutation(40), "counts the rows"),
        (np.repeat(np.arange(20), 2), "counts the rows"),  # anew in each domain
        ([5, 7] * 20, "repeats the domain"),
        ([5.5, 7.25] * 20, "repeats the domain"),
        (np.random.default_rng(1).integers(30, size=40), None),
        ([5] * 40, None),
        (np.arange(40) / 8, None),
        ([5, 7] * 19 + [5, 5], None),
    ],
)
def test_columns_that_count_rows_or_repeat_the_domain_are_no_features(values, reason, tmp_path):
    data = read(text_file(tmp_path, counter(values)))
    assert data.left_out.get("n") == reason
    assert ("n" in data.feature_names) == (reason is None)


@pytest.mark.parametrize(
    "name", ["id", "patient_id", "RowID", "Unnamed: 0", "uuid", "row", "index"]
)
def test_columns_called_like_ids_are_no_features(name, tmp_path):
    values = np.random.default_rng(1).integers(30, size=40)
    data = read(text_file(tmp_path, counter(values).replace("n,a", f"{name},a", 1)))
    assert data.left_out == {name: "is called like an id"}
    data = read(text_file(tmp_path, counter(values / 8).replace("n,a", f"{name},a", 1)))
    assert data.left_out == {}  # no id is a fraction


@pytest.mark.parametrize("name", ["valid", "grid", "period", "acidity", "RAPID_index_value"])
def test_names_that_merely_contain_id_are_features(name, tmp_path):
    values = np.random.default_rng(1).integers(30, size=40)
    data = read(text_file(tmp_path, counter(values).replace("n,a", f"{name},a", 1)))
    assert name in data.feature_names


@pytest.mark.parametrize(
    ("cells_", "labels"),
    [
        (["007", "7", "07"], ["007", "7", "07"]),
        (["1", "2", "1"], [1, 2, 1]),
        (["1.5", "2", "1.5"], ["1.5", "2.0", "1.5"]),
        (["1.0", "2.0", "1.0"], [1, 2, 1]),
        ([" a", "b ", "a"], ["a", "b", "a"]),
        (["1", "a", "2"], ["1", "a", "2"]),
        (["None", "a", "b"], ["None", "a", "b"]),
        (["9" * 20, "1", "2"], ["9" * 20, "1", "2"]),
        (["1e300", "1", "2"], ["1e+300", "1.0", "2.0"]),
    ],
)
def test_domains_are_whole_numbers_or_text(cells_, labels, tmp_path):
    rows = "".join(f"{i}.5,{i % 2},{cell}\n" for i, cell in enumerate(cells_))
    assert read(text_file(tmp_path, f"a,y,site\n{rows}")).domains.tolist() == labels


SHORT = "a,b,y,site\n1,2,0,n\n3,4,1,s\n"


def test_rows_without_a_label_are_refused_or_left_out_and_counted(tmp_path):
    path = text_file(tmp_path, SHORT + "5,N/A,,s\n7,8,1,\n9,1,1,s\n")
    with pytest.raises(InputError, match=r"'y' is empty in 1 row, first in row 3; .*missing=drop"):
        read(path)
    data, notes = notes_of(path, missing="drop")
    assert data.X.tolist() == [[1, 2], [3, 4], [9, 1]]
    assert data.y.tolist() == [0, 1, 1]
    assert data.y.dtype.kind == "i"
    assert notes == ["left out 2 rows without a label"]


# -- Mistakes --------------------------------------------------------------------------------------

SICK = {"target": "diagnosis"}
MANY = "".join(f"{i},{i},1,s\n" for i in range(30))
REFUSED = [
    ("a.csv", PATIENTS, {}, "no column has a usual name for the target; use target="),
    ("a.csv", PATIENTS, {"target": "diagnose"}, "did you mean 'diagnosis'?"),
    ("a.csv", PATIENTS, {**SICK, "domains": "HOSPITL"}, "did you mean 'hospital'?"),
    ("a.csv", PATIENTS, {**SICK, "drop": ["zz*"]}, "no column is called 'zz*'"),
    ("a.csv", PATIENTS, {**SICK, "domains": "diagnosis"}, "given as target and as domains"),
    ("a.csv", PATIENTS, {**SICK, "keep": ["note"]}, "column 'note' is text; encode it"),
    ("a.csv", PATIENTS, {**SICK, "keep": ["age"], "drop": ["a*"]}, "is to be dropped and kept"),
    ("a.csv", PATIENTS, {**SICK, "drop": ["age", "bp"]}, "no feature is left"),
    ("a.csv", PATIENTS, {**SICK, "missing": "ignore"}, "missing is 'ignore'; use refuse or drop"),
    ("utf16.csv", PATIENTS.encode("utf-16"), SICK, "UTF-16; save it as UTF-8"),
    ("latin.csv", PATIENTS.replace("ok", "é").encode("latin-1"), SICK, "the byte 0xe9"),
    ("nul.csv", PATIENTS.replace("9003", "90\x0003"), SICK, r"has '90\x0003' in row 4"),
    ("nul.csv", PATIENTS.replace("age", "a\x00ge"), SICK, "has a NUL byte"),
    ("empty.csv", "", {}, "is empty"),
    ("blank.csv", "\n\n", {}, "is empty"),
    ("header.csv", "a,b,y\n", {}, "has no rows"),
    ("numbers.csv", "1,2\n3,4\n", {}, "must name the columns"),
    ("double.csv", "a,a,y\n1,2,3\n", {}, "two columns called 'a'"),
    ("unnamed.csv", "a,,y\n1,2,3\n", {}, "column 2 of 'unnamed.csv' has no name"),
    ("cut.csv", SHORT + "5,6\n", {}, "row 3 of 'cut.csv' has 2 cells, and the header 4"),
    ("long.csv", SHORT + "5,6,0,n,9\n", {}, "row 3 has 5 cells, and the header 4"),
    ("first.csv", "a,b,y,site\n1,2,0,n,9\n", {}, "row 1 has more cells than the header"),
    ("quote.csv", 'a,y,site\n1,0,"n\n', {}, "a quotation mark is not closed"),
    ("quote.csv", '"a\nb",y,site\n1,0,n\n', {}, "ends within quotation marks"),
    ("word.csv", SHORT + MANY + "x,1,1,s\n", {}, "column 'a' has 'x' in row 33, and a number is"),
    ("words.csv", SHORT + MANY + "x,1,1,s\nz,1,1,s\n", {}, "'x' in row 33 and 1 more such cell"),
    ("inf.csv", SHORT + "1,-inf,1,s\n", {}, "column 'b' has infinity in row 3"),
    ("inf.csv", SHORT.replace("0,n", "0.5,n") + "1,1,inf,s\n", {}, "'y' has infinity in row 3"),
    ("two.csv", "a,y,label,site\n1,0,1,n\n", {}, "target may be 'y', 'label'"),
    ("text.csv", "a,y,site\nu,0,x\n", {}, "no column of numbers to use as a feature"),
    (
        "note.csv",
        SHORT + f"1,2,{'a' * 300},n\n",
        {},
        "text of 300 characters in row 3, which is no",
    ),
    ("none.csv", "a,y,site\n1,,x\n", {"missing": "drop"}, "no row has all of its labels"),
    ("cut.csv.gz", gzip.compress(PATIENTS.encode(), mtime=0)[:90], SICK, "end-of-stream"),
    ("mac.csv", "a,y,site\r1,0,x\r", {}, "carriage returns"),
    ("table.xlsx", "x", {}, "cannot read 'table.xlsx'; save it as CSV"),
    ("X.npy", "x", {}, "cannot read 'X.npy'; save the arrays X, y and domains"),
    ("table.doc", "x", {}, "its name must end in .csv, .tsv, .parquet, .feather, .npz"),
    ("table.npz.gz", "x", {}, "its name must end in .csv"),
]


@pytest.mark.parametrize(("name", "content", "options", "words"), REFUSED)
def test_what_cannot_be_read_is_refused_in_one_sentence(name, content, options, words, tmp_path):
    with pytest.raises(InputError) as raised:
        read(text_file(tmp_path, content, name), **options)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("cells_", "words"),
    [
        (["108,000", "64,500"], "thousands separators, as in '108,000'; write 108000, or 108.000"),
        (["1,234,567", "64,500"], "thousands separators, as in '1,234,567'; write 1234567"),
        (["1,234.5", "12"], "thousands separators, as in '1,234.5'; write 1234.5"),
        (["1,5", "2,25"], "decimal commas, as in '1,5'; write decimal points: 1.5"),
        (["0,125", "0,250"], "decimal commas"),
        (["1,500", "2,25"], "decimal commas"),
        (["-1,5", "3"], "decimal commas, as in '-1,5'"),
        (["1,5e3", "3"], "decimal commas"),
    ],
)
@pytest.mark.parametrize("delimiter", [",", ";"])
def test_commas_in_numbers_are_explained_and_never_guessed(cells_, words, delimiter, tmp_path):
    file = io.StringIO()
    writer = csv.writer(file, delimiter=delimiter)
    writer.writerow(["price", "a", "y", "site"])
    writer.writerows([cells_[i % 2], i * 0.3, i % 3, "ab"[i % 2]] for i in range(30))
    with pytest.raises(InputError, match="column 'price' has ") as raised:
        read(text_file(tmp_path, file.getvalue()))
    assert words in str(raised.value)


def test_a_long_note_in_one_row_does_not_fill_the_memory(tmp_path):
    rows = [f"{i}.5,{i % 2},{'ab'[i % 2]},{'x' * (1 if i else 100_000)}" for i in range(1000)]
    data = read(text_file(tmp_path, "a,y,site,note\n" + "\n".join(rows)))
    assert data.ids["note"].nbytes < 100_000
    assert data.ids["note"][0] == "x" * 100_000


def test_words_with_commas_are_no_numbers(tmp_path):
    lines = ['"a, b",1.5,0,n', '"c, d",2.5,1,s']
    data = read(text_file(tmp_path, "what,a,y,site\n" + "\n".join(lines)))
    assert data.feature_names.tolist() == ["a"]


@pytest.mark.parametrize("form", [form for form in WRITERS if form not in TEXT or form == "gz"])
def test_a_file_cut_short_is_refused_by_name(form, tmp_path):
    path = WRITERS[form](tmp_path, table())
    broken = sorted(path.glob("features*"))[-1] if path.is_dir() else path
    broken.write_bytes(broken.read_bytes()[: broken.stat().st_size * 2 // 3])
    with pytest.raises(InputError, match=broken.name):
        read(path)


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".tsv", ".csv.gz", ".parquet", ".feather"])
@pytest.mark.parametrize("content", [b"", b"\0", b"\xff\xfe nothing \0 of the kind", b"PK\3\4" * 9])
def test_a_file_of_another_kind_is_refused_by_name(suffix, content, tmp_path):
    path = text_file(tmp_path, content, f"a{suffix}")
    with pytest.raises(InputError, match=f"a{suffix}"):
        read(path)


@pytest.mark.parametrize("kind", ["nothing", "folder", "pipe"])
def test_a_path_that_leads_to_no_file_is_refused(kind, tmp_path):
    import os

    path = tmp_path / "a.csv"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        if not hasattr(os, "mkfifo"):
            pytest.skip("the system has no named pipes")
        os.mkfifo(path)
    words = {"nothing": "there is no file", "folder": "a folder", "pipe": "a pipe or a device"}
    with pytest.raises(InputError, match=words[kind]):
        read(path)


def test_arrays_that_do_not_make_a_table_are_refused(tmp_path):
    path = tmp_path / "a.npz"
    for arrays, words in [
        ({"A": np.eye(4), "B": np.eye(4)}, r"holds 'A \(4, 4\)', 'B \(4, 4\)'; call the matrix"),
        ({}, "holds nothing"),
        ({"X": np.zeros((4, 0)), "y": np.arange(4)}, r"shape \(4, 0\)"),
        ({"X": np.zeros((0, 4)), "y": np.zeros(0)}, "has no rows"),
        ({"X": np.full((4, 2), "a")}, "dtype <U1"),
        ({"X": np.full((4, 2), 1j)}, "dtype complex128"),
        ({"X": np.full((4, 2), np.inf), "y": np.arange(4)}, "'x0' has infinity in row 1"),
        ({"X": np.array([[None]])}, "holds Python objects"),
        ({"X": np.eye(4), "y": np.arange(3)}, "no column has a usual name for the target"),
        ({"X": np.eye(4), "y": [1, 2, np.nan, 4]}, "column 'y' is empty in 1 row, first in row 3"),
        ({"X": np.eye(4), "y": [1, 2], "feature_names": list("aabc")}, "two columns called 'a'"),
        ({"X": np.empty((2, 1 << 23), np.int8), "y": [1, 2]}, "1 to 4,194,304 columns"),
    ]:
        np.savez(path, **arrays)
        with pytest.raises(InputError, match=words):
            read(path)


@pytest.mark.parametrize("name", ["X", "EMB", "feats"])
def test_the_matrix_is_found_by_a_usual_name_or_because_it_is_the_only_one(name, tmp_path):
    held = {name: np.eye(4), "Label": [1, 2, 1, 2], "site": list("aabb"), "made": "2024"}
    np.savez(tmp_path / "a.npz", **held)
    data = read(tmp_path / "a.npz")
    assert data.y.tolist() == [1, 2, 1, 2]
    assert data.domains.tolist() == list("aabb")
    assert read(tmp_path / "a.npz", target="site", domains="Label").y.tolist() == list("aabb")


def sparse_file(path, **changes) -> None:
    matrix = scipy.sparse.csr_array(np.eye(6))
    arrays = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}
    arrays |= {"shape": np.array([6, 6]), "format": b"csr", "y": np.arange(6) % 2} | changes
    np.savez(path, **arrays)


@pytest.mark.parametrize("layout", [b"csr", b"csc"])
@pytest.mark.parametrize(
    "changes",
    [
        {"indices": np.array([0, 1, -2, 3, 4, 5])},
        {"indices": np.array([0, 1, 1 << 30, 3, 4, 5])},
        {"indices": np.array([0, 1, 1 << 62, 3, 4, 5])},
        {"indices": np.arange(5)},
        {"indices": np.arange(6.0)},
        {"indices": np.array(list("abcdef"))},
        {"indptr": np.array([0, 1, 2, 3, 4, 5, 600])},
        {"indptr": np.array([0, 3, 2, 3, 4, 5, 6])},
        {"indptr": np.array([1, 1, 2, 3, 4, 5, 6])},
        {"indptr": np.arange(6)},
        {"shape": np.array([6, 1 << 60])},
        {"shape": np.array([1 << 60, 6])},
        {"shape": np.array([6, -6])},
        {"shape": np.array([6])},
        {"shape": np.array([6.0, np.nan])},
        {"data": np.array([None] * 6)},
        {"data": np.arange(6) * 1j},
        {"data": np.zeros((6, 6))},
        {"format": b"dia"},
        {"format": b"\xff"},
    ],
)
def test_a_sparse_matrix_that_is_none_is_refused_before_it_is_used(changes, layout, tmp_path):
    path = tmp_path / "a.npz"
    sparse_file(path, **{"format": layout} | changes)
    for action in (read, lambda path: list(stream(path, features=list("abcdef")))):
        with pytest.raises(InputError, match=r"a\.npz"):
            action(path)


def test_entries_of_a_sparse_matrix_out_of_its_bounds_are_refused_as_coordinates(tmp_path):
    held = {"data": np.ones(2), "row": [0, 9], "col": [0, 1], "shape": [2, 2], "format": b"coo"}
    np.savez(tmp_path / "a.npz", **held, y=[0, 1])
    with pytest.raises(InputError, match=r"a\.npz"):
        read(tmp_path / "a.npz")


# -- Tables in memory ------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["y", "domains", "groups"])
@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (["a", None, "b"], "has no label in row 1"),
        (["a", math.nan, "b"], "has no label in row 1"),
        ([1.5, math.nan, 2.0], "has no label in row 1"),
        (np.array(["a", None, "b"], dtype=object), "has no label in row 1"),
        (pd.Series(["a", pd.NA, "b"]), "has no label in row 1"),
        (["a", 1, "b"], "labels of several types"),
        ([[1], [2]], "has 2 labels but X has 3 rows|has shape"),
        ([1.0, math.inf, 2.0], "has infinity"),
        (["a"], "has 1 labels but X has 3 rows"),
        ("abc", "pass one label per row"),
    ],
)
def test_labels_that_are_missing_or_of_several_types_are_refused_in_words(role, labels, words):
    with pytest.raises(InputError, match=f"{role} .*({words})"):
        DomainData.of(np.eye(3), **{role: labels})


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.zeros(3), r"shape \(3,\)"),
        ([["a", "b"]], "dtype <U1"),
        (np.zeros((2, 2), complex), "dtype complex128"),
        (pd.DataFrame({"a": [1.0], "colour": ["red"]}), "not numbers: 'colour'; encode them"),
    ],
)
def test_rows_that_are_no_numbers_are_refused_in_words(X, words):
    with pytest.raises(InputError, match=words):
        DomainData.of(X)


@pytest.mark.parametrize(
    ("y", "task"),
    [
        (["a", "b"] * 50, "classification"),
        ([True, False] * 50, "classification"),
        (np.arange(100) % 20, "classification"),
        (np.arange(100) % 21, "regression"),
        (np.arange(100) % 20.0, "classification"),
        (np.arange(100) / 2, "regression"),
    ],
)
def test_the_task_is_guessed_from_the_target(y, task):
    assert DomainData.of(np.zeros((100, 1)), y).task == task


def test_groups_tie_domains_if_a_chain_of_them_joins_all():
    X, domains = np.zeros((6, 1)), list("aabbcc")
    assert DomainData.of(X, domains=domains, groups=[0, 1, 1, 2, 2, 3]).groups_tie_all_domains
    assert not DomainData.of(X, domains=domains, groups=[0, 1, 1, 2, 3, 4]).groups_tie_all_domains


# -- Conversion ------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["commas", "gz", "parquet", "npz", "sparse npz"])
def test_a_file_converted_to_a_store_is_the_same_table(form, tmp_path):
    data = table("codes", missing=form != "sparse npz")
    path = WRITERS[form](tmp_path, data)
    to_store(path, tmp_path / "store", dtype="float64", rows=5, **roles(form))
    back = read(tmp_path / "store")
    assert back.fingerprint() == data.fingerprint()


def test_a_conversion_leaves_out_what_reading_does_and_rows_without_labels(tmp_path):
    lines = counter(range(40)).splitlines()
    lines[1:8] = [line.rsplit(",", 2)[0] + ",," for line in lines[1:8]]
    path = text_file(tmp_path, "\n".join(lines))
    with pytest.raises(InputError, match="'y' is empty in 5 rows, first in row 1"):
        to_store(path, tmp_path / "refused", rows=5)
    with pytest.raises(InputError, match="missing is 'keep'"):
        to_store(path, tmp_path / "refused", missing="keep")
    to_store(path, tmp_path / "store", rows=40, missing="drop")
    data, back = read(path, missing="drop"), read(tmp_path / "store")
    assert back.feature_names.tolist() == data.feature_names.tolist() == ["a"]
    np.testing.assert_array_equal(back.X, data.X.astype(np.float32))


def test_a_conversion_that_was_stopped_goes_on_to_the_same_rows(tmp_path, monkeypatch):
    data = table("codes")
    path = WRITERS["commas"](tmp_path, data)
    writer, appended = "skdare.data.store.StoreWriter", []
    monkeypatch.setattr("skdare.data.store._SHARD_BYTES", 5 * 8 * D)
    from skdare.data.store import StoreWriter

    append = StoreWriter.append

    def stopping(self, X, /, **columns):
        appended.append(len(X))
        if len(appended) == 4:
            raise KeyboardInterrupt
        append(self, X, **columns)

    monkeypatch.setattr(f"{writer}.append", stopping)
    with pytest.raises(KeyboardInterrupt):
        to_store(path, tmp_path / "store", dtype="float64", rows=4, groups="patient")
    assert Store.open(tmp_path / "store", unfinished=True).rows == 10
    with pytest.raises(InputError, match="unfinished, with 10 rows"):
        read(tmp_path / "store")
    to_store(path, tmp_path / "store", dtype="float64", rows=4, groups="patient")
    assert read(tmp_path / "store").fingerprint() == data.fingerprint()


def test_cells_of_a_file_of_labels_are_read_as_they_are_written(tmp_path):
    path = text_file(tmp_path, "quality\n005\n\n1.50\nNA\n")
    assert read_text(path)["quality"].tolist() == ["005", "1.50", "NA"]
    path = text_file(tmp_path, "id;quality\na;1,5\n")
    assert read_text(path).to_dict("records") == [{"id": "a", "quality": "1,5"}]
    with pytest.raises(InputError, match="is not CSV"):
        read_text(npz(tmp_path, table()))


def test_features_of_a_store_stay_on_disk(tmp_path):
    for form in ("store", "shards"):
        folder = tmp_path / form
        folder.mkdir()
        X = read(ARRAYS[form](folder, table())).X
        assert isinstance(X, np.memmap) == (form == "store")
        rows = [5, 2, -1, 17]
        np.testing.assert_array_equal(X[rows], table().X[rows])
        some = read(folder / "table", drop=["width"]).X
        np.testing.assert_array_equal(some[3:20], table().X[3:20, [0, 2]])


def test_notes_are_warnings_that_point_at_the_callers_line(tmp_path):
    path = text_file(tmp_path, PATIENTS)
    with pytest.warns(DataNote) as caught:
        read(path, target="diagnosis")
    assert {each.filename for each in caught} == {__file__}
