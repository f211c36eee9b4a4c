"""Ten thousand damaged and forged files: refused with a word, or harmless; nothing is ever run."""

import copy
import hashlib
import json
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import skdare
from skdare.datasets import make_latent_domains

FILES = Path(__file__).parent / "files"
HEADS = ["head-2.safetensors", "pipeline-2.safetensors"]
STREAMS = ["adapter-2.safetensors", "fleet-2.safetensors", "adapter-1.npz", "fleet-1.npz"]
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))]
ROWS = make_latent_domains(random_state=0).X[:50]
HEAD = skdare.load(FILES / "head-2.safetensors")
# Text and header become Python objects, some tens of bytes for each of theirs.
TIMES, ROOM = 40, 1 << 20
# What no reading of a file may do.
FORBIDDEN = ("compile", "exec", "os.system", "os.exec", "os.posix_spawn", "subprocess.Popen")
FORBIDDEN += ("socket.connect", "ctypes.dlopen", "pickle.find_class", "os.remove", "shutil.rmtree")
WATCH = {"on": False, "seen": []}


def hear(event, arguments):
    if WATCH["on"] and event in FORBIDDEN:
        # The code of a module that is imported late comes from where Python is installed.
        code = getattr(arguments[0], "co_filename", "") if event == "exec" else ""
        if not code.startswith((sys.prefix, sys.base_prefix, "<frozen ")):
            WATCH["seen"].append(event)


sys.addaudithook(hear)


def read(path):
    """Load a file as what it is called; streams with the head that they were saved with."""
    if path.name.startswith(("head", "pipeline")):
        return skdare.load(path)
    return HEAD.resume(path)


def use(made):
    """What one does with it next."""
    if hasattr(made, "predict") and not hasattr(made, "devices_"):
        made.predict(ROWS)
        head = made[-1] if hasattr(made, "steps") else made
        head.adapt(ROWS)
    elif hasattr(made, "devices_"):
        made.predict(ROWS, np.arange(len(ROWS)) % 4)
    else:
        made.partial_fit(ROWS).head_  # noqa: B018


def is_harmless(path):
    """Whether a file is refused in words; where it is not, that it serves or says why not."""
    refusals = []
    tracemalloc.start()
    WATCH["on"] = True
    found = {}
    for look in (read, skdare.inspect_file):
        try:
            found[look] = look(path)
        except ValueError as error:
            refusals.append(str(error))
    WATCH["on"] = False
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    made = found.get(read)
    assert all(str(path) in refusal for refusal in refusals)
    assert peak < TIMES * path.stat().st_size + ROOM, peak
    seen, WATCH["seen"] = WATCH["seen"], []
    if path.suffix == ".npz":  # NumPy parses the shape of an array, but does not run it
        seen = [event for event in seen if event != "compile"]
    assert not seen
    if made is not None:
        try:
            use(made)
        except ValueError:
            return False
    return made is None


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


def damaged(content, rng):
    """Bits flipped, bytes replaced, pieces cut out, doubled or moved."""
    content, n = bytearray(content), len(content)
    for _ in range(rng.integers(1, 4)):
        a, b = sorted(rng.integers(0, n, size=2))
        b = min(b, a + 64)
        match rng.integers(6):
            case 0:
                content[a % len(content)] ^= 1 << rng.integers(8)
            case 1:
                content[a:b] = rng.bytes(b - a)
            case 2:
                del content[a:b]
            case 3:
                content[a:a] = content[a:b]
            case 4:
                del content[a:]
            case 5:
                content[:8] = int(rng.integers(0, 1 << 62)).to_bytes(8, "little")
        if not content:
            break
    return bytes(content)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", HEADS + STREAMS)
@pytest.mark.parametrize("seed", SEEDS)
def test_damaged_files_are_refused(tmp_path, name, seed):
    rng = np.random.default_rng([seed, len(name)])
    content = (FILES / name).read_bytes()
    path = tmp_path / name
    for _ in range(260):
        mutated = damaged(content, rng)
        path.write_bytes(mutated)
        refused = is_harmless(path)
        # The older format had no checksum.
        assert refused or mutated == content or name.endswith(".npz")


VALUES = [None, True, -1, 0, 3, 2**63, 1e308, "nan", "", "x", "head", [], {}, [[]], [[0, 0]]]
VALUES += [10**400, {"number": 300, "dtype": "int8"}, {"number": "nan", "dtype": "int8"}]
VALUES += [json.loads("[" * 99 + "]" * 99), {"date": "2020-13-01", "kind": "date"}]
VALUES += [{"array": "coef_"}, {"array": "moments_.0.scatter"}, {"tuple": [{"tuple": []}]}]
VALUES += [{"values": {"dtype": "str", "values": ["a" * 9000] + ["b"] * 9000}}, "DARERegressor"]
VALUES += [{"dtype": "float64", "values": [1, "nan"]}, {"number": 3, "dtype": "int8"}, "__class__"]


def forged(text, rng):
    """A header that is JSON, with some of its values, keys or entries replaced."""
    entries = json.loads(text)
    metadata = entries["__metadata__"]
    header = json.loads(metadata["header"])
    for _ in range(rng.integers(1, 3)):
        tree = entries if rng.random() < 0.2 else header
        places = list(nodes(tree))
        holder, key = places[rng.integers(len(places))]
        match rng.integers(4):
            case 0:
                del holder[key]
            case 1:
                other, which = places[rng.integers(len(places))]
                if key in (holder if isinstance(holder, dict) else range(len(holder))):
                    holder[key] = copy.deepcopy(value_at(other, which))
            case _:
                holder[key] = copy.deepcopy(VALUES[rng.integers(len(VALUES))])
    if isinstance(entries.get("__metadata__"), dict) and "header" in entries["__metadata__"]:
        entries["__metadata__"]["header"] = json.dumps(header)
        entries["__metadata__"]["sha256"] = "0" * 64
    return json.dumps(entries).encode()


def nodes(tree):
    """Where the values of a tree are: what holds them, and under which key."""
    pairs = list(tree.items()) if isinstance(tree, dict) else list(enumerate(tree))
    for key, value in pairs:
        yield tree, key
        if isinstance(value, dict | list):
            yield from nodes(value)


def value_at(holder, key):
    try:
        return holder[key]
    except (KeyError, IndexError):
        return None


def signed(text, arrays):
    """A file with a checksum that is right."""
    content = len(text).to_bytes(8, "little") + text + arrays
    digest = hashlib.sha256(content).hexdigest().encode()
    return content.replace(b"0" * 64, digest, 1)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", HEADS + STREAMS[:2])
@pytest.mark.parametrize("seed", SEEDS)
def test_forged_files_with_a_right_checksum_are_refused_or_harmless(tmp_path, name, seed):
    rng = np.random.default_rng([seed, len(name), 1])
    content = (FILES / name).read_bytes()
    length = int.from_bytes(content[:8], "little")
    text, arrays = content[8 : 8 + length], content[8 + length :]
    path = tmp_path / name
    refused = 0
    for _ in range(350):
        path.write_bytes(signed(forged(text, rng), arrays))
        refused += is_harmless(path)
    assert refused > 100
