"""`skdare diagnose` and `skdare theory`: what a user sees."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

from command_line import run, run_json
from skdare import theory
from skdare.datasets import make_latent_domains, read_unlabelled
from skdare.theory import Chapter, Claim
from skdare.theory._charts import Chart, Curve, Map
from skdare.theory._claims import VERDICTS


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A table of five domains, and rows of a sixth in several forms."""
    folder = tmp_path_factory.mktemp("files")
    data = make_latent_domains(6, 150, 4, shift=0.5, random_state=0)
    train = data.domains < 5
    new = data.X[~train]
    np.savez(folder / "all.npz", X=data.X, y=data.y, domain=data.domains)
    np.savez(folder / "train.npz", X=data.X[train], y=data.y[train], domain=data.domains[train])
    np.save(folder / "new.npy", new)
    np.savez(folder / "new.npz", X=new)
    np.save(folder / "few.npy", new[:5])
    holes = data.X.copy()
    holes[-3:, 0] = np.nan
    np.savez(folder / "missing.npz", X=holes, y=data.y, domain=data.domains)
    two = data.domains < 2
    np.savez(folder / "two.npz", X=data.X[two], y=data.y[two], domain=data.domains[two])
    np.save(folder / "narrow.npy", new[:, :3])
    names = [f"f{i}" for i in range(4)]
    for name, rows, columns in (
        ("train.csv", train, [*names, "y", "domain"]),
        ("turned.csv", ~train, names[::-1]),
        ("lacking.csv", ~train, names[:3]),
    ):
        table = dict(zip(names, data.X[rows].T, strict=True))
        table |= {"y": data.y[rows], "domain": data.domains[rows]}
        lines = [",".join(columns)]
        lines += [",".join(str(table[c][i]) for c in columns) for i in range(rows.sum())]
        (folder / name).write_text("\n".join(lines) + "\n")
    return folder


@pytest.mark.parametrize("name", ["new.npy", "new.npz"])
def test_a_file_of_new_rows_and_a_held_out_domain_are_diagnosed_alike(files, name):
    held_out = run_json("diagnose", files / "all.npz", "--held-out", "5")
    assert held_out.pop("labels")["unit"] == "accuracy"
    found = run_json("diagnose", files / "train.npz", "--new", files / name)
    assert found.pop("labels") is None
    assert found == held_out


def test_columns_are_taken_by_name(files):
    turned = run_json("diagnose", files / "train.csv", "--new", files / "turned.csv")
    want = run_json("diagnose", files / "train.npz", "--new", files / "new.npy")
    assert turned["recommendation"] == want["recommendation"]


def test_columns_are_taken_by_name_whatever_named_those_in_training(files):
    keyed = run_json(
        "diagnose", files / "train.csv", "--new", files / "turned.csv", "--feature-key", "f*"
    )
    want = run_json("diagnose", files / "train.csv", "--new", files / "turned.csv")
    assert keyed == want


def test_domains_of_few_rows_are_left_out(files, tmp_path):
    data = np.load(files / "all.npz")
    keep = (data["domain"] > 0) | (np.arange(900) < 3)
    np.savez(tmp_path / "f.npz", **{name: data[name][keep] for name in data})
    found = run_json("diagnose", tmp_path / "f.npz", "--held-out", "5", "--min-rows", "10")
    assert set(found["rehearsed"]) == set("1234")


def test_labels_of_a_held_out_domain_are_told_apart(files):
    result = run("diagnose", files / "all.npz", "--held-out", "5")
    assert result.exit_code == 0
    assert " expected (" in result.stdout.splitlines()[1]
    assert "its labels, not used above: accuracy" in result.stdout
    assert "rehearsing" in result.stderr


def test_a_page_is_written(files, tmp_path):
    page = tmp_path / "page.html"
    result = run("diagnose", files / "all.npz", "--held-out", "5", "--html", page)
    assert result.exit_code == 0
    assert " expected (" in page.read_text()
    assert "<h1" in page.read_text()


def test_preparation_is_learnt_from_training_rows(files):
    options = ["--standardize", "--clip", "3", "--impute", "median"]
    held_out = run_json("diagnose", files / "all.npz", "--held-out", "5", *options)
    found = run_json("diagnose", files / "train.npz", "--new", files / "new.npy", *options)
    assert found["findings"] == held_out["findings"]


def test_without_a_rehearsal_distances_are_told_only(files):
    found = run_json("diagnose", files / "all.npz", "--held-out", "5", "--no-rehearsal")
    assert found["recommendation"]["action"] == "cannot say"
    assert found["findings"]["mean shift"]["numbers"]["new_length"] >= 0


def test_too_few_rows_are_no_mistake_and_no_number(files):
    found = run_json("diagnose", files / "train.npz", "--new", files / "few.npy")
    assert found["recommendation"]["reason"].endswith("20 rows are needed, and 5 were given")


def test_a_regression_is_diagnosed(files, tmp_path):
    data = make_latent_domains(5, 120, 4, task="regression", random_state=0)
    np.savez(tmp_path / "r.npz", X=data.X, y=data.y, domain=data.domains)
    found = run_json("diagnose", tmp_path / "r.npz", "--held-out", "2", "--set", "shrinkage=0.5")
    assert "label shift" not in found["findings"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["all.npz"], "one of --new and --held-out is needed"),
        (["all.npz", "--held-out", "5", "--new", "new.npy"], "both name the new domain"),
        (["all.npz", "--held-out", "5", "--html", "absent/x.html"], "cannot be written"),
        (["all.npz", "--held-out", "5", "--set", "shrinkage"], "is not OPTION=VALUE"),
        (["missing.npz", "--held-out", "5"], "3 of the new rows have missing values"),
        (["two.npz", "--held-out", "1"], "there is 1 training domain"),
        (["all.npz", "--held-out", "9"], "held-out domain `9` is not in"),
        (["train.npz", "--new", "absent.npy"], "absent.npy does not exist"),
        (["train.npz", "--new", "narrow.npy"], "has 3 features and the training rows 4"),
        (["train.csv", "--new", "lacking.csv"], "has no column 'f3', which the training rows"),
        (["all.npz", "--held-out", "5", "--set", "l3=1"], "the head has no option 'l3'"),
        (["all.npz", "--held-out", "5", "--acceptable", "7"], "7.0 is not in the range"),
    ],
)
def test_mistakes_are_told_before_any_work(files, arguments, message):
    given = [files / a if a.endswith((".npz", ".npy", ".csv")) else a for a in arguments]
    result = run("diagnose", *given)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "rehearsing" not in result.stderr


def test_unlabelled_rows_are_read_from_any_file(files):
    want = np.load(files / "new.npy")
    np.testing.assert_array_equal(read_unlabelled(files / "new.npz"), want)
    names = [f"f{i}" for i in range(4)]
    np.testing.assert_allclose(read_unlabelled(files / "turned.csv", names=names), want)


def test_unlabelled_rows_with_infinity_are_refused(tmp_path):
    np.save(tmp_path / "infinite.npy", np.full((3, 2), np.inf))
    with pytest.raises(ValueError, match="has infinity in row 0"):
        read_unlabelled(tmp_path / "infinite.npy")


def array_without_its_last_byte() -> bytes:
    file = io.BytesIO()
    np.save(file, np.full((3, 2), np.inf))
    return file.getvalue()[:-1]


@pytest.mark.parametrize(
    "content",
    [b"", b"\x93NUMPY\x01\x00", array_without_its_last_byte(), b"\0" * 200],
    ids=["empty", "half a header", "cut off", "zeros"],
)
def test_a_damaged_file_of_unlabelled_rows_is_named(content, tmp_path):
    (tmp_path / "damaged.npy").write_bytes(content)
    with pytest.raises(ValueError, match=r"damaged\.npy"):
        read_unlabelled(tmp_path / "damaged.npy")


# -- The theory -----------------------------------------------------------------------------------


@pytest.fixture
def short_theory(monkeypatch):
    """One chapter, with a name that a page must escape."""
    x = np.array([1.0, 10.0, 1e6])
    curves = {"a < b": Curve(x, x), "a < b, found": Curve(x, 2 * x, dots=True)}
    pictures = [
        Chart("chart", "A chart", "x", "y", "Shows <x>.", curves, ("x", "y"), {"here": 10.0}),
        Map("map", "A map", "x", "y", "gain", "Signs.", x, x[:2], np.array([[1, -2, 0.0]] * 2)),
    ]
    claims = [Claim("theorem 0", "1 < 2 holds.", "Σ̄ measured.", True, "does not hold as printed")]
    chapter = Chapter("A <chapter>", claims, pictures)
    monkeypatch.setattr(theory, "CHAPTERS", {"short": lambda seed, quick: chapter})


@pytest.mark.usefixtures("short_theory")
def test_claims_stand_in_columns_and_a_page_holds_the_figures(tmp_path):
    pytest.importorskip("matplotlib", reason="pages have figures")
    page = tmp_path / "page.html"
    result = run("theory", "--report", page)
    assert result.exit_code == 0
    assert "theorem 0" in result.stdout
    assert "1 statement: 1 does not hold as printed" in result.stdout
    text = page.read_text()
    assert "A &lt;chapter&gt;" in text
    assert text.count("<svg") == 2
    assert "<chapter>" not in text
    assert "mathdefault" not in text


@pytest.mark.usefixtures("short_theory")
def test_claims_are_told_as_json():
    (claim,) = json.loads(run("theory", "--json").stdout)
    assert claim["verdict"] in VERDICTS
    assert claim["chapter"] == "A <chapter>"


@pytest.mark.slow
def test_the_whole_theory_is_told_in_seconds_when_quick():
    claims = json.loads(run("theory", "--quick", "--json").stdout)
    assert len({claim["chapter"] for claim in claims}) == 5
    assert {claim["verdict"] for claim in claims} == set(VERDICTS)
    assert all(claim["says"] and claim["measured"] for claim in claims)
