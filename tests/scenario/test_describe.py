# SPDX-License-Identifier: Apache-2.0
"""kinf describe: compared with kubectl's by a recording of tests/real/check_describe.py; and kinf's own parts."""

import json
import re
from pathlib import Path

import pytest

from harness import eventually
from harness.describe import ageless, comparable, essential
from harness.objects import pod
from harness.store import whole

RECORDED = json.loads((Path(__file__).resolve().parents[1] / "describe" / "recorded.json").read_text())


@pytest.fixture(scope="module")
def imported(shared):
    store = shared.store("imported")
    path = store.directory / "objects.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": RECORDED["items"]}))
    store.configure(whole("pods"))
    store.kinf("import", path, "--store", store.path, check=True)
    return store


@pytest.mark.parametrize("kind", sorted({key.split()[0] for key in RECORDED["texts"]}))
def test_a_description_is_kubectls(imported, kind):
    # kinf has values of variables from fields of the spec, and makes controls in a message visible.
    exact = essential if kind in ("events", "pods") else ageless
    for key, text in RECORDED["texts"].items():
        feed, name = key.split()
        if feed == kind:
            ours = imported.kinf("describe", feed, name, env={"TZ": "UTC"}, check=True).stdout
            assert exact(comparable(ours)) == exact(text), key


def test_columns_are_aligned_as_kubectls(imported):
    """Without ages the blanks are kubectl's also."""
    equal = 0
    for key, text in RECORDED["texts"].items():
        if key.startswith(("services ", "deployments.apps ", "persistentvolumes ", "pods ")):
            ours = comparable(imported.kinf("describe", *key.split(), env={"TZ": "UTC"}, check=True).stdout)
            equal += ours.partition("\nEvents:\n")[0] == text.partition("\nEvents:\n")[0]
    assert equal > 10, "those without ages"


def test_parts_of_kinds_that_are_not_fed_are_left_out(simulator, store):
    simulator.put("pods", pod("a"))
    simulator.put("nodes", {"metadata": {"name": "n1"}})
    store.start_live("nodes")
    text = store.kinf("describe", "nodes", "n1", check=True).stdout
    assert "Non-terminated Pods" not in text and "Events" not in text and "Lease" not in text, text
    store.configure("nodes", "pods")
    store.kinf("reload", check=True)
    eventually(lambda: "(1 in total)" in store.kinf("describe", "nodes", "n1").stdout)


def test_controls_in_an_object_do_nothing(simulator, store):
    """Tabs and line feeds align and break as in kubectl, with \\r for a carriage return."""
    simulator.put("pods", pod("a", annotations={"evil": "\x1b[2Jx\tz\r", "key\x1b": "v", "eight": "\x9b2J"}, images=("i\x1b]0;t\x07",)))
    store.start_live(whole("pods"))
    text = store.kinf("describe", "pods", "web/a", check=True).stdout
    assert not re.search("[\x07\x1b\x80-\x9f]", text) and re.search(r"\^\[\[2Jx +z\\r$", text, re.M) and r"\u009b2J" in text, text
    table = store.kinf("get", "pods", "-o", "custom-columns=A:.metadata.annotations.eight,B:.metadata.annotations.evil", check=True).stdout
    assert r"\u009b2J" in table and not re.search("[\x1b\x80-\x9f]", table), table


def test_the_last_versions_are_shown_with_what_changed(simulator, store):
    """A pod with 200 changes used to have 200 lines without the changed fields."""
    simulator.put("pods", pod("a"))
    simulator.put("pods", pod("b"))
    store.start_live(whole("pods"))
    for number in range(14):
        simulator.patch("pods", "web/a", {"metadata": {"annotations": {"n": str(number), **({f"k{i:03}": "v" for i in range(60)} if number == 12 else {})}}})
    eventually(lambda: "kinf history pods web/a" in store.kinf("describe", "pods", "web/a").stdout)
    eventually(lambda: len(store.kinf("history", "pods", "web/a").stdout.split("MODIFIED")) == 15)
    head, rows = store.kinf("describe", "pods", "web/a", check=True).stdout.partition("\nHistory: ")[2].split("\n", 1)
    assert head == "the last 10 of 15 versions; 'kinf history pods web/a' shows all"
    rows = rows.splitlines()
    assert len(rows) == 11 and rows[0].split() == ["EVENT", "TYPE", "RESOURCEVERSION", "RECORDED", "CHANGED"]
    assert all(row.endswith(" metadata.annotations.n") for row in (*rows[1:9], rows[10])), rows
    assert rows[9].endswith(", ...") and len(rows[9]) < 200, rows[9]
    text = store.kinf("describe", "pods", "web/b", check=True).stdout
    assert text.partition("\nHistory:\n")[2].count("\n") == 2, text


def test_a_deleted_object_is_described_with_its_history(simulator, store):
    simulator.put("pods", pod("a"))
    store.start_live(whole("pods"))
    simulator.touch("pods", 1)
    simulator.delete("pods", "web/a")
    eventually(lambda: store.kinf("get", "pods", "web/a").status == 1)
    text = store.kinf("describe", "pods", "web/a", check=True).stdout
    assert text.startswith("Deleted:  2") and "\nName:" in text, text
    assert text.partition("\nHistory:\n")[2].count("\n") == 4 and "DELETED" in text, text


def test_objects_of_any_shape_are_described(simulator, store):
    """Fields of unexpected types, and none at all, in objects of every kind with a layout."""
    wrong = [None, 7, "x", [], {}, [None], [{}], {"a": None}, [["b"]]]
    objects = [{"metadata": {"name": f"o{i}", "namespace": "web", "labels": {}, "annotations": {}}, "spec": value, "status": value,
                "data": value, "template": value} for i, value in enumerate(wrong)]
    parts = ["containers", "volumes", "tolerations", "ports", "template", "selector", "conditions", "addresses", "capacity", "rules"]
    objects += [{"metadata": {"name": f"p{i}", "namespace": "web"}, "spec": dict.fromkeys(parts, value),
                 "status": dict.fromkeys(parts, value)} for i, value in enumerate(wrong)]
    kinds = ["pods", "services", "configmaps", "secrets", "deployments.apps", "replicasets.apps"]
    for kind in kinds:
        for obj in objects:
            simulator.put(kind, obj)
    store.configure(*map(whole, kinds)).daemons()
    for kind in kinds:
        store.wait_live(kind)
        for obj in objects:
            result = store.kinf("describe", kind, f"web/{obj['metadata']['name']}")
            assert result.status == 0 and "Name:" in result.stdout, result
