# SPDX-License-Identifier: Apache-2.0
"""kinf-serve with `forward: on`: requests outside the cache go to the API server, with the client's own credentials."""

import contextlib
import json
import signal
import socket
import subprocess
import threading
import time

import pytest

from harness import PATIENCE, eventually
from harness.api_server import ApiServer
from harness.objects import pod
from harness.serve import TABLE, Serve, metrics
from harness.store import whole

TOKEN = {"Authorization": "Bearer T"}
PODS = "/api/v1/namespaces/web/pods"


class Forward:
    def __init__(self, workspace, *feeds, settings=None, tls=None, **serve):
        self.simulator = workspace.simulator()
        for i in range(3):
            self.simulator.put("pods", pod(f"p{i}", "web"))
        self.api = ApiServer(self.simulator, tls and tls.issue("server", "IP:127.0.0.1"))
        workspace.started.append(self.api)
        self.store = workspace.store()
        self.store.connect(self.api.url, ca=tls and tls.ca)
        feeds = feeds or (whole("pods"),)
        self.store.configure(*feeds, serve={"listen": ["unix"], "forward": "on", "metrics": "127.0.0.1:0", **serve}, **(settings or {}))
        _, self.reflector = self.store.daemons()
        for feed in feeds:
            self.store.wait_synced(feed["resource"])
        self.serve = Serve(self.store, self.simulator)

    def ask(self, path, method="GET", body=None, **headers):
        return self.serve.ask(path, method=method, body=body, **{**TOKEN, **headers})

    def raw(self):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(20 * PATIENCE)
        connection.connect(self.serve.socket)
        return connection


@pytest.fixture(scope="module")
def forward(shared):
    return Forward(shared)


def read_until(connection, end):
    data = b""
    while not data.endswith(end):
        piece = connection.recv(65536)
        assert piece, data
        data += piece
    return data


# ---- which requests ----------------------------------------------------------------------------------


def test_covered_reads_are_answered_from_the_cache(forward):
    before = forward.api.times("GET", "/api/v1/namespaces/web/pods")
    assert forward.ask(PODS).names == ["p0", "p1", "p2"]
    assert forward.ask(PODS + "/p1").status == 200
    assert forward.ask(PODS + "/nope").status == 404
    offer = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAMAAABkAAQCAAAAAAIAAAAA"}
    assert forward.ask(PODS, **offer).names == ["p0", "p1", "p2"]
    assert forward.api.times("GET", "/api/v1/namespaces/web/pods") == before


def test_shards_are_the_api_servers(forward):
    """Without its feature gate it sends all objects; only it knows."""
    shard = "shardSelector=shardRange(object.metadata.uid,'0x0000000000000000','0x8000000000000000')"
    before = forward.api.times("GET", PODS)
    assert forward.ask(f"{PODS}?{shard}").names == ["p0", "p1", "p2"]
    assert forward.api.times("GET", PODS) == before + 1
    assert forward.ask(f"{PODS}?shardSelector=").names == ["p0", "p1", "p2"]
    assert forward.ask(f"{PODS}/p1?{shard}").status == 200, "a get has none"
    assert forward.api.times("GET", PODS) == before + 1


def test_a_ca_file_that_is_replaced_counts_for_forwarded_requests(workspace, authority):
    """While the reflector's own connection goes on: until then kinf-serve kept the CA of the reflector's start."""
    simulator = workspace.simulator(tls=authority("one").issue("server", "IP:127.0.0.1"))
    simulator.put("nodes", {"metadata": {"name": "n1"}})
    store = workspace.store()
    ca = store.directory / "ca.crt"

    def replace(*names):
        ca.with_suffix(".new").write_bytes(b"".join(authority(name).ca.read_bytes() for name in names))
        ca.with_suffix(".new").rename(ca)

    replace("one")
    store.connect(simulator.url, ca=ca)
    store.start_synced(whole("pods"), serve={"listen": ["unix"], "forward": "on"})
    serve = Serve(store, simulator)
    nodes = lambda: serve.ask("/api/v1/nodes", **TOKEN)
    assert nodes().names == ["n1"]
    replace("two")
    eventually(lambda: nodes().status == 503, 30)
    assert "certificate" in nodes().json["message"], "it says what was the matter"
    replace("one", "two")
    eventually(lambda: nodes().status == 200, 30)


def test_a_request_takes_the_first_connection_that_is_free(workspace, authority):
    """A kube-apiserver that was too busy for handshakes answered on its open connections, while writes got 503."""
    forward = Forward(workspace, tls=authority("one"))
    connection = forward.serve.http2.connect()

    def send(method, path):
        connection.request(method, path, headers=TOKEN)
        return connection.streams[connection.last]

    first = send("GET", "/later")
    eventually(lambda: forward.api.times("GET", "/later") == 1)
    forward.api.greets.clear()
    answers = [first, *(send("DELETE", f"{PODS}/p{i}") for i in range(3))]
    eventually(lambda: forward.api.waiting == 3, what="a connection for each write")
    forward.api.gate.set()
    for answer in answers:
        answer.read()
    assert [answer.status for answer in answers] == [200] * 4
    forward.api.greets.set()
    assert [forward.ask("/headers").status for _ in range(3)] == [200] * 3
    connection.close()


def test_quorum_reads_are_the_api_servers(workspace):
    forward = Forward(workspace, freshness="quorum")
    asked = lambda: forward.api.times("GET", PODS)
    for query in ("", "?resourceVersion=", "?limit=2"):
        before = asked()
        answer = forward.ask(PODS + query)
        assert answer.status == 200 and asked() == before + 1, query
    assert forward.ask(f"{PODS}/p1").status == 200 and forward.api.times("GET", f"{PODS}/p1") > 0
    rv = forward.ask(PODS).json["metadata"]["resourceVersion"]
    before = asked()
    for query in ("?resourceVersion=0", f"?resourceVersion={rv}"):
        assert forward.ask(PODS + query).names == ["p0", "p1", "p2"]
    assert asked() == before, "reads with a version are the cache's"
    # Nothing is answered without proof: not without credentials, and not without the API server.
    assert forward.serve.ask(PODS).status == 401
    forward.api.stop()
    answer = forward.ask(PODS)
    assert answer.status == 503 and "retry-after" not in answer.headers
    assert forward.ask(PODS + "?resourceVersion=0").status == 200


@pytest.mark.parametrize("path", ["/api/v1/nodes", "/apis/apps/v1/deployments", "/api/v1/namespaces/web/nosuch", "/nosuch", "/api", "/apis",
                                  "/api/v1/pods?fieldSelector=spec.later%3Dx",
                                  "/api/v1", "/apis?x=%20y", "/api/v1/namespaces/web/pods/p1/log?follow=true&limit=abc"])
def test_other_reads_are_the_api_servers(forward, path):
    theirs, ours = forward.serve.server.ask(path), forward.ask(path)
    assert (ours.status, ours.body) == (theirs.status, theirs.body)
    assert forward.api.times("GET", path) > 0, "path and query go as they were sent"


def test_a_form_that_is_not_made_here_is_forwarded(forward):
    before = forward.api.times("GET", PODS)
    forward.ask(PODS, Accept="application/yaml")
    assert forward.api.times("GET", PODS) == before + 1


def test_a_watch_of_what_is_not_cached_streams(forward):
    with forward.serve.watch("/api/v1/nodes?watch=1&resourceVersion=0", **TOKEN) as watch:
        forward.simulator.put("nodes", {"metadata": {"name": "n1"}, "spec": {}})
        assert watch.next()[:2] == ("ADDED", "n1")
        forward.simulator.patch("nodes", "n1", {"spec": {"unschedulable": True}})
        assert watch.next()[:2] == ("MODIFIED", "n1")


# ---- credentials and headers -----------------------------------------------------------------------------


def test_credentials_pass_and_headers_of_a_connection_do_not(forward):
    passed = {"Authorization": "Basic eDp5", "Impersonate-User": "u", "Impersonate-Extra-A%2fb": "c", "X-Custom": "1", "Accept": "a/b",
              "User-Agent": "t/1", "Kubectl-Command": "kubectl x"}
    dropped = {"Connection": "keep-alive, X-Hop, te", "X-Hop": "1", "Keep-Alive": "5", "TE": "trailers", "Proxy-Authorization": "p",
               "X-Remote-User": "root", "X-Remote-Group": "system:masters", "Upgrade": "h2c"}
    seen = forward.serve.ask("/headers", **passed, **dropped).json
    assert {name: seen.get(name.lower()) for name in passed} == passed
    assert not set(map(str.lower, dropped)) & set(seen)
    assert seen["host"] == forward.api.url.removeprefix("http://")


def test_a_client_can_not_have_credentials_left_out_by_naming_them_in_connection(forward):
    """A front proxy names the user by them."""
    credentials = {"Authorization": "Bearer proxy", "Impersonate-User": "u", "Impersonate-Group": "g"}
    seen = forward.serve.ask("/headers", **credentials, Connection="close, Impersonate-User, impersonate-group, authorization").json
    assert {name: seen.get(name.lower()) for name in credentials} == credentials


def test_without_credentials_nothing_is_forwarded(forward):
    before = len(forward.api.seen)
    for method, path in [("POST", PODS), ("DELETE", PODS + "/p0"), ("PATCH", PODS + "/p0/status"), ("GET", PODS + "/p0/log")]:
        answer = forward.serve.ask(path, method=method, body="{}" if method != "GET" else None)
        assert (answer.status, answer.json["reason"]) == (401, "Unauthorized"), (method, path)
    assert forward.serve.ask("/api/v1/nodes").status == 404, "its own decision allows the read, but there is no feed"
    assert forward.serve.ask("/apis").json["kind"] == "APIGroupList"
    assert [s for s in forward.api.seen[before:] if s[0] != "GET" or "Authorization" in s[2]] == []


# ---- writes ----------------------------------------------------------------------------------------------


def test_a_write_is_in_the_next_read(workspace):
    forward = Forward(workspace)
    for i in range(30):
        name = f"new-{i}"
        made = forward.ask(PODS, "POST", json.dumps({"metadata": {"name": name}, "spec": {}}))
        assert made.status == 201 and made.json["metadata"]["resourceVersion"]
        assert name in forward.ask(PODS).names
        patched = forward.ask(f"{PODS}/{name}", "PATCH", '{"metadata": {"labels": {"a": "b"}}}', content_type="application/merge-patch+json")
        assert forward.ask(f"{PODS}/{name}").rv == patched.rv
        assert forward.ask(f"{PODS}/{name}" + ("/eviction" if i % 2 else ""), "POST" if i % 2 else "DELETE", "{}").status == 200
        assert name not in forward.ask(PODS).names
        assert forward.ask(f"{PODS}/{name}").status == 404
    assert forward.api.times("GET", PODS + "?") == 0, "only the cache was read"


def test_an_object_whose_last_finalizer_is_removed_is_not_in_the_next_read(workspace):
    """The write deletes it, and is answered with its last version. The cache may not even have reached this version."""
    forward = Forward(workspace)
    going = {"deletionTimestamp": "2026-01-01T00:00:00Z"}  # a namespace has no deletionGracePeriodSeconds then, others have 0
    objects = [{"metadata": {"name": f"final-{i}", "namespace": "web", "finalizers": ["example.com/f"]}, "spec": {}} for i in range(20)]
    for item in objects:
        forward.simulator.put("pods", item)
    eventually(lambda: "final-19" in forward.ask(PODS).names)
    for item in objects:
        path = f"{PODS}/{item['metadata']['name']}"
        item["metadata"].update(going, **({"deletionGracePeriodSeconds": 0} if item in objects[:10] else {}))
        forward.simulator.put("pods", item)
        assert forward.ask(path, "PATCH", '{"metadata": {"finalizers": null}}', content_type="application/merge-patch+json").status == 200
        assert forward.ask(path).status == 404
        assert item["metadata"]["name"] not in forward.ask(PODS).names


def test_a_deletion_without_effect_holds_up_no_read(workspace):
    """Another one of an object that terminates, a dry run, and one whose object was made again: each
    had the next reads of all clients wait for a second."""
    forward = Forward(workspace)
    held = {"metadata": {"name": "held", "namespace": "web", "finalizers": ["example.com/f"]}, "spec": {}}
    assert forward.ask(PODS, "POST", json.dumps(held)).status == 201
    assert "deletionTimestamp" in forward.ask(f"{PODS}/held", "DELETE").json["metadata"]
    assert "deletionTimestamp" in forward.ask(f"{PODS}/held").json["metadata"], "the first one is in the next read"

    def read_after(path, body=None):
        assert forward.ask(path, "DELETE", body).status == 200
        if path.endswith("p1"):
            made = forward.ask(PODS, "POST", '{"metadata": {"name": "p1"}, "spec": {}}').json
        began = time.monotonic()
        assert {"p0", "p1", "held"} <= set(forward.ask(PODS).names)
        took = time.monotonic() - began
        assert not path.endswith("p1") or forward.ask(path).json["metadata"]["uid"] == made["metadata"]["uid"]
        return took

    for path, body in ((f"{PODS}/held", None), (f"{PODS}/p0", '{"kind": "DeleteOptions", "dryRun": ["All"]}'), (f"{PODS}/p1", None)):
        times = [read_after(path, body) for _ in range(5)]
        assert min(times) < 0.9, (path, times)


def test_a_read_after_a_collection_was_deleted_is_current_and_does_not_wait(workspace):
    """Its answer has the version of a list, newer than all of the feed's versions while nothing
    changes. The namespace controller deletes some forty collections, most of them empty, and lists
    each: this took two minutes."""
    forward = Forward(workspace, whole("pods"), whole("configmaps"))
    times = []
    for i in range(5):
        for k in range(3 if i % 2 else 0):
            assert forward.ask(PODS, "POST", json.dumps({"metadata": {"name": f"new-{k}"}, "spec": {}})).status == 201
        forward.simulator.put("configmaps", {"metadata": {"name": f"m{i}", "namespace": "web"}})
        assert forward.ask(PODS, "DELETE").status == 200
        began = time.monotonic()
        assert forward.ask(PODS).names == []
        times.append(time.monotonic() - began)
    assert min(times) < 0.9, times  # without the mend none is below a second


@pytest.mark.parametrize("form", ["application/json", "application/yaml"])
def test_reads_wait_for_the_reflector_to_see_a_write(workspace, form):
    forward = Forward(workspace)
    forward.reflector.send(signal.SIGSTOP)
    try:
        assert forward.ask(PODS, "POST", '{"metadata": {"name": "new"}, "spec": {}}', accept=form).status == 201
        assert "new" not in forward.serve.ask(PODS + "?resourceVersion=0").names, "any version may be shown"
        assert "new" in forward.ask(PODS).names, "a client with a token is forwarded after three seconds"
        answers = []
        reader = threading.Thread(target=lambda: answers.append(forward.serve.ask(PODS)))
        reader.start()
    finally:
        forward.reflector.send(signal.SIGCONT)
    reader.join()
    assert "new" in answers[0].names, "one without waits"


@pytest.mark.parametrize("method, name, refused, then", [("PUT", "p0", 409, 200), ("POST", "new", 409, 200), ("DELETE", "p1", 404, 404)])
def test_a_get_after_a_refused_write_shows_the_reason(workspace, method, name, refused, then):
    """client-go's RetryOnConflict gives up within 50 ms; what exists already is asked for then."""
    forward = Forward(workspace)
    old = forward.ask(f"{PODS}/p0").json
    forward.reflector.send(signal.SIGSTOP)
    forward.simulator.patch("pods", "web/p0", {"metadata": {"labels": {"a": "b"}}})
    forward.simulator.put("pods", pod("new", "web"))
    forward.simulator.delete("pods", "web/p1")
    body = {"PUT": json.dumps(old), "POST": json.dumps(pod("new", "web"))}.get(method)
    try:
        assert forward.ask(PODS if method == "POST" else f"{PODS}/{name}", method, body).status == refused
        assert "new" not in forward.ask(PODS).names, "lists do not wait: the write changed nothing"
        answer = forward.ask(f"{PODS}/{name}")
        assert answer.status == then and (method != "PUT" or answer.json["metadata"]["labels"]["a"] == "b")
    finally:
        forward.reflector.send(signal.SIGCONT)


def test_a_read_after_a_write_does_not_wait_for_a_stale_feed(workspace):
    """Leader election writes and reads a lease every few seconds."""
    forward = Forward(workspace)
    forward.reflector.kill()
    eventually(lambda: "warning" in forward.ask(PODS).headers)
    times = []
    for name in ("new-1", "new-2"):
        assert forward.ask(PODS, "POST", json.dumps({"metadata": {"name": name}, "spec": {}})).status == 201
        began = time.monotonic()
        assert name in forward.ask(PODS).names
        times.append(time.monotonic() - began)
    assert max(times) < 2, times  # the first took 3 s


# ---- feeds that lack objects -------------------------------------------------------------------------------


def test_an_object_that_a_stale_feed_lacks_is_the_api_servers(workspace):
    forward = Forward(workspace)
    forward.reflector.kill()
    forward.simulator.put("pods", pod("new", "web"))
    eventually(lambda: "warning" in forward.ask(PODS).headers)
    assert forward.ask(f"{PODS}/new").json["metadata"]["name"] == "new"
    missing = forward.ask(f"{PODS}/nope")
    assert missing.status == 404 and "warning" not in missing.headers, "the API server's own"
    assert forward.ask(f"{PODS}/p1").status == 200 and forward.api.times("GET", f"{PODS}/p1") == 0, "what is cached is not asked for"
    without = forward.serve.ask(f"{PODS}/new")
    assert without.status == 404 and "stale since" in without.headers["warning"], "nothing is forwarded without credentials"
    # The cache's answer counts if the API server has none.
    for path, headers in ((f"{PODS}/new", {}), (f"{PODS}/new", {"accept": TABLE})):
        forward.simulator.process.send(signal.SIGSTOP)
        answer = forward.ask(path, **headers)
        forward.simulator.process.send(signal.SIGCONT)
        assert (answer.status, answer.message) == (404, 'pods "new" not found') and "stale since" in answer.headers["warning"]
    forward.api.stop()
    answer = forward.ask(f"{PODS}/new")
    assert (answer.status, answer.message) == (404, 'pods "new" not found') and "stale since" in answer.headers["warning"]
    assert "retry-after" not in answer.headers


def test_an_object_that_was_passed_over_is_the_api_servers(workspace):
    forward = Forward(workspace, settings={"maxObjectSize": "64KiB"})
    forward.simulator.put("pods", pod("large", "web", note="x" * 100_000))
    eventually(lambda: "large" in forward.ask(PODS).headers.get("warning", ""))
    assert forward.ask(f"{PODS}/large").json["metadata"]["note"] == "x" * 100_000


# ---- bodies ----------------------------------------------------------------------------------------------


def test_large_bodies_pass_in_both_directions(forward):
    size = 20 << 20
    assert forward.ask("/count", "POST", b"y" * size).body == b"%d" % size
    pieces = (b"z" * 100000 for _ in range(100))
    assert forward.ask("/count", "POST", pieces).body == b"10000000", "in chunks"
    assert len(forward.ask(f"/big?{size}").body) == size


def test_http2_passes_bodies_in_both_directions(forward, workspace):
    size, file = 20 << 20, workspace.directory / "body"
    file.write_bytes(b"y" * size)
    curl = ["curl", "-sS", "--http2-prior-knowledge", "--unix-socket", forward.serve.socket, "-H", "Authorization: Bearer T"]
    for more in (["-H", "Transfer-Encoding: chunked"], []):
        result = subprocess.run([*curl, "--data-binary", f"@{file}", *more, "http://x/count"], capture_output=True, text=True)
        assert (result.returncode, result.stdout) == (0, str(size)), result
    result = subprocess.run([*curl, f"http://x/big?{size}"], capture_output=True)
    assert len(result.stdout) == size, result.stderr
    result = subprocess.run([*curl[:-2], "--data-binary", f"@{file}", "http://x/api/v1/nodes"], capture_output=True, text=True)
    assert '"code": 401' in result.stdout, "an answer before the body's end"


@pytest.mark.parametrize("version", ["--http1.1", "--http2-prior-knowledge"])
def test_no_warning_of_the_api_server_is_lost(forward, version):
    """An apply has one for each unknown field."""
    result = subprocess.run(["curl", "-sS", "-i", version, "--unix-socket", forward.serve.socket, "-H", "Authorization: Bearer T",
                             "http://x/warnings?190"], capture_output=True, text=True)
    assert result.stdout.count("unknown field") == 190, result


def test_a_client_that_does_not_read_stops_the_server(forward):
    with forward.raw() as connection:
        forward.api.sent = 0
        size = 256 << 20
        connection.sendall(b"GET /big?%d HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer T\r\n\r\n" % size)
        assert connection.recv(12) == b"HTTP/1.1 200"
        last = -1

        def still():
            nonlocal last
            before, last = last, forward.api.sent
            return before == last

        eventually(still)
        assert 0 < forward.api.sent < size // 4
        assert forward.ask("/headers").status == 200, "others are not disturbed"


def test_a_server_that_does_not_read_stops_the_client(forward):
    with forward.raw() as connection:
        connection.sendall(b"POST /never HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer T\r\nContent-Length: 1000000000\r\n\r\n")
        connection.settimeout(1)
        sent = 0
        with pytest.raises(TimeoutError):
            while True:
                sent += connection.send(b"x" * 65536)
        assert sent < 100 << 20
        assert forward.ask("/headers").status == 200, "others are not disturbed"
    forward.api.gate.set()


def test_a_cut_answer_is_cut_here_also(forward):
    with forward.raw() as connection:
        connection.sendall(b"GET /cut HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer T\r\n\r\n")
        data = b""
        while piece := connection.recv(65536):
            data += piece
    assert data.endswith(b"half") and b"content-length: 100" in data


def test_expect_continue(forward):
    with forward.raw() as connection:
        connection.sendall(b"POST /count HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer T\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
        assert connection.recv(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"abc")
        assert read_until(connection, b"\r\n\r\n3").startswith(b"HTTP/1.1 200 OK")
        connection.sendall(b"POST /api/v1/nodes HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
        assert connection.recv(12) == b"HTTP/1.1 401", "a refusal comes instead"


# ---- tunnels ---------------------------------------------------------------------------------------------


def test_upgrades_make_tunnels(forward):
    with forward.raw() as connection:
        connection.sendall(b"GET /api/v1/namespaces/web/pods/p0/exec?command=sh HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer T\r\n"
                           b"Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\nearly")
        text = read_until(connection, b"hello\nearly")
        assert text.startswith(b"HTTP/1.1 101 Switching Protocols\r\n") and b"upgrade: spdy/3.1\r\n" in text.lower()
        sent = b"0123456789abcdef" * 200000
        sender = threading.Thread(target=connection.sendall, args=(sent,))
        sender.start()
        back = b""
        while len(back) < len(sent):
            back += connection.recv(1 << 20)
        sender.join()
        assert back == sent
        connection.sendall(b"bye")
        assert read_until(connection, b"bye") == b"bye"
        assert connection.recv(10) == b"", "the server's end is the client's"


def test_a_tunnel_ends_with_its_client(forward):
    metric = 'apiserver_longrunning_requests{verb="GET",group="",version="v1",resource="pods",subresource="exec",scope="resource"}'

    def running():
        return metrics(forward.store).get(metric, 0)

    before = running()
    with forward.raw() as connection:
        connection.sendall(b"GET /api/v1/namespaces/web/pods/p0/exec HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer T\r\n"
                           b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        read_until(connection, b"hello\n")
        eventually(lambda: running() == before + 1)
    eventually(lambda: running() == before)


def test_tunnels_do_not_take_the_places_of_writes(forward):
    def tunnel():
        connection = stack.enter_context(forward.raw())
        connection.sendall(b"GET /api/v1/namespaces/web/pods/p0/exec HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer T\r\n"
                           b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        return connection

    with contextlib.ExitStack() as stack:
        for _ in range(1024):
            read_until(tunnel(), b"hello\n")
        assert tunnel().recv(20).startswith(b"HTTP/1.1 429 ")
        assert forward.ask("/count", "POST", b"written").body == b"7"


# ---- hostile callers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("request_", [
    b"POST /count HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer T\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST /count HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer T\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcd",
    b"POST /count HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer T\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST /api/v1/namespaces/web/pods HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer T\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST /count HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer T\r\nTransfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n",
    b"GET /count HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer T\r\nA: b\r\n c\r\n\r\n",
], ids=["length and chunks", "two lengths", "bad chunk", "bad chunk of an object", "other coding", "folded line"])
def test_doubtful_requests_are_not_forwarded(forward, request_):
    before = forward.api.times("GET", "/smuggled")
    with forward.raw() as connection:
        connection.sendall(request_ + b"GET /smuggled HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer T\r\n\r\n")
        text = b""
        while piece := connection.recv(65536):
            text += piece
    assert text.startswith((b"HTTP/1.1 400", b"HTTP/1.1 501")) and text.count(b"HTTP/1.1 ") == 1, text
    assert forward.api.times("GET", "/smuggled") == before


def test_a_body_belongs_to_its_request(forward):
    """Bytes like a request within a body stay there, even if the request is answered from the cache."""
    inner = b"GET /smuggled HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer T\r\n\r\n"
    for path in (b"/count", b"/api/v1/namespaces/web/pods"):
        with forward.raw() as connection:
            connection.sendall(b"%s %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer T\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s"
                               % (b"POST" if path == b"/count" else b"GET", path, len(inner), inner))
            while connection.recv(65536):
                pass
    assert forward.api.times("GET", "/smuggled") == 0


# ---- the API server is away --------------------------------------------------------------------------------


def test_without_the_api_server_the_cache_answers_and_the_rest_is_503(workspace):
    forward = Forward(workspace)
    lost = forward.ask("/lost", "POST", "{}")
    assert (lost.status, lost.json["reason"]) == (503, "ServiceUnavailable")
    assert "it is not known whether the request had an effect" in lost.message and "retry-after" not in lost.headers
    forward.api.stop()
    for method, path in [("POST", PODS), ("GET", "/api/v1/nodes"), ("DELETE", PODS + "/p0")]:
        answer = forward.ask(path, method, "{}" if method == "POST" else None)
        assert (answer.status, answer.json["reason"], "retry-after" in answer.headers) == (503, "ServiceUnavailable", False)
        assert "the API server can't be reached" in answer.message
    assert forward.ask(PODS).names == ["p0", "p1", "p2"]
    assert [r["name"] for r in forward.ask("/api/v1").json["resources"]] == ["pods"], "discovery is made of the feeds"


def test_without_the_api_server_reviews_are_answered_from_what_is_known(workspace):
    """k9s asks one before each view."""
    forward = Forward(workspace)
    review = json.dumps({"spec": {"resourceAttributes": {"verb": "list", "resource": "pods"}}})

    def ask():
        return forward.ask("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "POST", review, content_type="application/json")

    assert "kinf-serve" not in str(ask().json) and forward.api.times("POST", "/apis/authorization") == 1, "the API server's own"
    forward.api.stop()
    answer = ask()
    assert (answer.status, answer.json["status"]) == (201, {"allowed": True})


def test_without_the_api_server_its_discovery_documents_stay(workspace):
    forward = Forward(workspace)
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    files = {"/api": forward.store.path / "discovery.api", "/apis": forward.store.path / "discovery.apis"}
    theirs = {path: forward.ask(path, accept=accept) for path in files}
    assert b'"deployments"' in theirs["/apis"].body, "what is not a feed"
    for path, file in files.items():
        eventually(file.exists)
        assert file.stat().st_mode & 0o777 == 0o600
        assert file.read_bytes() == f"kinf-discovery 1 {theirs[path].headers.get('etag', '-')}\n".encode() + theirs[path].body
    forward.api.stop()
    forward.serve.process.kill()
    forward.serve.start()
    for path in files:
        answer = forward.ask(path, accept=accept)
        etag = answer.headers["etag"]
        assert (answer.status, answer.body, etag) == (200, theirs[path].body, theirs[path].headers.get("etag", etag))
        assert answer.headers["content-type"] == theirs[path].headers["content-type"]
        assert forward.ask(path, accept=accept, if_none_match=etag).status == 304
    # Of another version, or after damage: of the feeds.
    beta = forward.ask("/apis", accept=accept.replace("v=v2", "v=v2beta1"))
    assert beta.status == 200 and b'"deployments"' not in beta.body
    files["/apis"].write_bytes(b"{}")
    damaged = forward.ask("/apis", accept=accept)
    assert damaged.status == 200 and b'"deployments"' not in damaged.body
    assert forward.ask("/apis/apps/v1/deployments").status == 503
