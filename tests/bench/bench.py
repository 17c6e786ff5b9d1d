# SPDX-License-Identifier: Apache-2.0
"""make bench: runs all measurements, prints one table and writes one JSON file. usage: bench.py BUILD

BENCH_LARGE=1           also 1M objects and 10M updates (about 10 GB of disk)
BENCH_SIZES=1000,...    other numbers of objects
BENCH_ROUNDS=7          number of paired runs with client-go
BENCH_DIR=DIR           directory for the stores (default: the temporary directory)
KINF_BASELINE=FILE      client-go's measuring program; with KUBECONFIG: both programs on that cluster
BENCH_OWN=0             only the comparisons with client-go
BENCH_GO=0              without the Go module's programs, which need Go and the packages of its go.mod
"""

import json
import os
import platform
import shutil
import sys
import tempfile
from pathlib import Path

import client_go
import operators
import report
import synthetic
from machine import note

LARGE_BYTES = 16 * 2**30


def conditions():
    return {"load_average": os.getloadavg(), "cpus": os.cpu_count(), "kernel": platform.release()}


def is_large():
    if os.environ.get("BENCH_LARGE") != "1":
        return False
    free = shutil.disk_usage(os.environ.get("BENCH_DIR", tempfile.gettempdir())).free
    if free < LARGE_BYTES:
        note(f"BENCH_LARGE=1 needs {LARGE_BYTES >> 30} GiB free, there are {free >> 30}: left out; set BENCH_DIR to a larger disk")
    return free >= LARGE_BYTES


def main(build):
    figures, table = {"before": conditions()}, report.Table()
    if max(figures["before"]["load_average"][:1]) > 0.5:
        note(f"the machine is busy (load {figures['before']['load_average'][0]:.1f}): latencies and rates are worse than they are")
    if os.environ.get("BENCH_OWN") != "0":
        figures["synthetic"] = synthetic.measure(build, is_large())
        report.add_synthetic(table, figures["synthetic"])
    if os.environ.get("BENCH_GO") != "0" and operators.is_possible():
        figures["operators"] = operators.measure(build)
        report.add_operators(table, figures["operators"])
    if client_go.is_possible():
        figures["client_go"] = client_go.measure(build)
        report.add_client_go(table, figures["client_go"])
    else:
        note("no comparison with client-go: set KINF_BASELINE to its measuring program and KUBECONFIG to a cluster")
    figures["after"] = conditions()
    figures["table"] = table.as_dicts()
    target = Path("build/bench.json")
    target.write_text(json.dumps(figures, indent=1) + "\n")
    print(f"\n{table.text()}\n\nload average {figures['before']['load_average'][0]:.1f} before, "
          f"{figures['after']['load_average'][0]:.1f} after; all figures: {target}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
