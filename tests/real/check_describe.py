#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares `kinf describe` with kubectl's on a real API server, $KUBECONFIG, object by object and
character by character apart from ages. The recorded objects belong together, and are made again;
tests/tables/record.py makes those in many states.

usage: KUBECONFIG=FILE tests/real/check_describe.py [--keep] [--all] [--most N] [--record] [RESOURCE...]
    --keep: make no objects; --all: print every difference and go on; --most: N objects of each
    kind; --record: write tests/describe/recorded.json for tests/scenario/test_describe.py
"""

import argparse
import difflib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "scenario"))
sys.path.insert(0, str(TESTS / "tables"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
from cluster import Cluster  # noqa: E402
from conftest import Workspace  # noqa: E402
from harness import eventually  # noqa: E402
from harness.describe import ageless, comparable, essential  # noqa: E402
from server import Server  # noqa: E402

RECORDED = TESTS / "describe" / "recorded.json"
# Others have their uids, and are made after them.
FIRST = ["Namespace", "Node", "Deployment", "ReplicaSet", "DaemonSet", "CronJob", "Pod"]
KINDS = ["pods", "nodes", "deployments.apps", "replicasets.apps", "daemonsets.apps", "statefulsets.apps", "jobs.batch",
         "cronjobs.batch", "services", "ingresses.networking.k8s.io", "persistentvolumeclaims", "persistentvolumes",
         "configmaps",
         "secrets", "serviceaccounts", "namespaces", "events", "widgets.tables.example"]


def make(server):
    """Makes the recorded objects again. They have other uids now, also where one names another."""
    paths, uids = server.resources(), {}
    items = [item for item in json.loads(RECORDED.read_text())["items"]
             if item["metadata"].get("namespace") != "tables"]
    for item in sorted(items, key=lambda item: [*FIRST, item["kind"]].index(item["kind"])):
        root = f"/api/{item['apiVersion']}/" if item["apiVersion"] == "v1" else f"/apis/{item['apiVersion']}/"
        resource = next(name for name, (path, kind, _) in paths.items()
                        if kind == item["kind"] and path.startswith(root))
        text = json.dumps(item)
        for old, new in uids.items():
            text = text.replace(old, new)
        uids[item["metadata"]["uid"]] = server.create(paths, resource, json.loads(text))


def recorded(cluster, texts):
    """All objects of the kinds in descriptions, unchanged, and kubectl's texts of those in `described`."""
    items = []
    for kind in [*KINDS, "endpointslices.discovery.k8s.io", "resourcequotas", "limitranges",
                 "leases.coordination.k8s.io",
                 "resourceslices.resource.k8s.io"]:
        for item in json.loads(cluster.kubectl("get", kind, "-A", "-o", "json"))["items"]:
            item["metadata"].pop("managedFields", None)
            wanted = item["metadata"].get("namespace") in ("described", "kube-node-lease", "limited") or (
                item.get("spec", {}).get("nodeName") == "node-1")
            if wanted or item["metadata"]["name"] in ("described", "limited", "node-1", "bare", "disk", "local",
                                                      "node-1.1", "node-1.2"):
                items.append(item)
    keep = {key: text for key, text in texts.items() if key.split()[1].startswith("described/") or key.split()[1] in (
        "described", "limited", "node-1", "bare", "disk", "local")}
    RECORDED.write_text(json.dumps(
        {"items": items, "texts": keep}, indent=1, sort_keys=True) + "\n")
    print(f"recorded {len(items)} objects, {len(keep)} texts")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--most", type=int, default=1 << 30)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("kinds", nargs="*")
    args = parser.parse_args()
    kubeconfig = os.environ["KUBECONFIG"]
    if not args.keep:
        make(Server(kubeconfig))
        subprocess.run([sys.executable, TESTS / "tables" / "record.py", "--no-record"], check=False)
    cluster = Cluster(kubeconfig)
    workspace = Workspace()
    equal = apart = older = different = 0
    texts = {}
    try:
        store = workspace.store()
        shutil.copy(kubeconfig, store.kubeconfig)
        store.configure({"resource": "*", "exclude": []})
        store.daemons()
        eventually(lambda: {f["state"] for f in store.kinf("status", "-o", "json",
                                                           check=True).json["feeds"]} == {"live"}, 120,
                                                           "all feeds live")
        for kind in args.kinds or KINDS:
            names = cluster.kubectl("get", kind, "-A", "-o",
                                    "jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name}{\"\\n\"}{end}",
                                    check=False)  # without --keep's objects there is no widget
            keys = names.split()
            for key in keys[:: max(1, len(keys) // args.most)]:
                namespace, _, name = key.partition("/")
                where = ["-n", namespace] if namespace else []
                # A name is a prefix for kubectl if there is no object of exactly the name.
                ours = comparable(store.kinf("describe", kind, name, *where, check=True).stdout)
                theirs = cluster.kubectl("describe", kind, name, *where)
                texts[f"{kind} {key.lstrip('/')}"] = theirs
                if ours == theirs:
                    equal += 1
                elif ageless(ours) == ageless(theirs):
                    apart += 1
                elif "Default Limit" in ours and sorted(ageless(ours)) == sorted(ageless(theirs)):
                    apart += 1  # kubectl prints the resources of a limit range in the order of a Go map
                elif essential(ours) == essential(theirs):
                    older += 1
                else:
                    different += 1
                    print(f"--- kinf describe {kind} {key}")
                    print("\n".join(line for line in difflib.unified_diff(theirs.splitlines(), ours.splitlines(), "kubectl", "kinf", lineterm="", n=1)))
                    assert args.all, f"{kind} {key} differs"
        print(f"{equal} descriptions equal kubectl's, {apart} more apart from ages, {older} more apart from what older "
              f"versions of kubectl print otherwise, {different} differ")
        if args.record:
            recorded(cluster, texts)
    finally:
        workspace.close()
    return different > 0


if __name__ == "__main__":
    sys.exit(main())
