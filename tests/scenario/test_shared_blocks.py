# SPDX-License-Identifier: Apache-2.0
"""File systems on which a write into a file takes new blocks: btrfs always, XFS after `cp --reflink`. When the disk is full
there, no daemon dies: it waits for room, says so, and readers read on. The file systems are images that are mounted, which needs
root; the same waits on a tmpfs are in test_what_is_missing.py."""

import os
import shutil
import subprocess

import pytest

from harness import eventually
from harness.process import run_command
from harness.store import whole

MAKE = {"xfs": ["mkfs.xfs", "-q", "-m", "reflink=1"], "btrfs": ["mkfs.btrfs", "-q"]}


@pytest.fixture(params=MAKE)
def disk(request, workspace):
    """The directory on which a file system of 320 MiB is mounted."""
    make = MAKE[request.param]
    if os.geteuid() != 0 or not shutil.which(make[0], path="/usr/sbin:/sbin:" + os.environ["PATH"]):
        pytest.skip(f"NOT TRIED on {request.param}: mounting it needs root and {make[0]}")
    image, place = workspace.directory / "image", workspace.directory / "disk"
    place.mkdir()
    with open(image, "wb") as file:
        file.truncate(320 << 20)
    subprocess.run([*make, image], check=True, capture_output=True)
    mounted = subprocess.run(["mount", "-o", "loop", image, place], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"NOT TRIED on {request.param}: this machine can't mount it: {mounted.stderr}")
    yield place
    for store in (thing for thing in workspace.started if hasattr(thing, "kubeconfig")):
        store.stop()
    subprocess.run(["umount", "-l", place], check=True)


def fill(place):
    """Takes all blocks that are free."""
    end, size = 0, 64 << 20
    with open(place / "filler", "wb") as file:
        while size >= 4096:
            try:
                os.posix_fallocate(file.fileno(), end, size)
                end += size
            except OSError:
                size //= 2
    subprocess.run(["sync", "-f", place], check=True)


def make_room(place):
    (place / "filler").unlink()
    subprocess.run(["sync", "-f", place], check=True)


@pytest.fixture
def live(disk, simulator, store):
    """A store on the disk with 300 pods, an index, and `kinf run`."""
    simulator.create("pods", 300, size=2000)
    store.path = disk / "store"
    store.configure(whole("pods", indexes={"node": "spec.nodeName"}), mapSize="256MiB")
    store.supervisor = store.run()
    store.wait_live("pods")
    store.wait_equal(simulator, "pods")
    return store


def reflink(store, name):
    """A copy that shares all blocks with the store."""
    copy = store.path.with_name(name)
    subprocess.run(["cp", "-a", "--reflink=always", store.path, copy], check=True)
    return copy


def died(store):
    return [line for line in store.supervisor.log.splitlines() if " child_died " in line or " daemon_ended " in line]


def test_a_full_disk_after_a_reflink_copy_is_waited_for(disk, live, simulator):
    """Each round shares the blocks again, so that other pages are met first."""
    for number in range(2):
        copy = reflink(live, f"copy-{number}")
        fill(disk)
        truth = live.objects("pods")
        simulator.touch("pods", 300)
        eventually(lambda: "waiting for disk space" in live.kinf("status").stdout, what="a daemon waits for room")
        assert live.kinf("get", "pods", "-o", "count").status == 0
        assert live.objects("pods").keys() == truth.keys()
        make_room(disk)
        live.wait_equal(simulator, "pods")
        assert died(live) == []
        shutil.rmtree(copy)
    live.wait_live("pods")
    live.verify()


def test_a_reflink_copy_of_a_running_store_can_be_read_on_a_full_disk(disk, live):
    copy = reflink(live, "copy")
    fill(disk)
    result = live.kinf("get", "pods", "-o", "count", "--store", copy)
    assert result.stdout.split()[-1] == "300" and result.status == 0, result


def test_daemons_that_start_on_a_full_disk_wait_for_room(disk, live, simulator):
    assert live.supervisor.stop() == 0
    reflink(live, "copy")
    fill(disk)
    simulator.touch("pods", 300)
    live.supervisor = live.run()
    eventually(lambda: "disk is full" in live.supervisor.log or "waiting for disk space" in live.supervisor.log)
    result = live.kinf("get", "pods", "-o", "count")
    assert result.stdout.strip() == "300" or "No space left on device" in result.stderr, result
    make_room(disk)
    live.wait_equal(simulator, "pods")
    assert died(live) == []
    live.verify()
