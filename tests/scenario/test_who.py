# SPDX-License-Identifier: Apache-2.0
"""kinf who: from an address, a container, a uid or a process to the pod, also a deleted one."""

import json

import pytest

from harness import eventually
from harness.objects import pod
from harness.serve import Serve
from harness.store import whole

IDS = {name: f"{number:x}" * 64 for number, name in enumerate(("front", "old", "again", "host", "other", "done", "next"), 1)}
FRONT_UID = "01234567-89ab-cdef-0123-456789abcdef"


def running(name, *ips, **more):
    spec = more.pop("spec", {})
    one = pod(name, **more)
    one["spec"].update(spec)
    one["status"]["podIPs"] = [{"ip": ip} for ip in ips]
    one["status"]["containerStatuses"] = [{"name": "app", "containerID": f"containerd://{IDS[name]}"}]
    return one


@pytest.fixture(scope="module")
def cluster(shared):
    simulator = shared.simulator()
    store = shared.store(simulator=simulator)
    store.configure(whole("pods", resolve=True), whole("replicasets.apps"), retention={"time": "1h", "size": "64MiB"}).daemons()
    store.simulator = simulator
    store.wait_live("pods")
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "front-5", "controller": True}
    above = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "front", "controller": True}
    simulator.put("replicasets.apps", {"metadata": {"name": "front-5", "namespace": "web", "ownerReferences": [above]}})
    simulator.put("pods", running("old", "10.0.0.1"))
    simulator.put("pods", running("done", "10.0.0.2", phase="Succeeded"))
    simulator.put("pods", running("next", "10.0.0.2"))
    for name in ("host", "other"):
        simulator.put("pods", running(name, "192.0.2.1", spec={"hostNetwork": True}))
    store.wait_equal(simulator, "pods")
    simulator.delete("pods", "web/old")
    front = running("front", "10.0.0.1", "2001:db8::1", uid=FRONT_UID, ownerReferences=[owner])
    front["status"]["initContainerStatuses"] = [{"name": "init", "containerID": f"containerd://{IDS['again']}"}]
    simulator.put("pods", front)
    store.wait_equal(simulator, "pods")
    # Its container is started again, and has another id.
    front["status"]["containerStatuses"][0]["containerID"] = "containerd://" + "8" * 64
    simulator.put("pods", front)
    store.wait_equal(simulator, "pods")
    eventually(lambda: store.kinf("log", "pods", check=True).stdout.count("\n") == 8)
    simulator.delete("replicasets.apps", "web/front-5")
    store.wait_equal(simulator, "replicasets.apps")
    return store


def who(cluster, what, *options):
    answer = cluster.kinf("who", what, "-o", "json", *options, check=True)
    return [json.loads(line) for line in answer.stdout.splitlines()], answer.stderr


def pods(cluster, what, *options):
    return [one["pod"] for one in who(cluster, what, *options)[0]]


def test_each_form_finds_the_pod(cluster):
    forms = ["2001:db8::1", "2001:DB8:0::1", "10.0.0.1", FRONT_UID, "8" * 64, "containerd://" + "8" * 64, "8" * 13, IDS["again"]]
    assert {form: pods(cluster, form) for form in forms} == {form: ["web/front"] for form in forms}
    (front,), note = who(cluster, "10.0.0.1")
    owners = [{"kind": "ReplicaSet", "name": "front-5"}, {"kind": "Deployment", "name": "front"}]
    assert front == {
        "pod": "web/front", "uid": FRONT_UID, "node": "n1", "phase": "Running", "owners": owners, "labels": {"app": "front"},
    }  # fmt: skip
    assert note == ""


def test_the_text_is_for_people(cluster):
    assert cluster.kinf("who", "10.0.0.1", check=True).stdout == (
        f'Pod:       web/front\nUID:       {FRONT_UID}\nNode:      n1\nPhase:     Running\n'
        'Owners:    ReplicaSet/front-5, Deployment/front\nLabels:    {"app":"front"}\n'
    )


def test_a_shared_address_is_said_to_be_shared(cluster):
    found, note = who(cluster, "192.0.2.1")
    assert [(one["pod"], one["network"]) for one in found] == [("web/host", "of the node"), ("web/other", "of the node")]
    assert note == "note: pods that have it now: 2, that had it: 0; on the network of their node: 2\n"
    found, note = who(cluster, "10.0.0.2")
    assert [(one["pod"], one["phase"]) for one in found] == [("web/done", "Succeeded"), ("web/next", "Running")]
    assert note.endswith("; finished, so that another may have their address: 1\n")


def test_pods_that_had_it_are_found(cluster):
    (old,), _ = who(cluster, IDS["old"])
    assert old["pod"] == "web/old" and old["until"].endswith("Z")
    (before,), _ = who(cluster, IDS["front"])  # by its container's restart
    assert before["pod"] == "web/front" and "until" in before
    found, _ = who(cluster, "10.0.0.1", "--all")
    assert [(one["pod"], "until" in one) for one in found] == [("web/front", False), ("web/old", True)]
    events = [json.loads(line) for line in cluster.kinf("log", "pods", "-o", "json", check=True).stdout.splitlines()]
    deleted = next(e["event"] for e in events if e["type"] == "DELETED")
    assert pods(cluster, "10.0.0.1", "--at", str(deleted - 1)) == ["web/old"]


def test_a_process_is_found_by_its_cgroup(cluster, tmp_path):
    slices = f"0::/kubepods.slice/kubepods-pod{FRONT_UID.replace('-', '_')}.slice/cri-containerd-"
    cgroups = {
        "1": f"{slices}{IDS['next']}.scope",  # the container counts
        "2": f"{slices}{'0' * 64}.scope",  # of the pod itself: no container of its status
        "3": f"5:cpu:/kubepods/burstable/pod{FRONT_UID}/{'8' * 64}",
        "4": "0::/system.slice/ssh.service",
    }
    for pid, text in cgroups.items():
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "cgroup").write_text(text + "\n")
    env = {"HOST_PROC": str(tmp_path)}

    def find(what):
        answer = cluster.kinf("who", what, "-o", "json", env=env)
        return json.loads(answer.stdout)["pod"] if answer.status == 0 else answer.stderr

    assert {pid: find(pid) for pid in ("1", "2", "3", "n1/3")} == {
        "1": "web/next", "2": "web/front", "3": "web/front", "n1/3": "web/front",
    }  # fmt: skip
    assert find("4") == "Error: process 4 of this machine is in no pod: its cgroup names none\n"
    assert find("5") == "Error: there is no process 5 on this machine\n"
    assert find("n2/3") == "Error: 'n2' is not this machine: its processes are known there only\n"


@pytest.mark.parametrize("what", ["front", "10.0.0", "10.0.0.1,x=y", "xyz://" + "1" * 64 + ",a=b", "-1", "8" * 7 + "g", "/", "a" * 5000])
def test_what_has_no_form_is_refused(cluster, what):
    answer = cluster.kinf("who", "--", what)
    assert answer.status == 2 and "is neither an IP address" in answer.stderr


def test_what_nobody_had_is_not_found(cluster):
    for what in ("203.0.113.1", "f" * 64, "f" * 12, "01234567-89ab-cdef-0123-456789abcdee"):
        answer = cluster.kinf("who", what)
        assert (answer.status, answer.stdout) == (1, "")
        assert answer.stderr == "Error: no pod has it, and none had it within the retained history\n"


def test_kinf_serve_answers_whoever_may_list_pods(cluster):
    settings = {"retention": {"time": "1h", "size": "64MiB"}, "serve": {"auth": "self"}}
    cluster.configure(whole("pods", resolve=True), whole("replicasets.apps"), **settings)
    serve = Serve(cluster, cluster.simulator)
    assert serve.ask("/kinf/who/10.0.0.1").status == serve.ask("/api/v1/pods").status == 401
    serve.process.stop()
    settings["serve"]["auth"] = "peers"
    cluster.configure(whole("pods", resolve=True), whole("replicasets.apps"), **settings)
    serve.start()

    def ask(what):
        return serve.ask(f"/kinf/who/{what}")

    def found(what):
        return [one["pod"] for one in ask(what).json["pods"]]

    # The history is read in slices of a thousand records.
    cluster.simulator.create("replicasets.apps", 300)
    for _ in range(4):
        cluster.simulator.touch("replicasets.apps")
    cluster.wait_equal(cluster.simulator, "replicasets.apps")

    urls = ["10.0.0.1", "2001:db8::1", "2001%3Adb8%3A%3A1", f"containerd%3A%2F%2F{'8' * 64}", FRONT_UID]
    assert {url: found(url) for url in urls} == {url: ["web/front"] for url in urls}
    assert ask("10.0.0.1").json["pods"] == who(cluster, "10.0.0.1")[0]
    assert found("192.0.2.1") == ["web/host", "web/other"]
    assert found("10.0.0.1?when=all") == ["web/front", "web/old"] and found(f"{IDS['old']}?when=last") == ["web/old"]
    wrong = {"front": 400, "": 400, "%00": 400, "10.0.0.1%00": 400, "10.0.0.1?when=x": 400, "203.0.113.1": 404, IDS["old"]: 404, "4711%2F": 400}
    assert {url: ask(url).status for url in wrong} == wrong
    assert ask("203.0.113.1").message == "no pod has it now"
    serve.process.stop()


def test_resolve_makes_the_indexes_and_without_them_all_pods_are_read(cluster):
    names = {line.split()[0] for line in cluster.kinf("index", "pods", check=True).stdout.splitlines()}
    assert names >= {"who-ip", "who-uid", "who-container", "who-init-container", "who-ephemeral-container"}
    cluster.configure(whole("pods"), whole("replicasets.apps"), retention={"time": "1h", "size": "64MiB"})
    cluster.kinf("reload", check=True)
    eventually(lambda: "who-ip" not in cluster.kinf("index", "pods", check=True).stdout)
    assert [pods(cluster, what) for what in ("10.0.0.1", FRONT_UID, "8" * 64)] == [["web/front"]] * 3
