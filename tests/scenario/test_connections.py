# SPDX-License-Identifier: Apache-2.0
"""Connections to the API server: few of them, found out when they are dead, and no storm when it is
back. HTTP/2 is nghttpx's, before the simulated cluster."""

import signal

import pytest

from harness import eventually
from harness.network import Front, Path
from harness.store import whole

QUICK = {"timeouts": {"connect": "1s", "answer": "1s", "silence": "1s"}, "backoff": {"min": "50ms", "max": "200ms"}}


def spread(n):
    """One entry of the file that makes N feeds: one for each namespace."""
    return {"resource": "pods", "drop": [], "namespaces": [f"ns-{i}" for i in range(n)]}


class Way:
    """A store whose reflector reaches the simulator over a Path, and with front over HTTP/2."""

    def __init__(self, workspace, simulator, certificate=None, **front):
        self.workspace, self.simulator, self.certificate = workspace, simulator, certificate
        self.front = self.make_front(**front) if certificate else None
        self.path = Path(self.front.port if certificate else simulator.port)
        workspace.started.append(self.path)
        self.path.processes = []
        scheme = "https" if certificate else "http"
        self.store = workspace.store()
        self.store.connect(f"{scheme}://127.0.0.1:{self.path.port}", ca=certificate and certificate[0])

    def make_front(self, **options):
        front = Front(self.workspace.directory, self.simulator, self.certificate, **options)
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
    simulator.drop()  # all come back, and over few again
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
    assert not simulator.requests(verb="watch"), "streams that run are not cut"
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


def test_quiet_watches_on_one_connection_are_renewed_one_at_a_time(simulator, way):
    """Twenty on one connection, and no byte for longer than the silence: one asks at a time."""
    simulator.settings(bookmarkMs=0)
    way = way()
    reflector = way.store.configure(spread(20), **QUICK).reflector()
    simulator.wait_watching("pods", 20)
    simulator.forget_requests()
    eventually(lambda: len(simulator.requests(verb="watch")) >= 2, what="two watches renewed")
    assert len(simulator.requests(verb="watch")) <= 4
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
    """The most requests within SPAN seconds."""
    times = sorted(request["time"] for request in requests)
    return max(sum(t <= other < t + span for other in times) for t in times)


@pytest.mark.parametrize("outage", [0, 1], ids=["cut", "outage"])
def test_fifty_feeds_reconnect_spread_over_a_second(simulator, store, outage):
    store.configure(spread(50)).reflector()
    simulator.wait_watching("pods", 50)
    simulator.forget_requests()
    if outage:
        simulator.refuse(outage)
    else:
        simulator.drop()
    simulator.wait_watching("pods", 50)
    watches = simulator.requests(verb="watch")
    assert len(watches) == 50 and lists(simulator) == 0
    assert busiest(watches, 0.1) <= 25, "no burst"
    assert busiest(simulator.requests(), 1) <= 120, "each watch asks one question more"


def test_list_concurrency_limits_parallel_lists(simulator, store):
    simulator.fault(verb="list", resource="pods", delayMs=100)
    store.configure(spread(12), listConcurrency=3).reflector()
    simulator.wait_watching("pods", 12)
    times = sorted(request["time"] for request in simulator.requests(verb="list"))
    assert len(times) == 12
    assert all(later - earlier >= 0.095 for earlier, later in zip(times, times[3:]))
