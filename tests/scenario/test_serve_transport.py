# SPDX-License-Identifier: Apache-2.0
"""kinf-serve as a server: sockets, TLS, HTTP/1.1 and HTTP/2, misbehaving callers, start and end.
The requests are for /livez, independent of objects."""

import base64
import json
import os
import re
import signal
import socket
import ssl
import subprocess

import pytest

from harness import PATIENCE, eventually
from harness.process import program
from harness.serve import addresses, metrics
from harness.tls import Authority


class Server:
    """A kinf-serve of STORE, on its Unix socket and one TCP port."""

    def __init__(self, store):
        self.store = store
        self.directory = store.path / "serve"

    def addresses(self):
        return addresses(self.store)

    @property
    def socket(self):
        return self.addresses()["api", "unix"]

    @property
    def port(self):
        return int(self.addresses()["api", "https"].rpartition(":")[2])

    def context(self, protocol="http/1.1"):
        context = ssl.create_default_context(cafile=self.directory / "ca.crt")
        context.set_alpn_protocols([protocol])
        return context

    def raw(self):
        """A plain connection."""
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(10 * PATIENCE)
        connection.connect(self.socket)
        return connection

    def tls(self, protocol="http/1.1"):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=10 * PATIENCE)
        return self.context(protocol).wrap_socket(connection, server_hostname="localhost")

    def curl(self, *arguments):
        result = subprocess.run(["curl", "-sS", "-i", "--max-time", str(10 * PATIENCE), *map(str, arguments)],
                                capture_output=True, text=True)
        assert result.returncode == 0, result
        return result.stdout

    def process(self):
        return next(p for p in self.store.processes if p.name == "kinf-serve")


def start(store, name="kinf-serve", env=None):
    process = store.process(name, [program("kinf-serve"), "-v"], env).start()
    process.wait_log("daemon_started")
    return process


def serve(workspace, pods=5, **settings):
    simulator = workspace.simulator("--pods", str(pods))
    store = workspace.store(simulator=simulator)
    store.start_synced("pods", serve={"listen": ["unix", "127.0.0.1:0"], "auth": "open", "metrics": "127.0.0.1:0", **settings})
    start(store)
    return Server(store)


def read_answer(connection, body=True):
    """(status, headers, body) of one answer with a content-length."""
    data = b""
    while not data.endswith(b"\r\n\r\n"):  # byte by byte: the next answer stays in the socket
        piece = connection.recv(1)
        assert piece, f"closed after {data!r}"
        data += piece
    first, *lines = data.decode().rstrip().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    length = int(headers.get("content-length", 0)) if body else 0
    rest = b""
    while len(rest) < length:
        piece = connection.recv(length - len(rest))
        assert piece, f"closed within the body {rest!r}"
        rest += piece
    assert len(rest) == length, rest
    return int(first.split(" ")[1]), headers, rest


def read_all(connection):
    """Everything until the server closes."""
    data = b""
    while piece := connection.recv(65536):
        data += piece
    return data


@pytest.fixture(scope="module")
def server(shared):
    return serve(shared)


REQUEST = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"


# ---- protocols ------------------------------------------------------------------------------------------------------


def test_unix_tls_http1_and_http2_give_the_same_answer(server):
    ca = ["--cacert", server.directory / "ca.crt"]
    url = f"https://localhost:{server.port}/livez"
    answers = {
        "HTTP/1.1": server.curl("--unix-socket", server.socket, "http://localhost/livez"),
        "HTTP/1.1 ": server.curl(*ca, "--http1.1", url),
        "HTTP/2": server.curl(*ca, "--http2", url),
        "HTTP/2 ": server.curl("--http2-prior-knowledge", "--unix-socket", server.socket, "http://localhost/livez"),
    }
    for version, text in answers.items():
        assert text.startswith(f"{version.strip()} 200"), text
        assert text.endswith("\n\nok"), text
        assert "content-length: 2" in text and re.search(r"^date: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$", text, re.MULTILINE)


def test_certificate_names_the_loopback_addresses_and_this_machine(server):
    for host in ("localhost", "127.0.0.1", "::1", socket.gethostname()):
        connection = socket.create_connection(("127.0.0.1", server.port), timeout=10 * PATIENCE)
        server.context().wrap_socket(connection, server_hostname=host).close()
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=10 * PATIENCE)
    with pytest.raises(ssl.SSLCertVerificationError):
        server.context().wrap_socket(connection, server_hostname="example.org")


def test_keys_are_for_the_owner_only(server):
    for name in ("ca.key", "server.key"):
        assert (server.directory / name).stat().st_mode & 0o777 == 0o600


def test_s95_pipelined_requests_are_answered_in_order(server):
    with server.raw() as connection:
        connection.sendall(REQUEST * 50 + b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" + REQUEST)
        text = read_all(connection)
    assert text.count(b"HTTP/1.1 200 OK\r\n") == 51, "the one after Connection: close is not answered"
    assert text.count(b"connection: close") == 1 and text.endswith(b"\r\n\r\nok")


def test_s95_head_has_the_length_but_no_body(server):
    with server.raw() as connection:
        connection.sendall(b"HEAD /livez HTTP/1.1\r\nHost: localhost\r\n\r\n" + REQUEST)
        status, headers, _ = read_answer(connection, body=False)
        assert status == 200 and headers["content-length"] == "2"
        assert read_answer(connection)[2] == b"ok", "the next answer follows at once"


def test_s95_options_and_other_methods_are_refused(server):
    for method in (b"OPTIONS", b"TRACE", b"FOO"):
        with server.raw() as connection:
            connection.sendall(method + b" /api/v1/pods HTTP/1.1\r\nHost: localhost\r\n\r\n" + REQUEST)
            status, headers, _ = read_answer(connection)
            assert status == 405 and headers["allow"] == "GET, HEAD", method
            assert read_answer(connection)[0] == 200


def test_s95_http_1_0_closes_after_the_answer(server):
    with server.raw() as connection:
        connection.sendall(b"GET /livez HTTP/1.0\r\n\r\n")
        text = read_all(connection)
    assert text.startswith(b"HTTP/1.1 200 OK\r\n") and text.endswith(b"\r\n\r\nok")


def test_s95_http_1_0_keeps_the_connection_if_it_is_asked_to_and_says_so(server):
    with server.raw() as connection:
        for _ in range(2):
            connection.sendall(b"GET /livez HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            status, headers, _ = read_answer(connection)
            assert (status, headers["connection"]) == (200, "keep-alive")


def test_bodies_are_passed_over(server):
    body = b"7\r\n{\"a\":1}\r\n0\r\n\r\n"
    with server.raw() as connection:
        connection.sendall(b"POST /livez HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + body)
        assert read_answer(connection)[0] == 405
        connection.sendall(b"POST /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: 7\r\n\r\n{\"a\":1}")
        assert read_answer(connection)[0] == 405
        connection.sendall(REQUEST)
        assert read_answer(connection)[0] == 200


def test_s95_expected_continue_is_given_if_the_body_is_wanted(server):
    head = b" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n"
    with server.raw() as connection:
        connection.sendall(b"POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews" + head)
        assert connection.recv(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"abc")
        assert read_answer(connection)[0] == 400
    with server.raw() as connection:
        connection.sendall(b"PUT /livez" + head)
        assert read_answer(connection)[0] == 405


def test_client_that_ends_its_side_still_gets_the_answer(server):
    with server.raw() as connection:
        connection.sendall(REQUEST + REQUEST)
        connection.shutdown(socket.SHUT_WR)
        assert read_all(connection).count(b"200 OK") == 2


# ---- hostile callers ------------------------------------------------------------------------------------------------

# One of each way to be refused; test_request_head.c has what makes a head doubtful.
REFUSED = {
    "length and chunks": (400, b"POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    "other coding": (501, b"POST /livez HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n"),
    "bad chunk": (405, b"POST /livez HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
    "version": (505, b"GET /livez HTTP/3.0\r\nHost: x\r\n\r\n"),
    "no HTTP": (400, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"),
    "huge body": (405, b"POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n"),
    "huge head": (431, b"GET /livez HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 70000 + b"\r\n\r\n"),
    "huge target": (431, b"GET /" + b"a" * 70000),
}


@pytest.mark.parametrize("name", REFUSED)
def test_doubtful_request_is_refused_and_the_connection_closed(server, name):
    status, request = REFUSED[name]
    with server.raw() as connection:
        connection.sendall(request)
        smuggled = b"GET /readyz?smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
        try:
            connection.sendall(smuggled)
        except BrokenPipeError:
            pass
        text = read_all(connection)
    head, _, body = text.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status), text
    assert text.count(b"content-length: ") == 1, "what follows is never taken for a request"
    refusal = json.loads(body)
    assert refusal["kind"] == "Status" and refusal["code"] == status and refusal["message"] and refusal["reason"]


def test_what_is_no_tls_is_refused(server):
    """Plain HTTP as Go's servers refuse it."""
    plain, alert = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n", b"\x15\x03"
    for garbage, answer in ((REQUEST, plain), (b"\0" * 100, alert)):
        with socket.create_connection(("127.0.0.1", server.port), timeout=10 * PATIENCE) as connection:
            connection.sendall(garbage)
            try:
                text = read_all(connection)
            except ConnectionResetError:
                text = b""
        assert text == answer or (answer == alert and text[:2] in (b"", alert))


# ---- long answers ----------------------------------------------------------------------------------------------------

WATCH = b"GET /api/v1/pods?watch=1&resourceVersion=0 HTTP/1.1\r\nHost: localhost\r\n\r\n"


def metric(server, line):
    """The value of a metric; 0 if it is not there."""
    return metrics(server.store).get(line, 0)


def running(server):
    return sum(value for name, value in metrics(server.store).items() if name.startswith("apiserver_longrunning_requests{"))


def test_clients_that_stall_or_leave_do_not_disturb_others(workspace):
    server = serve(workspace, pods=400)
    stalled = [server.raw() for _ in range(20)]
    for connection in stalled:
        connection.sendall(WATCH)
    leaving = [server.raw() for _ in range(20)]
    for number, connection in enumerate(leaving):
        connection.sendall(WATCH if number % 2 else b"GET /api/v1/pods HTTP/1.1\r\nHost: localhost\r\n\r\n")
        connection.recv(100)
    eventually(lambda: running(server) == 30)
    for connection in leaving:
        connection.close()
    text = server.curl("--unix-socket", server.socket, "http://localhost/api/v1/pods").partition("\n\n")[2]
    assert len(json.loads(text)["items"]) == 400, "a list passes those who don't read"
    eventually(lambda: running(server) == 20, what="watches of clients that have left are ended")
    for connection in stalled:
        data = b""
        while data.count(b'"type":"ADDED"') < 400:
            piece = connection.recv(1 << 20)
            assert piece, "a client that reads on gets everything"
            data += piece
        connection.close()
    eventually(lambda: running(server) == 0)
    server.process().kill(signal.SIGTERM)


def test_http2_carries_many_watches_and_ends_them(workspace):
    server = serve(workspace)
    url = f"https://localhost:{server.port}/api/v1/pods?watch=1&resourceVersion=0&timeoutSeconds=3"
    result = subprocess.run(
        ["curl", "-sS", "--http2", "--cacert", server.directory / "ca.crt", "--parallel", "--parallel-max", "50",
         "--max-time", str(20 * PATIENCE), *(word for _ in range(50) for word in (url, "-o", "-"))],
        capture_output=True, text=True)
    assert result.returncode == 0, result
    assert result.stdout.count('"type":"ADDED"') == 250
    assert metric(server, 'apiserver_request_total{verb="WATCH",group="",version="v1",resource="pods",subresource="",'
                  'scope="cluster",code="200"}') == 50
    server.process().kill(signal.SIGTERM)


def test_watches_end_cleanly_at_sigterm_and_idle_connections_too(workspace):
    server = serve(workspace)
    idle = [server.raw(), server.tls(), server.tls("h2")]
    idle[0].sendall(REQUEST)
    assert read_answer(idle[0])[2] == b"ok"
    watches = [server.raw() for _ in range(20)] + [server.tls() for _ in range(5)]
    for connection in watches:
        connection.sendall(WATCH)
    eventually(lambda: running(server) == 25)
    server.process().send(signal.SIGTERM)
    for connection in watches:
        assert read_all(connection).endswith(b"\r\n0\r\n\r\n")
    assert server.process().wait() == 0
    for connection in idle:
        try:
            read_all(connection)
        except (ConnectionResetError, ssl.SSLError):
            pass
        connection.close()
    assert "daemon_stopped" in server.process().err_path.read_text()


# ---- metrics and health ----------------------------------------------------------------------------------------------


def test_metrics_are_on_their_own_listener_only(server):
    address = server.addresses()["metrics", "http"]
    server.curl("--unix-socket", server.socket, "http://localhost/livez")
    server.curl("--unix-socket", server.socket, "http://localhost/api/v1/%ff%c3")
    text = server.curl(f"http://{address}/metrics")
    assert text.isascii(), "Prometheus refuses what is not UTF-8"
    assert text.startswith("HTTP/1.1 200") and "# TYPE apiserver_request_total counter" in text
    assert 'apiserver_request_total{verb="GET"' in text and 'apiserver_request_duration_seconds_bucket{' in text
    assert server.curl("--unix-socket", server.socket, "http://localhost/metrics").startswith("HTTP/1.1 4")
    assert server.curl(f"http://{address}/livez").endswith("ok")
    assert server.curl(f"http://{address}/api/v1/pods").startswith("HTTP/1.1 404")


def test_health_says_its_checks(server):
    def get(path):
        return server.curl("--unix-socket", server.socket, f"http://localhost{path}")

    assert "[+]ping ok\n" in get("/livez?verbose") and get("/livez?verbose").endswith("livez check passed\n")
    assert get("/readyz").endswith("\n\nok")


# ---- start and end ---------------------------------------------------------------------------------------------------


def test_restart_keeps_the_ca_and_renews_what_is_missing(workspace):
    server = serve(workspace)
    files = {name: (server.directory / name).read_text() for name in ("ca.crt", "ca.key", "server.crt", "server.key")}
    server.process().kill(signal.SIGTERM)
    start(server.store, "kinf-serve-2").kill(signal.SIGTERM)
    assert {name: (server.directory / name).read_text() for name in files} == files
    (server.directory / "server.key").unlink()
    process = start(server.store, "kinf-serve-3")
    assert (server.directory / "ca.crt").read_text() == files["ca.crt"]
    assert (server.directory / "server.crt").read_text() != files["server.crt"]
    server.tls().close()
    process.kill(signal.SIGTERM)


def test_a_certificate_that_expires_soon_is_replaced_while_kinf_serve_runs(workspace):
    """As one of 1970, when the machine learns the time; it stayed until the next start."""
    server = serve(workspace)
    certificate, key = Authority(workspace.directory, "soon").issue("server", "DNS:localhost")
    (server.directory / "server.crt").write_bytes(certificate.read_bytes())
    (server.directory / "server.key").write_bytes(key.read_bytes())
    eventually(lambda: (server.directory / "server.crt").read_bytes() != certificate.read_bytes(), 40)
    server.tls().close()


def test_certificates_of_the_configuration_are_read_again_at_sighup(workspace):
    authority = Authority(workspace.directory, "one")
    certificate, key = authority.issue("server", "DNS:localhost")
    cert, private = workspace.directory / "tls.crt", workspace.directory / "tls.key"
    for link in cert, private:  # as in a mounted Secret
        link.symlink_to(f"..data-{link.name}")
    cert.write_bytes(certificate.read_bytes())
    private.write_bytes(key.read_bytes())
    server = serve(workspace, tls={"cert": str(cert), "key": str(private)})
    assert base64.b64encode(cert.read_bytes()).decode() in server.store.kinf("kubeconfig", check=True).stdout

    def answers(ca):
        context = ssl.create_default_context(cafile=ca)
        with socket.create_connection(("127.0.0.1", server.port), timeout=10 * PATIENCE) as connection:
            try:
                with context.wrap_socket(connection, server_hostname="localhost"):
                    return True
            except ssl.SSLCertVerificationError:
                return False

    assert answers(authority.ca)
    other = Authority(workspace.directory, "two")
    certificate, key = other.issue("server", "DNS:localhost")
    private.write_bytes(key.read_bytes())
    server.process().send(signal.SIGHUP)
    server.process().wait_log("serve_certificate_refused")
    assert answers(authority.ca), "a certificate without its key is not taken"
    result = server.store.kinf("reload")
    assert result.status == 1 and "Error: kinf-serve: the certificate before stays in use: " in result.stderr, result
    cert.write_bytes(certificate.read_bytes())
    server.process().send(signal.SIGHUP)
    eventually(lambda: answers(other.ca))


def test_kinf_run_starts_kinf_serve_and_starts_it_again(workspace):
    simulator = workspace.simulator("--pods", "5")
    store = workspace.store(simulator=simulator)
    store.configure("pods", serve={"auth": "open"})
    run = store.run("--serve", "127.0.0.1:0")
    store.wait_live("pods")
    server = Server(store)
    eventually(lambda: (server.directory / "addresses").exists())
    first = int((server.directory / "serve.lock").read_text())
    assert server.curl("--unix-socket", server.socket, "http://localhost/livez").endswith("ok")
    os.kill(first, signal.SIGKILL)

    def again():
        pid = int((server.directory / "serve.lock").read_text() or 0)
        return pid not in (0, first) and "ok" in server.curl("--unix-socket", server.socket, "http://localhost/livez")

    def patiently():
        try:
            return again()
        except AssertionError:
            return False

    eventually(patiently)
    run.stop()
    with pytest.raises(OSError):
        os.kill(int((server.directory / "serve.lock").read_text()), 0)


def test_second_kinf_serve_on_a_store_is_refused(workspace):
    server = serve(workspace)
    second = server.store.process("kinf-serve-2", [program("kinf-serve")]).start()
    assert second.wait() == 69
    text = second.err_path.read_text()
    assert str(server.process().pid) in text and "'kinf backup DIR/' makes a copy for another" in text, text
    assert server.curl("--unix-socket", server.socket, "http://localhost/livez").endswith("ok")


def test_open_is_refused_on_addresses_of_other_machines(workspace):
    simulator = workspace.simulator("--pods", "5")
    store = workspace.store(simulator=simulator)
    store.configure("pods", serve={"listen": ["0.0.0.0:0"], "auth": "open"})
    check = store.kinf("config", "check", str(store.config))
    assert check.status == 1 and "serve: auth: open on 0.0.0.0:0 would give" in check.stderr, check
    process = store.process("kinf-serve", [program("kinf-serve")]).start()
    assert process.wait() == 78
    assert "set openRemote: true" in process.err_path.read_text()


# ---- kinf kubeconfig -------------------------------------------------------------------------------------------------


def test_kubeconfig_works_as_it_is(server):
    text = server.store.kinf("kubeconfig", check=True).stdout
    path = server.store.directory / "serve.kubeconfig"
    path.write_text(text)
    result = subprocess.run(["kubectl", "--kubeconfig", path, "get", "--raw", "/livez"], capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (0, "ok"), result


def test_kubeconfig_needs_a_tcp_address(workspace):
    server = serve(workspace, listen=["unix"])
    result = server.store.kinf("kubeconfig")
    assert result.status == 1 and not result.stdout
    assert "serve: {listen: [unix, 127.0.0.1:6445]}" in result.stderr and server.socket in result.stderr
    server.process().kill(signal.SIGTERM)


def test_kubeconfig_before_the_first_start_says_how_to_start(workspace):
    simulator = workspace.simulator("--pods", "5")
    store = workspace.store(simulator=simulator)
    store.start_synced("pods")
    result = store.kinf("kubeconfig")
    assert result.status == 1 and "kinf run --serve 127.0.0.1:6445" in result.stderr
