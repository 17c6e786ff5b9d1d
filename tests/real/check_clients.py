#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Foreign clients, through a kinf-serve filled from a real API server, $KUBECONFIG:

* each kubectl of $KINF_KUBECTL (paths with colons between; else the one in PATH) prints line by
  line the same as from the API server itself: reads from the cache, and with `forward: on` writes,
  explain, rollout;
* informers while objects change and kinf-serve and both daemons are killed with SIGKILL: in the end
  they have the API server's state, they have listed once, and nothing was answered with 410. They
  are those of

      client-go            $KINF_CLIENT_GO, the program of tests/differential/clientgo
      controller-runtime   $KINF_CONTROLLER_RUNTIME: tests/real/clients/controller-runtime (go build)
      kube-rs              $KINF_KUBE_RS: tests/real/clients/kube-rs (cargo build); lists, streams, metadata only
      client-node          $KINF_CLIENT_NODE, a copy of tests/real/clients/node after npm install
      Python               $KINF_PYTHON, an interpreter with the package kubernetes

* k9s ($KINF_K9S, the program) shows the pods, filters, describes and deletes, and shows one made
  after all three were killed.

A client without its variable is skipped; the last line names them.

usage: KUBECONFIG=FILE tests/real/check_clients.py [--seconds N]      It creates and removes objects.
"""

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scenario"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
from check_serve import A, B, prepare, start  # noqa: E402
from cluster import Cluster  # noqa: E402
from conftest import Workspace  # noqa: E402
from harness import eventually  # noqa: E402
from harness.terminal import Terminal  # noqa: E402
from lab import Api, Churn  # noqa: E402

READS = [
    *(f"get {what} -A -o {form}" for what in ("pods", "deployments", "services", "configmaps", "gadgets", "events")
      for form in ("wide", "yaml", "name")),
    f"get pods -n {A}", f"get pods -n {A} --show-labels", f"get pods -n {A} -l app=app1", f"get pod p1 -n {A} -o json",
    "get nodes",
    "get nodes -o yaml", "get ns", "get crd", f"get secrets -n {A}",
    f"get pods -n {B} --field-selector spec.nodeName=n1", f"get all -n {A}",
    f"get pods,configmaps -n {A} -o name", f"get gd -n {A}", f"get pods -n {A} --sort-by=.metadata.name",
    f"get pods -n {A} --chunk-size=2",
    f"get pods -n {A} -o jsonpath={{.items[*].metadata.uid}}",
    f"get pods -n {A} -o custom-columns=N:.metadata.name,L:.metadata.labels",
    f"describe pod p0 -n {A}", f"describe deployment d -n {A}", f"describe service s -n {A}",
    "describe node kinf-serve-1", f"describe gadget g0 -n {A}",
    f"get pod nope -n {A}", "get nosuch", f"get pods/p0 deploy/d -n {A}",
    f"wait --for=condition=Ready pod/p0 -n {A} --timeout=1s",
    f"wait --for=delete pod/nope -n {A} --timeout=5s", f"get pods -n {A} --ignore-not-found zzz",
    f"get --raw /api/v1/namespaces/{A}/pods/p1",
]
FORWARDED = [
    "api-resources", "api-resources --api-group=apps -o wide", "api-versions", "explain pod.spec.nodeName",
    "explain gadget.spec",
    "auth can-i create pods", f"annotate pod p4 -n {A} by=kubectl --overwrite",
    f"get pod p4 -n {A} -o jsonpath={{.metadata.annotations.by}}",
    f"scale deployment d -n {A} --replicas=2", f"get deployment d -n {A}",
    f"rollout status deployment d -n {A} --timeout=1s",
    f"rollout history deployment d -n {A}", f"create configmap made -n {A} --from-literal=a=b",
    f"get configmap made -n {A} -o jsonpath={{.data}}",
    f"delete configmap made -n {A}", f"get configmap made -n {A}", f"logs p0 -n {A}", f"exec p0 -n {A} -- true",
]
MASKS = [
    (re.compile(r"(?<![\w.:/-])(\d+[smhdy]){1,2}(?![\w.:/-])"), "AGE"),
    (re.compile(r'^( *)("?)resourceVersion\2: "\d*"', re.M), "RV"),  # of a list: a cache may be a little behind
    (re.compile(r" +"), " "),
    (re.compile(r"\(get/list/watch [^)]*\)|127\.0\.0\.1:\d+"), ""),
    (re.compile(r"^[EI]\d{4} [\d:.]+ +\d+ "), "KLOG "),
]


def masked(text):
    for pattern, word in MASKS:
        text = pattern.sub(word, text)
    return [line.rstrip() for line in text.splitlines()]


class Through:
    """A kinf-serve of the cluster, as clients see it."""

    def __init__(self, workspace, kubeconfig, **settings):
        self.store = start(workspace, kubeconfig, **settings)
        self.processes = [p for p in self.store.processes if p.name.startswith("kinf-")]
        addresses = (self.store.path / "serve" / "addresses").read_text().splitlines()
        self.address = next(line.split(" ")[2] for line in addresses if line.startswith("api https "))
        self.store.config.write_text(self.store.config.read_text().replace("127.0.0.1:0", self.address))
        self.kubeconfig = self.store.directory / "through"
        self.kubeconfig.write_text(self.store.kinf("kubeconfig", check=True).stdout)

    @property
    def serve(self):
        return next(p for p in self.processes if p.name == "kinf-serve")

    def served(self):
        return [line for line in self.serve.log.splitlines() if "request_served" in line]


# ---- kubectl -------------------------------------------------------------------------------------


def run(kubectl, kubeconfig, command, home):
    home.mkdir(exist_ok=True)
    done = subprocess.run([kubectl, "--kubeconfig", str(kubeconfig), *command.split()], capture_output=True, text=True,
                          timeout=120,
                          env={**os.environ, "HOME": str(home)})
    return done.returncode, masked(done.stdout), masked(done.stderr)


def compare_kubectl(kubectl, through, kubeconfig, commands):
    wrong = []
    for command in commands:
        sides = [run(kubectl, config, command, through.store.directory / name)
                 for name, config in (("home-server", kubeconfig), ("home-serve", through.kubeconfig))]
        if sides[0] != sides[1]:
            lines = [(x, y) for part in (1, 2) for x, y in zip(*(side[part] + [""] * 3 for side in sides)) if x != y]
            wrong.append(f"{Path(kubectl)}: {command}: exit {sides[0][0]} and {sides[1][0]}: " + "; ".join(f"{x!r} | {y!r}" for x, y in lines[:3]))
    print(f"{kubectl}: {len(commands) - len(wrong)} of {len(commands)} commands print the same lines")
    return wrong


def check_kubectl(kubeconfig, cluster):
    kubectls = [path for path in os.environ.get("KINF_KUBECTL", shutil.which("kubectl") or "").split(":") if path]
    workspace, wrong = Workspace(), []
    try:
        through = Through(workspace, kubeconfig, forward="on")
        for kubectl in kubectls:
            cluster.kubectl("delete", "configmap", "made", "-n", A, "--ignore-not-found")
            wrong += compare_kubectl(kubectl, through, kubeconfig, READS)
            wrong += compare_writes(kubectl, through, kubeconfig, cluster)
    finally:
        workspace.close()
    return wrong


def compare_writes(kubectl, through, kubeconfig, cluster):
    """Gives all commands to the API server, makes them undone, and gives them to kinf-serve."""
    outcome = []
    for name, config in (("home-server", kubeconfig), ("home-serve", through.kubeconfig)):
        cluster.kubectl("scale", "deployment", "d", "-n", A, "--replicas=1")
        cluster.kubectl("annotate", "pod", "p4", "-n", A, "by-")
        outcome.append([run(kubectl, config, command, through.store.directory / name) for command in FORWARDED])
    wrong = [f"{kubectl}: {command}: {x} | {y}" for command, x, y in zip(FORWARDED, *outcome) if x != y]
    print(f"{kubectl}: {len(FORWARDED) - len(wrong)} of {len(FORWARDED)} forwarded commands print the same lines")
    return wrong


# ---- informers under kills -----------------------------------------------------------------------


class Informer:
    """A program printing its events; `state` adds it up."""

    def __init__(self, name, argv, directory, first=""):
        self.name, self.out = name, directory / f"{name}.out"
        with open(self.out, "wb") as out, open(directory / f"{name}.err", "wb") as err:
            self.popen = subprocess.Popen([str(word) for word in argv], stdin=subprocess.PIPE, stdout=out, stderr=err,
                                          text=True)
        self.popen.stdin.write(first)
        self.popen.stdin.flush()

    def lines(self):
        return [json.loads(line) for line in self.out.read_text().rpartition("\n")[0].splitlines()]

    def state(self):
        state = {}
        for line in self.lines():
            kind = (line.get("call") or line.get("type") or "").lower()
            if "list" in line:
                state = dict(line["list"])
            elif kind in ("delete", "deleted"):
                state.pop(line["key"], None)
            elif "key" in line:
                state[line["key"]] = line["rv"]
        return state

    def close(self):
        self.popen.kill()
        self.popen.wait()


SKIPPED = []


def tool(variable):
    """The variable's value; None if it is not set."""
    found = os.environ.get(variable)
    if not found:
        SKIPPED.append(variable)
    return found


def informers(through, kubeconfig):
    """The available ones."""
    directory = through.store.directory
    token = Api(kubeconfig).headers["Authorization"].split()[1]
    if program := tool("KINF_CLIENT_GO"):
        argv = [program, "--server", f"https://{through.address}", "--ca", through.store.path / "serve" / "ca.crt",
                "--token", token,
                "--resource", "configmaps"]
        yield Informer("client-go", argv, directory, "add h 0 0 -\n")
    if program := tool("KINF_CONTROLLER_RUNTIME"):
        yield Informer("controller-runtime", [program, through.kubeconfig], directory)
    if program := tool("KINF_KUBE_RS"):
        yield Informer("kube-rs", [program, through.kubeconfig], directory)
        yield Informer("kube-rs-streams", [program, through.kubeconfig, "--streaming"], directory)
        yield Informer("kube-rs-metadata", [program, through.kubeconfig, "--metadata"], directory)
    if folder := tool("KINF_CLIENT_NODE"):
        yield Informer("client-node", ["node", Path(folder) / "client.mjs", through.kubeconfig], directory)
    if python := tool("KINF_PYTHON"):
        yield Informer("python", [python, Path(__file__).with_name("python_client.py"), through.kubeconfig], directory)


TRUTHS = []  # one for each list made by this program


class Changes:
    def __init__(self):
        self.count = 0

    def __call__(self, api):
        self.count += 1
        base = f"/api/v1/namespaces/{(A, B)[self.count % 2]}/configmaps"
        api.call("POST", base, json.dumps({"metadata": {"name": f"x-{self.count}"}, "data": {"n": str(self.count)}}))
        api.call("PATCH", f"/api/v1/namespaces/{A}/configmaps/m1", json.dumps({"data": {"n": str(self.count)}}),
                 "application/merge-patch+json")
        if self.count > 20:
            back = self.count - 20
            api.call("DELETE", f"/api/v1/namespaces/{(A, B)[back % 2]}/configmaps/x-{back}")


def truth(cluster):
    """The API server's state."""
    TRUTHS.append(1)
    items = json.loads(cluster.raw("/api/v1/configmaps"))["items"]
    return {f"{i['metadata']['namespace']}/{i['metadata']['name']}": i["metadata"]["resourceVersion"] for i in items}


def check_informers(kubeconfig, cluster, seconds):
    workspace, wrong, chance = Workspace(), [], random.Random(1)
    try:
        through = Through(workspace, kubeconfig)
        lists = cluster.lists_of("configmaps") - len(TRUTHS)  # kinf has made its own
        clients = list(informers(through, kubeconfig))
        for client in clients:
            eventually(lambda: len(client.state()) == len(truth(cluster)), 30, f"{client.name} has synced")
        kills = {}
        changes = Changes()
        with Churn(kubeconfig, changes, 0.02):
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                time.sleep(chance.uniform(0.2, 1.5))
                process = chance.choice(through.processes)
                process.kill(signal.SIGKILL)
                kills[process.name] = kills.get(process.name, 0) + 1
                time.sleep(chance.uniform(0, 0.3))
                process.start()
        for client in clients:
            try:
                eventually(lambda: client.state() == truth(cluster), 60, f"{client.name} has the API server's state",
                           patience=1)
            except AssertionError as error:
                wrong.append(str(error))
            relists = sum(1 for line in client.lines() if "list" in line) - 1
            if relists > 0 or any(line.get("error") == 410 for line in client.lines()):
                wrong.append(f"{client.name} has listed again {relists} times")
        gone = [line for line in through.served() if "status=410" in line]
        if gone:
            wrong.append(f"{len(gone)} answers of 410: {gone[0]}")
        again = cluster.lists_of("configmaps") - lists - len(TRUTHS)
        if again:
            wrong.append(f"{again} lists at the API server")
        print(f"{[client.name for client in clients]}: {changes.count} rounds of changes, kills {kills}, {len(gone)} answers of 410")
        for client in clients:
            client.close()
    finally:
        workspace.close()
    return wrong


# ---- k9s -----------------------------------------------------------------------------------------


def check_k9s(kubeconfig, cluster):
    k9s = tool("KINF_K9S")
    if not k9s:
        return []
    workspace, terminal = Workspace(), None
    try:
        through = Through(workspace, kubeconfig, forward="on")
        home = through.store.directory / "home-k9s"
        home.mkdir()
        terminal = Terminal([k9s, "--kubeconfig", through.kubeconfig, "-n", A, "-c", "pods", "--refresh", "2",
                             "--splashless"],
                            {"HOME": str(home), "XDG_CONFIG_HOME": str(home), "XDG_DATA_HOME": str(home),
                             "XDG_STATE_HOME": str(home)},
                            rows=40, columns=160, term="xterm")
        terminal.wait_text("p0", "p1", "p4", timeout=60)
        terminal.press("/p1\r")
        terminal.wait_text("p1", absent=["p0 ", "p4 "], timeout=60)
        terminal.press("d")
        terminal.wait_text("Name:         p1", "Image:        none:1", timeout=60)
        terminal.press("\x1b")
        terminal.wait_text("NAME", "p1", timeout=60)
        terminal.press("\x04")
        terminal.wait_text("Delete pods", "Cancel", timeout=60)
        terminal.press("\t\r")
        terminal.wait_text("Terminating", absent=["Cancel"], timeout=60)  # there is no kubelet
        assert json.loads(cluster.raw(f"/api/v1/namespaces/{A}/pods/p1"))["metadata"]["deletionTimestamp"]
        terminal.press("\x1b")
        terminal.wait_text("p0", "p4", timeout=60)
        for process in through.processes:
            process.kill(signal.SIGKILL)
            process.start()
        cluster.kubectl("create", "-f", "-", body=json.dumps({"apiVersion": "v1", "kind": "Pod",
                                                              "metadata": {"name": "made-later", "namespace": A},
                                                             "spec": {"containers": [{"name": "c", "image": "none:1"}]}}))
        terminal.wait_text("p0", "made-later", timeout=60)
        cluster.kubectl("delete", "pod", "-n", A, "made-later", "--grace-period=0", "--force")
        terminal.wait_text("p0", absent=["made-later"], timeout=60)
        print("k9s: shows, filters, describes and deletes pods, and shows what has changed while all was killed")
        return []
    except AssertionError as error:
        return [f"k9s: {error}"]
    finally:
        if terminal:
            terminal.close()
        workspace.close()


# ---- all -----------------------------------------------------------------------------------------


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=30, help="of changes and kills")
    args = parser.parse_args()
    kubeconfig = os.environ["KUBECONFIG"]
    cluster = Cluster(kubeconfig)
    prepare(cluster)
    wrong = check_kubectl(kubeconfig, cluster)
    wrong += check_informers(kubeconfig, cluster, args.seconds)
    wrong += check_k9s(kubeconfig, cluster)
    print("\n".join(wrong))
    print(f"{len(wrong)} differences" + (f"; skipped, because these are not set: {', '.join(SKIPPED)}" if SKIPPED else ""))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
