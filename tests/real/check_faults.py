#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs both daemons with a real API server while objects change. The server is restarted, stopped,
frozen, compacted and restored from a backup, and revokes and grants rights. Within 60 s after each
fault the cache must equal the server exactly; at the end both daemons must be the original
processes. up.sh and down.sh of TOOLS (lab.py) start the cluster for the test and stop it.

usage: tests/real/check_faults.py TOOLS DIRECTORY [--port 7443] [--only NAME[,NAME]]
"""

import argparse
import json
import shutil
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scenario"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
from cluster import GROUP, NAMESPACES, PATHS, WIDGETS, Cluster  # noqa: E402
from compare import differences, objects_of  # noqa: E402
from conftest import Workspace  # noqa: E402
from harness import eventually  # noqa: E402
from harness.follow import replay, since_lapped  # noqa: E402
from harness.store import whole  # noqa: E402
from lab import Api, Churn, Lab  # noqa: E402

LIMIT = 60  # seconds from a fault's end until the cache equals the server
READER = "kinf-check-reader"  # service account, cluster role and binding of the daemons
FEEDS = ["configmaps", "secrets", "pods", "namespaces", "deployments.apps", WIDGETS]
API_GROUPS = ["", "apps", GROUP]


def role(*denied):
    """A cluster role to read the resources of all feeds but DENIED."""
    plurals = [feed.partition(".")[0] for feed in FEEDS if feed not in denied]
    rules = [{"apiGroups": API_GROUPS, "resources": plurals, "verbs": ["get", "list", "watch"]}]
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": READER},
            "rules": rules}


def binding():
    subject = {"kind": "ServiceAccount", "name": READER, "namespace": "kube-system"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": READER}
    meta = {"name": READER}
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": meta,
            "subjects": [subject], "roleRef": reference}


class Faults:
    def __init__(self, workspace, lab):
        self.lab, self.cluster = lab, Cluster(str(lab.kubeconfig))
        self.api = Api(lab.kubeconfig)
        self.store = workspace.store()
        self.token = self.store.directory / "token"
        self.count = 0
        self.healed = {}  # fault: seconds from its end until the cache was equal and all feeds live
        self.store.configure(*(whole(feed, pageSize=7) for feed in FEEDS), retention={"time": "20s", "size": "256MiB"})

    # ---- rights --------------------------------------------------------------------------------

    def new_token(self):
        """Replaces the token file of the daemons' account in one step, as kubelet does."""
        fresh = self.cluster.kubectl("create", "token", READER, "-n", "kube-system", "--duration=1h").strip()
        temporary = self.token.with_suffix(".new")
        temporary.write_text(fresh)
        temporary.rename(self.token)

    def write_kubeconfig(self):
        whole_config = json.loads(self.cluster.kubectl("config", "view", "--raw", "-o", "json"))
        whole_config["users"] = [{"name": "reader", "user": {"tokenFile": str(self.token)}}]
        whole_config["contexts"] = [{"name": "reader", "context": {"cluster": "kas", "user": "reader"}}]
        whole_config["current-context"] = "reader"
        self.store.kubeconfig.write_text(json.dumps(whole_config))

    def account(self):
        self.cluster.kubectl("create", "serviceaccount", READER, "-n", "kube-system")

    def allow(self, *denied):
        self.cluster.kubectl("apply", "-f", "-", body=json.dumps(role(*denied)))

    # ---- changes -------------------------------------------------------------------------------

    def change(self, api):
        """Creates an object, changes one, and removes an earlier one."""
        self.count += 1
        namespace = NAMESPACES[self.count % 2]
        base = f"/api/v1/namespaces/{namespace}/configmaps"
        body = {"metadata": {"name": f"x-{self.count}"}, "data": {"n": str(self.count)}}
        api.call("POST", base, json.dumps(body))
        patch = json.dumps({"metadata": {"annotations": {"n": str(self.count)}}})
        for path in (f"{base}/o-1", f"/apis/{GROUP}/v1/namespaces/{namespace}/widgets/o-1",
                     f"/apis/apps/v1/namespaces/{namespace}/deployments/o-1"):
            api.call("PATCH", path, patch, "application/merge-patch+json")
        if self.count > 20:
            api.call("DELETE", f"/api/v1/namespaces/{namespace}/configmaps/x-{self.count - 20}")

    def churn(self):
        return Churn(self.lab.kubeconfig, self.change)

    # ---- comparison ----------------------------------------------------------------------------

    def compare(self, feed):
        theirs = self.api.get(PATHS[feed])
        ours = objects_of(self.store.kinf("get", feed, "-o", "json", "--server-order", "--show-managed-fields",
                                          check=True).stdout)
        wrong = list(differences(ours, objects_of(theirs)))
        assert not wrong, f"{feed}: {len(wrong)} differ: " + "; ".join(wrong[:5])
        return True

    def equal(self, what, ended):
        """Waits until every feed equals the server and is live; returns the seconds since ENDED."""
        for feed in FEEDS:
            left = max(1, LIMIT - (time.monotonic() - ended))
            eventually(lambda: self.compare(feed), left, f"{feed} as in the cluster after '{what}'", patience=1)
        for feed in FEEDS:
            self.store.wait_live(feed, max(1, int(LIMIT - (time.monotonic() - ended))))
        healed = time.monotonic() - ended
        self.store.verify()
        return healed

    def pids(self):
        processes = self.store.kinf("status", "-o", "json", check=True).json["processes"]
        assert all(p["restarts"] == 0 for p in processes), processes
        return {p["name"]: p["pid"] for p in processes}

    def state(self, feed):
        return self.store.feed_status(feed)["state"]

    # ---- the faults ----------------------------------------------------------------------------

    def restart_of_the_api_server(self):
        self.lab.down("kas")
        self.lab.up()

    def etcd_stopped_for_a_minute(self):
        self.lab.down("etcd")
        time.sleep(60)
        self.lab.up()

    def compaction_and_restart(self):
        self.lab.compact()
        self.lab.down("kas")
        self.lab.up()

    def api_server_frozen_for_two_minutes(self):
        self.lab.pause("kas", 120)

    def etcd_restored_from_an_older_copy(self):
        self.lab.save()
        time.sleep(10)
        self.lab.restore()

    def token_revoked_then_rotated(self):
        self.cluster.kubectl("delete", "serviceaccount", READER, "-n", "kube-system")
        self.account()
        self.lab.down("kas")
        self.lab.up()  # the new server does not know the old token, and all watches have ended
        time.sleep(10)
        self.new_token()

    def rights_revoked_and_granted(self):
        before = self.store.objects("configmaps").keys()
        self.allow("configmaps")
        self.lab.down("kas")
        self.lab.up()
        eventually(lambda: self.state("configmaps") == "forbidden", 60, "the state forbidden")
        kept = self.store.objects("configmaps").keys()
        assert len(kept) >= len(before) // 2, "what was known is kept"
        self.allow()

    def custom_resource_removed_and_made_again(self):
        self.cluster.kubectl("delete", "crd", WIDGETS, "--wait=true", "--timeout=60s")
        eventually(lambda: self.state(WIDGETS) == "gone", 90, "the state gone")
        self.cluster.kubectl("create", "-f", "-", body=json.dumps(self.cluster.crd()))
        self.cluster.kubectl("wait", "--for=condition=Established", f"crd/{WIDGETS}", "--timeout=30s")
        self.cluster.create(*(self.cluster.widget(n, f"o-{i}") for n in NAMESPACES for i in range(3)))

    def schema_gets_a_default(self):
        """Each widget has another content then, and its old resourceVersion. Mostly the watch gets
        410 after it, but not while widgets change; then nothing but a list tells."""
        crd = self.cluster.crd()
        schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        kept = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        schema["properties"] = {"spec": {**kept, "default": {},
                                         "properties": {"flavour": {"type": "string", "default": "vanilla"}}}}
        self.cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", body=json.dumps(crd))
        time.sleep(3)
        self.store.kinf("relist", WIDGETS, check=True)

    # ---- run -----------------------------------------------------------------------------------

    def survive(self, fault):
        name = fault.__name__.replace("_", " ")
        begun = time.monotonic()
        with self.churn() as churn:
            fault()
            ended = time.monotonic()
        healed = self.equal(name, ended)
        assert healed <= LIMIT, f"{name}: {healed:.0f} s"
        assert self.pids() == self.started, f"{name}: a daemon was started again"
        self.healed[name] = healed
        print(f"{name}: {ended - begun:.0f} s, {churn.done} rounds of changes ({churn.failed} refused); "
              f"equal as text and live {healed:.0f} s after its end, verify --deep finds nothing", flush=True)

    def run(self, names):
        self.cluster.fill(40)
        self.account()
        self.allow()
        self.cluster.kubectl("create", "-f", "-", body=json.dumps(binding()))
        self.new_token()
        self.write_kubeconfig()
        self.store.run()
        self.store.wait_synced("configmaps", 60)
        self.equal("first sync", time.monotonic())
        self.started = self.pids()
        follower = self.store.follower("watch", "configmaps", "-o", "json", "--old")
        for name in names:
            self.survive(getattr(self, name))
        state = self.store.objects("configmaps")
        eventually(lambda: replay(since_lapped(follower.lines)) == state, 30, "the follower's state as the cache's")
        print(f"follower: {len(follower.lines)} lines, its state is the cache's", flush=True)
        for name, seconds in self.healed.items():
            print(f"{name:42} equal and live after {seconds:3.0f} s", flush=True)


ALL = [
    "restart_of_the_api_server",
    "compaction_and_restart",
    "token_revoked_then_rotated",
    "rights_revoked_and_granted",
    "custom_resource_removed_and_made_again",
    "schema_gets_a_default",
    "etcd_restored_from_an_older_copy",
    "etcd_stopped_for_a_minute",
    "api_server_frozen_for_two_minutes",
]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tools")
    parser.add_argument("directory")
    parser.add_argument("--port", type=int, default=7443)
    parser.add_argument("--only", type=lambda text: text.split(","), default=ALL)
    args = parser.parse_args()
    lab = Lab(args.tools, args.directory, args.port)
    workspace = Workspace()
    try:
        lab.up()
        Faults(workspace, lab).run(args.only)
        workspace.close()
    except BaseException:
        print(workspace.report(), flush=True)
        raise
    finally:
        for process in workspace.processes:
            if process.running:
                process.kill()
        lab.down()
    shutil.rmtree(workspace.directory)


if __name__ == "__main__":
    main()
