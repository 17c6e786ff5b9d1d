# SPDX-License-Identifier: Apache-2.0
"""The order of lists if more feeds are due than listConcurrency allows: none waits for a server silent about others."""

import signal
import time

from harness import eventually
from harness.store import whole

GROUP = "example.org"


def add_kinds(simulator, plurals):
    for plural in plurals:
        simulator.add_kind(group=GROUP, version="v1", resource=plural, kind=plural.capitalize())
    return [f"{plural}.{GROUP}" for plural in plurals]


def listed(simulator):
    """The resources in the order of their lists' begin."""
    return [request["resource"] for request in simulator.requests(verb="list")]


def test_a_dozen_lists_that_hang_hold_up_no_other(simulator, store):
    """The conversion webhook of a dozen resources was down: each of their lists held one of four turns for 30 s."""
    hanging = add_kinds(simulator, [f"hangs{n:02}" for n in range(12)])
    simulator.create("pods", 5)
    fault = simulator.fault(path=f"/apis/{GROUP}/v1/hangs", verb="list", delayMs=60000)
    store.configure(*hanging, whole("pods")).daemons()
    begin = time.monotonic()
    store.wait_live("pods")
    took = time.monotonic() - begin
    assert took < 12, took
    assert simulator.fault_hits(fault) == 12, "and each of them is tried"
    # pods was live: after it has lost its place in history it lists as soon.
    simulator.compact()
    simulator.drop()
    simulator.touch("pods")
    store.wait_equal(simulator, "pods", timeout=12)


def test_a_feed_that_was_live_lists_before_new_ones(simulator, store):
    simulator.create("pods", 5)
    store.start_live("pods", listConcurrency=1, recheck="200ms")
    simulator.fault(verb="list", delayMs=200)
    store.configure("pods", *add_kinds(simulator, [f"things{n:02}" for n in range(15)]), listConcurrency=1, recheck="200ms")
    simulator.forget_requests()
    for process in store.processes:
        process.send(signal.SIGHUP)
    eventually(lambda: len(listed(simulator)) >= 3)
    store.kinf("relist", "pods", check=True)
    eventually(lambda: "pods" in listed(simulator))
    assert listed(simulator).index("pods") < 10, listed(simulator)
    eventually(lambda: len(listed(simulator)) == 16, timeout=60)


def test_lists_that_hang_are_bounded_and_leave_room_for_others(simulator, store):
    hanging = add_kinds(simulator, [f"hangs{n:02}" for n in range(50)])
    simulator.create("pods", 5)
    fault = simulator.fault(path=f"/apis/{GROUP}/v1/hangs", verb="list", status=500, body="no", delayMs=6000)
    store.configure(*hanging, "pods", listConcurrency=8).daemons()
    eventually(lambda: simulator.fault_hits(fault) == 40, timeout=60, patience=1)
    store.wait_live("pods", timeout=60)
    # Each of them is known to hang now, so they leave a turn free.
    eventually(lambda: simulator.fault_hits(fault) > 70, timeout=60)
    begin = time.monotonic()
    store.kinf("relist", "pods", check=True)
    eventually(lambda: store.feed_status("pods")["lists"] == 2)
    assert time.monotonic() - begin < 5
