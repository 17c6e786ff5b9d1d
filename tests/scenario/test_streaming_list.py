# SPDX-License-Identifier: Apache-2.0
"""Streaming lists (streamingLists, sendInitialEvents): readers see a whole list or none, and
servers with no or wrong streaming are listed in pages."""

import json
import signal
from urllib.parse import parse_qs

import pytest

from harness import eventually
from harness.objects import pod
from harness.store import whole

QUICK = {"streamingLists": True, "backoff": {"min": "20ms", "max": "50ms"}}


def requests(simulator):
    """The requests for pods, as ("stream" or "list" or "watch", query)."""
    found = []
    for request in simulator.requests(resource="pods"):
        query = {key: values[0] for key, values in parse_qs(request["query"]).items()}
        if request["verb"] != "get":
            found.append(("stream" if "sendInitialEvents" in query else request["verb"], query))
    return found


def verbs(simulator):
    return [verb for verb, _ in requests(simulator)]


def event(kind, obj):
    return json.dumps({"type": kind, "object": {"kind": "Pod", "apiVersion": "v1", **obj}}) + "\n"


def mark(rv, value="true"):
    return event("BOOKMARK", {"metadata": {"resourceVersion": rv, "annotations": {"k8s.io/initial-events-end": value}}})


def expire(simulator):
    """Answers the next watch with 410 Expired: the feed lists again."""
    gone = {"kind": "Status", "status": "Failure", "message": "too old", "reason": "Expired", "code": 410}
    rule = simulator.fault(path="resourceVersion=", resource="pods", verb="watch", count=1, body=json.dumps({"type": "ERROR", "object": gone}))
    simulator.drop()
    eventually(lambda: simulator.fault_hits(rule) == 1)


def is_listing(store):
    refused = store.kinf("get", "pods", "-o", "name")
    return refused.status == 1 and refused.stdout == "" and "listed" in refused.stderr


def test_c49_one_request_lists_and_watches(simulator, store):
    simulator.create("pods", 40)
    rv = simulator.rv
    store.start(simulator, whole("pods"), **QUICK)
    assert store.feed_status("pods")["resourceVersion"] == rv
    simulator.touch("pods", 5)
    simulator.delete_many("pods", 3)
    store.wait_equal(simulator, "pods")
    ((verb, query),) = requests(simulator)
    assert verb == "stream" and query["resourceVersionMatch"] == "NotOlderThan" and "resourceVersion" not in query
    assert query["watch"] == query["allowWatchBookmarks"] == "true" and 300 <= int(query["timeoutSeconds"]) < 600
    store.verify()


def test_c49_c53_readers_see_nothing_before_the_end_bookmark(simulator, store):
    """A bookmark without the annotation initial-events-end, or with another value of it, does not end the list."""
    simulator.put("pods", [pod("a"), pod("b")])
    shown = "".join(event("ADDED", obj) for obj in simulator.truth("pods").values())
    plain = event("BOOKMARK", {"metadata": {"resourceVersion": simulator.rv}})
    stuck = simulator.fault(path="sendInitialEvents", resource="pods", hold=True, body=shown + plain + mark(simulator.rv, "false"))
    store.configure(whole("pods"), **QUICK).daemons()
    eventually(lambda: simulator.fault_hits(stuck) == 1)
    eventually(lambda: store.feed_status("pods")["state"] == "listing")
    assert store.kinf("wait", "pods", "--timeout", "300ms").status == 1
    eventually(lambda: is_listing(store))
    simulator.clear_faults()
    simulator.drop()
    store.wait_equal(simulator, "pods")
    store.verify()


def test_events_after_the_end_bookmark_are_applied_as_a_watch(simulator, store):
    simulator.put("pods", [pod("a"), pod("b")])
    rv, before = simulator.rv, simulator.truth("pods")
    simulator.patch("pods", "web/a", {"spec": {"nodeName": "n"}})
    after = simulator.truth("pods")["web/a"]
    body = "".join(event("ADDED", obj) for obj in before.values()) + mark(rv) + event("MODIFIED", after)
    simulator.fault(path="sendInitialEvents", resource="pods", hold=True, body=body)
    store.start(simulator, whole("pods"), **QUICK)
    assert verbs(simulator) == ["stream"]
    store.verify()


def test_a_stream_that_ends_after_the_end_bookmark_is_resumed_by_a_watch(simulator, store):
    simulator.put("pods", [pod("a"), pod("b")])
    rv = simulator.rv
    body = "".join(event("ADDED", obj) for obj in simulator.truth("pods").values()) + mark(rv)
    simulator.fault(path="sendInitialEvents", resource="pods", count=1, body=body)
    store.start(simulator, whole("pods"), **QUICK)
    simulator.touch("pods")
    store.wait_equal(simulator, "pods")
    assert verbs(simulator) == ["stream", "watch"]
    assert requests(simulator)[1][1]["resourceVersion"] == rv


def test_c50_an_interrupted_stream_shows_nothing_and_starts_over(simulator, store):
    simulator.create("pods", 40)
    cut = simulator.fault(path="sendInitialEvents", resource="pods", count=1, cutAt=15000)
    stuck = simulator.fault(path="sendInitialEvents", resource="pods", hold=True, stallAt=100)
    store.configure(whole("pods"), **QUICK).daemons()
    eventually(lambda: simulator.fault_hits(cut) == 1 and simulator.fault_hits(stuck) == 1)
    eventually(lambda: is_listing(store))
    simulator.delete_many("pods", 20)
    simulator.clear_faults()
    simulator.drop()
    store.wait_equal(simulator, "pods")
    assert set(verbs(simulator)) == {"stream"}
    store.verify()


@pytest.mark.parametrize("end, words", [("", "initial events"), (mark("7" * 1100), "a resourceVersion of more than 1 kB")], ids=["none", "long"])
def test_c51_streams_without_an_end_bookmark_are_replaced_by_a_list(simulator, store, end, words):
    """Otherwise a server or a proxy without the end bookmark would be asked for streams for ever."""
    simulator.put("pods", [pod("a"), pod("b")])
    body = "".join(event("ADDED", obj) for obj in simulator.truth("pods").values()) + end
    simulator.fault(path="sendInitialEvents", resource="pods", body=body)
    _, reflector = store.start(simulator, whole("pods"), **QUICK)
    simulator.wait_watching("pods")
    assert verbs(simulator) == ["stream", "stream", "stream", "list", "watch"]
    assert words in reflector.log
    store.verify()


@pytest.mark.parametrize("refusal", ["gate", "400", "403"])
def test_c48_a_refused_stream_is_replaced_by_a_list_and_not_tried_again(simulator, store, refusal):
    simulator.create("pods", 10)
    if refusal == "gate":
        simulator.settings(watchList=0)
    else:
        simulator.fault(path="sendInitialEvents", status=int(refusal), body="no")
    store.start(simulator, whole("pods"), **QUICK)
    simulator.wait_watching("pods")
    assert verbs(simulator) == ["stream", "list", "watch"]
    expire(simulator)
    eventually(lambda: len(verbs(simulator)) == 6)
    assert verbs(simulator)[3:] == ["watch", "list", "watch"]


@pytest.mark.parametrize("point", ["list.reconcile:1:kill", "journal.before_commit:2:kill", "journal.after_commit:2:kill"])
def test_a_streaming_list_resumes_after_a_kill(simulator, store, point):
    simulator.create("pods", 60)
    store.configure(whole("pods"), **QUICK)
    store.processor()
    reflector = store.reflector(env={"KINF_FAIL": point})
    assert reflector.wait() == -signal.SIGKILL, reflector.tail()
    del reflector.env["KINF_FAIL"]
    simulator.delete_many("pods", 5)
    reflector.start()
    store.wait_equal(simulator, "pods")
    assert "list" not in verbs(simulator)
    store.verify()


def test_streaming_relists_are_exact_under_churn(simulator, store):
    """Objects change while the initial events come, and while the reflector finishes the list."""
    simulator.create("pods", 300)
    _, reflector = store.start(simulator, whole("pods"), **QUICK)
    follower = store.follower("watch", "pods", "-o", "json", "--no-initial")
    eventually(lambda: "SYNC" in follower.out)
    simulator.churn("pods", 200, 40)
    for _ in range(3):
        expire(simulator)
        eventually(lambda n=follower.out.count("\n"): follower.out.count("\n") > n + 50)
    simulator.churn("pods", 0)
    store.wait_equal(simulator, "pods")
    assert verbs(simulator) == ["stream"] + ["watch", "stream"] * 3
    store.verify()


def test_streams_carry_metadata_and_selectors(simulator, store):
    simulator.put("pods", [pod("a", app="front"), pod("b", app="back")])
    store.start_synced(whole("pods", objects="metadata", labelSelector="app=front"), **QUICK)
    (found,) = store.objects("pods").values()
    assert set(found) == {"kind", "apiVersion", "metadata"} and found["metadata"] == simulator.truth("pods")["web/a"]["metadata"]
    assert verbs(simulator) == ["stream"]
