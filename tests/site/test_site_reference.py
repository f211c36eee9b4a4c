"""Everything public is documented, and the documentation is that of the code."""

from __future__ import annotations

import importlib
import inspect
import re
import sys

import pytest

import public_surface
import skdare
from pages import ROOT, run_command
from skdare.cli import COMMANDS, NAMES, options_of

REFERENCE = ROOT / "docs" / "reference"
ACCEPT = "if that is meant, say so in CHANGELOG.md and run: python tests/public_surface.py --accept"


def listed() -> dict[str, set[str]]:
    """Names in the reference, by the module that they are documented in."""
    found: dict[str, set[str]] = {}
    for page in sorted(REFERENCE.glob("*.rst")):
        module = ""
        for line in page.read_text(encoding="utf-8").splitlines():
            if current := re.match(r"\.\. currentmodule:: (\S+)", line):
                module = current[1]
            elif name := re.match(r"   (\w+)$", line):
                found.setdefault(module, set()).add(name[1])
    return found


def pages_with_imports() -> list[str]:
    return [
        page.relative_to(ROOT).as_posix()
        for pattern in ("README.md", "docs/**/*.md")
        for page in sorted(ROOT.glob(pattern))
        if "from skdare" in page.read_text(encoding="utf-8")
    ]


def module_named(name: str):
    """A public module; skipped if it needs an extra that is not installed."""
    if name == "skdare.features":
        pytest.importorskip("torch", reason="torch is not installed")
    return importlib.import_module(name)


@pytest.mark.parametrize("module", public_surface.MODULES)
def test_every_public_name_is_in_the_reference(module):
    public = set(module_named(module).__all__) - {"__version__"}
    assert public <= listed().get(module, set())


@pytest.mark.parametrize("module", sorted(listed()))
def test_every_name_in_the_reference_is_there(module):
    contents = module_named(module)
    assert [name for name in listed()[module] if not hasattr(contents, name)] == []


@pytest.mark.parametrize("module", public_surface.MODULES)
def test_a_list_of_public_names_has_each_once_and_none_that_is_private_or_missing(module):
    contents = module_named(module)
    names = contents.__all__
    assert len(names) == len(set(names))
    assert [n for n in names if n.startswith("_") and n != "__version__"] == []
    assert [n for n in names if not hasattr(contents, n)] == []


def test_dir_shows_public_names_only():
    assert set(dir(skdare)) == set(skdare.__all__)


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
    ],
)
def test_a_change_that_a_caller_would_notice_changes_the_surface(before, after, monkeypatch):
    texts = []
    for source in (before, after):
        made = type(skdare)("skdare.made")
        made.__all__ = ["f"]
        exec(source, vars(made) | {"__name__": "skdare.made"}, vars(made))
        monkeypatch.setitem(sys.modules, "skdare.made", made)
        texts.append(public_surface.surface("skdare.made"))
    assert texts[0] != texts[1]


def test_the_public_surface_is_the_one_that_was_accepted():
    now, accepted = public_surface.now(), public_surface.accepted()
    assert list(now) == list(accepted)
    for module, lines in now.items():
        assert sorted(set(lines) ^ set(accepted[module])) == [], ACCEPT


@pytest.mark.parametrize("page", pages_with_imports())
def test_pages_import_public_names_only(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    known = listed()
    for module, names in re.findall(r"^from (skdare[\w.]*) import ([\w, ]+)", text, re.M):
        assert set(re.findall(r"\w+", names)) <= known[module] | set(public_surface.MODULES)


@pytest.mark.parametrize("name", [n for n in skdare.__all__ if n[0].isupper()])
def test_every_parameter_of_an_estimator_is_documented(name):
    cls = getattr(skdare, name)
    text = inspect.getdoc(cls)
    assert [p for p in inspect.signature(cls).parameters if not re.search(rf"\b{p}\b", text)] == []


@pytest.mark.parametrize("name", NAMES)
def test_every_command_and_option_has_a_help_text(name):
    page = run_command(name, "--help")
    assert page.startswith(f"Usage: skdare {name}")
    for option in options_of(name):
        assert re.search(rf"--(\[no-\])?{option}\b[^\n]*\n?\s+\S", page), option


def test_every_command_has_a_place_in_the_guide():
    texts = [page.read_text(encoding="utf-8") for page in ROOT.glob("docs/**/*.md")]
    for name in NAMES:
        assert any(f"skdare {name}" in text for text in texts), name


@pytest.fixture
def extension(monkeypatch):
    """What the site adds to Sphinx."""
    pytest.importorskip("sphinx", reason="sphinx is not installed")
    pytest.importorskip("latex2mathml", reason="latex2mathml is not installed")
    monkeypatch.setattr(sys, "path", [str(ROOT / "docs/_ext"), *sys.path])
    return importlib.import_module("site_pages")


def test_the_site_shows_the_help_of_every_command(extension):
    assert "command-help" in (REFERENCE / "commands.md").read_text(encoding="utf-8")
    shown = [name for commands in COMMANDS.values() for name in commands]
    assert shown == NAMES
    assert extension.help_page("check") == run_command("check", "--help").rstrip() + "\n"


@pytest.mark.parametrize(
    ("folder", "page", "link", "expected"),
    [
        (".", "index.md", "[t](docs/tutorial.md)", "tutorial.md"),
        (".", "index.md", "[c](CONTRIBUTING.md#rules)", "contributing.md#rules"),
        ("docs/guide", "guide/choose.md", "[r](../../README.md)", "../index.md"),
        ("docs", "install.md", "[far](https://example.org/x)", "https://example.org/x"),
    ],
)
def test_a_link_of_the_repository_becomes_one_of_the_site(extension, folder, page, link, expected):
    read = extension.site_links(link, ROOT / folder, ROOT / "docs" / page)
    assert re.search(r"\]\(([^)]+)\)", read)[1] == expected


@pytest.mark.parametrize(
    ("text", "loads"),
    [
        ('<script src="https://example.org/a.js"></script>', True),
        ('<link rel="stylesheet" href="//example.org/a.css">', True),
        ("body { background: url(https://example.org/a.png) }", True),
        ('<a href="https://example.org">a link</a>', False),
        ('<img src="_images/a.png"><link href="_static/site.css">', False),
    ],
)
def test_what_a_page_would_load_from_elsewhere_is_found(extension, text, loads):
    assert bool(extension.loaded_from_elsewhere(text)) is loads


@pytest.mark.parametrize("module", sorted(listed()))
def test_documented_defaults_are_those_of_the_signatures(module):
    contents = module_named(module)
    for name in sorted(listed()[module]):
        thing = getattr(contents, name)
        members = [thing]
        if inspect.isclass(thing):
            named = inspect.getmembers(thing, callable)
            members += [m for n, m in named if n[0] != "_" and n[:4] != "set_"]
        for each in members:
            text = inspect.getdoc(each) or ""
            stated = re.findall(r"^(\w+) : .*default=([^\s,]+)$", text, re.M)
            known = inspect.signature(each).parameters if stated else {}
            for parameter, default in stated:
                assert default.replace('"', "'") == repr(known[parameter].default), (name, each)


def test_every_strategy_is_in_the_guide():
    from skdare.choosing.strategies import STRATEGIES

    page = (ROOT / "docs" / "guide" / "choose.md").read_text(encoding="utf-8")
    assert [name for name in STRATEGIES if f"`{name}`" not in page] == []
