"""What CONTRIBUTING says is enough to add something is enough."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import pytest

from pages import ROOT, blocks

WHERE = re.compile(r"# in (\S+?)(?:, (at the end of|before) (\w+))?\n")
PROGRAM = """
import sys
from contextlib import suppress

import numpy as np

import skdare
from skdare.cli import main
from skdare.data import make_latent_domains, write

data = make_latent_domains(3, 9, random_state=0)
write(data, "table.csv")
some = skdare.DAREClassifierCV(strategies=["erm", "whiten-fully"])
assert "whiten-fully" in some.fit(data.X, data.y, data.domains).cv_results_["param_strategy"]
head = skdare.RootClassifier().fit(data.X, data.y, domains=data.domains)
head.save("root.safetensors")
again = skdare.load("root.safetensors")
assert np.array_equal(again.predict(data.X), head.predict(data.X))
assert "27 rows" in str(skdare.check(data.X, data.y, domains=data.domains))
for words in ("fit table.csv --head root --out again.safetensors", "count table.csv"):
    sys.argv = ["skdare", *words.split(), "--target", "y"]
    with suppress(SystemExit):
        main()
"""


def added(text: str, place: str, name: str, code: str) -> str:
    """The text of a file with code before an assignment, or at the end of what it assigns."""
    lines = text.splitlines(keepends=True)
    start = next(i for i, line in enumerate(lines) if re.match(rf"{name}\b.* = [({{]", line))
    if place == "before":
        return "".join([*lines[:start], code, *lines[start:]])
    end = next(i for i in range(start, len(lines)) if lines[i][0] in ")}")
    return "".join([*lines[:end], code, *lines[end:]])


@pytest.mark.slow
def test_a_newcomer_adds_a_strategy_a_head_a_finding_and_a_command(tmp_path):
    shutil.copytree(ROOT / "src", tmp_path / "src")
    touched: dict[str, list[str]] = {}
    for block in blocks(ROOT / "CONTRIBUTING.md"):
        if where := WHERE.match(block.code):
            file, place, name = where.groups()
            path, code = tmp_path / file, block.code[where.end() :]
            path.write_text(added(path.read_text("utf-8"), place, name, code) if name else code)
            touched.setdefault(file.split("/")[2], []).append(file)
    assert sorted(touched) == ["checking", "choosing", "cli", "heads"]
    assert max(len(set(files)) for files in touched.values()) == 2
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "src")}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "RootClassifier" in done.stdout
    assert "\n27 rows\n" in done.stdout
