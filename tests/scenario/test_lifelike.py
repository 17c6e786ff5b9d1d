# SPDX-License-Identifier: Apache-2.0
"""Objects as in real clusters, of every kind of the simulator: all sizes, states and names are stored, and read."""

import json

import pytest

from harness.store import whole

RBAC = "rbac.authorization.k8s.io"
KINDS = ["configmaps", "deployments.apps", "events", "namespaces", "nodes", "pods", "replicasets.apps", "secrets", "services",
         "widgets.example.com", f"clusterroles.{RBAC}", f"roles.{RBAC}"]


@pytest.fixture(scope="module")
def mixed(shared):
    """(simulator, store): running daemons, and 39 objects of each kind, with a few of the largest."""
    simulator = shared.simulator()
    store = shared.store(simulator=simulator)
    for kind in KINDS:
        simulator.create(kind, 39)
    simulator.create("pods", 1, from_=61)
    simulator.create("configmaps", 1, from_=143)
    simulator.create("secrets", 1, from_=45)
    store.configure(*map(whole, KINDS))
    store.daemons()
    for kind in KINDS:
        store.wait_equal(simulator, kind)
    return simulator, store


def test_each_object_is_stored_and_has_a_row(mixed):
    simulator, store = mixed
    for kind in KINDS:
        truth = simulator.truth(kind)
        names = [obj["metadata"]["name"] for obj in truth.values()]
        wide = store.kinf("get", kind, "-A", "-o", "wide", "--no-headers", check=True).stdout.splitlines()
        assert len(wide) == len(names), kind
        custom = store.kinf("get", kind, "-A", "-o", "jsonpath={range .items[*]}{.metadata.name}{'\n'}{end}", check=True).stdout
        assert sorted(custom.splitlines()) == sorted(names), kind
    store.verify()


def test_each_name_is_found(mixed):
    simulator, store = mixed
    for name, truth in simulator.truth(f"clusterroles.{RBAC}").items():
        found = store.kinf("get", f"clusterroles.{RBAC}", name, "-o", "json", "--show-managed-fields", check=True).json
        assert found["metadata"]["name"] == name and found["metadata"] == truth["metadata"]


def test_changes_of_each_kind_are_followed(mixed):
    simulator, store = mixed
    for kind in KINDS:
        simulator.touch(kind, 5)
        simulator.delete_many(kind, 3)
    for kind in KINDS:
        store.wait_equal(simulator, kind)
    exported = json.loads(store.kinf("export", "--full", check=True).stdout)["items"]
    assert len(exported) == sum(len(simulator.truth(kind)) for kind in KINDS)
    store.verify()
