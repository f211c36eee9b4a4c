"""The shards of a feature store as it grows: files first, then the manifest that names them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from weakref import finalize

import numpy as np

from skdare.datasets._manifest import CODEBOOK, CODES, Manifest, Shard, StoredFile
from skdare.datasets._store import open_store
from skdare.datasets._store_codes import blocks, codebook, encode
from skdare.datasets._store_files import (
    drop_orphans,
    file_name,
    save_manifest,
    save_rows,
)
from skdare.datasets._store_rows import Rows, Scheme
from skdare.persist import lock_folder, whole_folder


class Shards:
    """A store that one process adds to; nothing counts until `commit`.

    What a killed process left beside the files that the manifest names is removed.

    Parameters
    ----------
    folder : Path
    refuse : callable
        Raises where the manifest is not one to go on with; nothing is touched then.
    """

    def __init__(self, folder: Path, refuse: Callable[[Manifest], None]) -> None:
        # Locked before it is read: another process may be about to replace the manifest.
        descriptor = lock_folder(folder)
        self._unlock = None if descriptor is None else finalize(self, os.close, descriptor)
        try:
            self.store = open_store(folder, unfinished=True)
            self.folder, self.manifest = folder, self.store.manifest
            self._added: list[Shard] = []
            refuse(self.manifest)
            drop_orphans(folder, self.manifest)
        except BaseException:
            self.close()
            raise

    def add(self, pieces: Sequence[Rows]) -> None:
        """Write the files of one more shard, which has these rows one after the other."""
        number = self._next_number()
        files: dict[str, StoredFile] = {}
        for key in pieces[0]:
            columns = [piece[key] for piece in pieces]
            if key == "features":
                files |= self._features(columns, number)
                continue
            shape, dtype = (sum(map(len, columns)),), np.result_type(*columns)
            if dtype.kind == "S":
                # As wide as the longest here, and not in the batches that they came in: a shard
                # has the same bytes however its rows arrived.
                longest = max(int(np.strings.str_len(ids).max()) for ids in columns)
                dtype = np.dtype(f"S{max(1, longest)}")
            files[key] = save_rows(self.folder, file_name(key, number), columns, shape, dtype)
        rows = sum(len(piece["labels"]) for piece in pieces)
        self._added.append(Shard(rows, files))

    def _next_number(self) -> int:
        """What the next files are called by: never what a file of the store has for a name."""
        named = [file.name for file in self.manifest.files]
        first = len(self.manifest.shards) + len(self._added)
        free = (n for n in count(first) if not any(x.endswith(file_name("", n)) for x in named))
        return next(free)

    def _features(self, columns: list[np.ndarray], number: int) -> dict[str, StoredFile]:
        dtype, name = self.manifest.dtype, file_name("features", number)
        shape = (sum(map(len, columns)), self.manifest.features)
        parts: Iterator[np.ndarray] = (rows for X in columns for _, rows in blocks(X))
        if dtype != CODES:
            return {"features": save_rows(self.folder, name, parts, shape, dtype)}
        book = codebook(columns)
        coded = (encode(rows, book) for rows in parts)
        files = {"features": save_rows(self.folder, name, coded, shape, dtype)}
        called = file_name(CODEBOOK, number)
        files[CODEBOOK] = save_rows(self.folder, called, [book], book.shape, book.dtype)
        return files

    def commit(self, scheme: Scheme, *, finished: bool) -> None:
        """Replace the manifest: from now on all shards count, with the names met so far."""
        classes = None if scheme.classes is None else list(scheme.classes.values)
        domains = list(scheme.domains.values)
        shards = (*self.manifest.shards, *self._added)
        whole = replace(self.manifest, shards=shards, finished=finished)
        whole = replace(whole, classes=classes, domains=domains)
        save_manifest(self.folder, whole)
        self.manifest, self._added = whole, []

    def close(self) -> None:
        """Let others write to the store."""
        if self._unlock is not None:
            self._unlock()


def new_folder(path: Path, manifest: Manifest) -> None:
    """A store without rows, which appears whole or not at all."""
    with whole_folder(path) as folder:
        folder.mkdir()
        save_manifest(folder, manifest)
