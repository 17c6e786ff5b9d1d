# SPDX-License-Identifier: Apache-2.0
"""Retention: the reflector trims history after retention.time, keeps the cursors' part, and bounds the files."""

import os
import re
import time

import pytest

from harness import eventually
from harness.follow import replay
from harness.store import whole


def store_status(store):
    return store.kinf("status", "-o", "json", check=True).json["store"]


def test_files_stay_bounded_under_churn(simulator, store):
    simulator.create("pods", 300, size=4000)
    store.start(simulator, whole("pods", indexes={"node": "spec.nodeName"}), retention={"time": "300ms", "size": "64MiB"})

    def rounds(count):
        for _ in range(count):
            simulator.touch("pods")
            simulator.delete_many("pods", 20)
            simulator.create("pods", 20, from_=0, size=4000)
        store.wait_equal(simulator, "pods")
        eventually(lambda: store_status(store)["horizon"] >= store_status(store)["lastEvent"] - 1, what="trimmed")
        status = store_status(store)
        return status["journal"]["usedBytes"], status["index"]["usedBytes"]

    rounds(2)
    first = rounds(4)
    second = rounds(12)
    # 18 rounds wrote some 25 MB; the live objects take about 1.5 MB.
    assert second[0] < first[0] * 1.5 + (1 << 20) and second[1] < first[1] * 1.5 + (1 << 20), (first, second)
    store.verify()


def test_log_from_an_event_that_is_no_longer_kept_says_so(simulator, store):
    simulator.create("pods", 10)
    store.start(simulator, whole("pods"), retention={"time": "100ms", "size": "64MiB"})
    simulator.touch("pods")
    store.wait_equal(simulator, "pods")
    eventually(lambda: store_status(store)["horizon"] >= 12)

    def says_so():  # unless the next changes are trimmed meanwhile
        note = f"note: the changes before event {store_status(store)['horizon'] + 1} are no longer kept"
        old, all_of_it = store.kinf("log", "--from", "3", check=True), store.kinf("log", check=True)
        assert note in old.stderr and note not in all_of_it.stderr and old.stdout == all_of_it.stdout, old
        return True

    eventually(says_so)


def test_an_export_without_a_feed_whose_past_is_no_longer_kept_is_none(simulator, store):
    simulator.create("pods", 3)
    simulator.create("nodes", 2)
    store.start(simulator, whole("pods"), whole("nodes"), retention={"time": "100ms", "size": "64MiB"})
    at = str(store_status(store)["lastEvent"])
    simulator.touch("pods")
    store.wait_equal(simulator, "pods")
    eventually(lambda: "is not kept" in store.kinf("get", "pods", "--at", at).stderr, what="trimmed")
    exported = store.kinf("export", "--at", at)
    assert exported.status == 1 and "Error: not exported: the state of 'pods' as of event" in exported.stderr, exported
    assert [item["kind"] for item in exported.json["items"]] == ["Node"] * 2


def test_a_cursor_holds_history(simulator, store):
    simulator.create("pods", 50)
    store.start(simulator, whole("pods"), retention={"time": "100ms", "size": "64MiB"})
    first = store.follower("watch", "pods", "-o", "json", "--old", "--cursor", "slow", name="first")
    eventually(lambda: "SYNC" in first.out)
    assert first.stop() == 0
    state = replay(first.lines)
    held = store_status(store)["lastEvent"]
    for _ in range(10):
        simulator.touch("pods")
    store.wait_equal(simulator, "pods")
    simulator.create("nodes", 1)
    eventually(lambda: store_status(store)["lastEvent"] >= held + 500)
    assert store_status(store)["horizon"] <= held
    second = store.follower("watch", "pods", "-o", "json", "--old", "--cursor", "slow", name="second")
    truth = simulator.truth("pods")
    eventually(lambda: replay(second.lines, state) == truth)
    assert len([line for line in second.lines if "object" in line]) == 500
    assert second.stop() == 0
    store.kinf("cursor", "rm", "slow", check=True)
    simulator.touch("pods", 1)
    eventually(lambda: store_status(store)["horizon"] > held + 400, what="history trimmed")
    store.verify()


def test_an_expired_cursor_holds_nothing_and_is_removed(simulator, store):
    """One cursor was written a year ago, the other by a clock a year ahead. Neither holds history;
    the reflector removes the old one."""
    simulator.create("pods", 50)
    store.start(simulator, whole("pods"), retention={"time": "100ms", "size": "64MiB"}, cursorExpiry="1h")
    follower = store.follower("watch", "pods", "-o", "json", "--cursor", "c")
    eventually(lambda: "SYNC" in follower.out)
    follower.stop()
    cursors = store.path / "cursors"
    text = (cursors / "c").read_text()
    for process in store.processes:
        if process.running:
            process.stop()
    (cursors / "c").unlink()
    year = 365 * 24 * 3600
    for name, ahead in (("old", -year), ("ahead", year)):
        (cursors / name).write_text(re.sub(r"written \d+", f"written {int((time.time() + ahead) * 1e9)}", text))
        os.utime(cursors / name, (time.time() + ahead,) * 2)
    store.daemons()
    simulator.touch("pods")
    store.wait_equal(simulator, "pods")
    eventually(lambda: store_status(store)["horizon"] >= store_status(store)["lastEvent"] - 1, what="trimmed")
    eventually(lambda: [path.name for path in cursors.iterdir()] == ["ahead"], what="the oldest is removed")


def test_the_size_limit_trims_beyond_cursors(simulator, store):
    simulator.create("pods", 100, size=3000)
    store.start(simulator, whole("pods"), retention={"time": "1h", "size": "1MiB"})
    follower = store.follower("watch", "pods", "-o", "json", "--cursor", "slow")
    eventually(lambda: "SYNC" in follower.out)
    follower.stop()
    begin = store_status(store)["lastEvent"]

    def trimmed():
        simulator.touch("pods")
        return store_status(store)["horizon"] > begin

    eventually(trimmed, what="trimmed beyond the cursor")
    store.wait_equal(simulator, "pods")
    store.verify()


def test_the_size_limit_counts_records_of_earlier_reflectors(simulator, store):
    """Each run of the reflector writes less than retention.size, all runs together much more."""
    simulator.create("pods", 100, size=3000)
    _, reflector = store.start(simulator, whole("pods"), retention={"time": "1h", "size": "1MiB"})
    for _ in range(6):
        for _ in range(2):
            simulator.touch("pods")
        store.wait_equal(simulator, "pods")
        reflector.kill()
        reflector.start()
    # A record of an object of 3000 bytes takes at least 1500 bytes.
    history = lambda: (s := store_status(store))["lastEvent"] - s["horizon"]
    eventually(lambda: history() <= (1 << 20) // 1500, what="trimmed to the size")
    assert history() > 100, "not trimmed further than needed"
    store.verify()


def test_the_size_limit_holds_after_bursts(simulator, store):
    """Each burst writes four times retention.size; the file does not grow with the number of bursts."""
    simulator.create("pods", 1000, size=3000)
    store.start(simulator, whole("pods"), retention={"time": "1h", "size": "1MiB"})

    def trimmed():
        status = store_status(store)
        return status["lastEvent"] >= events and status["lastEvent"] - status["horizon"] <= (1 << 20) // 1500

    for _ in range(6):
        events = store_status(store)["lastEvent"] + 1000
        simulator.touch("pods")
        eventually(trimmed)
    # 28 MB were written; the live objects take 4 MB, and a burst another 4 MB.
    assert store_status(store)["journal"]["fileBytes"] < 20 << 20
    store.verify()


@pytest.mark.parametrize("point", ["journal.trim:2:kill", "journal.trimmed:1:kill"])
def test_trimming_resumes_after_a_kill(simulator, store, point):
    simulator.create("pods", 100)
    processor, reflector = store.start(simulator, whole("pods"), retention={"time": "100ms", "size": "64MiB"})
    reflector.kill()
    simulator.touch("pods")
    reflector.env["KINF_FAIL"] = point
    reflector.start()

    def ended():
        if reflector.running:
            simulator.touch("pods", 20)
        return not reflector.running

    eventually(ended, what=f"killed at {point}")
    del reflector.env["KINF_FAIL"]
    reflector.start()
    simulator.touch("pods")
    store.wait_equal(simulator, "pods")
    eventually(lambda: store_status(store)["horizon"] >= store_status(store)["lastEvent"] - 1)
    store.verify()
