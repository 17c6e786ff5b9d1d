# SPDX-License-Identifier: Apache-2.0
"""Bytes changed under the daemons: no reader returns them, a sentence names the command, and the
command restores the server's state. A damaged index is built again, a damaged journal is replaced
by another one, and followers lapse."""

import re
import shutil
import signal
import struct

import pytest

from harness import eventually
from harness.follow import replay, since_lapped
from harness.store import whole

MARK = b"damage-me-0123456789"
DEFINITION = b"\xa8listKind\xa7PodList"  # in the definition of the feed of pods


def flip(path, found, at=0):
    """Flips a bit in each place of the file where FOUND is, AT bytes after its beginning."""
    with open(path, "r+b") as file:
        data = file.read()
        places = [m.start() + at for m in re.finditer(re.escape(found), data)]
        for place in places:
            file.seek(place)
            file.write(bytes([data[place] ^ 4]))
    assert places


def journal(store):
    return store.in_generation("journal", lambda directory: directory / "data.mdb")


def mark(simulator, store, key, text=MARK):
    """Puts TEXT into the body of the pod."""
    simulator.patch("pods", key, {"metadata": {"annotations": {"mark": text.decode()}}})
    store.wait_equal(simulator, "pods")


@pytest.fixture
def running(simulator, store):
    """(store, key): daemons run, and the pod KEY has the mark. Objects are larger than a page and smaller."""
    simulator.create("pods", 60, size=6000)
    simulator.create("configmaps", 20)
    store.configure(whole("pods", indexes={"node": "spec.nodeName"}), whole("configmaps"), mapSize="64MiB",
                    retention={"time": "1h"})  # fmt: skip
    store.supervisor = store.run()
    store.wait_equal(simulator, "pods")
    store.wait_live("configmaps")
    key = sorted(simulator.truth("pods"))[7]
    mark(simulator, store, key)
    return store, key


def assert_sound(simulator, store):
    store.wait_equal(simulator, "pods")
    store.wait_live("pods")
    simulator.touch("pods", 5)
    store.wait_equal(simulator, "pods")
    store.verify()


@pytest.mark.parametrize("what", ["body", "head", "definition"])
def test_rebuild_index_has_a_damaged_journal_listed_again(simulator, running, what):
    store, key = running
    lineage = store.lineage()
    head = struct.pack(">I", 1) + key.encode()
    flip(journal(store), *{"body": (MARK,), "head": (head, len(head)), "definition": (DEFINITION, 12)}[what])
    if what != "head":  # not read by readers
        got = store.kinf("get", "pods", "-o", "json")
        assert got.status == 1 and "damaged" in got.stderr and MARK.decode()[1:] not in got.stdout, got
        assert what != "body" or (key in got.stderr and "'kinf rebuild-index'" in got.stderr), got
    asked = store.kinf("rebuild-index")
    assert asked.status == 1 and "the reflector begins another journal" in asked.stderr, asked
    eventually(lambda: store.lineage() != lineage)
    assert_sound(simulator, store)
    assert re.search(r"journal_created .*a daemon met damage in it", store.supervisor.log)


def test_rebuild_index_builds_a_damaged_index_again(simulator, running):
    """The API server is not asked."""
    store, key = running
    lists, lineage = simulator.counters("pods")["lists"], store.lineage()
    # The row `name`: key, object id u64, seq u64. Another seq is of no version of this object.
    flip(store.in_generation("index", lambda directory: directory / "data.mdb"), key.encode(), len(key) + 8 + 2)
    got = store.kinf("get", "pods", "-o", "json")
    assert got.status == 1 and "index" in got.stderr, got
    store.kinf("rebuild-index", check=True)
    assert_sound(simulator, store)
    assert (simulator.counters("pods")["lists"], store.lineage()) == (lists, lineage)


def test_a_list_that_meets_a_damaged_version_begins_another_journal(simulator, running):
    store, _ = running
    lineage = store.lineage()
    flip(journal(store), MARK)
    store.kinf("relist", "pods")
    eventually(lambda: store.lineage() != lineage)
    assert_sound(simulator, store)


def test_a_processor_that_meets_a_damaged_version_builds_another_index(simulator, running):
    """It reads the previous version of each one it applies. The newest versions are sound."""
    store, key = running
    lineage = store.lineage()
    flip(journal(store), MARK)
    simulator.patch("pods", key, {"metadata": {"annotations": {"mark": "well"}}})
    store.wait_equal(simulator, "pods")
    simulator.touch("pods", 5)
    store.wait_equal(simulator, "pods")
    assert store.lineage() == lineage
    assert store.supervisor.log.count(" index_built ") == 2


def test_trimming_that_meets_a_damaged_record_begins_another_journal(simulator, running):
    store, key = running
    lineage = store.lineage()
    flip(journal(store), (key + simulator.truth("pods")[key]["metadata"]["uid"]).encode())
    store.configure(whole("pods", indexes={"node": "spec.nodeName"}), whole("configmaps"), mapSize="64MiB", retention={"time": "1s"})
    store.kinf("reload", check=True)
    eventually(lambda: store.lineage() != lineage)
    assert_sound(simulator, store)
    assert " journal_trim_failed " in store.supervisor.log


def test_a_journal_that_is_damaged_while_nothing_runs_is_replaced(simulator, running):
    store, key = running
    lineage = store.lineage()
    assert store.supervisor.stop() == 0
    flip(journal(store), MARK)
    shutil.rmtree(store.path / "index")
    store.supervisor = store.run()
    eventually(lambda: store.lineage() != lineage)
    assert_sound(simulator, store)


def test_while_the_api_server_is_away_what_is_sound_stays(simulator, running):
    store, key = running
    lineage, other = store.lineage(), sorted(simulator.truth("pods"))[3]
    simulator.down()
    store.supervisor.wait_log("cluster_unreachable")
    flip(journal(store), MARK)
    namespace, name = other.split("/")
    for _ in range(2):
        assert store.kinf("rebuild-index").status == 1
    assert store.kinf("get", "pods", name, "-n", namespace, "-o", "name", check=True).stdout and store.lineage() == lineage
    simulator.up()
    eventually(lambda: store.lineage() != lineage, 60)
    assert_sound(simulator, store)


def cursor_before(simulator, store, key, text):
    """Leaves a cursor `c`; then TEXT comes into the pod."""
    follower = store.follower("watch", "pods", "-o", "json", "--no-initial", "--cursor", "c")
    eventually(lambda: (store.path / "cursors" / "c").exists())
    assert follower.stop() in (0, -signal.SIGTERM, 143)
    mark(simulator, store, key, text)


def test_a_follower_is_not_given_a_damaged_newest_version(simulator, running):
    store, key = running
    text = b"damage-me-again-987654321"
    cursor_before(simulator, store, key, text)
    flip(journal(store), text)
    result = store.kinf("watch", "pods", "-o", "json", "--cursor", "c")
    assert result.status == 1 and "'kinf rebuild-index'" in result.stderr and text.decode()[1:] not in result.stdout, result
    assert {line["type"] for line in result.lines} <= {"LAPPED", "ADDED"}, result


def test_a_version_that_is_damaged_and_replaced_makes_only_its_follower_lapse(simulator, running):
    store, key = running
    text = b"damage-me-replaced-55555"
    cursor_before(simulator, store, key, text)
    mark(simulator, store, key, b"well")
    flip(journal(store), text)
    result = store.kinf("watch", "pods", "-o", "json", "--cursor", "c", "--count", "60", timeout=30)
    assert result.status == 0 and result.lines[0]["type"] == "LAPPED", result
    shown = {f"{e['object']['metadata']['namespace']}/{e['object']['metadata']['name']}": e["object"] for e in result.lines if "object" in e}
    assert shown == simulator.truth("pods")


def test_a_live_follower_lapses_before_it_gives_a_later_change(simulator, running):
    """It holds the damaged version, the old state of the next change."""
    store, key = running
    other = sorted(simulator.truth("pods"))[3]
    follower = store.follower("watch", "pods", "-o", "json", "--old")
    eventually(lambda: [line["type"] for line in follower.lines][-1:] == ["SYNC"])
    known = len(follower.lines)
    follower.send(signal.SIGSTOP)
    flip(journal(store), MARK)
    for changed in (key, other):
        simulator.patch("pods", changed, {"metadata": {"annotations": {"mark": "later"}}})
    store.wait_equal(simulator, "pods")
    follower.send(signal.SIGCONT)
    eventually(lambda: replay(since_lapped(follower.lines)) == simulator.truth("pods"))
    assert [line["type"] for line in follower.lines].count("LAPPED") == 1
    assert follower.lines[known]["type"] == "LAPPED", follower.lines[known]["object"]["metadata"]
    assert follower.stop() == 0


def test_history_and_log_give_no_damaged_version(simulator, running):
    """They read the log itself, where no record was checked."""
    store, key = running
    assert store.supervisor.stop() == 0
    commands = ["history", "pods", key, "-o", "json"], ["log", "pods", "-o", "json"]
    for command in commands:
        assert MARK.decode() in store.kinf(*command, check=True).stdout
    flip(journal(store), MARK, at=3)
    for command in commands:
        result = store.kinf(*command)
        assert result.status == 1 and "is damaged" in result.stderr and "me-0123456789" not in result.stdout, result
