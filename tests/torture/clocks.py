#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sets the wall clock of all processes by an hour, forwards and back, again and again, also to
another era, while the cluster changes.

  * A follower with a cursor sees each event once and in order, and is never lapsed.
  * Changes reach readers at once after each step; no feed stalls; trimming goes on; no named cursor
    is removed.
  * Both daemons are the original processes. `kinf verify --deep` finds no fault.

usage: tests/torture/clocks.py [--count N] [--seed N]    N steps ($KINF_BUILD: default build/release)
"""

import os
import random
import struct
import sys

os.environ.setdefault("KINF_BUILD", "build/release")
from torture import FEED, INDEXES, Tally, arguments, eventually, program, whole, with_workspace  # noqa: E402

HOUR = 3600 * 10**9
YEAR = 365 * 24 * HOUR
STEPS = [HOUR, -HOUR, 24 * HOUR, -24 * HOUR, -YEAR, 0]
# A machine without a battery for its clock starts in 1970; another one has been set wrongly.
ERAS = [-55 * YEAR, 70 * YEAR]


class Clocks:
    def __init__(self, workspace, options):
        self.options, self.tally, self.chance = options, Tally(), random.Random(options.seed)
        self.clock = workspace.directory / "clock"
        self.clock.write_bytes(bytes(4096))
        self.env = {"LD_PRELOAD": program("torture/faults.so"), "KINF_TORTURE_CLOCK": str(self.clock)}
        self.simulator = workspace.simulator()
        self.simulator.settings(bookmarkMs=500)
        self.simulator.create(FEED, 100, size=600)
        self.store = workspace.store(simulator=self.simulator)
        self.store.configure(whole(FEED, indexes=INDEXES), retention={"time": "2s", "size": "64MiB"}, cursorExpiry="7d")

    def set(self, offset):
        with open(self.clock, "r+b") as file:
            file.write(struct.pack("<q", offset))

    def horizon(self):
        return self.store.kinf("status", "-o", "json", env=self.env, check=True).json["store"]["horizon"]

    def feed(self):
        return self.store.kinf("status", "-o", "json", env=self.env, check=True).json["feeds"][0]

    def step(self, offset, daemons, follower):
        """After a step: 20 changes arrive in time, and older history is trimmed."""
        self.set(offset)
        before = self.horizon()
        changed = self.simulator.touch(FEED, 20)
        self.store.wait_equal(self.simulator, FEED, timeout=5)
        eventually(lambda: any(str(changed) == line["object"]["metadata"]["resourceVersion"] for line in follower.lines[-40:] if "object" in line), 5)
        eventually(lambda: self.horizon() > before, 10, "history is trimmed")
        eventually(lambda: self.feed()["state"] == "live", 5, "the feed is live")
        assert 0 <= self.feed()["lastContactSeconds"] < 300, self.feed()
        assert all(process.running for process in daemons), "a daemon has ended"
        assert (self.store.path / "cursors" / "steady").exists() or not follower.lines, "the cursor was removed"

    def run(self):
        reflector = self.store.reflector(env=self.env)
        processor = self.store.processor(env=self.env)
        self.store.wait_equal(self.simulator, FEED)
        follower = self.store.follower("watch", FEED, "-o", "json", "--cursor", "steady", env=self.env)
        eventually(lambda: any(line["type"] == "SYNC" for line in follower.lines))
        offset = 0
        for number in range(self.options.count or 20):
            offset = 0 if number % 3 == 2 else self.chance.choice(ERAS) if number % 6 == 0 else offset + self.chance.choice(STEPS)
            fault = None
            try:
                self.step(offset, (reflector, processor), follower)
            except AssertionError as problem:
                fault = f"offset {offset / HOUR:+.0f} h: {str(problem)[:500]}\n{reflector.tail(8)}\n{processor.tail(8)}"
            self.tally.tried("step of the clock", fault)
        lines = follower.lines
        events = [line["event"] for line in lines if "event" in line and not line.get("initial") and line["type"] != "SYNC"]
        fault = None
        if any(line["type"] == "LAPPED" for line in lines):
            fault = "the follower was lapsed"
        elif events != sorted(set(events)):
            fault = "events twice, or out of order"
        self.tally.tried("follower over all steps", fault)
        for process in (reflector, processor):  # a start with another clock
            self.set(self.chance.choice(STEPS + ERAS))
            process.stop()
            process.start()
            self.simulator.touch(FEED, 5)
            self.tally.case("start with another clock", lambda: self.store.wait_equal(self.simulator, FEED, timeout=5))
        self.store.verify()
        return self.tally.end()


def main():
    options = arguments(__doc__, 20)
    return with_workspace(lambda workspace: Clocks(workspace, options).run())


if __name__ == "__main__":
    sys.exit(main())
