#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Cuts the power at any instant. With durability `disk` all writes of the reflector to the journal
are recorded, with its syncs; the journal is then built again as a disk may have it after a cut
between any two operations: synced data is there, every page written since may be there or not, a
directory has its synced entries and any part of the later ones. The index is missing.

  * The journal holds exactly the last commit with a completed sync; it is trusted, and `kinf
    verify` finds no fault.
  * For some of the cuts the daemons start on it: equal to the cluster, in the same journal.

usage: tests/torture/power_cuts.py [--count N] [--seed N]    N cuts, N/10 with daemons ($KINF_BUILD: with failpoints)
"""

import os
import random
import re
import shutil
import struct
import sys

os.environ.setdefault("KINF_BUILD", "build/debug")
from torture import FEED, INDEXES, Tally, arguments, program, whole, with_workspace  # noqa: E402

PAGE = 4096
BOOTS = "0" * 31 + "1", "0" * 31 + "2"
HEAD = struct.Struct("<c7xQQQ")


class Disk:
    """The recorded operations, and their files."""

    def __init__(self, log):
        data, self.operations, at = log.read_bytes(), [], 0
        while at < len(data):
            what, inode, place, size = HEAD.unpack_from(data, at)
            at += HEAD.size
            self.operations.append((what.decode(), inode, place, data[at : at + size]))
            at += size

    def commits(self):
        """The operations completing a commit: a durable write, of LMDB's meta page."""
        return [number for number, (what, *_) in enumerate(self.operations) if what == "d"]

    def build(self, end, tree, target, chance):
        """Builds the tree as after the operations before END. CHANCE None: all of them; else it
        decides about the unsynced ones."""
        synced, files, names, directories = {}, {}, {}, []
        for number, (what, inode, _, _) in enumerate(self.operations[:end]):
            if what == "s":
                synced[inode] = number
        # Names are changed in their order: a file system's own journal keeps some part of them from the beginning.
        metadata = [n for n, operation in enumerate(self.operations[:end]) if operation[0] in "ormu"]
        last = max((n for n in metadata if any(s > n for s in synced.values())), default=-1)
        kept = end if chance is None else chance.choice([n for n in metadata if n >= last] or [end])
        for number, (what, inode, at, data) in enumerate(self.operations[:end]):
            durable = chance is None or number < synced.get(inode, -1)
            if what in "wd":
                content = files.setdefault(inode, bytearray())
                for first in range(at, at + len(data), PAGE - at % PAGE if at % PAGE else PAGE):
                    until = min(at + len(data), first - first % PAGE + PAGE)
                    if what == "d" or durable or chance.random() < 0.5:
                        if len(content) < until:
                            content.extend(bytes(until - len(content)))
                        content[first:until] = data[first - at : until - at]
            elif what == "t" and (durable or chance.random() < 0.5):
                content = files.setdefault(inode, bytearray())
                del content[at:]
                content.extend(bytes(at - len(content)))
            elif number <= kept and what == "o":
                names[data.decode()] = inode
                files.setdefault(inode, bytearray())
            elif number <= kept and what == "m":
                directories.append(data.decode())
            elif number <= kept and what == "u":
                names.pop(data.decode(), None)
            elif number <= kept and what == "r":
                old, new = data.decode().split("\n")
                if old in names:
                    names[new] = names.pop(old)
        for name in directories:
            (target / os.path.relpath(name, tree)).mkdir(parents=True, exist_ok=True)
        for name, inode in names.items():
            path = target / os.path.relpath(name, tree)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(files[inode])


class PowerCuts:
    def __init__(self, workspace, options):
        self.options, self.tally, self.chance = options, Tally(), random.Random(options.seed)
        self.simulator = workspace.simulator()
        self.simulator.settings(bookmarkMs=300)
        self.simulator.create(FEED, 60, size=3000)
        self.store = workspace.store(simulator=self.simulator)
        self.store.configure(whole(FEED, indexes=INDEXES), durability="disk", mapSize="32MiB", retention={"time": "1s", "size": "64MiB"})
        self.directory = workspace.directory

    def read(self, path, *words):
        return self.store.kinf(*words, "--store", str(path), env={"KINF_BOOT_ID": BOOTS[1]})

    def state(self, path):
        """Returns the journal's log, heads and feeds as `kinf dump` prints them."""
        found = self.read(path, "dump", "journal", "-o", "json")
        return found.stdout if found.status == 0 else f"exit {found.status}: {found.stderr}"

    def image(self, disk, end, chance, name):
        """A store with the journal as after END operations, and nothing else of it but its id."""
        target = self.directory / name
        shutil.rmtree(target, ignore_errors=True)
        for part in ("journal", "index", "cursors"):
            (target / part).mkdir(parents=True, mode=0o700)
        shutil.copy(self.store.path / "id", target)
        disk.build(end, str(self.store.path), target, chance)
        for state in (target / "journal").glob("gen-*/STATE"):  # the inode is another one, as in no power cut
            data = state.parent / "data.mdb"
            if data.exists():
                state.write_text(re.sub(r"(?m)^inode \d+$", f"inode {data.stat().st_ino}", state.read_text()))
        os.chmod(target, 0o700)
        return target

    def run(self):
        log = self.directory / "operations"
        env = {"LD_PRELOAD": program("torture/recorder.so"), "KINF_TORTURE_LOG": str(log), "KINF_BOOT_ID": BOOTS[0],
               "KINF_TORTURE_TREE": str(self.store.path / "journal")}  # fmt: skip
        reflector = self.store.reflector(env=env)
        processor = self.store.processor(env={"KINF_BOOT_ID": BOOTS[0]})
        boot = {"KINF_BOOT_ID": BOOTS[0]}
        for _ in range(12):
            changed = self.simulator.touch(FEED, 20)
            self.simulator.delete_many(FEED, 2)
            self.simulator.create(FEED, 2, from_=self.chance.randrange(1000, 10**6), size=3000)
            self.store.kinf("wait", FEED, "--for", f"rv={changed}", "--timeout", "60s", check=True, env=boot)
        reflector.kill()
        processor.kill()
        disk = Disk(log)
        commits = disk.commits()
        begin = 4  # there is no feed before
        for number in range(self.options.count or len(disk.operations)):
            end = self.chance.randrange(commits[begin], len(disk.operations))
            last = max(commit for commit in commits if commit < end)
            sound = self.state(self.image(disk, last + 1, None, "sound"))
            assert sound and not sound.startswith("exit"), f"the state of commit {last} can't be read: {sound[:500]}"
            path = self.image(disk, end, self.chance, "cut")
            found, fault = self.state(path), None
            if found != sound:
                fault = f"operation {end} of {len(disk.operations)}: not the state of the last commit: {found[:300]} / {sound[:100]}"
            self.tally.tried("the last commit is there", fault)
            if not fault and number % 10 == 0:
                self.tally.tried("the daemons go on", self.start(path))
        return self.tally.end()

    def uuids(self):
        """The uuid of each journal in the store."""
        return [re.search(r"(?m)^uuid (.*)$", state.read_text())[1] for state in (self.store.path / "journal").glob("gen-*/STATE")]

    def start(self, path):
        """Starts the daemons on the image, in the store's place."""
        shutil.rmtree(self.store.path)
        shutil.move(path, self.store.path)
        for place in self.store.runtime.iterdir():  # in memory, so a power cut takes it
            shutil.rmtree(place)
        lineage = self.uuids()
        daemons = [self.store.reflector(env={"KINF_BOOT_ID": BOOTS[1]}), self.store.processor(env={"KINF_BOOT_ID": BOOTS[1]})]
        try:
            changed = self.simulator.touch(FEED, 3)
            env = {"KINF_BOOT_ID": BOOTS[1]}
            waited = self.store.kinf("wait", FEED, "--for", f"rv={changed}", "--timeout", "40s", env=env)
            verified = self.store.kinf("verify", "--deep", env=env)
            if waited.status or verified.status:
                return f"{waited} {verified}\n{daemons[0].tail(10)}"
            return None if self.uuids() == lineage else "another journal"
        finally:
            for process in daemons:
                process.kill()


def main():
    options = arguments(__doc__, 100)
    return with_workspace(lambda workspace: PowerCuts(workspace, options).run())


if __name__ == "__main__":
    sys.exit(main())
