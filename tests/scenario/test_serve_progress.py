# SPDX-License-Identifier: Apache-2.0
"""Progress on demand: a read of a resourceVersion of other resources only is answered as by the API
server, and no change meanwhile is passed over."""

import os
import random
import signal
import socket
import struct
import threading
import time

import pytest

from harness import eventually
from harness.objects import pod
from harness.serve import INITIAL, Serve
from harness.store import whole

ALL = "/api/v1/pods"


@pytest.fixture
def serve(simulator, store):
    """The caches of the API server know the resourceVersions of other resources only when somebody waits for them."""
    for i in range(3):
        simulator.put("pods", pod(f"p{i}", "web"))
    simulator.settings(progressMs=50)
    store.configure(whole("pods"), serve={"listen": ["unix"]})
    store.processor_process, store.reflector_process = store.daemons()
    store.wait_live("pods")
    return Serve(store, simulator)


def elsewhere(simulator, n=1):
    """Changes another resource; returns the resourceVersion."""
    for i in range(n):
        rv = simulator.put("configmaps", {"metadata": {"name": f"c{random.random()}", "namespace": "web"}})
    return int(rv)


def watches(simulator):
    return [r["query"] for r in simulator.requests(resource="pods") if "watch=true" in r["query"]]


def asked(simulator):
    """How often the reflector asked whether the server has a version."""
    return sum(r["path"].endswith("/kinf-probe") for r in simulator.requests(resource="pods"))


def test_s34_a_version_of_another_resource_is_waited_for(serve):
    simulator = serve.simulator
    for path in (f"{ALL}?resourceVersion={{}}", f"{ALL}?resourceVersion={{}}&resourceVersionMatch=Exact", f"{ALL}?resourceVersion={{}}&limit=2",
                 "/api/v1/namespaces/web/pods/p1?resourceVersion={}"):
        rv = elsewhere(simulator, 3)
        theirs, ours = serve.both(path.format(rv))
        assert (theirs.status, ours.status) == (200, 200), ours.body
        if "/p1" not in path:
            assert int(ours.rv) >= rv
            if "Exact" in path or "limit" in path:
                assert int(ours.rv) == rv
    rv = elsewhere(simulator)
    with serve.watch(f"{ALL}?{INITIAL}&allowWatchBookmarks=true&resourceVersion={rv}") as watch:
        assert [e[:2] for e in watch.next(3)] == [("ADDED", f"p{i}") for i in range(3)]
        kind, _, end = watch.next()
        assert kind == "BOOKMARK" and int(end) >= rv
    assert simulator.counters("pods")["lists"] == 1 + 3, "the first one, and those of this test"
    serve.store.verify()


def test_the_checkpoint_moves_on_as_by_a_bookmark(serve):
    rv = elsewhere(serve.simulator)
    assert serve.ask(f"{ALL}?resourceVersion={rv}").status == 200
    serve.store.reflector_process.kill()
    serve.store.reflector()
    serve.store.wait_live("pods")
    assert int(watches(serve.simulator)[-1].rpartition("resourceVersion=")[2]) >= rv


def test_a_version_that_no_server_has_is_asked_for_once_a_second_at_most(serve):
    before = asked(serve.simulator)
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(serve.ask(f"{ALL}?resourceVersion=99999999"))) for _ in range(20)]
    for thread in threads:
        thread.start()
    eventually(lambda: asked(serve.simulator) > before)
    rv = elsewhere(serve.simulator)
    assert serve.ask(f"{ALL}?resourceVersion={rv}").status in (200, 504)
    for thread in threads:
        thread.join()
    assert {a.status for a in answers} == {504}
    assert 1 <= asked(serve.simulator) - before <= 6, "a version takes the place of another one at once"
    rv = elsewhere(serve.simulator)
    eventually(lambda: serve.ask(f"{ALL}?resourceVersion={rv}").status == 200, 10)


def test_wishes_are_hints(serve):
    """Any member of the group can send them: the reflector goes on, and asks no more than it would."""
    (directory,) = serve.store.runtime.glob("kinf-*")
    state = next((serve.store.path / "journal").glob("gen-*/STATE")).read_text()
    journal = bytes.fromhex(state.partition("uuid ")[2][:32])
    before = asked(serve.simulator)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        for number in range(2000):
            for text in (b"", b"x" * 5000, os.urandom(32), struct.pack("<4sIQ16s", b"PRG1", number % 5, 2**64 - 1 - number, journal)):
                try:
                    sender.sendto(text, str(directory / "wish.reflector"))
                except OSError:  # the queue is full
                    pass
    rv = elsewhere(serve.simulator)
    eventually(lambda: serve.ask(f"{ALL}?resourceVersion={rv}").status == 200, 10)
    assert asked(serve.simulator) - before <= 3
    assert serve.store.reflector_process.running


def test_nothing_is_passed_over(serve):
    """Pods and other objects change, clients wait for the newest version, and the reflector is killed. A watch from the
    beginning has every change once and in order, and each list has the state of its version."""
    simulator, chance = serve.simulator, random.Random(7)
    start = serve.ask(ALL).rv
    truth, stop, wrong = {}, threading.Event(), []

    def read():
        while not stop.is_set():
            rv = int(simulator.rv)
            answer = serve.ask(f"{ALL}?resourceVersion={rv}")
            if answer.status == 200 and int(answer.rv) < rv:
                wrong.append((rv, answer.rv))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    changes = []
    with serve.watch(f"{ALL}?watch=1&resourceVersion={start}") as watch:
        for _ in range(50):
            elsewhere(simulator)
            if chance.random() < 0.5:
                name = f"q{chance.randrange(4)}"
                rv = simulator.put("pods", pod(name, "web", app=str(chance.random())))
                truth[name] = str(rv)
                changes.append((name, str(rv)))
            if chance.random() < 0.05:
                serve.store.reflector_process.kill(signal.SIGKILL)
                serve.store.reflector_process = serve.store.reflector()
            time.sleep(chance.uniform(0, 0.2))
        last = simulator.put("pods", pod("last", "web"))
        changes.append(("last", str(last)))
        seen = [watch.next()[1:] for _ in changes]
    stop.set()
    for reader in readers:
        reader.join()
    assert seen == changes
    assert not wrong
    serve.store.wait_equal(simulator, "pods")
    serve.store.verify()
    assert simulator.counters("pods")["lists"] == 1
