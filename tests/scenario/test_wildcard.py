# SPDX-License-Identifier: Apache-2.0
"""Wildcards in kinf.yaml make a feed for each of many resources; `whenGone` decides about the
objects of a resource lost by the server."""

import re
import signal

import pytest

from harness import eventually

QUICK = {"recheck": "200ms", "backoff": {"min": "20ms", "max": "100ms"}}
GROUP = "late.example.com"
DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
BUILT_IN = {
    "configmaps", "namespaces", "nodes", "pods", "secrets", "services",
    "deployments.apps", "replicasets.apps", "widgets.example.com",
    "clusterroles.rbac.authorization.k8s.io", "roles.rbac.authorization.k8s.io",
}  # 'all' leaves events out


def kind(plural, **more):
    return {"group": GROUP, "version": "v1", "resource": plural, "kind": plural[:-1].capitalize(), **more}


def custom(plural, name):
    return {"apiVersion": f"{GROUP}/v1", "kind": plural[:-1].capitalize(), "metadata": {"name": name, "namespace": "web"}}


def feeds_of(store):
    return {f["name"]: f for f in store.kinf("status", "-o", "json", check=True).json["feeds"]}


def wait_feeds(store, names, state="live"):
    def reached():
        found = feeds_of(store)
        assert set(found) == set(names), sorted(found)
        assert {f["state"] for f in found.values()} == {state}, {n: f["state"] for n, f in found.items()}
        return found

    return eventually(reached, what=f"{len(names)} feeds {state}")


def names_of(store, feed):
    return sorted(store.objects(feed))


def test_all_makes_a_feed_for_each_resource_and_follows_discovery(simulator, store):
    simulator.create("pods", 12)
    simulator.add_kind(**kind("gadgets"))
    simulator.put(f"gadgets.{GROUP}", custom("gadgets", "a"))
    settings = {"resource": "all", "indexes": {"owner": "metadata.ownerReferences[*].uid"}}
    store.configure(settings, **QUICK)
    _, reflector = store.daemons()
    everything = BUILT_IN | {f"gadgets.{GROUP}"}
    wait_feeds(store, everything)
    assert len(store.objects("po")) == 12 and names_of(store, "gadget") == ["web/a"]
    assert "owner" in store.kinf("index", "deployments.apps", check=True).stdout, "the wildcard's index applies to each of its feeds"
    pods = feeds_of(store)["pods"]["id"]

    simulator.add_kind(**kind("gizmos"))
    simulator.put(f"gizmos.{GROUP}", custom("gizmos", "new"))
    wait_feeds(store, everything | {f"gizmos.{GROUP}"})
    store.kinf("wait", f"gizmos.{GROUP}", "--for", "object=web/new", check=True)
    simulator.remove_kind(f"gadgets.{GROUP}")
    wait_feeds(store, BUILT_IN | {f"gizmos.{GROUP}"})
    assert store.kinf("get", "gadgets").status == 1

    simulator.forget_requests()
    store.configure({**settings, "pageSize": 100}, {"resource": "svc", "name": "mine"}, **QUICK)
    reflector.send(signal.SIGHUP)
    wait_feeds(store, BUILT_IN - {"services"} | {"mine", f"gizmos.{GROUP}"})
    eventually(lambda: len(simulator.requests(verb="discovery")) > 3)
    asked = {r["resource"] for r in simulator.requests() if r["verb"] in ("list", "watch")}
    assert asked == {"services"}, "no other feed made a request"
    store.configure(settings, **QUICK)
    reflector.send(signal.SIGHUP)
    wait_feeds(store, BUILT_IN | {f"gizmos.{GROUP}"})

    reflector.kill()
    simulator.forget_requests()
    reflector.start()
    wait_feeds(store, BUILT_IN | {f"gizmos.{GROUP}"})
    assert feeds_of(store)["pods"]["id"] == pods
    assert simulator.counters("pods")["lists"] == simulator.counters(f"gizmos.{GROUP}")["lists"] == 0
    simulator.forget_requests()
    eventually(lambda: len(simulator.requests(verb="discovery")) > 3)
    assert {r["status"] for r in simulator.requests(verb="discovery")} == {304}, "discovery has not changed"
    store.verify()


def test_a_new_definition_is_looked_for_soon(simulator, store):
    definitions = "customresourcedefinitions.apiextensions.k8s.io"
    group, name = {"group": "apiextensions.k8s.io", "version": "v1"}, f"gadgets.{GROUP}"
    simulator.add_kind(**group, resource="customresourcedefinitions", kind="CustomResourceDefinition", namespaced=False)
    store.configure("all", **{**QUICK, "recheck": "1h"})
    store.daemons()
    wait_feeds(store, BUILT_IN | {definitions})
    simulator.add_kind(**kind("gadgets"))
    simulator.put(f"gadgets.{GROUP}", custom("gadgets", "a"))
    simulator.put(definitions, {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name}})
    wait_feeds(store, BUILT_IN | {definitions, name})
    assert names_of(store, name) == ["web/a"]


def test_a_group_wildcard_leaves_out_excluded_and_separately_configured_resources(simulator, store):
    for plural in ("gadgets", "gizmos", "gears"):
        simulator.add_kind(**kind(plural, shortName=plural[:3]))
        simulator.put(f"{plural}.{GROUP}", [custom(plural, "a"), {**custom(plural, "b"), "x": 1}])
    simulator.add_kind(group=GROUP, version="v1", resource="spheres", kind="Sphere", namespaced=False)
    mine = {"resource": "gea", "name": "mine", "fieldSelector": "metadata.name=b"}
    store.configure({"resource": f"*.{GROUP}", "exclude": ["gizmos", f"gizmoz.{GROUP}"], "objects": "metadata"}, mine, **QUICK)
    reflector = store.daemons()[1]
    wait_feeds(store, {f"gadgets.{GROUP}", f"spheres.{GROUP}", "mine"})
    assert names_of(store, "mine") == ["web/b"] and "x" in store.objects("mine")["web/b"]
    assert "x" not in store.objects("gadgets")["web/b"], "metadata only"
    gadgets = feeds_of(store)[f"gadgets.{GROUP}"]["id"]

    # The feed `mine` and the exclusion are removed: their resources now belong to the wildcard.
    store.configure({"resource": f"*.{GROUP}", "namespaces": ["web"], "objects": "metadata"}, **QUICK)
    for process in store.processes:
        process.send(signal.SIGHUP)
    wait_feeds(store, {f"{plural}.{GROUP}" for plural in ("gadgets", "gizmos", "gears")})
    assert feeds_of(store)[f"gadgets.{GROUP}"]["id"] != gadgets, "a feed of one namespace is another feed"
    assert names_of(store, "gears") == ["web/a", "web/b"]
    assert len([line for line in reflector.log.splitlines() if "failed" in line]) == 0, reflector.log
    unknown, = re.findall(r"feed_unresolved .*", reflector.log)
    assert f'resource="gizmoz.{GROUP}"' in unknown, "a word that excludes nothing is named, once"


def test_a_wildcard_without_resources_is_reported_once(simulator, store):
    store.configure("pods", {"resource": f"*.{GROUP}"}, **QUICK)
    _, reflector = store.daemons()
    nothing = eventually(lambda: feeds_of(store).get(f"*.{GROUP}"))
    assert nothing["state"] == "error" and "nothing" in nothing["lastError"], nothing
    assert eventually(lambda: feeds_of(store)[f"*.{GROUP}"]["retries"] > 2)
    simulator.add_kind(**kind("gadgets"))
    wait_feeds(store, {"pods", f"gadgets.{GROUP}"})
    assert len([line for line in reflector.log.splitlines() if "unresolved" in line]) == 1


def test_a_resource_in_another_version_replaces_its_feed(simulator, store):
    gadgets = f"gadgets.{GROUP}"
    simulator.add_kind(**kind("gadgets"))
    simulator.put(gadgets, custom("gadgets", "a"))
    store.configure(f"*.{GROUP}", **QUICK)
    store.daemons()
    first = wait_feeds(store, {gadgets})[gadgets]["id"]
    simulator.remove_kind(gadgets)
    simulator.add_kind(**{**kind("gadgets"), "version": "v2"})
    simulator.put(gadgets, {**custom("gadgets", "b"), "apiVersion": f"{GROUP}/v2"})
    eventually(lambda: feeds_of(store)[gadgets]["id"] != first)
    wait_feeds(store, {gadgets})
    eventually(lambda: [o["apiVersion"] for o in store.objects(gadgets).values()] == [f"{GROUP}/v2"])


# ---- whenGone --------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["keep", "drop"])
def test_when_gone_keeps_or_drops_the_objects_of_a_lost_resource(simulator, store, policy):
    """The server has lost the definitions and sent no DELETED. With `drop` the feed of the wildcard
    is removed once it is empty; the feed named in kinf.yaml stays."""
    gadgets, gizmos = f"gadgets.{GROUP}", f"gizmos.{GROUP}"
    for plural in ("gadgets", "gizmos"):
        simulator.add_kind(**kind(plural))
        simulator.put(f"{plural}.{GROUP}", [custom(plural, "a"), custom(plural, "b")])
    store.configure({"resource": gadgets, "whenGone": policy}, {"resource": f"*.{GROUP}", "whenGone": policy}, **QUICK)
    _, reflector = store.daemons()
    wait_feeds(store, {gadgets, gizmos})
    follower = store.follower("watch", gadgets, "-o", "json")
    eventually(lambda: any(line["type"] == "SYNC" for line in follower.lines))

    simulator.fault(path=f"/apis/{GROUP}", status=404, body="404 page not found")
    simulator.fault(path="^/apis$", headers={"Content-Type": DISCOVERY}, body='{"kind": "APIGroupDiscoveryList", "items": []}')
    simulator.drop()
    eventually(lambda: feeds_of(store)[gadgets]["state"] == "gone")
    if policy == "keep":
        eventually(lambda: feeds_of(store)[gadgets]["retries"] > 3)
        assert names_of(store, gadgets) == names_of(store, gizmos) == ["web/a", "web/b"]
    else:
        eventually(lambda: set(feeds_of(store)) == {gadgets, f"*.{GROUP}"})
        eventually(lambda: sum(line.get("finalStateUnknown", False) for line in follower.lines) == 2)
        gone = feeds_of(store)[gadgets]
        assert (gone["state"], gone["objects"]) == ("gone", 0) and names_of(store, gadgets) == [], gone
    simulator.clear_faults()
    wait_feeds(store, {gadgets, gizmos})
    eventually(lambda: names_of(store, gadgets) == names_of(store, gizmos) == ["web/a", "web/b"])
    assert len([line for line in reflector.log.splitlines() if "dropped" in line]) == (2 if policy == "drop" else 0)
    store.verify()


def test_a_name_of_several_groups_means_the_first_in_the_order_of_discovery(simulator, store):
    """Beside Longhorn, `kinf get node` failed: "several feeds watch the resource 'node'"."""
    simulator.create("nodes", 2)
    for group in ("z.example.com", "a.example.com"):  # discovery has them so, too
        for plural, singular in (("nodes", "Node"), ("gadgets", "Gadget")):
            simulator.add_kind(group=group, version="v1", resource=plural, kind=singular)
            simulator.put(f"{plural}.{group}", {"apiVersion": f"{group}/v1", "kind": singular,
                                                "metadata": {"name": group[0], "namespace": "web"}})
    store.configure("all", **QUICK)
    processes = store.daemons()
    wait_feeds(store, BUILT_IN | {f"{p}.{g}.example.com" for p in ("nodes", "gadgets") for g in "az"})
    relisted = store.kinf("relist", "gadget", check=True).stdout
    assert "(" not in relisted, relisted
    for process in processes:
        process.stop()
    for name in ("node", "Node", "nodes"):
        assert names_of(store, name) == ["node-0", "node-1"], name
    assert names_of(store, "gadget") == ["web/z"]
    assert names_of(store, "Gadget.a.example.com") == names_of(store, "gadgets.a") == ["web/a"]
    assert "node.a.example.com/a" in store.kinf("get", "node.a/a", "-n", "web", "-o", "name", check=True).stdout
