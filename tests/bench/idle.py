# SPDX-License-Identifier: Apache-2.0
"""CPU of an idle reflector and processor with 1,024 feeds; a part of the synthetic table. usage:
idle.py BUILD [SECONDS]

One resource in 1,024 namespaces: 1,024 watches against the simulator. It sends a bookmark a minute
on each, as an API server does. Nothing else happens while it is measured.
"""

import re
import resource
import subprocess
import sys
import time
from pathlib import Path

from machine import Place, note

FEEDS, SECONDS, TARGET = 1024, 60, 0.5  # a whole minute: one bookmark on each watch
PATIENCE = 120

CONFIG = """\
store: {place.store}
cluster: {{kubeconfig: {kubeconfig}}}
feeds:
  - resource: configmaps
    namespaces: [{namespaces}]
"""

KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: idle
contexts: [{{name: idle, context: {{cluster: idle, user: idle}}}}]
clusters: [{{name: idle, cluster: {{server: "{url}"}}}}]
users: [{{name: idle, user: {{}}}}]
"""


def wait_for(what, check):
    end = time.monotonic() + PATIENCE
    while not check():
        if time.monotonic() > end:
            raise RuntimeError(f"{what}: not within {PATIENCE} s")
        time.sleep(0.2)


def allow_connections():
    """The simulator speaks HTTP/1.1, so each watch has a connection of its own."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4 * FEEDS) if hard != resource.RLIM_INFINITY else 4 * FEEDS, hard))


class Cluster:
    """kinf-simulator until the end of the block."""

    def __init__(self, place):
        self.log = place.directory / "simulator.log"
        with open(self.log, "wb") as out:
            self.process = subprocess.Popen(
                [place.program("kinf-simulator"), "--die-with-parent"], stdout=out, stderr=out)
        wait_for("the simulator's address", self.address)

    def address(self):
        found = re.search(r"listening on (\S+)\n", self.log.read_text())
        return found and "http://" + found[1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def percent_of_a_core(daemons, seconds):
    before = {name: daemon.cpu for name, daemon in daemons.items()}
    began = time.monotonic()
    time.sleep(seconds)
    for daemon in daemons.values():
        daemon.check()
    passed = time.monotonic() - began
    return {name: (daemon.cpu - before[name]) / passed * 100 for name, daemon in daemons.items()}


def measure(build, seconds=SECONDS):
    """Percent of a core used by each daemon: {"reflector": .., "processor": ..}."""
    allow_connections()
    with Place(build) as place, Cluster(place) as cluster:
        kubeconfig = place.directory / "kubeconfig"
        kubeconfig.write_text(KUBECONFIG.format(url=cluster.address()))
        namespaces = ", ".join(f"ns-{n}" for n in range(FEEDS))
        place.config.write_text(CONFIG.format(place=place, kubeconfig=kubeconfig, namespaces=namespaces))
        daemons = {name: place.daemon(f"kinf-{name}") for name in ("reflector", "processor")}
        log = place.directory / "kinf-reflector.log"

        def all_listed():
            for daemon in daemons.values():
                daemon.check()
            return log.read_text(errors="replace").count("feed_listed feed=") >= FEEDS

        wait_for(f"{FEEDS} listed feeds", all_listed)
        for daemon in daemons.values():
            daemon.stop_sampling()
        time.sleep(3)
        return percent_of_a_core(daemons, seconds)


def main(build, seconds):
    for name, percent in measure(build, seconds).items():
        verdict = "ok" if percent < TARGET else "MORE THAN"
        note(f"idle {name}, {FEEDS} feeds: {percent:.2f} % of a core ({verdict} {TARGET} %)")


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else SECONDS)
