# SPDX-License-Identifier: Apache-2.0
"""
The cache against the server, object by object, as JSON texts: numbers by their spelling, keys in
their order (harness/exact_json.py).
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scenario"))
from harness.exact_json import first_difference, members, read  # noqa: E402


def field(value, *names):
    """The text at a path of keys, "" when there is none."""
    for name in names:
        value = dict(members(value)).get(name)
        if value is None:
            return ""
    return value[1]


def objects_of(listed):
    """{namespace/name: object} of a list's text, each object with its type in front as in a single answer.

    Items of built-in kinds have no type of their own: it is the list's.
    """
    listed = read(listed)
    kind, version = field(listed, "kind").removesuffix("List"), field(listed, "apiVersion")
    found = {}
    for item in dict(members(listed))["items"][1] or []:
        if not field(item, "kind"):
            item = ("map", [("kind", ("string", kind)), ("apiVersion", ("string", version)), *members(item)])
        key = "/".join(filter(None, (field(item, "metadata", "namespace"), field(item, "metadata", "name"))))
        found[key] = item
    return found


def differences(ours, theirs):
    """Sentences on how two results of objects_of() differ."""
    for key in sorted(ours.keys() - theirs.keys()):
        yield f"{key}: in the cache only"
    for key in sorted(theirs.keys() - ours.keys()):
        yield f"{key}: missing in the cache"
    for key in sorted(ours.keys() & theirs.keys()):
        difference = first_difference(ours[key], theirs[key], key)
        if difference:
            yield difference
