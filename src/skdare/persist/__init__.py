"""Files without code: arrays and a header, written whole or not at all, checked when read."""

from __future__ import annotations

from skdare.persist._fields import (
    ANY_NUMBER,
    FLAG,
    INTEGER,
    LABEL,
    NUMBER,
    TEXT,
    VALUES,
    Array,
    Arrays,
    Field,
    Saved,
    Size,
    Unfit,
)
from skdare.persist._json import check_shape, parse_json, read_json
from skdare.persist._lock import lock, lock_folder, turn
from skdare.persist._open_file import open_file
from skdare.persist._structures import (
    ANYTHING,
    LABELS,
    ListOf,
    MapOf,
    Maybe,
    Named,
    OneOf,
    Record,
    TupleOf,
)
from skdare.persist._tensor_file import VERSION, TensorFile, header_of
from skdare.persist._whole_file import PARTIAL, Partial, partial_file, whole_file, whole_folder

__all__ = [
    "ANYTHING",
    "ANY_NUMBER",
    "FLAG",
    "INTEGER",
    "LABEL",
    "LABELS",
    "NUMBER",
    "PARTIAL",
    "TEXT",
    "VALUES",
    "VERSION",
    "Array",
    "Arrays",
    "Field",
    "ListOf",
    "MapOf",
    "Maybe",
    "Named",
    "OneOf",
    "Partial",
    "Record",
    "Saved",
    "Size",
    "TensorFile",
    "TupleOf",
    "Unfit",
    "check_shape",
    "header_of",
    "lock",
    "lock_folder",
    "open_file",
    "parse_json",
    "partial_file",
    "read_json",
    "turn",
    "whole_file",
    "whole_folder",
]
