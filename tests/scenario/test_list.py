# SPDX-License-Identifier: Apache-2.0
"""First lists and relists: the requests, the stored objects, and the state visible to readers meanwhile."""

import json
import re
import signal
from urllib.parse import parse_qs

import pytest

from harness import eventually
from harness.follow import changes
from harness.objects import pod
from harness.store import whole


def queries(simulator, verb, resource="pods"):
    return [
        {key: values[0] for key, values in parse_qs(request["query"]).items()}
        for request in simulator.requests(verb=verb, resource=resource)
    ]


# ---- first list ------------------------------------------------------------------------------------


def test_c01_paged_list_then_watch_from_its_version(simulator, store):
    simulator.create("pods", 1200)
    store.start(simulator, whole("pods"))
    simulator.wait_watching("pods")
    lists = queries(simulator, "list")
    assert [q["limit"] for q in lists] == ["500"] * 3 and "continue" not in lists[0]
    assert all("continue" in q and "resourceVersion" not in q for q in lists[1:])
    (watch,) = queries(simulator, "watch")
    assert watch["resourceVersion"] == simulator.rv and watch["allowWatchBookmarks"] == "true"
    assert 300 <= int(watch["timeoutSeconds"]) < 600
    store.verify()


def test_c54_watches_ask_for_no_compression(simulator, store):
    simulator.create("pods", 1)
    store.configure("pods").daemons()
    simulator.wait_watching("pods")
    (watch,) = simulator.requests(verb="watch", resource="pods")
    assert watch["acceptEncoding"] in (None, "identity"), watch


def test_an_empty_collection_is_synced(simulator, store):
    store.start_synced("pods")
    assert store.kinf("get", "pods", "-o", "count", check=True).stdout == "0\n"
    assert store.objects("pods") == {}
    simulator.put("pods", pod("a"))
    eventually(lambda: list(store.objects("pods")) == ["web/a"])


@pytest.mark.parametrize("items", ['"items":null', '"x":1'])
def test_c04_a_list_without_items_is_empty(simulator, store, items):
    simulator.fault(
        verb="list", resource="pods", count=1,
        body=f'{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"1"}},{items}}}',
    )
    store.start_synced("pods")
    assert store.objects("pods") == {}


def test_c02_c03_items_without_a_kind_get_it_from_their_list(simulator, store):
    simulator.put("pods", pod("a"))
    simulator.create("widgets", 1)
    store.start_synced("pods", whole("widgets"))
    store.wait_equal(simulator, "widgets")
    (found,) = store.objects("pods").values()
    assert (found["kind"], found["apiVersion"]) == ("Pod", "v1")


def test_c05_a_list_without_a_version_is_refused(simulator, store):
    """A watch without a version would not begin at the state of the list."""
    simulator.put("pods", pod("a"))
    simulator.fault(verb="list", resource="pods", count=1, body='{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]}')
    store.start(simulator, whole("pods"))
    simulator.wait_watching("pods")
    assert {"resourceVersion" in q for q in queries(simulator, "watch")} == {True}


@pytest.mark.parametrize("metadata, words", [
    ({"resourceVersion": "7" * 1100}, "a resourceVersion of more than 1 kB"),
    ({"resourceVersion": "7", "continue": "same"}, "the pages of the list do not come to an end"),
    ({"resourceVersion": "7", "continue": "t" * 70_000}, "a continue token of more than 64 kB"),
])
def test_a_list_that_is_of_no_use_is_named(simulator, store, metadata, words):
    simulator.put("pods", pod("a"))
    simulator.fault(verb="list", resource="pods", body=json.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": []}))
    _, reflector = store.configure(whole("pods"), backoff={"min": "100ms", "max": "300ms"}).daemons()
    reflector.wait_log(f"feed_failed .*{words}")
    failed = eventually(lambda: (row := store.feed_status("pods"))["retries"] > 2 and row)
    assert words in failed["lastError"], failed
    assert reflector.log.count("feed_failed") == 1, "once"
    simulator.clear_faults()
    store.wait_equal(simulator, "pods")
    assert not store.feed_status("pods")["lastError"]


def test_c06_readers_see_nothing_before_the_first_list_is_complete(simulator, store):
    """Until the first list is complete, readers get an error and no object."""
    simulator.create("pods", 60)
    stuck = simulator.fault(verb="list", resource="pods", after=2, hold=True, stallAt=100)
    store.configure(whole("pods", pageSize=20)).daemons()
    eventually(lambda: simulator.fault_hits(stuck) == 1)
    eventually(lambda: store.feed_status("pods")["state"] == "listing")
    result = store.kinf("get", "pods", "-o", "name")
    assert (result.status, result.stdout) == (1, "") and "listed" in result.stderr, result
    assert store.kinf("wait", "pods", "--timeout", "300ms").status == 1
    simulator.clear_faults()
    simulator.drop()
    store.wait_equal(simulator, "pods")


def test_an_interrupted_page_is_requested_again(simulator, store):
    """The pages before it are not requested again, since the token is still valid."""
    simulator.create("pods", 50)
    simulator.fault(verb="list", resource="pods", after=2, count=1, cutAt=300)
    store.start(simulator, whole("pods", pageSize=20))
    lists = queries(simulator, "list")
    assert len(lists) == 4 and lists[2] == lists[3], lists
    store.verify()


def test_c07_an_expired_page_starts_a_list_without_pages(simulator, store):
    simulator.create("pods", 50)
    stuck = simulator.fault(verb="list", resource="pods", after=1, count=1, delayMs=600)
    store.configure(whole("pods", pageSize=20)).daemons()
    eventually(lambda: simulator.fault_hits(stuck) == 1)
    simulator.touch("pods", 5)
    simulator.compact()
    store.wait_equal(simulator, "pods")
    last = queries(simulator, "list")[-1]
    assert "limit" not in last and "continue" not in last, last


@pytest.mark.parametrize("point", ["list.page:2:kill", "journal.before_commit:2:kill", "journal.after_commit:2:kill"])
def test_a_list_resumes_after_a_kill(simulator, store, point):
    simulator.create("pods", 60)
    store.configure(whole("pods", pageSize=20))
    store.processor()
    reflector = store.reflector(env={"KINF_FAIL": point})
    assert reflector.wait() == -signal.SIGKILL, reflector.tail()
    del reflector.env["KINF_FAIL"]
    simulator.delete_many("pods", 5)
    reflector.start()
    store.wait_equal(simulator, "pods")
    store.verify()


# ---- one huge body ---------------------------------------------------------------------------------


def test_memory_stays_bounded_while_a_huge_list_is_read(simulator, workspace):
    """A server may ignore the limit and send one huge body. The reflector's memory must not grow
    with it.

    With `durability: disk`, because mapped pages of the journal would count in the peak, and grow
    with the body.
    """
    peak = []
    for count in (500, 1500):  # 10 and 30 MB, both beyond the limit of one transaction (8 MiB)
        simulator.create("pods", count, size=20000)
        simulator.fault(verb="list", after=1, count=1, status=410, body='{"kind":"Status","reason":"Expired","code":410}')
        simulator.forget_requests()
        store = workspace.store(str(count), simulator).configure(whole("pods", pageSize=10), durability="disk")
        store.processor()
        reflector = store.reflector(env={"ASAN_OPTIONS": "quarantine_size_mb=1:detect_leaks=0"})
        store.wait_synced("pods")
        peak.append(peak_kb(reflector))
        # The second page's token had expired: the next list has no pages.
        assert [q.get("limit") for q in queries(simulator, "list")] == ["10", "10", None]
        reflector.stop()
    # 14 MB allow for two transactions and pages of the journal's file; the second body is 20 MB larger.
    assert peak[1] < peak[0] + 14 * 1024, peak


def peak_kb(process):
    with open(f"/proc/{process.pid}/status") as status:
        return int(re.search(r"VmHWM:\s+(\d+)", status.read())[1])


# ---- relists ---------------------------------------------------------------------------------------


def test_a_relist_of_unchanged_objects_writes_nothing(simulator, store):
    simulator.create("pods", 30)
    _, reflector = store.start(simulator, whole("pods"))
    before = store.last_event("pods")
    reflector.stop()
    # The server has forgotten the watch's version, but no pod has changed.
    simulator.create("nodes", 1)
    simulator.compact()
    simulator.forget_requests()
    reflector.start()
    eventually(lambda: simulator.counters("pods")["lists"] and simulator.counters("pods")["watching"])
    simulator.put("pods", pod("new"))
    store.wait_equal(simulator, "pods")
    assert store.last_event("pods") == before + 1


def test_c57_a_relist_finds_added_changed_and_deleted_objects(simulator, store):
    simulator.create("pods", 30)
    processor, reflector = store.start(simulator, whole("pods"))
    follower = store.follower("watch", "pods", "-o", "json")
    eventually(lambda: "SYNC" in follower.out)
    before = simulator.truth("pods")
    reflector.kill()
    simulator.delete_many("pods", 4)
    simulator.touch("pods", 5)
    simulator.create("pods", 3, from_=1000)
    simulator.compact()
    reflector.start()
    store.wait_equal(simulator, "pods")
    after = simulator.truth("pods")
    gone = before.keys() - after.keys()
    wanted = {("DELETED", key) for key in gone} | {("ADDED", key) for key in after.keys() - before.keys()}
    wanted |= {("MODIFIED", key) for key in after.keys() & before.keys() if after[key] != before[key]}
    eventually(lambda: len(changes(follower.lines)) >= len(wanted))
    assert sorted(changes(follower.lines)) == sorted(wanted)
    deleted = [line for line in follower.lines if line["type"] == "DELETED"]
    assert len(deleted) == 4 and all(line["finalStateUnknown"] is True for line in deleted)
    assert all(line["object"] in before.values() for line in deleted)
    assert not any("finalStateUnknown" in line for line in follower.lines if line["type"] != "DELETED")
    store.verify()


def test_readers_keep_the_old_state_during_a_relist(simulator, store):
    simulator.create("pods", 60)
    _, reflector = store.start(simulator, whole("pods", pageSize=20))
    old = store.objects("pods")
    reflector.stop()
    simulator.touch("pods")
    simulator.compact()
    stuck = simulator.fault(verb="list", resource="pods", after=1, hold=True, stallAt=100)
    reflector.start()
    eventually(lambda: simulator.fault_hits(stuck) == 1)
    assert store.objects("pods") == old
    assert "note: pods" in store.kinf("get", "pods", "-o", "name", check=True).stderr
    simulator.clear_faults()
    reflector.kill()
    assert store.objects("pods") == old
    reflector.start()
    store.wait_equal(simulator, "pods")
    store.verify()


def test_a_killed_relist_loses_and_repeats_no_event(simulator, store):
    simulator.create("pods", 60)
    processor, reflector = store.start(simulator, whole("pods", pageSize=20))
    follower = store.follower("watch", "pods", "-o", "json")
    eventually(lambda: "SYNC" in follower.out)
    before = simulator.truth("pods")
    reflector.kill()
    simulator.delete_many("pods", 6)
    simulator.touch("pods", 20)
    simulator.compact()
    after = simulator.truth("pods")
    for point in ("list.page:1:kill", "list.reconcile:1:kill"):
        reflector.env["KINF_FAIL"] = point
        reflector.start()
        assert reflector.wait() == -signal.SIGKILL, reflector.tail()
    del reflector.env["KINF_FAIL"]
    reflector.start()
    store.wait_equal(simulator, "pods")
    modified = [key for key in after if after[key] != before[key]]
    wanted = [("DELETED", key) for key in before.keys() - after.keys()] + [("MODIFIED", key) for key in modified]
    eventually(lambda: len(changes(follower.lines)) >= len(wanted))
    assert sorted(changes(follower.lines)) == sorted(wanted)
    store.verify()


# ---- limited feeds ---------------------------------------------------------------------------------


def test_a_metadata_feed_is_read_like_any_other(simulator, store):
    """The reflector lists and watches PartialObjectMetadata; each reading command works on these objects."""
    simulator.put("pods", [pod("a"), pod("b", app="back"), pod("c", "shop")])
    store.configure(whole("pods", name="meta", objects="metadata", indexes={"app": "metadata.labels.app"}))
    _, reflector = store.daemons()

    def equal():
        truth, ours = simulator.truth("pods"), store.objects("meta")
        return ours.keys() == truth.keys() and all(
            o == {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": truth[k]["metadata"]}
            for k, o in ours.items()
        )

    eventually(equal)
    simulator.patch("pods", "web/a", {"spec": {"nodeName": "n9"}, "metadata": {"labels": {"app": "back"}}})
    simulator.delete("pods", "web/b")
    eventually(equal)
    asked = {(r["verb"], "as=PartialObjectMetadata" in r["accept"]) for r in simulator.requests(resource="pods")}
    assert {("list", True), ("watch", True)} <= asked and not {("list", False), ("watch", False)} & asked

    read = lambda *args: store.kinf("get", "meta", *args, check=True).stdout  # noqa: E731
    rows = [line.split() for line in read("-A").splitlines()]
    assert rows[0][:2] == ["NAMESPACE", "NAME"] and [row[:2] for row in rows[1:]] == [["shop", "c"], ["web", "a"]], rows
    one = json.loads(read("web/a", "-o", "json"))
    assert one["kind"] == "PartialObjectMetadata" and one["metadata"] == simulator.truth("pods")["web/a"]["metadata"]
    assert read("-l", "app=back", "-o", "name").split() == read("--index", "app=back", "-o", "name").split() != []
    assert [o["metadata"]["name"] for o in json.loads(read("-n", "shop", "-o", "json"))["items"]] == ["c"]
    described = store.kinf("describe", "meta", "web/a", check=True).stdout
    assert "PartialObjectMetadata" in described and "Node" not in described and "Status" not in described, described

    reflector.kill()
    simulator.delete("pods", "shop/c")
    simulator.compact()
    reflector.start()
    eventually(equal)
    store.verify()


def test_c63_feeds_limited_to_namespaces_and_selectors_follow_changes(simulator, store):
    """Each feed watches its namespace or selection, and lists it again after the server has forgotten the version."""
    simulator.put("pods", [pod("a"), pod("b", app="back"), pod("c", "shop"), pod("d", "shop", app="back", phase="Failed")])
    parts = {
        "both": ({"namespaces": ["web", "shop"]}, lambda o: True),
        "shop": ({"namespaces": ["shop"]}, lambda o: o["metadata"]["namespace"] == "shop"),
        "front": ({"labelSelector": "app=front"}, lambda o: o["metadata"]["labels"]["app"] == "front"),
        "failed": ({"fieldSelector": "status.phase=Failed"}, lambda o: o["status"]["phase"] == "Failed"),
    }
    _, reflector = store.configure(*(whole("pods", name=name, **limits) for name, (limits, _) in parts.items())).daemons()

    def check():
        for name, (_, where) in parts.items():
            store.wait_equal(simulator, name, resource="pods", where=where)

    def change():
        simulator.put("pods", [pod("e", "shop"), pod("f")])
        simulator.patch("pods", "web/a", {"metadata": {"labels": {"app": "back"}}, "status": {"phase": "Failed"}})
        simulator.patch("pods", "web/b", {"metadata": {"labels": {"app": "front"}}})
        simulator.delete("pods", "shop/d")

    check()
    change()
    check()
    asked = {(r["verb"], "namespaces/shop" in r["path"], "app%3Dfront" in r["query"], "status.phase%3DFailed" in r["query"])
             for r in simulator.requests(resource="pods") if r["verb"] in ("list", "watch") and "namespaces/web" not in r["path"]}
    assert asked == {(verb, *part) for verb in ("list", "watch") for part in ((True, False, False), (False, True, False), (False, False, True))}
    reflector.kill()
    simulator.put("pods", pod("d", "shop", app="back", phase="Failed"))
    simulator.patch("pods", "web/a", {"metadata": {"labels": {"app": "front"}}, "status": {"phase": "Running"}})
    simulator.delete("pods", "shop/c")
    simulator.compact()
    reflector.start()
    check()
    store.verify()


def test_merged_namespaces_come_in_key_order(simulator, store):
    for namespace in ("a", "a-b", "b"):
        simulator.put("pods", pod("x", namespace))
    store.start(simulator, whole("pods", namespaces=["b", "a-b", "a"]))
    # By "namespace/": "a-b/" sorts before "a/".
    assert list(store.objects("pods")) == ["a-b/x", "a/x", "b/x"]
    # The plan is of the first feed with the term.
    simulator.put("pods", {"metadata": {"name": "y", "namespace": "b", "labels": {"app": "late"}}})
    store.wait_equal(simulator, "pods")
    found = store.kinf("get", "pods", "-l", "app=late", "-o", "name", "--explain", check=True)
    assert found.stdout == "pod/y\n" and "plan: term 'app=late', 1 postings" in found.stderr, found
    none = store.kinf("get", "pods", "-l", "app=none", "--explain", check=True)
    assert "plan: a term occurs nowhere: nothing to read" in none.stderr, none


def test_dropped_fields_are_not_stored(simulator, store):
    simulator.put("pods", pod("a", managedFields=[{"manager": "m"}], annotations={"x/y": "1", "keep": "2"}))
    store.start_synced("pods", {"resource": "pods", "name": "less", "drop": ["metadata.annotations['x/y']", "spec"]})
    store.wait_synced("less")
    assert "managedFields" not in store.objects("pods")["web/a"]["metadata"]
    less = store.objects("less")["web/a"]
    assert "spec" not in less and less["metadata"]["annotations"] == {"keep": "2"} and less["metadata"]["managedFields"]


def test_short_and_singular_resource_names_are_resolved(simulator, store):
    simulator.create("pods", 2)
    simulator.create("deployments.apps", 2)
    store.configure(whole("po"), whole("deploy"), whole("widget", name="w")).daemons()
    store.wait_equal(simulator, "po", resource="pods")
    store.wait_equal(simulator, "deploy", resource="deployments.apps")
    store.wait_synced("w")
    assert len(store.objects("pods")) == 2 and len(store.objects("deployments.apps")) == 2
