"""What a release tells about itself in several files agrees."""

from __future__ import annotations

import re
import tomllib

import pytest

import skdare
from pages import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TAGLINE = PROJECT["description"]


def first(pattern: str, file: str) -> str:
    found = re.search(pattern, (ROOT / file).read_text(encoding="utf-8"), re.M)
    assert found, f"{file} has no {pattern}"
    return found[1]


def test_the_citation_has_the_version_and_the_licence_of_the_package():
    assert first(r"^version: (\S+)", "CITATION.cff") == skdare.__version__
    assert first(r"^license: (\S+)", "CITATION.cff") == PROJECT["license"]


def test_the_changelog_begins_with_the_version_of_the_package():
    assert first(r"^## (\S+)", "CHANGELOG.md") == skdare.__version__


@pytest.mark.parametrize("file", ["README.md", "CITATION.cff"])
def test_the_project_is_described_in_the_same_words(file):
    text = (ROOT / file).read_text(encoding="utf-8")
    assert TAGLINE.lower() in text.lower()


def test_every_extra_is_explained_on_the_page_about_installing():
    page = (ROOT / "docs/install.md").read_text(encoding="utf-8")
    explained = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert explained == set(PROJECT["optional-dependencies"])


def test_every_package_that_is_needed_is_named_on_the_page_about_installing():
    page = (ROOT / "docs/install.md").read_text(encoding="utf-8").lower()
    needed = [re.match(r"[\w-]+", line)[0] for line in PROJECT["dependencies"]]
    assert [name for name in needed if name not in page] == []
