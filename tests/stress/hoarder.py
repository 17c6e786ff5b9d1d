#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A program takes a new snapshot again and again and gives none back, while objects change as fast
as they can. The daemons replace the growing databases by copies, and the program goes on to each
copy and holds it too.

The daemons bound its disk space: REPLACED_FILES_KEPT replaced files of each database, and those of
the last minute (store/env/replaced.h). An expired snapshot reports it at a read, the newest one
works, and a reader with one snapshot from the beginning, as another user, still has it.

usage: tests/stress/hoarder.py [--minutes 5] [--rate 1500]   ($KINF_BUILD: default build/release)
"""

import argparse
import os
import shutil
import sys
import time
from pathlib import Path

os.environ.setdefault("KINF_BUILD", "build/release")
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "scenario"))
from conftest import Workspace  # noqa: E402
from harness import eventually  # noqa: E402
from harness.process import BUILD  # noqa: E402
from harness.store import whole  # noqa: E402

OBJECTS, SIZE, MIB, KEPT = 2000, 3000, 1 << 20, 4
PAUSE = 20  # seconds between two snapshots

HOARDER = """
import ctypes, os, sys, time
if len(sys.argv) > 3:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
ctypes.CDLL(None).prctl(1, 9)  # it ends with the test
import kinf
store, pause = kinf.Store(sys.argv[1]), float(sys.argv[2])
held = []
def read(snapshot):
    try:
        names = [pod["metadata"]["name"] for pod in snapshot.feed("pods")]
        return "whole" if len(names) == len(set(names)) > 1000 else f"wrong: {len(names)}"
    except kinf.SnapshotExpired:
        return "expired"
while True:
    if not held or pause:
        held.append(store.snapshot())
    print(" ".join(read(s) for s in held), flush=True)
    time.sleep(pause or 20)
"""


def held_bytes(path):
    """The disk space of the files below PATH, and of the unlinked open ones; without holes."""
    seen = {}
    links = [Path(entry) for pid in os.listdir("/proc") if pid.isdigit() for entry in glob(f"/proc/{pid}/fd")]
    for file in [*(p for p in Path(path).rglob("*") if p.is_file()), *links]:
        try:
            if file.parent.name == "fd" and not os.readlink(file).startswith(str(path)):
                continue
            stat = file.stat()
            seen[stat.st_dev, stat.st_ino] = stat.st_blocks * 512
        except OSError:
            continue
    return sum(seen.values())


def glob(directory):
    try:
        return [f"{directory}/{name}" for name in os.listdir(directory)]
    except OSError:
        return []


class Hoard:
    def __init__(self, workspace, rate):
        self.rate = rate
        self.simulator = workspace.simulator()
        self.simulator.create("pods", OBJECTS, size=SIZE)
        self.store = workspace.store(simulator=self.simulator)
        for directory in (self.store.directory, *self.store.directory.parents[:-1]):
            os.chmod(directory, directory.stat().st_mode | 0o011)
        self.store.configure(whole("pods"), retention={"time": "5s"}, group="nogroup")
        self.daemons = self.store.daemons()
        self.store.wait_synced("pods", 60)

    def hoarder(self, name, *args):
        argv = ["/usr/bin/python3", "-c", HOARDER, self.store.path, *args]
        env = {"PYTHONPATH": str(ROOT / "reader" / "python"), "KINF_LIBRARY": str(BUILD / "libkinf.so.0")}
        return self.store.process(name, argv, env=env).start()

    def last(self, process):
        lines = Path(process.out_path).read_text().splitlines()
        return lines[-1].split() if lines else []

    def lost(self):
        return sum(Path(d.err_path).read_text().count("snapshot_given_up") for d in self.daemons)

    def run(self, minutes):
        begun, largest, most = time.monotonic(), 0, 0
        faithful = self.hoarder("faithful", "0", "as another user")
        eventually(lambda: self.last(faithful) == ["whole"], 30)
        greedy = self.hoarder("greedy", str(PAUSE))
        self.simulator.churn("pods", self.rate, 0)
        while time.monotonic() < begun + minutes * 60:
            time.sleep(5)
            held = held_bytes(self.store.path)
            files = [f.stat().st_size for f in Path(self.store.path).rglob("data.mdb")]
            largest, most = max(largest, *files), max(most, held)
            told = self.last(greedy)
            print(f"{time.monotonic() - begun:5.0f} s: {held / MIB:6.0f} MiB held, {sum(files) / MIB:6.0f} MiB in files; "
                  f"{self.lost()} files given up; {told.count('whole')} snapshots whole, {told.count('expired')} expired",
                  flush=True)
            assert not [word for word in told + self.last(faithful) if word not in ("whole", "expired")], told
        self.simulator.churn("pods", 0)
        print(f"at most {most / MIB:.0f} MiB, {most / largest:.1f} times the largest file", flush=True)
        # The files of the last minute are kept as well.
        assert self.lost() > 0 and most < 2 * (KEPT + 2 + 60 / PAUSE) * largest
        eventually(lambda: self.last(greedy)[-1] == "whole" and "expired" in self.last(greedy), 2 * PAUSE)
        assert self.store.kinf("get", "pods", "-o", "count", check=True).stdout.strip() == str(OBJECTS)
        greedy.kill()
        faithful.kill()
        eventually(lambda: held_bytes(self.store.path) < 4 * OBJECTS * (SIZE + 4096) + 64 * MIB, 150, "the space is given back")
        deep = self.store.kinf("verify", "--deep", timeout=300)
        assert deep.status == 0, deep


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--rate", type=int, default=1500, help="changes a second")
    args = parser.parse_args()
    workspace = Workspace()
    try:
        Hoard(workspace, args.rate).run(args.minutes)
        workspace.close()
    except BaseException:
        for process in workspace.processes:
            process.kill()
        print(workspace.report())
        raise
    shutil.rmtree(workspace.directory)


if __name__ == "__main__":
    main()
