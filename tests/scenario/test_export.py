# SPDX-License-Identifier: Apache-2.0
"""kinf export: a List for kubectl apply."""

import json

import pytest

from harness import eventually
from harness.store import whole

LEFT_OUT = {"uid", "resourceVersion", "generation", "creationTimestamp", "selfLink", "managedFields", "ownerReferences",
            "deletionTimestamp", "deletionGracePeriodSeconds"}


@pytest.fixture
def full(simulator, store):
    simulator.create("pods", 30)
    simulator.create("configmaps", 5)
    simulator.put("configmaps", {"metadata": {"name": "odd", "namespace": "web", "ownerReferences": [{"uid": "u"}],
                                              "annotations": {"uid": "kept"}}, "data": {"status": "x", "ü\"": "\\\n"}})
    store.configure(whole("pods"), whole("configmaps"), whole("namespaces")).daemons()
    for feed in ("pods", "configmaps", "namespaces"):
        store.wait_equal(simulator, feed)
    return store


def bare(obj):
    """The exported members of OBJ."""
    kept = {key: value for key, value in obj.items() if key != "status"}
    kept["metadata"] = {key: value for key, value in obj["metadata"].items() if key not in LEFT_OUT}
    return kept


def test_the_list_has_what_can_be_applied(simulator, full):
    exported = full.kinf("export", check=True).json
    assert exported["kind"] == "List" and exported["apiVersion"] == "v1"
    wanted = [bare(obj) for feed in ("namespaces", "configmaps", "pods") for obj in full.objects(feed).values()]
    assert exported["items"] == wanted, "namespaces come first"
    odd = next(item for item in exported["items"] if item["metadata"]["name"] == "odd")
    assert odd["metadata"]["annotations"] == {"uid": "kept"} and odd["data"] == {"status": "x", "ü\"": "\\\n"}


def test_what_the_api_server_chose_is_left_out(store):
    """Another cluster refused each Service with an address of this one, and each Job."""
    store.configure("pods")

    def exported(kind, version, spec):
        path = store.directory / "object.json"
        path.write_text(json.dumps({"apiVersion": version, "kind": kind, "metadata": {"name": "a", "namespace": "web"}, "spec": spec}))
        (store.directory / "imported").mkdir(exist_ok=True)
        copy = store.directory / f"imported/{len(list((store.directory / 'imported').iterdir()))}"
        store.kinf("import", path, "--store", copy, check=True)
        return store.kinf("export", "--store", copy, check=True).json["items"][0]["spec"]

    ports = [{"port": 80, "nodePort": 30080}]
    assert exported("Service", "v1", {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ports": ports}) == {"ports": ports}
    for kept in ({"clusterIP": "None", "clusterIPs": ["None"]}, {"clusterIP": "10.0.0.1"}):
        assert exported("Service", "v1" if "clusterIPs" in kept else "example.com/v1", kept) == kept
    uids = {"controller-uid": "u", "batch.kubernetes.io/controller-uid": "u"}
    job = {"selector": {"matchLabels": uids}, "template": {"metadata": {"labels": {**uids, "a": "b"}}, "spec": {"containers": []}}}
    assert exported("Job", "batch/v1", job) == {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}}}
    assert exported("Job", "batch/v1", {**job, "manualSelector": True}) == {**job, "manualSelector": True}


def test_full_objects_and_chosen_feeds(simulator, full):
    exported = full.kinf("export", "po", "--full", check=True).json
    assert {f"{o['metadata']['namespace']}/{o['metadata']['name']}": o for o in exported["items"]} == simulator.truth("pods")
    text = full.kinf("export", "pods", "cm", check=True).stdout
    assert len(text.splitlines()) == 30 + 6 + 2, "a line for each object"
    assert len(json.loads(text)["items"]) == 36


def test_nothing_is_printed_if_a_feed_can_not_be_read(simulator, full):
    for command in (["export", "pods", "nothing"], ["export", "--store", "/nowhere"]):
        result = full.kinf(*command)
        assert result.status == 1 and result.stdout == "" and result.stderr.startswith("Error: "), result
    assert full.kinf("export", "--frist").status == 2


def test_it_works_without_daemons_and_says_so(full):
    full.stop()
    result = full.kinf("export", "pods", check=True)
    assert len(result.json["items"]) == 30
    assert "note: pods: offline" in result.stderr, result


def test_many_feeds_that_are_not_live_are_noted_once(simulator, store):
    feeds = ["pods", "nodes", "configmaps", "services", "secrets", "namespaces", "deployments.apps"]
    store.configure(*feeds).daemons()
    for feed in feeds:
        store.wait_synced(feed)
    store.stop()
    said = store.kinf("export", check=True).stderr.splitlines()
    assert len(said) == 6 and said[-1] == "note: 2 more feeds are not live; 'kinf status' shows them", said
    assert len(store.kinf("export", *feeds, check=True).stderr.splitlines()) == len(feeds)


def test_a_feed_of_the_longest_name_is_exported(simulator, store):
    simulator.create("pods", 5)
    name = "n" * 200
    store.configure(whole("pods", name=name)).daemons()
    store.wait_synced(name)
    assert len(store.kinf("export", check=True).json["items"]) == len(store.kinf("export", name, check=True).json["items"]) == 5


def test_nothing_is_printed_where_nothing_is_watched_yet(simulator, store):
    """An empty List and exit 0 looked like an empty cluster."""
    simulator.fault(path="/", status=401)
    store.configure("pods").daemons()
    eventually(lambda: "401" in store.kinf("get", "pods").stderr, what="an index, and an answer")
    result = store.kinf("export")
    assert (result.status, result.stdout) == (1, ""), result
    assert result.stderr.startswith("Error: nothing is watched yet: kinf-reflector: ") and "401" in result.stderr, result


def test_an_entry_of_the_configuration_that_is_no_feed_yet_is_named(simulator, store):
    """Else the export would seem to be whole."""
    simulator.create("pods", 5)
    _, reflector = store.start(simulator, whole("pods"), whole("gadgets.test.io"))
    reflector.wait_log("gadgets")
    exported = store.kinf("export")
    assert exported.status == 0 and len(exported.json["items"]) == 5
    assert "note: gadgets.test.io: not exported, it is no feed yet: " in exported.stderr, exported
    assert "gadgets" not in store.kinf("export", "pods", check=True).stderr
