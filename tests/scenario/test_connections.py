# SPDX-License-Identifier: Apache-2.0
"""Connections to the API server: feeds share few of them, leave dead ones, and reconnect spread
over time after an outage. nghttpx, run before the simulated cluster, speaks HTTP/2."""

import os
import pathlib
import signal
import time

import pytest

from harness import eventually
from harness.network import Nghttpx, TcpPath
from harness.store import whole

QUICK = {"timeouts": {"connect": "1s", "answer": "1s", "silence": "1s"}, "backoff": {"min": "50ms", "max": "200ms"}}


def spread(n):
    """A feed of N namespaces, listed and watched one by one: N watches."""
    return {"resource": "pods", "drop": [], "namespaces": [f"ns-{i}" for i in range(n)]}


class Way:
    """A store with a reflector reaching the simulator through a TcpPath, and through nghttpx if
    there is a CERTIFICATE."""

    def __init__(self, workspace, simulator, certificate=None, **front):
        self.workspace, self.simulator, self.certificate = workspace, simulator, certificate
        self.front = self.make_front(**front) if certificate else None
        self.path = TcpPath(self.front.port if certificate else simulator.port)
        workspace.started.append(self.path)
        self.path.processes = []
        scheme = "https" if certificate else "http"
        self.store = workspace.store()
        self.store.connect(f"{scheme}://127.0.0.1:{self.path.port}", ca=certificate and certificate[0])

    def make_front(self, **options):
        front = Nghttpx(self.workspace.directory, self.simulator, self.certificate, **options)
        self.workspace.started.append(front)
        return front.start()


@pytest.fixture
def way(workspace, simulator, certificate):
    """way(): over HTTP/2; way(plain=True): over HTTP/1.1 without TLS."""
    return lambda plain=False, **front: Way(workspace, simulator, None if plain else certificate, **front)


def lists(simulator):
    return len(simulator.requests(verb="list"))


# ---- few connections -------------------------------------------------------------------------------


def test_a_hundred_feeds_share_at_most_four_connections(simulator, way):
    simulator.create("pods", 100, namespaces=100)
    way = way()
    way.store.configure(spread(100)).daemons()
    simulator.wait_watching("pods", 100, timeout=60)
    way.store.wait_equal(simulator, "pods", where=lambda o: True)
    assert way.path.opened <= 4
    simulator.drop()  # all watches reconnect, over few connections again
    simulator.touch("pods")
    way.store.wait_equal(simulator, "pods")
    simulator.wait_watching("pods", 100, timeout=60)
    assert way.path.opened <= 4, "the front's connections were not cut"


@pytest.mark.parametrize("streams", [10, 30])
def test_a_low_stream_limit_opens_only_as_many_connections_as_needed(simulator, way, streams):
    way = way(streams=streams)
    way.store.configure(spread(60)).reflector()
    simulator.wait_watching("pods", 60)
    assert 60 / streams <= way.path.opened <= 60 / streams + 2


def test_feeds_work_over_http_1(simulator, way):
    simulator.create("pods", 20)
    way = way(alpn="http/1.1")
    way.store.configure("pods", whole("nodes"), "services").daemons()
    for feed in ("pods", "nodes", "services"):
        simulator.wait_watching(feed)
    way.store.wait_equal(simulator, "nodes")
    simulator.touch("pods")
    eventually(lambda: way.store.feed_status("pods")["resourceVersion"] == simulator.rv)
    assert simulator.counters("pods")["lists"] == 1


def test_goaway_keeps_running_streams_and_moves_new_requests(simulator, way):
    simulator.create("pods", 20, namespaces=5)
    way = way()
    way.store.configure(spread(5)).daemons()
    simulator.wait_watching("pods", 5)
    simulator.forget_requests()
    other = way.make_front(name="other")
    way.path.aim(other.port)
    way.front.go_away()
    simulator.put("nodes", {"metadata": {"name": "n1"}})
    simulator.touch("pods")
    way.store.wait_equal(simulator, "pods")
    assert not simulator.requests(verb="watch"), "running streams are not cut"
    way.store.configure(spread(5), whole("nodes"))
    for process in way.store.processes:
        process.send(signal.SIGHUP)
    way.store.wait_equal(simulator, "nodes")
    simulator.wait_watching("nodes")
    assert way.path.opened == 2
    assert simulator.counters("pods")["lists"] == 0


# ---- dead connections ------------------------------------------------------------------------------


@pytest.mark.parametrize("plain", [False, True], ids=["h2", "http1"])
def test_c60_watches_leave_a_silent_connection_without_a_list(simulator, way, plain):
    simulator.create("pods", 10, namespaces=5)
    way = way(plain=plain)
    way.store.configure(spread(5), **QUICK).daemons()
    simulator.wait_watching("pods", 5)
    way.store.wait_equal(simulator, "pods")
    simulator.forget_requests()
    way.path.freeze()
    simulator.touch("pods")
    way.store.wait_equal(simulator, "pods")
    assert lists(simulator) == 0


def test_quiet_watches_are_renewed_without_a_list_or_a_failure(simulator, way):
    """Twenty watches share a connection, silent for longer than timeouts.silence."""
    simulator.settings(bookmarkMs=0)
    way = way()
    reflector = way.store.configure(spread(20), **QUICK).reflector()
    simulator.wait_watching("pods", 20)
    simulator.forget_requests()
    eventually(lambda: len(simulator.requests(verb="watch")) >= 40, what="each watch renewed twice")
    assert way.path.opened == 1 and lists(simulator) == 0
    assert "warning" not in reflector.log.lower() and "failed" not in reflector.log


def test_a_feed_catches_up_after_the_server_was_stopped(simulator, way):
    simulator.create("pods", 20)
    way = way(plain=True)
    _, reflector = way.store.configure(whole("pods"), **QUICK).daemons()
    way.store.wait_equal(simulator, "pods")
    simulator.wait_watching("pods")
    simulator.forget_requests()
    simulator.process.send(signal.SIGSTOP)
    try:
        eventually(lambda: way.store.feed_status("pods")["state"] == "stale", what="stale")
    finally:
        simulator.process.send(signal.SIGCONT)
    simulator.touch("pods")
    way.store.wait_equal(simulator, "pods")
    way.store.wait_live("pods")
    assert lists(simulator) == 0 and reflector.log.count("feed_failed") <= 1


# ---- no storm --------------------------------------------------------------------------------------


def busiest(requests, span):
    """The largest number of requests within SPAN seconds."""
    times = sorted(request["time"] for request in requests)
    return max(sum(t <= other < t + span for other in times) for t in times)


@pytest.mark.parametrize("outage", [False, True], ids=["cut", "outage"])
def test_fifty_feeds_reconnect_spread_over_a_second(simulator, store, outage):
    reflector = store.configure(spread(50)).reflector()
    simulator.wait_watching("pods", 50)
    simulator.forget_requests()
    if outage:
        simulator.down()
        reflector.wait_log("cluster_unreachable .*refused")
        simulator.up()
    else:
        simulator.drop()
    simulator.wait_watching("pods", 50)
    watches = simulator.requests(verb="watch")
    assert len(watches) == 50 and lists(simulator) == 0
    assert busiest(watches, 0.1) <= 25, "the watches begin spread over a second"
    assert busiest(simulator.requests(), 1) <= 120, "each watch costs one request more"


def test_list_concurrency_limits_parallel_lists(simulator, store):
    simulator.fault(verb="list", resource="pods", delayMs=100)
    store.configure(spread(12), listConcurrency=3).reflector()
    simulator.wait_watching("pods", 12)
    times = sorted(request["time"] for request in simulator.requests(verb="list"))
    assert len(times) == 12
    assert all(later - earlier >= 0.095 for earlier, later in zip(times, times[3:]))


def received(pid):
    """Bytes waiting in the sockets of a process."""
    links = [os.readlink(path) for path in pathlib.Path(f"/proc/{pid}/fd").iterdir()]
    rows = [line.split() for line in pathlib.Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    return sum(int(row[4].partition(":")[2], 16) for row in rows if f"socket:[{row[9]}]" in links)


def test_the_end_of_a_list_is_seen_that_waited_in_the_socket(simulator, way):
    """libcurl read a list in the turn of a watch of the same connection until its buffer of 64 KiB
    was full. It forgot the end of the list among its last bytes until something else arrived there:
    some bookmark."""
    simulator.settings(bookmarkMs=0)
    way = way()
    reflector = way.store.configure(spread(10), "services").reflector()
    simulator.wait_watching("pods", 10)
    simulator.wait_watching("services")
    slow = simulator.fault(resource="services", verb="list", delayMs=500)

    def seen():
        return reflector.log.count('feed_listed feed="services"')

    for n, size in enumerate(range(64960, 65160, 20), 1):  # with its head the list has a little more than 64 KiB
        simulator.put("services", {"metadata": {"name": "one", "namespace": "x"}, "spec": {"text": "y" * size}})
        way.store.kinf("relist", "services", check=True)
        eventually(lambda n=n: simulator.fault_hits(slow) == n)
        reflector.send(signal.SIGSTOP)
        sizes = [0]  # the window may end some bytes before the list does
        eventually(lambda: sizes.append(received(reflector.pid)) or sizes[-1] == sizes[-2] > 64000)
        reflector.send(signal.SIGCONT)
        eventually(lambda n=n: seen() == n + 1, timeout=5, patience=1)
