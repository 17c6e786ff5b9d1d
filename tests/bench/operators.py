# SPDX-License-Identifier: Apache-2.0
"""Go programs on the store beside the same ones on caches of their own (go/controllerruntime/measure).

The cluster is kinf-simulator. usage: operators.py BUILD [PODS]
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from machine import note, run
from report import Table, add_operators

PODS = 20000
MODULE = Path(__file__).resolve().parents[2] / "go/controllerruntime"
GO = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
WAYS = ("kinf", "own")
SECONDS = 300  # for a program to print its figures

CONFIG = """\
store: {at}/store
cluster: {{kubeconfig: {at}/kubeconfig}}
feeds:
- {{resource: pods, indexes: {{node: spec.nodeName, phase: status.phase}}}}
- {{resource: nodes}}
- {{resource: configmaps}}
"""
KUBECONFIG = """\
{{apiVersion: v1, kind: Config, current-context: c, contexts: [{{name: c, context: {{cluster: c, user: u}}}}],
 clusters: [{{name: c, cluster: {{server: "{server}"}}}}], users: [{{name: u, user: {{}}}}]}}
"""


def is_possible():
    return bool(GO) and subprocess.run([GO, "list", "-deps", "./measure"], cwd=MODULE, capture_output=True).returncode == 0


class World:
    """A simulated cluster, a store of it, and the measuring program."""

    def __init__(self, build, pods):
        self.build, self.at, self.running = Path(build).resolve(), Path(tempfile.mkdtemp(prefix="kinf-bench-")), []
        self.program = self.at / "measure"
        run([GO, "build", "-o", self.program, "./measure"], cwd=MODULE)
        with open(self.at / "simulator.log", "wb") as log:
            self.running.append(subprocess.Popen([self.build / "kinf-simulator", "--port", "0", "--control-port", "0", "--pods",
                                                  str(pods), "--die-with-parent"], stdout=log, stderr=log))
        server, self.control = self.addresses()
        (self.at / "kubeconfig").write_text(KUBECONFIG.format(server=server))
        (self.at / "kinf.yaml").write_text(CONFIG.format(at=self.at))
        self.env = {**os.environ, "KUBECONFIG": str(self.at / "kubeconfig"), "KINF_STORE": str(self.at / "store"),
                    "KINF_RUNTIME_DIR": str(self.at)}
        with open(self.at / "kinf.log", "wb") as log:
            self.running.append(subprocess.Popen([self.build / "kinf", "run", "--config", self.at / "kinf.yaml"],
                                                 stdout=log, stderr=log, env=self.env))
        for feed in ("pods", "nodes", "configmaps"):
            run([self.build / "kinf", "wait", feed, "--for", "live", "--timeout", f"{SECONDS}s"], env=self.env)

    def addresses(self):
        for _ in range(1000):
            found = re.search(r"listening on (\S+)\ncontrol on (\S+)\n", (self.at / "simulator.log").read_text())
            if found:
                return ["http://" + address for address in found.groups()]
            time.sleep(0.02)
        raise RuntimeError("kinf-simulator does not start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in reversed(self.running):
            process.terminate()
            process.wait()
        shutil.rmtree(self.at)

    def ask(self, *words):
        note("measure " + " ".join(words))
        return json.loads(run([self.program, *words], env=self.env, timeout=SECONDS))

    def operators(self, way, count):
        """The figures of programs that run at once, in the order in which they were started."""
        note(f"{count} operators at once: {way}")
        started, figures = [], []
        try:
            for _ in range(count):
                started.append(subprocess.Popen([self.program, "operator", way], env=self.env, stdin=subprocess.PIPE,
                                                stdout=subprocess.PIPE, text=True))
                figures.append(json.loads(started[-1].stdout.readline()))
        finally:
            for process in started:
                process.stdin.close()
                process.wait()
        return figures


def measure(build, pods=PODS):
    with World(build, pods) as world:
        figures = {
            "pods": pods,
            "operators": {"kinf": world.operators("kinf", 10), "own": world.operators("own", 2)},
            **{what: {way: world.ask(what, way) for way in WAYS} for what in ("keys", "reads", "lister")},
            "events": world.ask("events", world.control),
        }
    for what in ("namespace_objects", "node_objects", "phase_objects"):
        ours, theirs = (figures["reads"][way][what] for way in WAYS)
        if ours != theirs or ours == 0:
            raise RuntimeError(f"{what}: {ours} with the store, {theirs} in the own cache")
    return figures


def main(build, pods):
    before = os.getloadavg()[0]
    figures, table = measure(build, int(pods)), Table()
    add_operators(table, figures)
    print(f"\n{table.text()}\n\nload average {before:.1f} before, {os.getloadavg()[0]:.1f} after")


if __name__ == "__main__":
    main(sys.argv[1], *(sys.argv[2:] or [PODS]))
