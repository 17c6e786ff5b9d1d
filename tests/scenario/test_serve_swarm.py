# SPDX-License-Identifier: Apache-2.0
"""Crowds at kinf-serve: many TLS clients at once, new or returning (tests/bench/swarm.c)."""

import json
import signal
import socket
import ssl
import subprocess
import time

import pytest

from harness import PATIENCE, eventually
from harness.http2 import END_HEADERS, END_STREAM, HEADERS, frame
from harness.process import program
from test_serve_hostile import connect, first_frames, request
from test_serve_transport import REQUEST, metric, read_answer, serve, start

WATCHES = 300
PATH = "/api/v1/pods?watch=1&allowWatchBookmarks=true&resourceVersion="


def private(pid):
    """Bytes of anonymous memory; None with a sanitizer, since it keeps freed memory."""
    text = open(f"/proc/{pid}/status", encoding="utf-8").read()
    if b"__asan_init" in open(program("kinf-serve"), "rb").read():
        return None
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("RssAnon:")) * 1024


def newest(server):
    text = server.curl("--unix-socket", server.socket, "http://localhost/api/v1/pods?limit=1")
    return json.loads(text.replace("\r", "").partition("\n\n")[2])["metadata"]["resourceVersion"]


def test_watches_of_a_killed_kinf_serve_come_back(workspace):
    server = serve(workspace)
    address = f"127.0.0.1:{server.port}"
    argv = [program("bench/swarm"), server.process().pid, "tls", address, "", "stay", PATH + newest(server), WATCHES, 60 * PATIENCE]
    with subprocess.Popen([str(a) for a in argv], stdout=subprocess.PIPE, text=True) as swarm:
        assert swarm.stdout.readline() == "ready\n"
        server.process().kill(signal.SIGKILL)
        server.store.configure("pods", serve={"listen": ["unix", address], "auth": "open", "metrics": "127.0.0.1:0"})
        process = start(server.store, "kinf-serve-2")
        before = private(process.pid)
        assert swarm.stdout.readline() == "back\n"
        if before is not None:  # freed memory is given back once a second
            eventually(lambda: (private(process.pid) - before) / WATCHES < 32 << 10, 4, "an idle watch is small", 1)
        figures = json.loads(swarm.stdout.readline())
    assert swarm.returncode == 0, "the loss of all connections at once does not end the swarm"
    assert figures["gone"] == 0, "each goes on after its resourceVersion"
    assert 0 < figures["first_back_s"] <= figures["half_back_s"] <= figures["back_s"]
    assert figures["handshakes"] >= WATCHES
    if before is not None:
        assert figures["idle_watch_bytes"] < 32 << 10
    process.kill(signal.SIGTERM)


def test_an_idle_watch_over_http2_costs_3_kib(workspace):
    server = serve(workspace)
    pid = server.process().pid
    path = (PATH + newest(server) + "&timeoutSeconds=300").encode()
    held = []

    def watch():
        connection = connect(server)
        for stream in range(1, 401, 2):
            connection.sendall(frame(HEADERS, END_STREAM | END_HEADERS, stream, request(
                path, b"localhost", (b"accept", b"application/json"), (b"user-agent", b"test"))))
        assert len(first_frames(connection, 200)) == 200
        held.append(connection)

    for _ in range(2):  # warms up caches
        watch()
    before = private(pid)
    for _ in range(5):
        watch()
    if before is not None:
        assert (private(pid) - before) / 1000 < 3072
    for connection in held:
        connection.close()
    server.process().kill(signal.SIGTERM)


def hello(context):
    """The first message of a TLS client."""
    outgoing = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


def test_handshakes_that_stall_keep_nobody_waiting(workspace):
    """A worker makes only so many handshakes at once; stalled ones do not keep their places, and silent clients have none."""
    server = serve(workspace)
    first = hello(server.context())
    held = []
    for i in range(1500):
        connection = socket.create_connection(("127.0.0.1", server.port), timeout=10 * PATIENCE)
        connection.sendall(first if i % 3 else b"")
        held.append(connection)
    begun = time.monotonic()
    with server.tls() as connection:
        connection.sendall(REQUEST)
        assert read_answer(connection)[2] == b"ok"
    assert time.monotonic() - begun < 5 * PATIENCE, "a handshake may take 10 s"
    for connection in held:
        connection.settimeout(20 * PATIENCE)
        while connection.recv(1 << 16):  # the server's half of the handshake, then the end
            pass
        connection.close()
    eventually(lambda: metric(server, 'kinf_serve_connections{protocol="unknown"}') == 0)
    server.process().kill(signal.SIGTERM)


def test_clients_that_leave_while_they_wait_for_their_handshake(workspace):
    server = serve(workspace)
    first = hello(server.context())
    for _ in range(3):
        held = []
        for _ in range(600):
            connection = socket.create_connection(("127.0.0.1", server.port), timeout=10 * PATIENCE)
            connection.sendall(first)
            held.append(connection)
        for connection in held:
            connection.close()
    with server.tls() as connection:
        connection.sendall(REQUEST)
        assert read_answer(connection)[2] == b"ok"
    eventually(lambda: metric(server, 'kinf_serve_connections{protocol="unknown"}') == 0)
    server.process().kill(signal.SIGTERM)
