"""Random views: what each number does, and that a fused convolution is the two it replaces."""

from __future__ import annotations

import colorsys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="views are computed with torch")

from skdare.features import Augmentation, backbone  # noqa: E402
from skdare.features.augmentation import _turned, plain_views, random_views  # noqa: E402

# The whole image, unturned, in its own colours.
PLAIN = [0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0]


def pictures(n: int = 6, side: int = 12) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (n, side, side, 3), dtype=torch.uint8, generator=generator)


def seen(images: torch.Tensor, drawn: list[float], pixels: int = 12) -> torch.Tensor:
    """One view of each image, all alike, with channels last."""
    rows, numbers = torch.arange(len(images)), torch.tensor([drawn] * len(images))
    return torch.stack(random_views(images, rows, numbers, pixels), dim=-1)


def changed(**columns: float) -> list[float]:
    names = ["left", "top", "width", "height", "flip", "bright", "contrast", "saturation"]
    names += ["hue", "grey"]
    return [columns.get(name, value) for name, value in zip(names, PLAIN, strict=True)]


def test_a_view_without_change_is_the_image():
    images = pictures()
    torch.testing.assert_close(seen(images, PLAIN), images / 255)
    plain = torch.stack(plain_views(images, torch.arange(6), 12), dim=-1)
    torch.testing.assert_close(plain, images / 255)


def test_a_flip_turns_left_to_right():
    images = pictures()
    torch.testing.assert_close(seen(images, changed(flip=1.0)), images.flip(2) / 255)


def test_a_crop_of_whole_pixels_is_cut_out():
    images = pictures()
    crop = changed(left=0.25, top=0.5, width=0.5, height=0.5)
    torch.testing.assert_close(seen(images, crop, 6), images[:, 6:, 3:9] / 255)


@pytest.mark.parametrize("pixels", [7, 12, 31])
def test_resizing_is_bilinear(pixels):
    images = pictures()
    expected = torch.nn.functional.interpolate(
        images.permute(0, 3, 1, 2).float() / 255, size=(pixels, pixels), mode="bilinear"
    )
    plain = torch.stack(plain_views(images, torch.arange(6), pixels), dim=1)
    torch.testing.assert_close(plain, expected, atol=1e-5, rtol=0)


def test_brightness_scales_and_is_cut():
    images = pictures()
    expected = (images / 255 * 1.3).clamp(max=1)
    torch.testing.assert_close(seen(images, changed(bright=1.3)), expected)


def test_contrast_moves_towards_the_mean_grey():
    images = pictures() / 255
    mean = (images @ torch.tensor([0.2989, 0.587, 0.114])).mean(dim=(1, 2))[:, None, None, None]
    found = seen(pictures(), changed(contrast=0.7))
    torch.testing.assert_close(found, 0.7 * images + 0.3 * mean, atol=1e-5, rtol=0)


def test_saturation_moves_towards_grey_and_grey_arrives_there():
    images = pictures() / 255
    grey = (images @ torch.tensor([0.2989, 0.587, 0.114]))[..., None].expand_as(images)
    torch.testing.assert_close(
        seen(pictures(), changed(saturation=0.7)), 0.7 * images + 0.3 * grey, atol=1e-5, rtol=0
    )
    torch.testing.assert_close(seen(pictures(), changed(grey=1.0)), grey, atol=1e-5, rtol=0)


@pytest.mark.parametrize("turn", [-0.3, -0.01, 0.0, 0.2, 0.3])
def test_the_hue_turns_as_colorsys_turns_it(turn):
    rng = np.random.default_rng(0)
    colours = np.concatenate(
        [rng.random((40, 3)), np.eye(3), np.zeros((1, 3)), np.full((1, 3), 0.4)]
    )
    rgb = [torch.tensor(c, dtype=torch.float32)[None, None] for c in colours.T]
    found = torch.stack(_turned(rgb, torch.tensor(turn)), dim=-1)[0, 0].numpy()
    for colour, got in zip(colours, found, strict=True):
        hue, saturation, value = colorsys.rgb_to_hsv(*colour)
        expected = colorsys.hsv_to_rgb((hue + turn) % 1, saturation, value)
        np.testing.assert_allclose(got, expected, atol=1e-5)


def test_crops_lie_in_the_image_and_have_the_drawn_area_and_aspect():
    drawn = Augmentation().draw(np.random.default_rng(0), 5000).astype(float)
    left, top, width, height = drawn[:, :4].T
    assert np.all((left >= 0) & (top >= 0) & (left + width <= 1.0001) & (top + height <= 1.0001))
    assert np.all((width * height >= 0.6999) & (width * height <= 1.0001))
    assert np.all((width / height >= 0.7499) & (width / height <= 1.3334))


def test_what_is_drawn_has_the_asked_frequencies():
    drawn = Augmentation(flip=0.5, jitter=0.3, grey=0.1).draw(np.random.default_rng(0), 20000)
    assert abs(drawn[:, 4].mean() - 0.5) < 0.02
    assert abs(drawn[:, 9].mean() - 0.1) < 0.01
    assert np.all(np.abs(drawn[:, 5:8] - 1) <= 0.3001)
    assert np.all(np.abs(drawn[:, 8]) <= 0.3001)
    assert np.all(drawn[:, 5:9].std(axis=0) > 0.16)


def test_nothing_asked_for_is_nothing_drawn():
    drawn = Augmentation(smallest=1.0, flip=0.0, jitter=0.0, grey=0.0)
    np.testing.assert_array_equal(
        drawn.draw(np.random.default_rng(0), 3), np.array([PLAIN] * 3, dtype=np.float32)
    )


def test_normalised_views_have_channels_last_in_memory():
    found = backbone("tiny", size=12).views(pictures(), torch.arange(6))
    assert found.shape == (6, 3, 12, 12)
    assert found.is_contiguous(memory_format=torch.channels_last)
