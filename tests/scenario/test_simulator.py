# SPDX-License-Identifier: Apache-2.0
"""The simulated API server: the behaviour of a real one as far as scenarios rely on it, and its faults."""

import base64
import json
import socket
import time
from urllib.parse import quote

import pytest

from harness import PATIENCE
from harness.simulator import event_summary, object_key


@pytest.fixture(autouse=True)
def simulator_under_test(monkeypatch):
    """Here the simulator itself is tested: the program of the build under test, with its sanitizers."""
    monkeypatch.delenv("KINF_SIMULATOR_BUILD", raising=False)


WATCH_LIST = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"


def pod(name, namespace="web", app="front", node="n1", phase="Running"):
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": app}},
        "spec": {"nodeName": node},
        "status": {"phase": phase},
    }


def names(answer):
    return [object_key(item) for item in answer.json["items"]]


def continue_token(rv, start):
    text = json.dumps({"v": "meta.k8s.io/v1", "rv": rv, "start": start}, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def assert_status(answer, code, reason, message):
    status = answer.json
    assert (answer.status, status["kind"], status["code"]) == (code, "Status", code)
    assert status.get("reason", "") == reason
    assert message in status["message"]
    return status


# ---- discovery -------------------------------------------------------------------------------------


def test_discovery_is_served_in_both_forms(simulator):
    assert simulator.get("/api").json["versions"] == ["v1"]
    groups = simulator.get("/apis").json["groups"]
    assert [g["name"] for g in groups] == ["apps", "rbac.authorization.k8s.io", "example.com"]
    assert groups[0]["preferredVersion"] == {"groupVersion": "apps/v1", "version": "v1"}
    core = {r["name"]: r for r in simulator.get("/api/v1").json["resources"]}
    assert (core["pods"]["shortNames"], core["pods"]["kind"], core["pods"]["namespaced"]) == (["po"], "Pod", True)
    assert core["pods"]["categories"] == ["all"] and not core["nodes"]["namespaced"]
    assert core["pods/status"]["verbs"] == ["get", "patch", "update"] and "secrets/status" not in core
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
    for path, group in (("/api", None), ("/apis", "apps")):
        answer = simulator.get(path, Accept=accept)
        assert answer.headers["Content-Type"] == "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        assert answer.json["kind"] == "APIGroupDiscoveryList"
        assert answer.json["items"][0]["metadata"].get("name") == group
    resource = answer.json["items"][0]["versions"][0]["resources"][0]
    assert (resource["resource"], resource["scope"], resource["shortNames"]) == ("deployments", "Namespaced", ["deploy"])
    simulator.settings(aggregated=0)
    assert simulator.get("/apis", Accept=accept).json["kind"] == "APIGroupList"


def test_get_from_the_future_is_refused(simulator):
    """A real server also refuses it for a missing name."""
    simulator.settings(futureWaitMs=50)
    simulator.put("pods", pod("a"))
    for name in ("a", "none"):
        answer = simulator.get(f"/api/v1/namespaces/web/pods/{name}?resourceVersion=100000")
        status = assert_status(answer, 504, "Timeout", "Too large resource version: 100000")
        assert status["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    assert simulator.get(f"/api/v1/namespaces/web/pods/a?resourceVersion={simulator.rv}").status == 200


# ---- objects ---------------------------------------------------------------------------------------


def test_objects_keep_their_bytes(simulator):
    spec = '"spec":{"z":1.0,"a":-0.0,"n":12345678901234567890123,"e":1E5,"x":null,"o":{},"l":[ ],"u":"\\u00e9\\ud83d\\ude00"}'
    simulator.put("widgets", '{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"w","namespace":"d"},' + spec + "}")
    assert spec in simulator.get("/apis/example.com/v1/namespaces/d/widgets/w").body
    assert spec in simulator.get("/apis/example.com/v1/widgets").body
    assert spec in simulator.truth_text("widgets")
    simulator.put("configmaps", '{"metadata":{"name":"c","namespace":"d"},' + spec + "}")
    assert spec in simulator.get("/api/v1/configmaps").body


def test_server_fields_are_given_once(simulator):
    first = simulator.put("pods", pod("a"))
    one = simulator.truth("pods")["web/a"]["metadata"]
    assert one["resourceVersion"] == first and one["uid"] and one["creationTimestamp"]
    second = simulator.patch("pods", "web/a", {"metadata": {"labels": {"app": None, "x": "y"}}})
    two = simulator.truth("pods")["web/a"]["metadata"]
    assert int(second) == int(first) + 1 and two["resourceVersion"] == second
    assert (two["uid"], two["creationTimestamp"], two["labels"]) == (one["uid"], one["creationTimestamp"], {"x": "y"})
    simulator.delete("pods", "web/a")
    simulator.put("pods", pod("a"))
    assert simulator.truth("pods")["web/a"]["metadata"]["uid"] != one["uid"]


def test_built_in_items_have_no_type_and_custom_ones_do(simulator):
    simulator.put("pods", {"kind": "Pod", "apiVersion": "v1", **pod("a")})
    simulator.create("widgets", 1)
    pods = simulator.get("/api/v1/pods").json
    assert list(pods) == ["kind", "apiVersion", "metadata", "items"] and list(pods["items"][0])[0] == "metadata"
    single = simulator.get("/api/v1/namespaces/web/pods/a").json
    assert list(single)[:3] == ["kind", "apiVersion", "metadata"]
    widgets = simulator.get("/apis/example.com/v1/widgets").json
    assert list(widgets) == ["apiVersion", "items", "kind", "metadata"]
    assert widgets["items"][0]["kind"] == "Widget" and widgets["metadata"]["continue"] == ""


MIXED = ["clusterroles.rbac.authorization.k8s.io", "configmaps", "deployments.apps", "events", "namespaces", "nodes", "pods",
         "replicasets.apps", "roles.rbac.authorization.k8s.io", "secrets", "services", "widgets.example.com"]


def size_of(obj):
    return len(json.dumps(obj, separators=(",", ":"), ensure_ascii=False).encode())


def test_the_mix_has_every_state_size_and_kind_of_name(simulator):
    for resource in MIXED:
        simulator.create(resource, 200)
    pods = simulator.truth("pods").values()
    sizes = sorted(map(size_of, pods))
    assert 3000 < sizes[0] and sizes[len(pods) // 2] < 11000 and sizes[len(pods) * 9 // 10] < 17000 and sizes[-1] > 150000
    assert {pod["status"]["phase"] for pod in pods} == {"Pending", "Running", "Succeeded", "Failed"}
    states = [c["state"] for pod in pods for c in pod["status"].get("containerStatuses", [])]
    reasons = {state[kind].get("reason") for state in states for kind in state}
    assert {"CrashLoopBackOff", "ImagePullBackOff", "ContainerCreating", "PodInitializing", "Completed", "Error"} <= reasons
    assert any("deletionTimestamp" in pod["metadata"] for pod in pods) and any("nodeName" not in pod["spec"] for pod in pods)
    assert any(c.get("restartPolicy") == "Always" for pod in pods for c in pod["spec"].get("initContainers", []))
    sizes = sorted(map(size_of, simulator.truth("configmaps").values()))
    assert sizes[0] < 300 and sizes[-1] > 850000
    names = {name for role in simulator.truth("clusterroles.rbac.authorization.k8s.io") for name in [role.partition(":")[2]]}
    assert {"R&D", 'say "hi"', "back\\slash", "日本語", "it's"} <= names
    assert max(map(len, simulator.truth("clusterroles.rbac.authorization.k8s.io"))) == 700


def test_the_mix_is_the_same_for_a_seed(workspace):
    """Also the members of metadata are in the API server's order: custom resources have them sorted."""
    given = ("uid", "resourceVersion")

    def made(*options):
        simulator = workspace.simulator(*options)
        for resource in MIXED:
            simulator.create(resource, 12)
        return {r: [{**o, "metadata": {k: v for k, v in o["metadata"].items() if k not in given}}
                    for o in simulator.truth(r).values() if not o["metadata"]["name"].startswith(("kube-", "default"))] for r in MIXED}

    first = made()
    assert first == made("--seed", "1") and first["pods"] != made("--seed", "2")["pods"]
    for widget in first["widgets.example.com"]:
        assert list(widget["metadata"]) == sorted(widget["metadata"])


def test_objects_with_odd_names_are_found_listed_in_pages_and_missed(simulator):
    roles = "clusterroles.rbac.authorization.k8s.io"
    simulator.create(roles, 20)
    truth = simulator.truth(roles)
    for name in truth:
        assert simulator.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/" + quote(name)).json["metadata"]["name"] == name
    pages = read_pages(simulator, "/apis/rbac.authorization.k8s.io/v1/clusterroles", 1)
    assert [p["items"][0]["metadata"]["name"] for p in pages] == sorted(truth, key=str.encode)
    missed = simulator.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/" + quote('no "such" R&D'))
    assert missed.status == 404 and missed.json["details"]["name"] == 'no "such" R&D'


# ---- list ------------------------------------------------------------------------------------------


def test_list_is_in_key_order(simulator):
    simulator.put("pods", [pod("x", "a"), pod("x", "a-b"), pod("b", "z"), pod("a", "z")])
    assert names(simulator.get("/api/v1/pods")) == ["a-b/x", "a/x", "z/a", "z/b"]
    assert names(simulator.get("/api/v1/namespaces/a/pods")) == ["a/x"]
    assert simulator.get("/api/v1/namespaces/none/pods").json["items"] == []


def read_pages(simulator, target, limit, between=lambda: None):
    pages, token = [], ""
    while True:
        answer = simulator.get(f"{target}?limit={limit}" + (f"&continue={token}" if token else ""))
        assert answer.status == 200, answer.body
        pages.append(answer.json)
        token = answer.json["metadata"].get("continue")
        if not token:
            return pages
        between()


def test_pages_show_one_state(simulator):
    simulator.create("pods", 25, namespaces=3)
    truth = simulator.truth("pods")

    def disturb():
        simulator.touch("pods", 5)
        simulator.delete_many("pods", 2)
        simulator.create("pods", 1, prefix=f"new{simulator.rv}")

    pages = read_pages(simulator, "/api/v1/pods", 10, disturb)
    assert [len(p["items"]) for p in pages] == [10, 10, 5]
    assert [p["metadata"].get("remainingItemCount") for p in pages] == [15, 5, None]
    assert len({p["metadata"]["resourceVersion"] for p in pages}) == 1
    seen = {object_key(o): {"kind": "Pod", "apiVersion": "v1", **o} for p in pages for o in p["items"]}
    assert seen == truth


def test_pages_of_a_namespace_and_of_a_selection(simulator):
    simulator.create("pods", 40, namespaces=4)
    one = read_pages(simulator, "/api/v1/namespaces/ns-1/pods", 3)
    assert [len(p["items"]) for p in one] == [3, 3, 3, 1]
    answer = simulator.get("/api/v1/pods?limit=5&labelSelector=tier%3Dback")
    assert len(answer.json["items"]) == 5
    assert "remainingItemCount" not in answer.json["metadata"] and answer.json["metadata"]["continue"]


def test_limit_is_ignored_at_version_0(simulator):
    simulator.create("pods", 12)
    listed = simulator.get("/api/v1/pods?limit=5&resourceVersion=0").json
    assert len(listed["items"]) == 12 and "continue" not in listed["metadata"]


def test_lists_of_exact_and_not_older_versions(simulator):
    old = simulator.put("pods", pod("a"))
    simulator.put("pods", pod("b"))
    exact = simulator.get(f"/api/v1/pods?resourceVersion={old}&resourceVersionMatch=Exact")
    assert (names(exact), exact.json["metadata"]["resourceVersion"]) == (["web/a"], old)
    assert names(simulator.get(f"/api/v1/pods?resourceVersion={old}&limit=5")) == ["web/a"]
    for match in ("", "&resourceVersionMatch=NotOlderThan"):
        newer = simulator.get(f"/api/v1/pods?resourceVersion={old}{match}")
        assert (names(newer), newer.json["metadata"]["resourceVersion"]) == (["web/a", "web/b"], simulator.rv)


def test_compaction_expires_tokens_and_old_versions(simulator):
    simulator.create("pods", 10)
    token = simulator.get("/api/v1/pods?limit=4").json["metadata"]["continue"]
    old = simulator.rv
    simulator.put("pods", pod("late"))
    simulator.compact()
    answer = simulator.get(f"/api/v1/pods?limit=4&continue={token}")
    status = assert_status(answer, 410, "Expired", "The provided continue parameter is too old")
    rest = simulator.get(f"/api/v1/pods?continue={status['metadata']['continue']}")
    assert len(rest.json["items"]) == 7 and rest.json["metadata"]["resourceVersion"] == simulator.rv
    answer = simulator.get(f"/api/v1/pods?resourceVersion={old}&resourceVersionMatch=Exact")
    assert_status(answer, 410, "Expired", "The resourceVersion for the provided list is too old.")


def test_version_from_the_future_times_out(simulator):
    simulator.settings(futureWaitMs=100)
    answer = simulator.get("/api/v1/pods?resourceVersion=999999")
    status = assert_status(answer, 504, "Timeout", "Too large resource version: 999999, current: ")
    assert status["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    assert answer.headers["Retry-After"] == "1"


def test_a_cache_learns_versions_of_other_resources_when_it_is_asked(simulator):
    """As a real server's, with progressMs; a watch alone does not ask."""
    simulator.put("pods", pod("a"))
    simulator.settings(progressMs=30)
    known, rv = simulator.rv, simulator.put("configmaps", {"metadata": {"name": "c", "namespace": "web"}})
    watch = f"/api/v1/pods?watch=1&allowWatchBookmarks=1&resourceVersion={known}&timeoutSeconds=3"
    assert simulator.get("/api/v1/pods?resourceVersion=0").json["metadata"]["resourceVersion"] == known
    assert simulator.get(watch).events == [], "no bookmark of the version that the client has"
    assert simulator.get(f"/api/v1/namespaces/web/pods/none?resourceVersion={rv}").status == 404
    (bookmark,) = simulator.get(watch).events
    assert (bookmark["type"], bookmark["object"]["metadata"]["resourceVersion"]) == ("BOOKMARK", str(rv))
    assert simulator.get("/api/v1/pods?resourceVersion=0").json["metadata"]["resourceVersion"] == str(rv)


def test_lists_apply_label_and_field_selectors(simulator):
    simulator.put("pods", [pod("a"), pod("b", app="back", node="n2"), pod("c", "shop", phase="Failed")])
    for query, expected in {
        "labelSelector=app%3Dfront": ["shop/c", "web/a"],
        "labelSelector=app+in+(back,x)": ["web/b"],
        "labelSelector=!app": [],
        "fieldSelector=spec.nodeName%3Dn2": ["web/b"],
        "fieldSelector=status.phase!%3DRunning": ["shop/c"],
        "fieldSelector=metadata.name%3Da": ["web/a"],
        "fieldSelector=metadata.namespace%3Dshop": ["shop/c"],
        "labelSelector=app%3Dfront&fieldSelector=metadata.namespace%3Dweb": ["web/a"],
    }.items():
        assert names(simulator.get(f"/api/v1/pods?{query}")) == expected, query


@pytest.mark.parametrize(
    "target, code, reason, message",
    [
        ("/api/v1/namespaces/web/pods/nope", 404, "NotFound", 'pods "nope" not found'),
        ("/apis/apps/v1/namespaces/web/deployments/x", 404, "NotFound", 'deployments.apps "x" not found'),
        ("/api/v1/nothings", 404, "NotFound", "the server could not find the requested resource"),
        ("/api/v1/namespaces/web/nodes", 404, "NotFound", "the server could not find"),
        ("/api/v1/pods?labelSelector=a%3D%3D%3Db!", 400, "BadRequest", "unable to parse requirement: found '=', expected: identifier"),
        ("/api/v1/pods?fieldSelector=spec.none%3Dx", 400, "BadRequest", "field label not supported: spec.none"),
        ("/apis/apps/v1/deployments?fieldSelector=a%3Db", 400, "BadRequest", '"a" is not a known field selector: only'),
        ("/api/v1/pods?limit=abc", 400, "BadRequest", 'strconv.ParseInt: parsing "abc": invalid syntax'),
        ("/api/v1/pods?limit=5&continue=abc", 400, "BadRequest", "invalid continue token: continue key is not valid: invalid character 'i' looking for beginning of value"),
        ("/api/v1/pods?resourceVersion=x", 400, "BadRequest", "invalid resource version: resourceVersion"),
        ("/api/v1/pods?watch=1&resourceVersion=x", 500, "", "resourceVersion: Invalid value"),
        ("/api/v1/pods?resourceVersionMatch=Exact", 422, "Invalid", "is forbidden unless resourceVersion is provided"),
        ("/api/v1/pods?resourceVersion=0&resourceVersionMatch=Exact", 422, "Invalid", 'forbidden for resourceVersion "0"'),
        ("/api/v1/pods?sendInitialEvents=true", 422, "Invalid", "sendInitialEvents is forbidden for list"),
        ("/api/v1/pods?watch=1&sendInitialEvents=true", 422, "Invalid", "requires setting resourceVersionMatch to NotOlderThan"),
        ("/api/v1/pods?watch=1&resourceVersionMatch=NotOlderThan", 422, "Invalid", "unless sendInitialEvents is provided"),
    ],
)
def test_bad_request_is_refused_as_upstream_does(simulator, target, code, reason, message):
    assert_status(simulator.get(target), code, reason, message)


def test_unusable_accept_and_unknown_group_are_refused(simulator):
    assert_status(simulator.get("/api/v1/pods", Accept="text/html"), 406, "NotAcceptable", "406: Not Acceptable\n\nAvailable representations: application/json")
    answer = simulator.get("/apis/none.example/v1/things")
    assert (answer.status, answer.body) == (404, "404 page not found\n")
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"


def test_start_key_of_a_token_need_not_exist(simulator):
    simulator.put("pods", [pod("a"), pod("c")])
    token = continue_token(int(simulator.rv), "web/b\0")
    assert names(simulator.get(f"/api/v1/pods?continue={token}")) == ["web/c"]


# ---- watch -----------------------------------------------------------------------------------------


def test_watch_sends_every_change_after_a_version(simulator):
    start = simulator.put("pods", pod("a"))
    simulator.put("pods", pod("b"))
    with simulator.watch(f"/api/v1/pods?watch=1&resourceVersion={start}") as watch:
        assert watch.take(1) == [("ADDED", "web/b", simulator.rv)]
        changed = simulator.patch("pods", "web/a", {"spec": {"x": 1}})
        gone = simulator.delete("pods", "web/b")
        assert watch.take(2) == [("MODIFIED", "web/a", changed), ("DELETED", "web/b", gone)]


def test_watch_of_a_selection_sees_objects_come_and_go(simulator):
    simulator.put("pods", [pod("a"), pod("b", app="back")])
    target = f"/api/v1/pods?watch=1&resourceVersion={simulator.rv}&labelSelector=app%3Dfront"
    with simulator.watch(target) as watch:
        came = simulator.patch("pods", "web/b", {"metadata": {"labels": {"app": "front"}}})
        left = simulator.patch("pods", "web/a", {"metadata": {"labels": {"app": "other"}}})
        simulator.patch("pods", "web/a", {"spec": {"y": 2}})
        changed = simulator.patch("pods", "web/b", {"spec": {"y": 2}})
        events = [next(watch) for _ in range(3)]
    assert [event_summary(e) for e in events] == [
        ("ADDED", "web/b", came), ("DELETED", "web/a", left), ("MODIFIED", "web/b", changed)]
    assert events[1]["object"]["metadata"]["labels"] == {"app": "front"}


def test_watch_ends_after_timeout_seconds(simulator):
    begun = time.monotonic()
    answer = simulator.get(f"/api/v1/pods?watch=1&resourceVersion={simulator.rv}&timeoutSeconds=1")
    assert (answer.status, answer.body) == (200, "")
    assert 0.9 < time.monotonic() - begun < 5 * PATIENCE


def test_bookmarks_on_demand_and_by_time(simulator):
    with simulator.watch(f"/api/v1/pods?watch=1&allowWatchBookmarks=1&resourceVersion={simulator.rv}") as watch:
        rv = simulator.put("configmaps", {"metadata": {"name": "c", "namespace": "d"}})
        simulator.bookmark()
        event = next(watch)
        assert event == {"type": "BOOKMARK", "object": {"kind": "Pod", "apiVersion": "v1",
                         "metadata": {"resourceVersion": rv}, "spec": {"containers": None}, "status": {}}}
    simulator.settings(bookmarkMs=50)
    with simulator.watch(f"/api/v1/pods?watch=1&allowWatchBookmarks=1&resourceVersion={simulator.rv}") as watch:
        assert [next(watch)["type"] for _ in range(3)] == ["BOOKMARK"] * 3
    with simulator.watch(f"/api/v1/pods?watch=1&resourceVersion={simulator.rv}") as watch:
        simulator.bookmark()
        simulator.put("pods", pod("a"))
        assert next(watch)["type"] == "ADDED"


def test_watch_from_forgotten_history_gets_410_in_the_stream(simulator):
    old = simulator.rv
    simulator.put("pods", pod("a"))
    current = simulator.compact()
    answer = simulator.get(f"/api/v1/pods?watch=1&resourceVersion={old}")
    assert answer.status == 200
    assert answer.events == [{"type": "ERROR", "object": {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": f"too old resource version: {old} ({current})", "reason": "Expired", "code": 410}}]


def test_compaction_leaves_open_watches_alone(simulator):
    with simulator.watch(f"/api/v1/pods?watch=1&resourceVersion={simulator.rv}") as watch:
        simulator.create("pods", 20)
        simulator.compact()
        rv = simulator.put("pods", pod("z"))
        assert watch.take(21)[-1] == ("ADDED", "web/z", rv)


def test_history_is_bounded_and_memory_goes(simulator):
    simulator.settings(history=100)
    simulator.create("pods", 10)
    for _ in range(50):
        simulator.touch("pods")
    assert simulator.counters("pods")["history"] <= 100
    assert simulator.get("/api/v1/pods?watch=1&resourceVersion=5").events[0]["object"]["code"] == 410


def test_watch_from_the_future_waits(simulator):
    future = int(simulator.rv) + 2
    with simulator.watch(f"/api/v1/pods?watch=1&resourceVersion={future}") as watch:
        simulator.put("pods", [pod("a"), pod("b"), pod("c")])
        assert watch.take(1) == [("ADDED", "web/c", str(future + 1))]


def test_watch_list_ends_the_initial_state_with_a_bookmark(simulator):
    simulator.put("pods", [pod("b"), pod("a")])
    rv = simulator.rv
    with simulator.watch(f"/api/v1/pods?{WATCH_LIST}&allowWatchBookmarks=true") as watch:
        assert [(t, k) for t, k, _ in watch.take(2)] == [("ADDED", "web/a"), ("ADDED", "web/b")]
        end = next(watch)
        assert end["type"] == "BOOKMARK" and end["object"]["metadata"] == {
            "resourceVersion": rv, "annotations": {"k8s.io/initial-events-end": "true"}}
        rv = simulator.delete("pods", "web/a")
        assert watch.take(1) == [("DELETED", "web/a", rv)]
    events = simulator.get(f"/apis/example.com/v1/widgets?{WATCH_LIST}&allowWatchBookmarks=1&timeoutSeconds=1").events
    assert [e["type"] for e in events] == ["BOOKMARK"]


def test_watch_list_can_be_switched_off(simulator):
    simulator.settings(watchList=0)
    answer = simulator.get(f"/api/v1/pods?{WATCH_LIST}")
    assert_status(answer, 422, "Invalid", "unless the WatchList feature gate is enabled")


def test_watch_list_from_the_future_gets_its_error_in_the_stream(simulator):
    simulator.settings(futureWaitMs=50)
    events = simulator.get(f"/api/v1/pods?{WATCH_LIST}&resourceVersion=99999").events
    assert events[0]["object"]["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


def test_watch_without_version_begins_with_everything(simulator):
    simulator.put("pods", [pod("a"), pod("b")])
    events = simulator.get("/api/v1/pods?watch=True&timeoutSeconds=1").events
    assert [event_summary(e)[:2] for e in events] == [("ADDED", "web/a"), ("ADDED", "web/b")]


# ---- faults and accidents --------------------------------------------------------------------------


def test_fault_replaces_some_answers(simulator):
    fault = simulator.fault(resource="pods", verb="list", after=1, count=2, status=503,
                            headers={"Retry-After": "1", "Content-Type": "text/html"}, body="<html>")
    answers = [simulator.get("/api/v1/pods") for _ in range(4)]
    assert [a.status for a in answers] == [200, 503, 503, 200]
    assert (answers[1].headers["Retry-After"], answers[1].headers["Content-Type"], answers[1].body) == ("1", "text/html", "<html>")
    assert simulator.fault_hits(fault) == 2 and simulator.counters("pods")["lists"] == 4
    assert simulator.get("/api/v1/nodes").status == 200
    simulator.clear_faults(fault)
    assert simulator.call("GET", "/faults") == []


def raw_get(simulator, target, stall_after=None):
    """(all bytes of an answer, "closed" or "reset"). STALL_AFTER: after these bytes waits for 0.5
    s; "open" if the server neither sends more nor closes."""
    with socket.create_connection(("127.0.0.1", simulator.port), 10 * PATIENCE) as connection:
        connection.sendall(f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        data = b""
        try:
            while block := connection.recv(65536):
                data += block
                if stall_after and stall_after in data:
                    connection.settimeout(0.5)
        except socket.timeout:
            return data, "open"
        except ConnectionResetError:
            return data, "reset"
        return data, "closed"


def test_fault_cuts_the_body(simulator):
    simulator.create("pods", 3)
    simulator.fault(cutAt=1000)
    data, end = raw_get(simulator, "/api/v1/pods")
    assert end == "closed" and not data.endswith(b"0\r\n\r\n") and 1000 < len(data) < 1500
    simulator.clear_faults()
    simulator.fault(cutAt=1000, clean=True)
    assert len(simulator.get("/api/v1/pods").body) == 1000


def test_fault_garbles_one_byte(simulator):
    simulator.put("pods", pod("a"))
    good = simulator.get("/api/v1/pods").body
    simulator.fault(garbleAt=3)
    bad = simulator.get("/api/v1/pods").body
    assert [i for i in range(len(good)) if good[i] != bad[i]] == [3] and len(good) == len(bad)


def test_fault_sends_small_chunks_slowly(simulator):
    simulator.put("pods", pod("a"))
    good = simulator.get("/api/v1/pods").body
    simulator.fault(chunk=50, gapMs=20)
    begun = time.monotonic()
    assert simulator.get("/api/v1/pods").body == good
    assert time.monotonic() - begun > 0.02 * (len(good) // 50 - 1)


def test_fault_delays_headers_and_stalls(simulator):
    simulator.fault(verb="list", delayMs=300)
    begun = time.monotonic()
    simulator.get("/api/v1/pods")
    assert time.monotonic() - begun > 0.29
    simulator.clear_faults()
    simulator.fault(stallAt=10)
    data, end = raw_get(simulator, "/api/v1/pods", stall_after=b'{"kind":"P')
    assert end == "open" and b"PodList" not in data


def test_fault_closes_or_resets_before_headers(simulator):
    simulator.fault(count=1, close=True)
    simulator.fault(reset=True)
    assert raw_get(simulator, "/api") == (b"", "closed")
    assert raw_get(simulator, "/api") == (b"", "reset")


def test_fault_claims_another_length(simulator):
    simulator.fault(path="/version", length=100000)
    data, end = raw_get(simulator, "/version")
    assert end == "closed" and b"Content-Length: 100000" in data and len(data) < 2000


def test_fault_holds_a_body_open(simulator):
    simulator.fault(verb="watch", body='{"type":"ADDED"}\n', hold=True)
    _, end = raw_get(simulator, "/api/v1/pods?watch=1", stall_after=b'{"type":"ADDED"}\n')
    assert end == "open"


def test_requests_are_logged_and_counted(simulator):
    simulator.forget_requests()
    simulator.get("/api/v1/pods?limit=1", **{"User-Agent": "tester/1", "Authorization": "Bearer x"})
    simulator.get("/api/v1/namespaces/web/pods/nope")
    simulator.get("/api/v1/pods?watch=1&timeoutSeconds=1")
    counters = simulator.counters("pods")
    assert (counters["lists"], counters["watches"], counters["gets"]) == (1, 1, 1)
    listed, got, watched = simulator.requests(resource="pods")
    assert (listed["verb"], listed["query"], listed["userAgent"], listed["authorization"]) == ("list", "limit=1", "tester/1", True)
    assert (got["verb"], got["status"], got["authorization"]) == ("get", 404, False)
    assert watched["verb"] == "watch" and watched["time"] >= listed["time"]
    simulator.forget_requests()
    assert simulator.requests() == [] and simulator.counters("pods")["lists"] == 0
