"""Files that somebody else wrote: one sentence that names the file, or no harm; never a hang."""

import copy
import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest

import skdare
from command_line import run
from made_records import record
from skdare.bench import read_domainbed
from skdare.bench._log import Log
from skdare.bench._record import pack_bits
from skdare.datasets import make_latent_domains, read, write_store
from skdare.persist import parse_json, read_header
from skdare.report import write_report

FILES = Path(__file__).parents[1] / "files"
# What stands where something else was meant.
OTHERS = (None, True, -1, 0.5, 10**30, 1e308, float("nan"), float("inf"), "x", [], {}, [None])
OTHERS += ([[]], [{}], {"x": {}}, ["x", 1], [-1])
TEXTS = {
    "nothing": b"",
    "a list": b"[]",
    "a number": b"3",
    "null": b"null",
    "text": b'"x"',
    "half of it": b'{"a": ',
    "no UTF-8": b"\xff\xfe\xff",
    "NaN": b'{"a": NaN}',
    "a number beyond floats": b'{"a": 1e999}',
    "a number of 5,000 digits": b'{"a": ' + b"9" * 5000 + b"}",
    "nested beyond Python": b'{"a":' * 100_000,
    "nested deeply": b'{"a": ' + b"[" * 500 + b"]" * 500 + b"}",
}


def planned(folder):
    log = Log(folder)
    log.open().__exit__()
    log.announce("pacs", "default", ["a", "b"])
    return folder / "planned.json"


def use_planned(folder):
    Log(folder).unfinished()
    Log(folder).announce("pacs", "paper", ["c"])


def records(folder):
    flags = {
        "n_test": 3,
        "correct": pack_bits(np.array([True, False, True])),
        "score_all": 0.5,
        "rmse": None,
    }
    line = record(values=record().values | flags).to_line()
    (folder / "records.jsonl").write_text(line + "\n" + record("dare").to_line() + "\n")
    return folder / "records.jsonl"


def results(folder):
    args = {"algorithm": "ERM", "dataset": "PACS", "test_envs": [1], "trial_seed": 0}
    scores = {"env0_in_acc": 0.9, "env0_out_acc": 0.8, "env1_in_acc": 0.7, "env1_out_acc": 0.6}
    line = json.dumps({"args": args, "step": 300, **scores})
    (folder / "results.jsonl").write_text(f"{line}\n{line}\n")
    return folder / "results.jsonl"


def manifest(folder):
    write_store(folder / "store", make_latent_domains(2, 5, random_state=0))
    return folder / "store" / "manifest.json"


def hugging_face(name):
    def written(folder):
        pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
        info = {"features": {"y": {"names": ["no", "yes"], "_type": "ClassLabel"}, "X": [1]}}
        rows = {"X": [[0.0, 1.0]] * 4, "y": [0, 1, 0, 1], "site": list("aabb")}
        table = pa.table(rows)
        with pa.ipc.new_stream(str(folder / "data.arrow"), table.schema) as stream:
            stream.write_table(table)
        (folder / "dataset_info.json").write_text(json.dumps(info))
        (folder / "state.json").write_text(
            json.dumps({"_data_files": [{"filename": "data.arrow"}]})
        )
        if name == "dataset_dict.json":
            (folder / name).write_text(json.dumps({"splits": ["train", "test"]}))
        return folder / name

    return written


def training(name):
    def written(folder):
        pytest.importorskip("torch", reason="torch is not installed")
        source = {"path": "a", "backbone": "tiny", "options": {"size": 8}, "skip_unreadable": False}
        source |= dict.fromkeys(("image", "text", "label", "domain", "cache"))
        recipe = {"aside": 0.2, "precision": "auto"}
        settings = {"examples": "e", "weights": "w", "recipe": recipe, "source": source}
        score = {"reserved": 0.5, "rest": 0.5, "all": 0.5}
        checks = [{"step": 1, "loss": 0.5, "accuracy": {"a": 0.5, "b": 0.6}}]
        done = {"held_out": None, "trial": 0, "draw": 0, "hyperparameters": {"lr": 0.1}}
        done |= {"rule": "best", "step": 1, "value": 0.5, "accuracy": score, "last": score}
        done |= {"checks": checks, "network": "n", "made": {"backbone": "tiny"}}
        (folder / "all").mkdir()
        (folder / "run.json").write_text(json.dumps(settings))
        (folder / "all" / "record.json").write_text(json.dumps(done))
        return folder / name

    return written


def use_training(folder):
    from skdare.features.training.folder import TrainingFolder, best_draws, ceiling_scores

    run = TrainingFolder(folder)
    run.settings()
    run.check_settings({"recipe": {"aside": 0.2}})
    best_draws(run.records())
    ceiling_scores(run.records())


# How a folder with the file is made, and what is done with the folder.
SITES = {
    "planned.json": (planned, use_planned),
    "records.jsonl": (records, lambda folder: write_report(folder, formats=["md", "csv"])),
    "results.jsonl": (results, lambda folder: read_domainbed(folder, ["a", "b"])),
    "manifest.json": (manifest, lambda folder: read(folder / "store")),
    "dataset_info.json": (hugging_face("dataset_info.json"), read),
    "state.json": (hugging_face("state.json"), read),
    "dataset_dict.json": (hugging_face("dataset_dict.json"), read),
    "run.json": (training("run.json"), use_training),
    "record.json": (training("all/record.json"), use_training),
}


def refused(use, folder, file):
    """Whether it is refused; if so, by its name and in one line."""
    try:
        use(folder)
    except ValueError as error:
        told = str(error)
        assert str(file) in told or str(file.parent) in told, told
        assert "\n" not in told
        assert len(told) < 600
        return True
    return False


def changed(document):
    """The document with every value in it in turn left out or replaced by each of the others."""
    paths = [()]
    for path in paths:
        node = document
        for step in path:
            node = node[step]
        if isinstance(node, dict | list):
            paths += [
                (*path, key) for key in (node if isinstance(node, dict) else range(len(node)))
            ]
    for path in paths[1:]:
        for other in (..., *OTHERS):
            forged = copy.deepcopy(document)
            node = forged
            for step in path[:-1]:
                node = node[step]
            if other is ...:
                del node[path[-1]]
            else:
                node[path[-1]] = other
            yield path, forged


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("site", SITES)
def test_json_of_another_kind_is_refused_by_the_name_of_its_file(site, text, tmp_path):
    make, use = SITES[site]
    file = make(tmp_path)
    content = TEXTS[text]
    if site.endswith(".jsonl"):
        content += b"\n" + file.read_bytes().splitlines()[1] + b"\n"
    use(tmp_path) if site != "dataset_dict.json" else None
    file.write_bytes(content)
    lenient = site == "records.jsonl" and text == "nothing"  # an empty line
    assert refused(use, tmp_path, file) != lenient


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("site", SITES)
def test_any_value_of_another_kind_is_refused_or_harmless(site, tmp_path):
    make, use = SITES[site]
    file = make(tmp_path)
    first, *rest = file.read_text().splitlines() if site.endswith("l") else [file.read_text()]
    for path, forged in changed(json.loads(first)):
        file.write_text("\n".join([json.dumps(forged), *rest]) + "\n")
        try:
            refused(use, tmp_path, file)
        except Exception as error:
            raise AssertionError(f"{path} of {forged}") from error


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
@pytest.mark.parametrize("site", sorted(set(SITES) - {"manifest.json", "dataset_dict.json"}))
def test_a_pipe_in_the_place_of_a_file_is_refused_without_waiting(site, tmp_path):
    make, use = SITES[site]
    file = make(tmp_path)
    file.unlink()
    os.mkfifo(file)
    if site in ("dataset_info.json", "state.json", "results.jsonl"):
        with pytest.raises(ValueError, match=str(tmp_path)):  # it is no folder of that kind
            use(tmp_path)
    else:
        assert refused(use, tmp_path, file)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
@pytest.mark.parametrize("name", ["wait.png", "wait.bmp"])
def test_a_pipe_among_images_is_named_and_not_opened(name, tmp_path):
    pytest.importorskip("torch", reason="torch is not installed")
    Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    from skdare.features import decode, read_collection

    for domain in ("photo", "sketch"):
        for label in ("cat", "dog"):
            (tmp_path / domain / label).mkdir(parents=True)
            Image.new("RGB", (4, 4)).save(tmp_path / domain / label / "a.png")
    os.mkfifo(tmp_path / "photo" / "cat" / name)
    with pytest.raises(ValueError, match=f"photo/cat/{name} .*is a pipe or a device"):
        decode(read_collection(tmp_path), 4)
    with pytest.warns(UserWarning, match=name):
        examples = decode(read_collection(tmp_path), 4, skip_unreadable=True)
    assert len(examples.labels) == 4


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_called_a_zip_of_images_is_not_opened(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed")
    from skdare.features import read_collection

    os.mkfifo(tmp_path / "photo.zip")
    with pytest.raises(ValueError, match=r"photo\.zip is a pipe or a device"):
        read_collection(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
@pytest.mark.parametrize("use", [skdare.load, skdare.inspect_file])
def test_a_pipe_in_the_place_of_a_head_is_not_opened(use, tmp_path):
    os.mkfifo(tmp_path / "head.safetensors")
    with pytest.raises(ValueError, match=r"head\.safetensors is a pipe or a device"):
        use(tmp_path / "head.safetensors")


PROCESSOR = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3, "size": {"height": 8}}
PROCESSOR |= {"do_normalize": True, "do_rescale": True, "rescale_factor": 0.01, "crop_size": 8}


def test_any_value_of_an_image_processor_is_refused_or_harmless(tmp_path):
    pytest.importorskip("transformers", reason="transformers is not installed")

    from skdare.features.backbones.hugging_face import Repository
    from skdare.features.backbones.image_encoder import image_size, normalisation, read_processor

    def use(folder):
        found = read_processor(Repository(str(folder)))
        image_size(found)
        normalisation(found)

    file = tmp_path / "preprocessor_config.json"
    for _, forged in changed(PROCESSOR):
        file.write_text(json.dumps(forged))
        refused(use, tmp_path, file)
    for text in TEXTS.values():
        file.write_bytes(text)
        assert refused(use, tmp_path, file)


@pytest.mark.parametrize("text", sorted(set(TEXTS) - {"nothing"}))
def test_no_json_text_is_read_as_an_object_by_mistake(text):
    with pytest.raises(ValueError, match=r"^(is|has) "):
        parse_json(TEXTS[text], {"a": [int]})


def forged_head(path, old, new):
    """A head whose header has another text in a place, with the checksum that goes with it."""
    content = (FILES / "head-2.safetensors").read_bytes()
    length = int.from_bytes(content[:8], "little")
    entries = json.loads(content[8 : 8 + length])
    header = entries["__metadata__"]["header"]
    assert header.count(old) >= 1
    entries["__metadata__"]["header"] = header.replace(old, new)
    entries["__metadata__"]["sha256"] = "0" * 64
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    whole = len(text).to_bytes(8, "little") + text + content[8 + length :]
    path.write_bytes(whole.replace(b"0" * 64, hashlib.sha256(whole).hexdigest().encode(), 1))
    return path


@pytest.mark.parametrize("number", ["Infinity", "-Infinity", "NaN", "1e999", '"inf"', '"nan"'])
@pytest.mark.parametrize("name", ["n", "scale", "l2", "predicted_share_range_"])
def test_a_number_of_a_head_that_is_not_finite_is_refused(name, number, tmp_path):
    header = read_header(FILES / "head-2.safetensors").header
    value = json.dumps(_values_of(header, name)[0])
    path = forged_head(tmp_path / "head", f'"{name}": {value}', f'"{name}": {number}')
    with pytest.raises(ValueError, match=r"finite|l2 is"):
        skdare.load(path)
    if name == "n" or number[0] != '"':
        with pytest.raises(ValueError, match="finite"):
            skdare.inspect_file(path)
        result = run("inspect", path)
        assert result.exit_code == 2
        assert "finite" in result.output


def _values_of(node, name):
    """Every number of this name in a header."""
    if isinstance(node, dict):
        own = [v for k, v in node.items() if k == name and isinstance(v, int | float)]
        return own + [v for item in node.values() for v in _values_of(item, name)]
    return [v for item in node for v in _values_of(item, name)] if isinstance(node, list) else []


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("trials = 1979-05-27", "`trials`"),
        ("l2 = 07:32:00", "`l2`"),
        ("trials = 1000000000000000000000", "`trials`"),
        ("heads = [1979-05-27]", "`heads`"),
        ("heads = [['erm']]", "`heads`"),
        ("set = {dare = {l2 = 1979-05-27}}", "`set`"),
        ("features = {a = 3}", "`features`"),
        ("l2 = inf", "l2"),
        ("clip = nan", "clip"),
        ("aside = -inf", "aside"),
        ("heads = " + "[" * 5000 + "]" * 5000, "nested too deeply"),
    ],
)
def test_toml_values_of_other_kinds_are_refused_by_name(line, said, tmp_path):
    config = tmp_path / "bench.toml"
    np.savez(tmp_path / "a.npz", X=np.eye(40), y=[0, 1] * 20, d=[0] * 20 + [1] * 20)
    features = "" if line.startswith("features") else 'features = "a.npz"\n'
    config.write_text(f"{features}{line}\n")
    result = run("bench", "--config", config, "--out", tmp_path / "o")
    assert result.exit_code == 2, result.output
    assert said in result.output
    assert isinstance(result.exception, SystemExit)
