"""Feature stores that are damaged or forged: named, refused, or as they say they are."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from damage import damaged, spoiled_json
from skdare.datasets import (
    read,
    read_chunks,
    read_features,
    read_ids,
    store_info,
    verify,
    write_store,
)
from small_stores import N, rows_of, table
from watching import LIBRARY_ROOM, assert_consistent, command, harmless, read_or_refuse, size_of

READERS = {
    "read": read,
    "chunks": lambda path: [part.X for part in read_chunks(path, 4)],
    "features": read_features,
    "ids": read_ids,
    "info": store_info,
    "verify": verify,
}


@pytest.fixture(autouse=True)
def hasty_disk(monkeypatch) -> None:
    """Nothing here can tell whether bytes reached the disk, and waiting for it takes long."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture(scope="module", params=["float64", "uint8"])
def whole(request, tmp_path_factory) -> Path:
    store = tmp_path_factory.mktemp("whole") / "table"
    ids = [f"{i}.jpg" for i in range(N)]
    write_store(store, table(), dtype=request.param, ids=ids, rows_per_shard=9)
    return store


@pytest.fixture(scope="module")
def another(tmp_path_factory) -> Path:
    """A store of other rows, to take files from."""
    store = tmp_path_factory.mktemp("another") / "table"
    write_store(store, rows_of(table("whole"), slice(0, 17)), rows_per_shard=9)
    return store


def spoil(store: Path, another: Path, rng: np.random.Generator) -> set[str]:
    """Do something to a store; the names of shard files that are not what they were."""
    files = sorted(path for path in store.iterdir() if path.suffix == ".npy")
    file, other = (files[i] for i in rng.integers(len(files), size=2))
    before = {path.name: path.read_bytes() for path in files}
    match rng.integers(10):
        case 0:
            file.unlink()
        case 1:
            file.write_bytes(other.read_bytes())
        case 2:
            foreign = sorted(another.glob("*.npy"))
            file.write_bytes(foreign[rng.integers(len(foreign))].read_bytes())
        case 3:
            (store / "features-00009.npy").write_bytes(file.read_bytes())
        case 4:
            file.write_bytes(damaged(file.read_bytes(), rng))
        case 5:
            content = bytearray(file.read_bytes())
            content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
            file.write_bytes(content)
        case 6:
            file.unlink()
            [file.mkdir, lambda: os.mkfifo(file), lambda: file.symlink_to(other.name)][
                rng.integers(3)
            ]()
        case _:
            manifest = store / "manifest.json"
            manifest.write_bytes(spoiled_json(manifest.read_bytes(), rng))
    now = {path.name: path.read_bytes() if path.is_file() else None for path in files}
    return {name for name in before if now[name] != before[name]}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_a_spoiled_store_is_named_and_never_taken_for_whole(hunt, whole, another):
    for case in hunt(rate=70):
        with case:
            store = case.folder / "table"
            shutil.copytree(whole, store)
            changed = spoil(store, another, case.rng)
            with harmless(size_of(store), room=LIBRARY_ROOM, allowed=("compile", "exec")):
                found = {name: read_or_refuse(look, store) for name, look in READERS.items()}
            if found["read"] is not None:
                assert_consistent(found["read"])
                np.testing.assert_array_equal(np.concatenate(found["chunks"]), found["read"].X)
                np.testing.assert_array_equal(found["features"], found["read"].X)
            if found["info"] is not None:
                assert sum(found["info"].domains.values()) == found["info"].rows
            listed = json.loads((whole / "manifest.json").read_text())
            same = (store / "manifest.json").read_bytes() == (whole / "manifest.json").read_bytes()
            assert len(listed["shards"]) == 3
            if changed and same:
                assert found["verify"] is None or not found["verify"].ok
            result = command("features", ["info", "verify"][case.rng.integers(2)], store)
            if result.exit_code == 2:
                assert "table" in result.stderr
