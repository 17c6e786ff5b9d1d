# SPDX-License-Identifier: Apache-2.0
"""Bytes that change under the daemons: a damaged record is listed again and stored under its own number, a damaged index
is built again, whoever finds it. Nobody serves anything wrong meanwhile."""

import os
import re
import shutil
import signal
import socket
import struct

import pytest

from harness import eventually
from harness.follow import replay, since_lapped
from harness.store import whole

MARK = b"damage-me-0123456789"


def flip(path, found, at=0):
    """Flips a bit in each place of the file where FOUND is, AT bytes after its beginning. Returns how many."""
    with open(path, "r+b") as file:
        data = file.read()
        places = [m.start() + at for m in re.finditer(re.escape(found), data)]
        for place in places:
            file.seek(place)
            file.write(bytes([data[place] ^ 4]))
    return len(places)


def journal(store):
    return store.path / "journal" / "gen-1" / "data.mdb"


def wait_sound(store):
    """The index is built again within seconds after a record was stored again."""
    eventually(lambda: store.kinf("verify", "--deep").status == 0, what="no fault is left")


def mark(simulator, key="ns-1/pod-1"):
    """Puts the mark into the body of one pod. Returns its key."""
    key = sorted(simulator.truth("pods"))[7] if key == "ns-1/pod-1" else key
    simulator.patch("pods", key, {"metadata": {"annotations": {"mark": MARK.decode()}}})
    return key


@pytest.fixture
def running(simulator, store):
    """(store, key): daemons run, and the pod KEY has the mark. Objects are larger than a page and smaller."""
    simulator.create("pods", 60, size=6000)
    simulator.create("configmaps", 20)
    store.configure(whole("pods", indexes={"node": "spec.nodeName"}), whole("configmaps"), mapSize="64MiB")
    store.supervisor = store.run()
    store.wait_equal(simulator, "pods")
    key = mark(simulator)
    store.wait_equal(simulator, "pods")
    store.wait_live("configmaps")
    return store, key


def uuid(store):
    return store.kinf("dump", "meta", "-o", "json", check=True).stdout.split('"uuid":"')[1][:32]


def test_a_damaged_body_that_a_reader_finds_is_listed_again(simulator, running):
    store, key = running
    before = uuid(store), store.last_event("pods"), simulator.counters("configmaps")["lists"]
    assert flip(journal(store), MARK) >= 1
    namespace, name = key.split("/")
    first = store.kinf("get", "pods", name, "-n", namespace, "-o", "json")
    assert first.status == 1 and "damaged" in first.stderr and key in first.stderr, first
    store.wait_equal(simulator, "pods")
    store.wait_live("pods")
    assert (uuid(store), store.last_event("pods"), simulator.counters("configmaps")["lists"]) == before
    assert " record_damaged " in store.supervisor.log and " records_repaired " in store.supervisor.log
    wait_sound(store)


DEFINITION = b"\xa8listKind\xa7PodList"  # in the definition of the feed of pods


def test_a_damaged_definition_of_a_feed_is_stored_again(simulator, running):
    """Nothing of the feed could be read without it."""
    store, _ = running
    before = uuid(store), store.last_event("configmaps"), simulator.counters("pods")["lists"]
    assert flip(journal(store), DEFINITION, 12) >= 1
    first = store.kinf("get", "pods")
    assert first.status == 1 and "the definition of feed 1 is damaged" in first.stderr, first
    eventually(lambda: store.kinf("get", "pods").status == 0)
    store.wait_equal(simulator, "pods")
    assert (uuid(store), store.last_event("configmaps"), simulator.counters("pods")["lists"]) == before
    assert " feed_row_damaged " in store.supervisor.log
    wait_sound(store)


def test_a_damaged_page_of_feeds_in_which_rows_can_not_be_stored_again_is_listed_anew(simulator, running):
    """All readers need it, and so do the processor and kinf-serve, which would be started again for ever."""
    store, _ = running
    before = uuid(store)
    with open(journal(store), "r+b") as file:
        data = file.read()
        for row in re.finditer(re.escape(DEFINITION), data):
            file.seek(row.start() // 4096 * 4096 + 10)
            file.write(struct.pack("<H", 4))  # the kind of page: no leaf
    assert store.kinf("get", "pods").status == 1
    eventually(lambda: store.kinf("get", "pods").status == 0)
    store.wait_equal(simulator, "pods")
    assert uuid(store) != before
    wait_sound(store)


def test_a_journal_whose_definition_of_a_feed_was_damaged_meanwhile_is_listed_anew(simulator, running):
    store, _ = running
    before = uuid(store)
    assert store.supervisor.stop() == 0
    assert flip(journal(store), DEFINITION, 12) >= 1
    supervisor = store.run()
    store.wait_equal(simulator, "pods")
    assert uuid(store) != before and "the definition of feed 1 is damaged" in supervisor.log
    wait_sound(store)


def test_a_damaged_head_that_the_building_of_an_index_finds_is_listed_anew(simulator, running):
    """It names the newest version of its object. Nothing else tells which that is, and the object does not change."""
    store, key = running
    before = uuid(store)
    assert store.supervisor.stop() == 0
    head = struct.pack(">I", 1) + key.encode()
    assert flip(journal(store), head, len(head)) >= 1
    shutil.rmtree(store.path / "index")
    supervisor = store.run()
    store.wait_equal(simulator, "pods")
    assert uuid(store) != before and "the checksum of a head" in supervisor.log
    wait_sound(store)


def test_damage_in_a_second_body_is_mended_as_well(simulator, running):
    store, _ = running
    keys = sorted(simulator.truth("pods"))
    for key in keys[20:23]:
        text = f"damage-me-{key.replace('/', '-')}-end"
        simulator.patch("pods", key, {"metadata": {"annotations": {"mark": text}}})
        store.wait_equal(simulator, "pods")
        assert flip(journal(store), text.encode()) >= 1
        store.wait_equal(simulator, "pods")
    wait_sound(store)


def test_a_damaged_body_is_found_by_the_daemons_at_their_start(simulator, running):
    """No reader reads it."""
    store, key = running
    assert store.supervisor.stop() == 0
    assert flip(journal(store), MARK) >= 1
    supervisor = store.run()
    eventually(lambda: " records_repaired " in supervisor.log)
    store.wait_equal(simulator, "pods")
    wait_sound(store)


def test_an_index_built_of_a_damaged_body_is_built_again(simulator, running):
    """The label of the damaged pod is not in the index that is built first."""
    store, key = running
    text = b"damage-me-rare-24680"
    simulator.patch("pods", key, {"metadata": {"labels": {"rare": "once"}, "annotations": {"mark": text.decode()}}})
    store.wait_equal(simulator, "pods")
    simulator.down()
    assert store.supervisor.stop() == 0
    assert flip(journal(store), text) >= 1
    shutil.rmtree(store.path / "index")
    supervisor = store.run()
    eventually(lambda: supervisor.log.count(" index_published ") == 2)
    lacking = store.kinf("get", "pods", "-l", "rare=once", "-o", "name")
    assert lacking.stdout == "" and "1 of its objects is damaged" in lacking.stderr and "label" in lacking.stderr, lacking
    simulator.up()
    store.wait_equal(simulator, "pods")
    store.wait_live("pods")
    found = store.kinf("get", "pods", "-l", "rare=once", "-o", "name")
    assert found.stdout.strip() and not found.stderr, found
    wait_sound(store)


def test_a_follower_goes_on_after_a_damaged_record_without_a_lapse(simulator, running):
    """Its cursor is before the record. The record is stored again under its number, so the follower gets it."""
    store, key = running
    follower = store.follower("watch", "pods", "-o", "json", "--no-initial", "--cursor", "c")
    eventually(lambda: (store.path / "cursors" / "c").exists())
    assert follower.stop() in (0, -signal.SIGTERM, 143)
    text = b"damage-me-again-987654321"
    simulator.patch("pods", key, {"metadata": {"annotations": {"mark": text.decode()}}})
    store.wait_equal(simulator, "pods")
    assert flip(journal(store), text) >= 1
    result = store.kinf("watch", "pods", "-o", "json", "--cursor", "c", "--count", "1")
    assert result.status == 0, result  # it may meet the damage before the reflector does
    events = result.lines
    assert [e["type"] for e in events] == ["MODIFIED"], events
    assert events[0]["object"]["metadata"]["annotations"]["mark"] == text.decode()


def test_a_watch_waits_for_a_damaged_newest_version(simulator, running):
    """While the API server is away nothing can store it again. A note says so once, and what comes after it is not given before."""
    store, key = running
    other = sorted(simulator.truth("pods"))[3]
    follower = store.follower("watch", "pods", "-o", "json", "--cursor", "c")
    eventually(lambda: [line["type"] for line in follower.lines][-1:] == ["SYNC"] and (store.path / "cursors" / "c").exists())
    assert follower.stop() == 0
    text = b"damage-me-while-away-24680"
    simulator.patch("pods", key, {"metadata": {"annotations": {"mark": text.decode()}}})
    simulator.patch("pods", other, {"metadata": {"annotations": {"mark": "sound"}}})
    store.wait_equal(simulator, "pods")
    simulator.down()
    assert flip(journal(store), text) >= 1
    follower.err_path.unlink()
    follower.out_path.unlink()
    follower.start()
    follower.wait_log(r"note: pods: .*damaged.* store again what the API server still has")
    assert follower.running and not follower.lines
    simulator.up()
    eventually(lambda: len(follower.lines) == 2, 60)
    assert [line["object"]["metadata"]["annotations"]["mark"] for line in follower.lines] == [text.decode(), "sound"]
    assert follower.stop() == 0 and follower.log.count("store again what the API server still has") == 1, follower.log
    wait_sound(store)


def test_a_version_that_is_damaged_and_replaced_makes_only_its_follower_lapse(simulator, running):
    """The API server has no such version any more."""
    store, key = running
    follower = store.follower("watch", "pods", "-o", "json", "--no-initial", "--cursor", "c")
    eventually(lambda: (store.path / "cursors" / "c").exists())
    assert follower.stop() in (0, -signal.SIGTERM, 143)
    text = b"damage-me-replaced-55555"
    simulator.patch("pods", key, {"metadata": {"annotations": {"mark": text.decode()}}})
    store.wait_equal(simulator, "pods")
    simulator.patch("pods", key, {"metadata": {"annotations": {"mark": "well"}}})
    store.wait_equal(simulator, "pods")
    assert flip(journal(store), text) >= 1
    result = store.kinf("watch", "pods", "-o", "json", "--cursor", "c", "--count", "60", timeout=30)
    assert result.status == 0 and result.lines[0]["type"] == "LAPPED", result
    shown = {f"{e['object']['metadata']['namespace']}/{e['object']['metadata']['name']}": e["object"] for e in result.lines if "object" in e}
    assert shown == simulator.truth("pods")


def test_a_live_follower_lapses_before_it_gives_a_later_change(simulator, running):
    """It has the version that is damaged, which is the old state of the next change."""
    store, key = running
    other = sorted(simulator.truth("pods"))[3]
    follower = store.follower("watch", "pods", "-o", "json", "--old")
    eventually(lambda: [line["type"] for line in follower.lines][-1:] == ["SYNC"])
    known = len(follower.lines)
    follower.send(signal.SIGSTOP)
    assert flip(journal(store), MARK) >= 1
    for changed in (key, other):
        simulator.patch("pods", changed, {"metadata": {"annotations": {"mark": "later"}}})
    store.wait_equal(simulator, "pods")
    follower.send(signal.SIGCONT)
    eventually(lambda: replay(since_lapped(follower.lines)) == simulator.truth("pods"))
    assert [line["type"] for line in follower.lines].count("LAPPED") == 1
    assert follower.lines[known]["type"] == "LAPPED", follower.lines[known]["object"]["metadata"]
    assert follower.stop() == 0


def test_a_damaged_index_that_a_reader_finds_is_built_again(simulator, running):
    """The API server is not asked."""
    store, key = running
    lists = simulator.counters("pods")["lists"]
    index = store.path / "index" / "gen-1" / "data.mdb"
    # The row `name`: key, object id u64, seq u64. Another seq is of no version of this object.
    assert flip(index, key.encode(), len(key) + 8 + 2) >= 1
    result = store.kinf("get", "pods", "-o", "json")
    assert result.status == 1 and "index" in result.stderr, result
    store.wait_equal(simulator, "pods")
    assert " index_built " in store.supervisor.log.split(" index_published ", 1)[1]
    wait_sound(store)
    assert simulator.counters("pods")["lists"] == lists


def test_false_reports_change_nothing(simulator, running):
    """Any member of the group can send them. They are checked and found to be wrong."""
    store, key = running
    directory = next(store.runtime.glob("kinf-*"))
    before = simulator.counters("pods")["lists"]
    sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    sender.setblocking(False)
    journal_uuid = bytes.fromhex(uuid(store))
    for name in ("damage.reflector", "damage.processor"):
        for number in range(300):
            for text in (struct.pack("<IIQ16s", 0x31474D44, 1, number, journal_uuid), b"", b"x" * 5000, os.urandom(32)):
                try:
                    sender.sendto(text, str(directory / name))
                except OSError:  # the queue is full
                    pass
    simulator.touch("pods", 5)
    store.wait_equal(simulator, "pods")
    assert simulator.counters("pods")["lists"] == before
    status = store.kinf("status", "-o", "json", check=True).json
    assert [p["restarts"] for p in status["processes"] if "restarts" in p] == [0] * len(status["processes"]), status
    assert (store.path / "index" / "CURRENT").read_text() == "gen-1\n"
    assert " record_damaged " not in store.supervisor.log


def test_history_and_log_give_no_damaged_version(simulator, store):
    """They read the log itself, where no record was checked."""
    simulator.create("pods", 10)
    daemons = store.configure(whole("pods"), mapSize="64MiB").daemons()
    store.wait_equal(simulator, "pods")
    key = mark(simulator)
    store.wait_equal(simulator, "pods")
    for process in reversed(daemons):
        process.stop()
    commands = ["history", "pods", key, "-o", "json"], ["log", "pods", "-o", "json"]
    for command in commands:
        assert MARK.decode() in store.kinf(*command, check=True).stdout
    assert flip(journal(store), MARK, at=3)
    for command in commands:
        result = store.kinf(*command)
        assert result.status == 1 and "is damaged" in result.stderr and "me-0123456789" not in result.stdout, result
