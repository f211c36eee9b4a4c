"""The house is as CONTRIBUTING draws it, and every module of it can be imported."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import tomllib

import pytest

from pages import ROOT

PACKAGE = ROOT / "src" / "skdare"
MODULES = sorted(
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
    if path.stem != "__main__"
)
# Packages of our extras.
OPTIONAL = {"torch", "torchvision", "timm", "transformers", "dask", "distributed", "onnx", "pooch"}


def test_the_picture_of_the_house_is_the_contract_and_what_is_on_disk():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    picture = re.search(r"```text\n(.*?)```", text, re.S)[1].splitlines()
    drawn = [set(re.split(r"\s{2,}", line)[0].split(" | ")) for line in picture]
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    [layers] = [
        contract["layers"]
        for contract in settings["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers"
    ]
    assert drawn == [set(re.sub(r"[()]", "", layer).split(" | ")) for layer in layers]
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    modules = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    optional = {name for layer in layers for name in re.findall(r"\((\w+)\)", layer)}
    assert set().union(*drawn) - optional <= folders | modules <= set().union(*drawn)


def test_files_that_contributing_names_are_there():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w/]+\.(?:py|txt|yaml))`", text)
    assert named
    assert [n for n in named if not any((top / n).exists() for top in (PACKAGE, ROOT))] == []


def test_what_contributing_says_is_in_a_file_is_there():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = re.findall(r"((?:`\w+`(?:, | and )?)+) in `([\w/]+\.py)`", text)
    assert named
    for names, file in named:
        path = next(top / file for top in (PACKAGE, ROOT) if (top / file).exists())
        code = path.read_text(encoding="utf-8")
        for name in re.findall(r"\w+", names.replace(" and ", " ")):
            assert re.search(rf"^ *(def |class )?{name}\b", code, re.M), f"{name} in {file}"


@pytest.mark.parametrize("name", MODULES)
def test_a_module_can_be_imported(name):
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] not in OPTIONAL:
            raise
        pytest.skip(f"{error.name} is not installed")


def test_no_file_of_the_project_is_ignored_by_git():
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    files = [
        str(path)
        for top in ("src", "tests", "docs", "benchmarks")
        for path in (ROOT / top).rglob("*")
        if path.suffix in {".py", ".csv", ".md", ".rst", ".css", ".svg", ".toml", ".txt"}
        and not {"__pycache__", "generated"} & set(path.parts)
    ]
    command = ["git", "-c", "safe.directory=*", "check-ignore", "--stdin"]
    result = subprocess.run(
        command, input="\n".join(files), capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert result.stdout == ""
