# SPDX-License-Identifier: Apache-2.0
"""Malicious callers of kinf-serve: floods of HTTP/2 frames, endless heads, too many connections,
web pages of other hosts. Others must be served meanwhile, and the process must not grow."""

import contextlib
import json
import os
import select
import signal
import ssl
import struct
import subprocess
import threading
import time

import pytest

from harness import PATIENCE, eventually
from harness.http2 import (CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, PREFACE, RST_STREAM, SETTINGS, WINDOW_UPDATE, frame,
                           literal)
from harness.process import program
from test_serve_transport import REQUEST, metric, read_all, read_answer, running, serve

INTERNAL_ERROR, STREAM_CLOSED, REFUSED_STREAM, CANCEL, ENHANCE_YOUR_CALM = 2, 5, 7, 8, 11
GROWTH = 320 << 20  # the sanitizer keeps up to 256 MiB of freed memory


@pytest.fixture(scope="module")
def server(shared):
    return serve(shared, pods=50)


def request(path=b"/api/v1/pods?watch=1&resourceVersion=0", authority=b"localhost", *more):
    fields = [(b":method", b"GET"), (b":scheme", b"https"), (b":path", path), (b":authority", authority), *more]
    return b"".join(literal(*field) for field in fields)


def connect(server, **settings):
    connection = server.tls("h2")
    payload = b"".join(struct.pack("!HI", number, value) for number, value in settings.get("settings", ()))
    connection.sendall(PREFACE + frame(SETTINGS, 0, 0, payload))
    return connection


def frames(connection):
    """The frames until the server closes: (type, flags, stream, payload)."""
    data = b""
    while True:
        try:
            piece = connection.recv(1 << 16)
        except (ConnectionResetError, ssl.SSLError):
            return
        if not piece:
            return
        data += piece
        while len(data) >= 9 and len(data) >= 9 + int.from_bytes(data[:3], "big"):
            size = 9 + int.from_bytes(data[:3], "big")
            yield data[3], data[4], int.from_bytes(data[5:9], "big"), data[9:size]
            data = data[size:]


def first_frames(connection, n):
    """The first N frames of type HEADERS."""
    found = []
    for one in frames(connection):
        found += [one] if one[0] == HEADERS else []
        if len(found) == n:
            return found
    raise AssertionError(f"only {len(found)} heads")


def send(connection, data):
    """Sends DATA as far as the server takes it. Returns whether it took all."""
    try:
        connection.sendall(data)
    except (BrokenPipeError, ConnectionResetError, ssl.SSLError, TimeoutError):
        return False
    return True


def goaway(connection):
    """The error in the GOAWAY at the server's end of the connection; None if it only closes."""
    return next((struct.unpack("!I", payload[4:8])[0] for kind, _, _, payload in frames(connection) if kind == GOAWAY), None)


def resident(server):
    text = open(f"/proc/{server.process().pid}/status", encoding="utf-8").read()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("VmRSS:")) * 1024


def still_serves(server):
    assert server.curl("--unix-socket", server.socket, "http://localhost/api/v1/pods?limit=1").startswith("HTTP/1.1 200")


# ---- HTTP/2 ----------------------------------------------------------------------------------------------------------


def test_a_rapid_reset_ends_the_connection_and_leaves_no_watch(server):
    before = resident(server)
    connection = connect(server)
    flood = b"".join(
        frame(HEADERS, END_STREAM | END_HEADERS, stream, request()) + frame(RST_STREAM, 0, stream, b"\0\0\0\x08")
        for stream in range(1, 40000, 2))
    send(connection, flood)
    assert goaway(connection) in (ENHANCE_YOUR_CALM, INTERNAL_ERROR)
    connection.close()
    eventually(lambda: running(server) == 0)
    still_serves(server)
    assert resident(server) < before + GROWTH


def test_a_flood_of_continuations_ends_the_connection(server):
    before = resident(server)
    connection = connect(server)
    connection.sendall(frame(HEADERS, END_STREAM, 1, request()))
    flood = frame(CONTINUATION, 0, 1, literal(b"a", b"b" * 200)) * 1000
    assert not all(send(connection, flood) for _ in range(200))
    connection.close()
    still_serves(server)
    assert resident(server) < before + GROWTH


def test_a_small_head_that_unpacks_to_a_huge_one_is_refused(server):
    before = resident(server)
    connection = connect(server)
    value = b"x" * 200
    remembered = b"\x40\x01a" + bytes((127, len(value) - 127)) + value  # index 62 from now on
    for stream in range(1, 41, 2):
        block = request(b"/livez") + remembered + b"\xbe" * 15000
        connection.sendall(frame(HEADERS, END_STREAM | END_HEADERS, stream, block))
    answers = {}
    for kind, _, stream, _ in frames(connection):
        answers.setdefault(stream, set()).add(kind)
        if all(s in answers and answers[s] & {HEADERS, RST_STREAM} for s in range(1, 41, 2)) or 0 in answers and GOAWAY in answers[0]:
            break
    connection.close()
    still_serves(server)
    assert resident(server) < before + GROWTH


def unfinished(streams):
    """Requests without their bodies. HPACK packs their heads of 60 kB into some 70 bytes each."""
    value = b"x" * 4000
    remembered = b"\x40\x01a\x7f" + bytes((len(value) - 127 & 127 | 128, len(value) - 127 >> 7)) + value
    fields = [(b":method", b"POST"), (b":scheme", b"https"), (b":path", b"/api/v1/pods"), (b":authority", b"localhost")]
    head = b"".join(literal(*field) for field in fields)
    return b"".join(frame(HEADERS, END_HEADERS, stream, head + (remembered if stream == streams[0] else b"\xbe") + b"\xbe" * 14)
                    for stream in streams)


def resets(connection, n, patience):
    """The errors of the first N streams reset by the server, by stream."""
    found, end = {}, time.monotonic() + patience
    connection.settimeout(patience)
    for kind, _, stream, payload in frames(connection):
        if kind == RST_STREAM:
            found[stream] = struct.unpack("!I", payload)[0]
        if len(found) == n or time.monotonic() > end:
            return found
    raise AssertionError(f"only {len(found)} streams were reset")


def test_heads_that_are_kept_take_bounded_memory_and_bodies_that_do_not_come_are_given_up(server):
    before = resident(server)
    first = server.raw()
    first.sendall(PREFACE + frame(SETTINGS, 0, 0) + unfinished(range(1, 9, 2)))
    ended = threading.Event()
    pings = threading.Thread(target=lambda: [first.sendall(frame(PING, 0, 0, b"12345678")) for _ in iter(lambda: ended.wait(1), True)])
    pings.start()  # a busy connection is no exception
    held = []
    for _ in range(60):
        held.append(connect(server))
        held[-1].sendall(unfinished(range(1, 500, 2)))
    refused = resets(held[-1], 200, 10 * PATIENCE)
    assert set(refused.values()) == {REFUSED_STREAM}
    assert resident(server) < before + GROWTH
    still_serves(server)
    assert resets(first, 4, 60 + 10 * PATIENCE) == dict.fromkeys(range(1, 9, 2), CANCEL)
    ended.set()
    pings.join()
    for connection in (first, *held):
        connection.close()


@pytest.mark.parametrize("flood", [
    frame(PING, 0, 0, b"12345678"),
    frame(SETTINGS, 0, 0, struct.pack("!HI", 3, 100)),
])
def test_floods_of_frames_by_one_who_does_not_read_take_no_memory(server, flood):
    before = resident(server)
    connection = connect(server)
    connection.settimeout(2 * PATIENCE)
    assert not all(send(connection, flood * 10000) for _ in range(500))
    still_serves(server)
    assert resident(server) < before + GROWTH
    connection.close()


def test_a_flood_of_incomplete_requests_ends_the_connection(server):
    before = resident(server)
    with connect(server) as connection:
        send(connection, frame(HEADERS, END_STREAM | END_HEADERS, 1, b"\x82") * 500000)
        assert goaway(connection) in (None, STREAM_CLOSED)
    still_serves(server)
    assert resident(server) < before + GROWTH


def test_answers_to_one_who_gives_no_window_wait_without_memory(workspace):
    server = serve(workspace, pods=300)
    before = resident(server)
    held = [connect(server, settings=[(4, 0)]) for _ in range(8)]
    for connection in held:
        for stream in range(1, 401, 2):
            path = b"/api/v1/pods" if stream % 4 == 1 else b"/api/v1/pods?limit=15"
            connection.sendall(frame(HEADERS, END_STREAM | END_HEADERS, stream, request(path)))
    for connection in held:
        assert len(first_frames(connection, 200)) == 200
    # The answers have more than a gigabyte together.
    assert resident(server) < before + (400 << 20)
    for connection in held:
        connection.close()
    still_serves(server)
    server.process().kill()


def test_windows_that_open_bit_by_bit_are_gathered_into_whole_frames(workspace):
    """As opened by Go's client: it would get a frame for each 4 KiB."""
    server = serve(workspace, pods=300)
    step, wanted = 4096, 300 * 1024
    with connect(server, settings=[(4, step)]) as connection:
        connection.sendall(frame(WINDOW_UPDATE, 0, 0, struct.pack("!I", 1 << 30)))
        connection.sendall(frame(HEADERS, END_STREAM | END_HEADERS, 1, request(b"/api/v1/pods?watch=1")))
        for _ in range(wanted // step):
            connection.sendall(frame(WINDOW_UPDATE, 0, 1, struct.pack("!I", step)))
        sizes = []
        for kind, _, _, payload in frames(connection):
            sizes += [len(payload)] if kind == DATA else []
            if sum(sizes) >= wanted:
                break
    assert sum(sizes) / len(sizes) > 2 * step, sizes
    server.process().kill()


@pytest.mark.parametrize("field", [(b"a", b"b\r\nx: y"), (b"a", b"b\0"), (b"a b", b"c"), (b"A", b"b"), (b"connection", b"close"),
                                   (b"transfer-encoding", b"chunked"), (b":path", b"/other"), (b"content-length", b"5")])
def test_fields_that_another_server_could_read_otherwise_are_refused(server, field):
    with connect(server) as connection:
        connection.sendall(frame(HEADERS, END_STREAM | END_HEADERS, 1, request(b"/livez", b"localhost", field)))
        for kind, _, stream, payload in frames(connection):
            if stream == 1 or kind == GOAWAY:
                assert kind in (RST_STREAM, GOAWAY), "no answer"
                break


def test_a_head_for_a_stream_that_has_ended_ends_the_connection(server):
    with connect(server) as connection:
        connection.sendall(frame(HEADERS, END_STREAM | END_HEADERS, 1, request(b"/livez")))
        for kind, flags, stream, _ in frames(connection):
            if stream == 1 and flags & END_STREAM and kind == DATA:
                break
        connection.sendall(frame(HEADERS, END_STREAM | END_HEADERS, 1, request(b"/livez")))
        assert goaway(connection) == STREAM_CLOSED


# ---- HTTP/1.1 --------------------------------------------------------------------------------------------------------


def test_heads_that_never_end_are_cut(server):
    before = resident(server)
    held = []
    for _ in range(100):
        connection = server.raw()
        connection.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 60000)
        held.append(connection)
    dripping = server.raw()
    dripping.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n")
    still_serves(server)
    assert resident(server) < before + GROWTH
    dripped = 0
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it may be closed before a byte
        while not select.select([dripping], [], [], 0.3)[0]:  # closed, although bytes come
            dripping.sendall(b"a")
            dripped += 1
            assert dripped < 600
    for connection in (dripping, *held):
        assert b"HTTP/1.1 200" not in read_all(connection)
        connection.close()


def test_connections_beyond_the_limit_are_closed_at_once_and_the_others_go_on(workspace):
    server = serve(workspace)
    server.process().kill()
    simulated = server.store.process("kinf-serve-few", ["prlimit", "--nofile=700:700", program("kinf-serve")]).start()
    simulated.wait_log("daemon_started")
    held, refused = [], 0
    for _ in range(700):
        connection = server.raw()
        try:
            connection.sendall(REQUEST)
            assert read_answer(connection)[2] == b"ok"
            held.append(connection)
        except (AssertionError, ConnectionResetError, BrokenPipeError):
            refused += 1
            connection.close()
    assert len(held) == 700 - 256 and refused == 256
    assert simulated.log.count("serve_full") == 1
    for connection in held[::10]:
        connection.sendall(REQUEST)
        assert read_answer(connection)[2] == b"ok"
    for connection in held[:50]:
        connection.close()

    def room():
        with server.raw() as connection:
            try:
                connection.sendall(REQUEST)
                return read_answer(connection)[2] == b"ok"
            except (AssertionError, ConnectionResetError, BrokenPipeError):
                return False

    eventually(room)
    assert metric(server, 'kinf_serve_refused_total{why="connections"}') >= 256
    for connection in held[50:]:
        connection.close()
    simulated.kill()


# ---- web pages -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["evil.example", "evil.example:6445", "localhost.evil.example", "127.0.0.1.evil.example", "127.0.0.2"])
def test_a_name_that_is_rebound_to_this_machine_gets_nothing(server, host):
    for protocol in ("--http1.1", "--http2"):
        for path in ("/api/v1/pods", "/api/v1/pods?watch=1", "/api", "/apis", "/version"):
            text = server.curl("-k", protocol, "-H", f"Host: {host}", f"https://127.0.0.1:{server.port}{path}")
            assert " 403" in text.splitlines()[0], text
            body = json.loads(text.replace("\r", "").partition("\n\n")[2])
            assert "Host header" in body["message"] and "items" not in body


def test_requests_of_web_pages_get_nothing(server):
    text = server.curl("-k", "-H", "Origin: https://evil.example", f"https://127.0.0.1:{server.port}/api/v1/pods")
    assert " 403" in text.splitlines()[0] and "access-control-allow-origin" not in text.lower()


# ---- TLS ---------------------------------------------------------------------------------------------------------------


def openssl_client(server, feed):
    """`openssl s_client` with commands from the program FEED: a line K updates the client's key."""
    command = f"{feed} | openssl s_client -connect 127.0.0.1:{server.port} -tls1_3 2>&1"
    return subprocess.Popen(["sh", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)


def test_a_flood_of_key_updates_ends_the_connection(server):
    client = openssl_client(server, "yes K")
    try:
        client.communicate(timeout=20 * PATIENCE)
        still_serves(server)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(client.pid, signal.SIGKILL)


def test_a_client_may_update_its_key_before_a_request(server):
    client = openssl_client(server, "cat")
    text = b""

    def read_until(word):
        nonlocal text
        while word not in text:
            piece = os.read(client.stdout.fileno(), 1 << 16)
            assert piece, text
            text += piece

    try:
        read_until(b"Verify return code")
        client.stdin.write(b"K\n")
        client.stdin.flush()
        read_until(b"KEYUPDATE")
        client.stdin.write(REQUEST)
        client.stdin.flush()
        read_until(b"HTTP/1.1 ")
    finally:
        os.killpg(client.pid, signal.SIGKILL)
        client.communicate()
