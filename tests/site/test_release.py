"""What a release says of itself in several files agrees."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import skdare

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Packages that conda-forge calls by another name than PyPI does.
CONDA = {"torch": "pytorch", "matplotlib": "matplotlib-base"}
# Extras for those who work on skdare, and the sum of all.
NOT_FOR_USERS = ("test", "docs", "lint", "all")


def read(name: str) -> dict:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def as_conda(requirements: list[str]) -> set[str]:
    """Requirements of pip that state a version, as conda writes them."""
    parts = (re.fullmatch(r"([\w.-]+)(?:\[\w+\])?(>=[\d.]+)", line) for line in requirements)
    return {f"{CONDA.get(m[1], m[1].lower())} {m[2]}" for m in parts if m}


@pytest.fixture
def recipe() -> dict:
    return read("recipe/recipe.yaml")


def test_the_recipe_has_the_version_of_the_package(recipe):
    assert recipe["context"]["version"] == skdare.__version__


def test_the_recipe_needs_what_the_package_needs(recipe):
    python, *needed = recipe["requirements"]["run"]
    assert python == "python >=${{ python_min }}"
    assert f">={recipe['context']['python_min']}" == PROJECT["requires-python"]
    assert len(needed) == len(PROJECT["dependencies"])
    assert set(needed) == as_conda(PROJECT["dependencies"])


def test_the_recipe_bounds_the_versions_that_the_extras_bound(recipe):
    extras = PROJECT["optional-dependencies"]
    wanted = [line for name in extras if name not in NOT_FOR_USERS for line in extras[name]]
    assert set(recipe["requirements"]["run_constraints"]) == as_conda(wanted)


def test_the_recipe_has_the_command_of_the_package(recipe):
    entries = [f"{name} = {place}" for name, place in PROJECT["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == entries


def test_the_citation_has_the_version_and_the_licence_of_the_package():
    citation = read("CITATION.cff")
    assert citation["version"] == skdare.__version__
    assert citation["license"] == PROJECT["license"]


def test_the_changelog_begins_with_the_version_of_the_package():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## (\S+)", text, re.MULTILINE)[1] == skdare.__version__


def test_every_extra_is_explained_on_the_page_about_installing():
    page = (ROOT / "docs/install.md").read_text(encoding="utf-8")
    explained = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert explained == set(PROJECT["optional-dependencies"])
