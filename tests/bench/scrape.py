#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of a scrape of the metrics, in CPU and in time: GET /metrics of kinf-serve, and
`kinf metrics` for a file.

A simulated cluster of OBJECTS pods, 20 feeds, 10 followers with named cursors.

usage: tests/bench/scrape.py [BUILD (build/release)] [OBJECTS (20000)]
"""

import contextlib
import http.client
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/scenario"))
sys.dont_write_bytecode = True
BUILD = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/release").resolve()
OBJECTS = sys.argv[2] if len(sys.argv) > 2 else "20000"
os.environ["KINF_BUILD"] = str(BUILD)

from harness import eventually  # noqa: E402
from harness.simulator import Simulator  # noqa: E402
from harness.store import Store  # noqa: E402

COUNT, TARGET_MS = 300, 5


def start(directory, cleanup):
    """(store, address of /metrics)"""
    simulator = Simulator(directory, "--pods", OBJECTS).start()
    cleanup.callback(simulator.stop)
    for number in range(19):
        simulator.add_kind(group="bench.example.com", version="v1", resource=f"things{number}", kind=f"Thing{number}")
    store = Store(directory, simulator)
    feeds = ["pods"] + [f"things{number}.bench.example.com" for number in range(19)]
    store.configure(*feeds, serve={"listen": ["unix"], "auth": "open", "metrics": "127.0.0.1:0"})
    cleanup.callback(store.run().stop)
    addresses = store.path / "serve/addresses"
    eventually(lambda: addresses.exists() and "metrics http" in addresses.read_text())
    for feed in feeds:
        store.wait_synced(feed)
    for number in range(10):
        follower = store.follower("watch", "pods", "--cursor", f"cursor-{number}", name=f"watch-{number}")
        cleanup.callback(follower.stop)
    eventually(lambda: len(list((store.path / "cursors").glob("cursor-*"))) == 10)
    line = next(line for line in addresses.read_text().splitlines() if line.startswith("metrics http "))
    return store, line.split(" ")[2]


def cpu_of(pid):
    """ms of all threads so far."""
    return sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e6


def cpu_of_children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (usage.ru_utime + usage.ru_stime) * 1e3


def timed(function, cpu):
    """(CPU, median time, 99th percentile) in ms of COUNT calls, and the last result."""
    times, before = [], cpu()
    for _ in range(COUNT):
        begin = time.perf_counter()
        result = function()
        times.append((time.perf_counter() - begin) * 1e3)
        time.sleep(0.01)
    times.sort()
    return (cpu() - before) / COUNT, times[COUNT // 2], times[COUNT * 99 // 100], result


def main():
    with tempfile.TemporaryDirectory(prefix="kinf-scrape-") as name, contextlib.ExitStack() as cleanup:
        store, address = start(Path(name), cleanup)
        connection = http.client.HTTPConnection(address)

        def get():
            connection.request("GET", "/metrics")
            return connection.getresponse().read()

        def command():
            argv = [BUILD / "kinf", "metrics"]
            return subprocess.run(argv, env={**os.environ, **store.env}, stdout=subprocess.PIPE, check=True).stdout

        status = store.kinf("status", "-o", "json", check=True).json
        serve = next(process["pid"] for process in status["processes"] if process["name"] == "kinf-serve")
        print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
        for what, function, cpu in (("GET /metrics of kinf-serve", get, lambda: cpu_of(serve)),
                                    ("kinf metrics, the whole process", command, cpu_of_children)):
            used, median, late, text = timed(function, cpu)
            verdict = "ok" if used < TARGET_MS else f"over {TARGET_MS} ms"
            print(f"{what}: CPU {used:.2f} ms ({verdict}); time: median {median:.2f} ms, p99 {late:.2f} ms; "
                  f"{len(text)} bytes, {text.count(b'# TYPE')} metrics")


if __name__ == "__main__":
    main()
