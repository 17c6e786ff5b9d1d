# SPDX-License-Identifier: Apache-2.0
"""An etcd restored from a backup, of the whole cluster or of one aggregated API: resourceVersions
occur a second time, for other states. The reflector must notice and list again."""

import signal

import pytest

from harness import eventually
from harness.aggregator import Aggregator
from harness.follow import replay, since_lapped
from harness.store import whole

GADGET = {"group": "extension.example.com", "version": "v1", "resource": "gadgets", "kind": "Gadget"}
GADGETS = "gadgets.extension.example.com"


def gadget(name, value):
    return {"apiVersion": "extension.example.com/v1", "kind": "Gadget",
            "metadata": {"name": name, "namespace": "web"}, "spec": {"value": value}}


def pod(name, value):
    return {"metadata": {"name": name, "namespace": "web", "labels": {"value": value}}, "spec": {}}


def rewrite_history(simulator, resource, make):
    """Saves the cluster's state. Returns two functions: the first changes objects; the second
    restores the saved state and makes other changes with the same resourceVersions."""
    simulator.settings(futureWaitMs=100)
    simulator.put(resource, [make("a", "first"), make("b", "first")])
    simulator.save()

    def change():
        simulator.put(resource, make("a", "before the restore"))
        simulator.put(resource, make("gone", "before the restore"))
        simulator.touch(resource, 10)

    def restore():
        simulator.restore()
        simulator.put(resource, make("a", "after the restore"))

    return change, restore


def journal(store):
    return store.kinf("status", "-o", "json", check=True).json["store"]["uuid"]


def kinds(follower):
    return [line["type"] for line in follower.lines]


@pytest.fixture
def aggregated(workspace):
    """(core, extension, store): the simulator `extension` serves gadgets, as an aggregated API server with its own
    etcd."""
    core, extension = workspace.simulator(), workspace.simulator()
    for simulator in (core, extension):
        simulator.add_kind(**GADGET)
    front = Aggregator(core, {"/apis/extension.example.com/": extension})
    workspace.started.append(front)
    store = workspace.store(simulator=front)
    return core, extension, store.configure(whole("pods"), whole(GADGETS))


def test_only_the_feed_of_an_aggregated_api_that_went_back_is_listed_again(aggregated):
    core, extension, store = aggregated
    core.put("pods", [pod("a", "1")])
    core.settings(bookmarkMs=50)
    change, restore = rewrite_history(extension, GADGETS, gadget)
    store.daemons()
    store.wait_synced(GADGETS)
    change()
    store.wait_equal(extension, GADGETS)
    store.wait_equal(core, "pods")
    follower = store.follower("watch", GADGETS, "-o", "json", "--old")
    eventually(lambda: "SYNC" in kinds(follower))
    before, pods = journal(store), store.feed_status("pods")
    core.forget_requests()

    restore()
    store.wait_equal(extension, GADGETS)
    assert journal(store) == before, "the other feeds keep their journal"
    assert core.counters("pods")["lists"] == core.counters("pods")["watches"] == 0
    assert store.feed_status("pods")["id"] == pods["id"]
    eventually(lambda: "LAPPED" in kinds(follower))
    eventually(lambda: replay(since_lapped(follower.lines)) == store.objects(GADGETS))
    extension.put(GADGETS, gadget("after", "1"))
    store.wait_equal(extension, GADGETS)
    eventually(lambda: replay(since_lapped(follower.lines)) == store.objects(GADGETS))
    store.verify()


def test_a_feed_that_went_back_is_replaced_over_a_restart(aggregated):
    """The reflector is killed after it added the new feed and before the feed's first list. After
    the restart there is no third feed, and the old one is removed."""
    core, extension, store = aggregated
    change, restore = rewrite_history(extension, GADGETS, gadget)
    _, reflector = store.daemons()
    store.wait_synced(GADGETS)
    change()
    store.wait_equal(extension, GADGETS)
    # The list detecting the restore passes; the new feed's own list fails.
    fault = extension.fault(resource=GADGETS, verb="list", after=1, status=500)
    restore()
    reflector.wait_log(r"feed_failed feed=\S+next")
    reflector.kill()
    extension.clear_faults(fault)
    reflector.start()
    store.wait_equal(extension, GADGETS)
    names = [f["name"] for f in store.kinf("status", "-o", "json", check=True).json["feeds"]]
    assert sorted(names) == [GADGETS, "pods"], names
    store.verify()


def test_a_cluster_that_went_back_in_time_gets_a_new_journal(simulator, store):
    change, restore = rewrite_history(simulator, "pods", pod)
    store.start_synced(whole("pods"), whole("services"))
    change()
    store.wait_equal(simulator, "pods")
    follower = store.follower("watch", "pods", "-o", "json", "--old", "--cursor", "mine")
    eventually(lambda: "SYNC" in kinds(follower))
    before = journal(store)

    restore()
    store.wait_equal(simulator, "pods")
    assert journal(store) != before
    restarts = {p["name"]: p["restarts"] for p in store.kinf("status", "-o", "json", check=True).json["processes"] if "restarts" in p}
    assert restarts == {"kinf-reflector": 0, "kinf-processor": 0}, "another journal is no restart"
    eventually(lambda: "LAPPED" in kinds(follower))
    eventually(lambda: replay(since_lapped(follower.lines)) == store.objects("pods"))
    store.verify()


def test_feed_ids_of_another_journal_are_not_followed(simulator, store):
    """In the new journal the feed of pods has the old journal's id of services."""
    simulator.create("pods", 3)
    simulator.create("services", 5)
    _, reflector = store.configure(whole("pods"), whole("services")).daemons()
    store.wait_synced("services")
    before = journal(store)
    follower = store.follower("watch", "pods", "-o", "json", env={"KINF_FAIL": "watch.feeds:1:stop"})
    eventually(lambda: follower.stopped)

    reflector.stop()
    simulator.new_identity()
    store.configure(whole("services"), whole("pods"))
    reflector.start()
    eventually(lambda: journal(store) != before)
    follower.send(signal.SIGCONT)
    eventually(lambda: "SYNC" in kinds(follower))
    assert {line["object"]["kind"] for line in follower.lines if "object" in line} == {"Pod"}
    assert replay(since_lapped(follower.lines)) == store.objects("pods")
