# SPDX-License-Identifier: Apache-2.0
"""A reader that was stopped for minutes, while copies replaced the files that it reads and too many such files were held: the
daemons took the space back. It says so, and prints nothing wrong. (store/env/former.h; tests/stress/hoarder.py waits for the
daemons to do it.)"""

import os
import signal
import subprocess

import pytest

from harness import eventually
from harness.follow import replay
from harness.process import program
from harness.store import whole

OLDEST, GIVEN_UP, CLOSED = 256, 384, 2**64 - 1  # in the pin page (store/FORMAT.md)


@pytest.fixture
def pods(simulator, store):
    simulator.create("pods", 1500, size=3000)
    store.configure(whole("pods")).daemons()
    store.wait_equal(simulator, "pods")
    return store


def give_up(store):
    """Replaces both databases by copies, and takes the pages of the old files away as a daemon does."""
    flags = os.O_RDWR | os.O_CLOEXEC
    parts = ("journal", "index")
    files = [(os.open(d / "data.mdb", flags), os.open(d / "pins", flags))
             for d in (store.in_generation(part, lambda directory: directory) for part in parts)]
    store.kinf("compact", check=True)
    for data, page in files:
        os.pwrite(page, CLOSED.to_bytes(8, "little"), OLDEST)
        os.pwrite(page, (1).to_bytes(8, "little"), GIVEN_UP)
        size = os.fstat(data).st_size
        for at in range(0, size, 1 << 20):
            os.pwrite(data, bytes(min(1 << 20, size - at)), at)
        os.close(data)
        os.close(page)


@pytest.mark.parametrize("command", [
    ["get", "pods", "-A", "-o", "json"],
    ["get", "pods", "-A", "-o", "yaml"],
    ["get", "pods", "-A", "-o", "jsonpath={.items[*].metadata}"],
    ["export", "pods"],
], ids=lambda command: command[-1])
def test_a_command_that_was_stopped_prints_nothing_wrong(pods, command):
    complete = pods.kinf(*command, check=True).stdout
    reader = subprocess.Popen(
        [program("kinf"), *command], env=pods.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    begin = os.read(reader.stdout.fileno(), 1)  # it has begun to write, and waits for room in the pipe
    give_up(pods)
    rest, errors = (text.decode() for text in reader.communicate(timeout=60))
    printed = begin.decode() + rest
    if reader.returncode == 0:  # it had read all of it before it began to print
        assert printed == complete and "jsonpath" in command[-1]
    else:
        assert reader.returncode == 1 and "the snapshot was held for too long" in errors and "damaged" not in errors, errors
        assert len(printed) < len(complete) and complete.startswith(printed), printed[-300:]
    assert pods.kinf(*command, check=True).stdout == complete
    pods.verify()


def test_a_follower_that_was_stopped_goes_on_with_the_copy(simulator, pods):
    follower = pods.follower("watch", "pods", "-o", "json", "--old")
    eventually(lambda: follower.lines and follower.lines[-1]["type"] == "SYNC")
    follower.send(signal.SIGSTOP)
    simulator.touch("pods", 10)
    pods.wait_equal(simulator, "pods")
    give_up(pods)
    follower.send(signal.SIGCONT)
    simulator.touch("pods", 10)
    eventually(lambda: len(follower.lines) == 1500 + 1 + 20)
    assert replay(follower.lines) == simulator.truth("pods")
    pods.verify()
