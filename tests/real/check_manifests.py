#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""packaging/kubernetes and `kinf config rbac` before a real API server, $KUBECONFIG of a throw-away
cluster: each kustomization passes the server's dry run; base/rbac.yaml is kinf's output for
base/kinf.yaml; and for several configurations, an account with exactly the roles printed by kinf
fills all feeds, and may do nothing else.

usage: KUBECONFIG=FILE tests/real/check_manifests.py
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scenario"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
from cluster import MARK, WIDGETS, Cluster  # noqa: E402
from conftest import Workspace  # noqa: E402
from harness import eventually  # noqa: E402
from harness.process import ROOT, program, run_command  # noqa: E402

MANIFESTS = ROOT / "packaging/kubernetes"
NAMESPACES = [f"{MARK}-a", f"{MARK}-b"]
# Feeds, further allowed actions, refused actions: (verb, resource, namespace or "").
CASES = {
    "manifest": (yaml.safe_load((MANIFESTS / "base/kinf.yaml").read_text())["feeds"],
                 [("list", "pods", ""), ("get", "nodes", "")],
                 [("list", "secrets", ""), ("create", "pods", ""), ("get", "pods/exec", ""), ("get", "nodes/proxy", ""),
                  ("list", "configmaps", "")]),
    "namespaces": ([{"resource": "configmaps", "namespaces": NAMESPACES}, {"resource": "nodes"},
                    {"resource": "secrets", "namespaces": NAMESPACES[:1], "fieldSelector": "metadata.name=o-1"}],
                   [("list", "configmaps", NAMESPACES[1]), ("get", "secrets/o-1", NAMESPACES[0])],
                   [("list", "configmaps", ""), ("list", "secrets", NAMESPACES[0]),
                    ("get", "secrets/o-2", NAMESPACES[0]), ("list", "pods", NAMESPACES[0])]),
    "custom": ([{"resource": WIDGETS}], [("watch", WIDGETS, "")], [("list", "pods", ""), ("delete", WIDGETS, "")]),
    "wildcard": ([{"resource": "*", "exclude": ["events", "secrets"]}], [("list", WIDGETS, ""), ("watch", "pods", "")],
                 [("get", "pods/exec", ""), ("get", "nodes/proxy", ""), ("create", "pods", ""),
                  ("delete", "nodes", "")]),
}


class Manifests:
    def __init__(self, cluster, workspace):
        self.cluster, self.workspace = cluster, workspace

    def apply(self, text, *options):
        return self.cluster.kubectl("apply", "-f", "-", *options, body=text)

    def dry_run(self):
        # Namespaced objects pass the dry run only if their namespace is there.
        for name in ("base", "operator/sidecar"):
            self.apply((MANIFESTS / name / "namespace.yaml").read_text())
        count = 0
        for directory in sorted(file.parent for file in MANIFESTS.rglob("kustomization.yaml")):
            text = self.cluster.kubectl("kustomize", str(directory))
            said = self.apply(text, "--dry-run=server", "--validate=strict")
            assert said.count("(server dry run)") == len(list(yaml.safe_load_all(text))), said
            count += said.count("\n")
        count += self.dry_run_restricted()
        client = (MANIFESTS / "serve/client.yaml").read_text()
        count += self.apply(client, "--dry-run=server", "--validate=strict").count("\n")
        return count

    def dry_run_restricted(self):
        """The operator's pod: the server only warns of templates, and refuses pods."""
        made = yaml.safe_load_all(self.cluster.kubectl("kustomize", str(MANIFESTS / "operator/sidecar")))
        template, = (found["spec"]["template"] for found in made if found["kind"] == "Deployment")
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "operator", "namespace": "operator-system"},
               "spec": template["spec"]}
        said = self.apply(json.dumps(pod), "--dry-run=server", "--validate=strict")
        pod["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
        refused = self.cluster.kubectl("apply", "-f", "-", "--dry-run=server", body=json.dumps(pod), check=False)
        assert "created" not in refused, "the namespace does not enforce 'restricted'"
        return said.count("(server dry run)")

    def rights(self, file, *options):
        result = run_command([program("kinf"), "config", "rbac", *options, file],
                             {"NODE_NAME": "node", "KINF_STORE": ""})
        assert result.status == 0, result
        return result.stdout

    def may(self, account, verb, what, namespace):
        resource, _, name = what.partition("/")
        where = ["-n", namespace] if namespace else ["-A"] if not name else []
        subresource = name in ("exec", "proxy")
        target = [resource, f"--subresource={name}"] if subresource else [what]
        return self.cluster.kubectl("auth", "can-i", verb, *target, *where, "--as", account,
                                    check=False).strip() == "yes"

    def case(self, name, feeds, granted, denied):
        store = self.workspace.store(name)
        store.configure(*feeds)
        account = f"{MARK}-{name}"
        self.apply(json.dumps({"apiVersion": "v1", "kind": "ServiceAccount",
                               "metadata": {"name": account, "namespace": NAMESPACES[0]}}))
        text = self.rights(store.config, "--name", account, "-n", NAMESPACES[0], "--service-account", account)
        assert all(list(o["metadata"]["name"] for o in [d])[0].startswith(account) for d in yaml.safe_load_all(text))
        self.apply(text)
        token = self.cluster.kubectl("create", "token", account, "-n", NAMESPACES[0]).strip()
        server = yaml.safe_load(Path(self.cluster.kubeconfig).read_text())["clusters"][0]["cluster"]
        store.connect(server["server"], token=token, ca=server["certificate-authority"])
        run = store.process("kinf-run", [program("kinf"), "run"], {"NODE_NAME": "node"}).start()

        def live():
            assert run.running, run.tail()
            rows = json.loads(store.kinf("status", "-o", "json", env={"NODE_NAME": "node"}).stdout
                              or "{}").get("feeds", [])
            return rows and all(row["state"] == "live" for row in rows) and {"rows": rows}

        rows = eventually(live, 60, f"{name}: all feeds live")["rows"]
        assert len(rows) >= sum(len(f.get("namespaces", [1])) for f in feeds)
        user = f"system:serviceaccount:{NAMESPACES[0]}:{account}"
        for verb, what, namespace in granted:
            assert self.may(user, verb, what, namespace), (name, verb, what, namespace)
        for verb, what, namespace in denied:
            assert not self.may(user, verb, what, namespace), (name, verb, what, namespace)
        # The namespace with the cluster's uid was readable: a store without its uid would ask again at each start.
        assert run.stop() == 0
        self.cluster.kubectl("delete", "-f", "-", "--wait=false", body=text)
        return len(rows)


def main():
    cluster = Cluster(os.environ["KUBECONFIG"])
    workspace = Workspace()
    manifests = Manifests(cluster, workspace)
    try:
        cluster.fill(2)
        made = manifests.rights(MANIFESTS / "base/kinf.yaml")
        assert made == (MANIFESTS / "base/rbac.yaml").read_text(), "run: NODE_NAME=node kinf config rbac base/kinf.yaml >base/rbac.yaml"
        assert made == manifests.rights(MANIFESTS / "serve/kinf.yaml")
        operator = MANIFESTS / "operator/sidecar"
        made = manifests.rights(operator / "kinf.yaml", "--name", "operator-kinf", "-n", "operator-system",
                                "--service-account", "operator")
        assert made == (operator / "rbac.yaml").read_text(), "its kinf.yaml says how to make it again"
        print(f"{manifests.dry_run()} objects of packaging/kubernetes pass the server's dry run")
        for name, case in CASES.items():
            print(f"{name}: {manifests.case(name, *case)} feeds live with the rights that kinf config rbac prints, and no others")
    except BaseException:
        print(workspace.report(), file=sys.stderr)
        raise
    finally:
        cluster.remove()
        subprocess.run(["kubectl", "--kubeconfig", cluster.kubeconfig, "delete", "namespace", "kinf-system",
                        "operator-system", "--wait=false",
                        "--ignore-not-found"], check=False, capture_output=True)
        workspace.close()


if __name__ == "__main__":
    main()
