"""From image files to one array of pixels: decoding in threads, and what cannot be read."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from joblib import cpu_count

from skdare._validation import InputError, check_count, warn
from skdare.datasets._contents import needing
from skdare.features._collection import Archives, Collection, ImageFile, listed
from skdare.features._examples import Examples, examples, fingerprint
from skdare.features._picture import square
from skdare.features._pixel_cache import PixelCache

Progress = Callable[[int, int], None]

# Part of every fingerprint: raise the number when the same files come to give other pixels.
_MADE = "RGB {size}, version 1"
_BLOCK = 32
_BLOCKS_AHEAD = 4


def decode(
    collection: Collection,
    size: int,
    *,
    cache: str | Path | None = None,
    workers: int | None = None,
    skip_unreadable: bool = False,
    progress: Progress | None = None,
) -> Examples:
    """Every image of a collection as ``size`` × ``size`` pixels in RGB.

    The aspect is not kept; bilinear with antialiasing; the first frame, turned upright as EXIF
    says; transparent parts on white; 16 bits scaled to 8. All images are tried before those that
    cannot be read are reported, and those that can are in the cache by then.

    Parameters
    ----------
    collection : Collection
        Of kind "image".
    size : int
    cache : str or Path, optional
        A folder to keep the pixels in and to find them again; the inputs are then a read-only
        memory map. Default: they are held in memory.
    workers : int, optional
        Threads. Default: one a core.
    skip_unreadable : bool
        Leave out, with a warning, what cannot be read. Default: a ValueError names it.
    progress : callable of (done, total), optional

    Returns
    -------
    Examples
    """
    if collection.kind != "image":
        raise ValueError(f"{collection.path} holds texts; take them with text_examples")
    check_count("size", size, 1)
    workers = cpu_count() if workers is None else workers
    check_count("workers", workers, 1)
    with needing("vision", collection.path):
        import PIL.Image  # noqa: F401 (tells that it is there before any work starts)
    fingerprints = _Fingerprints(collection, size)
    store = None if cache is None else PixelCache(Path(cache), size)
    decoded = _found(collection, store, fingerprints) if store else None
    if decoded is None:
        decoder = _Decoder(collection, size, workers, progress)
        decoded = _decoded(decoder, store, fingerprints)
    _report(collection, decoded.unreadable, decoded.collection, skip=skip_unreadable)
    return examples(decoded.collection, decoded.pixels, fingerprints.of(decoded.collection))


@dataclass(frozen=True, eq=False)
class _Decoded:
    """The images that can be read with their pixels, and why others cannot, by id."""

    collection: Collection
    pixels: np.ndarray
    unreadable: Mapping[str, str]


class _Fingerprints:
    """Names for a collection and parts of it at one size; every file is looked at once."""

    def __init__(self, collection: Collection, size: int) -> None:
        self._made = _MADE.format(size=size)
        pairs = zip(collection.ids.tolist(), collection.items, strict=True)
        self._contents = {name: item.content() for name, item in pairs}

    def of(self, part: Collection) -> str:
        return fingerprint(part, [self._contents[name] for name in part.ids.tolist()], self._made)


def _found(
    collection: Collection, store: PixelCache, fingerprints: _Fingerprints
) -> _Decoded | None:
    """What an earlier run has left, if what it could not read is unreadable still."""
    unreadable = store.unreadable(fingerprints.of(collection))
    if unreadable:
        rest = collection.without(unreadable)
        again = _Decoder(collection.without(rest.ids.tolist()), store.size, workers=1)
        deque(again.blocks(), maxlen=0)
        if again.unreadable.keys() != unreadable.keys():
            return None
        collection = rest
    pixels = store.load(fingerprints.of(collection), len(collection.ids))
    return None if pixels is None else _Decoded(collection, pixels, unreadable)


def _decoded(decoder: _Decoder, store: PixelCache | None, fingerprints: _Fingerprints) -> _Decoded:
    collection, unreadable = decoder.collection, decoder.unreadable
    with closing(decoder.blocks()) as blocks:
        if store is None:
            pixels = _gathered(blocks, len(collection.ids), decoder.size)
            return _Decoded(decoder.readable(), pixels, unreadable)
        with store.written(blocks, len(collection.ids)) as partial:
            rest = decoder.readable()
            if unreadable:
                store.note(fingerprints.of(collection), unreadable)
            pixels = store.keep(partial, fingerprints.of(rest), len(rest.ids))
            return _Decoded(rest, pixels, unreadable)


def _gathered(blocks: Iterable[np.ndarray], rows: int, size: int) -> np.ndarray:
    pixels = np.empty((rows, size, size, 3), dtype=np.uint8)
    filled = 0
    for block in blocks:
        pixels[filled : filled + len(block)] = block
        filled += len(block)
    return pixels[:filled]


@dataclass(frozen=True, eq=False)
class _Decoder:
    """The images of a collection block by block; those that fail gather in ``unreadable``."""

    collection: Collection
    size: int
    workers: int
    progress: Progress | None = None
    unreadable: dict[str, str] = field(default_factory=dict)

    def blocks(self) -> Generator[np.ndarray]:
        """Pixels of the images that can be read, in order."""
        total, done = len(self.collection.ids), 0
        zips = {item.file for item in self.collection.items if item.member is not None}
        with Archives(zips) as archives, warnings.catch_warnings():
            # What Pillow finds odd about files that it does read would be said a thousand times.
            warnings.filterwarnings("ignore", module="PIL")
            for block in self._in_threads(archives):
                done += block.tried
                self.unreadable.update(block.unreadable)
                if self.progress is not None:
                    self.progress(done, total)
                yield block.pixels

    def _in_threads(self, archives: Archives) -> Iterator[_Block]:
        ids, items = self.collection.ids.tolist(), self.collection.items
        pool = ThreadPoolExecutor(self.workers)
        # Few blocks at a time: more would fill the memory where the disk is slower than the cores.
        pending: deque[Future[_Block]] = deque()
        try:
            for start in range(0, len(items), _BLOCK):
                rows = slice(start, start + _BLOCK)
                pending.append(pool.submit(_block, ids[rows], items[rows], archives, self.size))
                if len(pending) >= _BLOCKS_AHEAD * self.workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)

    def readable(self) -> Collection:
        """The images that did not fail; at least one has to be left."""
        if not self.unreadable:
            return self.collection
        if len(self.unreadable) == len(self.collection.ids):
            raise ValueError(
                f"none of the {len(self.collection.ids):,} images of {self.collection.path} can be "
                f"read: {_named(self.unreadable)}"
            )
        return self.collection.without(self.unreadable)


@dataclass(frozen=True, eq=False)
class _Block:
    tried: int
    pixels: np.ndarray
    unreadable: dict[str, str]


def _block(ids: list[str], items: list[ImageFile], archives: Archives, size: int) -> _Block:
    pixels = np.empty((len(items), size, size, 3), dtype=np.uint8)
    unreadable: dict[str, str] = {}
    filled = 0
    for name, item in zip(ids, items, strict=True):
        try:
            pixels[filled] = square(item.read(archives), size)
            filled += 1
        except MemoryError:
            raise
        except Exception as error:  # decoders raise what they like: OSError, SyntaxError, struct's
            unreadable[name] = str(error) or type(error).__name__
    return _Block(len(items), pixels[:filled], unreadable)


def _report(
    before: Collection, unreadable: Mapping[str, str], after: Collection, *, skip: bool
) -> None:
    """Refuse what cannot be read, or warn that it is left out and what goes with it."""
    if not unreadable:
        return
    many = f"{len(unreadable):,} of {len(before.ids):,} images of {before.path}"
    if not skip:
        raise InputError(
            f"{many} cannot be read: {_named(unreadable)}",
            "mend or remove them, or leave them out with skip_unreadable=True",
            argument="skip_unreadable",
        )
    left = {*after.domains.tolist(), *after.classes}
    gone = [n for n in dict.fromkeys([*before.domains.tolist(), *before.classes]) if n not in left]
    also = f"; nothing is left of {listed(gone)}" if gone else ""
    warn(f"{many} cannot be read and are left out: {_named(unreadable)}{also}")


def _named(unreadable: Mapping[str, str]) -> str:
    return listed([f"{name} ({why})" for name, why in unreadable.items()])
