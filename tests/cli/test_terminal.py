"""Names in the data do nothing: to a terminal, to a spreadsheet, to LaTeX."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from command_line import run, run_ok
from interrupts import PATIENCE
from made_records import record
from skdare._safe_text import spreadsheet_safe, terminal_safe
from skdare.bench import Log
from skdare.cli._output import say
from skdare.cli._progress import ProgressBar
from skdare.datasets import make_latent_domains, rows_to
from skdare.report import summarise, text, write_report

NAMES = [
    "site [/a]",
    "[bold red]x",
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "a\nb",
    "\u202eabc",
    "\x9b2Jc1\x7f",
]
CLASSES = ["\x1b[32mill", "[/well]\u2028"]
COLUMNS = ["\x1b[2Jage", "[link=x]bmi", "tab\tbed", "\u2066dose"]


def shown(names: list[str]) -> list[str]:
    return [terminal_safe(name) for name in names]


# Arguments, the exit code, and names that must be seen.
COMMANDS = {
    "fit": (["fit", "t.npz", "--rehearse", "--out", "head"], 0, [*NAMES, *CLASSES]),
    "inspect": (["inspect", "head"], 0, [*NAMES, *CLASSES, *COLUMNS]),
    "predict --score": (["predict", "head", "t.npz", "--score", "--out", "p.csv"], 0, NAMES),
    "predict": (["predict", "head", "t.npz"], 0, CLASSES),
    "features info": (["features", "info", "t.npz"], 0, [*NAMES, *CLASSES, *COLUMNS]),
    "adapt": (["adapt", "head", "t.npz", "--out", "adapted"], 0, []),
    "suggest": (["suggest", "head", "t.npz", "-n", "4", "--out", "s.csv"], 0, []),
    "export": (["export", "head", "--out", "head.csv"], 0, []),
    "diagnose a head": (["diagnose", "head", "--new", "t.npz"], 0, []),
    "diagnose": (["diagnose", "t.npz", "--held-out", NAMES[0]], 0, NAMES[1:]),
    "an unknown domain": (["diagnose", "t.npz", "--held-out", "none"], 2, NAMES),
    "labels of another kind": (
        ["predict", "head", "other.npz", "--score", "--out", "p.csv"],
        2,
        [NAMES[2], *CLASSES],
    ),
    "bench": (
        ["bench", "t.npz", "--heads", "erm,dare", "--with", "none", "--trials", "1"],
        0,
        NAMES,
    ),
    "report": (["report", "t.bench", "--formats", "md,tex,csv"], 0, []),
}
# Rows in a pipe are for a program, and as they are.
MACHINE_READABLE = ["predict"]
SCRIPT = """
import json, sys
from skdare.cli import main
from skdare.cli._output import say
from skdare.cli._progress import ProgressBar

for arguments in json.loads(sys.argv[1]):
    sys.stdout.flush()
    code = 0
    try:
        main(arguments, prog_name="skdare")
    except SystemExit as end:
        code = end.code
    print(f"=== {code}", flush=True)
"""
ENVIRONMENT = {"TERM": "xterm", "NO_COLOR": "1", "COLUMNS": "300", "LINES": "50"}
# What a bar is drawn with: hide and show the cursor, go up, clear the line.
DRAWN = re.compile(r"\x1b\[(\?25[lh]|\d*[AK])|\r")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("names")
    data = make_latent_domains(len(NAMES), 40, len(COLUMNS), random_state=0)
    for name, classes in (("t.npz", CLASSES), ("other.npz", [NAMES[2], NAMES[2]])):
        np.savez(
            folder / name,
            X=data.X,
            y=np.array(classes)[data.y],
            domain=np.array(NAMES)[data.domains],
            feature_names=np.array(COLUMNS),
        )
    return folder


def commands(folder: Path) -> list[str]:
    arguments = json.dumps([arguments for arguments, _, _ in COMMANDS.values()])
    return [sys.executable, "-c", SCRIPT, arguments]


def by_command(output: str) -> dict[str, tuple[int, str]]:
    parts = re.split(r"=== (\d+)\n", output)
    assert len(parts) == 2 * len(COMMANDS) + 1, output
    return dict(zip(COMMANDS, zip(map(int, parts[1::2]), parts[::2], strict=False), strict=True))


@pytest.fixture(scope="module")
def on_a_terminal(folder) -> dict[str, tuple[int, str]]:
    pty = pytest.importorskip("pty", reason="the system has no pseudo-terminals")
    outer, inner = pty.openpty()
    process = subprocess.Popen(
        commands(folder),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=inner,
        stderr=inner,
        env=os.environ | ENVIRONMENT,
    )
    os.close(inner)
    pieces = []
    while True:
        try:
            piece = os.read(outer, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        pieces.append(piece)
    os.close(outer)
    assert process.wait(PATIENCE) == 0
    return by_command(b"".join(pieces).decode().replace("\r\n", "\n"))


@pytest.fixture(scope="module")
def in_a_pipe(folder, on_a_terminal) -> dict[str, tuple[int, str]]:
    for path in folder.iterdir():
        if path.suffix != ".npz" and path.is_file():
            path.unlink()
    done = subprocess.run(
        commands(folder),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=os.environ | ENVIRONMENT,
        check=True,
    )
    return by_command(done.stdout.decode())


def acting(output: str) -> set[str]:
    """Characters that a terminal would act on, but for the ends of lines."""
    return {c for c in output if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")} - {"\n"}


@pytest.mark.parametrize("command", COMMANDS)
def test_names_do_nothing_to_a_terminal(command, on_a_terminal):
    _, code, names = COMMANDS[command]
    found, output = on_a_terminal[command]
    output = DRAWN.sub("", output)
    assert found == code, output
    assert acting(output) == set()
    for name in shown(names):
        assert name in output


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in MACHINE_READABLE])
def test_names_in_a_pipe_are_written_out_as_well(command, in_a_pipe):
    _, code, names = COMMANDS[command]
    found, output = in_a_pipe[command]
    assert found == code, output
    assert acting(output) == set()
    for name in shown(names):
        assert name in output


def test_rows_in_a_pipe_are_as_they_are(in_a_pipe):
    _, output = in_a_pipe["predict"]
    found = {row["prediction"] for row in csv.DictReader(io.StringIO(output))}
    assert found == set(CLASSES)


@pytest.mark.parametrize("name", NAMES)
def test_bars_show_names_as_they_are(name, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    bar = ProgressBar("fitting", 3)
    bar.describe(f"erm, {name} held out")
    with_a_rate = ProgressBar(f"erm, {name} held out", 3, unit="rows")
    for progress in (bar.progress, with_a_rate.progress):
        drawn = progress.columns[0].render(progress.tasks[0])
        assert drawn.plain == f"erm, {terminal_safe(name)} held out"
        assert drawn.spans == []


@given(st.text())
def test_safe_text_acts_on_nothing_and_is_itself_once_safe(name):
    safe = terminal_safe(name)
    assert "\n" not in safe
    assert acting(safe) <= {"\u200c", "\u200d"}
    assert terminal_safe(safe) == safe
    safe.encode()


@pytest.mark.parametrize(
    "name", ["Zürich – R² ± 5 %", "北京", "مثال", "क्‍ष", "a b", "\u00a0x", "[x]"]
)
def test_text_that_acts_on_nothing_stays_as_it_is(name):
    assert terminal_safe(name) == name


def test_a_half_of_a_character_is_printed(folder):
    name = b"no\xff.npz".decode("utf-8", "surrogateescape")
    result = run("inspect", name)
    assert result.exit_code == 2
    assert r"no\udcff.npz" in result.stderr


# Reports


def odd_run(folder: Path, names: list[str]) -> Path:
    with Log(folder).open() as log:
        for head in ("erm", "dare"):
            for trial in (0, 1):
                for name in names:
                    values = {"warnings": "=1+1", "option:l2": -1.5, "tested_on": "all"}
                    log.append(record(head, name, trial, values=values))
    return folder


def test_no_format_of_a_report_holds_what_acts(tmp_path):
    folder = odd_run(tmp_path, NAMES)
    output = text(summarise(Log(folder).read()))
    assert acting(output) == set()
    for path in write_report(folder, formats=["md", "tex"]):
        assert acting(path.read_text()) == set(), path


@pytest.mark.parametrize("names", [["[a]", "*b", "c"], [f"[{i}]" for i in range(9)]])
def test_no_row_of_latex_is_an_option_of_the_row_before(names, tmp_path):
    folder = odd_run(tmp_path, names)
    (path,) = write_report(folder, formats=["tex"])
    found = path.read_text()
    # Past spaces and ends of lines, these look for [ and \\ for * too.
    assert not re.search(r"(\\\\|\\(top|mid|bottom)rule)\s*[\[*]", found)
    assert all(f"{name}" in found for name in names)


# Spreadsheets

FORMULAS = ["=1+1", "+1", "-site", "@sum", "\tx"]


def test_a_field_of_text_is_no_formula_and_a_number_stays():
    for name in (*FORMULAS, "\rx"):
        assert spreadsheet_safe(name) == f"'{name}"
    for value in ("site", "a=b", "", " =x", -1.5, 3, None, True):
        assert spreadsheet_safe(value) == value


@pytest.mark.parametrize("name", ["p.csv", "p.csv.gz"])
def test_predictions_for_a_spreadsheet_hold_no_formula(name, tmp_path):
    import gzip

    columns = {"id": np.array(FORMULAS), "prediction": np.array([-1.5] * len(FORMULAS))}
    with rows_to(tmp_path / name, spreadsheet_safe=True) as writer:
        writer.write(columns)
    opener = gzip.open if name.endswith(".gz") else open
    with opener(tmp_path / name, "rt", newline="") as file:
        found = list(csv.reader(file))
    assert found[1:] == [[f"'{text}", "-1.5"] for text in FORMULAS]


def test_only_csv_is_for_spreadsheets(tmp_path):
    with (
        pytest.raises(ValueError, match="spreadsheet_safe is for CSV"),
        rows_to(tmp_path / "p.jsonl", spreadsheet_safe=True),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_report_for_a_spreadsheet_holds_no_formula(tmp_path):
    folder = odd_run(tmp_path / "run", FORMULAS)
    plain = write_report(folder, tmp_path / "plain", ["csv"])
    safe = write_report(folder, tmp_path / "safe", ["csv"], spreadsheet_safe=True)
    assert plain
    for one, other in zip(plain, safe, strict=True):
        with one.open(newline="") as file, other.open(newline="") as safe_file:
            pairs = [
                pair
                for rows in zip(csv.reader(file), csv.reader(safe_file), strict=True)
                for pair in zip(*rows, strict=True)
            ]
        changed = {before: after for before, after in pairs if before != after}
        assert set(FORMULAS) <= set(changed)
        assert all(after == f"'{before}" for before, after in changed.items())
        left = [after for _, after in pairs if after.startswith(("=", "+", "-", "@", "\t", "\r"))]
        assert all(float(after) < 0 for after in left)  # numbers


def test_the_options_for_spreadsheets_are_the_parameters(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    odd_run(Path("run"), FORMULAS)
    run_ok("report", "run", "--formats", "csv", "--spreadsheet-safe")
    assert "'=1+1" in Path("run/report.csv").read_text()
    refused = run("report", "run", "--formats", "md", "--spreadsheet-safe")
    assert refused.exit_code == 2
    assert "is for CSV" in refused.stderr


def test_predict_writes_for_spreadsheets(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = make_latent_domains(3, 40, 3, random_state=0)
    np.savez("t.npz", X=data.X, y=np.array(["=ill", "well"])[data.y], domain=data.domains)
    run_ok("fit", "t.npz", "--out", "head")
    found = run_ok("predict", "head", "t.npz", "--proba", "--spreadsheet-safe")
    predicted = {row["prediction"] for row in csv.DictReader(io.StringIO(found.stdout))}
    assert predicted == {"'=ill", "well"}
    refused = run("predict", "head", "t.npz", "--out", "p.jsonl", "--spreadsheet-safe")
    assert refused.exit_code == 2
    assert "is for CSV" in refused.stderr
    assert not Path("p.jsonl").exists()


def test_a_pipe_is_told_now_and_then_how_far_work_has_come(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr("skdare._logger.time.monotonic", lambda: now[0])
    with ProgressBar("fitting", 1000) as bar:
        for _ in range(1000):
            now[0] += 1.0
            bar()
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "fitting: 10 of 1,000 done, about 990 s left"
    assert 5 <= len(lines) <= 15


def test_a_terminal_without_the_signs_gets_plainer_ones(monkeypatch):
    for encoding, shown in (("ascii", "o-#|  -1.5 ~ 0.2"), ("utf-8", "○─●│  −1.5 ± 0.2")):
        stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        monkeypatch.setattr(sys, "stdout", stream)
        say("○─●│  −1.5 ± 0.2")
        stream.flush()
        assert stream.buffer.getvalue().decode(encoding).rstrip() == shown
