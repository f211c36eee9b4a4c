"""Known sets are found as people have them on disk, and what is wrong with them is named."""

from __future__ import annotations

import shutil
import tomllib
from collections import Counter
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="features are learnt with torch")
pytest.importorskip("PIL.Image", reason="images are read with Pillow")
from skdare.features.examples.image_ends import damaged_images
from skdare.features.examples.layout import Layout
from skdare.features.examples.source import ExampleSource
from small_sets import (
    CLASSES,
    MINIATURES,
    OFFICE_HOME,
    PACS,
    VLCS,
    old_vlcs,
    picture,
    write_domains,
    zip_folder,
)

# What is published: DomainBed's paper, its authors and those of SWAD; TensorFlow Datasets; WILDS.
TOTALS = {
    "pacs": 9991,
    "office-home": 15588,
    "vlcs": 10729,
    "terra-incognita": 24788,
    "domainnet": 586575,
    "camelyon17": 455954,
}


def layout(study: str) -> Layout:
    """Layout of an embedded study."""
    text = (files("skdare.paper") / "studies" / f"{study}.toml").read_text("utf-8")
    return Layout.of(tomllib.loads(text)["data"])


def rows(collection) -> set[tuple[str, str, str]]:
    """Domain, class and name of every image."""
    labels = np.array(collection.classes)[collection.labels]
    return set(zip(collection.domains, labels, collection.ids, strict=True))


# What is known


@pytest.mark.parametrize("study", MINIATURES)
def test_numbers_of_domains_add_up_to_the_published_one(study):
    known = layout(study)
    assert known.classes == CLASSES[study]
    assert set(known.images) <= set(known.domains)
    if set(known.images) == set(known.domains):
        assert sum(known.images.values()) == TOTALS[study]
    assert known.total in (None, TOTALS[study])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"domain": ["a", "b"]}, "has an unknown key `domain`; keys are domains, classes"),
        ({"domains": ["a"]}, "has fewer than two domains"),
        ({"domains": "a"}, "has domains 'a', and a list is needed"),
        ({"classes": "two"}, "has classes 'two'"),
        ({"images": {"c": 3}}, "speaks of `c`, which is not among its domains"),
        ({"also": {"a": "A"}}, "has also.a 'A', and a list is needed"),
        ({"also": {"a": ["B"]}}, "has a name that stands for two domains"),
        ({"splits": [["train"], []]}, "has an empty group of splits"),
        ({"table": {"file": "x.csv"}}, "has a table of other keys than domain, file, image, label"),
    ],
)
def test_a_layout_that_is_no_layout_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Layout.of({"domains": ["a", "b"], **change})


# What is found


@pytest.mark.slow
@pytest.mark.parametrize("study", MINIATURES)
def test_every_miniature_is_found_from_its_folder_and_from_those_above(study, tmp_path):
    known = layout(study)
    root = MINIATURES[study](tmp_path / "sets")
    if known.lists:
        with pytest.warns(UserWarning, match="12 images of .* left out"):
            found = known.read(root)
    else:
        found = known.read(root)
        assert rows(known.read(tmp_path / "sets")) == rows(found)
    assert set(found.domains.tolist()) == set(known.domains)
    assert len(found.classes) == known.classes
    assert found.missing() == {}
    assert damaged_images(found) == {}


@pytest.mark.parametrize(
    "spellings",
    [
        ("art", "clipart", "product", "real_world"),
        ("Art", "Clipart", "Product", "RealWorld"),
        ("ART", "Clip-Art", "Product", "Real"),
    ],
)
def test_spellings_of_domains_do_not_matter(tmp_path, spellings):
    usual = write_domains(tmp_path / "usual", OFFICE_HOME, 3)
    other = tmp_path / "other"
    for domain, spelling in zip(OFFICE_HOME, spellings, strict=True):
        shutil.copytree(usual / domain, other / spelling)
    known = layout("office-home")
    assert rows(known.read(other)) == rows(known.read(usual))


def test_a_split_that_holds_others_is_not_read_twice(tmp_path):
    known = layout("vlcs")
    root = old_vlcs(tmp_path)
    found = known.read(root)
    assert Counter(found.domains.tolist()) == dict.fromkeys(VLCS, 5 * 6)
    assert found.classes == list("01234")
    for domain in root.iterdir():
        shutil.rmtree(domain / "full")
    assert Counter(known.read(root).domains.tolist()) == dict.fromkeys(VLCS, 5 * 6)


@pytest.mark.slow
def test_images_that_lists_do_not_name_are_left_out(tmp_path):
    root = MINIATURES["domainnet"](tmp_path)
    with pytest.warns(UserWarning, match="do not name: clipart 2, infograph 2"):
        found = layout("domainnet").read(root)
    assert len(found.ids) == 6 * 345
    assert not any("duplicate" in name for name in found.ids)
    for file in root.glob("*.txt"):
        file.unlink()
    assert len(layout("domainnet").read(root).ids) == 6 * 347


@pytest.mark.slow
@pytest.mark.parametrize(
    ("there", "named"),
    [
        (["*_train.txt", "[!s]*_test.txt"], "no sketch_test.txt"),
        (["[!s]*.txt"], "no sketch_train.txt, sketch_test.txt"),
    ],
)
def test_a_list_that_is_missing_beside_others_is_named(tmp_path, there, named):
    root = MINIATURES["domainnet"](tmp_path)
    kept = {file for pattern in there for file in root.glob(pattern)}
    for file in set(root.glob("*.txt")) - kept:
        file.unlink()
    with pytest.raises(ValueError, match=f"domain_net has lists of images, but {named}; add it"):
        layout("domainnet").read(root)


@pytest.mark.parametrize("inside", ["", "photo"])
def test_a_zip_stands_for_a_domain_that_has_no_folder(tmp_path, inside):
    known = layout("pacs")
    root = write_domains(tmp_path / "PACS", PACS, 7)
    unpacked = rows(known.read(root))
    zip_folder(root / "photo", inside=inside)
    assert rows(known.read(root)) == unpacked
    # An archive that was unpacked is often left where it was.
    zip_folder(write_domains(tmp_path / "more", ["sketch"], 3) / "sketch")
    shutil.move(tmp_path / "more/sketch.zip", root)
    assert rows(known.read(root)) == unpacked


# What is refused


def test_a_missing_domain_is_named_with_what_was_found(tmp_path):
    root = MINIATURES["office-home"](tmp_path)
    (root / "Real World").rename(root / "Photos")
    with pytest.raises(ValueError, match=r"no folder for domain `Real World`; it has `Art`, `Clip"):
        layout("office-home").read(root)


def test_a_set_that_is_not_there_is_named_by_its_domains(tmp_path):
    write_domains(tmp_path / "other", ["a", "b"], 2)
    with pytest.raises(ValueError, match="no folder for domain `Art`, `Clipart`"):
        layout("office-home").read(tmp_path)
    with pytest.raises(OSError, match="absent does not exist; give the folder of `Art`"):
        layout("office-home").read(tmp_path / "absent")
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(ValueError, match="is not a folder"):
        layout("office-home").read(tmp_path / "notes.txt")


def _edit(root: Path, old: str, new: str) -> None:
    path = root / "metadata.csv"
    path.write_text(path.read_text().replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("tumor", "tumour", "no column 'tumor' in"),
        (",000,", ",0,", r"8 of 40 images in .* do not exist, the first patches/patient_0_node_0"),
        (",4,0\n", ",7,0\n", "'center' in .* has '7'"),
        (",4,0\n", ",,0\n", "'center' in .* has no usable value"),
    ],
)
def test_what_is_wrong_with_a_table_of_patches_is_named(tmp_path, old, new, message):
    root = MINIATURES["camelyon17"](tmp_path)
    _edit(root, old, new)
    with pytest.raises(ValueError, match=message):
        layout("camelyon17").read(root)


# What is checked


def small(collection, **change) -> Layout:
    """A layout that expects what is there, but for a change."""
    counts = Counter(collection.domains.tolist())
    return replace(
        layout("pacs"), **{"images": counts, "classes": len(collection.classes), **change}
    )


def test_a_set_as_expected_passes_without_a_word(tmp_path):
    found = layout("pacs").read(write_domains(tmp_path, PACS, 7))
    small(found, total=len(found.ids)).check(found)


def test_a_small_difference_is_a_warning_and_a_large_one_an_error(tmp_path):
    found = layout("pacs").read(write_domains(tmp_path, PACS, 7, images=4))
    usual = dict.fromkeys(PACS, 28)
    near = small(found, images={**usual, "photo": 29}, remark="a later version has fewer")
    with pytest.warns(UserWarning, match=r"`photo` has 28 images, where 29 are usual \(a later"):
        near.check(found)
    far = small(found, images={**usual, "photo": 40}, total=50)
    with pytest.raises(ValueError, match="40 are usual, there are 112 images, where 50") as error:
        far.check(found)
    assert "skdare train" in str(error.value)


def test_classes_that_differ_between_domains_are_named(tmp_path):
    root = write_domains(tmp_path, PACS, 7)
    (root / "photo/class_3").rename(root / "photo/Class-3")
    shutil.rmtree(root / "sketch/class_5")
    found = layout("pacs").read(root)
    with pytest.raises(ValueError, match="not as expected") as error:
        layout("pacs").check(found)
    for text in (
        "`Class-3` and `class_3` look like one class",
        "domain `photo` has no `class_3`",
        "domain `sketch` has no `Class-3`, `class_5`",
        "there are 8 classes, where 7 are usual",
    ):
        assert text in str(error.value)


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
@pytest.mark.parametrize("zipped", [False, True])
def test_files_that_are_cut_off_are_found_without_decoding_all(tmp_path, kind, zipped):
    root = write_domains(tmp_path, PACS, 7)
    whole = picture(0, kind=kind)
    cut = {"cut": whole[: len(whole) // 2], "empty": b"", "text": b"no picture at all"}
    for name, content in cut.items():
        (root / "photo/class_0" / f"{name}.png").write_bytes(content)
    # Bytes after the end are no harm, nor is another format than the name says.
    (root / "photo/class_0/tail.jpg").write_bytes(whole + b"\0" * 30)
    if zipped:
        zip_folder(root / "photo")
    found = layout("pacs").read(root)
    assert set(damaged_images(found)) == {f"photo/class_0/{name}.png" for name in cut}
    source = ExampleSource(str(root), layout=small(found))
    with pytest.raises(ValueError, match=r"3 of 60 images of .* cannot be read: photo/class_0/cut"):
        source.check()
