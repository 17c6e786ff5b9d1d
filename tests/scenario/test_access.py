# SPDX-License-Identifier: Apache-2.0
"""How the reflector and the API server identify themselves to each other: TLS names, tokens, client certificates,
impersonation. Tokens and certificates also change while the reflector runs."""

import contextlib
import os
import re
import socket
import time

import pytest

from harness import eventually
from harness.namespaces import unshare
from harness.process import program
from harness.reverse_proxy import UNAUTHORIZED, ReverseProxy
from harness.serve import Client, UnixConnection
from harness.store import whole

QUICK = {"backoff": {"min": "50ms", "max": "200ms"}}
REFUSED = 401, UNAUTHORIZED


def replace(path, text):
    """Replaces the file in one step, as a rotation of credentials does."""
    fresh = path.with_suffix(".new")
    fresh.write_bytes(text)
    os.rename(fresh, path)


@pytest.fixture
def door(workspace, simulator, authority):
    """door(...): starts a reverse proxy before the simulator. Its certificate, issued by the CA "one", is for 127.0.0.1
    and gate.example."""
    pair = authority("one").issue("server", "IP:127.0.0.1", "DNS:gate.example")
    return lambda **options: workspace.add(ReverseProxy(simulator, pair, **options))


class Names:
    """The names of hosts in a mount namespace of its own, with a name server that never answers."""

    def __init__(self, directory, hosts):
        self.inside = unshare("--mount")
        self.hosts, server, switch = directory / "hosts", directory / "resolv.conf", directory / "nsswitch.conf"
        self.hosts.write_text(hosts)
        server.write_text("nameserver 127.53.53.53\noptions timeout:30 attempts:5\n")
        switch.write_text("hosts: files dns\n")
        mounts = [f"mount --bind {file} /etc/{name}" for file, name in ((self.hosts, "hosts"), (server, "resolv.conf"), (switch, "nsswitch.conf"))]
        self.inside += ["sh", "-c", " && ".join([*mounts, 'exec "$@"']), "sh"]


@pytest.fixture
def silent_name_server():
    with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as s:
        try:
            s.bind(("127.53.53.53", 53))
        except OSError as problem:
            pytest.skip(f"a name server's port can't be used here: {problem}")
        yield


def test_a_name_that_gets_another_address_is_asked_for_again(simulator, store):
    """libcurl kept the old address, which refused, for a minute."""
    names = Names(store.directory, "127.0.0.9 server.example\n")
    simulator.create("pods", 3)
    store.connect(simulator.url.replace("127.0.0.1", "server.example"))
    store.configure(whole("pods"), **QUICK)
    daemon = [program("kinf-reflector"), "--config", store.config, "--runtime-dir", store.runtime]
    reflector = store.process("kinf-reflector", [*names.inside, *daemon]).start()
    eventually(lambda: "cluster_unreachable" in reflector.log)
    names.hosts.write_text("127.0.0.1 server.example\n")
    begun = time.monotonic()
    eventually(lambda: simulator.requests(verb="list", resource="pods"), 40)
    assert time.monotonic() - begun < 30


def test_a_silent_name_server_does_not_stop_a_daemon(simulator, store, silent_name_server):
    """libcurl waited for its resolver's thread: the reflector did not respond meanwhile, and no
    client of kinf-serve was answered."""
    names = Names(store.directory, "127.0.0.1 server.example\n")
    simulator.create("pods", 3)
    store.connect(simulator.url.replace("127.0.0.1", "server.example"))
    store.configure(whole("pods"), **QUICK, timeouts={"connect": "1s"}, serve={"listen": ["unix"], "forward": "on"})
    run = [program("kinf"), "run", "--config", store.config, "--runtime-dir", store.runtime]
    supervisor = store.process("kinf-run", [*names.inside, *run]).start()
    eventually(lambda: store.kinf("wait", "pods", "--timeout", "1s").status == 0)
    (socket_path,) = store.runtime.glob("kinf-*/serve.sock")
    client = Client(lambda: UnixConnection(str(socket_path)))
    names.hosts.write_text("")
    begun = time.monotonic()
    eventually(lambda: simulator.drop() or "Resolving timed out" in supervisor.log)  # addresses are kept for a second
    assert client.ask("/api/v1/configmaps", authorization="Bearer T").status == 503
    assert len(client.ask("/api/v1/pods").names) == 3
    store.kinf("reload", check=True)
    assert time.monotonic() - begun < 60, "it was waited for"
    names.hosts.write_text("127.0.0.1 server.example\n")
    store.wait_live("pods")
    assert supervisor.stop() == 0


def expect_resume(simulator, door, store):
    """Cuts the watch. The feed must resume it with the new credentials: changes arrive without a list."""
    simulator.forget_requests()
    door.cut()
    simulator.touch("pods")
    store.wait_equal(simulator, "pods")
    assert simulator.counters("pods")["lists"] == 0


# ---- names -----------------------------------------------------------------------------------------


def test_k14_tls_server_name_is_sent_and_verified_and_the_host_header_stays(
        simulator, workspace, authority):
    pair = authority("one").issue("named", "DNS:gate.example")
    door = workspace.add(ReverseProxy(simulator, pair))
    store = workspace.store()
    store.connect(door.url, ca=authority("one").ca, cluster={"tls-server-name": "gate.example"})
    store.configure(whole("pods"), **QUICK).reflector()
    simulator.wait_watching("pods")
    assert {request["sni"] for request in door.requests} == {"gate.example"}
    assert {request["headers"]["Host"] for request in door.requests} == {f"127.0.0.1:{door.port}"}


def test_k14_a_certificate_of_another_name_is_refused(workspace, door, authority):
    store = workspace.store()
    front = door()
    store.connect(front.url, ca=authority("one").ca, cluster={"tls-server-name": "other.example"})
    reflector = store.configure(whole("pods"), **QUICK).reflector()
    reflector.wait_log("unreachable .*: TLS: .*other.example")
    assert not front.requests


def test_a_certificate_of_an_unknown_ca_is_refused_unless_verification_is_off(workspace, simulator, door, authority):
    store = workspace.store()
    front = door()
    store.connect(front.url, ca=authority("two").ca)
    reflector = store.configure(whole("pods"), **QUICK).reflector()
    reflector.wait_log("unreachable .*: TLS: .*the certificate-authority of the kubeconfig must have signed")
    assert not front.requests
    reflector.stop()
    store.connect(front.url, token="T", insecure=True)
    reflector.start()
    simulator.wait_watching("pods")
    assert {request["headers"]["Authorization"] for request in front.requests} == {"Bearer T"}


def test_an_http_server_that_is_named_as_https_is_told_as_that(simulator, store):
    store.connect(simulator.url.replace("http://", "https://"))
    store.configure("pods")
    store.reflector().wait_log("unreachable .*: TLS: .*no TLS is spoken there: is 'server' in the kubeconfig an http:// address")


def test_k22_every_request_carries_the_impersonation_headers(workspace, simulator, door, authority):
    store = workspace.store()
    front = door()
    store.connect(front.url, ca=authority("one").ca, user={
        "username": "me", "password": "marker", "as": "bob", "as-uid": "7", "as-groups": ["g1", "g2"],
        "as-user-extra": {"a/B": ["x", "y"]}})
    store.configure(whole("pods"), **QUICK).reflector()
    simulator.wait_watching("pods")
    assert front.requests
    for headers in (request["headers"] for request in front.requests):
        assert headers["Authorization"] == "Basic bWU6bWFya2Vy"
        assert (headers["Impersonate-User"], headers["Impersonate-Uid"]) == ("bob", "7")
        assert headers.get_all("Impersonate-Group") == ["g1", "g2"]
        assert headers.get_all("Impersonate-Extra-a%2FB") == ["x", "y"]


# ---- rotations -------------------------------------------------------------------------------------


@pytest.fixture
def kept(workspace, simulator):
    """A store with 20 pods in the cluster; kept.file(NAME) is the path of a credential rotated by the test."""
    simulator.create("pods", 20)
    store = workspace.store()
    store.file = lambda name: store.directory / name
    return store


def settle(simulator, store):
    store.start(simulator, whole("pods"), **QUICK)
    simulator.wait_watching("pods")


def test_credentials_that_are_not_sent_over_http_are_not_called_expired(workspace):
    """As in kubectl they are not sent: then nobody has looked at them."""
    store = workspace.store(simulator=workspace.simulator(token="T"))
    reflector = store.configure(whole("pods"), **QUICK).reflector()
    said = reflector.wait_log("cluster_unreachable .*")[0]
    assert "not sent over http://" in said and "expired" not in said, said


def test_an_exec_plugin_that_hangs_is_named(simulator, door, authority, workspace):
    """With the requests' waiting time: a cloud's command may ask a person, or a server out of reach."""
    front, store = door(refuse=lambda request: None if request["headers"]["Authorization"] == "Bearer T" else REFUSED), workspace.store()
    credential = '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "T"}}'
    plugin, go = store.directory / "plugin", store.directory / "go"
    plugin.write_text(f"#!/bin/sh\nwhile [ ! -e '{go}' ]; do sleep 0.1; done\necho '{credential}'\n")
    plugin.chmod(0o700)
    store.connect(front.url, ca=authority("one").ca, user={"exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin), "interactiveMode": "Never"}})
    store.configure(whole("pods"), **QUICK)
    _, reflector = store.daemons()
    assert str(plugin) in reflector.wait_log("plugin_awaited .*")[0]
    said = f"running, waiting for [0-9]+ s for the exec plugin '{plugin}' of the kubeconfig"
    assert eventually(lambda: re.search(said, store.kinf("status").stdout))
    assert re.search(said, store.kinf("status", "-o", "json", check=True).json["processes"][0]["state"])
    go.touch()
    store.wait_synced("pods")
    eventually(lambda: store.kinf("status", "-o", "json", check=True).json["processes"][0]["state"] == "running")
    assert reflector.log.count("plugin_awaited") == 1


def test_c43_a_rotated_token_is_read_again_after_the_first_401(simulator, door, authority, kept):
    good = ["Bearer first"]
    front = door(refuse=lambda request: REFUSED if request["headers"]["Authorization"] not in good else None)
    kept.file("token").write_text("first\n")
    kept.connect(front.url, ca=authority("one").ca, user={"tokenFile": str(kept.file("token"))})
    settle(simulator, kept)
    replace(kept.file("token"), b"second\n")
    good[:] = ["Bearer second"]
    expect_resume(simulator, front, kept)


def test_a_rotated_client_certificate_is_read_again_after_the_first_401(simulator, door, authority, kept):
    good = ["first"]
    front = door(client_ca=authority("clients").ca,
                 refuse=lambda request: REFUSED if request["client"] not in good else None)

    def rotate(name):
        for path, end in zip(authority("clients").issue(name), ("crt", "key")):
            replace(kept.file(f"client.{end}"), path.read_bytes())

    rotate("first")
    kept.connect(front.url, ca=authority("one").ca, user={
        "client-certificate": str(kept.file("client.crt")), "client-key": str(kept.file("client.key"))})
    settle(simulator, kept)
    rotate("second")
    good[:] = ["second"]
    expect_resume(simulator, front, kept)
    assert {request["client"] for request in front.requests} == {"first", "second"}


def test_a_rotated_ca_is_used_without_a_restart(simulator, door, authority, kept):
    front = door()
    kept.file("ca.crt").write_bytes(authority("one").ca.read_bytes())
    kept.connect(front.url, ca=kept.file("ca.crt"))
    settle(simulator, kept)
    front.show(authority("two").issue("server", "IP:127.0.0.1"))
    replace(kept.file("ca.crt"), authority("two").ca.read_bytes())
    expect_resume(simulator, front, kept)
