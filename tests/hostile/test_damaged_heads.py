"""Damaged and forged files of heads: refused with a word, or harmless; nothing is ever run."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

import skdare
from damage import damaged, forged
from skdare.datasets import make_latent_domains
from watching import harmless

FILES = Path(__file__).parents[1] / "files"
HEADS = ["head-2.safetensors", "pipeline-2.safetensors"]
STREAMS = ["adapter-2.safetensors", "fleet-2.safetensors"]
ROWS = make_latent_domains(random_state=0).X[:50]
HEAD = skdare.load(FILES / "head-2.safetensors")


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


def is_refused(path):
    """Whether a file is refused in words; where it is not, that it serves or says why not."""
    refusals, found = [], {}
    # NumPy parses the shape of an array, but does not run it.
    allowed = ("compile",) if path.suffix == ".npz" else ()
    with harmless(path.stat().st_size, allowed=allowed):
        for look in (read, skdare.inspect_file):
            try:
                found[look] = look(path)
            except ValueError as error:
                refusals.append(str(error))
    assert all(str(path) in refusal for refusal in refusals)
    made = found.get(read)
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


@pytest.mark.parametrize("name", HEADS + STREAMS)
def test_damaged_files_are_refused(hunt, name):
    content = (FILES / name).read_bytes()
    for case in hunt(rate=350):
        with case:
            path = case.folder / name
            mutated = damaged(content, case.rng)
            path.write_bytes(mutated)
            refused = is_refused(path)
            # The older format had no checksum.
            assert refused or mutated == content or name.endswith(".npz")


def forged_header(text, rng):
    """A header that is JSON, with some of its values, keys or entries replaced."""
    entries = json.loads(text)
    header = json.loads(entries["__metadata__"]["header"])
    if rng.random() < 0.2:
        entries = forged(entries, rng)
    else:
        header = forged(header, rng)
    if isinstance(entries.get("__metadata__"), dict) and "header" in entries["__metadata__"]:
        entries["__metadata__"]["header"] = json.dumps(header)
        entries["__metadata__"]["sha256"] = "0" * 64
    return json.dumps(entries).encode()


def signed(text, arrays):
    """A file with a checksum that is right."""
    content = len(text).to_bytes(8, "little") + text + arrays
    digest = hashlib.sha256(content).hexdigest().encode()
    return content.replace(b"0" * 64, digest, 1)


@pytest.mark.parametrize("name", HEADS + STREAMS)
def test_forged_files_with_a_right_checksum_are_refused_or_harmless(hunt, name):
    content = (FILES / name).read_bytes()
    length = int.from_bytes(content[:8], "little")
    text, arrays = content[8 : 8 + length], content[8 + length :]
    outcomes = []
    for case in hunt(rate=450):
        with case:
            path = case.folder / name
            path.write_bytes(signed(forged_header(text, case.rng), arrays))
            outcomes.append(is_refused(path))
    # Were the checksum wrong all would be refused, and were nothing looked at none.
    assert len(outcomes) < 100 or 0.2 < np.mean(outcomes) < 0.99
