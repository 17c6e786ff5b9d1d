# SPDX-License-Identifier: Apache-2.0
"""A faulty API server, or a faulty proxy before it: readers get nothing wrong, and the feeds recover."""

import json
import signal
import time

import pytest

from harness import eventually
from harness.objects import pod
from harness.process import Process
from harness.store import whole

KINDS = ["pods", "configmaps", "secrets", "services", "nodes", "deployments.apps", "replicasets.apps", "widgets.example.com"]


def status(code, reason, message="no"):
    return json.dumps({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "reason": reason, "code": code})


def run_with_faults(simulator, store, verb, faults, before=3):
    """Runs a feed for each of KINDS, each with another one of FAULTS; all feeds must end equal to
    the cluster. The objects are small and alike: the positions in faults lie in visible parts of
    the JSON."""
    assert len(faults) <= len(KINDS)
    kinds = KINDS[: len(faults)]
    for kind in kinds:
        simulator.create(kind, before, size=600)
    rules = [simulator.fault(verb=verb, resource=kind, **{"count": 1, **fault}) for kind, fault in zip(kinds, faults)]
    store.configure(*map(whole, kinds))
    daemons = store.daemons()
    eventually(lambda: all(simulator.fault_hits(rule) for rule in rules))
    for kind in kinds:
        store.wait_equal(simulator, kind)
        simulator.touch(kind)
        simulator.create(kind, 2, from_=1000, size=600)
    for kind in kinds:
        store.wait_equal(simulator, kind)
    assert all(process.running for process in daemons)
    store.verify()
    return daemons


# ---- lists -----------------------------------------------------------------------------------------


def test_c56_broken_list_bodies_are_requested_again(simulator, store):
    run_with_faults(simulator, store, "list", [
        {"cutAt": 0},
        {"cutAt": 700},
        {"cutAt": 700, "clean": True},
        {"garbleAt": 5},
        {"garbleAt": 400},
        {"length": 10_000_000, "cutAt": 500},
        {"chunk": 1},
        {"reset": True},
    ])


def test_c64_answers_that_are_not_lists_are_refused(simulator, store):
    run_with_faults(simulator, store, "list", [
        {"body": "<html><body>Bad Gateway</body></html>", "status": 502, "headers": {"Content-Type": "text/html"}},
        {"body": "<html>log in</html>", "headers": {"Content-Type": "text/html"}},
        {"body": ""},
        {"body": "null"},
        {"body": '{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[{}]}'},
        {"body": '{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":{"a":1}}'},
        {"body": '{"kind":"Status","code":200,"status":"Success"}'},
        {"body": "[" * 100_000},
    ])


@pytest.mark.parametrize("verb", ["list", "discovery", "namespace"])
@pytest.mark.parametrize("answer, words", [
    ({"status": 302, "headers": {"Location": "https://login.example/"}, "body": ""}, "302: a redirect, which is not followed"),
    ({"body": "<html>log in</html>", "headers": {"Content-Type": "text/html"}}, "a web page, and no answer of an API server"),
])
def test_an_answer_of_something_else_than_an_api_server_is_named(simulator, store, verb, answer, words):
    simulator.fault(**({"path": "namespaces/kube-system"} if verb == "namespace" else {"verb": verb}), **answer)
    store.configure(whole("pods"), backoff={"min": "100ms", "max": "300ms"}).daemons()
    eventually(lambda: words in store.kinf("status").stdout)
    simulator.clear_faults()
    store.wait_equal(simulator, "pods")


def test_c31_c32_refused_lists_are_retried(simulator, store):
    run_with_faults(simulator, store, "list", [
        {"status": 500, "body": status(500, "InternalError")},
        {"status": 503, "body": status(503, "ServiceUnavailable"), "headers": {"Retry-After": "1"}},
        {"status": 504, "body": status(504, "Timeout", "Timeout: Too large resource version: 9, current: 5")},
        {"status": 429, "body": "too many", "headers": {"Retry-After": "1", "Content-Type": "text/plain"}},
        {"status": 429, "body": "{}", "headers": {"Retry-After": "soon"}},
        {"status": 401, "body": status(401, "Unauthorized")},
        {"status": 410, "body": status(410, "Expired")},
        {"close": True},
    ])


# ---- watches ---------------------------------------------------------------------------------------


def test_broken_watch_answers_are_retried(simulator, store):
    run_with_faults(simulator, store, "watch", [
        {"status": 500, "body": status(500, "InternalError")},
        {"status": 503, "body": "<html>", "headers": {"Retry-After": "1"}},
        {"status": 401, "body": status(401, "Unauthorized")},
        {"body": "<html>log in</html>"},
        {"body": ""},
        {"reset": True},
        {"body": '{"type":"ADDED","object":' + "[" * 50_000},
        {"delayMs": 500, "cutAt": 3},
    ])


def test_lists_from_a_stale_server_cache_are_repeated_with_pauses(simulator, store):
    """Each list is newer than the server's cache. So the watch fails and the feed lists again: only with pauses."""
    simulator.create("pods", 2)
    simulator.fault(path="kinf-probe", status=504, body=status(504, "Timeout", "Too large resource version: 9, current: 5"))
    store.configure(whole("pods"), backoff={"min": "300ms", "max": "300ms"}).daemons()
    eventually(lambda: len(simulator.requests(verb="list", resource="pods")) >= 3)
    times = [r["time"] for r in simulator.requests(verb="list", resource="pods")]
    assert all(after - before > 0.299 for before, after in zip(times, times[1:])), times
    simulator.clear_faults()
    simulator.touch("pods")
    store.wait_equal(simulator, "pods")
    store.wait_live("pods")


def test_a_garbled_event_is_repaired_by_later_answers(simulator, store):
    """The feed refuses an event with a changed byte, or stores its content; later answers repair it."""
    simulator.put("pods", pod("a"))
    store.start(simulator, whole("pods"))
    simulator.wait_watching("pods")
    simulator.fault(verb="watch", resource="pods", garbleAt=3)
    simulator.touch("pods")
    store.wait_equal(simulator, "pods")
    simulator.drop()
    simulator.touch("pods")
    eventually(lambda: len(simulator.requests(verb="watch", resource="pods")) >= 3)
    simulator.clear_faults()
    store.wait_equal(simulator, "pods")


# ---- rights ----------------------------------------------------------------------------------------


def test_refusals_that_never_end_are_cut_off(simulator, store):
    """The body of a refusal must end within timeouts.answer, although an accepted watch may be silent for longer."""
    simulator.create("pods", 2)
    simulator.create("nodes", 2)
    refusal = {"count": 1, "status": 503, "headers": {"Content-Type": "text/plain"}}
    quiet = simulator.fault(verb="watch", resource="pods", body="later", hold=True, **refusal)
    endless = simulator.fault(verb="list", resource="nodes", body="x" * 100_000, chunk=1, gapMs=20, **refusal)
    store.configure(whole("pods"), whole("nodes"), timeouts={"answer": "500ms"}, backoff={"min": "10ms", "max": "20ms"})
    store.daemons()
    store.wait_equal(simulator, "nodes")
    eventually(lambda: len(simulator.requests(verb="watch", resource="pods")) >= 2)
    simulator.touch("pods")
    store.wait_equal(simulator, "pods")
    assert simulator.fault_hits(quiet) == simulator.fault_hits(endless) == 1


def test_a_feed_that_hangs_does_not_delay_other_feeds(simulator, store):
    simulator.create("pods", 20)
    simulator.create("nodes", 2)
    simulator.fault(verb="list", resource="nodes", stallAt=50)
    _, reflector = store.configure(whole("nodes"), whole("pods")).daemons()
    store.wait_equal(simulator, "pods")
    simulator.churn("pods", 100)
    assert reflector.stop(5) == 0


def test_unreadable_objects_are_skipped_and_reported(simulator, store):
    """An object without uid and resourceVersion, sent by the server each time, must not block the other objects."""
    good = {"kind": "Pod", "apiVersion": "v1", **pod("good", uid="u", resourceVersion="5")}
    bad = {"metadata": {"name": "x", "namespace": "web"}, "spec": 1}  # no uid, no resourceVersion
    body = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": [bad, good]}
    simulator.fault(verb="list", resource="pods", body=json.dumps(body))
    simulator.fault(verb="watch", resource="pods", body="", hold=True)
    _, reflector = store.configure(whole("pods")).daemons()
    eventually(lambda: "web/good" in store.objects("pods"), timeout=40)
    reflector.wait_log("feed_object_unreadable .*web/x")
    assert reflector.running


def test_c67_an_oversized_object_is_skipped_and_reported(simulator, store):
    """The status names it. It is stored as soon as it fits: because it shrank, or because maxObjectSize grew."""
    large = "x" * 100_000
    quick = {"backoff": {"min": "10ms", "max": "20ms"}}
    simulator.put("pods", [pod("small"), pod("large", node=large)])
    store.configure(whole("pods"), maxObjectSize="64KiB", **quick)
    _, reflector = store.daemons()

    def skipped():
        found = store.feed_status("pods")
        return found["state"] == "stale" and "'web/large': larger than maxObjectSize" in found["lastError"]

    eventually(skipped)
    eventually(lambda: set(store.objects("pods")) == {"web/small"})
    simulator.patch("pods", "web/large", {"spec": {"nodeName": "n1"}})
    store.wait_equal(simulator, "pods")
    store.wait_live("pods")
    assert store.feed_status("pods")["lastError"] == ""

    shrunk = simulator.truth("pods")["web/large"]
    simulator.patch("pods", "web/large", {"spec": {"nodeName": large}})
    simulator.patch("pods", "web/small", {"spec": {"nodeName": "n2"}})
    eventually(skipped)
    eventually(lambda: store.objects("pods")["web/small"] == simulator.truth("pods")["web/small"])
    assert store.objects("pods")["web/large"] == shrunk, "readers keep its last state that fits"
    simulator.delete("pods", "web/large")
    store.wait_equal(simulator, "pods")
    store.wait_live("pods")

    simulator.put("pods", pod("large", node=large))
    eventually(skipped)
    store.configure(whole("pods"), maxObjectSize="1MiB", **quick)
    reflector.send(signal.SIGHUP)
    store.wait_equal(simulator, "pods")
    store.wait_live("pods")
    assert len([line for line in reflector.log.splitlines() if " feed_object_unreadable " in line]) == 3, reflector.log
    store.verify()


def test_c67_a_restart_knows_the_oversized_object(simulator, store):
    """The feed is not `live` without it, nor is it listed again, until a larger maxObjectSize lets the object in."""
    large = "x" * 100_000
    quick = {"backoff": {"min": "10ms", "max": "20ms"}}
    simulator.put("pods", [pod("small"), pod("large")])
    processor, reflector = store.start_live(whole("pods"), maxObjectSize="64KiB", **quick)
    simulator.patch("pods", "web/large", {"spec": {"nodeName": large}})
    reflector.wait_log("feed_object_unreadable .*web/large")
    simulator.patch("pods", "web/small", {"spec": {"nodeName": "n2"}})
    eventually(lambda: store.objects("pods")["web/small"] == simulator.truth("pods")["web/small"])
    lists = simulator.counters("pods")["lists"]

    def restart(end):
        nonlocal reflector
        end(reflector)
        reflector = store.reflector()

    def skipped():
        found = store.feed_status("pods")
        return found["watches"] and found["state"] == "stale" and "'web/large': larger than" in found["lastError"]

    for end in (Process.kill, Process.stop):
        restart(end)
        eventually(skipped)
    assert 'name=web/large why="larger than maxObjectSize"' in store.kinf("dump", "feeds", check=True).stdout
    assert simulator.counters("pods")["lists"] == lists, "the warm cache needs no list"

    store.configure(whole("pods"), maxObjectSize="1MiB", **quick)
    restart(Process.stop)
    store.wait_equal(simulator, "pods")
    store.wait_live("pods")
    restart(Process.stop)
    store.wait_live("pods")
    store.verify()
