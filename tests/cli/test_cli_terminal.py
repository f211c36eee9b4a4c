"""What reaches a terminal: names do nothing to it, signals end a command, a pipe may close."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import unicodedata

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands import ROLES, answer, hospitals, run, snapshot, text, typed
from skdare.bench.record import RecordFile
from skdare.cli import main
from skdare.cli.messages import _escaped, in_options
from skdare.errors import printable

# Colours, titles of windows, and 8-bit controls, which some terminals take as well.
NAMES = ["\x1b[31mred", "\x1b]0;title\x07", "\x9b2Jgone", "no\u202eth", "del\x7fete", "a\u2028b"]
ODD = ["St. Mary's", 'the "old" one', "κλινική", "🏥 north", "[bold]", "{x}", "100%", "a b"]


def acting(output):
    """Characters that a terminal acts on."""
    kinds = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return {c for c in output if c != "\n" and unicodedata.category(c) in kinds}


@pytest.fixture
def hostile(tmp_path):
    """A table in which a column, the domains and the classes have names that act."""
    table, new = hospitals(rows=24)
    sites = dict(zip(["north", "south", "east", "west"], NAMES[:4], strict=True))
    table["site"] = table["site"].map(sites)
    both = pd.concat([table, new], ignore_index=True)
    both["died"] = both["died"].map({"yes": NAMES[4], "no": NAMES[5]})
    both = both.rename(columns={"a": "a" + NAMES[0]})
    both.iloc[:96].to_csv(tmp_path / "odd.csv", index=False)
    both.iloc[96:].drop(columns=["died", "site"]).to_csv(tmp_path / "new.csv", index=False)
    return tmp_path


COMMANDS = [
    ("check", "odd.csv", *ROLES),
    ("fit", "odd.csv", *ROLES),
    ("inspect", "odd.safetensors"),
    ("diagnose", "odd.safetensors", "new.csv"),
    ("adapt", "odd.safetensors", "new.csv"),
    ("predict", "odd.safetensors", "new.csv"),
    ("bench", "odd.csv", *ROLES, "--heads", "erm,by-hand"),
    ("bench", "odd.csv", *ROLES, "--held-out", NAMES[0] + "x"),
    ("report", "odd.bench"),
    ("fit", NAMES[2], *ROLES),
]


def test_names_do_nothing_to_a_terminal_in_text_or_json(hostile):
    for words in COMMANDS:
        if words[0] != "fit" or words[1] == "odd.csv":
            (hostile / "odd.predictions.csv").unlink(missing_ok=True)
        for form in ((), ("--json",)):
            done = run(*words, *form, folder=hostile)
            assert acting(done.out + done.err) == set(), words
            if form and done.code == 0:
                json.loads(done.out)
    assert acting((hostile / "odd.bench" / "report.html").read_text()) == set()


def test_json_gives_names_back_as_they_are(hostile):
    fitted = answer("fit", "odd.csv", *ROLES, folder=hostile)
    assert set(fitted["domains"]) == set(NAMES[:4])
    assert set(fitted["classes"]) == set(NAMES[4:])


@settings(max_examples=40, deadline=None)
@given(st.text())
def test_json_is_itself_once_escaped(value):
    escaped = _escaped(json.dumps({value: value}, ensure_ascii=False))
    assert json.loads(escaped) == {value: value}
    assert acting(escaped) <= {"\u200c", "\u200d"}


@settings(max_examples=40, deadline=None)
@given(st.text())
def test_printable_text_acts_on_nothing_and_stays_as_it_is(value):
    safe = printable(value)
    assert acting(safe) <= {"\u200c", "\u200d"}
    assert printable(safe) == safe
    safe.encode()


@pytest.mark.parametrize("name", ["Zürich – R² ± 5 %", "北京", "مثال", "क्‍ष", "a b", "[x]", "🏥"])
def test_text_of_any_language_stays_as_it_is(name):
    assert printable(name) == name


@pytest.mark.parametrize("name", ODD)
def test_files_and_columns_of_any_name_make_the_whole_way(name, tmp_path):
    table, new = hospitals(rows=24)
    site = f"site {name}"
    table["site"] = table["site"].replace("north", name)
    table = table.rename(columns={"site": site, "a": name})
    new = new.rename(columns={"a": name})
    table.to_csv(tmp_path / f"{name}.csv", index=False)
    new.drop(columns=["died", "site"]).to_csv(tmp_path / "new.csv", index=False)
    roles = ("--target", "died", "--domains", site)
    fitted = answer("fit", f"{name}.csv", *roles, folder=tmp_path)
    assert fitted["domains"][name] == 24
    following = typed(fitted["next"][0], NEW="new.csv")
    for _ in range(2):
        following = typed(answer(*following, folder=tmp_path)["next"][0], NEW="new.csv")
    checked = answer("check", f"{name}.csv", *roles, folder=tmp_path)
    assert typed(checked["next"][1]) == ["fit", f"{name}.csv", *roles]


def test_files_called_like_options_are_files(folder):
    shutil.copy(folder / "table.csv", folder / "-t.csv")
    shutil.copy(folder / "new.csv", folder / "--json.csv")
    said = answer("check", "./-t.csv", *ROLES, folder=folder)
    words = typed(said["next"][1])
    assert words[:2] == ["fit", "./-t.csv"]
    fitted = answer(*words, folder=folder)
    assert typed(fitted["next"][0], NEW="new.csv")[1] == "./-t.safetensors"
    predicted = answer(*("predict", "./-t.safetensors", "./--json.csv"), folder=folder)
    assert predicted["rows"] == 80


def test_a_column_called_like_an_option_stays_in_the_next_command(folder):
    table = pd.read_csv(folder / "table.csv").rename(columns={"died": "--died"})
    table.to_csv(folder / "dashes.csv", index=False)
    roles = ("--target=--died", "--domains", "site")
    said = answer("check", "dashes.csv", *roles, folder=folder)
    assert answer(*typed(said["next"][1]), folder=folder)["classes"]


def test_a_column_with_a_comma_is_left_out_by_the_words_that_check_prints(folder):
    table = pd.read_csv(folder / "table.csv").rename(columns={"c": "vessels, seen"})
    table.loc[: int(0.7 * len(table)), "vessels, seen"] = np.nan
    table.to_csv(folder / "commas.csv", index=False)
    found = answer("check", "commas.csv", *ROLES, folder=folder)["findings"]
    (remedy,) = (each["remedy"] for each in found if "empty" in each["what"])
    dropped = shlex.split(remedy.split(": ")[1])
    less = answer("check", "commas.csv", *ROLES, *dropped, folder=folder)
    assert not any("vessels" in each["what"] for each in less["findings"])


def test_messages_of_the_library_are_in_options():
    options = {"target", "domains", "drop", "metric", "force", "rehearse", "preparation", "set"}
    for python, typed_ in {
        "name one with domains=": "name one with --domains",
        "leave it out: drop=height": "leave it out: --drop height",
        "leave it out: drop='chest pain [1-4]'": "leave it out: --drop 'chest pain [1-4]'",
        "leave it out: drop='vessels, seen'": "leave it out: --drop '\"vessels, seen\"'",
        "or set force=True if it is meant": "or give --force if it is meant",
        "fit with rehearse=False": "fit with --no-rehearse",
        "scoring='roc_auc' gives no score": "--metric roc_auc gives no score",
        "fit with strategies=('standardize',) to": "fit with --set strategies=standardize to",
        "use shrinkage=1.0 or centered=False": "use --set shrinkage=1.0 or --set centered=False",
        "set preparation=StandardScaler()": "give --preparation standardize",
        "with preparation='auto', or": "with --preparation auto, or",
        "a file called 'x=1.csv' is": "a file called 'x=1.csv' is",
        "p = 0.05": "p = 0.05",
    }.items():
        assert in_options(python, options) == typed_
        assert in_options(typed_, options) == typed_
    assert in_options("fill with preparation='auto'", {"out"}) == (
        "fill with skdare fit --preparation auto"
    )
    assert in_options("leave it out: drop=a", {"out"}) == "leave it out: skdare fit --drop a"
    assert in_options("fit with l2=1", {"out"}) == "fit with --set l2=1"


# Signals


def stops(monkeypatch, name, calls, error):
    """Let a function end the process by this after so many calls."""
    import pkgutil

    owner, _, function = name.rpartition(".")
    module = pkgutil.resolve_name(owner)
    before = getattr(module, function)
    count = iter(range(calls))

    def counted(*arguments, **options):
        if next(count, None) is None:
            if isinstance(error, BaseException):
                raise error
            os.kill(os.getpid(), error)
        return before(*arguments, **options)

    monkeypatch.setattr(module, function, counted)


def test_an_interrupted_bench_goes_on_and_ends_as_a_whole_one(folder, monkeypatch):
    words = ("bench", "table.csv", *ROLES, "--heads", "erm,by-hand,dare")
    text(*words, "--out", "whole.bench", folder=folder)
    with monkeypatch.context() as patched:
        stops(patched, "skdare.bench.run._trial", 5, KeyboardInterrupt())
        done = run(*words, folder=folder)
    assert done.code == 130
    assert done.out == ""
    assert "table.bench" in done.err
    assert "Traceback" not in done.err
    assert len(RecordFile(folder / "table.bench").records()) == 5
    again = run(*words, folder=folder)
    assert again.code == 0
    scores = [
        {record.key: record.score for record in RecordFile(folder / run).records()}
        for run in ("table.bench", "whole.bench")
    ]
    assert scores[0] == scores[1]


@pytest.mark.parametrize(
    ("by", "code"), [(KeyboardInterrupt(), 130), (signal.SIGTERM, 143)], ids=["Ctrl-C", "SIGTERM"]
)
@pytest.mark.parametrize(
    ("words", "place"),
    [
        (("fit", "table.csv", *ROLES, "--out", "x.safetensors"), "skdare.heads.head_file._file_of"),
        (("predict", "table.safetensors", "new.csv", "--out", "x.csv"), "pandas.DataFrame.to_csv"),
        (("export", "table.safetensors", "--out", "x.csv"), "pandas.DataFrame.to_csv"),
        (("report", "table.bench"), "os.fsync"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_signal_leaves_nothing_half_written(words, place, by, code, folder, monkeypatch):
    if words[0] == "report":
        text("bench", "table.csv", *ROLES, "--heads", "erm", folder=folder)
    before = snapshot(folder)
    with monkeypatch.context() as patched:
        stops(patched, place, 0, by)
        done = run(*words, folder=folder)
    assert done.code == code, done.err
    assert snapshot(folder) == before


# Processes of their own


@pytest.mark.slow
def test_a_pipe_that_is_closed_is_no_error(folder):
    python = shlex.quote(sys.executable)
    command = f"{python} -m skdare.cli predict table.safetensors big.csv --out -"
    rows = pd.concat([pd.read_csv(folder / "new.csv")] * 50)
    rows.to_csv(folder / "big.csv", index=False)
    done = subprocess.run(
        ["bash", "-c", f"{command} | head -1; echo ${{PIPESTATUS[0]}}"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines()[0] == "patient,prediction,probability_no,probability_yes"
    assert done.stdout.splitlines()[1] == "141"


def test_a_terminal_of_few_signs_gets_question_marks_and_no_traceback(folder, monkeypatch):
    table = pd.read_csv(folder / "table.csv")
    table["site"] = table["site"].replace("north", "Ζürich")
    table.to_csv(folder / "greek.csv", index=False)
    screen = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    words = ["fit", "greek.csv", *ROLES]
    monkeypatch.setattr(sys, "argv", ["skdare", *words])
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.chdir(folder)
    handler = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(SystemExit, match="0"):
            main()
    finally:
        signal.signal(signal.SIGTERM, handler)
    screen.flush()
    assert b"??rich (80)" in screen.buffer.getvalue()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no pty on Windows")
@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}], ids=["colour", "NO_COLOR"])
def test_on_a_terminal_help_has_colour_only_if_it_may(environment, folder):
    import pty

    outer, inner = pty.openpty()
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TERM": "xterm-256color"}
    variables = {**variables, "COLUMNS": "60", **environment}
    run_ = subprocess.Popen(
        [sys.executable, "-m", "skdare.cli", "--help"],
        stdout=inner, stderr=inner, stdin=inner, env=variables, cwd=folder,
    )  # fmt: skip
    os.close(inner)
    parts = []
    try:
        while part := os.read(outer, 65536):
            parts.append(part)
    except OSError:  # the other end was closed
        pass
    os.close(outer)
    assert run_.wait() == 0
    output = b"".join(parts).decode()
    colours = re.findall(r"\x1b\[[0-9;]*m", output)
    if environment:
        assert not any("3" in code.split("[")[1][:1] for code in colours if len(code) > 4)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", output)
    wide = [line for line in plain.splitlines() if len(line.rstrip()) > 60]
    assert all(line.startswith("  skdare ") for line in wide)
