#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A crowd on one store: 64 reading processes and 16 followers at different speeds, some with
cursors, some with tracked keys. A simulated cluster changes at the given rate, forgets its history
and drops connections. Daemons, readers and followers are killed or stopped for a while at random.

Each process of the crowd (tests/programs/crowd.c) checks that its objects and events fit together,
and ends if they do not. In the end:

  * every follower's state is the cluster's, object by object, and so is the store's;
  * `kinf verify --deep` finds no fault, and no slot of a killed reader is left;
  * the databases are bounded: they hold the live objects and the retained history, and their files
    are no larger than this and the pages held by snapshots meanwhile (a file never shrinks).

usage: tests/stress/crowd.py [--seconds 300] [--seed N] [--rate 400]   ($KINF_BUILD: default build/release)
"""

import argparse
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

os.environ.setdefault("KINF_BUILD", "build/release")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scenario"))
from conftest import Workspace  # noqa: E402
from harness import eventually  # noqa: E402
from harness.informer import truth  # noqa: E402
from harness.process import program  # noqa: E402
from harness.store import whole  # noqa: E402

FEED = "pods"
OBJECTS = 2000
READERS = 64
# Microseconds for each callback; those with a cursor hold history, so they are never the slowest.
PACES = [0, 0, 0, 0, 20, 50, 100, 200, 500, 1000, 1500, 2000, 3000, 4000, 6000, 8000]
MIB = 1 << 20
RETAINED = 64 * MIB
FILE_MAX = 4 * RETAINED  # less than five minutes of changes


class Member:
    """A process of the crowd and, for a follower, the file of its state."""

    def __init__(self, process, state=None):
        self.process, self.state = process, state
        self.stopped_until = 0.0

    def objects(self):
        lines = self.state.read_text().splitlines() if self.state.exists() else []
        assert lines and lines[-1] == "end", "no state yet"
        return dict(line.split() for line in lines[1:-1])

    def go_on(self):
        self.process.send(signal.SIGCONT)
        self.stopped_until = 0.0


class Crowd:
    def __init__(self, workspace, chance, rate):
        self.chance, self.rate = chance, rate
        self.simulator = workspace.simulator()
        self.simulator.settings(bookmarkMs=500)
        self.simulator.create(FEED, OBJECTS, size=2500)
        self.store = workspace.store(simulator=self.simulator)
        self.store.configure(
            whole(FEED, indexes={"node": "spec.nodeName"}),
            retention={"time": "5s", "size": f"{RETAINED // MIB}MiB"}, mapSize="1GiB",
        )
        self.daemons = list(self.store.daemons())
        self.store.wait_synced(FEED, 60)
        self.members = []
        self.kills = {}
        self.sizes = []

    def join(self):
        for i in range(READERS):
            self.members.append(Member(self.start(f"reader-{i}", "read", FEED, str(i))))
        for i, pace in enumerate(PACES):
            state = self.store.directory / f"state-{i}"
            options = ["--cursor", f"crowd-{i}"] if i % 2 == 0 and pace <= 1000 else []
            options += ["--track-keys"] if i % 3 == 1 else []
            process = self.start(f"follower-{i}", "follow", FEED, state, str(pace), *options)
            self.members.append(Member(process, state))

    def start(self, name, *args):
        return self.store.process(name, [program("programs/crowd"), *args]).start()

    @property
    def followers(self):
        return [member for member in self.members if member.state]

    # ---- what happens --------------------------------------------------------------------------

    def count(self, what):
        self.kills[what] = self.kills.get(what, 0) + 1

    def kill(self, process, what):
        status = process.kill()
        assert status == -signal.SIGKILL, f"ended by itself with {status}:\n{process.tail()}"
        process.start()
        self.count(what)

    def kill_daemons(self):
        for daemon in self.chance.choice([self.daemons[:1], self.daemons[1:], self.daemons]):
            self.kill(daemon, daemon.name)

    def kill_member(self):
        member = self.chance.choice(self.members)
        self.kill(member.process, "follower" if member.state else "reader")
        member.stopped_until = 0.0

    def stop_member(self):
        """Stops a member with its snapshots and locks."""
        member = self.chance.choice(self.members)
        member.process.send(signal.SIGSTOP)
        member.stopped_until = time.monotonic() + self.chance.uniform(0.5, 5)
        self.count("stop")

    def disturb(self):
        """The server forgets its history and ends the watches: the reflector lists again."""
        self.simulator.compact()
        self.simulator.drop()
        self.count("relist")

    def check(self):
        now = time.monotonic()
        for member in self.members:
            if member.stopped_until and member.stopped_until < now:
                member.go_on()
            assert member.process.running, member.process.tail()
        for daemon in self.daemons:
            assert daemon.running, daemon.tail()
        self.sizes.append({part: self.store.disk_bytes(part) for part in ("journal", "index")})

    def run(self, seconds):
        begun = time.monotonic()
        self.simulator.churn(FEED, self.rate, 20)
        happenings = [self.kill_daemons, *[self.kill_member] * 4, *[self.stop_member] * 3]
        while time.monotonic() < begun + seconds:
            time.sleep(self.chance.uniform(0.2, 0.8))
            (self.disturb if self.chance.random() < 0.02 else self.chance.choice(happenings))()
            self.check()
        self.simulator.churn(FEED, 0)
        for member in self.members:
            if member.stopped_until:
                member.go_on()

    # ---- afterwards ----------------------------------------------------------------------------

    def followers_equal(self):
        wanted = truth(self.simulator)
        for member in self.followers:
            assert member.process.running, member.process.tail()
            found = member.objects()
            different = [k for k in wanted.keys() | found.keys() if wanted.get(k) != found.get(k)]
            assert not different, f"{member.process.name}: {len(different)}: {sorted(different)[:5]}"
        return True

    def private_kib(self, process):
        """The private memory of a process."""
        lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()[1:]
        fields = dict(line.split(":", 1) for line in lines)
        return sum(int(fields[name].split()[0]) for name in ("Private_Clean", "Private_Dirty"))

    def slots(self):
        status = self.store.kinf("status", "-o", "json", check=True).json["store"]
        return max(status["journal"]["readers"], status["index"]["readers"])

    def sizes_bounded(self):
        status = self.store.kinf("status", "-o", "json", check=True).json["store"]
        for part in ("journal", "index"):
            used, largest = status[part]["usedBytes"], max(size[part] for size in self.sizes)
            print(f"{part}: {used / MIB:.1f} MiB in use at the end, file at most {largest / MIB:.1f} MiB")
            assert used <= RETAINED, f"the {part} is not trimmed: {used} bytes in use"
            assert largest <= FILE_MAX, f"the {part} grows: {largest} bytes"
        return True

    def settle(self):
        self.store.wait_equal(self.simulator, FEED, 60)
        eventually(self.followers_equal, 120, "each follower's state as in the cluster")
        memory = [self.private_kib(member.process) for member in self.followers]
        print(f"private memory of the followers: {min(memory)} to {max(memory)} KiB, states included")
        for member in self.members:
            status = member.process.stop()
            assert status == 0, member.process.tail()
        eventually(lambda: self.slots() <= 8, 20, "slots given back")
        deep = self.store.kinf("verify", "--deep", timeout=300)
        assert deep.status == 0, deep
        eventually(self.sizes_bounded, 30, "history that no follower needs is trimmed")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--rate", type=int, default=400, help="changes a second")
    args = parser.parse_args()
    print(f"seed {args.seed}", flush=True)
    workspace = Workspace()
    try:
        crowd = Crowd(workspace, random.Random(args.seed), args.rate)
        crowd.join()
        crowd.run(args.seconds)
        crowd.settle()
        print(f"{READERS} readers, {len(PACES)} followers, {crowd.simulator.rv} changes; {crowd.kills}")
        workspace.close()
    except BaseException:
        for process in workspace.processes:
            process.kill()
        print(workspace.report())
        raise
    shutil.rmtree(workspace.directory)


if __name__ == "__main__":
    main()
