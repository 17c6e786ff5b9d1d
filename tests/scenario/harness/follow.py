# SPDX-License-Identifier: Apache-2.0
"""Checks the lines of a follower (`kinf watch -o json --old`)."""

from harness.objects import key_of


def replay(lines, state=None):
    """Returns the state after LINES, {key: object}. Asserts that each line fits the state before
    it.

    STATE: the state reached by an earlier follower with the same cursor; then LINES have no initial
    state.
    """
    synced, last = state is not None, 0
    state = dict(state or {})
    for line in lines:
        kind = line["type"]
        assert kind != "LAPPED", "lapped"
        if kind == "SYNC":
            assert not synced, "a second SYNC"
            synced = True
            continue
        key = key_of(line["object"])
        before = state.get(key)
        if line.get("initial"):
            assert not synced, f"initial {key} after SYNC"
            assert before is None, f"initial {key} twice"
            state[key] = line["object"]
            continue
        assert line["event"] > last, f"event {line['event']} after {last}"
        last = line["event"]
        assert (before is None) == (kind == "ADDED"), f"event {last}: {kind} of {key}, known: {before is not None}"
        assert line.get("old") == before, f"event {last}: another old state of {key}"
        if kind == "DELETED":
            del state[key]
        else:
            state[key] = line["object"]
    return state


def since_lapped(lines):
    """The lines after the last LAPPED: a new initial state and its changes."""
    lapped = [i for i, line in enumerate(lines) if line["type"] == "LAPPED"]
    return lines[lapped[-1] + 1 :] if lapped else lines


def changes(lines):
    """[(type, key)] of the changes; the initial state is left out."""
    return [
        (line["type"], key_of(line["object"]))
        for line in lines
        if line["type"] in ("ADDED", "MODIFIED", "DELETED") and not line.get("initial")
    ]
