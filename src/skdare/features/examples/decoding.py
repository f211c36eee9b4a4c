"""From image files to one array of pixels, decoded in threads."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING, NoReturn

import numpy as np
from joblib import cpu_count

from skdare.checks import check_count
from skdare.errors import InputError
from skdare.features.examples.collection import Archives, Collection, ImageFile, listed
from skdare.features.examples.examples import Examples, examples, fingerprint

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

Progress = Callable[[int, int], None]

# Part of every fingerprint: raise the version when the same files come to give other pixels.
_METHOD = "RGB {size}, version 1"
_ROWS_PER_BLOCK = 32
_BLOCKS_AHEAD = 4
_LARGEST_16_BIT = 65535
# A JPEG can be decoded at a half, quarter or eighth of its size. While four times the wanted size
# remains, pixels differ from those of the full decoding by 0.25 of 255 on average and 5 at most
# (photographs of 640 and 1,568 pixels; noise: 0.4 and 8), at twice the speed; with twice the size,
# by 0.6 and 8. The box that comes with it is needed: a width of 427 at an eighth is 53.4.
_DRAFT = 4


def decode(
    collection: Collection,
    size: int,
    *,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Examples:
    """Decode every image of a collection to ``size`` × ``size`` pixels in RGB.

    The aspect ratio is not kept; resizing is bilinear with antialiasing. Of several frames the
    first is taken. Images are turned upright by their EXIF tag, transparent parts become white,
    and 16 bits are scaled to 8. All images are tried before an error names those that cannot be
    read.

    Parameters
    ----------
    collection : Collection
        Images, as ``read_collection`` finds them.
    size : int
    workers : int, optional
        Threads. Default: one per core.
    progress : callable of (done, total), optional
    """
    if collection.kind != "image":
        raise InputError(f"{collection.path} holds texts", "take them with text_examples")
    check_count("size", size, 1)
    workers = cpu_count() if workers is None else workers
    check_count("workers", workers, 1)
    import PIL.Image  # noqa: F401 (refuse before any work where it is missing)

    decoder = _Decoder(collection, size, workers, progress)
    with closing(decoder.blocks()) as blocks:
        pixels = _stacked(blocks, len(collection.ids), size)
    if decoder.unreadable:
        refuse_unreadable(collection, decoder.unreadable)
    contents = [item.content() for item in collection.items]
    return examples(
        collection, pixels, fingerprint(collection, contents, _METHOD.format(size=size))
    )


def _stacked(blocks: Iterable[np.ndarray], rows: int, size: int) -> np.ndarray:
    pixels = np.empty((rows, size, size, 3), dtype=np.uint8)
    filled = 0
    for block in blocks:
        pixels[filled : filled + len(block)] = block
        filled += len(block)
    return pixels[:filled]


@dataclass(frozen=True, eq=False)
class _Decoder:
    """Decodes a collection block by block; failures are collected in ``unreadable``."""

    collection: Collection
    size: int
    workers: int
    progress: Progress | None = None
    unreadable: dict[str, str] = field(default_factory=dict)

    def blocks(self) -> Generator[np.ndarray]:
        """Pixels of the images that can be read, in order."""
        total = len(self.collection.ids)
        done = 0
        zips = {item.file for item in self.collection.items if item.member is not None}
        with Archives(zips) as archives, warnings.catch_warnings():
            # Pillow's remarks about files that it does read would be repeated a thousand times.
            warnings.filterwarnings("ignore", module="PIL")
            for block in self._in_threads(archives):
                done += block.tried
                self.unreadable.update(block.unreadable)
                if self.progress is not None:
                    self.progress(done, total)
                yield block.pixels

    def _in_threads(self, archives: Archives) -> Iterator[_DecodedBlock]:
        ids = self.collection.ids.tolist()
        items = self.collection.items
        pool = ThreadPoolExecutor(self.workers)
        # Few blocks at a time: more would fill the memory where the disk is slower than the cores.
        pending: deque[Future[_DecodedBlock]] = deque()
        try:
            for start in range(0, len(items), _ROWS_PER_BLOCK):
                rows = slice(start, start + _ROWS_PER_BLOCK)
                pending.append(
                    pool.submit(_decode_block, ids[rows], items[rows], archives, self.size)
                )
                if len(pending) >= _BLOCKS_AHEAD * self.workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


@dataclass(frozen=True, eq=False)
class _DecodedBlock:
    tried: int
    pixels: np.ndarray
    unreadable: dict[str, str]


def _decode_block(
    ids: list[str], items: list[ImageFile], archives: Archives, size: int
) -> _DecodedBlock:
    pixels = np.empty((len(items), size, size, 3), dtype=np.uint8)
    unreadable: dict[str, str] = {}
    filled = 0
    for name, item in zip(ids, items, strict=True):
        try:
            pixels[filled] = square(item.read(archives), size)
            filled += 1
        except MemoryError:
            raise
        except Exception as error:  # decoders raise all kinds: OSError, SyntaxError, struct.error
            unreadable[name] = str(error) or type(error).__name__
    return _DecodedBlock(len(items), pixels[:filled], unreadable)


def refuse_unreadable(collection: Collection, unreadable: Mapping[str, str]) -> NoReturn:
    """Name images that cannot be read, with the reasons by id."""
    count = f"{len(unreadable):,} of {len(collection.ids):,} images of {collection.path}"
    raise InputError(
        f"{count} cannot be read: {_with_reasons(unreadable)}", "repair them, or remove them"
    )


def _with_reasons(unreadable: Mapping[str, str]) -> str:
    return listed([f"{name} ({reason})" for name, reason in unreadable.items()])


def square(data: bytes, size: int) -> np.ndarray:
    """Pixels of one image file: uint8 of shape (size, size, 3)."""
    from PIL import Image, UnidentifiedImageError

    if not data:
        raise InputError("the file is empty")
    try:
        image = Image.open(BytesIO(data))
    except UnidentifiedImageError:
        raise InputError("Pillow does not know its format") from None
    with image:
        drafted = image.draft(None, (_DRAFT * size, _DRAFT * size))
        box = drafted[1] if drafted else None
        image.load()
        small = _rgb(image).resize((size, size), Image.Resampling.BILINEAR, box)
    return np.asarray(_upright(small))


def _rgb(image: Picture) -> Picture:
    """Image of any mode in RGB."""
    from PIL import Image

    if image.mode.startswith("I"):
        deep = np.asarray(image).astype(np.int64)
        if deep.min() < 0 or deep.max() > _LARGEST_16_BIT:
            raise InputError("its pixels have more than 16 bits; store it with 8 or 16")
        # By the range of the type, not of the image, which would hide how domains differ.
        image = Image.fromarray(np.round(deep * (255 / _LARGEST_16_BIT)).astype(np.uint8))
    if image.mode == "F":
        raise InputError("its pixels are fractions of unknown range; store it with 8 or 16 bits")
    if image.has_transparency_data:
        image = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
    return image if image.mode == "RGB" else image.convert("RGB")


def _upright(image: Picture) -> Picture:
    from PIL import ImageOps

    try:
        return ImageOps.exif_transpose(image)
    except Exception:  # broken EXIF does not spoil the pixels
        return image
