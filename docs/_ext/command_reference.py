"""The command line in the reference, read from the commands: no copy of an option can grow old."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module

import click
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class CommandReference(SphinxDirective):
    """A section for every command below a click group, given as ``module:name``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Sections in the order of the commands, those of a group after it."""
        module, _, name = self.arguments[0].partition(":")
        group = getattr(import_module(module), name)
        outermost = click.Context(group, info_name="skdare")
        return [self._section(context) for context in contexts(outermost)]

    def _section(self, context: click.Context) -> nodes.section:
        title = context.command_path
        section = nodes.section(ids=[nodes.make_id(title)], names=[title])
        section += nodes.title(title, "", nodes.literal(title, title))
        # Not as click wraps it, which breaks lists of choices.
        usage = " ".join([title, *context.command.collect_usage_pieces(context)])
        section += nodes.literal_block(usage, usage, language="text", classes=["usage"])
        section += list(_help(context.command.help or ""))
        section += list(options(context))
        self.state.document.note_explicit_target(section)
        return section


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


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive ``commands``."""
    app.add_directive("commands", CommandReference)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
