"""Every command and option is documented, and every command that is documented exists and runs."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
import pytest

from command_line import run
from skdare import DAREClassifier, report
from skdare.bench import Settings, _ablations, _metrics, _plan, _preparation, _record, _settings
from skdare.bench._heads import DEFAULT_HEADS, HEADS
from skdare.cli import GROUPS, _bench_choices, main
from skdare.datasets import DomainData, make_latent_domains, write, write_store

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted({ROOT / "README.md", *(ROOT / "docs").rglob("*.md")})
# What an example of these would need, and where it is run instead.
ELSEWHERE = {
    "train": "needs images and a GPU's time; test_learn_cli.py trains small networks",
    "extract": "needs the networks of a run; test_learn_cli.py extracts features",
    "reproduce": "takes most of a minute; test_learn_cli.py reproduces a small study",
    "demo": "takes a quarter of a minute; test_demo_cli.py runs it with one trial",
    "theory": "takes a minute; test_diagnose_cli.py runs it quickly",
}
# Of the pages, those that are over in a moment: what they name must have been made.
WRITTEN = ("out", "state", "page")
QUICK = (
    *("fit", "predict", "adapt", "suggest", "measure", "calibrate", "diagnose", "export"),
    "inspect",
    *("completion", "features"),
)


Named = tuple[tuple[str, ...], click.Command]


def commands(group: click.Group = main, *before: str) -> Iterator[Named]:
    """All commands, those of groups too, by what is typed."""
    for name in group.commands:
        command = group.commands[name]
        yield (*before, name), command
        if isinstance(command, click.Group):
            yield from commands(command, *before, name)


COMMANDS = dict(commands())
NAMED = [pytest.param(command, id=" ".join(name)) for name, command in COMMANDS.items()]
EXAMPLES = [
    pytest.param(line.strip(), id=line.strip())
    for command in (main, *COMMANDS.values())
    for line in (command.help or "").partition("Example:")[2].splitlines()
    if line.strip()
]


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """The files that examples name, small."""
    folder = tmp_path_factory.mktemp("examples")
    data = make_latent_domains(5, 80, 4, shift=0.5, random_state=0)
    sites = np.array(["east", "north", "sketch", "ward7", "west"])[data.domains]
    train = sites != "ward7"
    names = [f"f{i}" for i in range(4)]
    table = DomainData(data.X[train], data.y[train], sites[train], feature_names=names)
    new = DomainData(data.X[~train], data.y[~train], np.arange((~train).sum()) % 2, None, "", names)
    before = Path.cwd()
    os.chdir(folder)
    try:
        write("features.npz", table)
        write_store("features", table)
        write("new.csv", new)
        write("ward7.csv", new)
        write("ward7.npz", new)
        labels = "".join(f"{i},{label}\n" for i, label in enumerate(new.y[:20]))
        for name in ("labelled.csv", "checked.csv"):
            Path(name).write_text("id,label\n" + labels)
        np.savez("new.npz", X=new.X)
        if _has("pyarrow"):
            write("new.parquet", new)
        head = DAREClassifier().fit(table.X, table.y, domains=table.domains)
        head.rehearse(table.X, table.y, domains=table.domains)
        head.feature_names_in_ = np.array(names, dtype=object)
        head.save("head.safetensors")
        options = ["--trials", "2", "--jobs", "1", "--quiet", "--l2", "0.01"]
        assert run("bench", "features.npz", *options).exit_code == 0
    finally:
        os.chdir(before)
    return folder


def _has(package: str) -> bool:
    from importlib.util import find_spec

    return find_spec(package) is not None


@pytest.fixture
def folder(made, tmp_path, monkeypatch) -> Path:
    """A copy of those files, as the current folder."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


# -- Help -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", NAMED)
def test_every_option_has_help_and_every_command_ends_with_an_example(command):
    assert (command.help or "").partition("Example:")[2].strip().startswith("skdare ")
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.opts


def test_the_list_of_commands_names_each_of_them_once():
    listed = [name for group in GROUPS.values() for name in group]
    assert sorted(listed) == sorted(set(listed)) == sorted(main.commands)
    text = run("--help").output
    for group in GROUPS.values():
        for name, line in group.items():
            assert re.search(rf"^  {name} +{re.escape(line)}$", text, re.M), name


def test_help_offers_what_the_bench_has():
    assert _bench_choices.PROTOCOLS == _settings.PROTOCOLS
    assert _bench_choices.VALIDATE_WITH == _settings.VALIDATE_WITH
    assert _bench_choices.TASKS == _record.TASKS
    assert _bench_choices.TESTED_ON == _record.TESTED_ON
    assert _bench_choices.EXTRAS == _plan.EXTRAS
    assert _bench_choices.DEFAULT_EXTRAS == _plan.DEFAULT_EXTRAS
    assert _bench_choices.TRIALS == _plan.TRIALS
    assert _bench_choices.PROJECTIONS == _preparation.PROJECTIONS
    assert tuple(_ablations.ABLATIONS) == _bench_choices.ABLATIONS
    assert tuple(HEADS) == _bench_choices.HEAD_NAMES
    assert DEFAULT_HEADS["default"] == _bench_choices.DEFAULT_HEADS
    assert tuple(_metrics.METRICS) == _bench_choices.METRICS
    assert _bench_choices.FORMATS == report.FORMATS
    for name, value in _bench_choices.SETTINGS.items():
        assert value == getattr(Settings(), name), name
    assert "[default: 0.05]" in next(
        p.help for p in main.commands["diagnose"].params if p.name == "label_cost"
    )


def test_heads_are_called_as_in_the_bench():
    assert set(_bench_choices.FIT_HEADS) <= set(HEADS)


def test_help_and_completion_import_neither_numpy_nor_scikit_learn():
    """What makes them quick; a test of seconds would fail on a busy machine."""
    script = (
        "import sys\nfrom skdare.cli import main\n"
        "[main.commands[name].params for name in main.commands]\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print([m for m in ('numpy', 'sklearn', 'scipy', 'torch') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert result.stdout.splitlines()[-1] == "[]", result.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands_and_options(shell):
    script = run("completion", shell)
    assert script.exit_code == 0
    assert f"_SKDARE_COMPLETE={shell}_complete" in script.stdout
    assert "to use it" in script.stderr
    words = {"COMP_WORDS": "skdare predict --pro", "COMP_CWORD": "2"}
    asked = {"_SKDARE_COMPLETE": "bash_complete", **words}
    found = run(env=asked, prog_name="skdare")
    assert "plain,--proba" in found.output


# -- Examples -------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", EXAMPLES)
def test_every_example_in_help_runs(folder, line):
    program, *arguments = shlex.split(line)
    assert program == "skdare"
    if arguments[0] in ELSEWHERE:
        pytest.skip(ELSEWHERE[arguments[0]])
    for suffix, package in ((".parquet", "pyarrow"), (".onnx", "onnx")):
        if suffix in line:
            pytest.importorskip(package, reason=f"{suffix} needs {package}")
    if arguments[0] in ("report", "figure1"):
        pytest.importorskip("matplotlib", reason="figures need matplotlib")
    if arguments[:2] == ["features", "convert"]:
        shutil.rmtree("features")
    if ">" in arguments:
        arguments = arguments[: arguments.index(">")]
    if arguments[0] in ("bench", "ablate"):
        arguments += ["--jobs", "1", "--l2", "0.01", "--trials", "1"]
    result = run(*arguments)
    assert result.exit_code == 0, result.stderr


# -- Pages ----------------------------------------------------------------------------------------


def written_lines(page: Path) -> list[str]:
    """Commands of a page: in blocks of code, and between backticks."""
    text = page.read_text(encoding="utf-8")
    lines, block = [], None
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            block = None if block is not None else line
        elif block is not None:
            found = re.match(r"\s*(?:\$ )?(skdare .*)", line)
            if found:
                lines.append(found[1])
            elif lines and lines[-1].endswith("\\"):
                lines[-1] = lines[-1][:-1] + line
    outside = re.sub(r"^\s*```.*?^\s*```", "", text, flags=re.M | re.S)
    lines += [" ".join(found.split()) for found in re.findall(r"`(skdare [^`]+)`", outside)]
    return [line for line in lines if re.match(r"skdare [a-z]", line)]


def parsed(line: str) -> tuple[tuple[str, ...], list[str]]:
    """The command of a line and its arguments, without what comes after a pipe or a comment."""
    _, *arguments = shlex.split(line, comments=True)
    stops = [i for i, a in enumerate(arguments) if a in ("|", ">", ">>", "&&", ";", "&")]
    arguments = arguments[: stops[0]] if stops else arguments
    depth = 2 if tuple(arguments[:2]) in COMMANDS else 1
    return tuple(arguments[:depth]), [a for a in arguments[depth:] if a not in ("…", "...")]


LINES = [
    pytest.param(line, id=f"{page.relative_to(ROOT)}: {line}")
    for page in PAGES
    for line in dict.fromkeys(written_lines(page))
]


@pytest.mark.parametrize("line", LINES)
def test_every_command_on_a_page_exists_with_its_options(line):
    name, arguments = parsed(line)
    assert name in COMMANDS, f"there is no command {' '.join(name)}"
    command = COMMANDS[name]
    context = click.Context(command, info_name=name[-1])
    # Unknown options are refused here; values are those of the option.
    given, _, _ = command.make_parser(context).parse_args(list(arguments))
    for parameter in command.params:
        value = given.get(parameter.name)
        if isinstance(parameter, click.Option) and isinstance(value, str):
            parameter.type.convert(value, parameter, context)


def is_ready(name: tuple[str, ...], arguments: list[str]) -> bool:
    """Whether a command is quick, and every file that it reads is there."""
    if name[0] not in QUICK or "convert" in name or name not in COMMANDS:
        return False
    command = COMMANDS[name]
    given, _, _ = command.make_parser(click.Context(command)).parse_args(list(arguments))
    paths: list[str] = []
    for parameter in command.params:
        value = given.get(parameter.name)
        found = [value] if isinstance(value, str) else value
        if isinstance(parameter, click.Argument) and not (
            isinstance(found, list | tuple) and found
        ):
            return False  # the name of a command in a sentence
        if isinstance(parameter.type, click.Path) and parameter.name not in WRITTEN:
            paths += found if isinstance(found, list | tuple) else []
    optional = {".parquet": "pyarrow", ".onnx": "onnx", ".pt": "torch", ".skops": "skops"}
    packages = [p for suffix, p in optional.items() if any(a.endswith(suffix) for a in arguments)]
    return all(Path(path).exists() for path in paths) and all(map(_has, packages))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_on_a_page_run_one_after_the_other(folder, page):
    for line in dict.fromkeys(written_lines(page)):
        name, arguments = parsed(line)
        if is_ready(name, arguments):
            result = run(*name, *arguments)
            assert result.exit_code == 0, (line, result.stderr)


# -- Output for machines --------------------------------------------------------------------------

FIELDS = {
    "fit features.npz": (
        "file bytes head rows features feature_names target_name domain_name held_out "
        "domains classes preparation rehearsed expected "
        "converged choice seconds"
    ),
    "adapt head.safetensors ward7.npz --out w.safetensors": (
        "head state rows rows_seen labels bytes adapted"
    ),
    "diagnose head.safetensors --new ward7.npz": (
        "rows findings forecasts bounds recommendation rehearsed remarks labels"
    ),
    "inspect head.safetensors": (
        "file bytes kind format_version class options classes domains features feature_names "
        "target_name domain_name "
        "preparation adaptable rehearsed adapted_rows labelled_rows temperature declined choice "
        "versions"
    ),
    "bench features.npz --heads erm,dare --l2 0.01 --jobs 1 --trials 2 --with none": (
        "folder trials failed advice statistics"
    ),
    "report features.bench --formats md": "files",
    "features info features": (
        "path kind rows features dtype bytes classes domains feature_names made version finished "
        "shards files"
    ),
    "features info features.npz": (
        "path kind rows features dtype bytes classes domains feature_names made"
    ),
    "features convert features.npz store": "path kind rows features",
    "features verify features": "ok files bad unfinished",
}


@pytest.mark.parametrize("line", FIELDS)
def test_json_is_one_object_with_the_same_fields_each_time(folder, line):
    result = run(*line.split(), "--json")
    assert result.exit_code == 0, result.stderr
    assert set(json.loads(result.stdout)) == set(FIELDS[line].split())
    assert result.stdout.count("\n") == 1


def test_statistics_of_a_bench_are_those_of_its_report(folder):
    line = "bench features.npz --l2 0.01 --jobs 1 --trials 2 --quiet --json"
    found = json.loads(run(*line.split()).stdout)["statistics"]
    run("report", "features.bench", "--formats", "csv")
    header, *rows = (folder / "features.bench" / "report.csv").read_text().splitlines()
    assert list(found[0]) == header.split(",")
    assert len(found) == len(rows)
    assert isinstance(found[0]["value"], float)


def test_every_command_that_prints_results_can_print_json():
    without = {("features",), ("completion",)}
    for name, command in COMMANDS.items():
        flags = {flag for parameter in command.params for flag in parameter.opts}
        assert ("--json" in flags) != (name in without), name
