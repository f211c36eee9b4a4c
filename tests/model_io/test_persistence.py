"""Saving and loading: the same bits come back, and nothing else is ever let in."""

import datetime
import errno
import json
import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

import skdare
from free_domains import free_domains
from skdare import DAREClassifier, DARERegressor, ERMClassifier
from skdare.datasets import make_latent_domains
from skdare.engines import DaskEngine
from skdare.persist import VALUES, VERSION, ReadContext, TensorFile
from skdare.whitening.moments import Moments

FILES = Path(__file__).parents[1] / "files"
HEADS = [name for name in skdare.__all__ if name.endswith(("Classifier", "Regressor", "CV"))]
ADAPTABLE = [name for name in HEADS if name.startswith("DARE")]
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def fitted(name, **options):
    task = "classification" if "Classifier" in name else "regression"
    data = make_latent_domains(task=task, random_state=0)
    head = getattr(skdare, name)(**options).fit(data.X, data.y, domains=data.domains)
    return head, data


def saved_and_loaded(model, path, **options):
    skdare.save(model, path, **options)
    return skdare.load(path)


@pytest.mark.parametrize("adaptable", [True, False])
@pytest.mark.parametrize("name", HEADS)
def test_a_loaded_head_predicts_the_same_bits(tmp_path, name, adaptable):
    head, data = fitted(name)
    again = saved_and_loaded(head, tmp_path / "head", adaptable=adaptable)
    assert type(again) is type(head)
    assert again.get_params() == head.get_params()
    assert again.domains_ == head.domains_
    np.testing.assert_array_equal(again.predict(data.X), head.predict(data.X))
    np.testing.assert_array_equal(again.coef_, head.coef_)
    if hasattr(head, "predict_proba"):
        np.testing.assert_array_equal(again.predict_proba(data.X), head.predict_proba(data.X))


@pytest.mark.parametrize("name", HEADS)
def test_every_fitted_attribute_comes_back(tmp_path, name):
    head, _ = fitted(name)
    again = saved_and_loaded(head, tmp_path / "head")
    assert set(vars(again)) - {"_fitted_params"} == set(vars(head)) - {"_fitted_params"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow) if n.endswith("CV") else n for n in ADAPTABLE],
)
def test_a_loaded_head_adapts_diagnoses_and_rehearses_as_before(tmp_path, name):
    head, data = fitted(name)
    head.rehearse(data.X, data.y, domains=data.domains)
    again = saved_and_loaded(head, tmp_path / "head")
    new = data.X[:200] * 1.5
    np.testing.assert_array_equal(again.adapt(new).coef_, head.adapt(new).coef_)
    assert again.diagnose(new).to_dict() == head.diagnose(new).to_dict()
    again.rehearse(data.X, data.y, domains=data.domains)
    assert again.rehearsal_ == head.rehearsal_


@pytest.mark.parametrize(
    "options",
    [
        {"shrinkage_target": "pooled"},
        {"shrinkage_target": "diagonal"},
        {"shrinkage": 1.0, "shrinkage_target": "diagonal"},
        {"adaptation": "centered"},
        {"adjust": False, "adaptation": "centered"},
    ],
)
def test_domains_with_fewer_rows_than_features_stay_thin(tmp_path, options):
    rng = np.random.default_rng(0)
    X, domains = rng.normal(size=(300, 40)), np.repeat(np.arange(20), 15)
    y = X[:, 0] + rng.normal(size=300) > 0
    head = DAREClassifier(**options).fit(X, y, domains=domains)
    again = saved_and_loaded(head, tmp_path / "head")
    assert again.moments_[0]._scatter is None
    assert (tmp_path / "head").stat().st_size < 12 * X.nbytes
    commons = {id(a.common) for a in again.adjustments_.values()}
    assert len(commons) == 1
    np.testing.assert_array_equal(again.adapt(X[:30]).coef_, head.adapt(X[:30]).coef_)


@pytest.mark.parametrize(
    "use",
    [
        lambda head, X: head.adapt(X),
        lambda head, X: head.diagnose(X),
        lambda head, X: head.adapter(),
        lambda head, X: head.fleet(),
    ],
    ids=["adapt", "diagnose", "adapter", "fleet"],
)
def test_a_head_that_is_not_adaptable_says_so(use, tmp_path):
    head, data = fitted("DAREClassifier")
    again = saved_and_loaded(head, tmp_path / "head", adaptable=False)
    with pytest.raises(ValueError, match="saved with adaptable=False"):
        use(again, data.X)


def test_a_head_that_is_not_adaptable_is_as_small_as_its_weights(tmp_path):
    rng = np.random.default_rng(0)
    X, domains = rng.normal(size=(800, 100)), np.repeat(np.arange(4), 200)
    head = DAREClassifier().fit(X, X[:, 0] > 0, domains=domains)
    again = saved_and_loaded(head, tmp_path / "head", adaptable=False)
    assert (tmp_path / "head").stat().st_size < 4000
    again.save(tmp_path / "again")
    assert not skdare.inspect_file(tmp_path / "again")["adaptable"]
    np.testing.assert_array_equal(skdare.load(tmp_path / "again").predict(X), head.predict(X))
    again.fit(X, X[:, 0] > 0, domains=domains).adapt(X)


def test_an_adapted_head_is_saved_as_it_is(tmp_path):
    head, data = fitted("DAREClassifier")
    adapted = head.adapt(data.X[:300] * 2)
    again = saved_and_loaded(adapted, tmp_path / "head")
    np.testing.assert_array_equal(again.predict_proba(data.X), adapted.predict_proba(data.X))
    assert again.adapted_rows_ == 300


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes, ☃"]),
        np.array(["no", "yes"], dtype=object),
        np.array([False, True]),
        np.array([-3, 7]),
        np.array([1.0, 2.0]),
        np.array([0, 255], dtype=np.uint8),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_classes_come_back_in_their_type(tmp_path, labels):
    data = make_latent_domains(random_state=0)
    head = ERMClassifier().fit(data.X, labels[data.y], domains=data.domains)
    again = saved_and_loaded(head, tmp_path / "head")
    assert again.classes_.dtype == head.classes_.dtype
    np.testing.assert_array_equal(again.predict(data.X), head.predict(data.X))


@pytest.mark.parametrize(
    "labels",
    [
        [datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)],
        [datetime.datetime(2020, 1, 1, 8), datetime.datetime(2020, 1, 1, 9, 30, 0, 17)],
        ["a\ud800", "b"],
        ["a", "b"],
        [0.5, float("inf")],
        [True, False],
        [("a", 1), ("b", None)],
        [2**70, -1],
    ],
)
def test_domains_come_back_as_they_were(tmp_path, labels):
    data = make_latent_domains(n_domains=2, random_state=0)
    domains = [labels[e] for e in data.domains]
    head = DAREClassifier().fit(data.X, data.y, domains=domains)
    again = saved_and_loaded(head, tmp_path / "head")
    assert again.domains_ == head.domains_
    assert list(again.moments_) == list(head.moments_)
    guess = {labels[0]: 1.0}
    head = DAREClassifier(guess=guess).fit(data.X, data.y, domains=domains)
    assert saved_and_loaded(head, tmp_path / "head").guess == guess


def test_labels_that_no_file_holds_are_refused_before_it_is_written(tmp_path):
    data = make_latent_domains(n_domains=2, random_state=0)
    labels = [frozenset("a"), frozenset("b")]
    head = DAREClassifier().fit(data.X, data.y, domains=[labels[e] for e in data.domains])
    with pytest.raises(ValueError, match="use text or numbers"):
        head.save(tmp_path / "head")
    assert not list(tmp_path.iterdir())


def test_attributes_of_the_users_are_not_lost_in_silence(tmp_path):
    head, _ = fitted("ERMClassifier")
    head.remark_ = "mine"
    with pytest.raises(ValueError, match="remark_"):
        head.save(tmp_path / "head")


def test_what_steps_give_is_kept(tmp_path):
    data = make_latent_domains(random_state=0)
    frame = pd.DataFrame(data.X, columns=[f"gene {i}" for i in range(data.X.shape[1])])
    model = make_pipeline(StandardScaler(), DAREClassifier()).set_output(transform="pandas")
    model.fit(frame, data.y, dareclassifier__domains=data.domains)
    again = saved_and_loaded(model, tmp_path / "model")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(again.predict(frame), model.predict(frame))


def test_requests_for_metadata_do_not_stand_in_the_way(tmp_path):
    data = make_latent_domains(random_state=0)
    with sklearn.config_context(enable_metadata_routing=True):
        head = ERMClassifier().set_fit_request(sample_weight=True).fit(data.X, data.y)
    again = saved_and_loaded(head, tmp_path / "head")
    np.testing.assert_array_equal(again.predict(data.X), head.predict(data.X))


def test_feature_names_are_kept(tmp_path):
    data = make_latent_domains(random_state=0)
    frame = pd.DataFrame(data.X, columns=[f"gene {i}" for i in range(data.X.shape[1])])
    head = DAREClassifier().fit(frame, data.y, domains=data.domains)
    again = saved_and_loaded(head, tmp_path / "head")
    np.testing.assert_array_equal(again.predict(frame), head.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame.rename(columns={"gene 0": "other"}))


def test_a_cluster_is_no_part_of_a_head(tmp_path):
    head, data = fitted("DAREClassifier")
    head.set_params(engine=DaskEngine())
    again = saved_and_loaded(head, tmp_path / "head")
    assert again.engine == "auto"
    with pytest.raises(ValueError, match="changed since fit"):
        again.rehearse(data.X, data.y, domains=data.domains)


@pytest.mark.parametrize(
    "steps",
    [
        [StandardScaler()],
        [SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler()],
        [StandardScaler(with_mean=False), FunctionTransformer(np.clip, kw_args={"a_max": 2.0})],
        [],
    ],
    ids=["scaled", "filled", "clipped", "bare"],
)
def test_a_pipeline_comes_back_with_its_steps(tmp_path, steps):
    data = make_latent_domains(random_state=0)
    X = data.X.copy()
    for step in steps:
        if isinstance(step, FunctionTransformer):
            step.set_params(kw_args={"a_min": -2.0, "a_max": 2.0})
    if any(isinstance(step, SimpleImputer) for step in steps):
        X[::7, 2] = np.nan
        X[:, 5] = np.nan
    model = make_pipeline(*steps, DAREClassifier())
    model.fit(X, data.y, dareclassifier__domains=data.domains)
    again = saved_and_loaded(model, tmp_path / "model")
    assert [name for name, _ in again.steps] == [name for name, _ in model.steps]
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    "step",
    [
        MinMaxScaler(),
        SimpleImputer(strategy="constant"),
        SimpleImputer(add_indicator=True),
        SimpleImputer(missing_values=-999),
        FunctionTransformer(np.tanh),
    ],
    ids=["min-max", "constant", "indicator", "no-nan", "function"],
)
def test_other_steps_are_refused_before_anything_is_written(tmp_path, step):
    data = make_latent_domains(random_state=0)
    model = make_pipeline(step, ERMClassifier()).fit(data.X, data.y)
    with pytest.raises((TypeError, ValueError), match="saved"):
        skdare.save(model, tmp_path / "model")
    with pytest.raises(TypeError, match="cannot be saved"):
        skdare.save(step, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_a_head_of_the_users_own_class_is_refused(tmp_path):
    class Mine(ERMClassifier):
        pass

    data = make_latent_domains(random_state=0)
    with pytest.raises(TypeError, match="Mine cannot be saved"):
        Mine().fit(data.X, data.y).save(tmp_path / "head")


def test_names_of_steps_are_free(tmp_path):
    data = make_latent_domains(random_state=0)
    model = Pipeline([("moments_.0", StandardScaler()), ("head", DAREClassifier())])
    model.fit(data.X + 3, data.y, head__domains=data.domains)
    again = saved_and_loaded(model, tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(data.X), model.predict_proba(data.X))


def test_an_unfitted_head_is_not_saved(tmp_path):
    with pytest.raises(Exception, match="not fitted"):
        DAREClassifier().save(tmp_path / "head")
    assert not list(tmp_path.iterdir())


def test_the_safetensors_library_reads_what_was_written(tmp_path):
    library = pytest.importorskip("safetensors", reason="safetensors is not installed")
    from safetensors.numpy import load_file

    head, _ = fitted("DAREClassifier")
    head.save(tmp_path / "head.safetensors")
    arrays = load_file(tmp_path / "head.safetensors")
    np.testing.assert_array_equal(arrays["coef_"], head.coef_)
    np.testing.assert_array_equal(arrays["moments_.0.mean"], head.moments_[0].mean)
    with library.safe_open(tmp_path / "head.safetensors", "numpy") as file:
        assert file.metadata()["format"] == "skdare"


def test_the_header_is_read_without_the_arrays(tmp_path):
    head, data = fitted("DAREClassifier", shrinkage=0.5)
    head.rehearse(data.X, data.y, domains=data.domains)
    head.save(tmp_path / "head")
    content = (tmp_path / "head").read_bytes()
    about = skdare.inspect_file(tmp_path / "head")
    assert about["class"] == "DAREClassifier"
    assert about["parameters"]["shrinkage"] == 0.5
    assert about["domains"] == [0, 1, 2, 3]
    assert about["rehearsed"]
    assert about["adaptable"]
    assert about["versions"]["skdare"] == skdare.__version__
    (tmp_path / "cut").write_bytes(content[:-1])
    with pytest.raises(ValueError, match="cut off"):
        skdare.inspect_file(tmp_path / "cut")


# Files as earlier versions wrote them: never written again, always to be read.


def test_files_of_every_earlier_version_load():
    head = skdare.load(FILES / "head-2.safetensors")
    data = free_domains()
    new = data.X[data.domains == 3]
    expected = np.array(["no", "yes"])[data.y[data.domains == 3]]
    assert np.mean(head.predict(new) == expected) > 0.7
    assert head.diagnose(new).recommendation
    model = skdare.load(FILES / "pipeline-2.safetensors")
    assert np.mean(model.predict(new) == expected) > 0.7
    adapter = head.resume(FILES / "adapter-2.safetensors")
    assert adapter.n_seen_ == len(new)
    assert np.mean(adapter.head_.predict(new) == expected) > 0.7
    devices = np.arange(len(new)) % 3
    fleet = head.resume(FILES / "fleet-2.safetensors")
    assert fleet.devices_ == [0, 1, 2]
    assert np.mean(fleet.predict(new, devices) == expected) > 0.7


@pytest.mark.parametrize("reader", [skdare.load, skdare.inspect_file])
def test_a_file_of_a_later_version_says_so(reader, tmp_path):
    file = TensorFile.read(FILES / "head-2.safetensors")
    replace(file, version=VERSION + 1).write(tmp_path / "later")
    with pytest.raises(ValueError, match=f"version {VERSION + 1} .* update skdare"):
        reader(tmp_path / "later")


def test_a_stream_is_not_taken_for_a_head():
    with pytest.raises(ValueError, match=r"head\.resume"):
        skdare.load(FILES / "adapter-2.safetensors")
    assert skdare.inspect_file(FILES / "adapter-2.safetensors")["kind"] == "adapter"


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x80\x04.", b"hello" * 9, b"\xff" * 99])
def test_foreign_files_are_refused(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ValueError, match="cannot be read"):
        skdare.load(tmp_path / "file")


def test_a_safetensors_file_of_others_is_refused(tmp_path):
    numpy = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")
    numpy.save_file({"coef_": np.ones(3)}, tmp_path / "file")
    with pytest.raises(ValueError, match="skdare did not write it"):
        skdare.load(tmp_path / "file")


@pytest.mark.parametrize("reader", [skdare.load, skdare.inspect_file])
def test_values_nested_too_deeply_are_refused(reader, tmp_path):
    file = TensorFile.read(FILES / "head-2.safetensors")
    nested = json.loads("[" * 900 + "]" * 900)
    parameters = {**file.header["parameters"], "guess": nested}
    replace(file, header={**file.header, "parameters": parameters}).write(tmp_path / "deep")
    with pytest.raises(ValueError, match="too deeply"):
        reader(tmp_path / "deep")


# Writing.


def test_what_cannot_be_written_leaves_what_was_there(tmp_path, monkeypatch):
    head, data = fitted("DAREClassifier")
    head.save(tmp_path / "head")
    before = (tmp_path / "head").read_bytes()

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="what was there is unchanged") as caught:
        head.adapt(data.X).save(tmp_path / "head")
    assert caught.value.errno == errno.ENOSPC
    assert (tmp_path / "head").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["head"]


def test_a_missing_folder_is_named(tmp_path):
    head, _ = fitted("ERMClassifier")
    with pytest.raises(OSError, match=r"folder does not exist.*nowhere"):
        head.save(tmp_path / "nowhere" / "head")


@pytest.mark.parametrize(
    ("make", "is_still_there"),
    [(lambda path: os.mkfifo(path), Path.is_fifo), (Path.mkdir, Path.is_dir)],
    ids=["pipe", "folder"],
)
def test_what_is_no_file_is_left_as_it_is(make, is_still_there, tmp_path):
    head, _ = fitted("ERMClassifier")
    make(tmp_path / "other")
    with pytest.raises(OSError, match="is not a file"):
        head.save(tmp_path / "other")
    assert is_still_there(tmp_path / "other")
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_threads_that_save_to_one_path_leave_a_whole_file(tmp_path):
    heads = [fitted("ERMClassifier")[0], fitted("DAREClassifier")[0]]
    path = tmp_path / "head"

    def save(number):
        heads[number % 2].save(path)
        return type(skdare.load(path)).__name__

    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(save, range(60)))
    assert found <= {"ERMClassifier", "DAREClassifier"}
    assert [entry.name for entry in tmp_path.iterdir()] == ["head"]


def test_a_link_stays_a_link(tmp_path):
    head, _ = fitted("ERMClassifier")
    (tmp_path / "link").symlink_to(tmp_path / "head")
    head.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert skdare.load(tmp_path / "head").classes_.tolist() == [0, 1]


def test_a_killed_process_leaves_the_file_whole(tmp_path):
    head, data = fitted("DAREClassifier")
    head.save(tmp_path / "head")
    script = (
        "import os, sys, skdare\n"
        f"head = skdare.load({str(tmp_path / 'head')!r})\n"
        "os.fsync = lambda descriptor: os._exit(9)\n"
        f"head.save({str(tmp_path / 'head')!r}, adaptable=False)\n"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 9
    np.testing.assert_array_equal(
        skdare.load(tmp_path / "head").predict(data.X), head.predict(data.X)
    )
    assert hasattr(skdare.load(tmp_path / "head"), "moments_")


def test_skops_keeps_a_head_once_its_types_are_trusted():
    skops = pytest.importorskip("skops.io", reason="skops is not installed")
    head, data = fitted("DARERegressor")
    content = skops.dumps(head)
    unknown = skops.get_untrusted_types(data=content)
    assert unknown
    assert all(name.startswith(("skdare.", "scipy.", "numpy.")) for name in unknown)
    with pytest.raises(Exception, match="skdare"):
        skops.loads(content)
    again = skops.loads(content, trusted=unknown)
    np.testing.assert_array_equal(again.predict(data.X), head.predict(data.X))
    np.testing.assert_array_equal(again.adapt(data.X[:99]).coef_, head.adapt(data.X[:99]).coef_)


def test_a_float32_head_of_torch_rows_is_saved(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    data = make_latent_domains(task="regression", random_state=0)
    X = torch.asarray(data.X, dtype=torch.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        head = DARERegressor().fit(X, data.y, domains=data.domains)
    again = saved_and_loaded(head, tmp_path / "head")
    assert (again.predict(X) == head.predict(X)).all()


def spoil_weights(head):
    head.coef_ = head.coef_ * np.nan


def spoil_canonical_weights(head):
    head._domain_fit = replace(head._domain_fit, B=head._domain_fit.B * np.nan)


@pytest.mark.parametrize(
    ("attribute", "spoil"),
    [("coef_", spoil_weights), ("canonical_coef_", spoil_canonical_weights)],
)
def test_what_could_not_be_loaded_is_not_saved_and_the_old_file_stays(tmp_path, attribute, spoil):
    head, data = fitted("DAREClassifier")
    path = tmp_path / "head"
    head.save(path)
    before = path.read_bytes()
    spoil(head)
    with pytest.raises(ValueError, match=rf"could not be read again: .*{attribute}"):
        head.save(path)
    with pytest.raises(ValueError, match="could not be read again"):
        skdare.save(make_pipeline(StandardScaler().fit(data.X), head), path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["head"]


@pytest.mark.parametrize("kind", ["adapter", "fleet"])
def test_a_stream_that_could_not_be_resumed_is_not_saved(tmp_path, kind):
    head, data = fitted("DAREClassifier")
    path, rows = tmp_path / "stream", (data.X, data.domains)
    stream = head.adapter() if kind == "adapter" else head.fleet()
    stream.partial_fit(*rows[: 1 if kind == "adapter" else 2]).save(path)
    before = path.read_bytes()
    if kind == "adapter":
        stream._stream._sums.cubic = stream._stream._sums.cubic * np.inf
    else:
        stream._sketches.mean[0] = np.nan
    with pytest.raises(ValueError, match="could not be read again"):
        stream.save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["stream"]


def test_many_classes_with_one_very_long_name_are_loaded(tmp_path):
    classes = np.array([*(f"class {i}" for i in range(499)), "x" * 20_000])
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1000, 3)), np.tile(classes, 2)
    head = ERMClassifier(max_iter=2).fit(X, y)
    again = saved_and_loaded(head, tmp_path / "head")
    assert again.classes_.dtype == head.classes_.dtype
    np.testing.assert_array_equal(again.predict(X), head.predict(X))


def test_names_that_take_more_room_than_memory_are_refused_when_saved(tmp_path):
    head, _ = fitted("ERMClassifier")
    head.classes_ = np.array(["a", "b" * 100])
    head.save(tmp_path / "head")
    names = [*(f"{i:06d}" for i in range(20_000)), "x" * 20_000]
    header = {"dtype": "str", "values": names}
    with pytest.raises(ValueError, match="text of about the same length"):
        VALUES.read(header, ReadContext({}, {}, "classes"))


@pytest.mark.parametrize("unit", ["D", "s", "ns"])
@pytest.mark.parametrize("kind", ["datetime64", "timedelta64"])
def test_classes_that_are_dates_come_back(tmp_path, kind, unit):
    data = make_latent_domains(random_state=0)
    y = (20_000 + data.y.astype(int)).astype(f"{kind}[{unit}]")
    head = DAREClassifier().fit(data.X, y, domains=data.domains)
    again = saved_and_loaded(head, tmp_path / "head")
    assert again.classes_.dtype == head.classes_.dtype
    np.testing.assert_array_equal(again.predict(data.X), head.predict(data.X))
    y[0] = "NaT"
    with pytest.raises(ValueError, match="NaT"):
        DAREClassifier().fit(data.X, y, domains=data.domains)


def test_domains_that_are_dates_of_numpy_come_back(tmp_path):
    data = make_latent_domains(random_state=0)
    days = np.datetime64("2020-01-01") + np.arange(data.domains.max() + 1)
    domains = [days[e] for e in data.domains]
    head = DAREClassifier().fit(data.X, data.y, domains=domains)
    assert saved_and_loaded(head, tmp_path / "head").domains_ == head.domains_


def test_rounding_below_zero_on_the_diagonal_of_an_older_file_is_let_in(tmp_path):
    head, data = fitted("DAREClassifier")
    moments = head.moments_[0]
    scatter = np.zeros_like(moments.scatter)
    scatter[0, 0] = -1e-46
    head.moments_[0] = Moments(moments.n, moments.mean, scatter, moments.cubic, moments.quartic)
    again = saved_and_loaded(head, tmp_path / "head")
    assert again.diagnose(data.X).to_dict()
