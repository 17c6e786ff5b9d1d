# SPDX-License-Identifier: Apache-2.0
"""Feeds begin, stop and are replaced: resources appear and disappear, rights and the configuration change."""

import json
import signal
from statistics import quantiles
import pytest

from harness import eventually
from harness.store import whole

GADGET = {"group": "late.example.com", "version": "v1", "resource": "gadgets", "kind": "Gadget"}
GADGETS = "gadgets.late.example.com"
QUICK = {"recheck": "200ms", "backoff": {"min": "20ms", "max": "100ms"}}
FORBIDDEN = {
    "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403,
    "message": "pods is forbidden: User cannot list resource",
}


def gadget(name):
    return {"apiVersion": "late.example.com/v1", "kind": "Gadget", "metadata": {"name": name, "namespace": "web"}}


def pod(name, app="front"):
    return {"metadata": {"name": name, "namespace": "web", "labels": {"app": app}}, "spec": {"nodeName": "n1"}}


def feeds_of(store):
    return {f["name"]: f for f in store.kinf("status", "-o", "json", check=True).json["feeds"]}


def wait_state(store, feed, state):
    def reached():
        found = feeds_of(store).get(feed)
        assert found and found["state"] == state, found
        return found

    return eventually(reached, what=f"{feed} {state}")


def lines_of(process, *words):
    return [line for line in process.log.splitlines() if all(word in line for word in words)]


# ---- resources -------------------------------------------------------------------------------------


def test_a_feed_of_a_missing_resource_begins_when_the_resource_appears(simulator, store):
    _, reflector = store.start_live(whole("pods"), whole(GADGETS), **QUICK)
    waiting = wait_state(store, GADGETS, "error")
    assert "no resource" in waiting["lastError"] and waiting["synced"] is False, waiting
    eventually(lambda: feeds_of(store)[GADGETS]["retries"] > 2)
    assert GADGETS in store.kinf("status", check=True).stdout
    for name in (GADGETS, GADGETS.partition(".")[0]):
        result = store.kinf("get", name)
        assert result.status == 1 and f"feed '{GADGETS}' can't be read yet: the server has no resource" in result.stderr, result
    simulator.add_kind(**GADGET)
    simulator.put(GADGETS, gadget("a"))
    store.wait_equal(simulator, GADGETS)
    assert list(feeds_of(store)).count(GADGETS) == 1
    assert len(lines_of(reflector, "unresolved")) == 1, "it is logged once"


def test_c47_a_feed_is_gone_with_its_definition_and_lists_when_the_definition_returns(simulator, store):
    simulator.add_kind(**GADGET)
    simulator.put(GADGETS, [gadget("a"), gadget("b")])
    store.configure(whole("pods"), whole(GADGETS), **QUICK)
    _, reflector = store.daemons()
    store.wait_equal(simulator, GADGETS)
    pods = feeds_of(store)["pods"]
    simulator.forget_requests()

    simulator.remove_kind(GADGETS)
    gone = wait_state(store, GADGETS, "gone")
    assert gone["objects"] == 0, "the server deletes the objects before the definition"
    eventually(lambda: len([r for r in simulator.requests() if r["verb"] == "discovery"]) > 6, what="discovery requests")
    assert simulator.counters(GADGETS)["lists"] == 0, "the feed repeats discovery and does not list"
    assert len(lines_of(reflector, GADGETS)) <= 5, "one line for each change of state"

    simulator.add_kind(**GADGET)
    simulator.put(GADGETS, gadget("c"))
    store.wait_equal(simulator, GADGETS)
    wait_state(store, GADGETS, "live")
    assert simulator.counters("pods")["watches"] == simulator.counters("pods")["lists"] == 0
    assert feeds_of(store)["pods"]["id"] == pods["id"]


def test_a_feed_does_not_become_another_groups(simulator, store):
    """Its own resource was away for a moment, and the name meant the other one from then on."""
    simulator.add_kind(**GADGET)
    simulator.add_kind(**{**GADGET, "group": "other.example.com"})
    simulator.put(GADGETS, gadget("a"))
    store.configure(whole("gadgets"), **QUICK)
    _, reflector = store.daemons()
    wait_state(store, "gadgets", "live")
    simulator.remove_kind(GADGETS)
    wait_state(store, "gadgets", "gone")
    simulator.add_kind(**GADGET)
    simulator.put(GADGETS, gadget("b"))
    wait_state(store, "gadgets", "live")
    assert store.kinf("get", "gadgets", "-o", "name", check=True).stdout == "gadget.late.example.com/b\n"
    assert not lines_of(reflector, "feed_removed")


@pytest.mark.parametrize("change", ["scope", "kind"])
@pytest.mark.parametrize("namespaced", [True, False])
def test_c37_a_resource_that_was_made_again_as_another_one_is_another_feed(simulator, store, change, namespaced):
    """The requests for the old one never fail: it is made again while the server is away."""
    def objects(names, in_namespaces, kind="Gadget"):
        spaces = ["web", "shop"] if in_namespaces else [None]
        return [{**gadget(n), "kind": kind, "metadata": {"name": n, **({"namespace": s} if s else {})}} for n in names for s in spaces]

    simulator.add_kind(**GADGET, namespaced=namespaced)
    simulator.put(GADGETS, objects("a", namespaced))
    store.configure(whole("pods"), whole(GADGETS), **QUICK).daemons()
    store.wait_equal(simulator, GADGETS)
    simulator.down()
    simulator.remove_kind(GADGETS)
    if change == "scope":
        namespaced = not namespaced
    kind = "Device" if change == "kind" else "Gadget"
    simulator.add_kind(**{**GADGET, "kind": kind}, namespaced=namespaced)
    simulator.put(GADGETS, objects("bc", namespaced, kind))
    simulator.compact()
    simulator.up()
    store.wait_equal(simulator, GADGETS)
    wait_state(store, GADGETS, "live")
    assert not feeds_of(store)[GADGETS]["lastError"]
    store.verify()


def test_c47_objects_stay_when_the_server_loses_their_resource(simulator, store):
    """The server has lost the whole API and sent no DELETED: readers get the objects with a note about their age."""
    simulator.add_kind(**GADGET)
    simulator.put(GADGETS, gadget("a"))
    store.configure(whole(GADGETS), **QUICK)
    store.daemons()
    store.wait_equal(simulator, GADGETS)
    fault = simulator.fault(path="late.example.com", status=404, body="404 page not found")
    simulator.drop()
    wait_state(store, GADGETS, "gone")
    kept = store.kinf("get", GADGETS, "-o", "name", check=True)
    assert kept.stdout == "gadget.late.example.com/a\n" and "gone" in kept.stderr, kept
    simulator.clear_faults(fault)
    wait_state(store, GADGETS, "live")


@pytest.mark.parametrize("condition", ["object=web/late", "rv=TARGET"])
def test_wait_tells_that_its_feed_was_removed_and_goes_on_when_it_is_back(simulator, store, condition):
    simulator.put("pods", pod("first"))
    target = int(simulator.rv) + 5
    store.start(simulator, whole("pods"), whole("nodes"), **QUICK)
    waiting = store.follower("wait", "pods", "--for", condition.replace("TARGET", str(target)), name="kinf-wait")
    store.configure(whole("nodes"), **QUICK)
    store.kinf("reload", check=True)
    waiting.wait_log("note: waiting; no feed 'pods'")
    store.configure(whole("pods"), whole("nodes"), **QUICK)
    store.kinf("reload", check=True)
    store.wait_equal(simulator, "pods")
    assert waiting.running
    simulator.put("pods", pod("late"))
    while int(simulator.rv) < target:
        simulator.touch("pods")
    assert waiting.wait(30) == 0, waiting.tail()


def test_pauses_between_discovery_requests_are_random(simulator, store):
    """A thousand machines without the same resource must not send their requests at the same moment."""
    pause = 0.15
    store.configure(whole("pods"), whole(GADGETS), recheck=f"{pause * 1000:.0f}ms", backoff=QUICK["backoff"])
    store.daemons()
    wait_state(store, GADGETS, "error")
    simulator.forget_requests()
    asked = lambda: [r["time"] for r in simulator.requests(verb="discovery", path="/apis")]  # noqa: E731
    eventually(lambda: len(asked()) > 15)
    pauses = [b - a for a, b in zip(asked(), asked()[1:])]
    first, _, third = quantiles(pauses)  # quartiles, robust against single delays of a busy machine
    assert third - first > pause / 8, pauses


# ---- rights ----------------------------------------------------------------------------------------


def test_c46_a_feed_follows_rights_that_are_granted_and_revoked(simulator, store):
    simulator.put("pods", pod("a"))
    refuse = {"resource": "pods", "status": 403, "body": json.dumps(FORBIDDEN)}
    fault = simulator.fault(**refuse)
    store.configure(whole("pods"), whole("services"), **QUICK)
    _, reflector = store.daemons()
    store.wait_live("services")
    refused = wait_state(store, "pods", "forbidden")
    assert "403 Forbidden" in refused["lastError"] and not refused["synced"], refused
    eventually(lambda: simulator.fault_hits(fault) > 2, what="more attempts to list")
    simulator.clear_faults(fault)
    store.wait_equal(simulator, "pods")
    live = wait_state(store, "pods", "live")
    assert (live["lists"], live["watches"]) == (1, 1) and live["retries"] > 2, live
    simulator.forget_requests()

    simulator.fault(**refuse)
    simulator.drop()
    wait_state(store, "pods", "forbidden")
    kept = store.kinf("get", "pods", "-o", "name", check=True)
    assert kept.stdout == "pod/a\n" and "forbidden" in kept.stderr and "403" in kept.stderr, kept
    simulator.put("pods", pod("b"))
    eventually(lambda: simulator.counters("pods")["watches"] > 3, what="more attempts to watch")
    simulator.clear_faults()
    store.wait_equal(simulator, "pods")
    wait_state(store, "pods", "live")
    assert simulator.counters("pods")["lists"] == 0, "the feed resumes its watch from the last version"
    assert len(lines_of(reflector, "forbidden", 'feed="pods"', "notice")) == 2, "each change of rights is logged once"


def test_a_namespace_that_was_never_listed_is_not_called_empty(simulator, store):
    """One entry of kinf.yaml may be several feeds, and the account may list some of them."""
    simulator.put("pods", pod("a"))
    simulator.fault(resource="pods", verb="list", path="/namespaces/shop/", status=403, body=json.dumps(FORBIDDEN))
    store.configure(whole("pods", namespaces=["web", "shop"]), **QUICK).daemons()
    eventually(lambda: store.kinf("status").stdout.count(" forbidden ") == 1)
    eventually(lambda: store.kinf("get", "pods", "-n", "web", "-o", "name").stdout == "pod/a\n")
    for command in (["get", "pods", "-n", "shop"], ["get", "pods", "-n", "shop", "-o", "count"], ["get", "pods", "b", "-n", "shop"],
                    ["history", "pods", "shop/b"], ["describe", "pods", "b", "-n", "shop"], ["export", "pods"]):
        refused = store.kinf(*command)
        assert refused.status == 1 and refused.stdout == "", refused
        assert "Error: pods in shop: never listed so far, it is forbidden: 403 Forbidden" in refused.stderr, refused
    quiet = store.kinf("get", "pods", "-n", "web", "--max-staleness", "1h", "-o", "name", check=True)
    assert (quiet.stdout, quiet.stderr) == ("pod/a\n", ""), quiet
    for condition, state in (("synced", "in shop the state is forbidden"), ("live", "in shop the state is forbidden"),
                             ("object=web/b", "in web the state is live, with 1 objects"), ("object=none/b", "of pods\n")):
        late = store.kinf("wait", "pods", "--for", condition, "--timeout", "0s")
        assert late.status == 1 and f"timed out waiting for {condition} of pods" in late.stderr and state in late.stderr, late


@pytest.mark.parametrize("command", [["get", "pods"], ["get", "pods", "b"], ["log", "pods"], ["describe", "pods", "b"]])
def test_a_namespace_that_no_feed_has_is_named(simulator, store, command):
    simulator.put("pods", pod("a"))
    store.start(simulator, whole("pods", namespaces=["web", "shop"]))
    result = store.kinf(*command, "-n", "db")
    assert "note: no feed of pods has the namespace 'db': add it to 'namespaces'" in result.stderr, result
    assert "no feed of pods" not in store.kinf(*command, "-n", "shop").stderr


# ---- the configuration -----------------------------------------------------------------------------


def reload(store, reflector, *feeds):
    store.configure(*feeds, **QUICK)
    for process in store.processes:
        if process.running and process.name.startswith("kinf-"):
            process.send(signal.SIGHUP)


@pytest.fixture
def undisturbed(simulator, store):
    """(reflector, check): feeds of services and configmaps are live; check() asserts that neither
    has made a request since."""
    simulator.put("pods", [pod("a"), pod("b", "back")])
    store.configure("services", "configmaps", **QUICK)
    _, reflector = store.daemons()
    for feed in ("services", "configmaps"):
        store.wait_live(feed)
        simulator.wait_watching(feed)
    before = feeds_of(store)
    simulator.forget_requests()

    def check():
        for feed in ("services", "configmaps"):
            counters = simulator.counters(feed)
            assert (counters["lists"], counters["watches"], counters["watching"]) == (0, 0, 1), (feed, counters)
            assert feeds_of(store)[feed]["id"] == before[feed]["id"]
        store.verify()

    return reflector, check


@pytest.mark.parametrize("change, keys", [
    ({"labelSelector": "app=front"}, ["web/a"]),
    ({"namespaces": ["web"]}, ["web/a", "web/b"]),
    ({"namespaces": ["shop"]}, []),
    ({"drop": ["spec"]}, ["web/a", "web/b"]),
    ({"objects": "metadata"}, ["web/a", "web/b"]),
])
def test_a_changed_feed_is_replaced_and_other_feeds_make_no_request(simulator, store, undisturbed, change, keys):
    reflector, check = undisturbed
    others = ["services", "configmaps"]
    reload(store, reflector, *others, "pods")
    store.wait_equal(simulator, "pods", where=lambda o: o["metadata"].pop("managedFields", True) or True)
    first = feeds_of(store)["pods"]["id"]
    reload(store, reflector, *others, {"resource": "pods", **change})
    eventually(lambda: feeds_of(store)["pods"]["id"] != first, what="another feed id")
    eventually(lambda: sorted(store.objects("pods")) == keys)
    for obj in store.objects("pods").values():
        assert ("spec" in obj) == (change.get("drop") is None and "objects" not in change), obj
    check()
    reload(store, reflector, *others)
    eventually(lambda: "pods" not in feeds_of(store), what="the feed of pods removed")
    simulator.wait_watching("pods", 0)
    check()
