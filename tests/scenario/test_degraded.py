# SPDX-License-Identifier: Apache-2.0
"""A server that refuses, a disk without space, missing memory: the status names the cause, and the
daemons go on trying."""

import pytest
from harness import eventually
from harness.store import whole


def pods(count):
    return [
        {"metadata": {"name": f"p{i}", "namespace": "web"}, "spec": {"nodeName": "n1"}} for i in range(count)
    ]


def begin(simulator, store, **settings):
    """Starts a processor and a reflector, lists 20 pods in pages of 5; stops the reflector again."""
    simulator.put("pods", pods(20))
    store.configure({"resource": "pods", "pageSize": 5}, **settings)
    store.processor()
    reflector = store.reflector()
    store.wait_equal(simulator, "pods")
    reflector.stop()


FULL = {"KINF_FAIL": "journal.before_commit:0:error=ENOSPC"}


def test_an_old_open_list_does_not_end_a_reflector_without_disk_space(simulator, store):
    begin(simulator, store, retention={"time": "1s"})
    simulator.touch("pods")
    simulator.compact()
    simulator.fault(resource="pods", verb="list", path="continue", hold=True, stallAt=1)
    reflector = store.reflector()
    eventually(lambda: store.feed_status("pods")["listDone"] == 5, what="the list's first page")
    reflector.stop()
    simulator.clear_faults()
    reflector = store.reflector(env=FULL)
    # Trimming abandons old lists, and runs at the latest when the reflector resumes after a pause
    # of 4 s.
    eventually(lambda: not reflector.running or "feed_list_abandoned" in reflector.log, what="the old list is given up")
    eventually(lambda: "waiting for disk space" in store.kinf("status").stdout, what="it waits for room")
    assert reflector.stop() == 0, "the reflector has not ended by itself"
    store.reflector()
    store.wait_equal(simulator, "pods")


def test_a_feed_that_cannot_be_stored_is_not_live(simulator, store):
    begin(simulator, store)
    simulator.forget_requests()
    reflector = store.reflector(env=FULL)
    simulator.wait_watching("pods")
    simulator.touch("pods", 1)
    status = eventually(
        lambda: "No space left on device" in (s := store.feed_status("pods"))["lastError"] and s, what="the cause"
    )
    assert status["state"] == "stale"
    eventually(lambda: simulator.counters("pods")["watches"] >= 3, what="two more attempts")
    assert "feed_recovered" not in reflector.log, "an attempt does not count as a success"


def state(store, name):
    return next(p["state"] for p in store.kinf("status", "-o", "json").json["processes"] if p["name"] == name)


@pytest.mark.parametrize(
    "error, says",
    [("ENOSPC", "waiting for disk space"), ("MAP_FULL", "raise mapSize in kinf.yaml"), ("ENOMEM", "out of memory: ")],
)
def test_the_state_names_the_cause_of_a_failed_commit(simulator, store, error, says):
    begin(simulator, store)
    store.reflector(env={"KINF_FAIL": f"journal.before_commit:0:error={error}"})
    simulator.touch("pods", 1)
    eventually(lambda: says in state(store, "kinf-reflector"), what="the reflector's state")
    store.stop()
    store.reflector()
    store.processor(env={"KINF_FAIL": f"index.before_commit:0:error={error}"})
    eventually(lambda: says in state(store, "kinf-processor"), what="the processor's state")


def test_a_reflector_reports_running_after_space_returns_even_without_a_server(simulator, store):
    begin(simulator, store)
    reflector = store.reflector(env={"KINF_FAIL": "journal.before_commit:1:error=ENOSPC"})
    simulator.touch("pods", 1)
    reflector.wait_log("work_failed")
    simulator.down()
    assert state(store, "kinf-reflector") == "waiting for disk space"
    eventually(lambda: state(store, "kinf-reflector") == "running", timeout=20, what="running again")


@pytest.mark.parametrize("daemon, point", [("reflector", "journal"), ("processor", "index")])
def test_each_of_several_failures_is_logged(simulator, store, daemon, point):
    begin(simulator, store)
    store.stop()
    points = f"{point}.before_commit:2:error=ENOMEM,{point}.after_commit:1:error=ENOSPC"
    daemons = [store.reflector, store.processor]
    daemons.remove(getattr(store, daemon))
    daemons[0]()
    failing = getattr(store, daemon)(env={"KINF_FAIL": points})
    simulator.touch("pods", 1)
    failing.wait_log("No space left on device")
    simulator.touch("pods", 1)
    failing.wait_log("Cannot allocate memory")
    store.wait_equal(simulator, "pods")


def test_a_refused_request_does_not_count_as_contact(simulator, store):
    begin(simulator, store)
    store.reflector()
    eventually(lambda: store.feed_status("pods")["lastContactSeconds"] is not None, what="contact")
    fault = simulator.fault(resource="pods", status=503, body="no")
    simulator.drop()
    eventually(lambda: simulator.fault_hits(fault) >= 3, what="several refusals")
    assert store.feed_status("pods")["lastContactSeconds"] > 1.5
    refused = store.kinf("get", "pods", "--max-staleness", "1s")
    assert refused.status == 1 and "stale" in refused.stderr


def test_the_page_size_applies_after_a_restart(simulator, store):
    begin(simulator, store)
    simulator.touch("pods")
    simulator.compact()
    simulator.forget_requests()
    store.reflector()
    store.wait_equal(simulator, "pods")
    assert simulator.requests(verb="list", resource="pods")[0]["query"] == "limit=5"


def test_failed_discovery_is_retried_with_growing_pauses(simulator, store):
    simulator.fault(verb="discovery", status=503, body="no")
    store.configure("pods", "services")
    store.reflector()
    # Pauses of 1 s, 2 s, 4 s: two requests at 0, 1 and 3 s.
    eventually(lambda: len(simulator.requests(verb="discovery")) >= 6, what="three attempts")
    times = [r["time"] for r in simulator.requests(verb="discovery")]
    assert times[5] - times[0] > 2.5, times


def test_an_outage_of_many_feeds_is_logged_by_the_first_ones(simulator, store):
    """`kinf status` has the error of each feed."""
    kinds = ["configmaps", "nodes", "pods", "secrets", "services", "namespaces"]
    store.configure(*kinds, backoff={"min": "10ms", "max": "20ms"}).daemons()
    for kind in kinds:
        store.wait_live(kind)
    reflector = next(p for p in store.processes if "kinf-reflector" in p.name)
    simulator.down()
    eventually(lambda: all(f["lastError"] for f in store.kinf("status", "-o", "json").json["feeds"]))
    assert len([line for line in reflector.log.splitlines() if " feed_failed " in line]) == 3, reflector.log
    simulator.up()
    for kind in kinds:
        store.wait_live(kind)
    assert len([line for line in reflector.log.splitlines() if " feed_recovered " in line]) == 3, reflector.log


def test_the_expired_versions_of_many_feeds_are_logged_by_the_first_ones(simulator, store):
    """A restarted API server knows no earlier resourceVersion."""
    kinds = ["configmaps", "nodes", "pods", "secrets", "services", "namespaces"]
    for kind in kinds:
        simulator.create(kind, 2)
    store.configure(*map(whole, kinds)).daemons()
    for kind in kinds:
        store.wait_equal(simulator, kind)
    reflector = next(p for p in store.processes if "kinf-reflector" in p.name)
    for kind in kinds:
        simulator.fault(verb="watch", resource=kind, count=1, status=410, body="too old")
    simulator.drop()
    for kind in kinds:
        simulator.touch(kind)
        store.wait_equal(simulator, kind)
    lines = [line for line in reflector.log.splitlines() if " feed_failed " in line]
    assert len([line for line in lines if 'kind="expired"' in line]) in range(1, 4), reflector.log
