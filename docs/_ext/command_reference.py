"""The command line in the reference, read from the commands: no copy of an option can grow old."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

GROUP = "skdare.cli:main"
PAGES = Path(__file__).parents[1] / "reference" / "commands"


class CommandReference(SphinxDirective):
    """Usage, help and options of one command, and a section for each command below it."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """What stands below the title of the page."""
        context = next(c for c in contexts(outermost()) if c.info_name == self.arguments[0])
        below = contexts(context) if isinstance(context.command, click.Group) else ()
        return [*described(context), *map(self._section, below)]

    def _section(self, context: click.Context) -> nodes.section:
        title = context.command_path
        section = nodes.section(ids=[nodes.make_id(title)], names=[title])
        section += nodes.title(title, "", nodes.literal(title, title))
        section += list(described(context))
        self.state.document.note_explicit_target(section)
        return section


class CommandList(SphinxDirective):
    """All commands by purpose, each a link to its page."""

    def run(self) -> list[nodes.Node]:
        """A section for each purpose, with a table of its commands."""
        self.env.note_reread()  # a new command changes no file that Sphinx would look at
        lines = []
        for purpose, commands in outermost().command.groups.items():
            lines += [f"## {purpose}", "", "| command | what it does |", "|---|---|"]
            for name, meaning in commands.items():
                lines.append(f"| [`skdare {name}`](commands/{name}.rst) | {meaning} |")
            lines += ["", "```{toctree}", ":hidden:", ""]
            lines += [*(f"commands/{name}" for name in commands), "```", ""]
        return self.parse_text_to_nodes("\n".join(lines), allow_section_headings=True)


def outermost() -> click.Context:
    """The group that all commands are in."""
    module, _, name = GROUP.partition(":")
    return click.Context(getattr(import_module(module), name), info_name="skdare")


def contexts(context: click.Context) -> Iterator[click.Context]:
    """Every command below this one that can be run or has others below it."""
    group = context.command
    assert isinstance(group, click.Group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        inner = click.Context(command, parent=context, info_name=name)
        yield inner
        if isinstance(command, click.Group):
            yield from contexts(inner)


def described(context: click.Context) -> Iterator[nodes.Node]:
    """How a command is called, what it does, and its options."""
    # Not as click wraps it, which breaks lists of choices.
    usage = " ".join([context.command_path, *context.command.collect_usage_pieces(context)])
    yield nodes.literal_block(usage, usage, language="text", classes=["usage"])
    yield from _help(context.command.help or "")
    yield from options(context)


def _help(text: str) -> Iterator[nodes.Node]:
    """Paragraphs; a block that click is told not to wrap is shown as it is."""
    for block in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        if not block.startswith("\b"):
            yield _paragraph(block)
            continue
        first, _, rest = block.removeprefix("\b\n").partition("\n")
        if first.startswith(" "):
            first, rest = "", f"{first}\n{rest}"
        if first:
            yield _paragraph(first)
        if rest:
            shown = inspect.cleandoc(rest)
            yield nodes.literal_block(shown, shown, language="text")


def options(context: click.Context) -> Iterator[nodes.Node]:
    """Every option that is not hidden, with what click says of it."""
    parameters = context.command.get_params(context)
    shown = [p for p in parameters if isinstance(p, click.Option) and not p.hidden]
    items = nodes.definition_list(classes=["options"])
    for names, meaning in filter(None, (p.get_help_record(context) for p in shown)):
        term = nodes.term("", "", nodes.literal(names, names))
        items += nodes.definition_list_item("", term, nodes.definition("", _paragraph(meaning)))
    if len(items):
        yield items


def _paragraph(text: str) -> nodes.paragraph:
    """Text with ``code`` between backticks; options are code without them."""
    paragraph = nodes.paragraph()
    for part in re.split(r"(`[^`]*`|(?<![\w-])--[a-z][\w-]*)", " ".join(text.split())):
        is_code = part.startswith(("`", "--"))
        shown = part.strip("`")
        paragraph += nodes.literal(shown, shown) if is_code else nodes.Text(part)
    return paragraph


def write_pages(app: Sphinx) -> None:
    """Write a page for each command; all it says is the directive."""
    PAGES.mkdir(exist_ok=True)
    for name in outermost().command.commands:
        page = PAGES / f"{name}.rst"
        title = f"``skdare {name}``"
        text = f"{title}\n{'=' * len(title)}\n\n.. command:: {name}\n"
        # Sphinx reads a page again if it was written, even if to the same text.
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directives ``command`` and ``commands``, and write the pages of commands."""
    app.add_directive("command", CommandReference)
    app.add_directive("commands", CommandList)
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
