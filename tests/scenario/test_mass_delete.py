# SPDX-License-Identifier: Apache-2.0
"""holdMassDelete: a list that lacks most of what is known is believed when a second one says so."""

import json

import pytest

from harness import eventually
from harness.store import whole

GUARD = {"holdMassDelete": {"share": "50%", "pause": "700ms"}}


@pytest.fixture
def listed(simulator, store):
    """100 pods in the cache of a reflector that has been stopped, and history gone: it will list."""
    simulator.create("pods", 100)
    store.configure(whole("pods"), **GUARD)
    _, reflector = store.daemons()
    store.wait_equal(simulator, "pods")
    reflector.stop()
    return reflector


def relist(simulator, reflector):
    simulator.touch("pods", 1)
    simulator.compact()
    simulator.forget_requests()
    reflector.start()


def wait_held(store, lacks):
    """Said in the status; the objects are still there."""

    def held():
        status = store.feed_status("pods")
        assert f"lacks {lacks} of 100 objects" in (status["lastError"] or ""), status
        assert status["state"] == "stale" and status["objects"] == 100, status
        return True

    eventually(held, what="the list is held")


def test_a_wrong_empty_list_is_held_and_deletes_nothing(simulator, store, listed):
    events = store.follower("watch", "pods", "-o", "json", "--no-initial")
    empty = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "999999"}, "items": []}
    simulator.fault(verb="list", resource="pods", count=1, body=json.dumps(empty))
    relist(simulator, listed)
    wait_held(store, 100)
    store.wait_equal(simulator, "pods")
    store.wait_live("pods")
    assert simulator.counters("pods")["lists"] == 2
    assert listed.log.count("feed_list_held") == 1
    assert not [line for line in events.lines if line["type"] == "DELETED"]


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
