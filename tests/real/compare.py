# SPDX-License-Identifier: Apache-2.0
"""
Compares the objects of the cache with the server's as JSON text: spelling of numbers, order of keys
(harness/exact_json.py).
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scenario"))
from harness.exact_json import first_difference, members, read  # noqa: E402


def field(value, *names):
    """The text at a path of keys; "" if there is none."""
    for name in names:
        value = dict(members(value)).get(name)
        if value is None:
            return ""
    return value[1]


def objects_of(listed):
    """{namespace/name: object} of a list's text. Each object begins with kind and apiVersion, as in
    the answer to a get; items of built-in kinds get these from the list.
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
    """Sentences describing the differences of two results of objects_of()."""
    for key in sorted(ours.keys() - theirs.keys()):
        yield f"{key}: in the cache only"
    for key in sorted(theirs.keys() - ours.keys()):
        yield f"{key}: missing in the cache"
    for key in sorted(ours.keys() & theirs.keys()):
        difference = first_difference(ours[key], theirs[key], key)
        if difference:
            yield difference
