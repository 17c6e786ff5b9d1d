# SPDX-License-Identifier: Apache-2.0
"""A reader stopped for minutes, while copies replaced its files and too many such files were held:
the daemons took the space back. It says so, and prints nothing wrong. (store/env/replaced.h;
unit/test_replaced.c has the daemons do it.)"""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from harness import PATIENCE, eventually, informer
from harness.follow import replay, since_lapped
from harness.process import BUILD, ROOT, program
from harness.python import preload
from harness.store import whole

OLDEST, GIVEN_UP, CLOSED = 256, 384, 2**64 - 1  # in the pin page (store/FORMAT.md)


@pytest.fixture
def pods(simulator, store):
    simulator.create("pods", 1000, size=3000)
    store.start(simulator, whole("pods"))
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
    rest, errors = (text.decode() for text in reader.communicate(timeout=60 * PATIENCE))
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
    eventually(lambda: len(follower.lines) == 1000 + 1 + 20)
    assert replay(follower.lines) == simulator.truth("pods")
    pods.verify()


EXPIRED = "held for too long", "not kept any more"


def stopped(store, argv, env):
    """Starts a program that stops itself (SIGSTOP), and waits for the stop. Its output goes into a file."""
    with open(store.directory / "stopped.out", "wb") as out:
        process = subprocess.Popen(argv, env={**store.env, **env}, stdout=out, stderr=subprocess.PIPE, text=True)
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status), process.stderr.read()
    return process


def printed_by(store):
    return (store.directory / "stopped.out").read_text()


def go_on(store, process):
    give_up(store)
    process.send_signal(signal.SIGCONT)
    errors = process.communicate(timeout=30 * PATIENCE)[1]
    return printed_by(store), errors


def assert_nothing_was_reported(store):
    log = "".join(Path(process.err_path).read_text() for process in store.processes)
    assert "damage" not in log and log.count("index_building") == 1, log


POD = ["pod-7", "-n", "ns-7"]


COMMANDS = [
    (["get", "pods", "-A", "-o", "json"], 460),
    (["get", "pods", "-A", "-o", "yaml"], 460),
    (["get", "pods", "-A", "-o", "name"], 460),
    (["get", "pods", "-A"], 460),
    (["get", "pods", *POD, "-o", "json"], 1),
    (["export", "pods"], 460),
    (["export"], 460),
    (["describe", "pods", *POD], 2),
    (["history", "pods", *POD], 1),
]


def test_a_command_that_was_stopped_between_reading_and_printing_calls_nothing_damaged(simulator, pods):
    simulator.touch("pods", 1000)
    pods.wait_equal(simulator, "pods")
    for command, reads in COMMANDS:
        complete = pods.kinf(*command, check=True).stdout
        reader = stopped(pods, [program("kinf"), *command], {"KINF_FAIL": f"read.object:{reads}:stop"})
        printed, errors = go_on(pods, reader)
        assert reader.returncode == 1 and any(text in errors for text in EXPIRED) and "damaged" not in errors, (command, errors)
        assert len(printed) < len(complete) and complete.startswith(printed), (command, printed[-300:])
    assert_nothing_was_reported(pods)


@pytest.mark.parametrize("ticks", [1, 930, 1660])
def test_verify_that_was_stopped_finds_no_fault(pods, ticks):
    verify = stopped(pods, [program("kinf"), "verify", "--deep"], {"KINF_FAIL": f"verify.tick:{ticks}:stop"})
    printed, errors = go_on(pods, verify)
    assert verify.returncode == 1 and printed == "" and "verify it again" in errors, (printed, errors)
    pods.verify()
    assert_nothing_was_reported(pods)


@pytest.mark.parametrize("items", [1, 460, 1000])
def test_a_follower_that_was_stopped_in_the_middle_of_a_pass_begins_again(simulator, pods, items):
    follower = stopped(pods, [program("kinf"), "watch", "pods", "-o", "json", "--old"], {"KINF_FAIL": f"follow.item:{items}:stop"})
    give_up(pods)
    follower.send_signal(signal.SIGCONT)

    def lines():
        return [json.loads(line) for line in printed_by(pods).rpartition("\n")[0].splitlines()]

    eventually(lambda: lines() and lines()[-1]["type"] == "SYNC")
    simulator.touch("pods", 10)
    eventually(lambda: lines()[-1].get("event", 0) >= pods.last_event("pods") and len(since_lapped(lines())) == 1011)
    assert lines()[-1012]["type"] == "LAPPED" and len(lines()) == 1012 + items - 1
    assert replay(since_lapped(lines())) == simulator.truth("pods")
    follower.terminate()
    assert "damaged" not in follower.communicate(timeout=20 * PATIENCE)[1]
    assert_nothing_was_reported(pods)


def test_an_informer_whose_callback_took_minutes_goes_on_with_a_lapse(simulator, pods):
    """Its callbacks write to a pipe without a reader."""
    process = subprocess.Popen(
        [program("programs/informer"), "pods"], env=pods.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines = [json.loads(process.stdout.readline())]
    give_up(pods)
    while len([line for line in lines if line["call"] == "sync"]) < 1:
        text = process.stdout.readline()
        assert text, process.stderr.read()
        lines.append(json.loads(text))
    process.terminate()
    process.communicate(timeout=20 * PATIENCE)
    assert [line["call"] for line in lines].count("lapped") == 1
    assert informer.replay(lines) == informer.truth(simulator)
    assert_nothing_was_reported(pods)


OBJECTS = """
import os, signal
import kinf
snapshot = kinf.Store().snapshot()
feed = snapshot.feed("pods")
rest = feed.list(sort_by="metadata.uid")
pods = [next(rest), *feed]
metadata = pods[3]["metadata"]
os.kill(os.getpid(), signal.SIGSTOP)
reads = (
    lambda: pods[0].key, lambda: pods[1]["metadata"], lambda: pods[2].path("metadata.name"), lambda: pods[2].path("no.such"),
    lambda: metadata["name"], lambda: pods[4].json(), lambda: pods[5].copy(), lambda: pods[6].values_at("spec.containers[*]"),
    lambda: pods[7] == {}, lambda: next(rest), lambda: feed.get("ns-0/pod-0"), lambda: snapshot.status(),
)
for i, read in enumerate(reads):
    try:
        print(i, "wrong:", read())
    except kinf.SnapshotExpired:
        pass
try:
    snapshot.renew()
    print("renewed without a word")
except kinf.SnapshotExpired:
    snapshot.renew()
assert len(list(snapshot.feed("pods"))) == 1000
"""

EVENTS = """
import os, signal
import kinf, kinf._watch
copied, copy_of = 0, kinf._watch.copy_of
def stop(raw):
    global copied
    copied += 1
    if copied == 100:
        os.kill(os.getpid(), signal.SIGSTOP)
    return copy_of(raw)
kinf._watch.copy_of = stop
seen, lapsed = {}, 0
for event in kinf.Store().feed("pods").watch():
    if event.type == "SYNC":
        break
    if event.type == "LAPPED":
        seen, lapsed = {}, lapsed + 1
    else:
        assert event.object["metadata"]["name"] in event.key and event.key not in seen, event.key
        seen[event.key] = event.object
assert lapsed == 1 and len(seen) == 1000, (lapsed, len(seen))
"""


@pytest.mark.parametrize("program_text", [OBJECTS, EVENTS], ids=["objects", "events"])
def test_a_python_program_that_was_stopped_gets_nothing_wrong(pods, program_text):
    env = {"PYTHONPATH": str(ROOT / "reader" / "python"), "KINF_LIBRARY": str(BUILD / "libkinf.so.0"), "LD_PRELOAD": preload(),
           "PYTHONDONTWRITEBYTECODE": "1", "PYTHONMALLOC": "malloc", "ASAN_OPTIONS": "abort_on_error=1:detect_leaks=0"}
    process = stopped(pods, ["/usr/bin/python3", "-c", program_text], env)
    printed, errors = go_on(pods, process)
    assert (process.returncode, printed) == (0, ""), (printed, errors)
    assert_nothing_was_reported(pods)
