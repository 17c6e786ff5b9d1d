# SPDX-License-Identifier: Apache-2.0
"""Which feeds list when more want to than listConcurrency lets: none waits for a server that is silent about others."""

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
    """The resources in the order in which lists of them began."""
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
    store.configure("pods", listConcurrency=1, recheck="200ms").daemons()
    store.wait_live("pods")
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


def test_lists_that_hang_make_room_for_those_that_may_not(simulator, store):
    """More hang than may at once. Each is tried before the others wait for it, and again when nobody else waits."""
    hanging = add_kinds(simulator, [f"hangs{n:02}" for n in range(22)])
    simulator.create("pods", 5)
    fault = simulator.fault(path=f"/apis/{GROUP}/v1/hangs", verb="list", delayMs=60000)
    store.configure(*hanging, "pods", listConcurrency=2).daemons()
    store.wait_live("pods", timeout=40)
    assert simulator.fault_hits(fault) >= 22, "each one is tried"
    row = store.feed_status(hanging[0])
    assert row["lastError"] == "the server does not answer the list: other feeds go first", row
    simulator.clear_faults(fault)
    simulator.drop()
    for name in hanging:
        store.wait_live(name, timeout=60)
