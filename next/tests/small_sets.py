"""Miniatures of known sets of images, as people have them on disk."""

from __future__ import annotations

import io
import shutil
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from PIL import Image

PACS = ("art_painting", "cartoon", "photo", "sketch")
OFFICE_HOME = ("Art", "Clipart", "Product", "Real World")
VLCS = ("Caltech101", "LabelMe", "SUN09", "VOC2007")
OLD_VLCS = ("CALTECH", "LABELME", "SUN", "PASCAL")
TERRA = ("location_38", "location_43", "location_46", "location_100")
DOMAINNET = ("clipart", "infograph", "painting", "quickdraw", "real", "sketch")
# How many classes each study expects.
CLASSES = {
    "pacs": 7,
    "office-home": 65,
    "vlcs": 5,
    "terra-incognita": 10,
    "domainnet": 345,
    "camelyon17": 2,
}


def picture(red: int, seed: int = 0, kind: str = "PNG") -> bytes:
    """A small image whose redness shows its class."""
    pixels = np.random.default_rng(seed).integers(0, 256, (6, 7, 3))
    pixels[..., 0] = pixels[..., 0] // 3 + red % 170
    content = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(content, kind)
    return content.getvalue()


def names(count: int) -> list[str]:
    """Names of classes."""
    return [f"class_{i}" for i in range(count)]


def write_classes(folder: Path, classes: Iterable[str], images: int = 2) -> None:
    """Images of a few classes, alternating between two formats."""
    for number, name in enumerate(classes):
        (folder / name).mkdir(parents=True)
        for i in range(images):
            kind, suffix = (("PNG", "png"), ("JPEG", "jpg"))[i % 2]
            content = picture(40 * number, i, kind)
            (folder / name / f"{folder.name}_{i}.{suffix}").write_bytes(content)


def write_domains(root: Path, domains: Iterable[str], classes: int, images: int = 2) -> Path:
    """Folders ``domain/class/image``."""
    for domain in domains:
        write_classes(root / domain, names(classes), images)
    return root


def zip_folder(folder: Path, *, inside: str = "") -> None:
    """Replace a folder by a zip of its name, its files perhaps in one more folder."""
    with zipfile.ZipFile(folder.with_suffix(".zip"), "w") as archive:
        for file in sorted(folder.rglob("*.*")):
            archive.write(file, Path(inside) / file.relative_to(folder))
    shutil.rmtree(folder)


def pacs(top: Path) -> Path:
    """As DomainBed unpacks it."""
    write_domains(top / "PACS/kfold", PACS, 7)
    return top / "PACS"


def office_home(top: Path) -> Path:
    """As its own archive has it."""
    root = write_domains(top / "OfficeHomeDataset_10072016", OFFICE_HOME, 65)
    (root / "ImageInfo.csv").write_text("name,size\n")
    (root / "imagelist.txt").write_text("Art/class_0/Art_0.png\n")
    return root


def vlcs(top: Path) -> Path:
    """As DomainBed has it."""
    return write_domains(top / "VLCS", VLCS, 5, images=6)


def old_vlcs(top: Path) -> Path:
    """With splits between domain and class, of which one holds two others, and numbered classes."""
    for domain in OLD_VLCS:
        for split, images in (("train", 3), ("crossval", 1), ("test", 2)):
            write_classes(top / "VLCS" / domain / split, map(str, range(5)), images)
        for split in ("train", "crossval"):
            for file in (top / "VLCS" / domain / split).rglob("*.*"):
                copy = top / "VLCS" / domain / "full" / file.parent.name / file.name
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, copy)
    return top / "VLCS"


def terra_incognita(top: Path) -> Path:
    """As DomainBed leaves it, beside what it was made from."""
    root = write_domains(top / "terra_incognita", TERRA, 10)
    (root / "eccv_18_all_images_sm").mkdir()
    (root / "eccv_18_all_images_sm/a.jpg").write_bytes(picture(0, kind="JPEG"))
    (root / "caltech_images_20210113.json").write_text("{}")
    return root


def domainnet(top: Path) -> Path:
    """With lists of the images that are meant, and two of each domain that are not."""
    root = write_domains(top / "domain_net", DOMAINNET, 345, images=1)
    for domain in DOMAINNET:
        files = sorted(path.relative_to(root).as_posix() for path in (root / domain).rglob("*.png"))
        lines = [f"{file} {number}" for number, file in enumerate(files)]
        (root / f"{domain}_train.txt").write_text("\n".join(lines[::2]) + "\n")
        (root / f"{domain}_test.txt").write_text("\n".join(lines[1::2]) + "\n")
        for i in range(2):
            (root / domain / "class_0" / f"duplicate_{i}.png").write_bytes(picture(0))
    return root


def camelyon17(top: Path) -> Path:
    """WILDS' table and patches; the numbers of patients begin with zeros."""
    root = top / "camelyon17_v1.0"
    lines = [",patient,node,x_coord,y_coord,tumor,slide,center,split"]
    for i in range(40):
        center = i % 5
        tumor = i // 5 % 2
        slide = f"patient_{center:03d}_node_{tumor}"
        file = root / "patches" / slide / f"patch_{slide}_x_{i}_y_{2 * i}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(picture(90 * tumor, i))
        lines.append(f"{i},{center:03d},{tumor},{i},{2 * i},{tumor},{center},{center},{i % 2}")
    (root / "metadata.csv").write_text("\n".join(lines) + "\n")
    return root


MINIATURES: dict[str, Callable[[Path], Path]] = {
    "pacs": pacs,
    "office-home": office_home,
    "vlcs": vlcs,
    "terra-incognita": terra_incognita,
    "domainnet": domainnet,
    "camelyon17": camelyon17,
}
