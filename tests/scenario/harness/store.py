# SPDX-License-Identifier: Apache-2.0
"""A store of a test: its configuration, kubeconfig and daemons, and the `kinf` command on it."""

import functools
import json
import re
import shutil
from pathlib import Path

import yaml

from harness import PATIENCE, eventually
from harness.process import Process, program, run_command
from harness.simulator import object_key


def write_kubeconfig(path, server, token=None, ca=None, insecure=False, namespace=None, cluster=None, user=None):
    """Writes a kubeconfig with one context; CLUSTER and USER are further keys of these entries. Returns PATH."""
    cluster = {"server": server, **(cluster or {})}
    if ca:
        cluster["certificate-authority"] = str(ca)
    if insecure:
        cluster["insecure-skip-tls-verify"] = True
    context = {"cluster": "simulated", "user": "tester"}
    if namespace:
        context["namespace"] = namespace
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "simulated",
        "clusters": [{"name": "simulated", "cluster": cluster}],
        "contexts": [{"name": "simulated", "context": context}],
        "users": [{"name": "tester", "user": {**({"token": token} if token else {}), **(user or {})}}],
    }
    Path(path).write_text(yaml.safe_dump(config, sort_keys=False))
    return path


def whole(resource, **settings):
    """A feed entry for kinf.yaml without `drop`: the test can compare whole objects."""
    return {"resource": resource, "drop": [], **settings}


def remove_in_use(path):
    """Removes a directory in use by running daemons: renames it first (it disappears in one step),
    and repeats the removal, since daemons may still create files in it."""
    trash = path.with_name(f"{path.name}.removed")
    path.rename(trash)

    def removed():
        shutil.rmtree(trash, ignore_errors=True)
        return not trash.exists()

    eventually(removed)


@functools.lru_cache(maxsize=1)
def different(ours, truth, where):
    """The keys of different objects in OURS, printed by `kinf get`, and in the cluster's TRUTH with
    WHERE true. Asked again about the same texts it does not parse them again."""
    ours = {object_key(o): o for o in json.loads(ours)["items"]}
    truth = {object_key(o): o for o in json.loads(truth) if where(o)}
    return sorted(key for key in ours.keys() | truth.keys() if ours.get(key) != truth.get(key))


PROXY_VARIABLES = [name for lower in ("http_proxy", "https_proxy", "no_proxy") for name in (lower, lower.upper())]


class Store:
    """A kinf installation in DIRECTORY: store, runtime directory, kinf.yaml, kubeconfig.

    reflector(), processor(), daemons() and run() start daemons; the fixture stops the running ones.
    """

    def __init__(self, directory, simulator=None, **kubeconfig):
        self.directory = Path(directory)
        self.path = self.directory / "store"
        self.runtime = self.directory / "run"
        self.config = self.directory / "kinf.yaml"
        self.kubeconfig = self.directory / "kubeconfig"
        self.runtime.mkdir(mode=0o700, exist_ok=True)
        self.processes = []
        if simulator:
            kubeconfig.setdefault("token", simulator.token)
            self.connect(simulator.url, **kubeconfig)

    def connect(self, server, **kubeconfig):
        """Writes the kubeconfig for SERVER."""
        write_kubeconfig(self.kubeconfig, server, **kubeconfig)

    @property
    def env(self):
        """The environment of all processes, without the configuration of the tests' user."""
        return {
            "HOME": str(self.directory),
            "KUBECONFIG": str(self.kubeconfig),
            "KINF_STORE": str(self.path),
            "KINF_RUNTIME_DIR": str(self.runtime),
            "KINF_CONFIG": str(self.config),
            "XDG_STATE_HOME": "",
            "XDG_RUNTIME_DIR": "",
            **dict.fromkeys(PROXY_VARIABLES, ""),
        }

    def configure(self, *feeds, **settings):
        """Writes kinf.yaml. A feed is a resource name or a dictionary as in the file."""
        config = {
            "cluster": {"kubeconfig": str(self.kubeconfig)},
            "store": str(self.path),
            **settings,
            "feeds": [feed if isinstance(feed, dict) else {"resource": feed} for feed in feeds],
        }
        new = self.config.with_suffix(".new")  # a daemon just starting finds the whole file
        new.write_text(yaml.safe_dump(config, sort_keys=False))
        new.replace(self.config)
        return self

    # ---- processes -----------------------------------------------------------------------------

    def process(self, name, argv, env=None):
        """A process with this store's environment; the caller starts it."""
        process = Process(name, argv, self.directory, {**self.env, **(env or {})})
        self.processes.append(process)
        return process

    def _daemon(self, name, options, env):
        argv = [program(name), "--config", self.config, "--runtime-dir", self.runtime, *options]
        return self.process(name, argv, env).start()

    def reflector(self, *options, env=None):
        return self._daemon("kinf-reflector", options, env)

    def processor(self, *options, env=None):
        return self._daemon("kinf-processor", options, env)

    def daemons(self):
        """Starts both daemons; returns (processor, reflector). The reflector starts first: the
        processor finds a journal."""
        reflector = self.reflector()
        return self.processor(), reflector

    def _start(self, wait, feeds, settings):
        daemons = self.configure(*feeds, **settings).daemons()
        first = feeds[0] if isinstance(feeds[0], dict) else {"resource": feeds[0]}
        wait(first.get("name", first["resource"]))
        return daemons

    def start(self, simulator, *feeds, **settings):
        """Starts both daemons on these FEEDS, waits until the first is as in the cluster, and returns them as daemons()."""
        return self._start(lambda feed: self.wait_equal(simulator, feed), feeds, settings)

    def start_synced(self, *feeds, **settings):
        """The same, until the first has been listed."""
        return self._start(self.wait_synced, feeds, settings)

    def start_live(self, *feeds, **settings):
        """The same, until the first is live."""
        return self._start(self.wait_live, feeds, settings)

    def run(self, *options, env=None):
        """Starts `kinf run`, the supervisor of both daemons."""
        argv = [program("kinf"), "run", "--config", self.config, "--runtime-dir", self.runtime, *options]
        return self.process("kinf-run", argv, env).start()

    def follower(self, *args, name="kinf-watch", env=None):
        """Starts a kinf command without an end of its own, e.g. follower("watch", "pods", "-o", "json")."""
        return self.process(name, [program("kinf"), *args], env).start()

    def kinf(self, *args, timeout=60, env=None, check=False):
        """Runs `kinf ARGS...`; with CHECK it must succeed."""
        return run_command([program("kinf"), *args], {**self.env, **(env or {})}, timeout, check=check)

    # ---- content -------------------------------------------------------------------------------

    def objects_text(self, feed, *args):
        """The output of `kinf get FEED -o json --show-managed-fields`."""
        return self.kinf("get", feed, *args, "-o", "json", "--show-managed-fields", check=True).stdout

    def objects(self, feed, *args):
        """Its objects as {namespace/name: object}."""
        return {object_key(o): o for o in json.loads(self.objects_text(feed, *args))["items"]}

    def feed_status(self, feed):
        status = self.kinf("status", "-o", "json", check=True).json
        found = [f for f in status["feeds"] if f["name"] == feed]
        assert found, f"no feed {feed}: {status}"
        return found[0]

    def _wait(self, state, feed, timeout):
        limit = f"{timeout * PATIENCE}s"
        self.kinf("wait", feed, "--for", state, "--timeout", limit, check=True, timeout=timeout + 10)

    def wait_synced(self, feed, timeout=30):
        self._wait("synced", feed, timeout)

    def wait_equal(self, simulator, feed, timeout=30, resource=None, where=lambda obj: True):
        """Waits until the feed has exactly the cluster's objects with WHERE true (default: all)."""

        def equal():
            keys = different(self.objects_text(feed), simulator.truth_text(resource or feed), where)
            assert not keys, keys[:20]
            return True

        eventually(equal, timeout, f"{feed} as in the cluster")

    def wait_live(self, feed, timeout=30):
        self._wait("live", feed, timeout)

    def last_event(self, feed):
        """The number of the newest event visible to a reader; the feed must have an object."""
        first = self.kinf("watch", feed, "-o", "json", "--count", "1", check=True).lines[0]
        assert first["initial"], first
        return first["event"]

    def copy(self, target):
        """Copies the store to TARGET; the holes, most of its files, stay holes."""
        run_command(["cp", "-a", "--sparse=always", self.path, target])
        return target

    def in_generation(self, part, look):
        """LOOK at the directory in use of "journal" or "index"; again if a daemon has put another in its place."""
        while True:
            current = (self.path / part / "CURRENT").read_text().strip()
            try:
                return look(self.path / part / current)
            except FileNotFoundError:
                if current == (self.path / part / "CURRENT").read_text().strip():
                    raise

    def lineage(self):
        """The journal's uuid, also while nothing runs."""
        text = self.in_generation("journal", lambda path: (path / "STATE").read_text())
        return re.search(r"(?m)^uuid (\w+)$", text)[1]

    def verify(self):
        """Asserts `kinf verify --deep` without a fault."""
        self.kinf("verify", "--deep", check=True)

    def stop(self):
        for process in reversed(self.processes):
            if process.running:
                process.stop()
        for process in self.processes:
            process.check()
