# SPDX-License-Identifier: Apache-2.0
"""Compares kinf with client-go's informer on one real API server with some 20,000 pods.

KINF_BASELINE names its measuring program, KUBECONFIG the cluster. Runs are paired: in each round
every contender syncs once, one after the other: all see the machine in the same moods.
"""

import http.client
import json
import os
import random
import re
import ssl
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from machine import Place, measured, median, note, run

BASELINES = {
    "typed": ["--kind", "typed"],
    "typed_list": ["--kind", "typed", "--page-size", "500", "--watchlist=false"],
    "dynamic": ["--kind", "dynamic"],
}
PATCHES, RATE = 500, 50


class Server:
    """A persistent connection to the API server of a kubeconfig with a bearer token."""

    def __init__(self, kubeconfig):
        config = yaml.safe_load(Path(kubeconfig).read_text())
        context = next(c["context"] for c in config["contexts"] if c["name"] == config["current-context"])
        cluster = next(c["cluster"] for c in config["clusters"] if c["name"] == context["cluster"])
        user = next(u["user"] for u in config["users"] if u["name"] == context["user"])
        tls = ssl.create_default_context(cafile=cluster["certificate-authority"])
        self.connection = http.client.HTTPSConnection(urlsplit(cluster["server"]).netloc, context=tls)
        self.headers = {"Authorization": f"Bearer {user['token']}"}

    def ask(self, method, path, body=None, **headers):
        self.connection.request(method, path, body, {**self.headers, **headers})
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{method} {path}: {answer.status} {text[:200]!r}")
        return text

    def lists_of_pods(self):
        """The number of LISTs of pods answered by the server since its start."""
        metrics = self.ask("GET", "/metrics").decode()
        found = re.findall(r'^apiserver_request_total\{([^}]*)\} (\S+)', metrics, re.M)
        return sum(float(n) for labels, n in found if 'resource="pods"' in labels and 'verb="LIST"' in labels)

    def patch(self, key, number, run_id):
        namespace, name = key.split("/")
        note_ = {"metadata": {"annotations": {"baseline.example/ts": f"{run_id} {number} {time.time_ns()}"}}}
        self.ask("PATCH", f"/api/v1/namespaces/{namespace}/pods/{name}", json.dumps(note_),
                 **{"Content-Type": "application/merge-patch+json"})


def wait_synced(place):
    while not (place.store / "index" / "CURRENT").exists():  # before, kinf has nothing to wait on
        for daemon in place.daemons:
            daemon.check()
        time.sleep(0.005)
    run([place.program("kinf"), "wait", "pods", "--for", "synced", "--timeout", "120s", "--store", place.store])


def start(place, env=None):
    reflector = place.daemon("kinf-reflector", env=env)
    processor = place.daemon("kinf-processor")
    return reflector, processor


def our_sync(build, kubeconfig):
    """Measures the time and CPU from the start of the processes, with an empty store, until they are synced."""
    with Place(build, kubeconfig) as place:
        begin = time.monotonic()
        reflector, processor = start(place)
        wait_synced(place)
        figures = {
            "sync_s": time.monotonic() - begin,
            "reflector_cpu_s": reflector.cpu,
            "processor_cpu_s": processor.cpu,
            "reflector_peak_private_mib": reflector.peak / 2**20,
            "processor_peak_private_mib": processor.peak / 2**20,
        }
        figures["cpu_s"] = figures["reflector_cpu_s"] + figures["processor_cpu_s"]
        figures["objects"] = int(place.kinf("get", "pods", "-o", "count"))
    return figures


def baseline(command, *options, kubeconfig):
    return measured([os.environ["KINF_BASELINE"], "--kubeconfig", kubeconfig, command, *options])


def their_sync(options, kubeconfig):
    figures = baseline("sync", *options, kubeconfig=kubeconfig)
    return {
        "sync_s": figures["sync_ms"] / 1000,
        "cpu_s": (figures["cpu_user_ms"] + figures["cpu_sys_ms"]) / 1000,
        "peak_mib": figures["peak_rss_mb"],
        "objects": figures["objects"],
    }


def medians(rounds):
    return {name: median([r[name] for r in rounds]) for name in rounds[0]}


def syncs(build, kubeconfig, rounds):
    results = {"kinf": [], **{name: [] for name in BASELINES}}
    for i in range(rounds):
        note(f"first sync, round {i + 1} of {rounds}")
        results["kinf"].append(our_sync(build, kubeconfig))
        for name, options in BASELINES.items():
            results[name].append(their_sync(options, kubeconfig))
    ratios = {name: median([ours["cpu_s"] / theirs["cpu_s"]
                            for ours, theirs in zip(results["kinf"], results[name])]) for name in BASELINES}
    return {"rounds": results, "median": {name: medians(r) for name, r in results.items()}, "cpu_ratio": ratios}


def restart(build, kubeconfig):
    """The number of LISTs of pods after a restart of both daemons."""
    server = Server(kubeconfig)
    with Place(build, kubeconfig) as place:
        start(place)
        wait_synced(place)
        place.stop()
        before = server.lists_of_pods()
        start(place)
        run([place.program("kinf"), "wait", "pods", "--for", "live", "--timeout", "60s", "--store", place.store])
        time.sleep(1)
        return {"lists_after_restart": server.lists_of_pods() - before}


def follow_patches(place, server, stamp, *words):
    """The figures of a follower while pods are patched one at a time; WORDS: options of watchlag.c."""
    listed = json.loads(place.kinf("get", "pods", "--limit", "2000", "-o", "json"))["items"]
    keys = [f"{o['metadata']['namespace']}/{o['metadata']['name']}" for o in listed]
    follower = subprocess.Popen([place.program("bench/watchlag"), place.store, stamp, str(PATCHES), *words],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if follower.stderr.readline() != "ready\n":
        raise RuntimeError(f"watchlag: {follower.stderr.read()}")
    run_id = time.time_ns()
    begin = time.monotonic()
    for i in range(PATCHES):
        time.sleep(max(0, begin + i / RATE - time.monotonic()))
        server.patch(random.choice(keys), i, run_id)
    out, complaint = follower.communicate(timeout=90)
    if follower.returncode != 0:
        raise RuntimeError(f"watchlag: {complaint}")
    return json.loads(out)


def our_latency(build, kubeconfig):
    with Place(build, kubeconfig) as place, tempfile.NamedTemporaryFile(dir="/dev/shm") as stamp:
        stamp.write(bytes(16))
        stamp.flush()
        start(place, {"LD_PRELOAD": str(place.program("bench/preload.so")), "KINF_BENCH_STAMP": stamp.name})
        wait_synced(place)
        run([place.program("kinf"), "wait", "pods", "--for", "live", "--timeout", "60s", "--store", place.store])
        for daemon in place.daemons:
            daemon.stop_sampling()
        server = Server(kubeconfig)
        return {**follow_patches(place, server, stamp.name), **follow_patches(place, server, stamp.name, "handler")}


def latencies(build, kubeconfig, rounds):
    results = {"kinf": [], "typed": []}
    for i in range(rounds):
        note(f"watch latency, round {i + 1} of {rounds}")
        results["kinf"].append(our_latency(build, kubeconfig))
        theirs = baseline("latency", "-n", str(PATCHES), "--rate", str(RATE), kubeconfig=kubeconfig)
        results["typed"].append({
            **{f"read_to_handler_{k}": theirs["last_watch_read_to_handler"][k] for k in ("p50_us", "p99_us")},
            **{f"send_to_handler_{k}": theirs["send_to_handler"][k] for k in ("p50_us", "p99_us")},
        })
    return {"rounds": results, "median": {name: medians(r) for name, r in results.items()}}


def measure(build):
    kubeconfig = os.environ["KUBECONFIG"]
    rounds = int(os.environ.get("BENCH_ROUNDS", "7"))
    return {
        "sync": syncs(build, kubeconfig, rounds),
        "restart": restart(build, kubeconfig),
        "latency": latencies(build, kubeconfig, min(rounds, 3)),
    }


def is_possible():
    return bool(os.environ.get("KINF_BASELINE") and os.environ.get("KUBECONFIG"))
