# SPDX-License-Identifier: Apache-2.0
"""File systems where a write into a file takes new blocks: btrfs always, XFS after `cp --reflink`.
When the disk is full there, a daemon waits for room and says so, or ends and is started again, and
readers read on. The file systems are mounted images, as root; the same waits on a tmpfs are in
test_what_is_missing.py. Readers read on without room for any new file, and also with the runtime
directory on the same disk."""

import contextlib
import os
import shutil
import subprocess

import pytest

from harness import eventually
from harness.process import run_command
from harness.store import whole

MAKE = {"xfs": ["mkfs.xfs", "-q", "-m", "reflink=1"], "btrfs": ["mkfs.btrfs", "-q"], "ext4": ["mkfs.ext4", "-q", "-m", "0"]}
SIZES = {"xfs": 320, "btrfs": 128, "ext4": 320}  # MiB: about the least for mkfs


def mounted(kind, workspace):
    """Yields the directory of a mounted file system of the kind."""
    make = MAKE[kind]
    if os.geteuid() != 0 or not shutil.which(make[0], path="/usr/sbin:/sbin:" + os.environ["PATH"]):
        pytest.skip(f"NOT TRIED on {kind}: mounting it needs root and {make[0]}")
    image, place = workspace.directory / "image", workspace.directory / "disk"
    place.mkdir()
    with open(image, "wb") as file:
        file.truncate(SIZES[kind] << 20)
    subprocess.run([*make, image], check=True, capture_output=True)
    done = subprocess.run(["mount", "-o", "loop", image, place], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"NOT TRIED on {kind}: this machine can't mount it: {done.stderr}")
    yield place
    for store in (thing for thing in workspace.started if hasattr(thing, "kubeconfig")):
        store.stop()
    subprocess.run(["umount", "-l", place], check=True)


@pytest.fixture(params=["xfs", "btrfs"])
def disk(request, workspace):
    yield from mounted(request.param, workspace)


@pytest.fixture(params=MAKE)
def any_disk(request, workspace):
    yield from mounted(request.param, workspace)


def fill(place):
    """Takes all free blocks."""
    end, size = 0, 64 << 20
    with open(place / "filler", "wb") as file:
        while size >= 4096:
            try:
                os.posix_fallocate(file.fileno(), end, size)
                end += size
            except OSError:
                size //= 2
    subprocess.run(["sync", "-f", place], check=True)


def fill_wholly(place):
    """Takes all free space: not even an empty file can be made."""
    (place / "crumbs").mkdir(exist_ok=True)
    fill(place)
    # A long link is kept beside the names, where btrfs has much room of its own: thousands of empty
    # files take 40 s there.
    kinds = {"link": lambda path: path.symlink_to("x" * 3000)}
    kinds |= {f"{size}": lambda path, size=size: path.write_bytes(b"x" * size) for size in (4096, 512, 0)}
    for kind, make in kinds.items():
        for number in range(200000):
            try:
                make(place / "crumbs" / f"{kind}-{number}")
            except OSError:
                subprocess.run(["sync", "-f", place], check=True)  # unwritten data has taken its blocks
                fill_again(place)
                break


def fill_again(place):
    with contextlib.suppress(OSError), open(place / "filler", "ab", buffering=0) as file:
        while file.write(b"x" * 4096):
            pass


def make_room(place):
    (place / "filler").unlink()
    shutil.rmtree(place / "crumbs", ignore_errors=True)
    subprocess.run(["sync", "-f", place], check=True)


def started(place, simulator, store):
    """A store there with 300 pods, an index, and `kinf run`."""
    simulator.create("pods", 300, size=2000)
    store.path = place / "store"
    store.configure(whole("pods", indexes={"node": "spec.nodeName"}), mapSize="256MiB")
    store.supervisor = store.run()
    store.wait_live("pods")
    store.wait_equal(simulator, "pods")
    return store


@pytest.fixture
def live(disk, simulator, store):
    return started(disk, simulator, store)


def reflink(store, name):
    """A copy sharing all blocks with the store."""
    copy = store.path.with_name(name)
    subprocess.run(["cp", "-a", "--reflink=always", store.path, copy], check=True)
    return copy


def died(store):
    return [line for line in store.supervisor.log.splitlines() if " child_died " in line or " daemon_ended " in line]


def test_a_full_disk_after_a_reflink_copy_is_waited_for(disk, live, simulator):
    """Each round shares the blocks again: other pages meet the full disk first."""
    for number in range(2):
        copy = reflink(live, f"copy-{number}")
        fill(disk)
        truth = live.objects("pods")
        simulator.touch("pods", 300)
        eventually(lambda: died(live) or "waiting for disk space" in live.kinf("status").stdout, what="a daemon meets the full disk")
        assert live.kinf("get", "pods", "-o", "count").status == 0
        assert live.objects("pods").keys() == truth.keys()
        make_room(disk)
        live.wait_equal(simulator, "pods")
        shutil.rmtree(copy)
    live.wait_live("pods")
    live.verify()


def test_a_reflink_copy_of_a_running_store_can_be_read_on_a_full_disk(disk, live):
    copy = reflink(live, "copy")
    fill(disk)
    result = live.kinf("get", "pods", "-o", "count", "--store", copy)
    assert result.stdout.split()[-1] == "300" and result.status == 0, result


def is_read(store, number=300):
    """All commands give the last state of the store."""
    for args in (["-o", "count"], ["--index", "node=node-1", "-o", "name"], ["pod-0", "-n", "ns-0", "-o", "json"]):
        result = store.kinf("get", "pods", *args)
        assert result.status == 0 and result.stdout, result
    assert len(store.objects("pods")) == number


def test_daemons_that_start_on_a_full_disk_wait_for_room(disk, live, simulator):
    assert live.supervisor.stop() == 0
    reflink(live, "copy")
    fill(disk)
    is_read(live)
    simulator.touch("pods", 300)
    live.supervisor = live.run()
    eventually(lambda: died(live) or "waiting for disk space" in live.kinf("status").stdout)
    is_read(live)
    make_room(disk)
    live.wait_equal(simulator, "pods")
    live.verify()


def test_a_store_on_a_disk_without_room_for_a_file_is_read_and_its_daemons_wait(any_disk, simulator, store):
    live = started(any_disk, simulator, store)
    live.supervisor.kill()
    fill_wholly(any_disk)
    is_read(live)
    simulator.touch("pods", 300)
    live.supervisor = live.run()
    # The processor has nothing to write while the reflector waits, so it waits only if its files
    # need a block to be opened.
    eventually(lambda: live.kinf("status").stdout.count("waiting for disk space") >= 1, what="the reflector waits")
    is_read(live)
    make_room(any_disk)
    live.wait_equal(simulator, "pods")
    assert died(live) == []
    live.wait_live("pods")
    live.verify()


def test_daemons_go_on_after_their_runtime_directory_was_on_a_full_disk(any_disk, simulator, store):
    store.runtime = any_disk / "run"
    store.runtime.mkdir()
    live = started(any_disk, simulator, store)
    fill_wholly(any_disk)
    is_read(live)
    simulator.touch("pods", 300)
    eventually(lambda: "work_failed" in live.supervisor.log and "disk space" in live.supervisor.log, what="a daemon waits for room")
    for _ in range(3):  # each time the modified pages have been written, and need a new place
        subprocess.run(["sync", "-f", any_disk], check=True)
        is_read(live)
    make_room(any_disk)
    live.wait_equal(simulator, "pods")
    live.wait_live("pods")
    live.verify()


def test_daemons_whose_runtime_directory_has_no_room_wait_and_readers_read(any_disk, simulator, store):
    store.runtime = any_disk / "run"
    store.runtime.mkdir()
    live = started(any_disk, simulator, store)
    assert live.supervisor.stop() == 0
    fill_wholly(any_disk)
    is_read(live)
    simulator.touch("pods", 300)
    live.supervisor = live.run()
    eventually(lambda: live.supervisor.log.count("waiting for disk space") >= 2, what="both daemons say what they wait for")
    is_read(live)
    make_room(any_disk)
    live.wait_equal(simulator, "pods")
    assert died(live) == []
    live.verify()
