#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Stops each daemon (SIGSTOP) at each failpoint, so with each of its locks, and the readers
likewise.

  * The other daemon and the readers go on: lists and gets answer, also while the writer is stopped
    inside a transaction.
  * `kinf run` names the hung daemon and starts it again; the store then equals the cluster, in the
    same journal.
  * A stopped reader or follower holds up nobody: changes reach other readers.

usage: tests/torture/freezing.py [--count N] [--seed N] [--only NAME]    N points, 0: all   ($KINF_BUILD: with failpoints)
"""

import os
import random
import subprocess
import sys

from torture import FEED, INDEXES, Tally, arguments, eventually, program, whole, with_workspace

REFLECTOR = ("journal.", "list.")
READERS = ("journal.open", "index.open", "env.pinned", "read.object", "cursor.write", "watch.feeds")
# At a start there is nothing to build or to list; these points are passed only with more ado (kills.py).
RARE = ("rebuild.", "list.", "index.list_apply", "index.backfill", "journal.trim")


def failpoints():
    env = {**os.environ, "KINF_FAIL": "list"}
    text = subprocess.run([program("kinf-processor")], env=env, capture_output=True, text=True).stdout
    return [line.split()[0] for line in text.splitlines() if line.strip()]


class Freezing:
    def __init__(self, workspace, options):
        self.tally, self.options = Tally(options.only), options
        self.simulator = workspace.simulator()
        self.simulator.create(FEED, 60, size=600)
        self.store = workspace.store(simulator=self.simulator)
        self.store.configure(whole(FEED, indexes=INDEXES), hangLimit="5s")

    def pids(self):
        return {p["name"]: p["pid"] for p in self.store.kinf("status", "-o", "json", check=True).json["processes"]}

    def daemon(self, point, name):
        """kinf run with a daemon NAME that stops itself at POINT, once."""
        before = self.store.lineage()
        supervisor = self.store.run()
        self.store.wait_equal(self.simulator, FEED)
        # The stopping daemon runs without a supervisor at first. The supervisor takes it over by
        # starting it again: so the supervisor is given the failpoint in its environment, and takes
        # it away from later starts by its own end.
        supervisor.stop()
        stopping = self.store.process("kinf-run", [program("kinf"), "run", "--config", self.store.config, "--runtime-dir", self.store.runtime],
                                      {"KINF_FAIL": f"{point}:{'2' if point.startswith('ring') else '1'}:stop"}).start()  # fmt: skip
        try:
            self.simulator.touch(FEED, 5)
            stopping.wait_log(r"child_hung daemon=\"[^\"]*\" pid=\d+ .*stopped by a signal", 30)
            assert self.store.kinf("get", FEED, "-o", "count").stdout.strip() == "60"
        finally:
            stopping.kill(15)
        supervisor.start()
        self.simulator.touch(FEED, 5)
        self.store.wait_equal(self.simulator, FEED, timeout=10)
        assert self.store.lineage() == before, "another journal"
        self.store.verify()
        supervisor.stop()

    def reader(self, point, supervisor):
        words = ["watch", FEED, "-o", "json", "--cursor", "frozen"] if point[:5] in ("curso", "watch") else ["get", FEED, "-o", "json"]
        reader = self.store.follower(*words, name="frozen", env={"KINF_FAIL": f"{point}:1:stop"})
        try:
            eventually(lambda: reader.stopped, 10, f"a reader stopped at {point}")
            self.simulator.touch(FEED, 5)
            self.store.wait_equal(self.simulator, FEED, timeout=10)
            assert "child_hung" not in supervisor.log
        finally:
            reader.kill(9)

    def run(self):
        daemons = self.store.daemons()
        self.store.wait_equal(self.simulator, FEED)
        for process in daemons:
            process.stop()
        points = [point for point in failpoints() if not point.startswith((*RARE, "env.pinned", "pins.write", "follow.", "read.", "cursor.", "watch."))]
        if self.options.count:
            points = random.Random(self.options.seed).sample(points, min(len(points), self.options.count))
        for point in points:
            self.tally.case(f"daemon at {point}", self.daemon, point, point)
        supervisor = self.store.run()
        self.store.wait_equal(self.simulator, FEED)
        for point in READERS:
            self.tally.case(f"reader at {point}", self.reader, point, supervisor)
        supervisor.stop()
        return self.tally.end()


def main():
    options = arguments(__doc__, 0)
    return with_workspace(lambda workspace: Freezing(workspace, options).run())


if __name__ == "__main__":
    sys.exit(main())
