# SPDX-License-Identifier: Apache-2.0
"""Measures kinf-serve, and kube-apiserver beside it, by swarms of clients (swarm.c). usage:
swarm.py BUILD [PART...]

Parts: events, reads, restart, server, beside, informer; without any, all of them. `server` and
`beside` need a real API server with some 20,000 pods: KUBECONFIG names its kubeconfig, with kas.pid
in the same directory. With it `restart` also counts the lists there, and `informer` measures both
servers. `informer` needs KINF_BASELINE, the measuring program of client-go. SWARM_WATCHES (1000),
SWARM_TLS (10000) and SWARM_CHANGES (200) are numbers.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import yaml

from client_go import BASELINES, Server, their_sync, wait_synced
from machine import Place, anonymous_bytes, cpu_seconds, measured, note, run

WATCHES, TLS, CHANGES = (int(os.environ.get(name, default)) for name, default in
                         (("SWARM_WATCHES", 1000), ("SWARM_TLS", 10000), ("SWARM_CHANGES", 200)))
PODS, STALLED = 20000, 100
PATH = "/api/v1/pods"
SERVE = "serve: {listen: [unix, '127.0.0.1:0'], auth: open}\n"


class Ours:
    """A kinf-serve on a Place."""

    def __init__(self, place):
        self.place = place
        with open(place.config, "a", encoding="utf-8") as config:
            config.write(SERVE)
        self.start()

    def start(self):
        addresses = self.place.store / "serve" / "addresses"
        before = addresses.stat().st_mtime_ns if addresses.exists() else 0
        self.daemon = self.place.daemon("kinf-serve")
        while not addresses.exists() or addresses.stat().st_mtime_ns == before:
            self.daemon.check()
            time.sleep(0.01)
        self.daemon.stop_sampling()
        lines = [line.split(" ") for line in addresses.read_text().splitlines()]
        self.socket = next(words[2] for words in lines if words[1] == "unix")
        self.tcp = next(words[2] for words in lines if words[1] == "https")

    @property
    def pid(self):
        return self.daemon.popen.pid

    def swarm(self, protocol, *words):
        address = self.socket if protocol == "plain" else self.tcp
        return measured([self.place.program("bench/swarm"), self.pid, protocol, address, "", *words])

    def ask(self, path):
        return json.loads(run(["curl", "-sS", "--unix-socket", self.socket, f"http://localhost{path}"]))


class Theirs:
    """The kube-apiserver of KUBECONFIG."""

    def __init__(self, build):
        self.build = Path(build)
        self.kubeconfig = Path(os.environ["KUBECONFIG"])
        config = yaml.safe_load(self.kubeconfig.read_text())
        self.address = config["clusters"][0]["cluster"]["server"].removeprefix("https://")
        self.authorization = f"Bearer {config['users'][0]['user']['token']}"
        self.pid = int((self.kubeconfig.parent / "kas.pid").read_text())
        self.server = Server(self.kubeconfig)

    def swarm(self, protocol, *words):
        return measured([self.build / "bench/swarm", self.pid, protocol, self.address, self.authorization, *words])

    def ask(self, path):
        return json.loads(self.server.ask("GET", path))


def newest(server):
    return server.ask(PATH + "?limit=1")["metadata"]["resourceVersion"]


def live(server):
    return f"{PATH}?watch=1&allowWatchBookmarks=true&resourceVersion={newest(server)}"


def show(what, figures):
    note(what + ": " + ", ".join(f"{name} {value:.6g}" for name, value in figures.items()))
    return figures


def names(server, place):
    path = place.directory / "paths"
    with open(path, "w", encoding="utf-8") as out:
        for pod in server.ask(PATH)["items"]:
            out.write(f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}\n")
    return path


def filled(build):
    """A store of synthetic pods, changed by swarm.c, with a processor and a kinf-serve."""
    place = Place(build)
    place.daemon("kinf-processor").stop_sampling()
    place.fill(PODS, "wait")
    return place


def events(build):
    results = {}
    for protocol in ("plain", "tls", "http2"):
        for stalled in (0, STALLED):
            with filled(build) as place:
                ours = Ours(place)
                name = f"{protocol}, {stalled} of {WATCHES} stalled" if stalled else f"{protocol}, {WATCHES} watches"
                results[name] = show(name, ours.swarm(
                    protocol, "watch", live(ours), WATCHES, stalled, CHANGES, "store", place.store, place.runtime, PODS))
    return results


def reads_of(server, paths):
    results = {}
    for protocol in ("plain", "tls") if isinstance(server, Ours) else ("tls",):
        results[f"list {protocol}"] = show(f"list {protocol}", server.swarm(protocol, "list", PATH, 5))
        results[f"get {protocol}"] = show(f"get {protocol}", server.swarm(protocol, "get", paths, 32, 5))
    results["get http2"] = show("get http2", server.swarm("http2", "get", paths, 100, 5))
    return results


def reads(build):
    with filled(build) as place:
        ours = Ours(place)
        return reads_of(ours, names(ours, place))


def server(build):
    """kube-apiserver: the same swarm, the changes by patches."""
    theirs, results = Theirs(build), {}
    pod = theirs.ask(PATH + "?limit=1")["items"][0]["metadata"]
    path = f"/api/v1/namespaces/{pod['namespace']}/pods/{pod['name']}"
    for protocol in ("tls", "http2"):
        for stalled in (0, STALLED) if protocol == "tls" else (0,):
            name = f"kube-apiserver {protocol}, {stalled} of {WATCHES} stalled"
            results[name] = show(name, theirs.swarm(
                protocol, "watch", live(theirs), WATCHES, stalled, CHANGES, "patch", theirs.address, theirs.authorization, path))
    return results


def beside(build):
    """Lists and gets of both servers in one run: the same objects with all their fields, over TLS."""
    theirs = Theirs(build)
    with relay(build, "drop: []") as place:
        ours = Ours(place)
        paths = names(theirs, place)
        return {f"{name} {round_}": reads_of(one, paths)
                for round_ in range(2) for name, one in (("kube-apiserver", theirs), ("kinf-serve", ours))}


def relay(build, option=""):
    """kinf of the real API server; its feed of pods has OPTION."""
    place = Place(build, os.environ["KUBECONFIG"])
    if option:
        place.config.write_text(place.config.read_text().replace("resource: pods\n", f"resource: pods\n    {option}\n"))
    place.daemon("kinf-reflector").stop_sampling()
    place.daemon("kinf-processor").stop_sampling()
    wait_synced(place)
    run([place.program("kinf"), "wait", "pods", "--for", "live", "--timeout", "60s", "--store", place.store])
    return place


def kubeconfig_of(ours):
    path = ours.place.directory / "kubeconfig"
    text = ours.place.kinf("kubeconfig")
    path.write_text(text)
    return path


def informer(build):
    """client-go's first sync, directly and through kinf-serve: the server's CPU, the client's time and CPU."""
    theirs, results = Theirs(build) if "KUBECONFIG" in os.environ else None, {}
    with relay(build) if theirs else filled(build) as place:
        ours = Ours(place)
        kubeconfigs = {"kube-apiserver": (theirs.pid, theirs.kubeconfig)} if theirs else {}
        kubeconfigs["kinf-serve"] = (ours.pid, kubeconfig_of(ours))
        for round_ in range(3):
            for name, (pid, kubeconfig) in kubeconfigs.items():
                for kind, options in BASELINES.items():
                    before = cpu_seconds(pid)
                    figures = their_sync(options, kubeconfig)
                    figures["server_cpu_s"] = cpu_seconds(pid) - before
                    results[f"{name} {kind} {round_}"] = show(f"{name}, {kind}", figures)
    return results


class Stayers:
    """A swarm of watches, opened again when lost."""

    def __init__(self, ours, protocol, n):
        argv = (ours.place.program("bench/swarm"), ours.pid, protocol, ours.tcp, "", "stay", live(ours), n, 120)
        self.popen = subprocess.Popen(
            [str(w) for w in argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def read(self):
        """The next line; an end before it is an error with the swarm's own end."""
        line = self.popen.stdout.readline()
        if line:
            return line.strip()
        complaint, status = self.popen.stderr.read().strip(), self.popen.wait()
        how = signal.Signals(-status).name if status < 0 else f"exit {status}"
        raise RuntimeError(f"the swarm ended ({how}): {complaint or 'it said nothing'}")

    def wait(self, word):
        line = self.read()
        if line != word:
            raise RuntimeError(f"the swarm said {line!r}, not {word!r}")


def restart_of(build, protocol):
    theirs = Theirs(build) if "KUBECONFIG" in os.environ else None
    with relay(build) if theirs else filled(build) as place:
        ours = Ours(place)
        place.config.write_text(place.config.read_text().replace("127.0.0.1:0", ours.tcp))
        lists = theirs.server.lists_of_pods() if theirs else 0
        swarm = Stayers(ours, protocol, TLS)
        swarm.wait("ready")
        ours.daemon.popen.send_signal(signal.SIGKILL)
        ours.daemon.popen.wait()
        place.daemons.remove(ours.daemon)
        begun = time.monotonic()
        ours.start()
        start_s, private = time.monotonic() - begun, anonymous_bytes(ours.pid)
        swarm.wait("back")
        cpu = cpu_seconds(ours.pid)
        time.sleep(3)
        after = anonymous_bytes(ours.pid)
        figures = {"start_s": start_s, **json.loads(swarm.read())}
        figures["server_cpu_s"] = cpu
        figures["watch_bytes_after"] = (after - private) / TLS
        figures["all_bytes_after"] = after
        if theirs:
            figures["lists_at_the_server"] = theirs.server.lists_of_pods() - lists
        return show(f"restart under {TLS} watches by {protocol}", figures)


def restart(build):
    """kinf-serve is killed."""
    return {"tls": restart_of(build, "tls")}


PARTS = {"events": events, "reads": reads, "restart": restart, "server": server, "beside": beside, "informer": informer}


def main(build, parts):
    real = bool(os.environ.get("KUBECONFIG"))
    results = {}
    for name in parts or PARTS:
        if name in ("server", "beside") and not real or name == "informer" and not os.environ.get("KINF_BASELINE"):
            note(f"{name}: left out, it needs {'KINF_BASELINE' if name == 'informer' else 'KUBECONFIG'}")
            continue
        note(f"---- {name} ----")
        results[name] = PARTS[name](build)
    Path("build/swarm.json").write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
