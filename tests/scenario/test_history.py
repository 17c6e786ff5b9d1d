# SPDX-License-Identifier: Apache-2.0
"""kinf history, kinf log and kinf diff --from: the changes in the retained past."""

import copy
import json

import pytest

from harness import eventually
from harness.objects import pod
from harness.store import whole


@pytest.fixture(scope="module")
def past(shared):
    """(simulator, store): web/front was created, moved, given a label, deleted; shop/old got ready and
    was killed; a Secret's value changed."""
    simulator = shared.simulator()
    store = shared.store(simulator=simulator)
    simulator.put("pods", pod("old", "shop", app="a", node="n0"))
    store.configure(whole("pods"), whole("secrets", drop=[]), retention={"time": "1h", "size": "64MiB"}).daemons()
    for feed in ("pods", "secrets"):
        store.wait_live(feed)
    front = pod("front", "web", app="a", node="n1")
    simulator.put("pods", front)
    simulator.put("pods", pod("front", "web", app="a", node="n2"))
    simulator.put("pods", pod("front", "web", app="b", node="n2"))
    simulator.delete("pods", "web/front")
    old = pod("old", "shop", app="a", node="n0")
    ready = {"type": "Ready", "status": "False"}
    old["status"]["conditions"] = [ready]
    killed = {"name": "a", "restartCount": 1, "lastState": {"terminated": {"reason": "OOMKilled"}}}
    for part in ({"conditions": [{**ready, "status": "True"}]}, {"containerStatuses": [killed]}):
        simulator.put("pods", copy.deepcopy(old))
        old["status"].update(part)
    old["metadata"]["annotations"] = {"a/b": "c"}
    simulator.put("pods", old)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "web"}, "data": {"password": "aHVudGVyMg=="}}
    simulator.put("secrets", secret)
    secret["data"]["password"] = "aHVudGVyMw=="
    secret["metadata"]["managedFields"] = [
        {"manager": "early", "time": "2026-01-01T00:00:00Z", "operation": "Update"},
        {"manager": "kubectl", "time": "2026-02-01T00:00:00Z", "operation": "Update"},
    ]
    simulator.put("secrets", secret)
    for feed in ("pods", "secrets"):
        store.wait_equal(simulator, feed)
    eventually(lambda: "DELETED" in store.kinf("log").stdout and store.kinf("log", "secrets").stdout.count("\n") == 2)
    return simulator, store


@pytest.fixture
def kinf(past):
    return past[1].kinf


def lines(answer):
    return [json.loads(line) for line in answer.stdout.splitlines()]


def test_history_shows_each_version_and_its_fields(kinf):
    text = kinf("history", "pods", "front", "-n", "web", check=True).stdout
    heads = [line.split()[1] for line in text.splitlines() if not line.startswith(" ")]
    assert heads == ["ADDED", "MODIFIED", "MODIFIED", "DELETED"]
    assert "    spec.nodeName: n1 -> n2\n" in text and "    metadata.labels.app: a -> b\n" in text
    assert "resourceVersion:" not in text
    versions = lines(kinf("history", "pods/web/front", "-o", "json", check=True))
    assert [v["type"] for v in versions] == heads
    assert {"path": "spec.nodeName", "old": "n1", "new": "n2"} in versions[1]["changes"]
    assert "changes" not in versions[0] and "changes" not in versions[3]
    assert [v["event"] for v in versions] == sorted(v["event"] for v in versions)


def test_log_names_the_changes_of_all_feeds_in_order(kinf):
    log = lines(kinf("log", "-o", "json", check=True))
    assert [e["event"] for e in log] == sorted(e["event"] for e in log)
    assert {e["feed"] for e in log} == {"pods", "secrets"}
    of_front = [(e["type"], [c["path"] for c in e.get("changes", [])]) for e in log if e["key"] == "web/front"]
    assert of_front == [("ADDED", []), ("MODIFIED", ["spec.nodeName"]), ("MODIFIED", ["metadata.labels.app"]), ("DELETED", [])]
    text = kinf("log", "pods", "-n", "web", check=True).stdout.splitlines()
    assert [line.split()[2:5] for line in text] == [[kind, "pods", "web/front"] for kind, _ in of_front]
    assert text[1].endswith(" spec.nodeName")
    assert kinf("log", "--from", str(log[-1]["event"]), check=True).stdout.count("\n") == 1
    assert kinf("log", "--since", "1ms", check=True).stdout == ""
    assert len(lines(kinf("log", "--since", "1h", "-o", "json", check=True))) == len(log)


@pytest.mark.parametrize("command", [["history"], ["describe"], ["diff", "--from", "1"]], ids=lambda c: c[0])
def test_a_name_with_its_namespace_may_be_beside_the_same_one(kinf, command):
    """"secrets "web/web/s" not found" was the answer."""
    same, other = (kinf(*command, "secrets", "web/s", "-n", n) for n in ("web", "shop"))
    assert "web/web" not in same.stderr and (same.status == 0 or command[0] == "diff"), same
    assert other.status == 2 and "'web/s' is not in the namespace 'shop'" in other.stderr, other


def test_diff_compares_an_object_with_its_past(kinf):
    events = [v["event"] for v in lines(kinf("history", "secrets", "s", "-n", "web", "-o", "json", check=True))]
    answer = kinf("diff", "secrets", "s", "-n", "web", "--from", str(events[0]))
    assert answer.status == 1 and "data.password: <7 bytes> -> <7 bytes>" in answer.stdout
    assert kinf("diff", "secrets", "web/s", "--from", str(events[1])).status == 0
    gone = [v["event"] for v in lines(kinf("history", "pods", "web/front", "-o", "json", check=True))]
    answer = kinf("diff", "pods", "web/front", "--from", str(gone[0]))
    assert (answer.status, answer.stdout) == (1, "deleted since\n")
    early = kinf("diff", "pods", "web/front", "--from", "1")
    assert early.status == 1 and f"event {gone[0]}" in early.stderr


def test_values_of_secrets_are_hidden(kinf):
    for command in (["history", "secrets", "web/s"], ["log", "secrets"], ["history", "secrets", "web/s", "-o", "json"], ["log", "-o", "json"]):
        text = kinf(*command, check=True).stdout
        assert "aHVudGVy" not in text and "data.password" in text, command


def test_those_who_changed_it_are_named(kinf):
    text = kinf("history", "secrets", "web/s", check=True).stdout
    assert "  by kubectl\n" in text and "early" not in text
    assert lines(kinf("history", "secrets", "web/s", "-o", "json"))[-1]["managers"] == "kubectl"


def test_the_last_writer_is_not_named_as_who_deleted_it(simulator, store):
    simulator.put("pods", pod("front", managedFields=[{"manager": "writer", "time": "2026-01-02T03:04:05Z"}],
                              annotations={"kinformer/audit-user": "of no audit log"}))
    store.start_synced(whole("pods", drop=[]))
    simulator.delete("pods", "web/front")
    store.wait_equal(simulator, "pods")
    first, last = store.kinf("history", "pods", "web/front", check=True).stdout.splitlines()
    assert first.endswith("  by writer") and "  DELETED  " in last and " by " not in last


@pytest.mark.parametrize(
    "args,status,error",
    [
        (["history", "pods"], 2, "write a feed and a name"),
        (["history", "pods", "front"], 2, "write -n NAMESPACE, or NAMESPACE/front"),
        (["history", "pods", "web/none"], 1, 'pods "web/none" not found'),
        (["history", "pdos", "web/front"], 1, "pdos"),
        (["history", "pods", "web/front", "-o", "yaml"], 2, "must be text or json"),
        (["log", "pods", "secrets"], 2, "write one feed"),
        (["log", "pdos"], 1, "pdos"),
        (["log", "--since", "yesterday"], 2, "--since"),
        (["diff", "pods", "web/front", "--from", "x"], 2, "no event number"),
        (["diff", "a", "b", "-n", "web"], 2, "-n is for one object"),
        (["diff", "pods", "web/front"], 1, "no store 'pods' here; to see what has changed in an object of the feed 'pods', add --from"),
        (["diff", "secrets", "s", "-n", "web", "--from", "99999999"], 1, "event 99999999 is not there yet; the newest is "),
    ],
)
def test_bad_arguments(kinf, args, status, error):
    answer = kinf(*args)
    assert answer.status == status and error in answer.stderr and not answer.stdout


def test_log_of_all_feeds_names_the_one_that_was_never_listed(simulator, store):
    simulator.fault(verb="list", resource="pods", status=403, body="no")
    store.configure("pods").daemons()
    eventually(lambda: store.feed_status("pods")["state"] == "forbidden")
    answer = store.kinf("log")
    assert (answer.status, answer.stdout) == (1, "") and "Error: pods: never listed so far, it is forbidden: 403" in answer.stderr, answer


def test_history_of_some_fields_and_of_the_last_minutes(kinf):
    labels = lines(kinf("history", "pods/web/front", "-o", "json", "--fields", "metadata.labels", check=True))
    assert [(v["type"], [c["path"] for c in v.get("changes", [])]) for v in labels] == [
        ("ADDED", []), ("MODIFIED", ["metadata.labels.app"]), ("DELETED", [])]
    text = kinf("history", "pods/web/front", "--fields", "spec", check=True).stdout
    assert "spec.nodeName: n1 -> n2" in text and "labels" not in text and text.count("MODIFIED") == 1
    assert kinf("history", "pods/web/front", "--fields", "metadata.label", check=True).stdout.count("MODIFIED") == 0
    assert kinf("history", "pods/web/front", "--since", "1ms", check=True).stdout == ""
    assert len(lines(kinf("history", "pods/web/front", "--since", "1h", "-o", "json", check=True))) == 4
    log = kinf("log", "--fields", "spec", check=True).stdout.splitlines()
    assert len(log) == 2 and " MODIFIED pods web/front" in log[0] and log[1] == "    spec.nodeName: n1 -> n2"
    changes = lines(kinf("log", "--fields", "data", "-o", "json", check=True))
    assert [(c["key"], [f["path"] for f in c["changes"]]) for c in changes] == [("web/s", ["data.password"])]
    wrong = kinf("history", "pods/web/front", "--fields", "a[")
    assert wrong.status == 2 and "field path 'a['" in wrong.stderr


@pytest.mark.parametrize("fields,change", [
    ("status.conditions[type=Ready].status", "    status.conditions[type=Ready].status: False -> True"),
    ("status.conditions[0].status", "    status.conditions[type=Ready].status: False -> True"),
    ("status.containerStatuses[*].lastState.terminated.reason",
     "  + status.containerStatuses[name=a].lastState.terminated.reason: OOMKilled"),
    ("metadata.annotations['a/b']", "  + metadata.annotations['a/b']: c"),
])
def test_fields_of_an_item_and_those_that_came_with_their_map(kinf, fields, change):
    """An item was found by [*] only; a first OOM kill, which comes with its map, not at all."""
    for command in (["log"], ["history", "pods/shop/old"]):
        head, line = kinf(*command, "--fields", fields, check=True).stdout.splitlines()[-2:]
        assert " MODIFIED " in head and line == change
    assert kinf("log", "--fields", "status.conditions[type=None].status", check=True).stdout == ""
