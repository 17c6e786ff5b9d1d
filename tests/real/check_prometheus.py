#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Prometheus' service discovery, through a kinf-serve filled from a real API server, $KUBECONFIG:
one Prometheus finds the targets of each role twice, at the API server itself and through
kinf-serve. Both must have the same labels: at the beginning, after changes, and after changes while
kinf-serve was killed with SIGKILL. Prometheus is $KINF_PROMETHEUS, or the one in PATH; it is
skipped if there is none, or one without this service discovery, as Debian's. From the source: `go
build -tags remove_all_sd,enable_kubernetes_sd ./cmd/prometheus`.

usage: KUBECONFIG=FILE tests/real/check_prometheus.py      It creates and removes objects.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scenario"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
from check_clients import Through  # noqa: E402
from check_serve import A, prepare  # noqa: E402
from cluster import Cluster  # noqa: E402
from conftest import Workspace  # noqa: E402
from harness import eventually  # noqa: E402

ROLES = ["pod", "node", "service", "endpoints", "endpointslice", "ingress"]


def find_program():
    found = os.environ.get("KINF_PROMETHEUS") or shutil.which("prometheus")
    if not found:
        print("skipped: there is no prometheus ($KINF_PROMETHEUS)")
        sys.exit(0)
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as config:  # invalid in any case
        yaml.safe_dump({"scrape_configs": [{"job_name": "j", "kubernetes_sd_configs": [{"role": "none"}]}]}, config)
        tried = subprocess.run([found, f"--config.file={config.name}"], capture_output=True, text=True, timeout=60)
    if "kubernetes_sd_configs not found" in tried.stderr:
        print(f"skipped: {found} has no service discovery of Kubernetes, as Debian's")
        sys.exit(0)
    return found


class Objects:
    """The target objects. Addresses of pods and nodes are in their status, with no other writer here."""

    def __init__(self, cluster):
        self.cluster = cluster

    def make(self, *objects):
        self.cluster.kubectl("apply", "-f", "-", body="\n".join(json.dumps(o) for o in objects))

    def status(self, kind, name, status):
        self.cluster.kubectl("patch", kind, name, "-n", A, "--subresource=status", "--type=merge", "-p",
                             json.dumps({"status": status}))

    def pod(self, name, address):
        ports = [{"name": "web", "containerPort": 80}, {"containerPort": 90, "protocol": "UDP"}]
        meta = {"name": name, "namespace": A, "labels": {"app": "t", "a.b/c-d": "1"},
                "annotations": {"prometheus.io/scrape": "true"}}
        self.make({"apiVersion": "v1", "kind": "Pod", "metadata": meta,
                   "spec": {"nodeName": "kinf-serve-0", "containers": [{"name": "c", "image": "none:1", "ports": ports}]}})
        self.status("pod", name, {"podIP": address, "podIPs": [{"ip": address}], "phase": "Running",
                                  "hostIP": "10.9.0.1"})

    def node(self, name, address):
        self.status("node", name, {"addresses": [{"type": "InternalIP", "address": address},
                                                 {"type": "Hostname", "address": name}],
                                   "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}}})

    def service(self, name, *pods):
        ports = [{"name": "web", "port": 80}]
        meta = {"name": name, "namespace": A, "labels": {"svc": name}}
        addresses = [{"ip": ip, "targetRef": {"kind": "Pod", "name": pod, "namespace": A}, "nodeName": "kinf-serve-0"}
                     for pod, ip in pods]
        endpoints = [{"addresses": [a["ip"]], "conditions": {"ready": True}, "targetRef": a["targetRef"],
                      "nodeName": "kinf-serve-0"} for a in addresses]
        self.make(
            {"apiVersion": "v1", "kind": "Service", "metadata": meta,
             "spec": {"ports": ports, "selector": {"app": "t"}}},
            {"apiVersion": "v1", "kind": "Endpoints", "metadata": meta,
             "subsets": [{"addresses": addresses, "ports": ports}]},
            {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
             "endpoints": endpoints,
             "metadata": {**meta, "name": f"{name}-x", "labels": {"kubernetes.io/service-name": name}}, "ports": ports},
            {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": meta,
             "spec": {"rules": [{"host": f"{name}.example", "http": {"paths": [
                {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": name, "port": {"number": 80}}}}]}}]}})

    def remove(self):
        self.cluster.kubectl("delete", "pods,services,endpoints,endpointslices.discovery.k8s.io,ingresses.networking.k8s.io", "--all", "-n", A,
                             "--grace-period=0", "--force")


class Prometheus:
    """Discovers, and scrapes nothing: the targets do not exist."""

    def __init__(self, program, directory, kubeconfigs):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        jobs = [{"job_name": f"{role}-{side}", "kubernetes_sd_configs": [{"role": role, "kubeconfig_file": str(path)}]}
                for role in ROLES for side, path in kubeconfigs.items()]
        config = directory / "prometheus.yml"
        config.write_text(yaml.safe_dump({"global": {"scrape_interval": "1h", "scrape_timeout": "1s"},
                                          "scrape_configs": jobs}))
        self.log = directory / "prometheus.log"
        with open(self.log, "wb") as log:
            self.popen = subprocess.Popen([program, f"--config.file={config}", f"--storage.tsdb.path={directory}/tsdb",
                                           f"--web.listen-address={self.address}"], stdout=log, stderr=log)

    def targets(self):
        """{job: the labels of its targets}."""
        try:
            with urllib.request.urlopen(f"http://{self.address}/api/v1/targets", timeout=10) as answer:
                found = json.load(answer)["data"]
        except OSError:
            return {}
        jobs = {}
        for target in found["activeTargets"] + found["droppedTargets"]:
            labels = target["discoveredLabels"]
            jobs.setdefault(labels.pop("job"), []).append(sorted(labels.items()))
        return {job: sorted(targets) for job, targets in jobs.items()}

    def close(self):
        self.popen.kill()
        self.popen.wait()


def check_equal(prometheus, what, *words):
    """Waits until both sides are equal and each of WORDS is among the labels."""

    def settled():
        targets = prometheus.targets()
        return all(targets.get(f"{role}-through") and targets[f"{role}-through"] == targets.get(f"{role}-server")
                   for role in ROLES) \
            and all(word in json.dumps(targets) for word in words) and targets

    try:
        targets = eventually(settled, 60, what)
    except AssertionError:
        targets = prometheus.targets()
        sides = {role: [targets.get(f"{role}-{side}", []) for side in ("server", "through")] for role in ROLES}
        return [f"{what}: {role}: server {[t for t in a if t not in b]} kinf-serve {[t for t in b if t not in a]}"
                for role, (a, b) in sides.items() if a != b or not a] or [f"{what}: not all of {words} are there"]
    print(f"{what}: equal:", ", ".join(f"{len(targets[f'{role}-server'])} targets of {role}" for role in ROLES))
    return []


def check(cluster, kubeconfig, program):
    workspace, prometheus, wrong = Workspace(), None, []
    objects = Objects(cluster)
    try:
        for number in range(4):
            objects.pod(f"t{number}", f"10.1.0.{number}")
        objects.node("kinf-serve-0", "10.9.0.1")
        objects.node("kinf-serve-1", "10.9.0.2")
        objects.service("first", ("t0", "10.1.0.0"), ("t1", "10.1.0.1"))
        through = Through(workspace, kubeconfig)
        prometheus = Prometheus(program, through.store.directory, {"server": kubeconfig, "through": through.kubeconfig})
        wrong += check_equal(prometheus, "at the beginning", "10.1.0.3")
        objects.pod("t9", "10.1.0.9")
        objects.service("second", ("t9", "10.1.0.9"))
        cluster.kubectl("label", "node", "kinf-serve-1", "zone=z1", "--overwrite")
        wrong += check_equal(prometheus, "after changes", "10.1.0.9", "z1")
        through.serve.kill(signal.SIGKILL)
        objects.pod("t10", "10.1.0.10")
        objects.service("second", ("t9", "10.1.0.9"), ("t10", "10.1.0.10"))
        cluster.kubectl("delete", "pod", "t0", "-n", A, "--grace-period=0", "--force")
        cluster.kubectl("label", "node", "kinf-serve-1", "zone=z2", "--overwrite")
        through.serve.start()
        # Prometheus reads the pods of a slice when the slice changes, not when a pod does; its
        # watches come back in any order.
        eventually(lambda: "10.1.0.10" in json.dumps(prometheus.targets().get("pod-through")), 60, "the new pod")
        cluster.kubectl("annotate", "endpointslices.discovery.k8s.io", "--all", "-n", A, "touched=yes")
        wrong += check_equal(prometheus, "after kill -9 of kinf-serve", "10.1.0.10", "z2", "touched")
        gone = [line for line in through.served() if "status=410" in line]
        if gone:
            wrong.append(f"{len(gone)} answers of 410: {gone[0]}")
    finally:
        if prometheus:
            prometheus.close()
        workspace.close()
        objects.remove()
    return wrong


def main():
    program = find_program()
    kubeconfig = os.environ["KUBECONFIG"]
    cluster = Cluster(kubeconfig)
    prepare(cluster)
    wrong = check(cluster, kubeconfig, program)
    print("\n".join(wrong))
    print(f"{len(wrong)} differences")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
