#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Fills a store with all resources of a real API server, $KUBECONFIG, and compares the tables of
`kinf get` with kubectl's, character by character apart from ages: default, -o wide, labels, several
kinds. tests/tables/record.py makes objects of each kind in many states; only objects it could make
are compared.

usage: KUBECONFIG=FILE tests/real/check_tables.py [--keep]    (--keep: make no objects)
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scenario"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
from cluster import Cluster  # noqa: E402
from conftest import Workspace  # noqa: E402
from harness import eventually  # noqa: E402
from harness.describe import AGE, ageless  # noqa: E402


class Tables:
    def __init__(self, cluster, store):
        self.cluster, self.store = cluster, store
        self.equal = self.apart = 0  # lines

    def compare(self, ours, theirs):
        """Ages pass while both commands run, so the texts are compared a few times; then without their ages."""
        for _ in range(5):
            mine = self.store.kinf("get", *ours, check=True).stdout
            kubectl = self.cluster.kubectl("get", *theirs)
            if mine == kubectl:
                self.equal += len(mine.splitlines())
                return
        for a, b in zip(ageless(mine) + [""] * 9, ageless(kubectl) + [""] * 9):
            assert a == b, f"kinf get {' '.join(ours)}:\n  kinf    {a}\n  kubectl {b}"
        assert AGE.findall(mine) != AGE.findall(kubectl), f"kinf get {' '.join(ours)}: blanks differ\n{mine}\n{kubectl}"
        self.apart += len(mine.splitlines())

    def all(self, paths):
        for resource, namespaced in sorted(paths.items()):
            every = ["-A"] if namespaced else []
            labels = ["--show-labels", "-L", "app,kubernetes.io/bootstrapping"]
            if resource.startswith("ipaddresses"):  # a cell too many; kubectl puts it under a label
                labels = []
            for options in ([], ["-o", "wide"], labels, ["--no-headers"],
                            ["--show-kind", "-o", "wide"]):
                self.compare([resource, *options], [resource, *every, *options])
            if namespaced:
                self.compare([resource, "-n", "tables"], [resource, "-n", "tables"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep", action="store_true", help="make no objects")
    args = parser.parse_args()
    kubeconfig = os.environ["KUBECONFIG"]
    if not args.keep:
        subprocess.run([sys.executable, Path(__file__).resolve().parents[1] / "tables" / "record.py", "--no-record"], check=False)
    cluster = Cluster(kubeconfig)
    workspace = Workspace()
    try:
        store = workspace.store()
        shutil.copy(kubeconfig, store.kubeconfig)
        store.configure({"resource": "*", "exclude": []})
        store.daemons()
        paths = {}
        for line in cluster.kubectl("api-resources", "--verbs=list,watch", "--no-headers").splitlines():
            name, version, namespaced = line.split()[0], *line.split()[-3:-1]
            paths[name + ("." + version.split("/")[0] if "/" in version else "")] = namespaced == "true"
        eventually(lambda: {f["state"] for f in store.kinf("status", "-o", "json", check=True).json["feeds"]} == {"live"}, 120, "all feeds live")
        paths = {name: it for name, it in paths.items() if any(f["resource"] == name for f in store.kinf("status", "-o", "json", check=True).json["feeds"])}
        tables = Tables(cluster, store)
        tables.all(paths)
        tables.compare(["pods,services,deployments.apps"], ["pods,services,deployments.apps", "-A"])
        # A custom resource may be in the category `all`, unknown to the store.
        core = [name for name in cluster.kubectl("api-resources", "--categories=all", "-o", "name").split()
                if "." not in name or name.split(".", 1)[1] in ("apps", "batch", "autoscaling")]
        tables.compare(["all", "-n", "tables"], [",".join(core), "-n", "tables"])
        if cluster.kubectl("get", "pods", "running", "-n", "tables", "--ignore-not-found"):
            tables.compare(["pods/running", "services/cluster", "pods/evicted", "-n", "tables"],
                           ["pods/running", "services/cluster", "pods/evicted", "-n", "tables"])
        print(f"{len(paths)} kinds: {tables.equal} lines equal kubectl's, {tables.apart} more apart from ages")
    finally:
        workspace.close()


if __name__ == "__main__":
    main()
