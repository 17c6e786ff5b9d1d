# SPDX-License-Identifier: Apache-2.0
"""The throw-away cluster: the objects created, changed and removed by check_real.py."""

import json
import random
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scenario"))
from harness.objects import ODD_VALUES, odd_widget  # noqa: E402

MARK = "kinf-check"
NAMESPACES = [f"{MARK}-a", f"{MARK}-b"]
GROUP = f"{MARK}.example.com"
WIDGETS = f"widgets.{GROUP}"
LABELS = {"made-by": MARK}
# The resources of the feeds and their API paths.
PATHS = {
    "configmaps": "/api/v1/configmaps",
    "secrets": "/api/v1/secrets",
    "services": "/api/v1/services",
    "pods": "/api/v1/pods",
    "namespaces": "/api/v1/namespaces",
    "deployments.apps": "/apis/apps/v1/deployments",
    "customresourcedefinitions.apiextensions.k8s.io": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    WIDGETS: f"/apis/{GROUP}/v1/widgets",
}
UNSTORABLE = {"huge"}  # servers refuse a number beyond a double
CHURNED = ["configmaps", "deployments.apps", WIDGETS]


class Cluster:
    def __init__(self, kubeconfig):
        self.kubeconfig = kubeconfig
        self.chance = random.Random(1)

    # ---- kubectl -------------------------------------------------------------------------------

    def kubectl(self, *args, body=None, check=True):
        done = subprocess.run(
            ["kubectl", "--kubeconfig", self.kubeconfig, *args], input=body, capture_output=True, text=True, timeout=120
        )
        assert not check or done.returncode == 0, f"kubectl {' '.join(args)}: {done.stderr}"
        return done.stdout

    def raw(self, path):
        return self.kubectl("get", "--raw", path)

    def lists_of(self, resource):
        """The server's count of LISTs of RESOURCE."""
        name, _, group = resource.partition(".")
        wanted = (f'verb="LIST"', f'resource="{name}"', f'group="{group}"', 'subresource=""')
        total = 0
        for line in self.raw("/metrics").splitlines():
            if line.startswith("apiserver_request_total{") and all(part in line for part in wanted):
                total += float(line.rsplit(" ", 1)[1])
        return int(total)

    def all_paths(self):
        """{plural[.group]: path} of all resources with list and watch, in the preferred version."""
        roots = [("", ["/api/v1"])]
        for group in json.loads(self.raw("/apis"))["groups"]:
            versions = [group["preferredVersion"], *group["versions"]]
            roots.append((group["name"], [f"/apis/{v['groupVersion']}" for v in versions]))
        paths = {}
        for group, versions in roots:
            for root in versions:
                for resource in json.loads(self.raw(root))["resources"]:
                    if {"list", "watch"} <= set(resource["verbs"]) and "/" not in resource["name"]:
                        name = resource["name"] + ("." + group if group else "")
                        paths.setdefault(name, f"{root}/{resource['name']}")
        return paths

    # ---- objects -------------------------------------------------------------------------------

    def make_namespaces(self, *names, labels=None):
        """Makes namespaces ready for pods: no controller gives them a service account."""
        for name in names:
            for kind, meta in (("Namespace", {"name": name, "labels": labels or {}}),
                               ("ServiceAccount", {"name": "default", "namespace": name})):
                self.kubectl("apply", "-f", "-", body=json.dumps(
                    {"apiVersion": "v1", "kind": kind, "metadata": meta}))

    def create(self, *objects):
        """Creates an object. JSON text is a widget, sent without kubectl, since kubectl would
        change the spelling of numbers."""
        for text in (obj for obj in objects if isinstance(obj, str)):
            namespace = json.loads(text)["metadata"]["namespace"]
            self.kubectl("create", "--raw", f"/apis/{GROUP}/v1/namespaces/{namespace}/widgets", "-f", "-", body=text)
        others = [json.dumps(obj) for obj in objects if not isinstance(obj, str)]
        if others:
            self.kubectl("create", "-f", "-", body="\n".join(others))

    def crd(self):
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        names = {"plural": "widgets", "singular": "widget", "kind": "Widget"}
        return {
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": WIDGETS, "labels": LABELS},
            "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
        }

    def widget(self, namespace, name):
        """The text of a custom resource, without a schema, with every odd value."""
        values = [pair for pair in ODD_VALUES if pair[0] not in UNSTORABLE]
        return odd_widget(name, namespace, values).replace("example.com/v1", f"{GROUP}/v1")

    def some(self, resource, namespace, name):
        meta = {"name": name, "namespace": namespace, "labels": LABELS, "annotations": {"a.b/c": "grün", "number": "1.0"}}
        container = {"name": "c", "image": "none:1", "resources": {"limits": {"cpu": "1500m"}}}
        template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
        return {
            "configmaps": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a.b": "1", "z": "", "a": "日本"}},
            "secrets": {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": {"k": "AAEC"}},
            "services": {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"ports": [{"port": 80}]}},
            "pods": {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container]}},
            "deployments.apps": {
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta,
                "spec": {"selector": {"matchLabels": {"app": name}}, "template": template},
            },
            WIDGETS: self.widget(namespace, name),
        }[resource]

    def fill(self, count):
        self.create(*({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": n, "labels": LABELS}} for n in NAMESPACES))
        self.create(self.crd())
        self.kubectl("wait", "--for=condition=Established", f"crd/{WIDGETS}", "--timeout=30s")
        for namespace in NAMESPACES:
            for resource in PATHS:
                if resource in ("namespaces", "customresourcedefinitions.apiextensions.k8s.io"):
                    continue
                number = count if resource in CHURNED else 3
                self.create(*(self.some(resource, namespace, f"o-{n}") for n in range(number)))

    def change(self):
        """Creates, modifies and deletes a few objects of several kinds."""
        resource, namespace = self.chance.choice(CHURNED), self.chance.choice(NAMESPACES)
        name = f"x-{self.chance.randrange(1 << 30)}"
        self.create(self.some(resource, namespace, name))
        patch = json.dumps({"metadata": {"annotations": {"changed": name}}})
        self.kubectl("patch", resource, "-n", namespace, f"o-{self.chance.randrange(3)}", "--type=merge", "-p", patch)
        if self.chance.random() < 0.7:
            self.kubectl("delete", resource, "-n", namespace, name, "--wait=false")

    def remove(self):
        self.kubectl("delete", "crd", WIDGETS, "--ignore-not-found", "--wait=false", check=False)
        for namespace in NAMESPACES:
            for resource in PATHS:
                if resource not in ("namespaces", WIDGETS) and "customresource" not in resource:
                    self.kubectl("delete", resource, "-n", namespace, "--all", "--wait=false", "--grace-period=0", "--force", check=False)
            # Without a controller a namespace ends only when nothing finalizes it.
            self.kubectl("delete", "namespace", namespace, "--ignore-not-found", "--wait=false", check=False)
            found = self.kubectl("get", "namespace", namespace, "-o", "json", "--ignore-not-found", check=False)
            if found:
                body = json.loads(found)
                body["spec"]["finalizers"] = []
                self.kubectl("replace", "--raw", f"/api/v1/namespaces/{namespace}/finalize", "-f", "-", body=json.dumps(body), check=False)
