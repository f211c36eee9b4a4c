"""scikit-learn's digits as colour images in four styles, to train on without any file."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from skdare.checks import check_count
from skdare.features.examples.collection import Collection, Row
from skdare.features.examples.examples import Examples, examples, fingerprint

_GROUND = np.array([0.45, 0.9, 0.7])
_INK = np.array([1.0, 0.75, 0.3])


def digit_images(size: int = 16, *, random_state: int = 0) -> Examples:
    """scikit-learn's 1,797 digits as RGB images in four styles, each image in one of them.

    ``plain`` is white on black, unchanged; ``tilted`` is turned by 20 to 30 degrees; ``faint`` is
    hardly lighter than the grey around it; ``shaded`` is orange on rough green ground with light
    from one side. Classes are spread evenly over domains.

    The styles were chosen so that a small network trained on three of them falls well below one
    trained on all four, while a linear head on its features that sees the fourth recovers much of
    the gap: they illustrate what the paper found, and are not evidence for it. With colour jitter
    in training, ``faint`` is hardly harder than the others.

    Parameters
    ----------
    size : int
        Width and height, at least 8; enlarged from 8 × 8 by bilinear interpolation.
    random_state : int
        Which image gets which style, and how much of it.

    Returns
    -------
    Examples

    Examples
    --------
    >>> from skdare.features import digit_images
    >>> digits = digit_images()
    >>> digits.inputs.shape, digits.ids[0].item()
    ((1797, 16, 16, 3), 'faint/0/0010')
    """
    from sklearn.datasets import load_digits

    check_count("size", size, 8)
    strokes, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(random_state)
    style = _spread(y, len(_STYLES), rng)
    U = _interpolation(8, size)
    strokes = U @ (strokes.reshape(-1, 8, 8) / 16) @ U.T
    names = list(_STYLES)
    images = np.stack(
        [_STYLES[names[e]](image, rng) for e, image in zip(style, strokes, strict=True)]
    )
    rows = (
        Row(names[e], str(label), f"{names[e]}/{label}/{row:04}", str(row))
        for row, (e, label) in enumerate(zip(style, y, strict=True))
    )
    collection = Collection.from_rows("image", "digits", Path("digits"), rows)
    order = np.array(collection.items, dtype=np.intp)
    pixels = np.round(255 * images[order]).astype(np.uint8)
    content = [hashlib.sha256(pixels.data).hexdigest()]
    return examples(collection, pixels, fingerprint(collection, content, "RGB"))


def _spread(y: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Random number below n for each row, each as often as the others in every class."""
    numbers = np.empty(len(y), dtype=np.intp)
    for label in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == label))
        # Each class starts with another number, or the first ones would get all the remainders.
        numbers[rows] = (np.arange(len(rows)) + label) % n
    return numbers


def _interpolation(few: int, many: int) -> np.ndarray:
    """Matrix of shape (many, few) that interpolates linearly between centres of pixels."""
    at = (np.arange(many) + 0.5) * few / many - 0.5
    return np.stack([np.interp(at, np.arange(few), unit) for unit in np.eye(few)], axis=1)


def _plain(strokes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.repeat(strokes[..., None], 3, axis=-1)


def _tilted(strokes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    from scipy import ndimage

    turned = ndimage.rotate(strokes, rng.uniform(20, 30), reshape=False, order=1)
    return _plain(np.clip(turned, 0, 1), rng)


def _faint(strokes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return _plain(rng.uniform(0.35, 0.55) + rng.uniform(0.15, 0.3) * strokes, rng)


def _shaded(strokes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Ink on a ground that brightens from 0.2 to 0.6 across the image, with a fine grain.

    A coarser or stronger grain would hide the digit from the features, so that no head could
    recover it.
    """
    from scipy import ndimage

    size = len(strokes)
    angle = rng.uniform(0, 2 * np.pi)
    ruler = np.linspace(-1, 1, size)
    light = np.cos(angle) * ruler[:, None] + np.sin(angle) * ruler
    grain = ndimage.gaussian_filter(rng.normal(size=(size, size)), 0.5, mode="wrap")
    ground = np.clip(0.4 + 0.2 * light + 0.08 * grain / grain.std(), 0, 1)[..., None] * _GROUND
    opaque = 0.7 * strokes[..., None]
    return (1 - opaque) * ground + opaque * _INK


_STYLES: dict[str, Callable[[np.ndarray, np.random.Generator], np.ndarray]] = {
    "plain": _plain,
    "tilted": _tilted,
    "faint": _faint,
    "shaded": _shaded,
}
