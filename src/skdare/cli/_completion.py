"""`skdare completion`: the script with which a shell completes commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

_USE = {
    "bash": 'eval "$(skdare completion bash)"   # in ~/.bashrc',
    "zsh": 'eval "$(skdare completion zsh)"   # in ~/.zshrc',
    "fish": "skdare completion fish > ~/.config/fish/completions/skdare.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(list(_USE)))
def completion(shell: str) -> None:
    """Print the script with which SHELL completes commands, options and their values.

    A line on stderr says where to put it. Bash must be 4.4 or newer.

    \b
    Example:
      skdare completion bash > skdare.bash
    """
    kind = get_completion_class(shell)
    assert kind is not None
    group = click.get_current_context().find_root().command
    # Not .source(), which asks bash for its version first: the script may be for another machine.
    script = kind(group, {}, "skdare", "_SKDARE_COMPLETE")
    click.echo(script.source_template % script.source_vars())
    click.echo(f"to use it: {_USE[shell]}", err=True)
