# SPDX-License-Identifier: Apache-2.0
"""CPU of an idle reflector and processor with 1,024 feeds; a part of the synthetic table. usage:
idle.py BUILD [SECONDS]

One resource in 1,024 namespaces: 1,024 watches against the simulator. It sends a bookmark a minute
on each, as an API server does. Nothing else happens while it is measured.
"""

import contextlib
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

from machine import cpu_seconds, harness, note

FEEDS, SECONDS, TARGET = 1024, 60, 0.5  # a whole minute: one bookmark on each watch


def allow_connections():
    """The simulator speaks HTTP/1.1, so each watch has a connection of its own."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4 * FEEDS) if hard != resource.RLIM_INFINITY else 4 * FEEDS, hard))


def percent_of_a_core(daemons, seconds):
    before = {name: cpu_seconds(daemon.pid) for name, daemon in daemons.items()}
    began = time.monotonic()
    time.sleep(seconds)
    passed = time.monotonic() - began
    return {name: (cpu_seconds(daemon.pid) - before[name]) / passed * 100 for name, daemon in daemons.items()}


def measure(build, seconds=SECONDS):
    """Percent of a core used by each daemon: {"reflector": .., "processor": ..}."""
    allow_connections()
    Simulator, Store, eventually = harness(build)
    with tempfile.TemporaryDirectory(prefix="kinf-bench-", dir=os.environ.get("BENCH_DIR")) as place, contextlib.ExitStack() as cleanup:
        simulator = Simulator(place).start()
        cleanup.callback(simulator.stop)
        store = Store(place, simulator)
        cleanup.callback(store.stop)
        store.configure({"resource": "configmaps", "namespaces": [f"ns-{n}" for n in range(FEEDS)]})
        processor, reflector = store.daemons()
        eventually(lambda: reflector.log.count("feed_listed feed=") >= FEEDS, 20, f"{FEEDS} listed feeds")
        time.sleep(3)
        return percent_of_a_core({"reflector": reflector, "processor": processor}, seconds)


def main(build, seconds):
    for name, percent in measure(build, seconds).items():
        verdict = "ok" if percent < TARGET else "MORE THAN"
        note(f"idle {name}, {FEEDS} feeds: {percent:.2f} % of a core ({verdict} {TARGET} %)")


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else SECONDS)
