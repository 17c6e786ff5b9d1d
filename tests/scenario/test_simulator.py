# SPDX-License-Identifier: Apache-2.0
"""The simulated API server: the behaviour of a real one as far as scenarios rely on it, and its faults."""

import json
import socket
import time

import pytest

from harness import PATIENCE


@pytest.fixture(autouse=True)
def simulator_under_test(monkeypatch):
    """Here the simulator itself is tested: the program of the build under test, with its sanitizers."""
    monkeypatch.delenv("KINF_SIMULATOR_BUILD", raising=False)


def pod(name, namespace="web", app="front", node="n1", phase="Running"):
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": app}},
        "spec": {"nodeName": node},
        "status": {"phase": phase},
    }


def assert_status(answer, code, reason, message):
    status = answer.json
    assert (answer.status, status["kind"], status["code"]) == (code, "Status", code)
    assert status.get("reason", "") == reason
    assert message in status["message"]
    return status


# ---- objects ---------------------------------------------------------------------------------------


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


# ---- list ------------------------------------------------------------------------------------------


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


# ---- watch -----------------------------------------------------------------------------------------


def test_watch_sends_every_change_after_a_version(simulator):
    start = simulator.put("pods", pod("a"))
    simulator.put("pods", pod("b"))
    with simulator.watch(f"/api/v1/pods?watch=1&resourceVersion={start}") as watch:
        assert watch.take(1) == [("ADDED", "web/b", simulator.rv)]
        changed = simulator.patch("pods", "web/a", {"spec": {"x": 1}})
        gone = simulator.delete("pods", "web/b")
        assert watch.take(2) == [("MODIFIED", "web/a", changed), ("DELETED", "web/b", gone)]


def test_bookmarks_on_demand_and_by_time(simulator):
    with simulator.watch(f"/api/v1/pods?watch=1&allowWatchBookmarks=1&resourceVersion={simulator.rv}") as watch:
        rv = simulator.put("configmaps", {"metadata": {"name": "c", "namespace": "d"}})
        simulator.bookmark()
        event = next(watch)
        assert event == {"type": "BOOKMARK", "object": {"kind": "Pod", "apiVersion": "v1",
                         "metadata": {"resourceVersion": rv}}}
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
