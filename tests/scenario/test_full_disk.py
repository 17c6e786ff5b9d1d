# SPDX-License-Identifier: Apache-2.0
"""Daemons on a file system close to full."""

import os
import re
import signal

import pytest

from harness import eventually
from harness.namespaces import unshare
from harness.process import program, run_command
from harness.store import whole


@pytest.fixture(params=[80, 24])
def small_disk(request, simulator, store):
    """`kinf run` with its store on a file system of 80 or 24 MB, small enough for the test to fill.

    24 MB suffice as long as neither database takes much more space than its objects need.
    """
    mount = f'mount -t tmpfs -o size={request.param}m tmpfs "$0" && exec "$@"'
    store.path.mkdir(mode=0o700)
    simulator.create("pods", 100, size=4000)
    store.configure(whole("pods"), mapSize="64MiB", retention={"time": "1s", "size": "2MiB"})
    argv = [program("kinf"), "run", "--config", store.config, "--runtime-dir", store.runtime]
    disk = SmallDisk(store, store.process("kinf-run", [*unshare("-rm"), "sh", "-c", mount, store.path, *argv]).start())
    eventually(lambda: disk.count() == "100")
    return disk


class SmallDisk:
    """Runs commands in the supervisor's mount namespace, the only place where the small file system is mounted."""

    def __init__(self, store, supervisor):
        self.store, self.supervisor = store, supervisor
        self.filler = str(store.path / "filler")

    def run(self, *command):
        return run_command(["nsenter", "-t", str(self.supervisor.pid), "-U", "-m", "--preserve-credentials", *command], self.store.env)

    def kinf(self, *words):
        return self.run(program("kinf"), *words)

    def count(self):
        return self.kinf("get", "pods", "-o", "count").stdout.strip()

    def fill(self):
        self.run("sh", "-c", f"cat /dev/zero > {self.filler} 2>/dev/null; true")

    def free(self):
        self.run("rm", self.filler)

    def is_reported(self):
        """`kinf status` names the full disk."""
        status = self.kinf("status", "-o", "json").json
        texts = [status["store"].get("lastError") or ""] + [p.get("lastError") or "" for p in status["processes"]]
        return re.search("(?i)space|full", " ".join(texts))


def test_daemons_report_a_full_disk_and_resume_when_there_is_room(simulator, small_disk):
    """Reads work meanwhile, and the daemons resume by themselves."""
    small_disk.fill()
    for number in range(20):
        simulator.create("pods", 50, from_=1000 + number * 50, size=6400)
    eventually(small_disk.is_reported)
    assert int(small_disk.count()) >= 100 and small_disk.supervisor.running
    small_disk.free()
    eventually(lambda: small_disk.count() == "1100", timeout=40, what="resumed by itself")
    deep = small_disk.kinf("verify", "--deep")
    assert deep.status == 0, deep


def test_no_daemon_ends_when_the_disk_fills_up_repeatedly(simulator, small_disk):
    """The daemons write both databases in place: a page without a block on the disk would be a SIGBUS."""
    simulator.churn("pods", 400, 0)
    total = 100
    for _ in range(3):
        small_disk.fill()

        def is_reported_full():
            """Objects fit until the blocks allocated ahead, and the pages freed by trimming, are used up."""
            nonlocal total
            simulator.create("pods", 10, from_=1000 + total, size=12000)
            total += 10
            return small_disk.is_reported()

        eventually(is_reported_full, what="the full disk is reported")
        small_disk.free()
        eventually(lambda: small_disk.count() == str(total), timeout=40, what="resumed by itself")
    simulator.churn("pods", 0)
    assert " child_died " not in small_disk.supervisor.log, small_disk.supervisor.log
    deep = small_disk.kinf("verify", "--deep")
    assert deep.status == 0, deep


@pytest.mark.parametrize("small_disk", [24], indirect=True)
def test_an_index_rebuild_waits_for_disk_space(small_disk):
    """The processor logs the reason, keeps the damaged index, and builds the new one when there is space."""
    pids = {p["name"]: p["pid"] for p in small_disk.kinf("status", "-o", "json").json["processes"]}
    small_disk.fill()
    small_disk.run("truncate", "-s", "-128K", small_disk.filler)  # space to mark the index dirty, not for more
    index = small_disk.store.path / "index" / "gen-1" / "data.mdb"
    small_disk.run("dd", "if=/dev/zero", f"of={index}", "bs=16k", "count=1", "conv=notrunc")
    os.kill(pids["kinf-processor"], signal.SIGKILL)
    eventually(lambda: "a second index needs" in small_disk.supervisor.log)
    small_disk.free()
    eventually(lambda: small_disk.count() == "100", timeout=40, what="built when there is room")
    deep = small_disk.kinf("verify", "--deep")
    assert deep.status == 0, deep
