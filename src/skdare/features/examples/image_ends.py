"""Damaged images, found by the first and last bytes of their files before any is decoded."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from joblib import cpu_count

from skdare.features.examples.collection import Archives, Collection, ImageFile
from skdare.features.examples.decoding import square

# First and last bytes of a file that is whole.
_WHOLE = (
    (b"\xff\xd8\xff", b"\xff\xd9"),
    (b"\x89PNG\r\n\x1a\n", b"IEND\xaeB`\x82"),
)
_BYTES = 8
_FILES_AT_ONCE = 256


def damaged_images(
    collection: Collection, progress: Callable[[int], None] | None = None
) -> Mapping[str, str]:
    """Why images cannot be read, by id, as far as the ends of their files tell.

    A file that begins and ends as a JPEG or PNG does is taken for whole, which is many times
    quicker than decoding it; any other is decoded to be sure. What is damaged in the middle is
    found when all are decoded.
    """
    import PIL.Image  # noqa: F401 (refuse before any work where it is missing)

    images = list(zip(collection.ids.tolist(), collection.items, strict=True))
    blocks = [images[i : i + _FILES_AT_ONCE] for i in range(0, len(images), _FILES_AT_ONCE)]
    zips = {item.file for item in collection.items if item.member is not None}
    damaged: dict[str, str] = {}
    with Archives(zips) as archives, warnings.catch_warnings():
        # Pillow's remarks about files that it does read.
        warnings.filterwarnings("ignore", module="PIL")
        with ThreadPoolExecutor(cpu_count()) as pool:
            checked = pool.map(lambda block: _damaged(block, archives), blocks)
            for block, found in zip(blocks, checked, strict=True):
                damaged.update(found)
                if progress is not None:
                    progress(len(block))
    return damaged


def _damaged(images: list[tuple[str, ImageFile]], archives: Archives) -> dict[str, str]:
    damaged = {}
    for name, item in images:
        try:
            first, last = item.ends(archives, _BYTES)
            if not any(first.startswith(a) and last.endswith(b) for a, b in _WHOLE):
                square(item.read(archives), 1)
        except MemoryError:
            raise
        except Exception as error:  # decoders raise all kinds: OSError, SyntaxError, struct.error
            damaged[name] = str(error) or type(error).__name__
    return damaged
