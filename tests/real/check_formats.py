#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes pods in a real API server, $KUBECONFIG, and compares the output of `kinf get` in the
formats of -o with kubectl's, byte by byte. (check_world.py does so for all objects of every kind.)

usage: KUBECONFIG=FILE tests/real/check_formats.py
"""

import difflib
import json
import os
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scenario"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
from cluster import Cluster  # noqa: E402
from conftest import Workspace  # noqa: E402
from harness.store import whole  # noqa: E402

NAMESPACE = "kinf-check-formats"
ONE = "pods p3 -n " + NAMESPACE
ALL = "pods -n " + NAMESPACE
SCOPED = "namespaces -l made-by=" + NAMESPACE

TEMPLATES = [
    "{.items[*].metadata.name}",
    "{.items[*].metadata.labels}",
    "{.items[0].spec.containers[0].image}{\"\\n\"}",
    "{range .items[*]}{.metadata.name}{\"\\t\"}{.spec.containers[*].image}{\"\\n\"}{end}",
    "{range .items[*]}{range .spec.containers[*]}{.name}{end};{end}",
    "{.items[?(@.metadata.name==\"p2\")].spec.containers[0].resources}",
    "{.items[?(@.spec.priority>2)].metadata.name}",
    "{.items[*]['metadata.name','metadata.labels.app']}",
    "{.items[1:3].metadata.name} {.items[-1].metadata.name}",
    "{..image}",
    "{.kind} {.apiVersion} {.nothing}",
    "{.items[*].metadata.annotations.kinf\\.example\\.com/note}",
    "{.items[*].spec.terminationGracePeriodSeconds}{.items[*].spec.nothing}",
    "names: {.items[*].metadata.name}, {3} {true} {\"quoted\"} {'single'}",
    "{.items[3].spec.containers[*].resources.requests}",
    "{range .items[*]}{.metadata.nothing}x{end}",
    "{@.items[0].metadata.name}{$.items[1].metadata.name}",
]
OF_ONE = ["{.metadata.name}", "{.spec}", "{.spec.containers}", "{.metadata['name','namespace']}",
          "{range .spec.containers[*]}{.name} {end}", "{}"]
COLUMNS = [
    "NAME:.metadata.name",
    "NAME:.metadata.name,IMAGES:.spec.containers[*].image,GRACE:spec.terminationGracePeriodSeconds",
    "L:.metadata.labels,C:{.spec.containers},NONE:.spec.none",
    "A:.metadata.annotations.kinf\\.example\\.com/note,R:.spec.containers[0].resources.requests.memory",
]


def body(number):
    containers = [{"name": f"c{n}", "image": f"image:{number}.{n}"} for n in range(1 + number % 3)]
    containers[0]["resources"] = {"requests": {"memory": f"{number}Mi", "cpu": "100m"}}
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": f"p{number}", "namespace": NAMESPACE,
                     "labels": {"app": "ab"[number % 2], "n": str(number)},
                     "annotations": {"kinf.example.com/note": f"<&> \"{number}\" ä"}},
        "spec": {"containers": containers, "priority": 0, "terminationGracePeriodSeconds": number},
    }  # fmt: skip


class Formats:
    def __init__(self, cluster, store):
        self.cluster, self.store = cluster, store
        self.equal = 0

    def compare(self, words, *output):
        words = words.split()
        ours = self.store.kinf("get", *words, *output, check=True).stdout
        theirs = self.cluster.kubectl("get", *words, *output)
        assert ours == theirs, "".join(difflib.unified_diff(theirs.splitlines(True), ours.splitlines(True),
                                                            f"kubectl get {words} {output}", "kinf", n=3))
        self.equal += 1

    def all(self, directory):
        for form in ("json", "yaml", "name"):
            for words in (ONE, ALL, f"{ALL} -l app=a", f"pod/p1 pod/p2 -n {NAMESPACE}", SCOPED,
                          f"pods,configmaps -n {NAMESPACE}"):
                self.compare(words, "-o", form)
                self.compare(words, f"-o={form}")
                self.compare(words, "-o", form, "--show-managed-fields=true")
        for template in TEMPLATES:
            self.compare(ALL, "-o", f"jsonpath={template}")
            self.compare(ALL, "-o", f"jsonpath-as-json={template}")
            (directory / "template").write_text(template + "\n")
            self.compare(ALL, "-o", f"jsonpath-file={directory}/template")
        for template in OF_ONE:
            self.compare(ONE, "-o", f"jsonpath={template}")
            self.compare(ONE, "-o", f"jsonpath-as-json={template}")
        for columns in COLUMNS:
            for words in (ONE, ALL, f"{ALL} --no-headers", f"{ALL} --sort-by=.spec.terminationGracePeriodSeconds"):
                self.compare(words, "-o", f"custom-columns={columns}")
            heads, paths = zip(*(column.split(":", 1) for column in columns.split(",")))
            (directory / "columns").write_text("  ".join(heads) + "\n" + " ".join(paths) + "\n")
            self.compare(ALL, "-o", f"custom-columns-file={directory}/columns")
        for path in (".metadata.name", "{.metadata.labels.n}", ".spec.containers[0].resources.requests.memory",
                     ".metadata.labels.app"):
            self.compare(f"{ALL} --sort-by={path}", "-o", "name")
        for missing in ("-o=json", "-o=yaml", "-o=name", "-o=jsonpath={.x}"):
            self.compare(f"pods none -n {NAMESPACE} --ignore-not-found", missing)
        self.compare(f"pods none p1 -n {NAMESPACE} --ignore-not-found", "-o=name")


def main():
    cluster = Cluster(os.environ["KUBECONFIG"])
    objects = [body(number) for number in range(9)]
    objects.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": NAMESPACE},
                    "data": {"a": "1\n", "b": " x"}})
    workspace = Workspace()
    try:
        cluster.make_namespaces(NAMESPACE, labels={"made-by": NAMESPACE})
        for one in objects:
            cluster.kubectl("apply", "-f", "-", body=json.dumps(one))
        store = workspace.store()
        shutil.copy(os.environ["KUBECONFIG"], store.kubeconfig)
        store.configure(whole("pods"), whole("namespaces"), whole("configmaps")).daemons()
        for feed in ("pods", "namespaces", "configmaps"):
            store.wait_live(feed)
        formats = Formats(cluster, store)
        formats.all(workspace.directory)
        print(f"{formats.equal} outputs equal to kubectl's")
    finally:
        workspace.close()
        cluster.kubectl("delete", "pods,configmaps", "--all", "-n", NAMESPACE, "--force", "--grace-period=0",
                        check=False)
        cluster.kubectl("delete", f"namespace/{NAMESPACE}", "--wait=false", check=False)


if __name__ == "__main__":
    main()
