# SPDX-License-Identifier: Apache-2.0
"""Foreign clients against kinf-serve: kubectl (each program of $KINF_KUBECTL, separated by colons,
else the one in PATH), and recorded requests of the Python and JavaScript clients; docs/protocol.md
12 and 13. The same commands go to the simulated API server, and the outputs are compared."""

import json
import os
import re
import shutil
import subprocess

import pytest

from harness import PATIENCE, eventually
from harness.objects import pod
from harness.serve import Client, Serve
from harness.store import whole

KUBECTLS = [path for path in os.environ.get("KINF_KUBECTL", shutil.which("kubectl") or "").split(":") if path]
AGE = re.compile(r"(?<![\w.:/-])(\d+[smhdy]){1,2}(?![\w.:/-])")


@pytest.fixture(scope="module")
def serve(shared):
    simulator = shared.simulator()
    for namespace in ("default", "web"):
        for i in range(3):
            simulator.put("pods", pod(f"p{i}", namespace, app=f"app{i}", node=f"n{i % 2}", phase="Running" if i else "Pending"))
        simulator.put("configmaps", {"metadata": {"name": "c", "namespace": namespace}, "data": {"a": "1"}})
    simulator.put("nodes", {"metadata": {"name": "n1"}, "spec": {}})
    simulator.put("widgets", {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "default"}, "spec": {"a": 1.5}})
    store = shared.store(simulator=simulator)
    feeds = ("pods", "configmaps", "nodes", "namespaces", "widgets.example.com")
    store.configure(*map(whole, feeds), serve={"listen": ["unix", "127.0.0.1:0"], "auth": "open"})
    store.daemons()
    for feed in feeds:
        store.wait_live(feed)
    serve = Serve(store, simulator)
    serve.through = store.directory / "through"
    serve.through.write_text(store.kinf("kubeconfig", check=True).stdout)
    return serve


def run(kubectl, kubeconfig, home, *arguments, env=None):
    home.mkdir(exist_ok=True)
    command = [kubectl, "--kubeconfig", str(kubeconfig), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60 * PATIENCE, env={**os.environ, "HOME": str(home), **(env or {})})
    return done.returncode, done.stdout, done.stderr


def ageless(text):
    return [re.sub(r" +", " ", AGE.sub("AGE", line)).rstrip() for line in text.splitlines()]


COMMANDS = [
    "get pods -o yaml", "get pods -A -o json", "get pod p1 -o yaml", "get pods -o name -A", "get pods -l app=app1 -o name",
    "get pods -A --field-selector status.phase=Running -o name", "get pods --field-selector spec.nodeName=n1 -o name", "get pods p0 p1 -o name",
    "get widgets -o yaml", "get configmaps,nodes -o name", "get pod nope", "get nosuch", 
    "get pods -o custom-columns=N:.metadata.name,A:.metadata.labels.app", "get pods --sort-by=.metadata.name -o name", "get ns -o name",
    "get pods -o jsonpath={.items[*].metadata.name}", "get --raw /api/v1/namespaces/web/pods/p1", "get pods --chunk-size=2 -A -o name",
]


@pytest.mark.parametrize("kubectl", KUBECTLS)
def test_s87_kubectl_prints_what_it_prints_of_the_api_server(serve, kubectl):
    home = serve.store.directory / ("home-" + kubectl.replace("/", "-"))
    for command in COMMANDS:
        words = command.split()
        theirs, ours = (run(kubectl, config, home.with_name(f"{home.name}-{number}"), *words)
                        for number, config in enumerate((serve.store.kubeconfig, serve.through)))
        if command == "get --raw /api/v1/namespaces/web/pods/p1":
            theirs, ours = ((code, json.loads(out)) for code, out, _ in (theirs, ours))
            assert ours == theirs
            continue
        for number in (1, 2):  # the lists' versions need not be the same
            assert ageless(re.sub(r'resourceVersion: "\d+"\n  selfLink|"resourceVersion": "\d+"\n *}\n}', "RV", ours[number])) == \
                ageless(re.sub(r'resourceVersion: "\d+"\n  selfLink|"resourceVersion": "\d+"\n *}\n}', "RV", theirs[number])), command
        assert ours[0] == theirs[0], (command, ours, theirs)


@pytest.mark.parametrize("kubectl", KUBECTLS)
def test_s87_tables_of_kubectl_are_those_of_kinf(serve, kubectl):
    home = serve.store.directory / ("tables-" + kubectl.replace("/", "-"))
    for theirs, ours in (("get pods", "get pods -n default"), ("get pods -A", "get pods"), ("get pods -A -o wide", "get pods -o wide"),
                         ("get pods -A --show-labels", "get pods --show-labels"), ("get nodes", "get nodes"), ("get configmaps -A", "get configmaps"),
                         ("get pod p1", "get pods p1 -n default")):
        code, out, error = run(kubectl, serve.through, home, *theirs.split())
        assert code == 0, error
        assert ageless(out) == ageless(serve.store.kinf(*ours.split(), check=True).stdout), theirs
    code, out, error = run(kubectl, serve.through, home, "api-resources", "--no-headers")
    assert code == 0, error
    assert {line.split()[0] for line in out.splitlines()} == {"configmaps", "namespaces", "nodes", "pods", "widgets"}
    assert run(kubectl, serve.through, home, "version")[0] == 0


def watches(serve):
    processes = serve.store.kinf("status", "-o", "json", check=True).json["processes"]
    return next(p for p in processes if p["name"] == "kinf-serve")["counters"]["serve.watches"]


@pytest.mark.parametrize("kubectl", KUBECTLS)
def test_s87_kubectl_watches_and_waits(serve, kubectl):
    home = serve.store.directory / ("watch-" + kubectl.replace("/", "-"))
    home.mkdir()
    name = "w" + str(KUBECTLS.index(kubectl))
    watch = subprocess.Popen([kubectl, "--kubeconfig", str(serve.through), "get", "pods", "-w", "-o", "name"], stdout=subprocess.PIPE,
                             text=True, env={**os.environ, "HOME": str(home)})
    try:
        for _ in range(len(serve.ask("/api/v1/namespaces/default/pods").names)):
            assert watch.stdout.readline().startswith("pod/p")
        serve.simulator.put("pods", pod(name, "default"))
        assert watch.stdout.readline() == f"pod/{name}\n"
        serve.wait_rv(serve.simulator.rv)
        eventually(lambda: watches(serve) == 1)
        wait = subprocess.Popen([kubectl, "--kubeconfig", str(serve.through), "wait", "--for=delete", f"pod/{name}", "--timeout=50s"],
                                stdout=subprocess.PIPE, text=True, env={**os.environ, "HOME": str(home)})
        eventually(lambda: watches(serve) == 2, what="kubectl wait watches also")
        serve.wait_rv(serve.simulator.delete("pods", f"default/{name}"))
        out, _ = wait.communicate(timeout=60 * PATIENCE)
        assert wait.returncode == 0 and out == f"pod/{name} condition met\n", out
    finally:
        watch.kill()
        watch.wait()


def test_s89_an_informer_with_watch_lists_makes_one_request(serve):
    """kubectl wait uses an informer of client-go."""
    kubectl = KUBECTLS[0] if KUBECTLS else None
    if not kubectl:
        pytest.skip("no kubectl here")
    home = serve.store.directory / "informer"
    client = Client(serve.client.connect)
    query = "allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&timeoutSeconds=400&watch=true"
    with client.watch(f"/api/v1/namespaces/default/pods?{query}") as watch:
        events = [json.loads(watch.line()) for _ in range(4)]
        assert [e["type"] for e in events] == ["ADDED"] * 3 + ["BOOKMARK"]
        assert events[3]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        serve.simulator.patch("pods", "default/p0", {"metadata": {"labels": {"x": "y"}}})
        assert watch.next()[:2] == ("MODIFIED", "p0")
    code, out, error = run(kubectl, serve.through, home, "wait", "pod/p0", "--for=jsonpath={.metadata.labels.x}=y", "--timeout=50s",
                           env={"KUBE_FEATURE_WatchListClient": "true"})
    assert code == 0 and "condition met" in out, error


def test_s88_requests_of_the_python_client(serve):
    """watch.Watch(): watch=True, lines, the newest resourceVersion after the server ended the stream."""
    headers = {"accept": "application/json", "accept_encoding": "identity", "content_type": "application/json"}
    path = "/api/v1/namespaces/web/pods"
    seen, rv = [], None
    for round_ in range(3):
        serve.simulator.patch("pods", "web/p1", {"metadata": {"labels": {"round": str(round_)}}})
        serve.wait_rv(serve.simulator.rv)
        query = f"?watch=True&timeout_seconds=9&timeoutSeconds=1" + (f"&resourceVersion={rv}" if rv else "")
        answer = serve.ask(path + query, **headers)
        assert answer.status == 200 and answer.body.endswith(b"\n")
        for event in answer.events:
            seen.append((event["type"], event["object"]["metadata"]["name"]))
            rv = event["object"]["metadata"]["resourceVersion"]
            if not seen[3:]:
                rv = None if len(seen) < 3 else serve.ask(path).rv
    assert seen[:3] == [("ADDED", f"p{i}") for i in range(3)]
    assert seen[3:] == [("MODIFIED", "p1")] * 2
    dynamic = [serve.ask(p, **headers).json for p in ("/version", "/apis", "/api/v1", "/apis/example.com/v1")]
    assert dynamic[0]["major"] and dynamic[2]["resources"]


def test_s88_requests_of_the_javascript_client(serve):
    """An informer: a list without limit, a watch with gzip offered and any type accepted, a list after a 410."""
    listed = serve.ask("/api/v1/pods", accept="application/json, */*;q=0.8", accept_encoding="gzip,deflate")
    rv = listed.rv
    headers = {"accept": "*/*", "accept_encoding": "gzip,deflate", "connection": "close"}
    with serve.watch(f"/api/v1/pods?watch=true&resourceVersion={rv}", **headers) as watch:
        assert watch.response.getheader("content-encoding") is None
        serve.simulator.touch("pods", 1)
        assert watch.next()[0] == "MODIFIED"
    gone, = serve.ask("/api/v1/pods?watch=true&resourceVersion=1", **headers).events
    assert gone["type"] == "ERROR" and gone["object"]["code"] == 410
    again = serve.ask("/api/v1/pods", accept="application/json, */*;q=0.8")
    assert int(again.rv) >= int(rv)
