"""`skdare inspect`: what a saved head or stream is, from its header alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from skdare.cli._errors import mistakes
from skdare.cli._output import as_object, say
from skdare.cli._quantities import amount, listed, number


@click.command()
@click.argument("path", metavar="FILE", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def inspect(path: str, as_json: bool) -> None:
    """Say what FILE is: a head that was saved, or the state of a stream; no array is read.

    Its class, the options that differ from the defaults, classes, domains and their rows, features,
    what prepares them, whether it can adapt and was rehearsed, and the versions it was made with.
    The checksum is not looked at: `skdare predict` and all others do that.

    \b
    Example:
      skdare inspect head.safetensors
    """
    with mistakes():
        told = described(path)
        as_object(told) if as_json else say(*_text(told))


def described(path: str) -> dict[str, Any]:
    """The header in plain words, the same names each time."""
    import skdare

    if not Path(path).is_file():
        raise ValueError(f"{path} is no file; name one that `skdare fit` or save wrote")
    header = skdare.inspect_file(path)
    about: dict[str, Any] = {"file": path, "bytes": Path(path).stat().st_size}
    about |= {"kind": header["kind"], "format_version": header["version"]}
    if header["kind"] == "fleet":
        return about | {"options": header["options"], "devices": len(header["devices"])}
    if header["kind"] != "head":
        return about | {"options": header["options"], "rows": header["rows"]}
    pairs = zip(header["domains"], header["rows"], strict=True)
    names = ("features", "feature_names", "rehearsed", "adapted_rows", "choice", "versions")
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
    """Rows that were not weighted are a whole number of them."""
    return int(rows) if rows is not None and rows == int(rows) else rows


def _changed(kind: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Options that are not at their defaults."""
    from skdare import heads

    known: Any = getattr(heads, kind, None) if kind in heads.__all__ else None
    usual = known().get_params(deep=False) if hasattr(known, "get_params") else {}
    return {n: v for n, v in parameters.items() if n not in usual or v != usual[n]}


def _text(told: dict[str, Any]) -> list[str]:
    size = f"{told['file']}, {amount(told['bytes'], 'byte')}, version {told['format_version']}"
    if told["kind"] != "head":
        options = ", ".join(f"{n}={v:g}" for n, v in told["options"].items() if v is not None)
        facts = {"file": size, "stream": f"{told['kind']} ({options})"}
        seen = {name: number(told[name]) for name in ("rows", "devices") if name in told}
        return _lines({**facts, **{name: f"{count} seen" for name, count in seen.items()}})
    options = ", ".join(f"{name}={value!r}" for name, value in told["options"].items())
    names = f": {listed(told['feature_names'])}" if told["feature_names"] else ""
    facts = {
        "file": size,
        "head": told["class"] + (f" ({options})" if options else ", default options"),
        "target": "numbers" if told["classes"] is None else _classes(told["classes"]),
        "features": f"{number(told['features'])}{names}",
        "prepared": ", ".join(told["preparation"]) or "not at all",
        "domains": listed(
            f"{one['domain']}" + (f" ({one['rows']:,.0f})" if one["rows"] else "")
            for one in told["domains"]
        ),
        "adapts": "yes" if told["adaptable"] else "no, it only predicts",
        "rehearsed": "yes" if told["rehearsed"] else "no",
        "made with": ", ".join(f"{name} {version}" for name, version in told["versions"].items()),
    }
    if told["adapted_rows"]:
        facts["adapts"] = f"was adapted to {number(told['adapted_rows'])} rows"
    if told["choice"]:
        facts["chosen"] = told["choice"]
    return _lines(facts)


def _classes(classes: list) -> str:
    return f"{len(classes)} classes: {listed(classes)}"


def _lines(facts: dict[str, str]) -> list[str]:
    width = max(map(len, facts)) + 2
    return [f"{name:<{width}}{text}" for name, text in facts.items()]
