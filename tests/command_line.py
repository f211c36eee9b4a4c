"""The command line, called within the test's own process."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner, Result

from skdare.cli import main


def run(*arguments: object, **options: Any) -> Result:
    """Result of a command: its exit code, stdout and stderr."""
    words = [str(argument) for argument in arguments]
    return CliRunner().invoke(main, words, catch_exceptions=False, **options)


def run_ok(*arguments: object, **options: Any) -> Result:
    """Result of a command that must end with exit code 0."""
    result = run(*arguments, **options)
    assert result.exit_code == 0, result.stderr
    return result


def run_json(*arguments: object) -> dict[str, Any]:
    """The object that a command prints with --json."""
    return json.loads(run_ok(*arguments, "--json").stdout)
