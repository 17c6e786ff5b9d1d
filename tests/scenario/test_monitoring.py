# SPDX-License-Identifier: Apache-2.0
"""Prometheus and Grafana: the programs print the metrics used in packaging/. promtool tests the
alert rules (scripts/check-monitoring.sh)."""

import json
import os
import re
import subprocess

import pytest
import yaml

from harness import eventually
from harness.process import ROOT, program
from harness.serve import TABLE, Client, UnixConnection
from harness.store import whole
from test_serve_transport import Server, start

RULES = ROOT / "packaging/prometheus/kinformer.rules.yaml"
TESTS = ROOT / "packaging/prometheus/kinformer.tests.yaml"
DASHBOARD = ROOT / "packaging/grafana/kinformer.json"
NAME = r"\b(?:kinf|apiserver)_\w+"
FROM_PROMETHEUS = {"instance", "job"}


def rules():
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def queries():
    """(where, PromQL) of all rules and panels, with the dashboard's variables replaced."""
    found = [(rule["alert"], rule["expr"]) for rule in rules()]
    board = json.loads(DASHBOARD.read_text())
    found += [(panel["title"], target["expr"]) for panel in board["panels"] for target in panel["targets"]]
    return [(where, expr.replace("$instance", ".*")) for where, expr in found]


def families(text):
    """{name: set of labels} of a page of metrics; asserts that each family stands once, with help and type."""
    found, family = {}, None
    for line in text.splitlines():
        if line.startswith("# HELP "):
            family = line.split()[2]
            assert family not in found and len(line.split()) > 3, line
            found[family] = set()
        elif line.startswith("# TYPE "):
            assert line.split()[2] == family, line
        elif line:
            name, labels = re.fullmatch(r"(\w+)(?:\{(.*)\})? [-+.\deEInf]+", line).groups()
            assert re.fullmatch(rf"{family}(_bucket|_sum|_count)?", name), line
            found[family] |= set(re.findall(r'(\w+)="', labels or ""))
    return found


@pytest.fixture(scope="module")
def pages(shared):
    """(of `kinf metrics`, of kinf-serve): their output while daemons run, a client watches and a cursor exists."""
    simulator = shared.simulator("--pods", "20")
    store = shared.store(simulator=simulator)
    store.start_synced(whole("pods"), serve={"listen": ["unix"], "auth": "open", "metrics": "127.0.0.1:0"})
    start(store)
    server = Server(store)
    eventually(lambda: ("metrics", "http") in server.addresses())
    client = Client(lambda: UnixConnection(server.socket))
    assert client.ask("/api/v1/pods", accept=TABLE).status == 200
    watch = client.watch("/api/v1/pods?watch=1")
    store.follower("watch", "pods", "--cursor", "mine")
    eventually(lambda: (store.path / "cursors/mine").exists())
    command = store.kinf("metrics", check=True).stdout
    served = server.curl(f"http://{server.addresses()['metrics', 'http']}/metrics").partition("\n\n")[2]
    watch.connection.close()
    return command, served


def test_kinf_serve_has_what_the_command_prints(pages):
    command, served = map(families, pages)
    assert set(command) - {"kinf_serve_watches"} <= set(served)  # kinf_serve_watchers
    assert 'kinf_feed_objects{feed="pods"} 20\n' in pages[1] and "apiserver_request_total{" in pages[1]
    assert served["kinf_serve_connections"] == {"protocol"} and command["kinf_serve_connections"] == {"process"}


def test_rules_and_dashboard_use_metrics_and_labels_that_exist(pages):
    known = families(pages[1])
    used = set()
    for where, expr in queries():
        names = set(re.findall(NAME, expr))
        assert names, where
        assert names <= set(known), f"{where}: no program prints {names - set(known)}"
        labels = FROM_PROMETHEUS.union(*(known[name] for name in names))
        for group in re.findall(r"\b(?:by|on) \(([^)]*)\)", expr) + re.findall(r"(\w+)=~?\"", expr):
            wanted = {label.strip() for label in group.split(",")} - {"namespace"}  # of feeds of single namespaces
            assert wanted <= labels, f"{where}: {names} have no label {wanted - labels}"
        used |= names
    assert len(used) > 20


def test_texts_of_rules_and_legends_use_labels_of_their_queries(pages):
    known = families(pages[1])
    for rule in rules():
        assert set(rule["annotations"]) == {"summary", "action"} and rule["labels"]["severity"] in ("warning", "critical")
        labels = FROM_PROMETHEUS.union(*(known[name] for name in re.findall(NAME, rule["expr"])))
        asked = set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))
        assert asked <= labels, rule["alert"]
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel["targets"]:
            labels = FROM_PROMETHEUS.union(*(known[name] for name in re.findall(NAME, target["expr"])))
            assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= labels, panel["title"]


def test_each_alert_has_a_unit_test_and_is_documented():
    alerts = [rule["alert"] for rule in rules()]
    assert len(set(alerts)) == len(alerts)
    tested = {case["alertname"] for test in yaml.safe_load(TESTS.read_text())["tests"] for case in test["alert_rule_test"]
              if case["exp_alerts"]}
    assert tested == set(alerts)
    text = (ROOT / "docs/monitoring.md").read_text()
    assert [alert for alert in alerts if f"`{alert}`" not in text] == []


def test_commands_that_the_alerts_name_exist():
    known = set(re.findall(r'^COMMAND\("?([\w-]+)', (ROOT / "command/command.def").read_text(), re.M))
    text = " ".join(rule["annotations"]["action"] for rule in rules())
    for command in re.findall(r"'kinf ([a-z-]+)", text):
        assert command in known, command


def test_panels_of_the_dashboard_do_not_overlap():
    cells = set()
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        place = panel["gridPos"]
        own = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert not own & cells and max(x for x, _ in own) < 24, panel["title"]
        cells |= own


def test_the_documented_file_says_that_the_store_is_gone(store, tmp_path):
    """`kinf metrics` exits with 1 then: the earlier file, with all well, must not stay."""
    command = re.search(r"^cd \S+ && (.*kinf metrics.*)$", (ROOT / "docs/monitoring.md").read_text(), re.M)[1]
    (tmp_path / "kinf.prom").write_text("kinf_store_error 0\n")
    path = f"{os.path.dirname(program('kinf'))}:{os.environ['PATH']}"
    subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True, env=os.environ | {"PATH": path, "KINF_STORE": str(store.path)})
    assert "\nkinf_store_error 1\n" in (tmp_path / "kinf.prom").read_text()


def test_a_cursor_whose_history_is_gone_is_reported(simulator, store):
    simulator.create("pods", 100, size=3000)
    store.start_synced(whole("pods"), retention={"time": "1h", "size": "1MiB"})
    follower = store.follower("watch", "pods", "--cursor", "mine")
    eventually(lambda: (store.path / "cursors/mine").exists())
    assert follower.stop() == 0

    def lapsed():
        text = store.kinf("metrics", check=True).stdout
        return re.search(r'^kinf_cursor_lapsed\{cursor="mine"\} (\d)$', text, re.M)[1]

    assert lapsed() == "0"
    for _ in range(8):
        simulator.touch("pods")
    eventually(lambda: lapsed() == "1")
