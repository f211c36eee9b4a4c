"""Raw data: one set of images, every layout, the same examples; and what is wrong is said."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed, which skdare.features needs")
Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")

from skdare.features import (  # noqa: E402
    Examples,
    decode,
    digit_images,
    read_collection,
    text_examples,
)
from skdare.features.examples import decoding  # noqa: E402

SIZE = 8
DOMAINS = ("batch 2", "batch 10", "élan")
CLASSES = ("cat", "dog 9", "dog 11")
PATHS = [f"{d}/{c}/{n}" for d in DOMAINS for c in CLASSES for n in ("x2.png", "x10.JPG")]
PATHS.remove("élan/cat/x2.png")


def encoded(pixels: np.ndarray | Image.Image, suffix: str, **options) -> bytes:
    image = pixels if isinstance(pixels, Image.Image) else Image.fromarray(pixels)
    file = io.BytesIO()
    kinds = {".jpg": "JPEG", ".tif": "TIFF", ".ppm": "PPM"}
    image.save(file, kinds.get(suffix.lower(), suffix[1:]), **options)
    return file.getvalue()


def picture(seed: int, suffix: str = ".png", shape: tuple[int, int] = (20, 12)) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 256, (*shape, 3), dtype=np.uint8)
    return encoded(pixels, suffix)


def write(root: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return root


def write_zip(path: Path, files: dict[str, bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def write_csv(path: Path, rows: list[tuple]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def in_a_folder(root: Path, files: dict[str, bytes]) -> Path:
    return write(root / "set", files)


def in_a_folder_in_a_folder(root: Path, files: dict[str, bytes]) -> Path:
    write(root / "set" / "images", files)
    return root / "set"


def in_a_folder_of_links(root: Path, files: dict[str, bytes]) -> Path:
    write(root / "elsewhere", files)
    (root / "set").mkdir()
    for folder in (root / "elsewhere").iterdir():
        (root / "set" / folder.name).symlink_to(folder)
    return root / "set"


def in_a_zip(root: Path, files: dict[str, bytes]) -> Path:
    return write_zip(root / "set.zip", files)


def in_a_zip_with_a_folder_around(root: Path, files: dict[str, bytes]) -> Path:
    around = {f"images/{name}": data for name, data in files.items()}
    return write_zip(root / "set.ZIP", {"images/": b"", **around})


def in_zips(root: Path, files: dict[str, bytes]) -> Path:
    (root / "set").mkdir()
    for domain in {name.split("/")[0] for name in files}:
        members = {n: data for n, data in files.items() if n.startswith(f"{domain}/")}
        write_zip(root / "set" / f"{domain}.zip", members)
    return root / "set"


def in_zips_called_after_domains(root: Path, files: dict[str, bytes]) -> Path:
    (root / "set").mkdir()
    for domain in {name.split("/")[0] for name in files}:
        start = f"{domain}/"
        members = {n[len(start) :]: data for n, data in files.items() if n.startswith(start)}
        write_zip(root / "set" / f"{domain}.zip", members)
    return root / "set"


def in_a_table(root: Path, files: dict[str, bytes]) -> Path:
    write(root, files)
    rows = [(f"./{name}", name.split("/")[1], name.split("/")[0]) for name in files]
    return write_csv(root / "set.csv", [("path", "label", "domain"), *rows])


LAYOUTS = [
    in_a_folder,
    in_a_folder_in_a_folder,
    in_a_folder_of_links,
    in_a_zip,
    in_a_zip_with_a_folder_around,
    in_zips,
    in_zips_called_after_domains,
    in_a_table,
]


@pytest.fixture
def files() -> dict[str, bytes]:
    """15 images in no order that a reader could rely on; "élan" has no "dog 9"."""
    images = {p: picture(i, Path(p).suffix) for i, p in enumerate(PATHS) if p[:10] != "élan/dog 9"}
    order = np.random.default_rng(0).permutation(list(images)).tolist()
    return {name: images[name] for name in order}


def assert_same(a: Examples, b: Examples) -> None:
    assert (a.classes, a.kind, a.fingerprint) == (b.classes, b.kind, b.fingerprint)
    for field in ("inputs", "labels", "domains", "ids"):
        np.testing.assert_array_equal(getattr(a, field), getattr(b, field))


# ---------------------------------------------------------------------------------------------
# Layouts


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_examples(layout, files, tmp_path):
    collection = read_collection(layout(tmp_path, files))
    assert collection.name == "set"
    expected = decode(read_collection(write(tmp_path / "plain" / "set", files)), SIZE)
    assert_same(decode(collection, SIZE), expected)


def test_rows_stand_in_natural_order_whatever_the_file_system_lists_first(files, tmp_path):
    collection = read_collection(in_a_zip(tmp_path, files))
    assert collection.ids.tolist() == [name for name in PATHS if name in files]
    assert collection.classes == list(CLASSES)
    backwards = in_a_zip(tmp_path, dict(reversed(files.items())))
    assert_same(decode(read_collection(backwards), SIZE), decode(collection, SIZE))


def test_examples_agree_with_the_files_row_by_row(files, tmp_path):
    examples = decode(read_collection(in_a_folder(tmp_path, files)), SIZE)
    assert set(examples.ids.tolist()) == set(files)
    for row, name in enumerate(examples.ids.tolist()):
        domain, label, _ = name.split("/")
        assert (examples.domains[row], examples.classes[examples.labels[row]]) == (domain, label)
        image = Image.open(io.BytesIO(files[name])).resize((SIZE, SIZE), Image.Resampling.BILINEAR)
        np.testing.assert_array_equal(examples.inputs[row], np.asarray(image))


def test_classes_that_a_domain_lacks_are_allowed_and_said(files, tmp_path):
    collection = read_collection(in_a_folder(tmp_path, files))
    assert collection.missing() == {"élan": ["dog 9"]}
    assert collection.describe().splitlines() == [
        "3 domains, 3 classes, 15 images",
        "batch 2 6, batch 10 6, élan 3",
        "domain `élan` has no `dog 9`",
    ]


@pytest.mark.parametrize("layout", [in_a_folder, in_a_zip])
def test_hidden_files_are_passed_over_and_other_files_are_said(layout, files, tmp_path):
    passed = [".git/a/x.png", "élan/.cat/x.png", "élan/cat/._x2.png", "__MACOSX/a/b/c.png"]
    passed += ["élan/cat/Thumbs.db", "élan/cat/.DS_Store", "élan/dog 11/desktop.ini"]
    others = ["README.md", "splits/train.txt", "élan/cat/note.txt"]
    more = dict.fromkeys((*passed, *others), b"x")
    collection = read_collection(layout(tmp_path, files | more))
    assert sorted(collection.ids) == sorted(files)
    assert collection.others == sorted(others)
    assert (
        "left out 3 files without an image suffix: README.md, splits/train.txt"
        in collection.describe()
    )


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], r"set has no images; images end in \.jpg, .* or \.pgm"),
        (["a/b/c.txt", "d.npy"], r"no images but 2 other files, such as (a/b/c\.txt|d\.npy);"),
        (["a/1.png", "b/1.png"], r"a/1\.png in .*set lies in 1 folder, and images must lie in 2"),
        (["1.png"], r"1\.png in .*set lies in 0 folders.*give the folder above this one"),
        (["a/b/1.png", "a/2.png"], r"a/2\.png in .*set lies in 1 folder,"),
        (["a/b/1.png", "a/b/c/2.png"], r"a/b/c/2\.png .* in 3 folders.*move it up, or list"),
        (["a/b/c/1.png", "d/b/c/1.png"], r"a/b/c/1\.png .* lies in 3 folders"),
        (["a/b/1.png", "a/b/c/d/e/f/2.png"], r"2\.png .* lies in 6 folders"),
        (["a/b/1.png", "a/c/"], r"folder a/c in .*set has no images; fill it, or remove it"),
        (["a/b/1.png", "a/c/x.heic"], r"folder a/c in .*set has no images"),
        (["a/b/1.png", "c/"], r"folder c in .*set has no images"),
        (["r/a/b/1.png", "r/c/"], r"folder r/c in .*set has no images"),
        (
            ["a/b/1.png", "c.zip"],
            r"images in folders and also zips, c\.zip; move one or the other away",
        ),
    ],
)
def test_folders_that_are_no_domains_and_classes_are_refused_in_words(names, message, tmp_path):
    (tmp_path / "set").mkdir()
    write(tmp_path / "set", {name: b"x" for name in names if not name.endswith("/")})
    for name in names:
        (tmp_path / "set" / name).parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            (tmp_path / "set" / name).mkdir(exist_ok=True)
    with pytest.raises(ValueError, match=message):
        read_collection(tmp_path / "set")
    if "c.zip" not in names:
        zipped = write_zip(
            tmp_path / "set.zip", {name: b"" if name.endswith("/") else b"x" for name in names}
        )
        with pytest.raises(ValueError, match=message.replace("set", r"set\.zip", 1)):
            read_collection(zipped)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent", r"there is no file or folder '.*absent'; give a folder or zip of"),
        ("a.xlsx", r"a\.xlsx cannot be read as images or texts; give a folder or zip"),
        ("a.zip", r"a\.zip cannot be read as zip"),
        ("a.csv", r"a\.csv cannot be read as CSV"),
        ("a.parquet", r"a\.parquet cannot be read as Parquet"),
    ],
)
def test_a_path_of_another_kind_is_refused(name, message, tmp_path):
    if name != "absent":
        (tmp_path / name).write_bytes(b"\x00\xff nothing of the kind")
    with pytest.raises(ValueError, match=message):
        read_collection(tmp_path / name)


# ---------------------------------------------------------------------------------------------
# Tables


def text_table(folder: Path, rows: list[tuple], header=("text", "label", "domain")) -> Path:
    return write_csv(folder / "reviews.csv", [header, *rows])


def test_texts_come_with_the_number_of_their_row(tmp_path):
    rows = [
        ("it was, well, fine", 10, "b"),
        ("dull\nreally", 9, "a"),
        ("NA", 9, "b"),
        ("é", 9, "a"),
    ]
    found = text_examples(read_collection(text_table(tmp_path, rows)))
    assert found.inputs.tolist() == ["dull\nreally", "é", "NA", "it was, well, fine"]
    assert found.inputs.dtype == object
    assert found.ids.tolist() == ["1", "3", "2", "0"]
    assert (found.classes, found.labels.tolist()) == (["9", "10"], [0, 0, 0, 1])
    assert found.domains.tolist() == ["a", "a", "b", "b"]
    assert (found.kind, found.name) == ("text", "reviews")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("path,text,label,domain\na,b,c,d\n", r"images or texts of .*it has path, text, label"),
        ("words,label,domain\na,b,c\n", r"no column for the image .*; call one path or text"),
        ("text,grade,domain\na,b,c\n", r"no column for the label .*; call one y or target or l"),
        ("text,label,place\na,b,c\n", r"no column for the domain in .*; call one domain or"),
        ("text,label,y,domain\na,b,c,d\n", r"2 columns that may be the label: label, y; leave"),
        ("text,label,domain,site\na,b,c,d\n", r"2 columns that may be the domain: domain, site"),
        (
            "text,label,domain\na,b,c\nd,,f\n",
            r"'label' in .* 1 of 2 rows, the first '' in row 2",
        ),
        ("text,label,domain\na,b,NA\n", r"'domain' in .* no usable value .* 'NA' in row 1"),
        ("text,label,domain\n ,b,c\n", r"'text' in .* has no usable value"),
        ("path,label,domain\n,b,c\n", r"'path' in .* has no usable value"),
        ("text,label,domain\na,b\n", r"'domain' in .* has no usable value"),
        ("text,label,domain\na,b,c,d\n", r"a\.csv cannot be read as CSV"),
        ("text,label,domain\n", r"a\.csv has no rows"),
        ("", r"a\.csv is empty; a header and rows are needed"),
        (
            "path,label,domain\nhere.png,b,c\ngone.png,b,c\n.,b,c\n",
            r"2 of 3 images in .*a\.csv do not exist, the first gone\.png in row 2, looked for in",
        ),
        (
            "path,label,domain\nhere.png,b,c\nhere.png,b,d\n",
            r"2 rows called here\.png; keep one",
        ),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_in_words(lines, message, tmp_path):
    write(tmp_path, {"here.png": picture(0), "a.csv": lines.encode()})
    with pytest.raises(ValueError, match=message):
        read_collection(tmp_path / "a.csv")


# ---------------------------------------------------------------------------------------------
# Decoding


def bomb(monkeypatch) -> bytes:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    return picture(0, shape=(60, 60))


UNREADABLE: dict[str, tuple[Callable[..., bytes], str]] = {
    "no bytes": (lambda _: b"", "the file is empty"),
    "text": (lambda _: b"<html>404</html>", "Pillow does not know its format"),
    "cut short": (lambda _: picture(0, ".jpg", (90, 90))[:2000], "truncated"),
    "cut short in PNG": (lambda _: picture(0, ".png", (90, 90))[:2000], "truncated"),
    "a decompression bomb": (bomb, "decompression bomb"),
    "fractions": (
        lambda _: encoded(np.zeros((9, 9), np.float32), ".tif"),
        "fractions of unknown range",
    ),
    "32 bits": (lambda _: encoded(np.full((9, 9), 1 << 20, np.int32), ".tif"), "more than 16 bits"),
}


@pytest.mark.parametrize("layout", [in_a_folder, in_a_zip, in_a_table])
@pytest.mark.parametrize("what", UNREADABLE)
def test_what_cannot_be_read_is_named(what, layout, files, tmp_path, monkeypatch):
    make, why = UNREADABLE[what]
    bad = ["batch 2/cat/x2.png", "élan/cat/x10.JPG"]
    collection = read_collection(layout(tmp_path, files | dict.fromkeys(bad, make(monkeypatch))))
    named = rf"2 of 15 images of .*cat/x2\.png \(.*{why}.*élan/cat/x10\.JPG \(.*{why}"
    with pytest.raises(ValueError, match=named):
        decode(collection, SIZE)


RED, GREY = (200, 30, 40), (100, 100, 100)
MODES = {
    "RGB": (Image.new("RGB", (20, 10), RED), ".png", RED),
    "grey": (Image.new("L", (20, 10), 100), ".png", GREY),
    "grey JPEG": (Image.new("L", (20, 10), 100), ".jpg", GREY),
    "black and white": (Image.new("1", (20, 10), 1), ".png", (255, 255, 255)),
    "palette": (Image.new("RGB", (20, 10), RED).quantize(4), ".gif", RED),
    "half transparent": (Image.new("RGBA", (20, 10), (200, 30, 40, 128)), ".png", (227, 142, 147)),
    "transparent": (Image.new("RGBA", (20, 10), (200, 30, 40, 0)), ".webp", (255, 255, 255)),
    "grey and transparent": (Image.new("LA", (20, 10), (100, 0)), ".png", (255, 255, 255)),
    "16 bits": (Image.fromarray(np.full((10, 20), 100 * 257, np.uint16)), ".png", GREY),
    "16 bits in TIFF": (Image.fromarray(np.full((10, 20), 100 * 257, np.uint16)), ".tif", GREY),
    "CMYK": (Image.new("RGB", (20, 10), RED).convert("CMYK"), ".tif", RED),
    "bitmap": (Image.new("RGB", (20, 10), RED), ".bmp", RED),
    "portable": (Image.new("RGB", (20, 10), RED), ".ppm", RED),
}


def decoded(data: bytes, suffix: str, folder: Path, size: int = SIZE) -> np.ndarray:
    return decode(read_collection(write(folder, {f"a/b/1{suffix}": data})), size).inputs[0]


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_becomes_the_colour_that_is_seen_on_white(mode, tmp_path):
    image, suffix, colour = MODES[mode]
    pixels = decoded(encoded(image, suffix), suffix, tmp_path)
    assert pixels.shape == (SIZE, SIZE, 3)
    np.testing.assert_allclose(pixels, np.broadcast_to(colour, pixels.shape), atol=2)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("suffix", [".jpg", ".png", ".tif"])
def test_images_stand_upright_whatever_their_orientation_tag(orientation, suffix, tmp_path):
    from PIL import ImageOps

    pixels = np.zeros((40, 24, 3), np.uint8)
    pixels[:20, :12], pixels[:20, 12:], pixels[20:, :12] = RED, (30, 60, 220), (250, 250, 20)
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encoded(pixels, suffix, exif=exif, **({"quality": 95} if suffix == ".jpg" else {}))
    upright = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    expected = np.asarray(upright.resize((SIZE, SIZE), Image.Resampling.BILINEAR), dtype=int)
    assert np.abs(decoded(data, suffix, tmp_path) - expected).max() <= 2


def test_a_large_jpeg_is_decoded_smaller_and_hardly_differs(tmp_path):
    rng = np.random.default_rng(0)
    coarse = Image.fromarray(rng.integers(0, 256, (150, 131, 3), dtype=np.uint8))
    large = np.asarray(coarse.resize((1049, 1201), Image.Resampling.BICUBIC))
    data = encoded(large, ".jpg", quality=90)
    whole = Image.open(io.BytesIO(data)).resize((32, 32), Image.Resampling.BILINEAR)
    difference = np.abs(decoded(data, ".jpg", tmp_path, 32) - np.asarray(whole, dtype=int))
    assert difference.mean() < 0.5
    assert difference.max() <= 10


@pytest.mark.parametrize("workers", [1, 3])
def test_the_number_of_threads_changes_nothing(workers, tmp_path, monkeypatch):
    monkeypatch.setattr(decoding, "_ROWS_PER_BLOCK", 2)
    files = {f"a/b/{i}.png": picture(i) for i in range(27)}
    collection = read_collection(in_a_zip(tmp_path, files))
    heard: list[tuple[int, int]] = []
    examples = decode(collection, SIZE, workers=workers, progress=lambda *done: heard.append(done))
    assert heard == [(done, 27) for done in (*range(2, 27, 2), 27)]
    expected = [decoded(files[name], ".png", tmp_path / "one") for name in examples.ids.tolist()]
    np.testing.assert_array_equal(examples.inputs, expected)


# ---------------------------------------------------------------------------------------------
# Fingerprints


# ---------------------------------------------------------------------------------------------
# Digits


def test_digits_lie_in_one_domain_each_and_classes_are_spread_evenly():
    digits = digit_images()
    assert len({name.split("/")[2] for name in digits.ids.tolist()}) == len(digits.ids) == 1797
    counts = np.array(
        [
            np.bincount(digits.labels[digits.domains == domain], minlength=10)
            for domain in ("faint", "plain", "shaded", "tilted")
        ]
    )
    assert np.ptp(counts, axis=0).max() <= 1
    assert np.ptp(counts.sum(axis=1)) <= 10
    assert (digits.inputs.dtype, digits.kind) == (np.uint8, "image")
