#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Draws docs/pictures/dashboard.svg: the dashboard of packaging/grafana with the figures of a real run.

Prometheus (scripts/dependencies.sh monitoring) scrapes a kinf-serve each second while a simulated cluster changes, the API
server is away for a while and a daemon is killed; then it evaluates the queries of the dashboard's panels. Grafana is not
needed, and draws the same panels in its own way.

usage: docs/pictures/dashboard.py [BUILD (build/release)] [SECONDS (150)]
"""

import contextlib
import json
import os
import re
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/scenario"), str(Path(__file__).parent)]
sys.dont_write_bytecode = True
BUILD = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/release").resolve()
SECONDS = int(sys.argv[2]) if len(sys.argv) > 2 else 150
os.environ["KINF_BUILD"] = str(BUILD)

import svg  # noqa: E402
from harness import eventually  # noqa: E402
from harness.process import Process  # noqa: E402
from harness.serve import Client, UnixConnection  # noqa: E402
from harness.simulator import Simulator  # noqa: E402
from harness.store import Store, whole  # noqa: E402

PROMETHEUS = ROOT / "build/tools/prometheus/usr/bin/prometheus"
BOARD = json.loads((ROOT / "packaging/grafana/kinformer.json").read_text())
RATE = "15s"  # $__rate_interval: at least four scrapes
COLUMN, ROW = 50, 30  # size of a cell of the dashboard's grid


class Prometheus:
    def __init__(self, directory, target, cleanup):
        config = directory / "prometheus.yaml"
        config.write_text(json.dumps({  # JSON is YAML
            "global": {"scrape_interval": "1s"},
            "scrape_configs": [{"job_name": "kinformer", "static_configs": [
                {"targets": [target], "labels": {"instance": "node-1"}}]}],
        }))
        self.socket = "127.0.0.1:19317"
        process = Process("prometheus", [
            PROMETHEUS, f"--config.file={config}", f"--storage.tsdb.path={directory / 'tsdb'}",
            f"--web.listen-address={self.socket}"], directory).start()
        cleanup.callback(process.stop)
        process.wait_log("Server is ready to receive web requests")

    def query(self, expr, begin, end):
        """[(labels, [(time, value)])]"""
        arguments = urllib.parse.urlencode({"query": expr, "start": begin, "end": end, "step": 1})
        with urllib.request.urlopen(f"http://{self.socket}/api/v1/query_range?{arguments}") as answer:
            result = json.load(answer)["data"]["result"]
        return [(row["metric"], [(float(t), float(v)) for t, v in row["values"] if v != "NaN"]) for row in result]


def run(directory, cleanup):
    """Lets things happen for SECONDS; returns (prometheus, begin, end)."""
    simulator = Simulator(directory, "--pods", "2000").start()
    cleanup.callback(simulator.stop)
    store = Store(directory, simulator)
    store.configure(whole("pods", indexes={"node": "spec.nodeName"}), whole("nodes"), whole("services"),
                    backoff={"min": "500ms", "max": "4s"},
                    serve={"listen": ["unix"], "auth": "open", "metrics": "127.0.0.1:0"})
    cleanup.callback(store.run().stop)
    addresses = store.path / "serve/addresses"
    eventually(lambda: addresses.exists() and "metrics http" in addresses.read_text())
    lines = {tuple(line.split(" ")[:2]): line.split(" ")[2] for line in addresses.read_text().splitlines()}
    store.wait_synced("pods")
    prometheus = Prometheus(directory, lines["metrics", "http"], cleanup)
    client = Client(lambda: UnixConnection(lines["api", "unix"]))
    watches = [client.watch("/api/v1/pods?watch=1") for _ in range(5)]
    begin = time.time()
    simulator.churn("pods", 100)
    events = [(0.25, lambda: simulator.churn("pods", 400)), (0.45, simulator.down), (0.65, simulator.up),
              (0.8, lambda: os.kill(store_pid(store, "kinf-processor"), 9))]
    while (now := time.time() - begin) < SECONDS:
        while events and now >= events[0][0] * SECONDS:
            events.pop(0)[1]()
        client.ask("/api/v1/pods?limit=50")
        time.sleep(0.1)
    for watch in watches:
        watch.connection.close()
    return prometheus, begin, begin + SECONDS


def store_pid(store, name):
    status = store.kinf("status", "-o", "json", check=True).json
    return next(process["pid"] for process in status["processes"] if process["name"] == name)


def label(template, labels):
    for name, value in labels.items():
        template = template.replace("{{%s}}" % name, value)
    return re.sub(r"{{\w+}}", "", template).strip()  # labels missing in a series


def draw_panel(picture, panel, rows, begin, end):
    """ROWS: [(name, [(time, value)])]"""
    place = panel["gridPos"]
    x, y = 10 + place["x"] * COLUMN, 50 + place["y"] * ROW
    width, height = place["w"] * COLUMN - 8, place["h"] * ROW - 8
    unit = panel["fieldConfig"]["defaults"]["unit"]
    picture.rect(x, y, width, height)
    picture.text(x + 10, y + 18, panel["title"], weight="bold")
    if panel["type"] == "stat":
        value = rows[0][1][-1][1] if rows and rows[0][1] else None
        steps = panel["fieldConfig"]["defaults"].get("thresholds", {}).get("steps", [])
        colour = "green" if steps else svg.INK
        for step in steps:
            if value is not None and step["value"] is not None and value >= step["value"]:
                colour = step["color"]
        colour = {"green": "#2f7d32", "orange": "#b45309", "red": "#b91c1c"}.get(colour, colour)
        picture.text(x + width / 2, y + height / 2 + 22, "no data" if value is None else svg.number(value, unit), 30, colour, "middle")
        return
    box = x + 62, y + 32, width - 80, height - 82
    stacked = "stacking" in panel["fieldConfig"]["defaults"]["custom"]
    if stacked:
        rows = stack(rows)
    highest = svg.top_of(max((value for _, points in rows for _, value in points), default=1) or 1, unit)
    to_point = svg.axes(picture, box, highest, unit, begin, end)
    for i, (_, points) in enumerate(rows):
        if points:
            picture.line([to_point(*point) for point in points], svg.COLOURS[i % len(svg.COLOURS)])
    svg.legend(picture, x + 12, y + height - 12, width - 24, [name for name, _ in rows])


def stack(rows):
    sums, made = {}, []
    for name, points in rows:
        points = [(t, sums.get(t, 0) + value) for t, value in points]
        sums.update(points)
        made.append((name, points))
    return made


def draw(prometheus, begin, end, target):
    height = 60 + ROW * max(p["gridPos"]["y"] + p["gridPos"]["h"] for p in BOARD["panels"])
    picture = svg.Picture(20 + 24 * COLUMN, height, "The dashboard of kinformer", f"{SECONDS} seconds of a simulated cluster "
                          "in the panels of packaging/grafana/kinformer.json.")
    picture.rect(0, 0, 20 + 24 * COLUMN, height, "#f3f4f6", "none", 0)
    picture.text(14, 30, "kinformer", 20, weight="bold")
    picture.text(10 + 24 * COLUMN - 8, 30, f"{SECONDS} s of a simulated cluster; drawn by docs/pictures/dashboard.py", 11, svg.GREY, "end")
    for panel in BOARD["panels"]:
        rows = []
        for query in panel["targets"]:
            expr = query["expr"].replace("$instance", ".*").replace("$__rate_interval", RATE)
            rows += [(label(query["legendFormat"], labels), points) for labels, points in prometheus.query(expr, begin, end)]
        if not any(points for _, points in rows):
            raise SystemExit(f"dashboard.py: the panel '{panel['title']}' has no data")
        draw_panel(picture, panel, rows, begin, end)
    picture.save(target)


def main():
    if not PROMETHEUS.exists():
        raise SystemExit("dashboard.py: there is no Prometheus: run scripts/dependencies.sh monitoring")
    with tempfile.TemporaryDirectory(prefix="kinf-picture-") as name, contextlib.ExitStack() as cleanup:
        draw(*run(Path(name), cleanup), ROOT / "docs/pictures/dashboard.svg")


if __name__ == "__main__":
    main()
