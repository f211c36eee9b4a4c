"""`skdare inspect`: what a saved head or stream is, from its header alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from skdare._input_error import InputError
from skdare._safe_text import counted, terminal_safe
from skdare.cli._errors import mistakes
from skdare.cli._output import JSON, as_object, say
from skdare.cli._quantities import file_size, listed, number


@click.command()
@click.argument("path", metavar="FILE", type=click.Path())
@JSON
def inspect(path: str, as_json: bool) -> None:
    """Say what FILE is: a saved head, or the state of a stream; no array is read.

    Of a head: its class, the options that differ from the defaults, classes, domains and their
    rows, features, how they are prepared, whether it can adapt and was rehearsed, and the versions
    it was made with. The checksum is not verified; all commands that use the head do that.

    \b
    Example:
      skdare inspect head.safetensors
    """
    with mistakes():
        fields = _fields(path)
        as_object(fields) if as_json else say(*_text(fields))


def _fields(path: str) -> dict[str, Any]:
    """Header of the file under the names that --json prints."""
    import skdare

    if not Path(path).is_file():
        raise InputError(f"{path} is not a file", "name one that `skdare fit` or save wrote")
    header = skdare.inspect_file(path)
    about: dict[str, Any] = {"file": path, "bytes": Path(path).stat().st_size}
    about |= {"kind": header["kind"], "format_version": header["version"]}
    if header["kind"] == "fleet":
        return about | {"options": header["options"], "devices": len(header["devices"])}
    if header["kind"] != "head":
        return about | {name: header[name] for name in ("options", "rows", "labels")}
    pairs = zip(header["domains"], header["rows"], strict=True)
    names = (
        *("features", "feature_names", "target_name", "domain_name"),
        *("rehearsed", "adapted_rows", "labelled_rows", "temperature"),
        *("declined", "choice", "versions"),
    )
    return about | {
        "class": header["class"],
        "options": _changed(header["class"], header["parameters"]),
        "classes": header["classes"],
        "domains": [{"domain": label, "rows": _count(rows)} for label, rows in pairs],
        "preparation": header["steps"],
        "adaptable": header["adapts"],
        **{name: header[name] for name in names},
    }


def _count(rows: float | None) -> float | None:
    """Rows as a whole number, unless weights make them a fraction."""
    return int(rows) if rows is not None and rows == int(rows) else rows


def _changed(kind: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Options that differ from the defaults."""
    from skdare import heads

    head: Any = getattr(heads, kind, None) if kind in heads.__all__ else None
    defaults = head().get_params(deep=False) if hasattr(head, "get_params") else {}
    return {n: v for n, v in parameters.items() if n not in defaults or v != defaults[n]}


def _text(fields: dict[str, Any]) -> list[str]:
    size = f"{fields['file']}, {file_size(fields['bytes'])}, version {fields['format_version']}"
    if fields["kind"] != "head":
        options = ", ".join(f"{n}={v:g}" for n, v in fields["options"].items() if v is not None)
        facts = {"file": size, "stream": f"{fields['kind']} ({options})"}
        for name in ("rows", "devices"):
            if name in fields:
                facts[name] = f"{number(fields[name])} seen"
        if fields.get("labels"):
            facts["labels"] = f"{number(fields['labels'])} taken"
        return _lines(facts)
    options = ", ".join(f"{name}={value!r}" for name, value in fields["options"].items())
    names = f": {listed(fields['feature_names'])}" if fields["feature_names"] else ""
    facts = {
        "file": size,
        "head": fields["class"] + (f" ({options})" if options else ", default options"),
        "target": _called(fields["target_name"])
        + ("numbers" if fields["classes"] is None else _classes(fields["classes"])),
        "features": f"{number(fields['features'])}{names}",
        "prepared": ", ".join(fields["preparation"]) or "no",
        "domains": _called(fields["domain_name"])
        + listed(
            f"{domain['domain']}" + (f" ({domain['rows']:,.0f})" if domain["rows"] else "")
            for domain in fields["domains"]
        ),
        "adapts": "yes" if fields["adaptable"] else _why_not(fields),
        "rehearsed": "yes" if fields["rehearsed"] else "no",
        "made with": ", ".join(f"{name} {version}" for name, version in fields["versions"].items()),
    }
    if fields["adapted_rows"] and fields["adaptable"]:
        facts["adapts"] = f"was adapted to {counted(fields['adapted_rows'], 'row')}"
    elif fields["declined"]:
        facts["adapts"] = f"adapting was declined: {fields['declined']}"
    if fields["labelled_rows"]:
        facts["labels"] = f"took {counted(fields['labelled_rows'], 'label')} of a new domain"
    if fields["temperature"]:
        facts["calibrated"] = f"temperature {fields['temperature']:.3g}"
    if fields["choice"]:
        facts["chosen"] = fields["choice"]
    return _lines(facts)


def _why_not(fields: dict[str, Any]) -> str:
    """Why a head does not adapt: it chose not to, or keeps nothing to adapt by."""
    knows_domains = all(domain["rows"] is not None for domain in fields["domains"])
    if fields["choice"] and knows_domains:
        return "no, it did not pay on left-out domains"
    return "no, it only predicts"


def _called(column: str | None) -> str:
    """The name of a column, before what is in it."""
    return f"column {terminal_safe(column)}, " if column else ""


def _classes(classes: list) -> str:
    return f"{counted(len(classes), 'class')}: {listed(classes)}"


def _lines(facts: dict[str, str]) -> list[str]:
    width = max(map(len, facts)) + 2
    return [f"{name:<{width}}{text}" for name, text in facts.items()]
