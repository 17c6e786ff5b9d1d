# SPDX-License-Identifier: Apache-2.0
"""consistencyCheck: the reflector compares the journal with the server's objects of the same resourceVersion."""

import json
import time
from pathlib import Path

import pytest

from harness import eventually
from harness.store import whole


def checks(simulator, resource="pods"):
    """The lists made by checks (of an exact resourceVersion), first pages only."""
    return [r for r in simulator.requests(verb="list", resource=resource) if "Match=Exact" in r["query"]]


def relists(simulator, resource="pods"):
    """All other lists, first pages only."""
    return [r for r in simulator.requests(verb="list", resource=resource)
            if "Match=Exact" not in r["query"] and "continue=" not in r["query"]]


def watching(simulator, store, *feeds, **settings):
    store.configure(*feeds, consistencyCheck="1s", **settings)
    _, reflector = store.daemons()
    store.wait_equal(simulator, "pods")
    simulator.wait_watching("pods")
    simulator.forget_requests()
    return reflector


def rests(pid):
    """True if most looks at the process find it asleep."""
    asleep = 0
    for _ in range(60):
        asleep += Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"
        time.sleep(0.005)
    return asleep > 40


LOST = {
    "modified": lambda simulator: simulator.touch("pods", 1),
    "added": lambda simulator: simulator.create("pods", 1, prefix="late"),
    "deleted": lambda simulator: simulator.delete_many("pods", 1),
}


@pytest.mark.parametrize("change", LOST.values(), ids=LOST.keys())
def test_a_lost_event_is_found_and_repaired(simulator, store, change):
    simulator.create("pods", 20)
    reflector = watching(simulator, store, whole("pods", pageSize=7))
    before = store.objects("pods")
    simulator.swallow("pods")
    change(simulator)
    assert store.objects("pods") == before and simulator.truth("pods") != before
    simulator.bookmark()  # moves the feed's resourceVersion beyond the lost event
    store.wait_equal(simulator, "pods")
    assert reflector.log.count("feed_diverged") == 1
    assert len(relists(simulator)) == 1
    assert {"as=PartialObjectMetadataList" in r["accept"] for r in checks(simulator)} == {True}
    store.verify()


def test_checks_during_changes_cause_no_relist(simulator, store):
    """Objects change while a check runs; the changes are newer than the compared resourceVersion."""
    simulator.create("pods", 200)
    reflector = watching(simulator, store, whole("pods", pageSize=20))
    simulator.churn("pods", 200)
    eventually(lambda: len(checks(simulator)) >= 2, what="two checks")
    simulator.churn("pods", 0)
    store.wait_equal(simulator, "pods")
    assert not relists(simulator) and "diverged" not in reflector.log


def test_a_refused_check_is_silent_and_causes_no_relist(simulator, store):
    simulator.create("pods", 20)
    refused = simulator.fault(verb="list", resource="pods", path="Match=Exact", status=410, body="gone")
    reflector = watching(simulator, store, whole("pods"))
    eventually(lambda: simulator.fault_hits(refused))
    simulator.clear_faults()
    eventually(lambda: any(r["status"] == 200 for r in checks(simulator)), what="a check that succeeds")
    assert not relists(simulator) and "warning" not in reflector.log


def test_a_copy_of_the_journal_waits_for_a_check_at_rest(simulator, store):
    """The server hangs during the check. The reflector's loop went round without a pause until the check ended."""
    simulator.create("pods", 20)
    stuck = simulator.fault(verb="list", resource="pods", path="Match=Exact", stallAt=10)
    reflector = watching(simulator, store, whole("pods"))
    eventually(lambda: simulator.fault_hits(stuck))
    compact = store.follower("compact", name="compact")
    eventually(lambda: len(list((store.path / "journal").glob("gen-*"))) == 2)
    eventually(lambda: rests(reflector.pid), what="the reflector sleeps")
    assert compact.running
    simulator.clear_faults()
    simulator.drop()
    assert compact.wait(20) == 0
    store.wait_equal(simulator, "pods")


def test_a_check_with_an_oversized_token_is_repeated_once_a_period(simulator, store):
    simulator.create("pods", 20)
    watching(simulator, store, whole("pods"))
    rv = store.feed_status("pods")["resourceVersion"]
    page = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": rv, "continue": "x" * 70_000},
            "items": [{"metadata": {"name": "a", "namespace": "b", "uid": "c", "resourceVersion": "1"}}]}
    simulator.fault(verb="list", resource="pods", path="Match=Exact", body=json.dumps(page))
    before = len(checks(simulator))
    eventually(lambda: len(checks(simulator)) >= before + 2)
    first, second = checks(simulator)[before : before + 2]
    assert second["time"] - first["time"] > 0.5, "the reflector makes one check a period"
