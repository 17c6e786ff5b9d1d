#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs both daemons with a real API server, $KUBECONFIG, as a playground of the test.

  1. It creates objects of several kinds, custom resources with odd values among them, and compares
     every object of the cache with the server's answer: spelling of values, order of keys.
  2. It changes objects for a while, kills the daemons at random, compares again, and runs `kinf
     verify --deep`.
  3. It kills both daemons, changes objects, starts the daemons and compares again; the server's
     count of requests must show no LIST.
  4. It fills another store with the wildcard `all`: the feeds must be the resources of the server's
     discovery without events, and every object must equal the server's.

It removes its objects. usage: KUBECONFIG=FILE tests/real/check_real.py [--seconds 60] [--streaming]
"""

import argparse
import os
import random
import shutil
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scenario"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
from cluster import PATHS, WIDGETS, Cluster  # noqa: E402
from compare import differences, objects_of  # noqa: E402
from conftest import Workspace  # noqa: E402
from harness import eventually  # noqa: E402
from harness.follow import replay  # noqa: E402
from harness.store import whole  # noqa: E402


class Check:
    def __init__(self, workspace, cluster, streaming):
        self.cluster, self.workspace = cluster, workspace
        self.store = workspace.store()
        self.chance = random.Random(1)
        self.kills = 0
        shutil.copy(cluster.kubeconfig, self.store.kubeconfig)
        feeds = [whole(resource, pageSize=7) for resource in PATHS]
        self.store.configure(*feeds, retention={"time": "5s", "size": "256MiB"}, streamingLists=streaming)

    def compare(self, resource, store=None, path=None):
        ours = objects_of((store or self.store).kinf("get", resource, "-o", "json", "--server-order",
                                                     "--show-managed-fields", check=True).stdout)
        wrong = list(differences(ours, objects_of(self.cluster.raw(path or PATHS[resource]))))
        assert not wrong, f"{resource}: {len(wrong)} differ: " + "; ".join(wrong[:5])
        return len(ours)

    def equal(self, when):
        """Compares every object of every kind; returns their number."""
        total = 0
        for resource in PATHS:
            found = []
            eventually(lambda: found.append(self.compare(resource)) or True, 60, f"{resource} as in the cluster")
            total += found[-1]
        self.store.verify()
        print(f"{when}: {total} objects of {len(PATHS)} kinds equal as text, verify --deep finds nothing", flush=True)

    def everything(self):
        paths = self.cluster.all_paths()
        wanted = {name: path for name, path in paths.items() if name.partition(".")[0] != "events"}
        store, total = self.workspace.store("everything"), []
        shutil.copy(self.cluster.kubeconfig, store.kubeconfig)
        store.configure(whole("all"))
        begun = time.monotonic()
        store.run()

        def fed():
            feeds = {f["name"]: f["state"] for f in store.kinf("status", "-o", "json", check=True).json["feeds"]}
            assert feeds == dict.fromkeys(wanted, "live"), feeds
            return True

        eventually(fed, 60, f"{len(wanted)} feeds live")
        seconds = time.monotonic() - begun
        for name, path in wanted.items():
            eventually(lambda: total.append(self.compare(name, store, path)) or True, 30, f"{name} as in the cluster")
        store.verify()
        print(f"all: {len(wanted)} feeds live after {seconds:.1f} s, {sum(total)} objects equal as text", flush=True)

    def churn(self, seconds):
        """Kills daemons while another thread changes objects."""
        end = time.monotonic() + seconds
        failed = []

        def change():
            try:
                while time.monotonic() < end:
                    self.cluster.change()
            except Exception as error:  # the caller reports it
                failed.append(error)

        changes = threading.Thread(target=change)
        changes.start()
        while time.monotonic() < end:
            for process in self.chance.choice([self.daemons[:1], self.daemons[1:], self.daemons]):
                process.kill()
                process.start()
                self.kills += 1
            changes.join(self.chance.uniform(0.05, 1.5))
        changes.join()
        assert not failed, failed[0]

    def bookmarked(self):
        """Changes an object of each feed, to make their versions recent; waits until all feeds are live."""
        for resource in PATHS:
            self.store.wait_live(resource, 60)

    def restart_without_list(self):
        self.bookmarked()
        before = {resource: self.cluster.lists_of(resource) for resource in PATHS}
        for process in self.daemons:
            process.kill()
        for _ in range(5):
            self.cluster.change()
        for process in self.daemons:
            process.start()
        self.bookmarked()
        # Waits for the changes by name: a list by this script would change the server's count of LISTs.
        rv = self.cluster.kubectl("get", WIDGETS, "-n", "kinf-check-a", "o-0", "-o",
                                  "jsonpath={.metadata.resourceVersion}")
        self.store.kinf("get", WIDGETS, "--at-least-rv", rv, "--timeout", "20s", "-o", "count", check=True)
        after = {resource: self.cluster.lists_of(resource) for resource in PATHS}
        assert before == after, f"listed: {[r for r in PATHS if before[r] != after[r]]}"
        assert sum(before.values()) > 0, "the server counts no lists: its metrics cannot be read"
        print(f"restart of everything: 0 LISTs (the server counts {sum(before.values())} before and after)", flush=True)

    def run(self, seconds):
        begun = time.monotonic()
        self.cluster.fill(40)
        self.daemons = list(self.store.daemons())
        self.equal("first sync")
        follower = self.store.follower("watch", WIDGETS, "-o", "json", "--old", "--cursor", "real")
        eventually(lambda: '"type":"SYNC"' in follower.out)
        self.churn(seconds)
        self.equal(f"after {seconds:g} s of changes and {self.kills} kills")
        state = self.store.objects(WIDGETS)
        eventually(lambda: replay(follower.lines) == state, 30, "the follower's state as the cache's")
        print(f"follower: {len(follower.lines)} lines, each once and in order", flush=True)
        self.restart_without_list()
        self.equal("after the restart")
        self.everything()
        print(f"{time.monotonic() - begun:.0f} s", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--streaming", action="store_true", help="lists as streams (watch-list)")
    args = parser.parse_args()
    kubeconfig = os.environ.get("KUBECONFIG")
    if not kubeconfig:
        sys.exit("check-real: KUBECONFIG is not set; name a throw-away cluster: objects are created and removed in it")
    cluster = Cluster(os.path.abspath(kubeconfig))
    workspace = Workspace()
    cluster.remove()
    try:
        Check(workspace, cluster, args.streaming).run(args.seconds)
        workspace.close()
    except BaseException:
        print(workspace.report())
        raise
    finally:
        cluster.remove()
    shutil.rmtree(workspace.directory)


if __name__ == "__main__":
    main()
