# SPDX-License-Identifier: Apache-2.0
"""holdMassDelete: the reflector applies a list without most known objects only after a second list confirms it."""

import json

import pytest

from harness import eventually
from harness.store import whole

GUARD = {"holdMassDelete": {"share": "50%", "pause": "700ms"}}


@pytest.fixture
def listed(simulator, store):
    """100 pods in the store, and the stopped reflector."""
    simulator.create("pods", 100)
    _, reflector = store.start(simulator, whole("pods"), **GUARD)
    reflector.stop()
    return reflector


def relist(simulator, reflector):
    """Starts the reflector after the server has lost its history: it must list."""
    simulator.touch("pods", 1)
    simulator.compact()
    simulator.forget_requests()
    reflector.start()


def wait_held(store, lacks):
    """Waits until the status reports the held list; the objects must still be there."""

    def held():
        status = store.feed_status("pods")
        assert f"lacks {lacks} of 100 objects" in (status["lastError"] or ""), status
        assert status["state"] == "stale" and status["objects"] == 100, status
        return True

    eventually(held, what="the list is held")


def test_a_wrong_empty_list_is_held_and_deletes_nothing(simulator, store, listed):
    follower = store.follower("watch", "pods", "-o", "json", "--no-initial")
    eventually(lambda: follower.lines, what="SYNC")
    empty = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "999999"}, "items": []}
    simulator.fault(verb="list", resource="pods", count=1, body=json.dumps(empty))
    relist(simulator, listed)
    wait_held(store, 100)
    store.wait_equal(simulator, "pods")
    store.wait_live("pods")
    assert simulator.counters("pods")["lists"] == 2
    assert listed.log.count("feed_list_held") == 1
    eventually(lambda: len(follower.lines) >= 2, what="the touched pod")
    assert [line["type"] for line in follower.lines] == ["SYNC", "MODIFIED"]


def test_a_true_mass_delete_is_applied_from_the_second_list(simulator, store, listed):
    simulator.delete_many("pods", 80)
    relist(simulator, listed)
    wait_held(store, 80)
    store.wait_equal(simulator, "pods")
    store.wait_live("pods")
    assert len(store.objects("pods")) == 20 and simulator.counters("pods")["lists"] == 2
    store.verify()


def test_a_list_that_lacks_half_is_applied_at_once(simulator, store, listed):
    simulator.delete_many("pods", 50)
    relist(simulator, listed)
    store.wait_equal(simulator, "pods")
    assert simulator.counters("pods")["lists"] == 1 and "feed_list_held" not in listed.log


def test_new_objects_do_not_hide_missing_ones_and_the_third_list_is_checked_again(simulator, store, listed):
    simulator.delete_many("pods", 80)
    simulator.create("pods", 200, prefix="new-")
    relist(simulator, listed)
    wait_held(store, 80)
    store.wait_equal(simulator, "pods")
    store.wait_live("pods")
    listed.stop()
    simulator.delete_many("pods", 150)
    relist(simulator, listed)
    eventually(lambda: "lacks 150 of 220 objects" in (store.feed_status("pods")["lastError"] or ""))
    store.wait_equal(simulator, "pods")
