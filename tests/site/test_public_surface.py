"""What is public is listed once, and is what was accepted."""

from __future__ import annotations

import re
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

import public_surface
import skdare
from public_surface import ACCEPT, FILE, MODULES

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page
    for pattern in ("README.md", "docs/**/*.md", "examples/*.py")
    for page in ROOT.glob(pattern)
)
IMPORT = re.compile(r"^ *(?:>>> )?from (skdare[\w.]*) import (\([^)]*\)|[\w, ]+)", re.MULTILINE)
IMPORTS = {page: IMPORT.findall(page.read_text("utf-8")) for page in PAGES}
IMPORTING = [page for page in PAGES if IMPORTS[page]]


def public_module(name):
    try:
        return import_module(name)
    except ImportError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("module", MODULES)
def test_the_public_surface_is_the_one_that_was_accepted(module):
    public_module(module)
    changed = public_surface.difference(module)
    assert not changed, (
        f"the public surface of {module} changed:\n\n{changed}\n\n"
        f"if that is meant, say so in CHANGELOG.md and run: {ACCEPT}"
    )


def test_every_public_module_and_no_other_is_accepted():
    assert tuple(public_surface.accepted()) == MODULES


def test_accepting_twice_changes_nothing(tmp_path, monkeypatch):
    copy = tmp_path / FILE.name
    copy.write_bytes(FILE.read_bytes())
    monkeypatch.setattr(public_surface, "FILE", copy)
    public_surface.accept()
    once = copy.read_bytes()
    public_surface.accept()
    assert copy.read_bytes() == once


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def f(a, b=1): ...", "def f(a, b=2): ..."),
        ("def f(a, b=1): ...", "def f(a, *, b=1): ..."),
        ("def f(a): ...", "def f(renamed): ..."),
        ("def f(a): ...", "f = 3"),
        ("class f:\n def g(self, a): ...", "class f:\n def g(self): ..."),
        ("class f:\n def g(self): ...", "class f:\n g = property(lambda self: 1)"),
        ("class f:\n def __init__(self, a): ...", "class f:\n def __init__(self, a, b): ..."),
        ("f = {'a': 1}", "f = {'a': 1, 'b': 2}"),
        ("class f(UserWarning): ...", "class f(RuntimeWarning): ..."),
    ],
)
def test_a_change_that_a_caller_would_notice_changes_the_text(before, after, monkeypatch):
    texts = []
    for source in (before, after):
        made = type(skdare)("skdare.made")
        made.__all__ = ["f"]
        exec(source, vars(made))
        monkeypatch.setitem(sys.modules, "skdare.made", made)
        texts.append(public_surface.surface("skdare.made"))
    assert texts[0] != texts[1]


@pytest.mark.parametrize("module", MODULES)
def test_a_list_of_public_names_has_each_once_and_none_that_is_private(module):
    names = public_module(module).__all__
    assert len(names) == len(set(names))
    assert not [name for name in names if name.startswith("_")]
    assert not [name for name in names if not hasattr(import_module(module), name)]


def test_a_public_name_is_in_one_module():
    sections = [lines for name, lines in public_surface.accepted().items() if name != "skdare"]
    entries = [line for lines in sections for line in lines[1:] if not line.startswith("    ")]
    names = Counter(re.split(r"\W+", entry.strip())[1] for entry in entries)
    assert [name for name, count in names.items() if count > 1] == []


def test_dir_shows_public_names_alone():
    shown = set(dir(skdare)) - set(skdare._PUBLIC_MODULES)
    assert shown == {*skdare.__all__, "__version__"}


def test_pages_with_imports_are_found():
    assert ROOT / "README.md" in IMPORTING
    for folder in (ROOT / "docs", ROOT / "examples"):
        assert any(page.is_relative_to(folder) for page in IMPORTING)


@pytest.mark.parametrize("page", IMPORTING, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_import_public_names_alone(page):
    for module, names in IMPORTS[page]:
        assert module in MODULES
        listed = set(re.findall(r"\w+", names))
        assert listed <= {*public_module(module).__all__, *skdare._PUBLIC_MODULES}
