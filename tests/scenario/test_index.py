# SPDX-License-Identifier: Apache-2.0
"""Indexes: the objects they find, their values and counts, and changes of their definitions without the API server."""

import os
import shutil
import signal
from collections import Counter

import pytest

from harness import eventually
from harness.follow import replay
from harness.objects import pod
from harness.store import whole

INDEXES = {
    "node": "spec.nodeName",
    "app": "metadata.labels['app']",
    "image": "spec.containers[*].image",
    "node-phase": ["spec.nodeName", "status.phase"],
}


def fill(simulator):
    number = 0
    for namespace in ("web", "shop"):
        for app in ("front", "back"):
            for node in ("n1", "n2", "n3"):
                number += 1
                images = (f"{app}:{number % 2}", "side,car:1") if number % 3 else (f"{app}:0", f"{app}:0")
                phase = "Running" if number % 4 else "Failed"
                simulator.put("pods", pod(f"{app}-{node}", namespace, app, node, phase, images))


@pytest.fixture
def indexed(simulator, store):
    fill(simulator)
    daemons = store.start(simulator, whole("pods", indexes=INDEXES))
    return daemons


def terms_of(obj, name):
    """The expected terms of the index NAME for an object, spelled as the command prints them."""
    spec = obj["spec"]
    return {
        "node": {spec["nodeName"]},
        "app": {obj["metadata"]["labels"]["app"]},
        "image": {container["image"] for container in spec["containers"]},
        "node-phase": {f"{spec['nodeName']},{obj['status']['phase']}"},
        "namespace": {obj["metadata"]["namespace"]},
        "label": {"app", f"app={obj['metadata']['labels']['app']}"},
    }[name]


def check_index(simulator, store, name):
    """Compares the index's values, their counts, and the objects found by each value with the cluster's objects."""
    truth = simulator.truth("pods")
    wanted = Counter(term for obj in truth.values() for term in terms_of(obj, name))
    lines = store.kinf("index", "pods", name, check=True).stdout.splitlines()
    assert dict(line.rsplit("\t", 1) for line in lines) == {k: str(v) for k, v in wanted.items()}
    assert [line.rsplit("\t", 1)[0] for line in lines] == sorted(wanted)
    for value in wanted:
        found = [key for key, obj in truth.items() if value in terms_of(obj, name)]
        assert list(store.objects("pods", "--index", f"{name}={value}")) == found, (name, value)


@pytest.mark.parametrize("name", [*INDEXES, "namespace", "label"])
def test_an_index_finds_the_objects_of_each_value(simulator, store, indexed, name):
    check_index(simulator, store, name)


def test_indexes_follow_changes(simulator, store, indexed):
    simulator.put("pods", pod("front-n1", "web", "other", "n9", "Pending", ("new:1", "new:2")))
    simulator.delete("pods", "shop/back-n2")
    simulator.put("pods", pod("more", "web", "front", "n1"))
    store.wait_equal(simulator, "pods")
    for name in ("node", "image", "node-phase", "label"):
        check_index(simulator, store, name)
    store.verify()


def test_several_conditions_are_joined_by_and(simulator, store, indexed):
    truth = simulator.truth("pods")
    wanted = [
        key for key, o in truth.items()
        if o["spec"]["nodeName"] == "n1" and o["metadata"]["labels"]["app"] == "front" and o["metadata"]["namespace"] == "web"
    ]
    assert list(store.objects("pods", "--index", "node=n1", "--index", "app=front", "-n", "web")) == wanted
    assert list(store.objects("pods", "--index", "node=n1", "-l", "app=front", "-n", "web")) == wanted
    assert list(store.objects("pods", "--field-selector", "spec.nodeName=n1", "-l", "app in (front)", "-n", "web")) == wanted
    assert store.objects("pods", "--index", "node=n1", "--index", "node=n2") == {}
    assert store.objects("pods", "--index", "node=nowhere") == {}
    unlike = [key for key, o in truth.items() if o["metadata"]["labels"]["app"] != "front"]
    assert list(store.objects("pods", "-l", "app!=front")) == unlike
    assert list(store.objects("pods", "-l", "app notin (front)")) == unlike
    assert list(store.objects("pods", "-l", "!app")) == []


def test_a_compound_value_with_another_number_of_parts_is_refused(simulator, store):
    """It found nothing, without an error."""
    simulator.create("pods", 3)
    store.start(simulator, whole("pods", indexes=INDEXES))
    for value, parts in (("node-1", 1), ("node-1,Running,x", 3), ("node-1\\,Running", 1)):
        for command in ("get", "watch"):
            refused = store.kinf(command, "pods", "--index", f"node-phase={value}")
            assert refused.status == 2 and not refused.stdout, refused
            assert f"index 'node-phase' needs 2 values (spec.nodeName,status.phase) with commas between them, and '{value}' has {parts}; " in refused.stderr, refused


def test_commas_and_backslashes_in_compound_values_are_escaped(simulator, store):
    simulator.put("pods", pod("odd", node="a,b\\c"))
    store.start(simulator, whole("pods", indexes=INDEXES))
    (line,) = store.kinf("index", "pods", "node-phase", check=True).stdout.splitlines()
    assert line == "a\\,b\\\\c,Running\t1"
    assert list(store.objects("pods", "--index", "node-phase=" + line.rsplit("\t", 1)[0])) == ["web/odd"]
    assert list(store.objects("pods", "--index", "node=a,b\\c")) == ["web/odd"]


def test_values_of_any_length_and_type_are_indexed(simulator, store):
    """Long values are hashed; numbers and booleans are indexed, null and maps are not."""
    long_one, long_two = "x" * 5000 + "1", "x" * 5000 + "2"
    simulator.put("pods", pod("one", annotations={"k": long_one}))
    simulator.put("pods", pod("two", annotations={"k": long_two}))
    simulator.put("pods", {**pod("three"), "spec": {"priority": 10, "flag": True, "none": None, "map": {"a": 1}}})
    simulator.put("pods", {**pod("four"), "spec": {"priority": 9, "flag": False, "list": [1, 2]}})
    paths = {"k": "metadata.annotations.k", "priority": "spec.priority", "flag": "spec.flag", "none": "spec.none",
             "map": "spec.map", "list": "spec.list[*]"}
    store.start(simulator, whole("pods", indexes=paths))
    assert list(store.objects("pods", "--index", f"k={long_one}")) == ["web/one"]
    assert list(store.objects("pods", "--index", f"k={long_two}")) == ["web/two"]
    values = {n: store.kinf("index", "pods", n, check=True).stdout for n in paths}
    assert values["priority"] == "10\t1\n9\t1\n" and values["flag"] == "false\t1\ntrue\t1\n"
    assert values["none"] == values["map"] == "" and values["list"] == "1\t1\n2\t1\n"
    store.verify()


def test_index_prints_the_values_with_a_prefix(simulator, store, indexed):
    lines = store.kinf("index", "pods", "image", "--prefix", "front:", check=True).stdout.splitlines()
    assert lines and all(line.startswith("front:") for line in lines)


def test_index_prints_a_table_of_indexes(simulator, store, indexed):
    rows = [line.split() for line in store.kinf("index", "pods", check=True).stdout.splitlines()]
    found = {row[0]: row for row in rows[1:]}
    assert found.keys() == {*INDEXES, "namespace", "label"}
    assert found["node"][1:4] == ["3", "12", "spec.nodeName"]
    unknown = store.kinf("index", "pods", "nowhere")
    assert unknown.status == 1 and "kinf index pods" in unknown.stderr, unknown
    assert store.kinf("get", "pods", "--index", "nowhere=x").status == 1


# ---- definitions -----------------------------------------------------------------------------------


def index_names(store):
    return {line.split()[0] for line in store.kinf("index", "pods", check=True).stdout.splitlines()[1:]}


def redefine(store, indexes, processes):
    store.configure(whole("pods", indexes=indexes))
    for process in processes:
        process.send(signal.SIGHUP)


def test_indexes_are_added_and_removed_on_sighup(simulator, store):
    fill(simulator)
    daemons = store.start(simulator, whole("pods"))
    simulator.wait_watching("pods")
    simulator.forget_requests()
    redefine(store, INDEXES, daemons)
    eventually(lambda: index_names(store) == {*INDEXES, "namespace", "label"})
    for name in INDEXES:
        eventually(lambda n=name: check_index(simulator, store, n) is None)
    kept = {"app": INDEXES["app"], "node": "status.phase"}  # another definition under an old name
    redefine(store, kept, daemons)
    eventually(lambda: index_names(store) == {"app", "node", "namespace", "label"})
    eventually(lambda: "Running\t" in store.kinf("index", "pods", "node", check=True).stdout)
    assert "n1" not in store.kinf("index", "pods", "node", check=True).stdout
    simulator.put("pods", pod("more", phase="Pending"))
    store.wait_equal(simulator, "pods")
    assert list(store.objects("pods", "--index", "node=Pending")) == ["web/more"]
    assert not simulator.requests(resource="pods"), "no request was needed"
    store.verify()


def test_a_new_index_is_filled_under_change_and_kills(simulator, store):
    simulator.create("pods", 2000, size=600)
    processor, _ = daemons = store.configure(whole("pods")).daemons()
    store.wait_synced("pods")
    simulator.churn("pods", 200, 40)
    for _ in range(3):
        processor.kill()
        store.configure(whole("pods", indexes={"node": "spec.nodeName", "image": "spec.containers[*].image"}))
        processor.env["KINF_FAIL"] = "index.backfill:1:kill"
        processor.start()
        processor.wait()
    del processor.env["KINF_FAIL"]
    processor.start()
    simulator.churn("pods", 0)
    store.wait_equal(simulator, "pods")
    eventually(lambda: "being filled" not in store.kinf("index", "pods", check=True).stdout)
    truth = simulator.truth("pods")
    wanted = Counter(o["spec"]["nodeName"] for o in truth.values() if "nodeName" in o["spec"])
    lines = store.kinf("index", "pods", "node", check=True).stdout.splitlines()
    assert dict(line.split("\t") for line in lines) == {k: str(v) for k, v in wanted.items()}
    assert all(process.running for process in daemons)
    store.verify()


# ---- rebuilds --------------------------------------------------------------------------------------


def remove_index(store, processor):
    """Removes the index's directory while the processor is stopped: a running one might create
    files in it meanwhile."""
    processor.send(signal.SIGSTOP)
    eventually(lambda: processor.stopped)
    empty_index(store)


@pytest.mark.parametrize("when", ["stopped", "running"])
def test_a_removed_index_is_built_again_without_the_server(simulator, store, indexed, when):
    processor, _ = indexed
    simulator.wait_watching("pods")
    simulator.forget_requests()
    if when == "stopped":
        processor.kill()
        empty_index(store)
    else:
        remove_index(store, processor)
        processor.kill()
    processor.start()
    store.wait_equal(simulator, "pods")
    for name in ("node", "image"):
        check_index(simulator, store, name)
    assert not simulator.requests(resource="pods")
    store.verify()


def test_an_index_removed_under_a_running_processor_is_built_again(simulator, store):
    """Both daemons end and `kinf run` starts them again. The processor, the reflector (trims by the
    index) and a follower use the new index."""
    fill(simulator)
    supervisor = store.configure(whole("pods", indexes=INDEXES), retention={"time": "300ms"}).run()
    store.wait_equal(simulator, "pods")
    follower = store.follower("watch", "pods", "-o", "json", "--old")
    eventually(lambda: "SYNC" in follower.out)
    simulator.wait_watching("pods")
    simulator.forget_requests()
    os.rename(store.path / "index", store.directory / "trash")
    eventually(lambda: supervisor.log.count("index_built") == 2)
    simulator.touch("pods")
    store.wait_equal(simulator, "pods")
    check_index(simulator, store, "node")
    eventually(lambda: replay(follower.lines) == store.objects("pods"))
    trimmed = lambda: (s := store.kinf("status", "-o", "json", check=True).json["store"])["horizon"] == s["lastEvent"]
    eventually(trimmed, what="the reflector trims by the new index")
    assert supervisor.running and not [r for r in simulator.requests(resource="pods") if r["verb"] == "list"]
    store.verify()


def empty_index(store):
    """Leaves the directory itself, because the reflector ends when it finds another one in its place."""
    for entry in (store.path / "index").iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def test_event_numbers_survive_an_index_rebuild(simulator, store, indexed):
    processor, _ = indexed
    before = store.last_event("pods")
    follower = store.follower("watch", "pods", "-o", "json", "--old", "--cursor", "c1")
    eventually(lambda: "SYNC" in follower.out)
    processor.kill()
    empty_index(store)
    processor.start()
    simulator.put("pods", pod("after"))
    eventually(lambda: "web/after" in store.objects("pods"))
    assert store.last_event("pods") == before + 1
    eventually(lambda: follower.lines[-1].get("event") == before + 1)
    assert [line["type"] for line in follower.lines].count("SYNC") == 1


@pytest.mark.parametrize("point", ["rebuild.begun", "rebuild.filled", "rebuild.switched"])
def test_a_killed_rebuild_begins_again(simulator, store, indexed, point):
    processor, _ = indexed
    processor.kill()
    empty_index(store)
    processor.env["KINF_FAIL"] = f"{point}:1:kill"
    processor.start()
    assert processor.wait() == -signal.SIGKILL, processor.tail()
    del processor.env["KINF_FAIL"]
    simulator.put("pods", pod("after"))
    processor.start()
    store.wait_equal(simulator, "pods")
    check_index(simulator, store, "node")
    store.verify()


def test_sort_by_pages_through_objects_in_the_order_of_a_field(simulator, store, indexed):
    for number in (3, 20, 100):
        simulator.patch("pods", "web/front-n1", {"spec": {"nodeName": f"n{number}"}})
        store.wait_equal(simulator, "pods")
        truth = simulator.truth("pods")
        wanted = sorted(truth, key=lambda key: (int(truth[key]["spec"]["nodeName"][1:]), key))
        for path in (".spec.nodeName", "{.spec.nodeName}"):
            got, page = [], store.kinf("get", "pods", "--sort-by", path, "--limit", "5", "-o", "json", check=True).json
            while True:
                got += [f"{o['metadata']['namespace']}/{o['metadata']['name']}" for o in page["items"]]
                token = page["metadata"].get("continue")
                if not token:
                    break
                page = store.kinf("get", "pods", "--sort-by", path, "--limit", "5", "--continue", token,
                                  "-o", "json", check=True).json
            assert got == wanted
    explained = store.kinf("get", "pods", "--sort-by", "spec.nodeName", "--limit", "2", "--explain", check=True)
    assert "plan: index of 'spec.nodeName' in its order" in explained.stderr
    explained = store.kinf("get", "pods", "--sort-by", "status.phase", "-l", "app=front", "--explain", check=True)
    assert "all sorted by 'status.phase'" in explained.stderr
    assert store.kinf("get", "pods", "--sort-by", "spec[").status == 2


def test_a_sorted_continue_token_expires_with_the_history(simulator, store):
    simulator.create("pods", 20)
    store.start(simulator, whole("pods"), retention={"time": "1s"})
    page = store.kinf("get", "pods", "--sort-by", "metadata.uid", "--limit", "5", "-o", "json", check=True).json
    token = page["metadata"]["continue"]

    def gone():
        simulator.touch("pods", 5)
        result = store.kinf("get", "pods", "--sort-by", "metadata.uid", "--limit", "5", "--continue", token)
        return result.status == 1 and "older than the history" in result.stderr

    eventually(gone, what="the token to be too old")


def test_field_selectors_apply_default_values_to_indexed_fields(simulator, store):
    for number in range(6):
        body = pod(f"p-{number}")
        if number % 3 < 2:
            body["spec"]["hostNetwork"] = number % 3 == 1
        simulator.put("pods", body)
    store.start(simulator, whole("pods", indexes={"host": "spec.hostNetwork", "alias": "spec.host"}))
    every = {f"p-{number}" for number in range(6)}
    for selector, wanted in (
        ("spec.hostNetwork=false", every - {"p-1", "p-4"}),
        ("spec.hostNetwork=true", {"p-1", "p-4"}),
        ("spec.host=n1", every),  # another name of spec.nodeName, for pods
        ("spec.host=n2", set()),
        ("status.replicas=0", set()),  # not a field of pods: a default of other kinds
    ):
        items = store.kinf("get", "pods", "--field-selector", selector, "-o", "json", check=True).json["items"]
        assert {item["metadata"]["name"] for item in items} == wanted, selector
