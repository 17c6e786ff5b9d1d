# SPDX-License-Identifier: Apache-2.0
"""Without the right to read the namespace kube-system the reflector knows its cluster by address and CA."""

import json

import pytest

from harness.reverse_proxy import ReverseProxy
from harness.store import whole

FORBIDDEN = 403, json.dumps({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                             "message": "no", "reason": "Forbidden", "code": 403}).encode()
QUICK = {"backoff": {"min": "50ms", "max": "200ms"}}


def hide_namespace(request):
    """Refuses to show kube-system."""
    return FORBIDDEN if request["path"] == "/api/v1/namespaces/kube-system" else None


@pytest.fixture
def world(workspace, simulator, authority):
    """world(): (store, door) with 20 pods listed and watched through a reverse proxy without
    kube-system. store.feeding is the reflector."""

    def make(refuse=hide_namespace):
        simulator.create("pods", 20)
        door = workspace.add(ReverseProxy(simulator, authority("one").issue("server", "IP:127.0.0.1"), refuse=refuse))
        store = workspace.store()
        store.connect(door.url, ca=store.directory / "ca.crt")
        (store.directory / "ca.crt").write_bytes(authority("one").ca.read_bytes())
        _, store.feeding = store.configure(whole("pods"), **QUICK).daemons()
        store.wait_equal(simulator, "pods")
        simulator.wait_watching("pods")
        return store, door

    return make


def rotate(store, door, authority):
    """Gives the server a certificate of another CA, and the kubeconfig's CA file this CA."""
    door.show(authority.issue("server", "IP:127.0.0.1"))
    (store.directory / "ca.crt").write_bytes(authority.ca.read_bytes())


def journal(store):
    return store.kinf("status", "-o", "json", check=True).json["store"]["uuid"]


def test_a_refused_namespace_keeps_the_journal(simulator, world):
    """A starting API server refuses everything for a moment; the right may also be taken away."""
    store, door = world(lambda _: None)
    before = journal(store)
    store.feeding.kill()
    door.refuse = hide_namespace
    simulator.forget_requests()
    store.feeding.start()
    simulator.touch("pods")
    store.wait_equal(simulator, "pods")
    assert journal(store) == before and simulator.requests(verb="list") == []


@pytest.mark.parametrize("sign", ["address", "ca"])
def test_another_address_or_ca_begins_a_new_journal(simulator, workspace, world, authority, sign):
    store, door = world()
    before = journal(store)
    store.feeding.stop()
    if sign == "ca":
        rotate(store, door, authority("two"))
    else:
        certificate = authority("one").issue("other", "IP:127.0.0.1")
        other = workspace.add(ReverseProxy(simulator, certificate, refuse=hide_namespace))
        store.connect(other.url, ca=store.directory / "ca.crt")
    door.cut()
    store.feeding.start()
    store.feeding.wait_log("cluster_replaced")
    simulator.touch("pods")
    store.wait_equal(simulator, "pods")
    assert journal(store) != before
