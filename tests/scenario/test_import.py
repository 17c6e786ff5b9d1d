# SPDX-License-Identifier: Apache-2.0
"""kinf import: a store to read, of a List in a file."""

import json
import re
import signal

import pytest

from harness import eventually
from harness.process import program, run_command
from harness.store import whole

WIDGET = {"apiVersion": "example.com/v1", "kind": "Policy", "metadata": {"name": "p"}, "spec": {"n": 1.0}}


def write(store, items, name="file.json", **members):
    path = store.directory / name
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""},
                                "items": items, **members}))
    return path


def pod(name, **metadata):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "web", **metadata},
            "spec": {"nodeName": f"node-{len(name)}", "containers": []}}


@pytest.fixture(autouse=True)
def configured(store):
    """The environment must name an existing configuration."""
    store.configure(whole("pods"))


def leftovers(store):
    return [str(path) for path in store.directory.rglob("*kinf-partial*")]


def test_an_export_of_feeds_that_overlap_can_be_imported(simulator, store):
    """Both feeds print the object. It is there once in the new store."""
    simulator.create("pods", 20)
    store.start_live(whole("pods"), {**whole("pods"), "name": "again"})
    store.wait_live("again")
    exported = store.directory / "exported.json"
    exported.write_text(store.kinf("export", check=True).stdout)
    assert len(json.loads(exported.read_text())["items"]) == 40
    store.kinf("import", exported, "--store", store.directory / "imported", check=True)
    assert store.kinf("get", "pods", "-o", "count", "--store", store.directory / "imported", check=True).stdout == "20\n"


def test_what_no_store_can_hold_is_left_out_alone(store):
    deep = {**pod("deep"), "status": json.loads("[" * 300 + "]" * 300)}
    path = write(store, [pod("R&D"), deep, pod("n" * 600), pod("nul\0name"), pod("last")])
    target = store.directory / "imported"
    made = store.kinf("import", path, "--store", target, check=True)
    assert store.kinf("get", "pods", "-n", "web", "-o", "name", "--store", target, check=True).stdout == "pod/R&D\npod/last\n"
    left_out = [line for line in made.stderr.splitlines() if "import_skipped" in line]
    for line, why in zip(left_out, ("web/deep.*nested deeper", "web/nnn.*bytes", "web/nul.*NUL"), strict=True):
        assert re.search(why, line), line
    write(store, [deep])
    assert "no object in it that can be stored" in store.kinf("import", path, "--store", store.directory / "none").stderr


def test_an_export_can_be_imported(simulator, store):
    """With --full nothing is lost: the objects are equal, and indexes are those of the configuration."""
    simulator.create("pods", 200)
    simulator.create("configmaps", 5)
    store.configure(whole("pods", indexes={"node": "spec.nodeName"}), whole("configmaps")).daemons()
    for feed in ("pods", "configmaps"):
        store.wait_equal(simulator, feed)
    path = store.directory / "file.json"
    path.write_text(store.kinf("export", "--full", check=True).stdout)
    target = store.directory / "imported"
    result = store.kinf("import", path, "--store", target, "--config", store.config, check=True)
    assert str(target) in result.stdout and leftovers(store) == []
    assert result.stderr == "", "the words of a daemon are not the command's"
    for feed in ("pods", "configmaps"):
        ours = store.kinf("get", feed, "-o", "json", "--show-managed-fields", "--store", target, check=True)
        assert ours.json["items"] == list(store.objects(feed).values())
        assert f"note: {feed}: offline, imported from a dump" in ours.stderr, "it is said that nobody keeps it current"
    node = "node-1"
    found = store.kinf("get", "pod", "--index", f"node={node}", "-o", "name", "--store", target, check=True).stdout
    assert found == store.kinf("get", "pod", "--index", f"node={node}", "-o", "name", check=True).stdout != ""
    store.kinf("verify", "--deep", "--store", target, check=True)
    assert store.kinf("diff", store.path, target).stdout == ""


def test_the_appliable_export_can_be_imported_also(simulator, store):
    """Objects without uid and resourceVersion."""
    simulator.create("pods", 20)
    store.start(simulator, whole("pods"))
    exported = store.kinf("export", check=True).stdout
    for name in ("one", "two"):
        target = store.directory / name
        result = run_command([program("kinf"), "import", "-", "--store", target], store.env, input=exported)
        assert result.status == 0, result
        items = store.kinf("get", "pods", "-o", "json", "--store", target, check=True).json["items"]
        assert items == json.loads(exported)["items"]
        store.kinf("verify", "--deep", "--store", target, check=True)
    assert store.kinf("diff", store.directory / "one", store.directory / "two").stdout == ""


def test_kinds_become_feeds(store):
    items = [pod("a"), WIDGET, {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d", "namespace": "x"}},
             {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "e", "namespace": "x"}},
             {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i", "namespace": "x"}},
             {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "s"}}, pod("b")]
    target = store.directory / "imported"
    store.kinf("import", write(store, items), "--store", target, check=True)
    status = store.kinf("status", "-o", "json", "--store", target, check=True).json
    assert {feed["name"]: feed["objects"] for feed in status["feeds"]} == {
        "pods": 2, "policies.example.com": 1, "daemonsets.apps": 1, "endpoints": 1, "ingresses.networking.k8s.io": 1,
        "storageclasses.storage.k8s.io": 1}
    text = store.kinf("get", "policy", "p", "-o", "json", "--server-order", "--store", target, check=True).stdout
    assert '"n": 1.0' in text, "numbers keep their spelling"
    assert store.kinf("get", "storageclass", "-o", "name", "--store", target, check=True).stdout.endswith("/s\n")
    assert store.kinf("get", "pods", "-n", "web", "-o", "count", "--store", target, check=True).stdout == "2\n"


BAD = {
    "no JSON": "hello",
    "nothing": "",
    "no kind": json.dumps({"kind": "List", "items": [{"metadata": {"name": "a"}}]}),
    "no name": json.dumps({"kind": "List", "items": [{"apiVersion": "v1", "kind": "Pod", "metadata": {}}]}),
    "a slash": json.dumps({"kind": "List", "items": [pod("a/b")]}),
    "kind is a number": json.dumps({"kind": "List", "items": [{**pod("a"), "kind": 7}]}),
    "a long kind": json.dumps({"kind": "List", "items": [{**pod("a"), "kind": "K" * 5000}]}),
    "a long name": json.dumps({"kind": "List", "items": [pod("a" * 2000)]}),
    "bad UTF-8": '{"kind":"List","items":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"\udcff"}}]}',
    "an item that is no object": json.dumps({"kind": "List", "items": [7]}),
}


def test_a_file_that_is_not_there_is_named_once(store):
    result = store.kinf("import", "/nowhere", "--store", store.directory / "imported")
    assert result.status == 1 and "Error: '/nowhere': opening: No such file" in result.stderr, result


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_refused_and_leaves_nothing(store, name):
    path = store.directory / "file.json"
    path.write_text(BAD[name], errors="surrogateescape")
    target = store.directory / "imported"
    result = store.kinf("import", path, "--store", target)
    assert result.status == 1 and "file.json" in result.stderr, result
    assert not target.exists() and leftovers(store) == []


@pytest.mark.parametrize("text", ['', '{"a":1}', '{"kind":"List"}', '{"kind":"List","apiVersion":"v1","items":[]}',
                                  '{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":""},"items":[]}'])
def test_a_file_without_objects_is_refused_with_a_sentence(store, text):
    """Without metadata the reflector's program died of SIGSEGV; "its message is above" was the
    whole message."""
    path = store.directory / "file.json"
    path.write_text(text)
    result = store.kinf("import", path, "--store", store.directory / "imported")
    assert result.status == 1 and result.stderr.startswith(f"Error: '{path}': there is no object in it"), result
    assert len(result.stderr.splitlines()) == 1, "a failure is one line, also where another program has failed"
    assert not (store.directory / "imported").exists() and leftovers(store) == []


def test_wrong_usage_and_places(store):
    path = write(store, [pod("a")])
    for command in (["import"], ["import", path], ["import", "", "--store", "x"], ["import", path, "", "--store", "x"]):
        result = store.kinf(*command, env={"KINF_STORE": ""})
        assert result.status == 2 and len(result.stderr.splitlines()) == 1, result
    (store.directory / "full").mkdir()
    (store.directory / "full" / "file").write_text("mine")
    for target in (store.directory / "full", path, "/nowhere/x"):
        result = store.kinf("import", path, "--store", target)
        assert result.status == 1 and result.stderr.splitlines()[-1].startswith("Error: "), result
    assert (store.directory / "full" / "file").read_text() == "mine" and path.exists()
    assert store.kinf("import", "/nowhere.json", "--store", store.directory / "x").status == 1
    assert leftovers(store) == []


def test_a_reflector_takes_it_for_another_cluster(simulator, store):
    """Imported objects are never mistaken for the cluster's: a new journal begins."""
    simulator.create("pods", 5)
    store.kinf("import", write(store, [pod("ghost", resourceVersion="999999")]), "--store", store.path, check=True)
    store.start(simulator, whole("pods"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interruption_leaves_nothing(store, number):
    path, target = write(store, [pod(f"p-{i}") for i in range(50)]), store.directory / "imported"
    command = store.follower("import", path, "--store", target, name="import",
                             env={"KINF_FAIL": "journal.before_commit:0:pause=1500"})
    eventually(lambda: list(store.directory.rglob("*kinf-partial/store/journal/gen-1/data.mdb")), 10)
    assert command.kill(number) == (1 if number != signal.SIGKILL else -9)
    assert not target.exists()
    if number == signal.SIGKILL:

        def free():
            return store.kinf("import", path, "--store", target).status == 0

        eventually(free)  # its child programs may take a moment to end
    assert leftovers(store) == []


# ---- rebuild-index without daemons ---------------------------------------------------------------


def test_rebuild_index_without_the_processor(simulator, store):
    """Also with another configuration: a feed missing there keeps its indexes."""
    simulator.create("pods", 50)
    store.start(simulator, whole("pods", indexes={"node": "spec.nodeName"}))
    node = "node-1"
    found = store.kinf("get", "pods", "--index", f"node={node}", "-o", "name", check=True).stdout
    store.stop()
    other = store.directory / "other.yaml"
    other.write_text("feeds: [{resource: nodes}]\n")
    before = store.kinf("status", "-o", "json", check=True).json["store"]["index"]["generation"]
    for config in (store.config, other):
        result = store.kinf("rebuild-index", env={"KINF_CONFIG": str(config)}, check=True)
        assert result.stdout == "the index is built\n"
        after = store.kinf("status", "-o", "json", check=True).json["store"]["index"]["generation"]
        assert after > before
        before = after
        assert store.kinf("get", "pods", "--index", f"node={node}", "-o", "name", check=True).stdout == found != ""
    store.verify()
    assert store.kinf("rebuild-index", "--store", "/nowhere").status == 1
