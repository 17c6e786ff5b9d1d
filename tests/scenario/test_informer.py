# SPDX-License-Identifier: Apache-2.0
"""Informers of libkinf in a separate program (tests/programs/informer.c), with the real daemons."""

import signal

import pytest

from harness import eventually
from harness.informer import calls, informer, replay, synced, truth
from harness.simulator import object_key
from harness.store import whole


def ends_equal(simulator, process, lines=lambda process: process.lines):
    eventually(lambda: replay(lines(process)) == truth(simulator), what="as in the cluster")


def fill(simulator, store, **settings):
    simulator.create("pods", 40)
    daemons = store.start(simulator, whole("pods"), **settings)
    return daemons


@pytest.fixture
def filled(simulator, store):
    return fill(simulator, store)


def test_a_handler_gets_each_change_once_while_daemons_are_killed(simulator, store, filled):
    process = synced(informer(store))
    initial = [line for line in process.lines if line.get("initial")]
    assert len(initial) == 40 and process.lines.index(initial[-1]) < process.lines.index(calls(process, "sync")[0])
    simulator.churn("pods", 200, 40)
    for daemon in filled:
        before = len(process.lines)
        eventually(lambda: len(process.lines) > before + 40)
        daemon.kill()
        daemon.start()
    simulator.churn("pods", 0)
    ends_equal(simulator, process)
    assert not calls(process, "lapped") and len(calls(process, "sync")) == 1
    assert process.stop() == 0


def test_a_cursor_survives_a_killed_program(simulator, store, filled):
    process = synced(informer(store, "--cursor", "c"))
    cursor = store.path / "cursors" / "c"
    eventually(cursor.exists, what="the cursor")
    simulator.churn("pods", 100, 40)
    for _ in range(3):
        before = len(process.lines)
        eventually(lambda: len(process.lines) > before + 20)
        process.kill()
        syncs = len(calls(process, "sync"))
        process.start()
    simulator.churn("pods", 0)
    eventually(lambda: len(calls(process, "sync")) > syncs, what="the program that was started last has synced")

    def state():
        """The state after all calls; a call repeated after a kill changes nothing in it."""
        known = {}
        for line in calls(process, "add", "update", "delete"):
            known[line["key"]] = None if line["call"] == "delete" else line["rv"]
        return {key: rv for key, rv in known.items() if rv}

    eventually(lambda: state() == truth(simulator), what="as in the cluster")
    assert not calls(process, "lapped") and len(calls(process, "sync")) >= 2
    assert len([line for line in process.lines if line.get("initial")]) == 40, "the initial state came once"
    assert process.stop() == 0


def test_an_informer_gets_objects_without_dropped_fields(simulator, store):
    simulator.create("pods", 5)
    store.configure({"resource": "pods", "drop": ["spec", "status"]}).daemons()
    store.wait_synced("pods")
    process = synced(informer(store, "--objects"))
    key = object_key(next(iter(simulator.truth("pods").values())))
    simulator.patch("pods", key, {"metadata": {"labels": {"x": "y"}}})
    simulator.delete("pods", key)
    eventually(lambda: calls(process, "delete"))
    shown = [line[name] for line in process.lines for name in ("object", "oldObject") if name in line]
    assert len(shown) == 5 + 2 + 1
    assert all("metadata" in o and "spec" not in o and "status" not in o for o in shown)
    assert process.stop() == 0


def test_a_program_that_writes_into_an_object_crashes_there(store, filled):
    process = informer(store, "--spoil")
    assert process.wait() == -signal.SIGSEGV
    assert not calls(process, "add"), "the program crashes in its first handler call"
    store.verify()


def test_a_handler_gets_each_state_of_the_feed_once(simulator, store, filled):
    simulator.wait_watching("pods")
    process = synced(informer(store))
    states = lambda: [(line["state"], line["error"]) for line in calls(process, "state")]
    eventually(lambda: states()[-1:] == [("live", False)])
    simulator.down()
    eventually(lambda: states()[-1:] == [("stale", True)])
    simulator.up()
    eventually(lambda: states()[-1:] == [("live", False)], timeout=60)
    told = [state for state, _ in states()]
    assert all(a != b for a, b in zip(told, told[1:])), "a state is reported only when it changed"
    assert process.stop() == 0
