# SPDX-License-Identifier: Apache-2.0
"""kinf-serve as `kinf status` shows it: running, stopped, hung, killed, ended on purpose, not
started; and the clients' errors while there is nothing to serve yet."""

import signal
import socket
import threading

from harness import eventually
from harness.objects import pod
from harness.process import program
from harness.serve import METADATA, Client, Serve, UnixConnection
from harness.store import whole


def rows(store):
    return {p["name"]: p for p in store.kinf("status", "-o", "json").json["processes"]}


def state(store):
    return rows(store)["kinf-serve"]["state"]


def test_status_shows_kinf_serve_and_check_misses_it(simulator, store):
    simulator.put("pods", pod("a", "web"))
    store.start_live(whole("pods"))
    assert set(rows(store)) == {"kinf-reflector", "kinf-processor"}
    assert store.kinf("status", "--check").status == 0
    store.configure(whole("pods"), serve={"listen": ["unix"]})
    assert state(store) == "not running"
    check = store.kinf("status", "--check")
    assert check.status == 1 and "kinf-serve: not running" in check.stderr

    serve = Serve(store, simulator)
    eventually(lambda: state(store) == "running")
    assert store.kinf("status", "--check").status == 0
    with serve.watch("/api/v1/pods?watch=1") as watch:
        assert watch.next()[1] == "a"
        eventually(lambda: rows(store)["kinf-serve"]["counters"]["serve.watches"] == 1)
        row = rows(store)["kinf-serve"]
        assert row["pid"] == serve.process.pid and row["restarts"] == 0
        assert row["counters"]["serve.connections"] == 1
        text = store.kinf("status", check=True).stdout
        assert f"Serving: 1 connections, 1 watches at unix {serve.socket}" in text
        assert serve.socket in store.kinf("status", "-o", "json").json["store"]["serveAddresses"]
    eventually(lambda: rows(store)["kinf-serve"]["counters"]["serve.connections"] == 0)

    serve.process.send(signal.SIGSTOP)
    eventually(lambda: state(store) == "not responding")
    check = store.kinf("status", "--check")
    assert check.status == 1 and "kinf-serve: not responding" in check.stderr
    serve.process.send(signal.SIGCONT)
    eventually(lambda: state(store) == "running")

    serve.process.kill()
    assert state(store) == "not running"
    assert "kinf-serve: not running" in store.kinf("status", "--check").stderr
    serve.start()
    eventually(lambda: state(store) == "running")
    assert rows(store)["kinf-serve"]["restarts"] == 1


def test_a_kinf_serve_that_was_ended_is_missed_only_if_it_is_configured(simulator, store):
    store.start_live(whole("pods"))
    serve = Serve(store, simulator)
    assert state(store) == "running"
    serve.process.kill()
    assert state(store) == "not running", "nobody ended it"
    serve.start()
    serve.process.stop()
    assert "kinf-serve" not in rows(store)
    assert store.kinf("status", "--check").status == 0
    store.configure(whole("pods"), serve={"listen": ["unix"]})
    assert state(store) == "not running"


def test_a_hung_worker_is_shown_and_ended(simulator, store):
    store.start_live(whole("pods"), serve={"listen": ["unix"]})
    serve = Serve(store, simulator)
    serve.process.stop()
    serve.start(env={"KINF_FAIL": "serve.request:1:pause=600000"})
    client = threading.Thread(target=lambda: swallow(serve.ask, "/livez"), daemon=True)
    client.start()
    eventually(lambda: state(store) == "not responding")
    assert store.kinf("status", "--check").status == 1
    serve.process.kill()
    client.join()


def swallow(function, *args):
    try:
        function(*args)
    except OSError:
        pass


def test_s72_s86_before_the_first_list_clients_are_told_to_come_again(workspace):
    """kubectl keeps a discovery document for hours, so none may be empty."""
    simulator = workspace.simulator()
    simulator.put("pods", pod("a", "web"))
    simulator.down()
    store = workspace.store(simulator=simulator)
    store.configure(whole("pods"), serve={"listen": ["unix"]})
    store.daemons()
    eventually(lambda: store.kinf("status", "-o", "json").status == 0)
    serve = Serve(store, simulator)
    eventually(lambda: "not ready: " in state(store))
    for path in ("/api", "/apis", "/api/v1", "/apis/apps/v1", "/apis/apps", "/api/v1/pods", "/api/v1/namespaces/web/pods/a",
                 "/api/v1/pods?watch=1"):
        answer = serve.ask(path)
        assert (answer.status, answer.json["reason"]) == (503, "ServiceUnavailable"), path
        assert int(answer.headers["retry-after"]) >= 1
        assert answer.json["details"]["retryAfterSeconds"] >= 1
    refusal = serve.ask("/api/v1/pods?watch=1", accept=METADATA)
    assert refusal.status == 503 and refusal.body.count(b"\n") == 1, "kube-rs reads a watch by lines"
    ready = serve.ask("/readyz")
    assert ready.status == 500 and b"[-]feeds failed: nothing is watched yet" in ready.body and serve.ask("/livez").status == 200
    assert serve.ask("/version").status == 200
    simulator.fault(verb="list", resource="pods", count=1000, status=500)
    simulator.up()
    eventually(lambda: serve.ask("/api").status == 200)
    eventually(lambda: "pods is not listed" in state(store))
    eventually(lambda: "(re)initializing: " in serve.ask("/api/v1/pods").message)
    for path in ("/api/v1/pods", "/api/v1/namespaces/web/pods/a", "/api/v1/pods?watch=1"):
        answer = serve.ask(path)
        assert (answer.status, answer.json["reason"]) == (429, "TooManyRequests"), path
        assert answer.message.startswith("storage is (re)initializing: ") and "500" in answer.message, answer.message
        assert int(answer.headers["retry-after"]) >= 1
    assert serve.ask("/readyz").status == 500 and serve.ask("/livez").status == 200
    assert serve.ask("/apis").json["groups"] == []  # S86
    simulator.clear_faults()
    eventually(lambda: serve.ask("/api/v1/pods").status == 200)
    eventually(lambda: state(store) == "running")
    assert serve.ask("/readyz").status == 200


def test_feeds_that_cannot_be_listed_do_not_hold_up_the_others(simulator, store):
    simulator.put("pods", pod("a", "web"))
    simulator.fault(verb="list", resource="secrets", count=10**6, status=403)
    simulator.fault(verb="list", resource="services", count=10**6, status=500)
    store.configure(whole("pods"), whole("secrets"), serve={"listen": ["unix"]})
    store.daemons()
    serve = Serve(store, simulator)
    eventually(lambda: state(store) == "running")
    assert serve.ask("/readyz").status == 200

    store.configure(whole("pods"), whole("secrets"), whole("services"), serve={"listen": ["unix"]})
    for process in store.processes:
        process.send(signal.SIGHUP)
    eventually(lambda: "services is not listed" in state(store), what="a first list that failed a moment ago is waited for")
    eventually(lambda: state(store) == "running", what="for a while")
    assert serve.ask("/readyz").status == 200 and serve.ask("/api/v1/services").status == 429


def test_a_separate_kinf_serve_is_not_started_by_run(simulator, store):
    simulator.put("pods", pod("a", "web"))
    store.configure(whole("pods"), serve={"listen": ["unix"], "separate": True})
    store.run()
    store.wait_live("pods")
    assert state(store) == "not running"
    check = store.kinf("status", "--check")
    assert check.status == 1 and "kinf-serve: not running" in check.stderr
    Serve(store, simulator)
    eventually(lambda: state(store) == "running")
    assert store.kinf("status", "--check").status == 0


def test_the_fault_of_kinf_serve_is_said_before_the_error_of_the_api_server(simulator, store):
    """The one is the machine's own, and the other is in each feed's row also."""
    taken = socket.create_server(("127.0.0.1", 0))
    address = f"127.0.0.1:{taken.getsockname()[1]}"
    store.start_live(whole("pods"), serve={"listen": [address]})
    simulator.stop()
    eventually(lambda: "can't be reached" in store.kinf("status").stdout or "refused" in store.kinf("status").stdout)
    assert store.process("kinf-serve", [program("kinf-serve")]).start().wait() != 0
    for said in (store.kinf("status", "-o", "json").json["store"]["lastError"], store.kinf("status").stdout.partition("Error:   ")[2]):
        assert said.startswith("kinf-serve: ") and f"listening on '{address}': Address already in use" in said, said
