#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
Changes one byte of a small store at a time: flipped in each bit, set to 0, set to ff. In each file of the store and of its
runtime directory.

  * Readers (tests/torture/bytes.c: lists, gets, index, follower, verify, and the questions of questions.c) end by themselves, and give no wrong object.
  * The daemons, started on the damaged store, run, or end with a sentence and are started again by `kinf run`; the store
    then equals the cluster. A changed body in the journal is not found by the daemons: it is counted apart, when every
    reader is told, and the store is equal after the object has changed.

usage: tests/torture/bytes.py [--count N] [--seed N] [--only FILE] [--objects N]
       COUNT bytes of each file, a tenth with daemons; --count 0: every byte, and 30 of each file with daemons
       ($KINF_BUILD: default build/release)
"""

import os
import random
import re
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path

os.environ.setdefault("KINF_BUILD", "build/release")
from torture import FEED, INDEXES as BY_NODE, Tally, arguments, program, run_command, whole, with_workspace  # noqa: E402

INDEXES = {**BY_NODE, "account": "spec.serviceAccountName"}  # questions.c asks for both
OBJECTS = 300  # unless --objects says another number
FILES = [
    "id", "runtime", "discovery.api", "discovery.apis", "journal/CURRENT", "journal/gen-1/STATE", "journal/gen-1/data.mdb", "journal/gen-1/pins",
    "index/CURRENT", "index/gen-1/STATE", "index/gen-1/data.mdb", "index/gen-1/pins", "index/gen-1/hints", "cursors/reader",
]  # fmt: skip
RUNTIME = ["upstream", "delta.ring", "index.taken", "stats.reflector", "stats.processor"]


PAGE = 4096
KINDS = {0x08: "meta", 0x01: "branch", 0x02: "leaf", 0x04: "large"}  # LMDB's flags of a page, 10 bytes into it


def data_pages(file):
    """The pages of the file with any byte but zero: it is mostly holes."""
    size, at = os.fstat(file.fileno()).st_size, 0
    while at < size:
        try:
            at = os.lseek(file.fileno(), at, os.SEEK_DATA)
        except OSError:
            return
        page = os.pread(file.fileno(), PAGE, at)
        if any(page):
            yield at, page
        at += PAGE


def choose(path, chance):
    """(kind of page, offset): a used byte. In a file of LMDB as many of each kind of page, within its rows."""
    with open(path, "rb") as file:
        pages = list(data_pages(file))
    if path.name != "data.mdb":
        at, page = chance.choice(pages)
        return "", at + chance.choice([i for i, byte in enumerate(page) if byte] if chance.randrange(2) else range(len(page)))
    kinds = {}
    for at, page in pages:
        number, flags = struct.unpack_from("<Q2xH", page)
        if number * PAGE == at and flags & 0x0F in KINDS:
            kinds.setdefault(KINDS[flags & 0x0F], []).append((at, page))
    kind = chance.choice(sorted(kinds))
    at, page = chance.choice(kinds[kind])
    lower, upper = struct.unpack_from("<HH", page, 12)
    rows = {"meta": range(152), "large": range(PAGE)}.get(kind) or [*range(lower), *range(upper, PAGE)]
    return " " + kind, at + chance.choice(rows)


class Bytes:
    def __init__(self, workspace, options):
        self.options, self.tally, self.chance = options, Tally(), random.Random(options.seed)
        self.directory = workspace.directory
        self.simulator = workspace.simulator()
        self.objects = int(options.objects or OBJECTS)
        self.simulator.create(FEED, self.objects, size=600)
        self.store = workspace.store(simulator=self.simulator)
        self.store.configure(whole(FEED, indexes=INDEXES), hangLimit="10s")
        daemons = self.store.daemons()
        self.store.wait_equal(self.simulator, FEED)
        self.simulator.touch(FEED, max(1, self.objects // 5))
        self.simulator.delete_many(FEED, max(1, self.objects // 30))
        self.store.wait_equal(self.simulator, FEED)
        uuid = re.search(r"(?m)^uuid (\w+)$", (self.store.path / "journal/gen-1/STATE").read_text())[1]
        (self.store.path / "cursors/reader").write_text(f"kinf-cursor 1\njournal {uuid}\nwritten {time.time_ns()}\nfeed 1 {self.objects}\nend\n")
        (runtime,) = self.store.runtime.iterdir()
        kept = self.directory / "runtime"
        shutil.copytree(runtime, kept, ignore=lambda top, names: [name for name in names if Path(top, name).is_socket()])
        for process in reversed(daemons):
            process.stop()
        if not runtime.exists():  # it is removed at the end: as the last daemon was killed
            shutil.move(kept, runtime)
        self.files = [self.store.path / name for name in FILES] + [runtime / name for name in RUNTIME]
        self.files = [path for path in self.files if path.is_file() and options.only in str(path)]

    def readers(self, files):
        done = subprocess.run(
            [program("torture/bytes"), self.store.path, FEED, str(self.options.count), str(self.options.seed),
             *map(str, files)],
            env={**os.environ, **self.store.env}, capture_output=True, text=True)  # fmt: skip
        print(done.stdout + done.stderr, flush=True)
        for line in done.stdout.splitlines():
            if " tried: " in line:
                name, tried = line.split()[:2]
                for _ in range(int(tried) - done.stdout.count(f"FAULT {name}:")):
                    self.tally.tried("readers " + name.rpartition("/")[2])
                for fault in (one for one in done.stdout.splitlines() if one.startswith(f"FAULT {name}:")):
                    self.tally.tried("readers " + name.rpartition("/")[2], fault)
        assert done.returncode in (0, 1) and done.stdout, done

    def daemons(self, path):
        """Changes a byte, starts everything, and compares. The store is put back afterwards."""
        kept = self.store.directory / "kept"
        if not kept.exists():
            for name in ("store", "run"):
                run_command(["cp", "-a", "--sparse=always", self.store.directory / name, kept.with_name(f"kept-{name}")])
            kept.touch()
        (kind, at), how = choose(path, self.chance), self.chance.randrange(10)
        with open(path, "r+b") as file:
            file.seek(at)
            before = file.read(1)[0]
            changed = before ^ (1 << how) if how < 8 else 0 if how == 8 else 0xFF
            file.seek(at)
            file.write(bytes([changed]))
        supervisor, fault = self.store.run(), None
        try:
            self.simulator.touch(FEED, 3)
            self.store.wait_equal(self.simulator, FEED, timeout=8)
            if "killed by signal" in supervisor.log:
                fault = "a daemon was killed by a signal"
        except AssertionError as problem:
            if path.name == "data.mdb" and self.is_reported():
                return self.rebuild(supervisor, kept, path.parent.parent.name)
            # The first words of `id` are the layout's number: another one is a store of another version.
            if path.name != "id" or "is no store of this version" not in supervisor.log:
                fault = str(problem)[:400]
        status = supervisor.kill(15)
        if not fault and status:
            fault = f"kinf run ends with {status}"
        if fault:
            fault = f"byte {at} {before:02x} -> {changed:02x}: {fault}\n{supervisor.tail(20)}"
        of = path.name if path.parent.name[:4] != "gen-" else f"{path.parent.parent.name}/{path.name}{kind}"
        self.tally.tried(f"daemons {of}", fault)
        self.put_back(supervisor, kept)

    def put_back(self, supervisor, kept):
        supervisor.err_path.unlink()
        for name in ("store", "run"):
            shutil.rmtree(self.store.directory / name, ignore_errors=True)
            run_command(["cp", "-a", "--sparse=always", kept.with_name(f"kept-{name}"), self.store.directory / name])

    def is_reported(self):
        return self.store.kinf("get", FEED).status == 1 and self.store.kinf("verify", "--deep").status == 1

    def rebuild(self, supervisor, kept, database):
        """Readers name the damage no daemon has met, and the command in their sentence mends it."""
        fault = None
        self.store.kinf("rebuild-index")
        try:
            self.store.wait_equal(self.simulator, FEED, timeout=8)
        except AssertionError as problem:
            fault = str(problem)[:400]
        supervisor.kill(15)
        self.tally.tried(f"daemons {database}, reported to readers", fault)
        self.put_back(supervisor, kept)

    def run(self):
        self.readers(self.files)
        for _ in range(max(1, self.options.count // 10) if self.options.count else 30):
            for path in self.files:
                self.daemons(path)
        return self.tally.end()


def main():
    options = arguments(__doc__, 40, ("--objects", "of the store; few make --count 0, every byte, possible"))
    return with_workspace(lambda workspace: Bytes(workspace, options).run())


if __name__ == "__main__":
    sys.exit(main())
