# SPDX-License-Identifier: Apache-2.0
"""How the reflector recognizes its cluster when it may not read the namespace kube-system, whose uid identifies one:
it compares objects. A new address or CA alone does not make another cluster."""

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


def hide_objects(request):
    """Refuses also the lists of a few objects that the reflector compares."""
    return hide_namespace(request) or (FORBIDDEN if "limit=100" in request["path"] else None)


@pytest.fixture
def world(workspace, simulator, authority):
    """world(): (store, door) with 20 pods listed and watched through a reverse proxy that hides kube-system.
    store.feeding is the reflector."""

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
    """Gives the server a certificate of another CA, and the kubeconfig's CA file that CA."""
    door.show(authority.issue("server", "IP:127.0.0.1"))
    (store.directory / "ca.crt").write_bytes(authority.ca.read_bytes())


def journal(store):
    return store.kinf("status", "-o", "json", check=True).json["store"]["uuid"]


def full_lists(simulator):
    """Lists of whole objects; the comparison lists only the metadata of the first objects."""
    return [r for r in simulator.requests(verb="list") if "PartialObjectMetadata" not in r["accept"]]


def expect_resume(simulator, store, before):
    """The feed resumes in the same journal, without a list."""
    simulator.touch("pods")
    store.wait_equal(simulator, "pods")
    assert journal(store) == before and full_lists(simulator) == []


def test_a_rotated_ca_keeps_the_journal_while_running_and_over_a_restart(simulator, world, authority):
    store, door = world()
    before = journal(store)
    simulator.forget_requests()
    rotate(store, door, authority("two"))
    door.cut()
    store.feeding.wait_log("cluster_confirmed .*objects that are known")
    expect_resume(simulator, store, before)
    store.feeding.kill()
    rotate(store, door, authority("three"))
    door.cut()
    store.feeding.start()
    expect_resume(simulator, store, before)
    assert store.feeding.log.count("cluster_confirmed") == 2


def test_a_new_ca_alone_keeps_the_journal(simulator, world, authority):
    store, door = world()
    before = journal(store)
    store.feeding.kill()
    rotate(store, door, authority("two"))
    door.refuse = hide_objects
    door.cut()
    simulator.forget_requests()
    store.feeding.start()
    expect_resume(simulator, store, before)
    assert "no object that speaks against it" in store.feeding.log


def test_another_address_of_the_same_cluster_keeps_the_journal(simulator, workspace, world, authority):
    store, door = world()
    before = journal(store)
    store.feeding.stop()
    other = workspace.add(ReverseProxy(simulator, authority("one").issue("other", "IP:127.0.0.1"), refuse=hide_namespace))
    store.connect(other.url, ca=store.directory / "ca.crt")
    door.cut()
    simulator.forget_requests()
    store.feeding.start()
    expect_resume(simulator, store, before)


def test_the_identity_check_is_repeated_until_the_server_answers(simulator, workspace, world, authority):
    """An answer that is neither objects nor a refusal decides nothing; a series of them is logged once."""
    store, door = world()
    before = journal(store)
    store.feeding.stop()
    answers = [(429, b"{}"), (200, b"{}"), (200, b"<html>"), (503, b""), (200, b'{"kind":"Status","code":200}')]
    left = iter(answers)

    def confused(request):
        return hide_namespace(request) or (next(left, None) if "limit=100" in request["path"] else None)

    other = workspace.add(ReverseProxy(simulator, authority("one").issue("other", "IP:127.0.0.1"), refuse=confused))
    store.connect(other.url, ca=store.directory / "ca.crt")
    door.cut()
    simulator.forget_requests()
    store.feeding.start()
    expect_resume(simulator, store, before)
    assert next(left, None) is None
    assert store.feeding.log.count("cluster_unreachable") == 1


@pytest.mark.parametrize("sign", ["ca", "hidden"])
def test_another_cluster_is_recognized_by_the_uids_of_its_objects(workspace, simulator, world, authority, sign):
    """Its objects have the same names and versions, and other uids. "hidden": the reflector knew the first cluster by
    the uid of kube-system, and may not read that any more."""
    store, door = world(lambda _: None) if sign == "hidden" else world()
    door.refuse = hide_namespace
    before = journal(store)
    store.feeding.stop()
    other = workspace.simulator()
    other.create("pods", 20)
    other.touch("pods", 20)
    door.simulator = other
    door.cut()
    if sign == "ca":
        rotate(store, door, authority("two"))
    store.feeding.start()
    store.wait_equal(other, "pods")
    assert journal(store) != before
    store.feeding.wait_log("cluster_replaced")
