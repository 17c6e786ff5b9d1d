# SPDX-License-Identifier: Apache-2.0
"""Pods in many states, for the comparison of tables with an API server's."""

T0 = "2026-01-02T03:04:05Z"
T1 = "2026-06-07T08:09:10Z"
T2 = "2026-11-21T22:23:24Z"


def waiting(reason=""):
    return {"waiting": {"reason": reason} if reason else {}}


def running():
    return {"running": {"startedAt": T1}}


def ended(code=0, reason="", signal=0, at=T1):
    state = {"exitCode": code, "startedAt": T0, "finishedAt": at}
    if reason:
        state["reason"] = reason
    if signal:
        state["signal"] = signal
    return {"terminated": state}


def status(name, state, ready=False, restarts=0, last=None, started=None):
    """A container's status."""
    it = {"name": name, "state": state, "ready": ready, "restartCount": restarts, "image": "img", "imageID": ""}
    if last:
        it["lastState"] = last
    if started is not None:
        it["started"] = started
    return it


def condition(kind, value="True", reason=""):
    it = {"type": kind, "status": value}
    if reason:
        it["reason"] = reason
    return it


READY = [condition("Initialized"), condition("Ready"), condition("ContainersReady"), condition("PodScheduled")]


def pod(name, phase, containers=(), inits=(), conditions=(), n=1, n_inits=None, sidecars=(), gates=(), deleted=False,
        spec=None, **more):
    """A pod with N containers c0, c1...; its init containers are i0, i1..., of which SIDECARS (numbers) restart."""
    n_inits = len(inits) if n_inits is None else n_inits
    obj = {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "tables", "labels": {"app": "web", "tier": name[:3]}},
        "spec": {
            "containers": [{"name": f"c{i}", "image": f"registry.example/c{i}:1"} for i in range(n)],
            **(spec or {}),
        },
    }
    if n_inits:
        obj["spec"]["initContainers"] = [
            {"name": f"i{i}", "image": "init:1", **({"restartPolicy": "Always"} if i in sidecars else {})}
            for i in range(n_inits)
        ]
    if gates:
        obj["spec"]["readinessGates"] = [{"conditionType": gate} for gate in gates]
    if deleted:
        obj["metadata"]["finalizers"] = ["tables.example/keep"]
    state = {"phase": phase, **more}
    if containers:
        state["containerStatuses"] = list(containers)
    if inits:
        state["initContainerStatuses"] = list(inits)
    if conditions:
        state["conditions"] = list(conditions)
    return obj, state, deleted


def pods():
    ok = status("c0", running(), ready=True)
    node = {"nodeName": "node-1"}
    loop = status("c0", waiting("CrashLoopBackOff"), restarts=12, last=ended(1, "Error", at=T2))
    side = status("i0", running(), ready=True, started=True)
    return [
        pod("pending", "Pending"),
        pod("gated", "Pending", conditions=[condition("PodScheduled", "False", "SchedulingGated")],
            spec={"schedulingGates": [{"name": "example.com/wait"}]}),
        pod("unschedulable", "Pending", conditions=[condition("PodScheduled", "False", "Unschedulable")]),
        pod("creating", "Pending", [status("c0", waiting("ContainerCreating"))], spec=node),
        pod("pulling", "Pending", [status("c0", waiting("ErrImagePull"))], spec=node),
        pod("pull-backoff", "Pending", [status("c0", waiting("ImagePullBackOff"))], spec=node),
        pod("config-error", "Pending", [status("c0", waiting("CreateContainerConfigError"))]),
        pod("waits-silently", "Pending", [status("c0", waiting())]),
        pod("running", "Running", [ok], conditions=READY, spec=node, podIP="10.1.2.3", podIPs=[{"ip": "10.1.2.3"}]),
        pod("dual-stack", "Running", [ok], conditions=READY, podIP="10.1.2.4",
            podIPs=[{"ip": "10.1.2.4"}, {"ip": "fd00::4"}]),
        pod("not-ready", "Running", [status("c0", running())], conditions=[condition("Ready", "False")], spec=node),
        pod("half-ready", "Running", [ok, status("c1", running())], n=2),
        pod("three-of-three", "Running", [status(f"c{i}", running(), ready=True) for i in range(3)], n=3,
            conditions=READY),
        pod("crash-loop", "Running", [loop]),
        pod("crash-and-run", "Running", [loop, status("c1", running(), ready=True)], n=2),
        pod("run-and-crash", "Running", [ok, status("c1", waiting("CrashLoopBackOff"), restarts=3)], n=2),
        pod("restarted", "Running", [status("c0", running(), ready=True, restarts=5, last=ended(137, "OOMKilled"))],
            conditions=READY),
        pod("restarted-no-time", "Running", [status("c0", running(), ready=True, restarts=2)], conditions=READY),
        pod("restarts-of-two", "Running", [
            status("c0", running(), ready=True, restarts=1, last=ended(1, at=T0)),
            status("c1", running(), ready=True, restarts=2, last=ended(1, at=T2))], n=2, conditions=READY),
        pod("completed", "Succeeded", [status("c0", ended(0, "Completed"))]),
        pod("succeeded-bare", "Succeeded"),
        pod("failed-bare", "Failed"),
        pod("error", "Failed", [status("c0", ended(1, "Error"))]),
        pod("oom", "Failed", [status("c0", ended(137, "OOMKilled"))]),
        pod("exit-code", "Failed", [status("c0", ended(3))]),
        pod("signal", "Failed", [status("c0", ended(0, signal=9))]),
        pod("exit-zero-silent", "Succeeded", [status("c0", ended(0))]),
        pod("one-done-one-runs", "Running", [status("c0", ended(0, "Completed")), status("c1", running(), ready=True)],
            n=2),
        pod("one-done-pod-ready", "Running", [status("c0", ended(0, "Completed")),
                                              status("c1", running(), ready=True)], n=2, conditions=READY),
        pod("one-done-one-failed", "Failed", [status("c0", ended(0, "Completed")), status("c1", ended(2, "Error"))],
            n=2),
        pod("one-failed-one-done", "Failed", [status("c0", ended(2, "Error")), status("c1", ended(0, "Completed"))],
            n=2),
        pod("done-and-exit-code", "Failed", [status("c0", ended(0, "Completed")), status("c1", ended(7))], n=2),
        pod("evicted", "Failed", reason="Evicted", message="The node was low on resource: memory."),
        pod("node-affinity", "Failed", reason="NodeAffinity"),
        pod("node-lost", "Running", [ok], reason="NodeLost", spec=node),
        pod("node-lost-deleted", "Running", [ok], reason="NodeLost", deleted=True),
        pod("terminating", "Running", [ok], deleted=True),
        pod("terminating-loop", "Running", [loop], deleted=True),
        pod("terminating-init", "Pending", inits=[status("i0", running())], deleted=True),
        pod("terminating-done", "Succeeded", [status("c0", ended(0, "Completed"))], deleted=True),
        pod("terminating-failed", "Failed", [status("c0", ended(1, "Error"))], deleted=True),
        pod("unknown", "Unknown", [ok]),
        pod("init-first", "Pending", inits=[status("i0", running())], n_inits=3),
        pod("init-second", "Pending", inits=[status("i0", ended(0)), status("i1", waiting("PodInitializing"))],
            n_inits=3),
        pod("init-waits", "Pending", inits=[status("i0", waiting())]),
        pod("init-pull", "Pending", inits=[status("i0", waiting("ImagePullBackOff"))]),
        pod("init-crash", "Pending", inits=[status("i0", waiting("CrashLoopBackOff"), restarts=4,
                                                   last=ended(1, "Error", at=T2))]),
        pod("init-error", "Failed", inits=[status("i0", ended(1, "Error"))], spec={"restartPolicy": "Never"}),
        pod("init-exit", "Pending", inits=[status("i0", ended(4))]),
        pod("init-signal", "Pending", inits=[status("i0", ended(1, signal=11))]),
        pod("init-restarts-forgotten", "Running", [ok], inits=[
            status("i0", ended(0), restarts=6, last=ended(1, at=T2))], conditions=READY),
        pod("init-again-after-initialized", "Running", [ok], inits=[status("i0", running())], conditions=READY),
        pod("initialized-false", "Running", [ok], inits=[status("i0", running())],
            conditions=[condition("Initialized", "False"), condition("Ready")]),
        pod("sidecar", "Running", [ok], inits=[side], sidecars=[0], conditions=READY),
        pod("sidecar-starts", "Pending", [status("c0", waiting("PodInitializing"))],
            inits=[status("i0", running(), started=False)], sidecars=[0]),
        pod("sidecar-not-ready", "Running", [ok], inits=[status("i0", running(), started=True)], sidecars=[0]),
        pod("sidecar-crash", "Pending", inits=[status("i0", waiting("CrashLoopBackOff"), restarts=2, started=False)],
            sidecars=[0]),
        pod("sidecar-restarts", "Running", [status("c0", running(), ready=True, restarts=1, last=ended(1, at=T0))],
            inits=[status("i0", running(), ready=True, started=True, restarts=3, last=ended(1, at=T2))],
            sidecars=[0], conditions=READY),
        pod("sidecar-between", "Pending", inits=[side, status("i1", running())], n_inits=3, sidecars=[0]),
        pod("two-sidecars-and-init", "Running", [ok], inits=[
            side, status("i1", ended(0), restarts=2), status("i2", running(), ready=True, started=True)],
            sidecars=[0, 2], conditions=READY),
        pod("sidecar-done", "Succeeded", [status("c0", ended(0, "Completed"))],
            inits=[status("i0", ended(0, "Completed"), started=False)], sidecars=[0]),
        pod("sidecar-failed-late", "Succeeded", [status("c0", ended(0, "Completed"))],
            inits=[status("i0", ended(137, "Error"), started=False)], sidecars=[0]),
        pod("gates-closed", "Running", [ok], gates=["a.example/one", "a.example/two"]),
        pod("gates-half", "Running", [ok], gates=["a.example/one", "a.example/two"],
            conditions=[condition("a.example/one"), condition("a.example/two", "False")]),
        pod("gates-open", "Running", [ok], gates=["a.example/one"], conditions=[condition("a.example/one"), *READY]),
        pod("nominated", "Pending", nominatedNodeName="node-7"),
        pod("long-name-" + "x" * 50, "Running", [ok], conditions=READY),
    ]
