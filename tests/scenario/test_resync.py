# SPDX-License-Identifier: Apache-2.0
"""The key `resync` of a feed in kinf.yaml, the default of informers: they read it from the store.

tests/unit/test_informer_resync.c tests the choice of the period, tests/unit/test_resync.c the due
times."""

import signal

import pytest

from harness import eventually
from harness.informer import calls, informer, synced
from harness.store import whole

PODS = 3
QUICK = {"min": "10ms", "max": "20ms"}


@pytest.fixture
def reflector(simulator, store):
    simulator.create("pods", PODS)
    _, reflector = store.start(simulator, whole("pods"), backoff=QUICK)
    simulator.wait_watching("pods")
    simulator.forget_requests()
    return reflector


def tune(store, reflector, **settings):
    store.configure(whole("pods", **settings), backoff=QUICK)
    reflector.send(signal.SIGHUP)
    eventually(lambda: store.feed_status("pods")["resyncSeconds"] == int(settings.get("resync", "0s")[:-1]))


def resyncs(process):
    """The number of repeated updates of the same object; the cluster changes nothing meanwhile."""
    updates = calls(process, "update")
    assert all(line["old"] == line["rv"] for line in updates)
    return len(updates)


def test_running_informers_adopt_a_changed_resync(simulator, store, reflector):
    feed = store.feed_status("pods")
    assert feed["resyncSeconds"] == 0
    process, own = synced(informer(store)), synced(informer(store, "--no-resync", name="own"))
    tune(store, reflector, resync="1s")
    eventually(lambda: resyncs(process) >= 2 * PODS, what="two resyncs")
    assert {line["key"] for line in calls(process, "update")} == set(simulator.truth("pods"))
    tune(store, reflector)
    assert not resyncs(own), "this informer has asked for no resync"
    assert not calls(process, "lapped") and len(calls(process, "sync")) == 1
    assert store.feed_status("pods")["id"] == feed["id"], "the feed was not replaced"
    assert not simulator.requests(resource="pods", verb="list"), "the change caused no list"
    assert process.stop() == own.stop() == 0


def test_a_changed_resync_is_stored_without_the_server(simulator, store, reflector):
    """kinf.yaml changes while the reflector and the server are away. The reflector's first commit fails for lack of
    disk space."""
    simulator.down()
    reflector.kill()
    store.configure(whole("pods", resync="2s"), backoff=QUICK)
    reflector = store.reflector(env={"KINF_FAIL": "journal.before_commit:1:error=ENOSPC"})
    eventually(lambda: store.feed_status("pods")["resyncSeconds"] == 2)
    reflector.wait_log("work_failed")
    tune(store, reflector, resync="1s")
    store.stop()
    assert store.feed_status("pods")["resyncSeconds"] == 1
    process = synced(informer(store))
    eventually(lambda: resyncs(process) >= PODS)
    assert process.stop() == 0
    store.verify()
