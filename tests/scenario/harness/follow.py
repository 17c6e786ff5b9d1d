# SPDX-License-Identifier: Apache-2.0
"""What a follower printed (`kinf watch -o json --old`), checked line by line."""

from harness.objects import key_of


def replay(lines, state=None):
    """The state that a follower's lines amount to, {key: object}; every line has to fit what came before.

    STATE: what an earlier life of the same cursor left (then these lines have no initial state).
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
    """What came after the last LAPPED: an initial state, and the changes of it."""
    lapped = [i for i, line in enumerate(lines) if line["type"] == "LAPPED"]
    return lines[lapped[-1] + 1 :] if lapped else lines


def changes(lines):
    """[(type, key)] of what came after SYNC."""
    return [
        (line["type"], key_of(line["object"]))
        for line in lines
        if line["type"] in ("ADDED", "MODIFIED", "DELETED") and not line.get("initial")
    ]
