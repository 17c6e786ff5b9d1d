# SPDX-License-Identifier: Apache-2.0
"""--at: the state as of a time, some time ago or an event, through get, describe, index and export."""

import json
import os
import re
import shutil
import subprocess
from datetime import datetime, timedelta, timezone

import pytest

from harness import eventually
from harness.objects import pod
from harness.process import program
from harness.serve import TABLE, Serve
from harness.store import whole


def now():
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Past:
    """A store with a changing cluster, and a watcher's notes of each moment: (time, event, pods by key)."""

    def __init__(self, shared):
        self.simulator = shared.simulator()
        self.store = shared.store("moments", simulator=self.simulator)
        self.before = now()
        self.simulator.put("pods", pod("old", "shop", node="n0"))
        self.store.configure(whole("pods", indexes={"node": "spec.nodeName"}), whole("nodes"), retention={"time": "1h", "size": "64MiB"})
        self.store.daemons()
        self.store.wait_live("pods")
        self.store.wait_live("nodes")
        self.moments = []
        self.change(lambda: self.simulator.put("pods", pod("a", node="n1")))
        self.change(lambda: self.simulator.put("pods", pod("a", node="n2")))
        self.change(lambda: self.simulator.put("pods", pod("b", node="n2")))
        self.change(lambda: self.simulator.delete("pods", "web/a"))
        self.change(lambda: self.simulator.put("pods", pod("b", node="n3")))

    def change(self, act):
        act()
        self.store.wait_equal(self.simulator, "pods")
        log = self.store.kinf("log", "pods", "-o", "json", check=True).lines
        self.moments.append((now(), log[-1]["event"], self.simulator.truth("pods")))


@pytest.fixture(scope="module")
def past(shared):
    return Past(shared)


def names(truth):
    return [f"pod/{obj['metadata']['name']}" for obj in truth.values()]


def test_each_moment_shows_what_a_watcher_saw_then(past):
    for at, event, truth in past.moments:
        for when in (at, str(event)):
            assert past.store.objects("pods", "--at", when) == truth
            assert past.store.kinf("get", "pods", "--at", when, "-o", "name", check=True).stdout.split() == names(truth)
            selected = past.store.kinf("get", "pods", "--at", when, "--index", "node=n2", "-o", "name", check=True).stdout.split()
            assert selected == [name for name, obj in zip(names(truth), truth.values(), strict=True) if obj["spec"]["nodeName"] == "n2"]
            searched = past.store.kinf("get", "pods", "--at", when, "--field-selector", "spec.nodeName=n2", "-l", "app=front", "-o", "name")
            assert searched.stdout.split() == selected
            table = past.store.kinf("get", "pods", "--at", when, "-o", "wide", "--no-headers", check=True).stdout.splitlines()
            assert [f"pod/{line.split()[1]}" for line in table] == names(truth)


def test_the_very_time_of_a_change_shows_it_and_a_millisecond_before_does_not(past):
    log = {entry["event"]: entry["time"] for entry in past.store.kinf("log", "pods", "-o", "json", check=True).lines}
    for before, (_, event, truth) in zip(past.moments, past.moments[1:], strict=False):
        recorded = datetime.fromisoformat(log[event])  # cut to milliseconds
        assert past.store.objects("pods", "--at", (recorded + timedelta(milliseconds=1)).isoformat()) == truth
        assert past.store.objects("pods", "--at", (recorded - timedelta(microseconds=1)).isoformat()) == before[2]


def test_how_long_ago(past):
    eventually(lambda: past.store.objects("pods", "--at", "50ms") == past.moments[-1][2])
    early = past.store.kinf("get", "pods", "--at", "1h")
    assert early.status == 1 and "nothing is known of" in early.stderr
    minute = past.store.kinf("get", "pods", "--at", "2020-02-03T04:05+01:00")
    assert minute.status == 1 and "nothing is known of 2020-02-03T03:05:00Z" in minute.stderr


def test_one_object_deleted_or_created_since(past):
    at, _, _ = past.moments[1]
    kinf = past.store.kinf
    assert kinf("get", "pod", "-n", "web", "a", "--at", at, "-o", "jsonpath={.spec.nodeName}", check=True).stdout == "n2"
    assert kinf("get", "pod", "web/b", "--at", at).stderr == 'Error: pods "web/b" not found\n'
    text = kinf("describe", "pod", "web/a", "--at", at, check=True).stdout
    assert "Node:" in text and "n2" in text and "Deleted:" not in text
    rows = [line.split()[1] for line in text[text.index("History:"):].splitlines()[2:]]
    assert rows == ["ADDED", "MODIFIED"]
    assert kinf("describe", "pod", "web/b", "--at", at).stderr == 'Error: pods "web/b" not found\n'


def test_values_of_an_index(past):
    for at, event, truth in past.moments:
        nodes = [obj["spec"]["nodeName"] for obj in truth.values()]
        for when in (at, str(event)):
            values = past.store.kinf("index", "pods", "node", "--at", when, check=True).stdout
            assert values == "".join(f"{node}\t{nodes.count(node)}\n" for node in sorted(set(nodes)))
    bare = past.store.kinf("index", "pods", "--at", past.moments[0][0])
    assert bare.status == 2 and "name it" in bare.stderr


def test_an_export_is_of_then(past):
    at, _, truth = past.moments[1]
    exported = past.store.kinf("export", "pods", "--full", "--at", at, check=True).json["items"]
    assert exported == list(truth.values())
    early = past.store.kinf("export", "pods", "--at", "1")
    assert early.status == 1 and early.stdout.count("items") <= 1 and "its first list ended with event" in early.stderr
    partial = past.store.kinf("export", "--at", str(past.moments[0][1]), check=True)
    assert [item["metadata"]["name"] for item in partial.json["items"]] == [obj["metadata"]["name"] for obj in past.moments[0][2].values()]


def test_ages_are_of_then(past):
    at, _, _ = past.moments[0]
    eventually(lambda: (datetime.now(timezone.utc) - datetime.fromisoformat(at)).total_seconds() > 2)
    table = past.store.kinf("get", "pods", "--at", at, "-o", "json", check=True).json
    created = {item["metadata"]["name"]: item["metadata"]["creationTimestamp"] for item in table["items"]}
    lines = past.store.kinf("get", "pods", "--at", at, "--no-headers", check=True).stdout.splitlines()
    for line in lines:
        fields = line.split()
        age = int(datetime.fromisoformat(at).timestamp() - datetime.fromisoformat(created[fields[1]]).timestamp())
        if age < 100:
            assert fields[-1] == f"{age}s", line


def test_what_can_not_be_shown_is_explained(past):
    for when, status, sentence in (
        ("2001-01-01T00:00:00Z", 1, "nothing is known of 2001-01-01T00:00:00Z: the history begins at 20"),
        (past.before, 1, "nothing is known of "),
        ("2101-01-01T00:00:00Z", 2, "'2101-01-01T00:00:00Z' is in the future: it is 20"),
        ("yesterday", 2, "--at: 'yesterday' is no time: write one such as 20"),
        ("0", 2, "the first event is 1"),
        ("999999", 1, "event 999999 is not there yet; the newest is "),
        ("1", 1, "the state of 'pods' as of event 1 is not known: its first list ended with event "),
        ("", 2, "'' is no time"),
    ):
        for command in (["get", "pods"], ["describe", "pods"], ["index", "pods", "node"], ["export", "pods"]):
            answer = past.store.kinf(*command, "--at", when)
            assert answer.status == status and sentence in answer.stderr, (command, answer)


def test_a_feed_that_was_listed_later(workspace):
    simulator = workspace.simulator()
    simulator.put("pods", pod("a"))
    simulator.put("nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
    store = workspace.store(simulator=simulator)
    store.start(simulator, whole("pods"))
    at = now()
    store.configure(whole("pods"), whole("nodes"))
    store.kinf("reload", check=True)
    store.wait_equal(simulator, "nodes")
    assert list(store.objects("pods", "--at", at)) == ["web/a"]
    answer = store.kinf("get", "nodes", "--at", at)
    assert answer.status == 1 and "the state of 'nodes' as of event" in answer.stderr and "its first list ended with" in answer.stderr
    exported = store.kinf("export", "--at", at, check=True)
    assert [item["kind"] for item in exported.json["items"]] == ["Pod"] and "note: not exported: the state of 'nodes'" in exported.stderr


def test_a_stopped_store_and_a_copy(past, tmp_path):
    at, _, truth = past.moments[2]
    past.store.kinf("backup", f"{tmp_path}/copy/", check=True)
    shutil.copytree(past.store.path, tmp_path / "files")
    for copy in ("copy", "files"):
        answer = past.store.kinf("get", "pods", "--at", at, "-o", "json", "--store", str(tmp_path / copy), check=True)
        assert answer.json["items"] == list(truth.values())


def test_pages_of_an_earlier_state(past):
    _, event, truth = past.moments[2]
    args = ["get", "pods", "--at", str(event), "--limit", "1", "--sort-by", "spec.nodeName", "-o", "json"]
    page = past.store.kinf(*args, check=True).json
    found = [page["items"][0]["metadata"]["name"]]
    while token := page["metadata"].get("continue"):
        page = past.store.kinf(*args, "--continue", token, check=True).json
        found += [item["metadata"]["name"] for item in page["items"]]
    assert found == [o["metadata"]["name"] for o in sorted(truth.values(), key=lambda o: o["spec"]["nodeName"])]
    other = past.store.kinf("get", "pods", "--limit", "1", "--at", str(event), "-o", "json", check=True).json["metadata"]["continue"]
    wrong = past.store.kinf("get", "pods", "--limit", "1", "--at", str(event + 1), "--continue", other)
    assert wrong.status == 2 and f"of a list as of event {event}, not {event + 1}" in wrong.stderr


def test_options_of_the_present_are_refused(past):
    for args in (["--at", "5", "--max-staleness", "5m"], ["-w", "--at", "5"]):
        assert past.store.kinf("get", "pods", *args).status == 2


def test_the_past_goes_with_the_history(simulator, workspace):
    simulator.create("pods", 5)
    store = workspace.store(simulator=simulator)
    store.start(simulator, whole("pods"), retention={"time": "1s"})
    event = store.kinf("log", "-o", "json", check=True).lines[-1]["event"]

    def gone():
        simulator.touch("pods", 5)
        answer = store.kinf("get", "pods", "--at", str(event))
        return answer.status == 1 and re.search(rf"as of event {event} is not kept, but those from event \d+ to \d+ are", answer.stderr)

    eventually(gone)


# ---- kinf-serve --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("at", "sentence"), [
    ("2001-01-01T00:00:00Z", "nothing is known of 2001-01-01T00:00:00Z: the history begins at"),
    ("2101-01-01T00:00:00Z", "is in the future"),
    ("noon", "is no time"),
    ("999999", "event 999999 is not there yet"),
])
def test_a_past_that_can_not_be_served_ends_the_start(past, at, sentence):
    past.store.configure(whole("pods"), whole("nodes"), serve={"listen": ["unix"]})
    ended = subprocess.run([program("kinf"), "serve", "--at", at], env={**os.environ, **past.store.env}, capture_output=True, text=True, timeout=20, check=False)
    assert ended.returncode != 0 and sentence in ended.stderr, ended


@pytest.fixture(scope="module")
def served(past):
    """kinf-serve with the third moment, and another change of the cluster after it."""
    at, _, truth = past.moments[2]
    past.store.configure(whole("pods", indexes={"node": "spec.nodeName"}), whole("nodes"), retention={"time": "1h", "size": "64MiB"},
                         serve={"listen": ["unix"], "at": at})
    return Serve(past.store, past.simulator), truth


PODS = "/api/v1/pods"


def test_the_past_as_an_api_server(past, served):
    serve, truth = served
    listed = serve.ask(PODS).json
    assert [without_kind(obj) for obj in listed["items"]] == [without_kind(obj) for obj in truth.values()]
    assert listed["metadata"]["resourceVersion"] == max((obj["metadata"]["resourceVersion"] for obj in truth.values()), key=int)
    assert serve.ask(PODS + "?fieldSelector=spec.nodeName%3Dn2").names == ["a", "b"]
    first = serve.ask(PODS + "?limit=1").json
    rest = serve.ask(PODS + "?limit=5&continue=" + first["metadata"]["continue"]).names
    assert [obj["metadata"]["name"] for obj in first["items"]] + rest == ["old", "a", "b"]
    assert without_kind(serve.ask("/api/v1/namespaces/web/pods/a").json) == without_kind(truth["web/a"])
    assert without_kind(serve.ask("/api/v1/namespaces/web/pods/b").json) == without_kind(truth["web/b"])
    assert [row["cells"][0] for row in serve.ask(PODS, accept=TABLE).json["rows"]] == ["old", "a", "b"]
    assert serve.ask("/api/v1/nodes").names == []
    assert "warning" not in serve.ask(PODS).headers


def without_kind(obj):
    return {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}


def test_an_object_created_after_the_past_is_not_found(past, served):
    serve, _ = served
    past.simulator.put("pods", pod("late"))
    past.store.wait_equal(past.simulator, "pods")
    assert serve.ask("/api/v1/namespaces/web/pods/late").status == 404
    assert serve.ask(PODS).names == ["old", "a", "b"]


def test_a_watch_of_the_past_is_open_and_silent(past, served):
    serve, truth = served
    with serve.watch(PODS + "?watch=1&timeoutSeconds=2") as watch:
        assert [event[:2] for event in watch.next(3)] == [("ADDED", "old"), ("ADDED", "a"), ("ADDED", "b")]
        past.simulator.put("pods", pod("silent"))
        past.store.wait_equal(past.simulator, "pods")
        assert watch.rest() == []
    rv = serve.ask(PODS).rv
    with serve.watch(f"{PODS}?watch=1&timeoutSeconds=1&resourceVersion={rv}") as watch:
        assert watch.rest() == []


def test_the_log_since_then_is_read_in_slices(past, served):
    serve, truth = served
    past.simulator.create("nodes", 300)
    for _ in range(3):
        past.simulator.touch("nodes")
    past.store.wait_equal(past.simulator, "nodes")
    assert without_kind(serve.ask("/api/v1/namespaces/web/pods/a").json) == without_kind(truth["web/a"])
    assert serve.ask("/api/v1/nodes").names == []
    assert [without_kind(obj) for obj in serve.ask(PODS).json["items"]] == [without_kind(obj) for obj in truth.values()]
    assert serve.ask("/api/v1/nodes/no").status == 404


def test_the_past_is_not_written(served):
    serve, _ = served
    for method, path in (("POST", "/api/v1/namespaces/web/pods"), ("DELETE", "/api/v1/namespaces/web/pods/a"),
                         ("PUT", "/api/v1/namespaces/web/pods/a"), ("PATCH", "/api/v1/namespaces/web/pods/a")):
        assert serve.ask(path, method=method, body="{}", content_type="application/json").status == 405


# ---- a replay ----------------------------------------------------------------------------------------


@pytest.fixture
def replay(past, served):
    """kinf-serve from the first moment on, standing still. The last change came by a list alone."""
    serve, _ = served
    past.simulator.swallow("pods")
    past.simulator.put("pods", pod("missed", node="n2"))
    past.store.kinf("relist", "pods", check=True)
    past.store.wait_equal(past.simulator, "pods")
    serve.process.stop()
    past.store.configure(whole("pods", indexes={"node": "spec.nodeName"}), whole("nodes"), retention={"time": "1h", "size": "64MiB"},
                         serve={"listen": ["unix"], "at": str(past.moments[0][1]), "replay": "0x"})
    serve.start()
    return serve


def where(answer):
    return int(answer.stdout.split()[1].rstrip(","))


def test_a_replay_gives_what_a_live_watcher_saw(past, replay):
    kinf = past.store.kinf
    rv = past.moments[0][2]["web/a"]["metadata"]["resourceVersion"]
    paths = [PODS + "?watch=1&" + rest for rest in ("timeoutSeconds=60", "fieldSelector=spec.nodeName%3Dn2&timeoutSeconds=60")]
    live = [replay.server.watch(f"{path}&resourceVersion={rv}") for path in paths]
    watches = [replay.watch(f"{path}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true") for path in paths]
    # An informer of client-go begins like this.
    assert [event[:2] for event in watches[0].next(3)] == [("ADDED", "old"), ("ADDED", "a"), ("BOOKMARK", None)]
    assert watches[1].next()[:2] == ("BOOKMARK", None)
    assert replay.ask(PODS).names == ["old", "a"]

    def same(watch, truth):
        mine, wanted = json.loads(watch.line()), json.loads(truth.line())
        assert mine == wanted
        return wanted["type"], wanted["object"]["metadata"]["name"]

    # Step by step: each change once, in order, and lists and objects are of then.
    for _, event, truth in past.moments[1:]:
        assert where(kinf("replay", "step", check=True)) == event
        same(watches[0], live[0])
        assert [without_kind(obj) for obj in replay.ask(PODS).json["items"]] == [without_kind(obj) for obj in truth.values()]
    assert replay.ask("/api/v1/namespaces/web/pods/a").status == 404
    # Everything else at once, such as the changes of other tests; the list's change last.
    kinf("replay", "run", "1000000x", check=True)
    while same(watches[0], live[0]) != ("ADDED", "missed"):
        pass
    assert [without_kind(obj) for obj in replay.ask(PODS).json["items"]] == [without_kind(obj) for obj in past.simulator.truth("pods").values()]
    # A selector's watch sees objects come and go.
    assert same(watches[1], live[1]) == ("ADDED", "a")
    assert same(watches[1], live[1]) == ("ADDED", "b")
    assert same(watches[1], live[1]) == ("DELETED", "a")
    assert same(watches[1], live[1]) == ("DELETED", "b")
    assert same(watches[1], live[1]) == ("ADDED", "missed")
    # At the end it is the present.
    past.simulator.put("pods", pod("new", node="n2"))
    assert same(watches[0], live[0]) == ("ADDED", "new")
    _, moment, pace = kinf("replay", "stop", check=True).stdout.split(", ")
    assert pace.startswith("stands still; ")
    assert datetime.fromisoformat(moment) <= datetime.now(timezone.utc), "it does not run ahead of the present"
    for words, status, sentence in ((["go"], 2, "'go' is no command: step, run or stop"), (["run", "fast"], 1, "'fast' is no speed: write 1x, 10x"),
                                    (["step", "x"], 1, "not a number: 'x'")):
        refused = kinf("replay", *words)
        assert refused.status == status and sentence in refused.stderr


def test_a_replay_that_is_none(past, served):
    serve, _ = served
    serve.process.stop()
    gone = past.store.kinf("replay")
    assert gone.status == 1 and "kinf-serve does not run on store" in gone.stderr
    for options, sentence in ((["--replay"], "a replay needs a moment to begin at"), (["--at", "1h", "--replay", "fast"], "'fast' is no speed")):
        past.store.configure(whole("pods"), whole("nodes"), serve={"listen": ["unix"]})
        ended = subprocess.run([program("kinf-serve"), *options], env={**os.environ, **past.store.env}, capture_output=True, text=True, timeout=20, check=False)
        assert ended.returncode != 0 and sentence in ended.stderr, ended
