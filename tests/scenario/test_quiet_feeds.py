# SPDX-License-Identifier: Apache-2.0
"""Feeds that nothing happens to and whose watch has no bookmarks, as that of Events: their resourceVersion stays young enough
to begin a watch with."""

import pytest

from harness import eventually
from harness.store import whole


@pytest.fixture
def quiet(simulator, store):
    """A feed of pods whose watches are opened again every few seconds; nodes move the cluster's version on."""
    simulator.settings(bookmarkMs=0)
    simulator.create("pods", 30, namespaces=3)
    store.start(simulator, whole("pods", pageSize=10), watchTimeout="2s")
    simulator.wait_watching("pods")
    return next(process for process in store.processes if "kinf-reflector" in process.name)


def metadata_lists(simulator):
    return [r for r in simulator.requests(verb="list", resource="pods") if "PartialObjectMetadataList" in r["accept"]]


def test_a_quiet_feed_keeps_its_version_young_without_a_list(simulator, store, quiet):
    """It ran into 410 each time its watch was opened again after etcd had forgotten its version: a list and a warning."""
    before = store.feed_status("pods")
    rv = simulator.create("nodes", 3)
    eventually(lambda: store.feed_status("pods")["resourceVersion"] == rv)
    simulator.compact()
    watches = simulator.counters("pods")["watches"]
    eventually(lambda: simulator.counters("pods")["watches"] >= watches + 2, what="the watch is opened again")
    asked = ["renewal" if "Partial" in r["accept"] else r["verb"] for r in simulator.requests(resource="pods")]
    assert asked[:asked.index("renewal")].count("watch") == 1, "the renewal does not wait until the watch ends"
    after = store.feed_status("pods")
    assert after["lists"] == before["lists"] == 1 and "feed_failed" not in quiet.log, quiet.log
    assert store.last_event("pods") == 30 + 3, "the 30 objects, and the brackets of one list"
    # Pods is quiet no more.
    simulator.touch("pods")
    store.wait_equal(simulator, "pods")
    store.verify()


def test_a_watch_that_lost_events_is_not_moved_past_them(simulator, store, quiet):
    """What the feed lacks it would lack for ever: the 410 that follows lists it."""
    simulator.swallow("pods", 5)
    simulator.touch("pods", 5)
    rv = store.feed_status("pods")["resourceVersion"]
    asked = len(metadata_lists(simulator))
    eventually(lambda: len(metadata_lists(simulator)) > asked + 1)
    store.wait_equal(simulator, "pods")
    assert int(store.feed_status("pods")["resourceVersion"]) >= int(rv)


def test_a_feed_with_bookmarks_is_not_asked(simulator, store, quiet):
    simulator.settings(bookmarkMs=100)
    watches = simulator.counters("pods")["watches"]
    eventually(lambda: simulator.counters("pods")["watches"] >= watches + 1, what="a watch that gets bookmarks")
    asked = len(metadata_lists(simulator))
    watches = simulator.counters("pods")["watches"]
    eventually(lambda: simulator.counters("pods")["watches"] >= watches + 2)
    assert len(metadata_lists(simulator)) == asked
