"""`skdare inspect`: what a saved head or stream is, from its header alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from skdare.cli._errors import mistakes
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
        click.echo(_shown(path, as_json))


def _shown(path: str, as_json: bool) -> str:
    """A header as text or JSON; one with values of other kinds than ours is refused."""
    try:
        told = described(path)
        return json.dumps(told, ensure_ascii=False) if as_json else _text(told)
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path} has a header that is not as save writes it; take another copy of it, or make "
            "it again"
        ) from error


def described(path: str) -> dict[str, Any]:
    """The header in plain words, the same names each time."""
    import skdare
    from skdare.persist import header_of

    if not Path(path).is_file():
        raise ValueError(f"{path} is no file; name one that `skdare fit` or save wrote")
    header = skdare.inspect_file(path)
    about: dict[str, Any] = {"file": path, "bytes": Path(path).stat().st_size}
    about |= {"kind": header["kind"], "format_version": header["version"]}
    if header["kind"] != "head":
        numbers = header.get("numbers", {})
        return about | {"options": header.get("options", {}), "numbers": numbers}
    state = header_of(path).header["state"]
    return about | {
        "class": header["class"],
        "options": _changed(header["class"], header["parameters"]),
        "classes": _values(header["classes"]),
        "domains": _domains(header["domains"], state.get("moments_")),
        "features": header["features"],
        "feature_names": _values(header["feature_names"]),
        "preparation": [step["class"] for step in header.get("steps", [])],
        "adaptable": bool(state.get("adaptation_")) and state.get("adapts_", True),
        "rehearsed": state.get("rehearsal_") is not None,
        "adapted_rows": state.get("adapted_rows_"),
        "choice": state.get("choice_"),
        "versions": header["versions"],
    }


def _values(node: dict[str, Any] | None) -> list | None:
    return None if node is None else _plain(node["values"])


def _changed(kind: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Options that are not at their defaults."""
    from skdare import heads

    usual = getattr(heads, kind)().get_params(deep=False) if kind in heads.__all__ else {}
    found = {name: _plain(value) for name, value in parameters.items()}
    return {n: v for n, v in found.items() if n not in usual or v != _jsonable(usual[n])}


def _plain(node: Any) -> Any:
    """A value of the header without the marks that say how to read it back."""
    if isinstance(node, dict):
        marks = [key for key in ("list", "tuple", "values", "number") if key in node]
        return _plain(node[marks[0]]) if marks else node
    return [_plain(item) for item in node] if isinstance(node, list) else node


def _jsonable(value: Any) -> Any:
    return [_jsonable(item) for item in value] if isinstance(value, list | tuple) else value


def _domains(labels: list, moments: list | None) -> list[dict[str, Any]]:
    rows = {json.dumps(label): node["n"] for label, node in moments or []}
    return [{"domain": _plain(one), "rows": rows.get(json.dumps(one))} for one in labels]


def _text(told: dict[str, Any]) -> str:
    size = f"{told['file']}, {amount(told['bytes'], 'byte')}, version {told['format_version']}"
    if told["kind"] != "head":
        seen = told["numbers"].get("n_seen")
        options = ", ".join(f"{n}={v:g}" for n, v in told["options"].items() if v is not None)
        facts = {"file": size, "stream": f"{told['kind']} ({options})"}
        return _lines(facts if seen is None else {**facts, "rows": f"{number(seen)} seen"})
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


def _lines(facts: dict[str, str]) -> str:
    width = max(map(len, facts)) + 2
    return "\n".join(f"{name:<{width}}{text}" for name, text in facts.items())
