#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Uses the product on a lifelike cluster, $KUBECONFIG: thousands of pods of all states, many kinds,
names with escapes, kinds of two groups. tests/README.md describes the start of such a cluster.

  exact    every object of every kind in the cache is the API server's, character by character, at
           one resourceVersion
  churn    the cluster changes for a while and each process is killed again and again; then the
           cache equals the log of the changes, kinf-serve answers so, every object is exact, and
           no kill caused a list
  kubectl  each kubectl of $KINF_KUBECTL prints the same through kinf-serve as from the API server,
           for every kind
  kinf     kinf prints the same as kubectl, for every kind: tables, YAML, JSON, names, jsonpath,
           custom columns

The last two need a cluster at rest: its controllers are stopped.

usage: KUBECONFIG=FILE tests/real/check_world.py [--churn PROGRAM DIRECTORY] [--minutes M] [--rate R] [--most N]
       [--resources RESOURCE...] PART...
"""

import argparse
import concurrent.futures
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scenario"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
from check_clients import MASKS  # noqa: E402
from cluster import Cluster  # noqa: E402
from compare import differences, objects_of  # noqa: E402
from conftest import Workspace  # noqa: E402
from harness import eventually  # noqa: E402
from harness.process import program  # noqa: E402
from harness.store import whole  # noqa: E402

# Commands with another output through kinf-serve, or from kinf, with the reasons.
APART = {
    "get flowschemas.flowcontrol.apiserver.k8s.io": "docs/serve.md: the server's table is by precedence, which pages can't be",
    "get ipaddresses.networking.k8s.io --show-labels": "the server sends a cell too many, which kubectl puts under LABELS",
    "get storageclasses.storage.k8s.io standard": "docs/serve.md: (default) is behind each default class",
    "kinf get endpoints": "kubectl repeats the server's warning of a deprecated kind",
    "describe storageclasses.storage.k8s.io standard": "as in its table",
}


def spelled(text):
    """The value of a JSON text, with the order of members and the spelling of numbers."""
    return json.loads(text, object_pairs_hook=tuple, parse_float=str, parse_int=lambda n: ("int", n))


class World:
    def __init__(self, workspace, kubeconfig, resources):
        self.resources = resources
        self.cluster = Cluster(str(kubeconfig))
        self.workspace = workspace
        self.store = workspace.store()
        shutil.copy(kubeconfig, self.store.kubeconfig)
        begun = time.monotonic()
        self.store.configure(*map(whole, resources or ["all"]), serve={"listen": ["unix", "127.0.0.1:0"], "auth": "self", "forward": "on"},
                             retention={"time": "10m", "size": "4GiB"})
        self.processes = [*self.store.daemons(), self.store.process("kinf-serve", [program("kinf-serve"), "-v"]).start()]
        self.wrong = []
        eventually(self.live, 120, "all feeds live")
        self.paths = {name: path for name, path in self.cluster.all_paths().items() if name in self.feeds}
        counts = {name: feed["objects"] for name, feed in self.feeds.items()}
        print(f"{len(counts)} feeds with {sum(counts.values())} objects live after {time.monotonic() - begun:.0f} s; "
              f"{counts.get('pods')} pods", flush=True)
        addresses = (self.store.path / "serve" / "addresses").read_text().splitlines()
        address = next(line.split(" ")[2] for line in addresses if line.startswith("api https "))
        self.store.config.write_text(self.store.config.read_text().replace("127.0.0.1:0", address))
        self.through = self.store.directory / "through"
        self.through.write_text(self.store.kinf("kubeconfig", check=True).stdout)

    def live(self):
        self.feeds = {f["resource"]: f for f in self.store.kinf("status", "-o", "json").json["feeds"]}
        assert self.feeds, "no feeds"
        late = {name: feed["state"] for name, feed in self.feeds.items() if feed["state"] != "live"}
        assert not late, late
        return True

    # ---- exact ---------------------------------------------------------------------------------

    def same_as_server(self, resource):
        """The cache's objects beside the server's at the resourceVersion of the cache's list. Returns their number."""
        ours = self.store.kinf("get", resource, "-o", "json", "--server-order", "--show-managed-fields", check=True).stdout
        rv = json.loads(ours)["metadata"]["resourceVersion"]
        path = self.paths[resource] + f"?resourceVersion={rv}&resourceVersionMatch=Exact"
        try:
            theirs = self.cluster.raw(path)
        except AssertionError:  # compacted: a feed without bookmarks may be older
            theirs = self.cluster.raw(self.paths[resource])
        mine, their = ({item[1]: item for item in self.items(text)} for text in (ours, theirs))
        if mine != their:
            wrong = list(differences(objects_of(ours), objects_of(theirs)))
            assert not wrong, f"{resource} at {rv}: {len(wrong)} differ: " + "; ".join(wrong[:5])
        return len(mine)

    def exists(self, resource):
        """Whether the server has the resource: definitions come and go while the cluster changes."""
        try:
            self.cluster.raw(self.paths[resource] + "?limit=1")
        except AssertionError as error:
            assert "could not find the requested resource" in str(error), error
            return False
        return True

    @staticmethod
    def items(text):
        """The items as (kind of nothing, key, members) without kind and apiVersion (left out in
        lists of built-in kinds)."""
        for item in dict(spelled(text))["items"] or []:
            members = [m for m in item if m[0] not in ("kind", "apiVersion")]
            meta = dict(dict(members)["metadata"])
            yield "", f"{meta.get('namespace', '')}/{meta['name']}", members

    def exact(self, when):
        begun, total = time.monotonic(), []
        for resource in sorted(self.resources or self.paths):
            eventually(lambda: not self.exists(resource) or total.append(self.same_as_server(resource)) or True, 60,
                       f"{resource} as in the cluster", patience=1)
        self.store.verify()
        print(f"{when}: {sum(total)} objects of {len(total)} kinds equal the server's, verify --deep finds nothing "
              f"({time.monotonic() - begun:.0f} s)", flush=True)

    # ---- churn ---------------------------------------------------------------------------------

    def churn(self, tool, directory, minutes, rate):
        chance, kills, log = random.Random(1), {}, self.store.directory / "churn.log"
        with open(log, "wb") as out:
            changes = subprocess.Popen([tool, directory, "--minutes", str(minutes), "--rate", str(rate)], stdout=out)
            while changes.poll() is None:
                time.sleep(chance.uniform(1, 8))
                process = chance.choice(self.processes)
                process.kill(signal.SIGKILL)
                kills[process.name] = kills.get(process.name, 0) + 1
                time.sleep(chance.uniform(0, 1))
                process.start()
        assert changes.returncode == 0, f"{tool}: exit {changes.returncode}"
        print(f"churn: {json.loads(log.read_text().splitlines()[-1])}, kills {kills}", flush=True)
        eventually(self.live, 120, "all feeds live", patience=1)
        result = {}

        def checked():
            """The log may be out of date: a pod of a stateful set comes again by its name. The API
            server says so too."""
            nonlocal result
            sides = [subprocess.run([tool, directory, "--check", log, *more], capture_output=True, text=True, check=False)
                     for more in ([], ["--kubeconfig", self.through])]
            for done in sides:
                assert done.returncode in (0, 1) and done.stdout, done.stderr[-1000:]
            server, result = (json.loads(done.stdout) for done in sides)
            assert result == server, f"through kinf-serve {result}, at the API server {server}"
            return True

        eventually(checked, 60, "kinf-serve answers what the API server does about the log of the changes", patience=1)
        assert result["objects"] > 0 and len(result["wrong"]) * 20 < result["objects"], result
        print(f"churn: {result['objects']} changed and {result['deleted']} deleted objects, {len(result['wrong'])} of them not as the log says, "
              "the same through kinf-serve and at the API server", flush=True)
        listed = re.findall(r' feed_listed feed="([^"]+)"', self.processes[1].log)
        # A changed definition takes the server's watch cache of its resource away.
        expired = re.findall(r' feed_failed feed="([^"]+)" kind="expired"', self.processes[1].log)
        again = {feed: listed.count(feed) for feed in set(listed) if listed.count(feed) > 1 + expired.count(feed)}
        assert not again, f"the reflector listed feeds more than once: {again}"
        print(f"churn: {len(set(listed))} feeds were listed once, {len(set(expired))} of them again after a 410; "
              "no kill caused a list", flush=True)

    # ---- kubectl through kinf-serve ---------------------------------------------------------------

    def compare(self, name, sides):
        """Runs both commands until their lines are equal apart from MASKS, a few times."""
        for _ in range(4):
            lines = [self.run(argv) for argv in sides]
            if lines[0] == lines[1]:
                return None
        status, out, err = (list(pair) for pair in zip(*lines))
        for a, b in zip(*(side + ["(end)"] for side in (out if out[0] != out[1] else err))):
            if a != b:
                return f"{name}: exit {status[0]} and {status[1]}:\n    {a[:300]}\n    {b[:300]}"
        return f"{name}: exit {status[0]} and {status[1]}, {[len(lines) for lines in out]} lines, {err[0][-3:]} {err[1][-3:]}"

    def run(self, argv):
        done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False,
                              env={**self.store.env, "PATH": os.environ["PATH"], "KUBECONFIG": ""})
        return done.returncode, masked(done.stdout), masked(done.stderr)

    def all(self, what, pairs):
        begun, equal, apart = time.monotonic(), 0, 0
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for (name, _), problem in zip(pairs, pool.map(lambda pair: self.compare(*pair), pairs)):
                known = next((key for key in APART if key in name), None)
                equal += not problem
                apart += bool(problem and known)
                if problem and not known:
                    self.wrong.append(problem)
                    print(problem, flush=True)
        print(f"{what}: {equal} of {len(pairs)} commands print the same lines, {apart} are known to differ "
              f"({time.monotonic() - begun:.0f} s)", flush=True)

    def names(self, resource, most):
        """Up to MOST objects of a resource, as arguments naming each."""
        # Keys from metadata: names may have any character but a slash.
        text = self.store.kinf("get", resource, "-o", "json", check=True).json["items"]
        metas = [item["metadata"] for item in text]
        step = max(1, len(metas) // most)
        for meta in metas[::step][:most]:
            yield [resource, meta["name"], *(["-n", meta["namespace"]] if "namespace" in meta else [])]

    def kubectl(self, kubectls, most):
        for number, path in enumerate(kubectls):
            home = self.store.directory / f"kubectl-{number}"
            pairs = []

            def add(*argv, path=path, home=home, pairs=pairs):
                sides = [[path, "--kubeconfig", str(config), "--cache-dir", f"{home}-{i}", *argv]
                         for i, config in enumerate((self.store.kubeconfig, self.through))]
                pairs.append((f"{Path(path).name} {shlex.join(argv)}", sides))

            for resource in sorted(self.resources or self.paths):
                forms = [[], ["-o", "wide"], ["-o", "name"]]
                if number == 0:
                    forms += [["--show-labels"], ["-o", "yaml"], ["-o", "json"], [f"--chunk-size={max(7, self.feeds[resource]['objects'] // 50)}"], ["--chunk-size=0"], ["--sort-by=.metadata.name"]]
                for form in forms:
                    add("get", resource, "-A", *form)
                for words in self.names(resource, most if number == 0 else 1):
                    add("get", *words, "-o", "yaml")
                    add("describe", *words)
            self.all(Path(path).name, pairs)

    # ---- kinf beside kubectl -----------------------------------------------------------------------

    def kinf(self, kubectl, most):
        pairs = []

        def add(theirs, ours):
            common = [kubectl, "--kubeconfig", str(self.store.kubeconfig), "--cache-dir", str(self.store.directory / "kubectl")]
            pairs.append((f"kinf {shlex.join(ours)}", [[*common, *theirs], [program("kinf"), *ours]]))

        for resource in sorted(self.resources or self.paths):
            for form in ([], ["-o", "wide"], ["-o", "name"], ["--show-labels"], ["-o", "yaml"], ["-o", "json"],
                         ["-o", "jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name} {.metadata.uid}{'\\n'}{end}"],
                         ["-o", "custom-columns=N:.metadata.name,L:.metadata.labels,O:.metadata.ownerReferences[*].name"]):
                add(["get", resource, "-A", *form], ["get", resource, *form])
            for words in self.names(resource, most):
                for form in ([], ["-o", "yaml"], ["-o", "json"]):
                    add(["get", *words, *form], ["get", *words, *form])
        self.all("kinf", pairs)


def masked(text):
    for pattern, word in MASKS:
        text = pattern.sub(word, text)
    return [line.rstrip() for line in text.splitlines()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--churn", nargs=2, metavar=("PROGRAM", "DIRECTORY"))
    parser.add_argument("--minutes", type=float, default=4)
    parser.add_argument("--rate", type=float, default=5)
    parser.add_argument("--most", type=int, default=3, help="objects of each kind that are looked at one by one")
    parser.add_argument("--resources", nargs="+", help="these only (default: all)")
    parser.add_argument("parts", nargs="+", choices=["exact", "churn", "kubectl", "kinf"])
    args = parser.parse_args()
    kubeconfig = Path(os.environ["KUBECONFIG"]).resolve()
    kubectls = [path for path in os.environ.get("KINF_KUBECTL", shutil.which("kubectl") or "").split(":") if path]
    workspace = Workspace()
    try:
        world = World(workspace, kubeconfig, args.resources)
        if "exact" in args.parts:
            world.exact("first sync")
        if "churn" in args.parts:
            world.churn(*args.churn, args.minutes, args.rate)
            world.exact("after the churn")
        if "kubectl" in args.parts:
            world.kubectl(kubectls, args.most)
        if "kinf" in args.parts:
            world.kinf(kubectls[0], args.most)
        print(f"{len(world.wrong)} differences")
        sys.exit(1 if world.wrong else 0)
    except BaseException as error:
        if not isinstance(error, SystemExit):
            print(workspace.report())
        raise
    finally:
        workspace.close()


if __name__ == "__main__":
    main()
