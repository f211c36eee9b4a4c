"""The command line: answers on stdout, notes and progress on stderr.

A command is a function of its arguments that returns an `Answer`: its options are made from its
signature, and their help from its docstring. This module has the frame around all commands.
"""

from __future__ import annotations

import sys
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

from cyclopts import (
    App,
    ArgumentCollection,
    CycloptsError,
    Group,
    MissingArgumentError,
    Parameter,
)

from skdare import __version__
from skdare.cli.help_page import HelpPage
from skdare.cli.messages import endings, notes, show
from skdare.errors import InputError, unknown

# Commands with their modules, which are loaded when they are called, or listed.
COMMANDS = {
    "Use a head": {
        "check": "fit",
        "fit": "fit",
        "predict": "predict",
        "adapt": "adapt",
        "diagnose": "adapt",
        "export": "export",
        "inspect": "export",
    },
    "Compare heads": {"bench": "bench", "report": "bench", "demo": "bench"},
    "From images or text to features": {"train": "learn", "extract": "learn"},
    "The paper": {"reproduce": "learn", "theory": "learn"},
}
NAMES = [name for modules in COMMANDS.values() for name in modules]

app = App(
    name="skdare",
    version=f"skdare {__version__}",
    help_format="plaintext",
    help_formatter=HelpPage(),
    default_parameter=Parameter(negative_iterable=(), negative_none=()),
    group_arguments=Group("Arguments", sort_key=0),
    group_parameters=Group("Options", sort_key=1),
)
for number, (heading, modules) in enumerate(COMMANDS.items()):
    group = Group(heading, sort_key=number)
    for place, (name, module) in enumerate(modules.items()):
        app.command(f"{__name__}.{module}:{name}", group=group, sort_key=place)
for_all = Group("Options of every command", sort_key=9)


@app.command(name="--install-completion", group=for_all)
def install_completion() -> None:
    """Complete commands and options in this shell from now on."""
    path = app.install_completion()
    print(f"wrote {path}; open a new shell to use it")


app["--help"].help = "Show this page, or that of a command."
app["--help"].group = app["--version"].group = (for_all,)
app["--version"].help = "Print the version."
app.meta.suppress_keyboard_interrupt = False  # it has an ending of ours


@app.meta.default
def frame(
    *words: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
    json: Annotated[bool, Parameter(negative=(), group=for_all)] = False,
    quiet: Annotated[bool, Parameter(negative=(), group=for_all)] = False,
    config: Annotated[Path | None, Parameter(group=for_all)] = None,
) -> None:
    """Linear classifiers and regressors that adapt to a new domain from unlabelled data.

    A domain is a group of rows with a common origin: a hospital, a camera, a batch, a person. A
    head is a linear classifier or regressor on fixed features.

    Answers go to stdout, notes and progress to stderr. The exit code is 0 if all went well, 2 for a
    mistake in the arguments or files, and 1 for a failure.

    Begin with `skdare demo`, or with a table of your own:

      skdare check patients.csv --target died --domains hospital

    Parameters
    ----------
    json
        Print the answer as one JSON object.
    quiet
        No notes and no progress on stderr.
    config
        A TOML file with options by name: those of all commands first, then those of one command
        under its name, as in [bench]. What is typed goes before.
    """
    if config is not None:
        app.config = [partial(_fill, config)]
    command, bound, _ = app.parse_args(words, exit_on_error=False, print_error=False)
    named = words and words[0] in NAMES
    with notes(options_of(words[0]) if named else (), quiet=quiet):
        answer = command(*bound.args, **bound.kwargs)
    if answer is None:  # rows went to stdout
        return
    show(answer, as_json=json)
    if answer.failed:
        sys.exit(1)


def _fill(path: Path, app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Give a command the options of a file that it has, where nothing was typed."""
    import tomllib

    from cyclopts.config import Dict

    try:
        text = path.read_text(encoding="utf-8")
        if "\\u0000" in text or "\\U00000000" in text:
            raise ValueError("it has a NUL character")
        values = tomllib.loads(text)
    except ValueError as error:
        what = f"--config {path} cannot be read: {error}"
        raise InputError(what, 'write an option as target = "died"') from error
    tables = {name: table for name, table in values.items() if isinstance(table, dict)}
    for name in tables:
        if name not in NAMES:
            raise unknown("command", name, NAMES)
    own = options_of(commands[0])
    everywhere = {name.replace("_", "-"): v for name, v in values.items() if name not in tables}
    known = set().union(*map(options_of, NAMES))
    for name in everywhere.keys() - known:
        raise unknown("option", name, sorted(known))
    here = {name.replace("_", "-"): v for name, v in tables.get(commands[0], {}).items()}
    for name in here.keys() - own:
        raise unknown(f"option of {commands[0]}", name, sorted(own))
    chosen = {**{name: v for name, v in everywhere.items() if name in own}, **here}
    Dict(chosen, source=str(path), use_commands_as_keys=False)(app, commands, arguments)


def options_of(name: str) -> set[str]:
    """Options of a command, by the names of its arguments."""
    return {
        option.removeprefix("--")
        for argument in app[name].assemble_argument_collection()
        for option in argument.names[:1]
        if option.startswith("--") and argument.show
    }


def main() -> None:
    # An old terminal or a C locale lacks some signs; a question mark is better than a traceback.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    if not set(NAMES) & set(sys.argv):
        for name in NAMES:  # the page that lists them has a line of each
            _ = app[name]
    with endings():
        try:
            app.meta(sys.argv[1:], exit_on_error=False, print_error=False)
        except CycloptsError as error:
            raise _mistake(error) from error


def _mistake(error: CycloptsError) -> InputError:
    """What the library for commands refuses, in our words."""
    words = ["skdare", *(error.command_chain or ()), "--help"]
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        name = error.argument.names[0]
        what = f"{name} needs a value" if name.startswith("-") else f"{name} is missing"
        return InputError(what, f"see {' '.join(words)}")
    what, _, hint = str(error).partition(". ")
    if "Did you mean" in hint:  # and not the list of all others
        hint = hint[hint.index("Did you mean") :].partition("?")[0] + "?"
    return InputError(
        what[:1].lower() + what[1:].rstrip("."),
        hint[:1].lower() + hint[1:].rstrip(".") if hint else f"see {' '.join(words)}",
    )
