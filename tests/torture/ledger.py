# SPDX-License-Identifier: Apache-2.0
"""Checks the output of a follower with a cursor, killed again and again.

A killed follower begins after the position in its cursor file. So its output up to there counts,
its later output must come again, exactly the same, and nothing is skipped or comes twice.
"""

import hashlib
import json
import re

from harness.objects import key_of


def watch_line(line):
    """A line of `kinf watch -o json --old`: (event, kind, key, old, new); None for other lines."""
    if line["type"] in ("SYNC", "STATE"):
        return None
    assert line["type"] in ("ADDED", "MODIFIED", "DELETED"), line
    kind = "INITIAL" if line.get("initial") else line["type"]
    old = digest(line["object"] if line.get("finalStateUnknown") else line["old"]) if kind in ("MODIFIED", "DELETED") else None
    return line["event"], kind, key_of(line["object"]), old, None if kind == "DELETED" else digest(line["object"])


def call_line(line):
    """A line of tests/programs/informer.c, likewise. Old and new are resourceVersions."""
    if line["call"] in ("sync", "state"):
        return None
    if line.get("cache") not in (None, "again"):
        assert line["call"] == "delete" or int(line["cache"]) >= int(line["rv"]), f"the cache was older than the change: {line}"
    if line["call"] == "add":
        return line["at"], "INITIAL" if line["initial"] else "ADDED", line["key"], None, line["rv"]
    if line["call"] == "update":
        return line["at"], "MODIFIED", line["key"], line["old"], line["rv"]
    assert line["call"] == "delete", line
    return line["at"], "DELETED", line["key"], None, None


def digest(obj):
    return hashlib.sha1(json.dumps(obj, sort_keys=True).encode()).hexdigest()


def cursor_seq(path):
    """The position in a cursor file of one feed; None without one."""
    return int(re.search(r"(?m)^feed \d+ (\d+)$", path.read_text())[1]) if path.exists() else None


class Ledger:
    """EVENTS of a follower ended in order at the position CURSOR: an initial state and the events after it."""

    def __init__(self, events, cursor):
        self.confirmed = {}  # {key: digest or resourceVersion} as of the cursor
        self.pending = {}  # {event: output} after the cursor
        self.cursor = cursor
        self.events = self.repeated = self.runs = 0
        for number, kind, key, old, new in events:
            apply(self.confirmed, number, (kind, key, old, new))

    def run_ended(self, events, cursor):
        """EVENTS: what a run printed. CURSOR: the position in the file after its end. Returns the
        state after EVENTS."""
        state, last, log = dict(self.confirmed), self.cursor, {}
        for number, *entry in events:
            assert entry[0] != "INITIAL", f"initial {entry[1]}, although there is a cursor"
            assert number > last, f"event {number} after {last}, cursor {self.cursor}"
            skipped = [n for n in self.pending if last < n < number]
            assert not skipped, f"events {skipped[:9]} came once, and did not come again"
            if number in self.pending:
                assert self.pending[number] == entry, f"event {number} came again as {entry}, it was {self.pending[number]}"
                self.repeated += 1
            apply(state, number, entry)
            log[number], last = entry, number
        assert cursor >= self.cursor, f"the cursor went back from {self.cursor} to {cursor}"
        skipped = [n for n in self.pending if n <= cursor and n not in log]
        assert not skipped, f"the cursor passed events {skipped[:9]}, which did not come again"
        self.pending.update(log)
        for number in sorted(n for n in self.pending if n <= cursor):
            apply(self.confirmed, number, self.pending.pop(number))
            self.events += 1
        self.cursor = cursor
        self.runs += 1
        return state


def apply(state, number, entry):
    """Changes STATE by one event, after a check of its fit."""
    kind, key, old, new = entry
    before = state.get(key)
    assert (before is None) == (kind in ("ADDED", "INITIAL")), f"event {number}: {kind} of {key}, known: {before is not None}"
    assert old is None or old == before, f"event {number}: another old state of {key}"
    if kind == "DELETED":
        del state[key]
    else:
        state[key] = new
