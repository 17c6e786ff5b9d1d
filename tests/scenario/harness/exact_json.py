# SPDX-License-Identifier: Apache-2.0
"""Reads JSON without losing information: numbers keep their spelling, maps their order and
duplicate keys.

A value is ("number", spelling), ("string", text), ("map", [(key, value), ...]), ("list", [...]) or
("literal", True | False | None). Texts read as equal if they differ only in spacing and in the
escapes of strings.
"""

import json


def read(text):
    decoder = json.JSONDecoder(
        parse_float=lambda spelling: ("number", spelling),
        parse_int=lambda spelling: ("number", spelling),
        object_pairs_hook=lambda pairs: ("map", [(key, _tag(value)) for key, value in pairs]),
    )
    return _tag(decoder.decode(text.strip()))


def _tag(value):
    """Tags the decoder's untagged values: lists, strings and literals."""
    if isinstance(value, tuple):
        return value
    if isinstance(value, list):
        return "list", [_tag(item) for item in value]
    if isinstance(value, str):
        return "string", value
    return "literal", value


def members(value):
    assert value[0] == "map", value
    return value[1]


def first_difference(ours, theirs, path="$"):
    """Describes the first difference of two read() values; None if they are equal."""
    if ours == theirs:
        return None
    if ours[0] != theirs[0] or ours[0] not in ("map", "list"):
        return f"{path}: {_short(ours)} instead of {_short(theirs)}"
    if ours[0] == "map":
        keys, wanted = [k for k, _ in ours[1]], [k for k, _ in theirs[1]]
        if keys != wanted:
            return f"{path}: keys {keys} instead of {wanted}"
        pairs = ((f"{path}.{k}", a, b) for (k, a), (_, b) in zip(ours[1], theirs[1]))
    else:
        if len(ours[1]) != len(theirs[1]):
            return f"{path}: {len(ours[1])} items instead of {len(theirs[1])}"
        pairs = ((f"{path}[{i}]", a, b) for i, (a, b) in enumerate(zip(ours[1], theirs[1])))
    return next(filter(None, (first_difference(a, b, where) for where, a, b in pairs)))


def _short(value):
    text = repr(value[1])
    return f"{value[0]} {text[:80]}"
