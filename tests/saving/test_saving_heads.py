"""Heads and streams come back from files to the bit, and nothing else is let in."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import stat
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

import skdare
from domain_problems import ADAPTABLE, HEADS, assert_same_bits, make_problem, problem_for
from new_domains import fitted as dare
from new_domains import moved_domains, new_rows, partly
from skdare import DAREClassifier, DAREClassifierCV, DARERegressor, ERMClassifier, inspect_file
from skdare.saving.saved_file import SavedFile

pytestmark = pytest.mark.filterwarnings("ignore::skdare.errors.DataNote")
CLIP = FunctionTransformer(np.clip, kw_args={"a_min": -3.0, "a_max": 3.0})
STEPS = make_pipeline(SimpleImputer(strategy="median"), CLIP, "passthrough", StandardScaler())
OPTIONS = [
    *((name, {}) for name in HEADS),
    ("DAREClassifier", {"adaptation": "mixture", "mean_penalty": "exact"}),
    ("DAREClassifier", {"adaptation": "translation", "guess": {"north": 1.0, "west": 2.0}}),
    ("DAREClassifier", {"shrinkage": 1.0, "shrinkage_target": "diagonal", "centered": True}),
    ("DAREClassifier", {"preparation": STEPS, "class_weight": {0: 2.0}}),
    ("DAREClassifier", {"preparation": "auto", "class_weight": "balanced"}),
    ("DARERegressor", {"mean_penalty": 1.0, "guess": "covariance", "preparation": CLIP}),
    ("DAREClassifierCV", {"strategies": ("erm", "standardize"), "cv": 3}),
    ("DARERegressorCV", {"strategies": ("whiten",), "shrinkage": (0.3, 0.6)}),
    ("AnchorRegressor", {"adjust": True, "preparation": StandardScaler(with_mean=False)}),
]


def words(value):
    """The same in every process: no address of a function."""
    return re.sub(r" at 0x\w+", "", str(value))


every_head = pytest.mark.parametrize(("name", "options"), OPTIONS, ids=words)


def fitted(name, options=(), **problem):
    data = problem_for(name, **problem)
    return data.fit(getattr(skdare, name)(**dict(options))), data


def again(head, folder, **options):
    head.save(folder / "again", **options)
    return skdare.load(folder / "again")


@every_head
def test_a_head_comes_back_to_the_bit(tmp_path, name, options):
    head, data = fitted(name, options)
    loaded = again(head, tmp_path)
    assert type(loaded) is type(head)
    assert_same_bits(loaded, head)
    np.testing.assert_array_equal(loaded.predict(data.X), head.predict(data.X))
    if hasattr(head, "predict_proba"):
        np.testing.assert_array_equal(loaded.predict_proba(data.X), head.predict_proba(data.X))
    for parameter, value in head.get_params(deep=False).items():
        if parameter != "preparation" or value is None or value == "auto":
            assert getattr(loaded, parameter) == value, parameter
        else:
            assert type(loaded.preparation) is type(value)
    attributes = [a for a in dir(head) if a.endswith("_") and not a.startswith("_")]
    assert [a for a in dir(loaded) if a.endswith("_") and not a.startswith("_")] == attributes
    for attribute in ("domains_", "n_iter_", "n_features_in_", "adapts_", "best_params_"):
        assert getattr(loaded, attribute, None) == getattr(head, attribute, None)
    assert str(getattr(loaded, "choice_", "")) == str(getattr(head, "choice_", ""))
    refitted = data.fit(loaded)
    np.testing.assert_allclose(refitted.coef_, head.coef_, rtol=1e-12)


@pytest.mark.parametrize(("name", "options"), [o for o in OPTIONS if o[0] in ADAPTABLE], ids=words)
def test_a_loaded_head_adapts_and_takes_labels_to_the_bit(tmp_path, name, options):
    head, data = fitted(name, options)
    loaded = again(head, tmp_path)
    X = 1.5 * data.X[data.rows("west")]
    y = partly(data.y[data.rows("west")], np.arange(0, 60, 2))
    for targets in (None, y):
        adapted = head.adapt(X, targets, force=True)
        assert_same_bits(loaded.adapt(X, targets, force=True), adapted)
        kept = again(adapted, tmp_path)
        assert_same_bits(kept, adapted)
        assert (kept.adapted_rows_, kept.labelled_rows_) == (
            adapted.adapted_rows_,
            adapted.labelled_rows_,
        )
        assert_same_bits(kept.adapt(X), head.adapt(X))


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow) if n.endswith("CV") else n for n in ADAPTABLE],
)
def test_a_loaded_head_diagnoses_and_rehearses_as_before(tmp_path, name):
    head, data = fitted(name)
    head.rehearse(data.X, data.y, domains=data.domains)
    loaded = again(head, tmp_path)
    new = 1.5 * data.X[:100]
    assert loaded.diagnose(new).to_dict() == head.diagnose(new).to_dict()
    loaded.rehearse(data.X, data.y, domains=data.domains)
    assert str(loaded.rehearsal_) == str(head.rehearsal_)


def test_domains_with_fewer_rows_than_features_stay_thin(tmp_path):
    rng = np.random.default_rng(0)
    X, domains = rng.normal(size=(300, 40)), np.repeat(np.arange(20), 15)
    head = DAREClassifier().fit(X, X[:, 0] + rng.normal(size=300) > 0, domains=domains)
    loaded = again(head, tmp_path)
    assert (tmp_path / "again").stat().st_size < 4 * X.nbytes
    assert_same_bits(loaded.adapt(X[:30]), head.adapt(X[:30]))


# -- What a head is without its training domains -------------------------------------------------


@pytest.mark.parametrize("name", HEADS)
def test_a_head_may_be_saved_without_what_only_adapting_needs(tmp_path, name):
    head, data = fitted(name, d=20)
    loaded = again(head, tmp_path, adaptable=False)
    assert (tmp_path / "again").stat().st_size < 8000
    np.testing.assert_array_equal(loaded.predict(data.X), head.predict(data.X))
    assert_same_bits(again(loaded, tmp_path), head)
    assert not inspect_file(tmp_path / "again")["adaptable"]
    if name in ADAPTABLE:
        for use in (loaded.adapt, loaded.diagnose, lambda X: loaded.adapter()):
            with pytest.raises(NotFittedError, match="saved with adaptable=False"):
                use(data.X)
        data.fit(loaded).adapt(data.X)


# -- Labels of every kind ------------------------------------------------------------------------

CLASSES = {
    "text": np.array(["no", "yes, ☃"]),
    "objects": np.array(["no", "yes"], dtype=object),
    "booleans": np.array([False, True]),
    "integers": np.array([-3, 7]),
    "bytes": np.array([0, 255], dtype=np.uint8),
    "floats": np.array([1.0, 2.0]),
    "single": np.array([1.0, 2.0], dtype=np.float32),
    "days": np.array(["2020-01-01", "2021-06-01"], dtype="datetime64[D]"),
    "instants": np.array(["2020-01-01", "2021-06-01"], dtype="datetime64[ns]"),
    "spans": np.array([1, 5], dtype="timedelta64[s]"),
    "odd text": np.array(["a\ud800", "b\x00\x85"], dtype=object),
    "long text": np.array(["a", "b" * 20_000]),
}


@pytest.mark.parametrize("kind", CLASSES)
def test_classes_come_back_in_their_type(tmp_path, kind):
    data = make_problem("binary")
    head = ERMClassifier().fit(data.X, CLASSES[kind][data.y], domains=data.domains)
    loaded = again(head, tmp_path)
    assert loaded.classes_.dtype == head.classes_.dtype
    np.testing.assert_array_equal(loaded.predict(data.X), head.predict(data.X))
    assert inspect_file(tmp_path / "again")["classes"] == head.classes_.tolist()


@pytest.mark.parametrize(
    "labels", [["a", "b"], ["a\ud800", "b\n"], [2**62, -1], [0.5, -1e300], [True, False]], ids=repr
)
def test_domains_come_back_as_they_were(tmp_path, labels):
    data = make_problem("binary")
    domains = [labels[label == "west"] for label in data.domains]
    head = DAREClassifier(guess={labels[0]: 1.0}).fit(data.X, data.y, domains=domains)
    loaded = again(head, tmp_path)
    assert loaded.domains_ == head.domains_
    assert list(map(type, loaded.domains_)) == list(map(type, head.domains_))
    assert list(loaded.moments_) == list(head.moments_)
    assert loaded.guess == head.guess


def test_names_of_columns_are_kept(tmp_path):
    data = make_problem("classification")
    frame = pd.DataFrame(data.X, columns=[f"gene {i}" for i in range(5)])
    y, domains = pd.Series(data.y, name="kind"), pd.Series(data.domains, name="site")
    head = DAREClassifier().fit(frame, y, domains=domains)
    loaded = again(head, tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(loaded.predict(frame), head.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame.rename(columns={"gene 0": "other"}))
    about = inspect_file(tmp_path / "again")
    assert about["feature_names"] == list(frame.columns)
    assert (about["target_name"], about["domain_name"]) == ("kind", "site")


def test_requests_for_metadata_do_not_stand_in_the_way(tmp_path):
    data = make_problem("classification")
    with sklearn.config_context(enable_metadata_routing=True):
        head = ERMClassifier().set_fit_request(sample_weight=True).fit(data.X, data.y)
    assert_same_bits(again(head, tmp_path), head)


# -- What is refused before anything is written --------------------------------------------------


@pytest.mark.parametrize(
    "step",
    [
        MinMaxScaler(),
        PCA(3),
        SimpleImputer(strategy="constant"),
        SimpleImputer(add_indicator=True),
        SimpleImputer(missing_values=-999),
        FunctionTransformer(np.tanh),
    ],
    ids=str,
)
def test_steps_that_no_file_can_hold_are_named(tmp_path, step):
    data = make_problem("classification")
    head = data.fit(ERMClassifier(preparation=make_pipeline(StandardScaler(), step)))
    with pytest.raises(ValueError, match=type(step).__name__):
        head.save(tmp_path / "head")
    assert not list(tmp_path.iterdir())


def test_other_classes_and_unfitted_heads_are_refused(tmp_path):
    class Mine(ERMClassifier):
        pass

    data = make_problem("classification")
    with pytest.raises(TypeError, match="a Mine cannot be saved; pass a head of skdare"):
        data.fit(Mine()).save(tmp_path / "head")
    with pytest.raises(TypeError, match="a StandardScaler cannot be saved"):
        skdare.save(StandardScaler(), tmp_path / "head")
    with pytest.raises(NotFittedError):
        DAREClassifier().save(tmp_path / "head")
    assert not list(tmp_path.iterdir())


def test_options_that_no_file_can_hold_are_refused_and_the_old_file_stays(tmp_path):
    head, _ = fitted("ERMClassifier")
    head.save(tmp_path / "head")
    before = (tmp_path / "head").read_bytes()
    head.l2 = object()
    with pytest.raises(ValueError, match="a file cannot hold a object"):
        head.save(tmp_path / "head")
    assert (tmp_path / "head").read_bytes() == before
    assert os.listdir(tmp_path) == ["head"]


def test_options_with_code_are_left_out(tmp_path):
    data = make_problem("classification")
    scoring = lambda head, X, y: head.score(X, y)  # noqa: E731
    head = DAREClassifierCV(strategies=("erm",), scoring=scoring, cv=skdare.LeaveOneDomainOut())
    loaded = again(data.fit(head), tmp_path)
    assert (loaded.scoring, loaded.cv) == (None, 8)
    assert_same_bits(loaded, head)


# -- Files of others -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content", [b"", b"PK\x03\x04", b"\x80\x04.", b"hello" * 9, b"\xff" * 99, b"\0" * 99]
)
@pytest.mark.parametrize("reader", [skdare.load, inspect_file])
def test_foreign_files_are_refused_by_name(reader, tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ValueError, match=r"file cannot be read"):
        reader(tmp_path / "file")


@pytest.mark.parametrize("reader", [skdare.load, inspect_file])
def test_a_safetensors_file_of_others_and_a_missing_one_are_refused(reader, tmp_path):
    from safetensors.numpy import save_file

    save_file({"coef_": np.ones(3)}, tmp_path / "file")
    with pytest.raises(ValueError, match="cannot be read"):
        reader(tmp_path / "file")
    for missing in (tmp_path / "missing", tmp_path):
        with pytest.raises(FileNotFoundError, match="there is no file"):
            reader(missing)


@pytest.mark.parametrize("reader", [skdare.load, inspect_file])
def test_a_file_of_another_version_says_so(reader, tmp_path):
    head, _ = fitted("ERMClassifier")
    head.save(tmp_path / "head")
    file = SavedFile.read(tmp_path / "head", "head")
    SavedFile("head", {**file.header, "version": 99}, file.arrays).write(tmp_path / "later")
    with pytest.raises(ValueError, match=r"later has version 99 .* use the skdare that wrote it"):
        reader(tmp_path / "later")


def test_a_stream_is_not_taken_for_a_head_nor_a_head_for_a_stream(tmp_path):
    head = dare()
    head.adapter().save(tmp_path / "stream")
    head.save(tmp_path / "head")
    with pytest.raises(ValueError, match="stream holds a 'stream', not a head"):
        skdare.load(tmp_path / "stream")
    with pytest.raises(ValueError, match="head holds a 'head', not a stream"):
        head.resume(tmp_path / "head")


@pytest.mark.parametrize("reader", [skdare.load, inspect_file])
def test_values_nested_too_deeply_are_refused(reader, tmp_path):
    head, _ = fitted("DAREClassifier")
    head.save(tmp_path / "head")
    file = SavedFile.read(tmp_path / "head", "head")
    nested = json.loads("[" * 900 + "]" * 900)
    parameters = {**file.header["parameters"], "guess": nested}
    SavedFile("head", {**file.header, "parameters": parameters}, file.arrays).write(
        tmp_path / "deep"
    )
    if reader is skdare.load:
        with pytest.raises(ValueError, match="cannot be read"):
            reader(tmp_path / "deep")
    else:
        assert reader(tmp_path / "deep")["parameters"]["guess"] == nested


# -- inspect_file --------------------------------------------------------------------------------


def test_the_header_is_read_without_the_arrays(tmp_path):
    head, data = fitted("DAREClassifier", {"shrinkage": 0.5, "guess": {"north": 1.0}})
    head.rehearse(data.X, data.y, domains=data.domains)
    head.save(tmp_path / "head")
    about = inspect_file(tmp_path / "head")
    assert (about["kind"], about["class"], about["features"]) == ("head", "DAREClassifier", 5)
    assert about["parameters"]["shrinkage"] == 0.5
    assert about["parameters"]["guess"] == {"north": 1.0}
    assert about["domains"] == data.labels
    assert about["rows"] == [40, 25, 61]
    assert about["rehearsed"]
    assert about["adaptable"]
    assert about["adapts"]
    assert about["steps"] == []
    assert about["versions"]["skdare"] == skdare.__version__
    (tmp_path / "cut").write_bytes((tmp_path / "head").read_bytes()[:-1])
    with pytest.raises(ValueError, match="cut cannot be read"):
        inspect_file(tmp_path / "cut")


@pytest.mark.parametrize("name", HEADS)
def test_every_file_is_described_in_json(tmp_path, name):
    head, data = fitted(name, {"preparation": STEPS})
    head.save(tmp_path / "head")
    about = inspect_file(tmp_path / "head")
    assert json.loads(json.dumps(about)) == about
    assert about["features"] == 5
    assert about["steps"] == ["SimpleImputer", "FunctionTransformer", "StandardScaler"]
    assert about["domains"] == head.domains_
    if name in ADAPTABLE:
        adapted = head.adapt(data.X, force=True)
        adapted.save(tmp_path / "head")
        about = inspect_file(tmp_path / "head")
        assert about["adapted_rows"] == adapted.adapted_rows_
        assert about["declined"] == adapted.declined_


# -- Streams -------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [0, 10, 333])
@pytest.mark.parametrize(
    "options",
    [{}, {"half_life": 30.0, "prior_rows": 3.0}, {"force": True, "prior_labels": 3.0}],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("task", "adaptation"),
    [("classification", "centered"), ("classification", "mixture"), ("regression", "raw")],
)
def test_a_stream_taken_up_again_ends_at_the_same_bits(
    tmp_path, at, options, dtype, task, adaptation
):
    head = dare(task, adaptation=adaptation)
    X, y = new_rows(task, 400)
    X, y = X.astype(dtype), partly(y, np.arange(0, 400, 3))
    stream = head.adapter(**options)
    if at:
        stream.partial_fit(X[:at], y[:at])
    stream.save(tmp_path / "stream")
    head.save(tmp_path / "head")
    resumed = [
        head.resume(tmp_path / "stream"),
        skdare.load(tmp_path / "head").resume(tmp_path / "stream"),
    ]
    assert [repr(one) for one in resumed] == [repr(stream)] * 2
    for start, stop in ((at, at + 4), (at + 4, at + 60)):
        stream.partial_fit(X[start:stop], y[start:stop])
        expected = stream.head_
        for one in resumed:
            assert_same_bits(one.partial_fit(X[start:stop], y[start:stop]).head_, expected)


def test_saving_changes_nothing_of_what_follows(tmp_path):
    head = dare()
    X, _ = new_rows(n=400)
    saved, plain = head.adapter(), head.adapter()
    for rows in np.split(X, 40):
        saved.partial_fit(rows).save(tmp_path / "stream")
        plain.partial_fit(rows)
    assert_same_bits(saved.head_, plain.head_)
    assert os.listdir(tmp_path) == ["stream"]


@pytest.mark.parametrize("change", [{"shrinkage": 0.5}, {"adaptation": "centered"}, {"l2": 0.5}])
def test_a_stream_of_another_head_is_refused(tmp_path, change):
    dare().adapter().partial_fit(new_rows()[0]).save(tmp_path / "stream")
    with pytest.raises(ValueError, match="stream was saved for another head"):
        dare(**change).resume(tmp_path / "stream")


def test_a_stream_is_described(tmp_path):
    X, y = new_rows()
    adapter = dare().adapter(half_life=500.0).partial_fit(X, partly(y, np.arange(15)))
    adapter.save(tmp_path / "stream")
    about = inspect_file(tmp_path / "stream")
    assert (about["kind"], about["rows"], about["labels"]) == ("stream", 90, 15)
    assert about["options"]["half_life"] == 500.0


def test_what_was_declined_is_kept(tmp_path):
    X, y, domains = moved_domains()
    head = DAREClassifierCV(strategies=("erm",)).fit(X, y, domains=domains)
    kept = again(head.adapt(X[:50]), tmp_path)
    assert kept.declined_ == inspect_file(tmp_path / "again")["declined"]
    assert kept.declined_


# -- Writing -------------------------------------------------------------------------------------


def writers(folder):
    """Everything of a head that writes a file."""
    head = dare()
    yield "head", head.save
    yield "stream", head.adapter().partial_fit(new_rows()[0]).save
    if __import__("importlib.util").util.find_spec("onnx"):
        yield "head.onnx", head.to_onnx


def test_a_full_disk_leaves_what_was_there_and_nothing_else(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    for name, write in writers(tmp_path):
        write(tmp_path / name)
        before = (tmp_path / name).read_bytes()
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(OSError, match="No space left") as caught:
                write(tmp_path / name)
            assert caught.value.errno == errno.ENOSPC
            assert (tmp_path / name).read_bytes() == before
            with pytest.raises(OSError, match="No space left"):
                write(tmp_path / f"new-{name}")
    assert sorted(os.listdir(tmp_path)) == sorted(name for name, _ in writers(tmp_path))


@pytest.mark.skipif(os.name != "posix", reason="modes, links and pipes are POSIX's")
def test_modes_links_and_other_things_with_the_name_are_kept(tmp_path):
    for name, write in writers(tmp_path):
        path, link = tmp_path / name, tmp_path / f"link-{name}"
        write(path)
        path.chmod(0o640)
        link.symlink_to(path)
        write(link)
        assert link.is_symlink()
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        os.mkfifo(tmp_path / f"pipe-{name}")
        with pytest.raises(ValueError, match="not a file"):
            write(tmp_path / f"pipe-{name}")
        with pytest.raises(ValueError, match="folder"):
            write(tmp_path)
        with pytest.raises(ValueError, match=r"there is no folder .*nowhere"):
            write(tmp_path / "nowhere" / name)
    assert not list(tmp_path.glob("*.partial"))
    assert not list(tmp_path.glob(".*"))


def test_threads_that_save_to_one_path_leave_a_whole_file(tmp_path):
    heads = [fitted("ERMClassifier")[0], fitted("DAREClassifier")[0]]

    def save(number):
        heads[number % 2].save(tmp_path / "head")
        return type(skdare.load(tmp_path / "head")).__name__

    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(save, range(40)))
    assert found <= {"ERMClassifier", "DAREClassifier"}
    assert os.listdir(tmp_path) == ["head"]


@pytest.mark.hostile
@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
@pytest.mark.parametrize("call", [1, 2])
def test_a_killed_writer_leaves_the_old_file_whole_and_the_next_one_clears_up(tmp_path, call):
    head, data = fitted("DAREClassifier")
    path = tmp_path / "head"
    head.save(path)
    script = (
        "import os, signal, skdare\n"
        f"head = skdare.load({str(path)!r})\n"
        "calls = []\n"
        "def die(descriptor):\n"
        "    calls.append(1)\n"
        f"    len(calls) == {call} and os.kill(os.getpid(), signal.SIGKILL)\n"
        "os.fsync = die\n"
        f"head.save({str(path)!r}, adaptable=False)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(skdare.__file__).parents[1])}
    ended = subprocess.run([sys.executable, "-c", script], check=False, env=environment)
    assert ended.returncode == -signal.SIGKILL
    loaded = skdare.load(path)
    np.testing.assert_array_equal(loaded.predict(data.X), head.predict(data.X))
    assert inspect_file(path)["adaptable"] is (call == 1)
    for leftover in tmp_path.glob("*.partial"):
        os.utime(leftover, (0, 0))  # long ago
    head.save(path)
    assert os.listdir(tmp_path) == ["head"]


def test_a_float32_head_of_torch_rows_is_saved(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    data = make_problem("regression")
    X = torch.asarray(data.X, dtype=torch.float32)
    head = DARERegressor().fit(X, data.y, domains=data.domains)
    loaded = again(head, tmp_path)
    assert (loaded.predict(X) == head.predict(X)).all()
    assert_same_bits(loaded.adapt(X), head.adapt(X))
