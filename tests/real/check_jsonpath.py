#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the output and exit status of `kinf get -o jsonpath=` and `-o custom-columns=` with
kubectl's, for random templates. The objects are copies of the pods of a real API server,
$KUBECONFIG, as custom resources: no controller changes them. kubectl gives the values of a map in
random order, so outputs of '..' and '.*' are compared without their order. Each difference must be
named in docs/kubectl.md, or be an answer where kubectl refuses.

usage: KUBECONFIG=FILE tests/real/check_jsonpath.py [--templates N] [--seed N]
"""

import argparse
import collections
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scenario"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
from check_formats import body  # noqa: E402
from cluster import Cluster  # noqa: E402
from conftest import Workspace  # noqa: E402
from harness.store import whole  # noqa: E402
from jsonpath_templates import OF_OBJECT, Templates  # noqa: E402

NAMESPACE = f"kinf-check-jsonpath-{os.getpid()}"  # the one before may still be ending
GROUP = "kinf-check-jsonpath.example.com"
PODS = 12

# kubectl's reasons to refuse, answered by kinf (docs/kubectl.md, Different).
ANSWERED = {
    "several values": "can only compare one element at a time",
    "types": "incompatible types for comparison|invalid type for comparison",
    "no list": "is not array or slice",
    "no item": "array index out of bounds|starting index .* is greater than",
    "quotes": "unquote string|unterminated filter|unclosed array expect",
    "print": "can't print type",
}
# kinf's reasons to refuse, answered by kubectl: kubectl notices a mistake only at such an object.
REFUSED = {
    "open range": "a range has no {end}",
    "constant": "expected a path, a number, true, false or a quoted text",
    "operator": r"expected '\)' or one of",
    "quotes": "the quote does not end",
    "bracket": r"expected '\*', a number",
}


def custom_resource_definition():
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": f"copies.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced",
                 "names": {"plural": "copies", "singular": "copy", "kind": "Copy"}, "versions": [version]},
    }  # fmt: skip


def copies(cluster):
    """Copies of pods of different shapes, the most different first; of pods made here if the cluster has none."""
    shapes = {}
    for pod in json.loads(cluster.raw("/api/v1/pods?limit=300"))["items"]:
        meta, spec, status = pod["metadata"], pod["spec"], pod["status"]
        shape = (len(spec["containers"]), status.get("phase"), bool(spec.get("initContainers")),
                 len(meta.get("annotations", {})))
        shapes.setdefault(shape, pod)
    pods = [*shapes.values()][:PODS] or [body(number) for number in range(PODS)]
    for number, pod in enumerate(pods):
        meta = {key: pod["metadata"][key] for key in ("labels", "annotations") if key in pod["metadata"]}
        meta |= {"name": f"p{number}", "namespace": NAMESPACE}
        yield {"apiVersion": f"{GROUP}/v1", "kind": "Copy", "metadata": meta, "spec": pod["spec"],
               "status": pod.get("status", {})}


def reason(table, text):
    return next((name for name, pattern in table.items() if re.search(pattern, text)), None)


class Comparison:
    def __init__(self, cluster, store):
        self.cluster, self.store = cluster, store
        self.counts = collections.Counter()
        self.faults = []

    def theirs(self, output):
        words = ["kubectl", "--kubeconfig", self.cluster.kubeconfig, "get", f"copies.{GROUP}", "-n", NAMESPACE, "-o",
                 output]
        return subprocess.run(words, capture_output=True, text=True, timeout=120)

    def compare(self, output, theirs):
        ours = self.store.kinf("get", f"copies.{GROUP}", "-n", NAMESPACE, "-o", output)
        if theirs.returncode == 0 and ours.status == 0:
            loose = re.search(r"\.\.|\.\*|,\*|\*,", output)  # kubectl has no order of a map's values
            same = sorted(theirs.stdout) == sorted(ours.stdout) if loose else theirs.stdout == ours.stdout
            self.note("equal" if same else None, output, theirs.stdout, ours.stdout)
        elif theirs.returncode == 0:
            self.note(reason(REFUSED, ours.stderr), output, theirs.stdout, ours.stderr, "kinf alone refuses: ")
        elif ours.status == 0:
            self.note(reason(ANSWERED, theirs.stderr), output, theirs.stderr, ours.stdout, "kubectl alone refuses: ")
        else:
            self.note("both refuse", output, "", "")

    def note(self, name, output, theirs, ours, why=""):
        self.counts[why + name if name else "DIFFERENT"] += 1
        if not name:
            self.faults.append(f"{output!r}\n  kubectl {theirs[-600:]!r}\n  kinf    {ours[-600:]!r}")


def outputs(seed, n):
    templates = Templates(seed)
    for template in templates.some(n):
        yield f"jsonpath={template}"
    for number in range(n // 10):
        heads = [f"H{number}:{templates.pick(*OF_OBJECT)}", f"F:.spec.containers{templates.filter()}.name",
                 f"S:.status.conditions[{number % 3}:].type"]
        yield "custom-columns=" + ",".join(heads)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--templates", type=int, default=150)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    args = parser.parse_args()
    cluster = Cluster(os.environ["KUBECONFIG"])
    workspace = Workspace()
    try:
        cluster.kubectl("apply", "-f", "-", body=json.dumps(custom_resource_definition()))
        cluster.kubectl("wait", "--for=condition=Established", f"crd/copies.{GROUP}", "--timeout=30s")
        cluster.kubectl("apply", "-f", "-", body=json.dumps({"apiVersion": "v1", "kind": "Namespace",
                                                             "metadata": {"name": NAMESPACE}}))
        for copy in copies(cluster):
            cluster.kubectl("create", "-f", "-", body=json.dumps(copy))
        store = workspace.store()
        shutil.copy(os.environ["KUBECONFIG"], store.kubeconfig)
        store.configure(whole(f"copies.{GROUP}")).daemons()
        store.wait_live(f"copies.{GROUP}")
        comparison = Comparison(cluster, store)
        wanted = [*outputs(args.seed, args.templates)]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for output, theirs in zip(wanted, pool.map(comparison.theirs, wanted)):
                comparison.compare(output, theirs)
        for name, count in comparison.counts.most_common():
            print(f"{count:5} {name}")
        assert not comparison.faults, f"seed {args.seed}:\n" + "\n".join(comparison.faults)
        assert comparison.counts["equal"] > args.templates / 5
    finally:
        workspace.close()
        cluster.kubectl("delete", "crd", f"copies.{GROUP}", "--ignore-not-found", check=False)
        cluster.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", "--wait=false", check=False)


if __name__ == "__main__":
    main()
