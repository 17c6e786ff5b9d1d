# SPDX-License-Identifier: Apache-2.0
"""Guarantees for readers in other processes: order, unchanging snapshots, and clear errors for
readers of other users, mounts, PID namespaces and store formats."""

import grp
import os
import re
import shutil
import signal

import pytest

from harness import eventually
from harness.informer import calls, informer, replay, synced, truth
from harness.namespaces import unshare
from harness.process import program, run_command
from harness.store import whole

NOBODY = 65534


def fill(simulator, store, **settings):
    simulator.create("pods", 40)
    daemons = store.start(simulator, whole("pods"), **settings)
    return daemons


@pytest.fixture
def filled(simulator, store):
    return fill(simulator, store)


def stop(daemons):
    for daemon in daemons:
        daemon.stop()


def ends_equal(simulator, process, timeout=20):
    eventually(lambda: replay(process.lines) == truth(simulator), timeout, "as in the cluster")


# ---- order, and the cache --------------------------------------------------------------------------


def test_the_cache_of_an_informer_is_never_older_than_the_handled_change(simulator, store, filled):
    process = synced(informer(store, "--cache"))
    simulator.churn("pods", 300, 40)
    eventually(lambda: len(process.lines) > 200)
    simulator.churn("pods", 0)
    ends_equal(simulator, process)
    changes = [line for line in process.lines if "event" in line and not line.get("initial")]
    events = [line["event"] for line in changes]
    assert events == sorted(set(events)), "in the order of their numbers, none twice"
    deleted = {line["key"]: line["event"] for line in changes if line["call"] == "delete"}
    for line in (line for line in process.lines if "event" in line):
        shown = line["cache"]
        if line["call"] == "delete":
            assert shown is None or int(shown) > int(line["rv"]), f"deleted, but in the cache: {line}"
        elif shown is None:
            assert deleted.get(line["key"], 0) > line["event"], f"not in the cache, but never deleted: {line}"
        else:
            assert int(shown) >= int(line["rv"]), f"an older state than the one handled: {line}"


# ---- snapshots that are held -----------------------------------------------------------------------


def reader(store, wrap=(), name="reader", **env):
    process = store.process(name, [*wrap, program("programs/reader"), "pods"], env).start()
    eventually(lambda: process.lines, what="its first line")
    return process


def answer(process, number):
    """Sends signal NUMBER to the reader; returns its line."""
    before = len(process.lines)
    process.send(number)
    return eventually(lambda: process.lines[before:], what="an answer")[0]


def test_a_held_snapshot_never_changes(simulator, store):
    """Neither churn nor trimming, a new index or a new journal changes a page of it."""
    daemons = fill(simulator, store, retention={"time": "100ms", "size": "64MiB"})
    process = reader(store)
    first = process.lines[0]
    assert first["objects"] == 40 and first["kept"] == first["listed"]
    simulator.churn("pods", 300, 40)
    at = store.kinf("status", "-o", "json", check=True).json["store"]["horizon"]
    eventually(lambda: store.kinf("status", "-o", "json").json["store"]["horizon"] > at + 100, what="trimming")
    assert answer(process, signal.SIGUSR1) == first
    stop(daemons)
    shutil.rmtree(store.path / "index")
    assert answer(process, signal.SIGUSR1) == first
    current = (store.path / "journal" / "CURRENT").read_text().strip()  # a copy may have replaced gen-1
    with open(store.path / "journal" / current / "STATE", "w") as state:
        state.write("not one of ours\n")
    for daemon in daemons:
        daemon.start()
    simulator.churn("pods", 0)
    store.wait_equal(simulator, "pods")
    assert answer(process, signal.SIGUSR1) == first
    assert answer(process, signal.SIGUSR2) == {"result": 0, "error": ""}
    last = eventually(lambda: process.lines[-1].get("objects") and process.lines[-1])
    assert last["objects"] == len(simulator.truth("pods")) and last["listed"] != first["listed"]
    assert process.stop() == 0


# ---- users, mounts, namespaces ---------------------------------------------------------------------


@pytest.fixture
def another_user(store):
    """The first words of a command line to run as user 65534; readable() copies programs to where it may read them."""
    if os.geteuid() != 0:
        pytest.skip("only root can run a command as another user")
    os.chmod(store.directory, 0o711)
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


def readable(store, name):
    """A copy of program NAME in the test's directory."""
    copy = store.directory / name.replace("/", "-")
    shutil.copy(program(name), copy)
    copy.chmod(0o755)
    return str(copy)


def test_another_user_is_refused_with_a_sentence(simulator, store, another_user, filled):
    result = run_command([*another_user, readable(store, "kinf"), "get", "pods"], store.env)
    assert result.status == 1 and result.stdout == "", result
    assert str(store.path) in result.stderr and "may not read the store" in result.stderr and "become a member of that group" in result.stderr, result
    assert result.stderr.count(str(store.path)) == 1, "the store is named once"


def test_the_reader_group_follows_with_a_cursor(simulator, store, another_user):
    simulator.create("pods", 10)
    daemons = store.start(simulator, whole("pods"), group=grp.getgrgid(NOBODY).gr_name)
    kinf, program_ = readable(store, "kinf"), readable(store, "programs/informer")
    count = run_command([*another_user, kinf, "get", "pods", "-o", "count"], store.env)
    assert count.stdout.strip() == "10", count
    process = store.process("informer", [*another_user, program_, "pods", "--cursor", "theirs"]).start()
    synced(process)
    simulator.touch("pods", 5)
    ends_equal(simulator, process)
    cursor = store.path / "cursors" / "theirs"
    eventually(cursor.exists)
    assert cursor.stat().st_uid == NOBODY
    for daemon in daemons:
        daemon.kill()
        daemon.start()
    simulator.touch("pods", 5)
    ends_equal(simulator, process)
    assert process.stop() == 0


READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'


def test_read_only_mounts_of_store_and_runtime_directory_are_refused_while_daemons_write(simulator, store, filled):
    mounted = [*unshare("-rm"), "sh", "-c", READ_ONLY, store.directory]
    live = run_command([*mounted, program("kinf"), "get", "pods"], store.env)
    assert live.status == 1 and live.stdout == "", live
    assert "mount that directory writable" in live.stderr and "copy" in live.stderr, live
    follower = run_command([*mounted, program("programs/informer"), "pods"], store.env)
    assert follower.status == 1 and "mount that directory writable" in follower.stderr, follower


def test_read_only_mounts_are_read_until_daemons_write(simulator, store, filled):
    stop(filled)
    mounted = [*unshare("-rm"), "sh", "-c", READ_ONLY, store.directory]
    process = reader(store, mounted)
    first = process.lines[0]
    assert first["copy"] and first["objects"] == 40
    follower = store.process("informer", [*mounted, program("programs/informer"), "pods"]).start()
    synced(follower)
    assert replay(follower.lines) == truth(simulator)
    cursor = run_command([*mounted, program("programs/informer"), "pods", "--cursor", "c"], store.env)
    assert cursor.status == 1 and "'c'" in cursor.stderr and "ead-only" in cursor.stderr, cursor
    assert answer(process, signal.SIGUSR1) == first
    for daemon in filled:
        daemon.start()
    simulator.touch("pods", 10)
    store.wait_equal(simulator, "pods")
    expired = answer(process, signal.SIGUSR2)
    assert expired["result"] == -1005 and "written while it was read" in expired["error"], expired
    assert follower.wait() == 1
    assert re.search("read it again|mount that directory writable", follower.log), follower.log


def test_readers_in_other_pid_namespaces_work_with_one_pid(simulator, store, filled):
    alone = [*unshare("-rpf", "--kill-child"), "--"]
    process = store.process("informer", [*alone, program("programs/informer"), "pods"]).start()
    synced(process)
    simulator.touch("pods", 10)
    ends_equal(simulator, process)
    twin = run_command([*alone, program("kinf"), "get", "pods"], store.env)
    assert twin.status == 0 and len(twin.stdout.splitlines()) == 41, twin
    simulator.touch("pods", 10)
    ends_equal(simulator, process)
    assert not calls(process, "lapped")
    process.kill()

    def shown():
        """The command sees the daemons running although their pids mean nothing in its PID namespace."""
        status = run_command([*alone, program("kinf"), "status", "-o", "json"], store.env).json
        return [row["state"] for row in status["processes"] + status["feeds"]] == ["running", "running", "live"]

    eventually(shown)


# ---- other formats, other stores -------------------------------------------------------------------


@pytest.mark.parametrize("part", ["journal", "index"])
def test_a_store_of_an_older_format_is_refused_and_built_again(simulator, store, filled, part):
    stop(filled)
    state = store.path / part / "gen-1" / "STATE"
    text, n = re.subn(r"(?m)^format .*$", "format 0", state.read_text())
    assert n == 1, text
    state.write_text(text)
    for name in ("kinf", "programs/informer"):
        words = ["get", "pods"] if name == "kinf" else ["pods"]
        result = run_command([program(name), *words], store.env)
        assert result.status == 1 and result.stdout == "", result
        assert "it has format 0, and this program knows format " in result.stderr and "makes it again" in result.stderr, result
        assert result.stderr.count(str(store.path)) == 1, "the store is named once"
    for daemon in filled:
        daemon.start()
    if part == "journal":
        filled[1].wait_log(r'journal_created reason="journal generation 1: it has format 0, and this program knows format \d+"')
    simulator.touch("pods", 5)
    store.wait_equal(simulator, "pods")
    store.verify()


@pytest.mark.parametrize("how", ["journal", "store"])
def test_an_informer_survives_the_replacement_of_its_store(simulator, store, filled, how):
    plain = synced(informer(store, "--cursor", "c"))
    tracking = synced(informer(store, "--track-keys", name="tracking"))
    stop(filled)
    if how == "store":
        shutil.rmtree(store.path)
    else:
        (store.path / "journal" / "gen-1" / "STATE").write_text("not one of ours\n")
    simulator.touch("pods", 10)
    simulator.delete_many("pods", 5)
    for daemon in filled:
        daemon.start()
    ends_equal(simulator, plain)
    ends_equal(simulator, tracking)
    assert len(calls(plain, "lapped")) == 1 and not calls(tracking, "lapped")
    assert len([line for line in calls(tracking, "delete") if line["unknown"]]) == 5
    simulator.touch("pods", 10)
    ends_equal(simulator, plain)
    ends_equal(simulator, tracking)
    assert plain.stop() == 0 and tracking.stop() == 0
