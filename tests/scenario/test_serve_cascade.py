# SPDX-License-Identifier: Apache-2.0
"""A kinf filled from a kinf-serve: the leaf of a relay. resourceVersions pass through, a restart of
the relay costs no list, the age of the data passes down, and a client moving between two relays
never goes back in time."""

import json
import signal

import pytest

from harness import eventually
from harness.objects import pod
from harness.serve import Serve, addresses
from harness.store import whole

ALL = "/api/v1/pods"


class Relay(Serve):
    """A kinf-serve as other machines' source."""

    def url(self):
        return "https://" + addresses(self.store)["api", "https"]


def relay(workspace, simulator, name, port=0):
    store = workspace.store(name, simulator=simulator)
    store.configure(whole("pods"), whole("configmaps"), whole("namespaces"),
                    serve={"listen": ["unix", f"127.0.0.1:{port}"], "auth": "open"})
    store.processor_process, store.reflector_process = store.daemons()
    store.wait_live("pods")
    store.wait_live("configmaps")
    store.wait_live("namespaces")  # by kube-system a leaf knows the cluster
    return Relay(store, simulator)


def leaf(workspace, relay, name="leaf"):
    store = workspace.store(name)
    store.connect(relay.url(), ca=relay.store.path / "serve" / "ca.crt")
    store.configure(whole("pods"), whole("configmaps"), serve={"listen": ["unix"]})
    store.processor_process, store.reflector_process = store.daemons()
    store.wait_live("pods")
    return store


@pytest.fixture
def tree(simulator, workspace):
    for i in range(5):
        simulator.put("pods", pod(f"p{i}", "web", app=f"app{i % 2}"))
    middle = relay(workspace, simulator, "relay")
    store = leaf(workspace, middle)
    store.wait_equal(simulator, "pods")
    return simulator, middle, Serve(store, simulator)


def reached(serve, rv):
    eventually(lambda: int(serve.ask(ALL + "?limit=1").rv) >= int(rv), what=f"resourceVersion {rv}")


def test_versions_pass_through(tree):
    simulator, middle, end = tree
    rv = end.ask(ALL).rv
    assert int(rv) <= int(simulator.rv)
    # One of the API server is one of the relay and of the leaf.
    with middle.server.watch(f"{ALL}?watch=1&resourceVersion={rv}") as first, \
            middle.watch(f"{ALL}?watch=1&resourceVersion={rv}") as second, end.watch(f"{ALL}?watch=1&resourceVersion={rv}") as third:
        simulator.put("pods", pod("new", "web", app="app0"))
        simulator.patch("pods", "web/p1", {"metadata": {"labels": {"app": "x"}}})
        last = simulator.delete("pods", "web/p2")
        lines = [[json.loads(watch.line()) for _ in range(3)] for watch in (first, second, third)]
    assert lines[0] == lines[1] == lines[2]
    assert lines[0][-1]["object"]["metadata"]["resourceVersion"] == str(last)
    reached(end, last)
    bodies = {side.ask(f"{ALL}?resourceVersion={last}&resourceVersionMatch=Exact").body for side in (middle, end)}
    assert len(bodies) == 1 and json.loads(bodies.pop())["items"] == middle.server.ask(ALL).json["items"]
    # A page of the one goes on at the other.
    page = middle.ask(f"{ALL}?limit=2").json
    token = page["metadata"]["continue"]
    rest = end.ask(f"{ALL}?continue={token}")
    assert rest.json["items"] == middle.ask(f"{ALL}?continue={token}").json["items"] == middle.ask(ALL).json["items"][2:]


def test_a_restart_of_the_middle_costs_no_list(tree):
    simulator, middle, end = tree
    upstream, feed = simulator.counters("pods"), end.store.feed_status("pods")
    with end.watch(f"{ALL}?watch=1&resourceVersion={end.ask(ALL).rv}") as watch:
        port = int(middle.url().rpartition(":")[2])
        for number in (signal.SIGKILL, signal.SIGTERM):
            middle.process.kill(number)
            middle.store.configure(whole("pods"), whole("configmaps"), whole("namespaces"),
                                   serve={"listen": ["unix", f"127.0.0.1:{port}"], "auth": "open"})
            last = simulator.put("pods", pod(f"while-{int(number)}", "web"))
            middle.start()
            assert watch.next() == ("ADDED", f"while-{int(number)}", str(last))
        for process in (middle.store.reflector_process, middle.store.processor_process):
            process.kill()
        middle.store.daemons()
        last = simulator.put("pods", pod("after", "web"))
        assert watch.next() == ("ADDED", "after", str(last))
    assert simulator.counters("pods")["lists"] == upstream["lists"]
    assert end.store.feed_status("pods")["lists"] == feed["lists"]
    end.store.wait_equal(simulator, "pods")
    end.store.verify()


def test_progress_passes_down(tree):
    """A read of a version of other resources only goes up through the relay."""
    simulator, middle, end = tree
    simulator.settings(progressMs=50)
    rv = simulator.put("nodes", {"metadata": {"name": "elsewhere"}, "spec": {}})
    answer = end.ask(f"{ALL}?resourceVersion={rv}")
    assert answer.status == 200 and int(answer.rv) >= int(rv), answer.body
    assert int(middle.ask(ALL).rv) >= int(rv)


def test_the_age_passes_down(tree):
    simulator, middle, end = tree
    assert "warning" not in end.ask(ALL).headers
    simulator.down()
    stale = eventually(lambda: (a := end.ask(ALL)).headers.get("warning") and a, 15, "a warning of the leaf, before a bookmark is due")
    assert "stale since" in stale.headers["warning"] and stale.headers["age"].isdigit()
    assert len(stale.names) == 5
    assert end.store.feed_status("pods")["state"] == "stale"
    simulator.up()
    eventually(lambda: "warning" not in end.ask(ALL).headers, 60, "no warning")
    last = simulator.put("pods", pod("back", "web"))
    reached(end, last)


def test_a_client_between_two_relays_never_goes_back(simulator, workspace):
    """One relay is behind: a read of N waits there until it has come, and a watch from N shows nothing older."""
    simulator.put("pods", pod("p0", "web"))
    ahead, behind = relay(workspace, simulator, "ahead"), relay(workspace, simulator, "behind")
    behind.store.reflector_process.send(signal.SIGSTOP)
    seen = 0
    for i in range(20):
        rv = int(simulator.put("pods", pod(f"p{i}", "web", app=f"a{i}")))
        reached(ahead, rv)
        answer = ahead.ask(ALL)
        assert int(answer.rv) >= seen
        seen = int(answer.rv)
    refused = behind.ask(f"{ALL}?resourceVersion={seen}")
    assert refused.status == 504 and refused.json["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    assert behind.ask(f"/api/v1/namespaces/web/pods/p0?resourceVersion={seen}").status == 504
    with behind.watch(f"{ALL}?watch=1&resourceVersion={seen}") as watch:
        behind.store.reflector_process.send(signal.SIGCONT)
        last = simulator.put("pods", pod("newest", "web"))
        assert watch.next() == ("ADDED", "newest", str(last)), "nothing that the client has seen at the other relay"
    answer = behind.ask(f"{ALL}?resourceVersion={seen}")
    assert answer.status == 200 and int(answer.rv) >= seen
    assert answer.names == ahead.ask(f"{ALL}?resourceVersion={last}").names


def test_a_leaf_that_is_moved_to_the_api_server_lists_nothing(tree):
    simulator, middle, end = tree
    before = simulator.counters("pods")["lists"]
    end.store.reflector_process.stop()
    end.store.connect(simulator.url)
    simulator.put("pods", pod("moved", "web"))
    end.store.reflector()
    end.store.wait_equal(simulator, "pods")
    assert simulator.counters("pods")["lists"] == before
