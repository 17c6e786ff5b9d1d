#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Lets all limited resources run out: descriptors of each program, inodes of the store's and of the
runtime directory's file system, files in the directory of pins.

  * A command gives the right result, or a sentence and exits 1. A daemon goes on, or ends with a
    sentence and a status for a restart; without the limit it goes on in the same journal.
  * Without inodes the daemons live, changes reach the present readers, a new reader gets an error,
    and all is well with inodes again.
  * Files of a member in pins/ do not stop daemons or readers.

usage: tests/torture/limits.py [--count N] [--only NAME]    ($KINF_BUILD: default build/debug; file systems need root)
"""

import os
import re
import resource
import subprocess
import sys
import time

os.environ.setdefault("KINF_BUILD", "build/debug")
from torture import FEED, INDEXES, ORDERLY, Tally, arguments, eventually, program, run_command, whole, with_workspace  # noqa: E402

MOST = 40  # descriptors; with more nothing is missing, and with 3 the dynamic linker itself fails
COMMANDS = [["get", FEED, "-o", "name"], ["status"], ["watch", FEED, "-o", "name", "--count", "3"], ["verify"], ["cursor", "ls"],
            ["describe", FEED, "ns-0/pod-0"]]  # fmt: skip


class Limits:
    def __init__(self, workspace, options):
        self.options, self.tally, self.workspace = options, Tally(options.only), workspace
        self.simulator = workspace.simulator()
        self.simulator.create(FEED, 40, size=600)

    def open_store(self, name):
        store = self.workspace.store(name, self.simulator)
        return store.configure(whole(FEED, indexes=INDEXES), retention={"time": "1s", "size": "64MiB"}, hangLimit="5m")

    # ---- descriptors -----------------------------------------------------------------------------

    def limited(self, n, argv):
        return ["prlimit", f"--nofile={n}", "--core=0", *argv]

    def command(self, store, words, n):
        result = run_command(self.limited(n, [program("kinf"), *words]), store.env, 60)
        said = [line for line in result.stderr.splitlines() if line.strip()]
        assert result.status in (0, 1, 75), result
        assert result.status == 0 or said, f"{n} descriptors: no sentence: {result}"

    def daemon(self, store, name, clean, n):
        before = store.lineage()
        argv = [program(name), "--config", store.config, "--runtime-dir", store.runtime]
        process = store.process(f"limited-{name}", argv)
        process.err_path.unlink(missing_ok=True)
        process.start()
        time.sleep(n % 8 / 100)  # while it starts, or later: with so few from the beginning it refuses to start
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (n, n))
        self.simulator.touch(FEED, 3)
        truth = {key: obj["metadata"]["resourceVersion"] for key, obj in self.simulator.truth(FEED).items()}

        def settled():
            found = store.kinf("get", FEED, "-o", "json")
            ours = {key: obj["metadata"]["resourceVersion"] for key, obj in store.objects(FEED).items()} if found.status == 0 else None
            return not process.running or ours == truth or re.search(r"(?i)too many open files|descriptors|=EMFILE", process.log)

        eventually(settled, 5, f"{n} descriptors: works, ends, or says what is missing\n{process.tail()}")
        status = process.stop(30)
        assert status in ORDERLY, f"{n} descriptors: status {status}\n{process.tail()}"
        assert status == 0 or process.log.strip(), f"{n} descriptors: no sentence"
        clean.start()
        store.wait_equal(self.simulator, FEED, timeout=10)
        assert clean.stop() in (0, -15), clean.tail()  # -15: it had only begun
        assert store.lineage() == before, f"{n} descriptors: another journal"

    def descriptors(self):
        if not any(self.options.only in kind for kind in ("descriptors of kinf", "descriptors of kinf-processor", "descriptors of kinf-reflector")):
            return
        store = self.open_store("descriptors")
        processor, reflector = store.daemons()
        store.wait_equal(self.simulator, FEED)
        step = max(1, MOST // (self.options.count or MOST))
        for words in COMMANDS:
            for n in range(4, MOST, step):
                self.tally.case(f"descriptors of kinf {words[0]}", self.command, store, words, n)
        for name, clean in (("kinf-processor", processor), ("kinf-reflector", reflector)):
            assert clean.stop() == 0, clean.tail()
            for n in range(4, MOST, step):
                self.tally.case(f"descriptors of {name}", self.daemon, store, name, clean, n)
            clean.start()
            store.wait_equal(self.simulator, FEED)
        store.verify()
        for process in (processor, reflector):
            process.stop()

    # ---- inodes ----------------------------------------------------------------------------------

    def inodes(self, which):
        """A small file system is mounted on the store's or the runtime directory; all its inodes
        are taken and given back."""
        store = self.open_store(f"inodes-{which}")
        place = {"store": store.path, "runtime": store.runtime}[which]
        place.mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "nr_inodes=80,size=256M,mode=0700", "none", place], check=True)
        try:
            daemons = store.daemons()
            store.wait_equal(self.simulator, FEED)
            follower = store.follower("watch", FEED, "-o", "json", "--cursor", "steady", name=f"steady-{which}")
            eventually(lambda: any(line["type"] == "SYNC" for line in follower.lines))
            # A follower reports an unwritable cursor and ends: it has to have written the one of its beginning.
            eventually(lambda: (store.path / "cursors" / "steady").exists())
            taken = place / "taken"
            taken.mkdir()
            for n in range(1000):
                try:
                    (taken / str(n)).touch()
                except OSError:
                    break
            self.tally.case(f"no inode in the {which} directory", self.without_inodes, store, daemons, follower, which)
            subprocess.run(["rm", "-rf", taken], check=True)
            self.tally.case(f"inodes again in the {which} directory", self.with_inodes, store, daemons, follower)
            for process in (follower, *daemons):
                process.stop()
        finally:
            for process in store.processes:
                if process.running:
                    process.kill()
            subprocess.run(["umount", "-l", place], check=True)

    def without_inodes(self, store, daemons, follower, which):
        rv = str(self.simulator.touch(FEED, 5))
        eventually(lambda: any(line["object"]["metadata"]["resourceVersion"] == rv for line in follower.lines if "object" in line), 10,
                   "a change reaches a follower that runs already")  # fmt: skip
        assert follower.running and all(process.running for process in daemons)
        found = store.kinf("get", FEED, "-o", "name")
        assert found.status == 0 and len(found.stdout.split()) == 40 or found.status == 1 and "No space left" in found.stderr, found
        before = store.lineage()
        for process in daemons:
            process.kill()
            process.start()
        eventually(lambda: all(process.running or process.log.strip() for process in daemons), 10, "a daemon lives or says why not")
        assert all(process.running or process.popen.returncode in ORDERLY for process in daemons), [p.tail(5) for p in daemons]
        assert store.lineage() == before

    def with_inodes(self, store, daemons, follower):
        for process in daemons:
            if not process.running:
                process.start()
        if not follower.running:
            follower.start()
        rv = str(self.simulator.touch(FEED, 5))
        store.wait_equal(self.simulator, FEED, timeout=10)
        eventually(lambda: any(line["object"]["metadata"]["resourceVersion"] == rv for line in follower.lines if "object" in line), 10)
        store.verify()

    # ---- places of pins --------------------------------------------------------------------------

    def pin_places(self):
        """5000 files in pins/, a part of them locked, as a member could make them."""
        store = self.open_store("pins")
        daemons = store.daemons()
        store.wait_equal(self.simulator, FEED)
        (pins,) = store.runtime.glob("kinf-*/pins")
        inode = store.in_generation("index", lambda path: (path / "data.mdb").stat().st_ino)
        hold = ("import fcntl, os, struct, sys, time\n"
                "held = []\n"
                "for n in range(5000):\n"
                "    fd = os.open('%s/%016x-%016x' % (sys.argv[1], int(sys.argv[2]), n), os.O_RDWR | os.O_CREAT, 0o644)\n"
                "    if n % 10: os.close(fd); continue\n"
                "    fcntl.fcntl(fd, 37, struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 0, 0)); held.append(fd)\n"
                "print('READY', flush=True)\n"
                "time.sleep(600)\n")  # fmt: skip
        holder = store.process("holder", [sys.executable, "-c", hold, pins, inode]).start()

        def body():
            eventually(lambda: "READY" in holder.out, 20)
            for _ in range(5):
                self.simulator.touch(FEED, 20)
                store.wait_equal(self.simulator, FEED, timeout=10)
            assert all(process.running for process in daemons)
            for process in daemons:
                process.kill()
                process.start()
            store.wait_equal(self.simulator, FEED, timeout=10)
            holder.kill()
            eventually(lambda: len(list(pins.iterdir())) < 10, 60, "the files are removed")
            store.verify()

        self.tally.case("5000 files in pins/", body)
        for process in daemons:
            process.stop()

    def run(self):
        self.descriptors()
        if os.geteuid() == 0:
            for which in ("store", "runtime"):
                if self.options.only in f"no inode in the {which} directory":
                    self.inodes(which)
        if self.options.only in "5000 files in pins/":
            self.pin_places()
        return self.tally.end()


def main():
    options = arguments(__doc__, 0)
    return with_workspace(lambda workspace: Limits(workspace, options).run())


if __name__ == "__main__":
    sys.exit(main())
