#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Readers and daemons as pid 1 of a PID namespace, each in a mount namespace of its own, killed
again and again (kill -9), while the cluster changes. The readers see the store mounted read-only.

  * Each life reads the cluster's objects; a reader is never refused because of an earlier life with
    the same pid.
  * The pins of ended lives count for nothing: no reader but the present ones is listed, the oldest
    pin moves, and the databases do not grow.
  * Daemons as pid 1 go on in the same journal.

usage: tests/torture/namespaces.py [--count N] [--only NAME]    N lives ($KINF_BUILD: default build/debug; needs root)
"""

import os
import signal
import sys

os.environ.setdefault("KINF_BUILD", "build/debug")
from torture import FEED, INDEXES, Tally, arguments, eventually, program, whole, with_workspace  # noqa: E402

CONTAINER = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
READ_ONLY = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" || exit 99; shift; exec "$@"'


class Namespaces:
    def __init__(self, workspace, options):
        self.options, self.tally = options, Tally()
        self.simulator = workspace.simulator()
        self.simulator.create(FEED, 60, size=600)
        self.store = workspace.store(simulator=self.simulator)
        self.store.configure(whole(FEED, indexes=INDEXES), retention={"time": "1s", "size": "64MiB"})

    def contained(self, name, *argv, read_only=True):
        shell = ["sh", "-c", READ_ONLY, "sh", self.store.path] if read_only else []
        return self.store.process(name, [*CONTAINER, *shell, *argv])

    def size(self):
        return sum(self.store.disk_bytes(part) for part in ("journal", "index"))

    def readers(self):
        return [r for r in self.store.kinf("status", "-o", "json", check=True).json["readers"] if not r["name"].startswith("kinf-")]

    def reader_life(self, reader, number):
        """It holds a snapshot when it is killed."""
        reader.out_path.unlink(missing_ok=True)
        reader.start()
        eventually(lambda: reader.lines or not reader.running, 20, "a reader's first line")
        assert reader.running and reader.lines[0]["objects"] >= 50, reader.tail()
        if number % 5 == 0:  # in one namespace it is pid 1; here it has none
            assert [(r["name"], r["pid"]) for r in self.readers()] == [("reader", 0)], self.readers()
        reader.kill()

    def lives_of_readers(self):
        reader = self.contained("reader", program("programs/reader"), FEED)
        self.simulator.churn(FEED, 80, 20)
        sizes = []
        for number in range(self.options.count or 100):
            self.tally.case("reader as pid 1, killed", self.reader_life, reader, number)
            if number % 10 == 9:
                sizes.append(self.size())
        self.simulator.churn(FEED, 0)

        def nothing_is_held():
            assert not self.readers(), self.readers()
            assert not sizes or max(sizes) <= sizes[0] * 1.5 + (4 << 20), sizes
            return True

        self.tally.case("no pin of an ended reader is left", lambda: eventually(nothing_is_held, 20))

    def daemon_life(self, daemon, before):
        daemon.kill()
        rv = self.simulator.touch(FEED, 5)

        def runs_and_is_equal():
            if not daemon.running:  # 69: the one before it has not quite ended, since --kill-child does not wait for it
                assert daemon.popen.returncode in (-signal.SIGKILL, 69), daemon.tail()
                daemon.start()
            self.store.wait_equal(self.simulator, FEED, timeout=0.2)
            return True

        eventually(runs_and_is_equal, 15)
        assert rv and self.store.lineage() == before, "another journal"

    def lives_of_daemons(self):
        daemons = {name: self.contained(f"pid1-{name}", program(name), "--config", self.store.config, "--runtime-dir", self.store.runtime,
                                        read_only=False).start() for name in ("kinf-reflector", "kinf-processor")}  # fmt: skip
        self.store.wait_equal(self.simulator, FEED)
        before = self.store.lineage()
        for _ in range((self.options.count or 100) // 5):
            for name, daemon in daemons.items():
                self.tally.case(f"{name} as pid 1, killed", self.daemon_life, daemon, before)
        self.tally.case("verify", self.store.verify)
        for daemon in daemons.values():
            daemon.kill(signal.SIGKILL)

    def run(self):
        if self.options.only in "readers":
            daemons = self.store.daemons()
            self.store.wait_equal(self.simulator, FEED)
            self.lives_of_readers()
            for daemon in daemons:
                daemon.stop()
        if self.options.only in "daemons":
            self.lives_of_daemons()
        return self.tally.end()


def main():
    options = arguments(__doc__, 50)
    if os.geteuid() != 0:
        print("namespaces: skipped: it needs root to make them")
        return 0
    return with_workspace(lambda workspace: Namespaces(workspace, options).run())


if __name__ == "__main__":
    sys.exit(main())
