"""Which array or column of a file is which: features, target, domains, split, groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np

from skdare._validation import InputError, warn
from skdare.datasets._contents import Contents, Key, TableArrays, numbered_row
from skdare.datasets._roles import MISSING, NAMES

LABELS = ("target", "domains", "split", "groups")
_OPTIONAL = ("split", "groups")
LABEL_NAMES = {name for role in LABELS for name in NAMES[role]}
_NAMED = 5
# So many columns of text are looked at for numbers.
_MOST_TEXT = 50
_CELLS_AT_A_TIME = 4096
# A column of which this share of cells is not a number was meant to be one.
_FEW_BAD = 0.1
_WILDCARDS = frozenset("*?[")
_ROW_NUMBERS = {"id", "index", "unnamed: 0", "__index_level_0__"}


def choose(contents: Contents, named: dict[str, str | None]) -> dict[str, list[str]]:
    """The entries of each role: those that ``named`` gives, and guesses for the others."""
    main = _main(contents, named)
    keys = {}
    for role in LABELS:
        key = named.get(role)
        if key is None:
            candidates = _called(contents, role, named)
            agree = [
                k for k in candidates if not main or _rows(contents, k) == _rows(contents, main)
            ]
            key = _only(contents, role, agree) or next(iter(candidates), None)
        optional = role in _OPTIONAL or (role == "domains" and key == "")
        if role == "target" and key is None:
            _refuse_no_target(contents, named)
        if key or not optional:
            keys[role] = [named_entry(contents, role, key)]
    used = {key for chosen in keys.values() for key in chosen}
    return {"features": [main] if main else columns_of(contents, named["features"], used), **keys}


def _refuse_no_target(contents: Contents, named: dict[str, str | None]) -> None:
    """Say that no target is found, and in the same message if no domains are found either."""
    if named.get("domains") is not None or _called(contents, "domains", named):
        named_entry(contents, "target", None)
    raise InputError(
        f"no target and no domains found in {contents.path}: it has {contents.listing()}",
        "name them with target= and domains=",
        argument="target",
    )


def main_entry(contents: Contents, key: str | None) -> str | None:
    """The one entry that holds all features; None where a table spreads them over columns."""
    return _main(contents, {"features": key})


def called(contents: Contents, role: str) -> list[str]:
    """Entries that go by a name of the role."""
    return _called(contents, role, {})


def is_label(name: str, named: dict[str, str | None]) -> bool:
    """Whether a column is a label by its name, or because ``named`` gives it a role."""
    return name.lower() in LABEL_NAMES or name in {named.get(role) for role in LABELS}


def places(keys: dict[str, list[str]], path: Path) -> dict[str, str]:
    """What errors call the entries of each role."""
    return {
        role: f"{role} {chosen[0]!r} in {path}"
        if len(chosen) == 1
        else f"the table of {role} in {path}"
        for role, chosen in keys.items()
    }


def _main(contents: Contents, named: dict[str, str | None]) -> str | None:
    """The one entry that holds all features; None where a table spreads them over columns."""
    if named["features"] is not None:
        return None if contents.tabular else named_entry(contents, "features", named["features"])
    wide = [k for k in _called(contents, "features", named) if len(contents.entries[k].shape) > 1]
    floats = [
        key
        for key, entry in contents.entries.items()
        if len(entry.shape) == 2 and entry.dtype.kind == "f"
        if key not in named.values() and key.lower() not in LABEL_NAMES
    ]
    main = _only(contents, "features", wide) or _only(contents, "features", floats)
    return main if main or contents.tabular else named_entry(contents, "features", None)


def _rows(contents: Contents, key: str) -> tuple[int, ...]:
    return contents.entries[key].shape[:1]


def _called(contents: Contents, role: str, named: dict[str, str | None]) -> list[str]:
    """Entries that go by a name of the role, in the order of those names; no scalars."""
    order = {name: place for place, name in enumerate(NAMES[role])}
    taken = set(named.values())
    free = [key for key, entry in contents.entries.items() if entry.shape and key not in taken]
    return sorted((k for k in free if k.lower() in order), key=lambda key: order[key.lower()])


def _only(contents: Contents, role: str, candidates: list[str]) -> str | None:
    if len(candidates) > 1:
        raise InputError(
            f"{contents.path} has {len(candidates)} candidates for {role}: "
            f"{', '.join(f'{k} ({contents.entries[k]})' for k in candidates)}",
            f"name one with {role}=",
            argument=role,
        )
    return next(iter(candidates), None)


def named_entry(contents: Contents, role: str, key: str | None) -> str:
    """The key itself, refused where no entry has that name."""
    if key is not None and key in contents.entries:
        return key
    absent = f"no {role} found" if key is None else f"no {key!r} for {role}"
    raise InputError(
        f"{absent} in {contents.path}: it has {contents.listing()}",
        f"{_guess(key, contents)}name one with {role}=",
        argument=role,
    )


def _guess(key: str | None, contents: Contents) -> str:
    """The name that may have been meant, as a question; nothing where none is close."""
    from difflib import get_close_matches

    names = {name.lower(): name for name in contents.entries}
    close = get_close_matches((key or "").lower(), names, n=1)
    return f"did you mean {names[close[0]]!r}? if not, " if close else ""


def columns_of(contents: Contents, pattern: str | None, used: set[str]) -> list[str]:
    """The columns of a table that a list or pattern names, or all that can be features."""
    if pattern is None:
        return _numeric_columns(contents, used)
    chosen: dict[str, None] = {}
    for part in map(str.strip, pattern.split(",")):
        matching = []
        if not _WILDCARDS.isdisjoint(part):
            matching = [k for k in contents.entries if fnmatchcase(k, part) and k not in used]
        chosen |= dict.fromkeys(matching or [named_entry(contents, "features", part)])
    text = next((key for key in chosen if not contents.entries[key].numeric), None)
    if text is not None:
        where = _not_numbers(contents, text)
        raise ValueError(
            f"column {text!r} of {contents.path} is text{where and f', {where}'}; features are "
            "numbers"
        )
    return list(chosen)


def _not_numbers(contents: Contents, key: str) -> str:
    """What a column of a CSV file that was meant to be numbers has in their place; else nothing."""
    # Other files know which columns are text, and a stream would be read to its end.
    if contents.place is numbered_row or contents.stream is not None:
        return ""
    if contents.entries[key].dtype.kind not in "SU":
        return ""
    cells = contents.load([key])[0].tolist()
    bad = [row for row, cell in enumerate(cells) if not _is_number(cell)]
    few = _FEW_BAD * len(cells)
    if not bad:
        return ""
    example = f"{contents.place(bad[0])} has {cells[bad[0]]!r}"
    if len(bad) <= few:
        are = "is not a number" if len(bad) == 1 else "are not numbers"
        return f"for {len(bad):,} of {len(cells):,} cells {are}: {example}"
    if sum(not _is_number(cells[row].replace(",", ".", 1)) for row in bad) <= few:
        return f"for it has decimal commas: {example}"
    return ""


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return cell.strip() in MISSING
    return True


def named_columns(contents: Contents, names: Sequence[str]) -> list[str]:
    """The columns of a table that have the names of the training rows' features."""
    absent = next((name for name in names if name not in contents.entries), None)
    if absent is not None:
        raise ValueError(
            f"{contents.path} has no column {absent!r}, which the training rows have; it has "
            f"{contents.listing()}"
        )
    text = next((name for name in names if not contents.entries[name].numeric), None)
    if text is not None:
        _refuse_text(contents, text)
    return list(names)


def _refuse_text(contents: Contents, key: str) -> None:
    """Refuse a column of text among the features, and show its first cell that is no number."""
    row = 0
    for (cells,) in contents.visit([key], _CELLS_AT_A_TIME):
        for cell in cells.tolist():
            if not _is_number(str(cell)):
                place = f"{contents.place(row)} of {contents.path}"
                raise InputError(*not_a_number(place, str(cell), key))
            row += 1
    raise InputError(f"column {key!r} of {contents.path} is text", "features are numbers")


def not_a_number(place: str, cell: str, column: str) -> tuple[str, str]:
    """What is wrong with a cell where a number is needed, and what to do."""
    what = f"{place} has {cell!r} in column {column!r}, and a number is needed"
    return what, "correct it, or choose other columns"


def _numeric_columns(contents: Contents, used: set[str]) -> list[str]:
    others = [k for k in contents.entries if k not in used and k.lower() not in _ROW_NUMBERS]
    # A second label among the features would give the answer away, so it has to be asked for.
    chosen = [
        key
        for key in others
        if contents.entries[key].numeric and len(contents.entries[key].shape) == 1
        if key.lower() not in LABEL_NAMES
    ]
    if not chosen:
        named_entry(contents, "features", None)
    numeric = set(chosen)
    left = [key for key in others if key not in numeric]
    if left:
        spoilt = [
            f"{key!r} is text, {what}"
            for key in left[:_MOST_TEXT]
            if (what := _not_numbers(contents, key))
        ]
        if len(spoilt) > _NAMED:
            spoilt[_NAMED:] = [f"so are {len(spoilt) - _NAMED} more"]
        reasons = f" ({', '.join(spoilt)})" if spoilt else ""
        warn(
            f"{contents.path}: {', '.join(left[:_NAMED])}{' and others' * (len(left) > _NAMED)} "
            f"left out of the features, being text or labels{reasons}; name columns with features= "
            "to choose"
        )
    return chosen


def column_names(arrays: TableArrays, path: Path) -> list[str]:
    """Names of the features as columns of a file, refused where `read` would mistake them."""
    names = arrays.get("feature_names") or [f"feat_{j}" for j in range(arrays["X"].shape[1])]
    taken = {name for name in names if name.strip().lower() in LABEL_NAMES | _ROW_NUMBERS}
    odd = {name for name in names if not name.strip() or set(name) & set(',;\t"\r\n')}
    if taken or odd or len(set(names)) < len(names):
        wrong = min(taken | odd, default="the same name twice")
        raise ValueError(
            f"the features have {wrong!r}, which cannot name a column of {path}; rename it, or "
            "write .npz or a feature store"
        )
    return names


def distinct(names: list[str], path: Path) -> list[str]:
    """The names themselves, refused where two are alike."""
    name, times = Counter(names).most_common(1)[0] if names else ("", 0)
    if times > 1:
        raise ValueError(f"{path} has {times} columns called {name!r}; rename all but one")
    return names


def load_entries(contents: Contents, keys: list[str]) -> np.ndarray:
    """Entries as one array, side by side."""
    return contents.load([side_by_side(contents, keys)])[0]


def side_by_side(contents: Contents, keys: list[str]) -> Key:
    """What to ask for to have entries as one array: columns of a table as a matrix."""
    flat = contents.tabular and len(contents.entries[keys[0]].shape) == 1
    return tuple(keys) if flat or len(keys) > 1 else keys[0]


def feature_names_of(contents: Contents, keys: list[str]) -> list[str] | None:
    """What the features are called, where the file says so."""
    entries = contents.entries
    if contents.tabular and all(len(entries[key].shape) == 1 for key in keys):
        return keys
    beside = entries.get("feature_names")
    if beside and beside.dtype.kind == "U" and beside.shape == entries[keys[0]].shape[1:2]:
        return contents.load(["feature_names"])[0].tolist()
    return contents.feature_names
