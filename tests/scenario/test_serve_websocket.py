# SPDX-License-Identifier: Apache-2.0
"""kinf-serve answers watches over WebSockets, as fabric8's client asks for them.
tests/real/check_serve.py compares its answers with those of a kube-apiserver 1.36 byte by byte."""

import json
import signal

import pytest

from harness import eventually
from harness.api_server import ApiServer
from harness.objects import pod
from harness.serve import METADATA, Serve
from harness.store import whole
from harness.websocket import ACCEPT, CLOSE, PING, PONG, TEXT, WebSocket

PODS = "/api/v1/namespaces/web/pods"
INITIAL = f"{PODS}?watch=1&resourceVersion=0"


@pytest.fixture(scope="module")
def serve(shared):
    simulator, store = shared.simulator(), shared.store()
    for i in range(3):
        simulator.put("pods", pod(f"p{i}", "web"))
    simulator.put("pods", pod("large", "shop", note="x" * 70000))
    store.connect(simulator.url)
    store.start_synced(whole("pods"), serve={"listen": ["unix"]})
    return Serve(store, simulator)


def watches(serve):
    processes = serve.store.kinf("status", "-o", "json", check=True).json["processes"]
    return next(p["counters"]["serve.watches"] for p in processes if p["name"] == "kinf-serve")


@pytest.mark.parametrize("accept", ["application/json", METADATA])
@pytest.mark.parametrize("path", [PODS, "/api/v1/pods", "/api/v1/watch/pods"])
def test_the_messages_are_the_lines_of_a_watch(serve, path, accept):
    query = f"{path}?watch=1&resourceVersion=0&allowWatchBookmarks=true&timeoutSeconds=1"
    lines = serve.ask(query, accept=accept).body.splitlines(keepends=True)
    assert len(lines) > 3
    with WebSocket(serve.socket, query, accept=accept) as client:
        assert client.status == 101
        assert client.headers == {"upgrade": "websocket", "connection": "Upgrade", "sec-websocket-accept": ACCEPT}
        assert client.rest() == lines


def test_events_come_as_they_happen(serve):
    with WebSocket(serve.socket, f"{PODS}?watch=1&resourceVersion={serve.ask(PODS).rv}") as client:
        serve.simulator.put("pods", pod("new", "web"))
        rv = serve.simulator.delete("pods", "web/new")
        for kind in ("ADDED", "DELETED"):
            operation, text = client.frame()
            event = json.loads(text)
            assert (operation, event["type"], event["object"]["metadata"]["name"]) == (TEXT, kind, "new")
        assert event["object"]["metadata"]["resourceVersion"] == str(rv)


def test_a_ping_is_answered_between_two_messages(serve):
    with WebSocket(serve.socket, INITIAL) as client:
        assert [client.frame()[0] for _ in range(3)] == [TEXT] * 3
        client.say(TEXT, b"nobody listens")
        client.say(PING, b"there?")
        assert client.frame() == (PONG, b"there?")
        serve.simulator.patch("pods", "web/p0", {"metadata": {"labels": {"ping": "pong"}}})
        assert client.frame()[0] == TEXT


@pytest.mark.parametrize("leave", [lambda client: client.say(CLOSE, b"\x03\xe9"), lambda client: client.socket.shutdown(1)], ids=["close", "end"])
def test_a_client_that_leaves_ends_its_watch(serve, leave):
    eventually(lambda: watches(serve) == 0)
    with WebSocket(serve.socket, INITIAL) as client:
        assert [client.frame()[0] for _ in range(3)] == [TEXT] * 3
        eventually(lambda: watches(serve) == 1)
        leave(client)
        assert client.rest() == []
        eventually(lambda: watches(serve) == 0)


def test_a_client_that_sends_what_is_no_websocket_is_left(serve):
    with WebSocket(serve.socket, INITIAL) as client:
        client.socket.sendall(b"\x81\x01x")  # without a mask
        assert [client.frame()[0] for _ in range(3)] == [TEXT] * 3
        assert client.frame() == (CLOSE, b"\x03\xea") and client.frame() is None


def test_errors_in_the_stream_are_messages(serve):
    query = f"{PODS}?watch=1&resourceVersion=1"
    line = serve.ask(query).body
    assert json.loads(line)["object"]["code"] == 410
    with WebSocket(serve.socket, query) as client:
        assert client.rest() == [line]


@pytest.mark.parametrize("query, headers, status", [
    (f"{PODS}?watch=1&labelSelector=,,", {}, 400),
    (f"{PODS}?watch=1", {"Sec_WebSocket_Version": "8"}, 400),
    (f"{PODS}?watch=1", {"Sec_WebSocket_Key": None}, 400),
    (f"{PODS}?watch=1", {"Sec_WebSocket_Protocol": "a, b"}, 400),
    ("/api/v1/nodes?watch=1", {}, 404),
    (PODS, {}, 200),  # only watches have messages
    (f"{INITIAL}&timeoutSeconds=1", {"Upgrade": "h2c"}, 200),
    (f"{INITIAL}&timeoutSeconds=1", {"Connection": None}, 200),
])
def test_what_is_no_watch_over_a_websocket_is_answered_as_without(serve, query, headers, status):
    with WebSocket(serve.socket, query, **headers) as client:
        assert client.status == status and client.headers["content-type"] == "application/json"
        assert "sec-websocket-accept" not in client.headers


def test_the_protocol_that_a_client_asks_for_is_confirmed(serve):
    with WebSocket(serve.socket, f"{INITIAL}&timeoutSeconds=1", Sec_WebSocket_Protocol="v4.channel.k8s.io", Authorization="Bearer T") as client:
        assert client.headers["sec-websocket-protocol"] == "v4.channel.k8s.io"
        assert len(client.rest()) == 3


def test_the_end_of_kinf_serve_closes_the_socket(serve):
    with WebSocket(serve.socket, f"{PODS}?watch=1&resourceVersion={serve.ask(PODS).rv}&allowWatchBookmarks=true") as client:
        serve.process.kill(signal.SIGTERM)
        assert [json.loads(text)["type"] for text in client.rest()] == ["BOOKMARK"]
    serve.start()


def test_what_is_cached_comes_from_the_cache_with_forwarding_also(workspace):
    simulator = workspace.simulator()
    simulator.put("pods", pod("p0", "web"))
    api = ApiServer(simulator)
    workspace.started.append(api)
    store = workspace.store()
    store.connect(api.url)
    store.start_synced(whole("pods"), serve={"listen": ["unix"], "forward": "on"})
    serve = Serve(store, simulator)
    for headers in ({"Authorization": "Bearer T"}, {"Authorization": "Bearer T", "Sec_WebSocket_Protocol": "a"}):
        with WebSocket(serve.socket, f"{INITIAL}&timeoutSeconds=1", **headers) as client:
            assert client.status == 101 and len(client.rest()) == 1
    assert api.times("GET", PODS) == 0
    # A browser's token is among the protocols: the API server reads it.
    with WebSocket(serve.socket, f"{INITIAL}&timeoutSeconds=1", Sec_WebSocket_Protocol="base64url.bearer.authorization.k8s.io.VA, a"):
        assert api.times("GET", PODS) == 1
