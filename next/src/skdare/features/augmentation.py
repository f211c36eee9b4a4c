"""Random views of images: crops, flips, colours and greys, computed on the images' device.

The random numbers come from the host and are few (ten per image); the rest is arithmetic on the
device, which a compiler fuses into two or three passes over the batch. torchvision has the same
transforms, but draws from a generator with a state, works image by image where each image has its
own numbers, and is not needed for anything else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

_TRIES = 10
_GREY = (0.2989, 0.587, 0.114)
# Columns of the drawn numbers.
_LEFT, _TOP, _WIDTH, _HEIGHT, _FLIP, _BRIGHT, _CONTRAST, _SATURATION, _HUE, _GREYED = range(10)


@dataclass(frozen=True)
class Augmentation:
    """Random changes of an image; the defaults are DomainBed's.

    Parameters
    ----------
    smallest : float
        Least share of the image's area in a crop, whose aspect ratio is between 3/4 and 4/3.
    flip : float
        Probability of a horizontal flip.
    jitter : float
        Brightness, contrast and saturation are scaled by up to 1 ± this, then the hue is turned by
        up to ± this share of a full turn.
    grey : float
        Probability of a grey image.
    """

    smallest: float = 0.7
    flip: float = 0.5
    jitter: float = 0.3
    grey: float = 0.1

    def draw(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Random numbers for n views, ten each: float32 of shape (n, 10)."""
        views = np.empty((n, 10), dtype=np.float32)
        views[:, :4] = self._crops(rng, n)
        views[:, _FLIP] = rng.random(n) < self.flip
        scaled = rng.uniform(-self.jitter, self.jitter, (n, 4))
        views[:, _BRIGHT : _HUE + 1] = scaled + np.array([1, 1, 1, 0])
        views[:, _GREYED] = rng.random(n) < self.grey
        return views

    def _crops(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Left, top, width and height as shares of the image: the first of ten tries that fits."""
        area = rng.uniform(self.smallest, 1.0, (n, _TRIES))
        aspect = np.exp(rng.uniform(np.log(3 / 4), np.log(4 / 3), (n, _TRIES)))
        width = np.sqrt(area * aspect)
        height = np.sqrt(area / aspect)
        fits = (width <= 1) & (height <= 1)
        first = fits.argmax(axis=1)[:, None]
        sides = np.concatenate([np.take_along_axis(a, first, 1) for a in (width, height)], axis=1)
        sides[~fits.any(axis=1)] = 1.0
        return np.concatenate([rng.random((n, 2)) * (1 - sides), sides], axis=1)


def random_views(images: Tensor, rows: Tensor, drawn: Tensor, pixels: int) -> list[Tensor]:
    """Augmented views of chosen rows, as red, green and blue.

    Parameters
    ----------
    images : uint8 tensor of shape (n, height, width, 3)
    rows : int64 tensor of shape (b,)
    drawn : float32 tensor of shape (b, 10)
        From `Augmentation.draw`.
    pixels : int
        Side of a view.

    Returns
    -------
    three float32 tensors of shape (b, pixels, pixels), in [0, 1]
    """
    left, top, width, height, flip, *jitter, greyed = (
        drawn[:, i, None, None] for i in range(drawn.shape[1])
    )
    along = (torch.arange(pixels, device=images.device) + 0.5) / pixels
    across = torch.where(flip > 0, 1 - along, along)
    rgb = _sampled(images, rows, top + height * along[:, None], left + width * across)
    rgb = _jittered(rgb, *jitter)
    grey = _grey(rgb)
    return [torch.where(greyed > 0, grey, c) for c in rgb]


def plain_views(images: Tensor, rows: Tensor, pixels: int) -> list[Tensor]:
    """Chosen rows, resized where necessary, as red, green and blue in [0, 1]."""
    if images.shape[1] == images.shape[2] == pixels:
        return list((images[rows].float() / 255).unbind(-1))
    along = (torch.arange(pixels, device=images.device) + 0.5) / pixels
    return _sampled(images, rows, along[None, :, None], along[None, None, :])


def _sampled(images: Tensor, rows: Tensor, y: Tensor, x: Tensor) -> list[Tensor]:
    """Red, green and blue at shares y of the height and x of the width; bilinear."""
    y0, y1, wy = _neighbours(y, images.shape[1])
    x0, x1, wx = _neighbours(x, images.shape[2])
    i = rows[:, None, None]
    channels = []
    for channel in range(3):
        upper_left = images[i, y0, x0, channel].float()
        upper_right = images[i, y0, x1, channel].float()
        lower_left = images[i, y1, x0, channel].float()
        lower_right = images[i, y1, x1, channel].float()
        upper = torch.lerp(upper_left, upper_right, wx)
        lower = torch.lerp(lower_left, lower_right, wx)
        channels.append(torch.lerp(upper, lower, wy) / 255)
    return channels


def _neighbours(share: Tensor, n: int) -> tuple[Tensor, Tensor, Tensor]:
    """Pixels on both sides of a place, and its distance from the first."""
    place = (share * n - 0.5).clamp(0, n - 1)
    low = place.floor()
    return low.long(), (low + 1).clamp(max=n - 1).long(), place - low


def _jittered(
    rgb: list[Tensor], bright: Tensor, contrast: Tensor, saturation: Tensor, hue: Tensor
) -> list[Tensor]:
    """Change brightness, contrast, saturation and hue, in this order, each clipped to [0, 1]."""
    rgb = [(c * bright).clamp(0, 1) for c in rgb]
    mean = _grey(rgb).mean(dim=(1, 2), keepdim=True)
    rgb = [torch.lerp(mean, c, contrast).clamp(0, 1) for c in rgb]
    grey = _grey(rgb)
    rgb = [torch.lerp(grey, c, saturation).clamp(0, 1) for c in rgb]
    return _turned(rgb, hue)


def _grey(rgb: list[Tensor]) -> Tensor:
    return sum(w * c for w, c in zip(_GREY, rgb, strict=True))  # type: ignore[return-value]


def _turned(rgb: list[Tensor], turn: Tensor) -> list[Tensor]:
    """Turn the hue by a share of the circle; value and saturation stay."""
    r, g, b = rgb
    value = torch.maximum(torch.maximum(r, g), b)
    chroma = value - torch.minimum(torch.minimum(r, g), b)
    scale = torch.where(chroma > 0, chroma, 1)
    hue = torch.where(
        value == r,
        (g - b) / scale,
        torch.where(value == g, (b - r) / scale + 2, (r - g) / scale + 4),
    )
    hue = hue + 6 * turn
    channels = []
    for offset in (5, 3, 1):
        k = torch.remainder(offset + hue, 6)
        channels.append(value - chroma * torch.minimum(k, 4 - k).clamp(0, 1))
    return channels
