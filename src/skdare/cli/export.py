"""`skdare export` and `skdare inspect`: a saved head for other programs, and in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, get_args

from skdare.cli.answer import Answer, command, facts, file_size, some
from skdare.cli.outputs import named_after, writable
from skdare.cli.saved_head import SavedHead
from skdare.errors import InputError, counted, note

Format = Literal["onnx", "torch", "csv"]
# Endings of files that are named after a head. It may be named after a table, which must stay.
_ENDINGS: dict[Format, str] = {"onnx": ".onnx", "torch": ".pt", "csv": ".weights.csv"}


def export(head: Path, /, *, out: Path | None = None, format: Format | None = None) -> Answer:
    """Write a head as an ONNX graph, a torch module or a table of weights.

    Parameters
    ----------
    head
        File that `skdare fit` or `skdare adapt` wrote.
    out
        File to write  [default: NAME.onnx]
    format
        onnx takes raw features, missing values too; torch is the state of an nn.Linear; csv has a
        row for each feature  [default: by the name of --out]
    """
    from skdare.files import whole_file

    out = out or named_after(head, _ENDINGS[format or "onnx"])
    if format is None and out.suffix:
        format = next((f for f in get_args(Format) if _ENDINGS[f].endswith(out.suffix)), None)
    if format is None:
        raise InputError(
            f"cannot tell the format of '{out}'",
            "its name must end in .onnx, .pt or .csv, or give --format",
        )
    output = writable(out, "weights" if format == "csv" else format, head)
    model = SavedHead.load(head).model
    with whole_file(out) as file:
        if format == "onnx":
            file.write(model.to_onnx().SerializeToString())
        elif format == "torch":
            import torch

            torch.save(model.to_torch().state_dict(), file)
        else:
            file.write(_weights(model).to_csv(index_label="feature").encode())
    fields = {"out": str(out), "format": format, "bytes": out.stat().st_size}
    return Answer("\n".join(facts({"wrote": output.wrote(format)})), fields)


def _weights(model: Any) -> Any:
    """A row for each raw feature, and one for the intercept."""
    import numpy as np
    import pandas as pd

    from skdare.export.linear_map import LinearMap

    linear = LinearMap.of(model)
    if linear.steps:
        note("the weights are for rows without missing values, which a table cannot fill")
    features = linear.feature_names or [f"x{j}" for j in range(linear.coef.shape[1])]
    columns = ["weight"]
    if linear.classes is not None:  # of two classes the weights are those of the second
        columns = list(map(str, linear.classes[-len(linear.coef) :]))
    weights = np.column_stack([linear.coef, linear.intercept]).T
    return pd.DataFrame(weights, [*features, "intercept"], columns)


def inspect(file: Path, /) -> Answer:
    """Describe a saved head or stream, and what it chose.

    Parameters
    ----------
    file
        File that `skdare fit` or `skdare adapt` wrote.
    """
    from skdare.heads.inspect import inspect_file

    about = inspect_file(file)
    fields = {"file": str(file), "bytes": file.stat().st_size, **about}
    pairs = {"file": f"{file}, {file_size(file)}, format {about['version']}"}
    if about["kind"] == "stream":
        pairs["stream"] = f"{counted(about['rows'], 'row')} of a new domain"
        pairs["labels"] = f"{about['labels']:,} of them"
        following = command("adapt", "HEAD", "FILE", "--state", file)
        return Answer("\n".join(facts(pairs)), fields, [following])
    model = SavedHead.load(file).model
    choice = getattr(model, "choice_", None)
    fields["choice"] = None if choice is None else str(choice)
    defaults = type(model)().get_params(deep=False)
    # A file has lists in place of tuples.
    given = {n: tuple(v) if isinstance(v, list) else v for n, v in model.get_params(False).items()}
    own = {n: v for n, v in given.items() if n != "preparation" and v != defaults[n]}
    pairs["head"] = about["class"] + "".join(f", {name}={value}" for name, value in own.items())

    def called(column: str | None) -> str:
        return f"column '{column}': " if column else ""

    classes = "numbers" if about["classes"] is None else some(map(str, about["classes"]))
    pairs["target"] = called(about["target_name"]) + classes
    names = f": {some(about['feature_names'])}" if about["feature_names"] else ""
    pairs["features"] = f"{about['features']:,}{names}"
    pairs["prepared"] = ", ".join(about["steps"]).lower().replace("autopreparation", "auto") or "no"
    domains = list(map(str, about["domains"]))
    if about["adaptable"]:
        rows = map(round, about["rows"])
        domains = [f"{name} ({n:,})" for name, n in zip(domains, rows, strict=True)]
    pairs["domains"] = called(about["domain_name"]) + some(domains)
    pairs["adapts"] = "yes" if about["adapts"] else "no"
    if about["adapted_rows"]:
        pairs["adapts"] = f"was adapted to {counted(about['adapted_rows'], 'row')}"
    if about["declined"]:
        pairs["adapts"] = f"no: {about['declined']}"
    if about["labelled_rows"]:
        pairs["labels"] = f"took {about['labelled_rows']:,} of a new domain"
    pairs["forecasts"] = "yes" if about["rehearsed"] else "no"
    if fields["choice"]:
        pairs["choice"] = fields["choice"]
    pairs["made with"] = ", ".join(f"{name} {v}" for name, v in about["versions"].items())
    served = about["adapted_rows"] or not about["rehearsed"]
    following = command("predict" if served else "diagnose", file, "NEW.csv")
    return Answer("\n".join(facts(pairs)), fields, [following])
