# SPDX-License-Identifier: Apache-2.0
"""The tables of `kinf get` and `kinf watch`: kubectl's additions to the server's cells, and
operands as names of kinds. The cells themselves are compared with an API server's in
tests/unit/test_tables.c, whole tables in tests/real/check_tables.py.
"""

import pytest
from harness import eventually


def obj(namespace, name, labels=None, **fields):
    return {"metadata": {"namespace": namespace, "name": name, "labels": labels or {}}, **fields}


@pytest.fixture
def filled(simulator, store):
    running = {"phase": "Running", "containerStatuses": [{"name": "c", "ready": True, "restartCount": 0, "state": {"running": {}}}]}
    simulator.put("pods", obj("web", "a", {"app": "x", "example.com/tier": "front"}, spec={
        "nodeName": "node-with-a-long-name", "containers": [{"name": "c"}]}, status=running))
    simulator.put("pods", obj("web", "b", spec={"containers": [{"name": "c"}]}, status={"phase": "Pending"}))
    simulator.put("deployments.apps", obj("web", "front", spec={"replicas": 2}, status={"readyReplicas": 1}))
    store.configure("pods", "deployments.apps", "nodes")
    store.daemons()
    eventually(lambda: store.kinf("get", "pods,deployments.apps,nodes", "-o", "count").stdout.strip() == "3")
    return lambda *args: store.kinf("get", *args, check=True).stdout


def words(text):
    return [line.split() for line in text.splitlines()]


def test_columns_are_kubectls(filled):
    assert words(filled("pods"))[0] == ["NAMESPACE", "NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert words(filled("pods"))[1][:5] == ["web", "a", "1/1", "Running", "0"]
    assert words(filled("pods", "-n", "web"))[0][0] == "NAME", "kubectl shows namespaces only with -A, the default here"
    wide = filled("pods", "-n", "web", "-o", "wide").splitlines()
    assert wide[0].split() == "NAME READY STATUS RESTARTS AGE IP NODE NOMINATED NODE READINESS GATES".split()
    assert wide[0].index("NODE") == wide[1].index("node-with-a-long-name")
    assert words(filled("deployments.apps"))[1][2] == "1/2"


def test_labels_heads_and_kinds(filled):
    rows = words(filled("pods", "-n", "web", "--show-labels"))
    assert rows[0][-1] == "LABELS" and rows[1][-1] == "app=x,example.com/tier=front" and rows[2][-1] == "<none>"
    rows = words(filled("pods", "-n", "web", "-L", "app,example.com/tier", "-L", "nothing"))
    assert rows[0][-3:] == ["APP", "TIER", "NOTHING"] and rows[1][-2:] == ["x", "front"]
    assert words(filled("pods", "-n", "web", "--no-headers"))[0][0] == "a"
    assert words(filled("deployments.apps", "--show-kind"))[1][1] == "deployment.apps/front"
    assert filled("pods", "-o", "custom-columns=N:.metadata.name", "--no-headers") == "a\nb\n"


def test_the_column_of_namespaces_stays_for_kinds_without_them(filled, simulator, store):
    """kubectl get pods,nodes -A; but not for kinds before them."""
    simulator.put("nodes", {"metadata": {"name": "n-1"}})
    eventually(lambda: store.kinf("get", "nodes", "-o", "count").stdout.strip() == "1")
    pods, nodes = filled("pods,nodes").split("\n\n")
    assert nodes.splitlines()[0].startswith("NAMESPACE   NAME ") and nodes.splitlines()[1].startswith(" " * 12 + "node/n-1 ")
    nodes, pods = filled("nodes,pods").split("\n\n")
    assert nodes.startswith("NAME ") and pods.startswith("NAMESPACE ") and filled("nodes").startswith("NAME ")


def test_several_kinds_are_one_answer(filled, store):
    first, second = filled("pods,deployments.apps").split("\n\n")
    assert words(first)[1][1] == "pod/a" and words(second)[1][1] == "deployment.apps/front"
    assert filled("deployments.apps/front", "pods/b", "pods/a", "-n", "web", "-o", "name").split() == [
        "deployment.apps/front", "pod/b", "pod/a"]
    assert filled("po,deploy", "-o", "name").split() == ["pod/a", "pod/b", "deployment.apps/front"]
    assert filled("all", "-o", "name").split() == ["pod/a", "pod/b", "deployment.apps/front"]
    one = store.kinf("get", "pods/a", "deployments.apps/none", "-n", "web")
    assert one.status == 1 and words(one.stdout)[1][0] == "pod/a" and 'deployments.apps "web/none" not found' in one.stderr
    listed = store.kinf("get", "pods,deployments.apps", "-o", "json", check=True).json
    assert [item["kind"] for item in listed["items"]] == ["Pod", "Pod", "Deployment"]
    assert filled("nodes,pods", "--no-headers", "-n", "web").startswith("pod/a")


@pytest.mark.parametrize("args, sentence", [
    (["pods,"], "the name of a feed is empty"),
    (["pods/a", "b"], "write each as FEED/NAME"),
    (["all", "x"], "a name needs one kind"),
    (["pods,nodes", "--limit", "1"], "are for one feed"),
    (["pods", "-w", "-o", "count"], "allowed are table, wide, name, json, yaml, jsonpath=TEMPLATE"),
    (["pods", "-w", "-o", "go-template={{.kind}}"], "Go templates are not supported"),
    (["pods,nodes", "-w"], "watch one feed at a time"),
])
def test_what_makes_no_sense_is_refused(filled, store, args, sentence):
    result = store.kinf("get", *args)
    assert result.status in (1, 2) and sentence in result.stderr, result


def test_get_w_is_a_watch(filled, store, simulator):
    rows = words(filled("pods", "-w", "--count", "2", "-o", "wide"))
    assert rows[0][:3] == ["NAMESPACE", "NAME", "READY"] and rows[0][-1] == "GATES" and len(rows) == 3
    rows = words(filled("pods", "b", "-w", "--count", "1", "--output-watch-events", "-n", "web"))
    assert rows[0][:2] == ["EVENT", "NAME"] and rows[1][:2] == ["ADDED", "b"]
    text = filled("pods", "-w", "--count", "2", "-o", "jsonpath={.metadata.name}:{.spec.nodeName}{'\\n'}")
    assert text == "a:node-with-a-long-name\nb:\n", "each object is a document of its own"
    rows = words(filled("pods", "-w", "--count", "2", "-o", "custom-columns=NAME:.metadata.name,APP:.metadata.labels.app"))
    assert rows == [["NAME", "APP"], ["a", "x"], ["b", "<none>"]]
    events = lambda form: filled("pods", "b", "-w", "--count", "1", "--output-watch-events", "-n", "web", "-o", form)
    assert events("jsonpath={.type}:{.object.metadata.name}") == "ADDED:b", "kubectl's templates are of the event"
    assert words(events("custom-columns=T:.type,N:.object.metadata.name")) == [["T", "N"], ["ADDED", "b"]]
    text = events("yaml")
    assert text.startswith("object:\n  apiVersion: v1\n") and text.endswith("\ntype: ADDED\n"), text
    quiet = store.follower("get", "pods", "-w", "--output-watch-events", "-n", "web")
    eventually(lambda: "b" in quiet.out)
    simulator.delete("pods", "web/b")
    eventually(lambda: "DELETED" in quiet.out)
    assert [line.split()[0] for line in quiet.out.splitlines()] == ["EVENT", "ADDED", "ADDED", "DELETED"], "kubectl has no row for SYNC"
    assert words(filled("pods/web/a", "--watch", "--count", "1", "--show-labels"))[1][-1] == "app=x,example.com/tier=front"


def test_jsonpath_is_kubectls(filled):
    assert filled("pods", "-o", "jsonpath={.items[?(@.status.phase=='Running')].metadata.name}") == "a"
    assert filled("pods", "-o", "jsonpath={.kind} {.items[-1:].metadata.name}") == "List b"
    assert filled("pods", "-o", "jsonpath={range .items[*]}{.metadata.name}{'\\t'}{.status.phase}{'\\n'}{end}") == "a\tRunning\nb\tPending\n"
    assert filled("pods", "web/a", "-o", "jsonpath={.metadata.labels}") == '{"app":"x","example.com/tier":"front"}'
    assert filled("pods", "--field-selector", "status.containerStatuses[name=c].ready=true", "-o", "name") == "pod/a\n"
    assert filled("pods", "--field-selector", 'status.containerStatuses[?(@.name=="c")].ready=true', "-o", "name") == "pod/a\n"


WIDGETS = {"metadata": {"name": "widgets.example.com"}, "spec": {"group": "example.com", "versions": [
    {"name": "v0", "additionalPrinterColumns": [{"name": "Wrong", "type": "string", "jsonPath": ".spec"}]},
    {"name": "v1", "additionalPrinterColumns": [
        {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status', "description": "tab\there"},
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1}]}]}}
DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


@pytest.fixture
def widgets(simulator):
    simulator.add_kind(group="apiextensions.k8s.io", version="v1", resource="customresourcedefinitions",
                       kind="CustomResourceDefinition", namespaced=False)
    simulator.put(DEFINITIONS, WIDGETS)
    simulator.put("widgets", obj("web", "w", spec={"size": 7}, status={"conditions": [{"type": "Ready", "status": "False"}]}))
    return simulator


def wide(store):
    return words(store.kinf("get", "widgets", "-n", "web", "-o", "wide").stdout)


@pytest.mark.parametrize("others", [[], [{"resource": DEFINITIONS, "objects": "metadata"}]], ids=["alone", "metadata"])
def test_columns_of_custom_resources_are_kept_for_later_readers(widgets, store, others):
    store.configure("widgets", *others)
    daemons = store.daemons()
    eventually(lambda: wide(store) == [["NAME", "READY", "SIZE"], ["w", "False", "7"]])
    assert words(store.kinf("get", "widgets").stdout) == [["NAMESPACE", "NAME", "READY"], ["web", "w", "False"]]
    for daemon in daemons:
        daemon.kill()
    assert wide(store)[0] == ["NAME", "READY", "SIZE"], "nothing runs, and the columns are there"


def test_watched_definitions_have_the_columns(widgets, store):
    store.configure("widgets", DEFINITIONS)
    store.daemons()
    eventually(lambda: wide(store)[:1] == [["NAME", "READY", "SIZE"]])
    changed = {**WIDGETS, "spec": {"group": "example.com", "versions": [{"name": "v1"}]}}
    widgets.put(DEFINITIONS, changed)
    eventually(lambda: wide(store)[0] == ["NAME", "AGE"])


def test_without_the_right_to_read_definitions_there_are_name_and_age(simulator, store):
    simulator.put("widgets", obj("web", "w"))
    store.configure("widgets")
    store.daemons()
    eventually(lambda: wide(store)[:1] == [["NAME", "AGE"]])
