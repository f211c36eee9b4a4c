"""Files that hold no code, are written whole or not at all, and are checked when they are read."""

from __future__ import annotations

from skdare.persist._fields import (
    ANY_NUMBER,
    FLAG,
    INTEGER,
    LABEL,
    NUMBER,
    TEXT,
    VALUES,
    ArrayOf,
    AxisSize,
    Field,
    FieldError,
    HeaderArrays,
    ReadContext,
)
from skdare.persist._json import check_keys, check_shape, parse_json, read_json
from skdare.persist._lock import lock, lock_folder, locked
from skdare.persist._open_file import open_file
from skdare.persist._structures import (
    ANYTHING,
    IGNORED,
    LABELS,
    EnumMember,
    ListOf,
    MapOf,
    Nullable,
    ObjectOf,
    OneOf,
    TupleOf,
)
from skdare.persist._tensor_file import VERSION, TensorFile, read_header
from skdare.persist._whole_file import (
    PARTIAL,
    PartialFile,
    partial_file,
    passing_folder,
    whole_file,
    whole_folder,
)

__all__ = [
    "ANYTHING",
    "ANY_NUMBER",
    "FLAG",
    "IGNORED",
    "INTEGER",
    "LABEL",
    "LABELS",
    "NUMBER",
    "PARTIAL",
    "TEXT",
    "VALUES",
    "VERSION",
    "ArrayOf",
    "AxisSize",
    "EnumMember",
    "Field",
    "FieldError",
    "HeaderArrays",
    "ListOf",
    "MapOf",
    "Nullable",
    "ObjectOf",
    "OneOf",
    "PartialFile",
    "ReadContext",
    "TensorFile",
    "TupleOf",
    "check_keys",
    "check_shape",
    "lock",
    "lock_folder",
    "locked",
    "open_file",
    "parse_json",
    "partial_file",
    "passing_folder",
    "read_header",
    "read_json",
    "whole_file",
    "whole_folder",
]
