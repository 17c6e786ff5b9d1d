# SPDX-License-Identifier: Apache-2.0
"""Compares the calls of two informers' handlers (README.md, What is compared)."""

from collections import defaultdict


class Difference(AssertionError):
    """The two sides differ, or the calls of one side contradict each other."""


def need(condition, *what):
    if not condition:
        raise Difference(" ".join(str(part) for part in what))


def is_resync(call):
    """True for an update without a change: of a resync, or of a relist by client-go."""
    return call["call"] == "update" and call["old"] == call["rv"]


def split(call):
    """Splits an update with another uid into a delete and an add."""
    if call["call"] != "update" or call["oldUid"] == call["uid"]:
        return [call]
    gone = {"uid": call["oldUid"], "rv": call["old"], "value": call.get("oldValue"), "unknown": True}
    gone = {"handler": call["handler"], "call": "delete", "key": call["key"], **gone}
    return [gone, {**call, "call": "add"}]


def shape(call):
    """The parts of a call common to both sides."""
    kind = call["call"]
    if kind == "update":
        return "update", call["old"], call["rv"], call.get("oldValue"), call.get("value"), call["uid"]
    if kind == "delete":
        return "delete", call["rv"], call["uid"], call.get("value"), bool(call.get("unknown"))
    return "add", call["rv"], call.get("value"), call["uid"], bool(call.get("initial"))


def by_key(handler, calls):
    """{key: shapes in order}, without resyncs."""
    found = defaultdict(list)
    for call in calls:
        if "key" in call and not is_resync(call):
            found[call["key"]] += [shape(part) for part in split(call)]
    if handler.selector != "-" and handler.over_a_relist:
        # The new uid of an object no longer shows if it left the filter.
        found = {key: [each[:4] if each[0] == "delete" else each for each in shapes] for key, shapes in found.items()}
    if handler.by_serve:
        # kinf-serve sends a relist's deletes to a watch as deletions, under the watch's own last RV.
        found = {key: [("delete", *each[2:4]) if each[0] == "delete" else each for each in shapes]
                 for key, shapes in found.items()}
    return defaultdict(list, found)


def walk(name, calls):
    """Asserts that each call fits the previous one for the same object. Returns {key:
    resourceVersion} after the last."""
    state = {}
    for call in calls:
        if "key" not in call:
            continue
        key, kind = call["key"], call["call"]
        if kind == "add":
            need(key not in state, name, "an add of what is there:", call)
        elif kind == "update":
            need(state.get(key) == call["old"], name, "an update of another state than", state.get(key), call)
        else:
            need(key in state, name, "a delete of what is not there:", call)
            del state[key]
            continue
        state[key] = call["rv"]
    return state


def check_sync(name, calls):
    """Asserts one sync, after all initial calls, and no initial call as a change."""
    kinds = [call["call"] for call in calls]
    need(kinds.count("sync") == 1, name, "synced", kinds.count("sync"), "times")
    need("lapped" not in kinds, name, "lapped")
    late = [call for call in calls[kinds.index("sync") :] if call.get("initial")]
    need(not late, name, "initial after the sync:", late)
    need(not any(call.get("initial") and call["call"] != "add" for call in calls), name, "an initial change")


def begins_at(shorter, longer):
    """True if SHORTER is the end of LONGER."""
    for start in range(len(longer) + 1):
        tail = longer[start:]
        if tail == shorter and (start == 0 or longer[start - 1][0] == "delete"):
            return True
        if shorter and tail and shorter[0][0] == "add" and shorter[0][4] and tail[1:] == shorter[1:]:
            version = tail[0][2] if tail[0][0] == "update" else tail[0][1]
            if tail[0][0] != "delete" and version == shorter[0][1]:
                return True
    return False


def same_key(ours, theirs, handler):
    """Compares OURS and THEIRS, the calls for one object."""
    if not handler.ended_at_rest:
        if not handler.began_at_rest:
            return True  # they overlap neither at the begin nor at the end; walk() has checked each
        common = min(len(ours), len(theirs))
        return ours[:common] == theirs[:common]
    if handler.began_at_rest:
        return ours == theirs
    return begins_at(ours, theirs) or begins_at(theirs, ours)


def compare(handler, ours, theirs):
    """Compares all calls of one handler, libkinf's and client-go's."""
    for side, calls in (("libkinf", ours), ("client-go", theirs)):
        walk(f"{handler.name} {side}:", [part for call in calls for part in (split(call) if "key" in call else [call])])
        if handler.ended_at_rest or any(call["call"] == "sync" for call in calls):
            check_sync(f"{handler.name} {side}:", calls)
    mine, other = by_key(handler, ours), by_key(handler, theirs)
    for key in sorted(mine.keys() | other.keys()):
        need(
            same_key(mine[key], other[key], handler),
            f"{handler.name} ({handler}) {key}:\n  libkinf   {mine[key]}\n  client-go {other[key]}",
        )
