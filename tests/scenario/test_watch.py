# SPDX-License-Identifier: Apache-2.0
"""Watches: events, bookmarks, expired versions, and the ways of a stream's end."""

import json
import re
import signal

import pytest

from harness import eventually
from harness.follow import changes
from harness.objects import pod
from harness.store import whole


@pytest.fixture
def watching(simulator, store):
    """(processor, reflector) with 40 pods listed and watched."""
    simulator.create("pods", 40)
    daemons = store.start(simulator, whole("pods"))
    simulator.wait_watching("pods")
    # A broken watch with an event is opened again at once, others after a pause.
    simulator.touch("pods", 1)
    store.wait_equal(simulator, "pods")
    simulator.forget_requests()
    return daemons


def lists(simulator):
    return simulator.counters("pods")["lists"]


def event(kind, obj):
    return json.dumps({"type": kind, "object": obj}) + "\n"


def typed(obj, **metadata):
    """The pod as a watch sends it."""
    return {"kind": "Pod", "apiVersion": "v1", **obj, "metadata": {**obj["metadata"], **metadata}}


EXPIRED = {
    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
    "message": "too old resource version: 1 (2)", "reason": "Expired", "code": 410,
}


# ---- events ----------------------------------------------------------------------------------------


def test_c16_every_change_arrives(simulator, store, watching):
    simulator.create("pods", 10, from_=1000)
    simulator.touch("pods", 20)
    simulator.delete_many("pods", 10)
    store.wait_equal(simulator, "pods")
    simulator.delete_many("pods")
    eventually(lambda: store.objects("pods") == {})
    assert lists(simulator) == 0
    store.verify()


def test_churn_is_followed_without_a_list(simulator, store, watching):
    simulator.churn("pods", 300, 40)
    follower = store.follower("watch", "pods", "-o", "json", "--no-initial")
    eventually(lambda: len(follower.lines) > 200)
    simulator.churn("pods", 0)
    store.wait_equal(simulator, "pods")
    assert lists(simulator) == 0 and simulator.counters("pods")["watches"] == 0
    store.verify()


@pytest.mark.parametrize("bookmarks", [True, False])
def test_a_watch_that_spoke_and_ended_at_its_time_needs_no_probe(simulator, store, bookmarks):
    """The next watch asks whether the server knows its version only if the last one proved nothing."""
    asked = lambda: sum(r["path"].endswith("/kinf-probe") for r in simulator.requests(verb="get"))
    watches = lambda: len(simulator.requests(verb="watch", resource="pods"))
    simulator.create("pods", 3)
    simulator.settings(bookmarkMs=100 if bookmarks else 600_000)
    store.configure(whole("pods"), watchTimeout="1s").daemons()
    eventually(lambda: watches() >= 4)
    if not bookmarks:
        eventually(lambda: asked() >= 3)
        return
    eventually(lambda: watches() - asked() >= 3)  # a busy server may end one before its first bookmark
    before = asked()
    simulator.drop()
    eventually(lambda: asked() > before)


def test_delete_and_recreate_are_two_events(simulator, store, watching):
    _, reflector = watching
    key = "web/again"
    simulator.put("pods", pod("again"))
    store.wait_equal(simulator, "pods")
    follower = store.follower("watch", "pods", "-o", "json", "--old")
    eventually(lambda: "SYNC" in follower.out)
    first = simulator.truth("pods")[key]
    reflector.kill()
    simulator.delete("pods", key)
    simulator.put("pods", pod("again"))
    second = simulator.truth("pods")[key]
    simulator.compact()
    reflector.start()
    eventually(lambda: len(changes(follower.lines)) >= 2)
    assert changes(follower.lines) == [("DELETED", key), ("ADDED", key)]
    deleted, added = follower.lines[-2:]
    assert deleted["object"] == first and added["object"] == second
    assert deleted["object"]["metadata"]["uid"] != added["object"]["metadata"]["uid"]
    simulator.delete("pods", key)
    described = lambda: store.kinf("describe", "pods", key, check=True).stdout
    past = eventually(lambda: re.search("^Deleted: ", text := described(), re.M) and text)
    assert re.findall(r"^  \d+ +([A-Z]+)", past, re.M) == ["ADDED", "DELETED", "ADDED", "DELETED"]
    assert re.search("^Name: +again$", past, re.M) and re.search(f"^Node: +{second['spec']['nodeName']}", past, re.M), past


@pytest.mark.parametrize("killed", [False, True])
def test_c72_a_watch_cut_among_deletions_of_one_version_gets_the_others(simulator, store, watching, killed):
    """As of 887 expired Events, of which the reflector had 708 when it was killed: 179 stayed for ever."""
    _, reflector = watching
    rv, pods = str(int(simulator.rv) + 100), [typed(obj) for obj in simulator.truth("pods").values()]
    deleted = [event("DELETED", {**obj, "metadata": {**obj["metadata"], "resourceVersion": rv}}) for obj in pods]
    watch = lambda **more: simulator.fault(resource="pods", verb="watch", **more)
    watch(count=1, body="".join(deleted[:10]), hold=killed)
    watch(path=f"resourceVersion={int(rv) - 1}(&|$)", body="".join(deleted), hold=True)
    watch(body="", hold=True)
    simulator.drop()
    if killed:
        eventually(lambda: len(store.objects("pods")) == 30)
        reflector.kill()
        reflector.start()
    eventually(lambda: store.objects("pods") == {})
    assert lists(simulator) == 0
    store.verify()


def test_an_event_of_a_megabyte_is_stored(simulator, store, watching):
    simulator.put("pods", pod("large", annotations={"blob": "x" * 1_500_000}))
    store.wait_equal(simulator, "pods")
    simulator.patch("pods", "web/large", {"metadata": {"annotations": {"blob": "y" * 1_400_000}}})
    store.wait_equal(simulator, "pods")
    store.verify()


# ---- ends ------------------------------------------------------------------------------------------


def test_dropped_connections_cost_no_list(simulator, store, watching):
    for _ in range(3):
        simulator.touch("pods", 10)
        simulator.drop()
    store.wait_equal(simulator, "pods")
    assert lists(simulator) == 0


def test_c23_an_event_cut_in_the_middle_is_requested_again(simulator, store, watching):
    simulator.fault(verb="watch", count=1, cutAt=200)
    simulator.drop()
    eventually(lambda: simulator.counters("pods")["watches"])
    simulator.touch("pods", 5)
    store.wait_equal(simulator, "pods")
    assert lists(simulator) == 0
    store.verify()


@pytest.mark.parametrize("reason", ["Expired", "Gone"])
def test_c24_c25_c27_expired_in_the_stream_leads_to_a_list(simulator, store, watching, reason):
    added = event("ADDED", typed(pod("ghost", uid="g"), resourceVersion=str(int(simulator.rv) + 1)))
    simulator.fault(verb="watch", count=1, body=event("ERROR", {**EXPIRED, "reason": reason}) + added)
    simulator.drop()
    eventually(lambda: lists(simulator))
    simulator.put("pods", pod("after"))
    store.wait_equal(simulator, "pods")


def test_c26_expired_as_http_status_leads_to_a_list(simulator, store, watching):
    simulator.fault(verb="watch", count=1, status=410, body=json.dumps(EXPIRED), headers={"Content-Type": "application/json"})
    simulator.drop()
    eventually(lambda: lists(simulator))
    simulator.put("pods", pod("after"))
    store.wait_equal(simulator, "pods")


def test_forgotten_history_leads_to_a_list(simulator, store, watching):
    simulator.down()
    simulator.touch("pods", 10)
    simulator.delete_many("pods", 3)
    simulator.compact()
    simulator.up()
    store.wait_equal(simulator, "pods")
    assert lists(simulator) == 1
    store.verify()


NONSENSE = {
    "pods": '{"type":"FOO","object":{}}\n',
    "configmaps": '{"type":"ADDED"}\n',
    "secrets": '{"type":"ADDED","object":{"kind":"Secret","apiVersion":"v1"}}\n',
    "services": '{"type":"ADDED","object":{"kind":"Service","apiVersion":"v1","metadata":{"name":"x"}}}\n',
    "nodes": '{"type":"ERROR","object":{"kind":"Node"}}\n',
    "deployments.apps": "[]\n",
    "replicasets.apps": "not JSON\n",
    "widgets.example.com": "\n\n\n",
    "namespaces": '{"type":"BOOKMARK","object":{"metadata":{}}}\n',
}


def test_a_feed_whose_version_expired_in_an_outage_recovers_with_the_list(simulator, store, watching):
    """The server accepts the watch, and its first event calls the version too old: the log had
    feed_recovered and feed_failed in the same millisecond."""
    _, reflector = watching
    simulator.down()
    reflector.wait_log("feed_failed .*kind=\"network\"")
    simulator.touch("pods")
    simulator.compact()
    simulator.up()
    reflector.wait_log("feed_recovered")
    store.wait_equal(simulator, "pods")
    events = [line.split()[2] for line in reflector.log.splitlines() if " feed_" in line]
    assert events[-4:] == ["feed_failed", "feed_failed", "feed_recovered", "feed_listed"], reflector.log


def test_c29_c35_c36_invalid_events_do_not_stop_a_feed(simulator, store):
    """The watch of each resource sends another invalid line; known objects stay, and later changes arrive."""
    for resource in NONSENSE:
        if resource != "namespaces":
            simulator.create(resource, 3)
    rules = [simulator.fault(verb="watch", resource=r, count=1, body=bad) for r, bad in NONSENSE.items()]
    store.configure(*map(whole, NONSENSE))
    daemons = store.daemons()
    for resource in NONSENSE:
        store.wait_equal(simulator, resource)
    eventually(lambda: all(simulator.fault_hits(rule) for rule in rules))
    for resource in NONSENSE:
        store.wait_equal(simulator, resource)
        simulator.touch(resource)
    for resource in NONSENSE:
        store.wait_equal(simulator, resource)
    assert all(process.running for process in daemons)
    store.verify()


def test_an_unreachable_server_is_reported_and_objects_stay(simulator, store, watching):
    simulator.down()
    state = eventually(lambda: store.feed_status("pods")["state"] in ("stale", "offline") and store.feed_status("pods"))
    assert state["lastError"], state
    result = store.kinf("get", "pods", "-o", "count", check=True)
    assert result.stdout == "40\n" and result.stderr.startswith("note: pods: "), result
    refused = store.kinf("get", "pods", "-o", "count", "--max-staleness", "1ms")
    assert refused.status == 1 and refused.stdout == "", refused
    simulator.up()
    store.wait_live("pods")
    assert store.kinf("get", "pods", "-o", "count", check=True).stderr == ""
    assert lists(simulator) == 0


def test_max_staleness_applies_while_the_feed_is_live(simulator, store, watching):
    """--max-staleness limits the time since the last contact, also for a live feed with a silent watch."""
    simulator.touch("pods")
    status = lambda: store.feed_status("pods")
    eventually(lambda: (status()["lastContactSeconds"] or 0) > 1.2, what="a second of silence")
    assert status()["state"] == "live"
    refused = store.kinf("get", "pods", "-o", "count", "--max-staleness", "1s")
    assert refused.status == 1 and refused.stdout == "" and "staler" in refused.stderr, refused
    assert store.kinf("get", "pods", "-o", "count", "--max-staleness", "1h", check=True).stdout == "40\n"
    # No contact is as fresh, and the option is a promise.
    never = store.kinf("get", "pods", "-o", "count", "--max-staleness", "0s")
    assert never.status == 1 and "is staler than --max-staleness 0s" in never.stderr, never
    never = store.kinf("status", "--check", "--max-staleness", "0s")
    assert never.status == 1 and "longer than 0s ago" in never.stderr, never


def test_a_restored_etcd_backup_is_noticed(simulator, store, watching):
    """After etcd was restored from a backup, objects of after the backup must disappear.

    A watch from a version of the future is silent for ever; the reflector notices because a GET at it is refused.
    """
    simulator.settings(futureWaitMs=100)
    simulator.save()
    simulator.create("pods", 5, from_=1000)
    simulator.touch("pods", 5)
    store.wait_equal(simulator, "pods")
    simulator.restore()
    store.wait_equal(simulator, "pods")
    simulator.put("pods", pod("after"))
    store.wait_equal(simulator, "pods")
    store.verify()


def test_another_cluster_at_the_same_address_is_noticed(simulator, store, watching):
    _, reflector = watching
    reflector.stop()
    simulator.new_identity()
    simulator.delete_many("pods", 30)
    simulator.compact()
    reflector.start()
    store.wait_equal(simulator, "pods", timeout=40)
    store.verify()


@pytest.fixture
def stuck(simulator, store):
    """(processor, reflector) after the address got another cluster. Its nodes cannot be listed, so
    readers are still on the old journal and index."""
    simulator.create("pods", 20)
    simulator.create("nodes", 2)
    processor, reflector = store.start(simulator, whole("pods"), whole("nodes"))
    store.wait_equal(simulator, "nodes")
    reflector.stop()
    old = store.objects("pods")
    simulator.new_identity()
    simulator.delete_many("pods", 5)
    simulator.fault(verb="list", resource="nodes", status=503, body="no")
    reflector.start()
    reflector.wait_log("cluster_replaced")
    processor.wait_log("journal_followed published=false")
    eventually(lambda: len(re.findall('feed_listed feed="pods', reflector.log)) == 2, what="the new pods are listed")
    assert store.objects("pods") == old, "readers stay on the old journal"
    return processor, reflector


def test_a_feed_that_never_lists_does_not_keep_readers_on_the_old_journal_for_ever(simulator, store, stuck):
    store.configure(whole("pods"), whole("nodes"), retention={"time": "1s"})
    for process in stuck:
        process.send(signal.SIGHUP)
    store.wait_equal(simulator, "pods")
    eventually(lambda: "503" in store.feed_status("nodes")["lastError"], what="the error of the nodes")
    simulator.touch("pods")
    store.wait_equal(simulator, "pods")
    horizon = lambda: store.kinf("status", "-o", "json", check=True).json["store"]["horizon"]
    eventually(lambda: horizon() > 0, what="the new journal is trimmed")
    simulator.clear_faults()
    store.wait_equal(simulator, "nodes")
    store.verify()


def test_readers_move_to_the_new_journal_when_the_last_feed_is_listed(simulator, store, stuck):
    simulator.clear_faults()
    store.wait_equal(simulator, "nodes")
    store.wait_equal(simulator, "pods")
    assert "publish_timeout" not in stuck[0].log


def test_the_processor_waits_for_feeds_again_after_a_restart(simulator, store, stuck):
    processor, _ = stuck
    processor.kill()
    store.configure(whole("pods"), whole("nodes"), retention={"time": "3s"})
    processor.start()
    store.wait_equal(simulator, "pods")


def test_a_wrong_token_is_reported(workspace):
    simulator = workspace.simulator(token="right")
    store = workspace.store(simulator=simulator, token="wrong")
    processor, reflector = store.configure("pods").daemons()
    reflector.wait_log(r"401|(?i:unauthorized)")
    assert processor.running and reflector.running
