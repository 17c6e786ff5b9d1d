# SPDX-License-Identifier: Apache-2.0
"""Objects of each kind that an API server prints specially, for the comparison of tables.

objects() gives (resource, object, status, deleted): STATUS is written after the object was made; a DELETED object stays
because it has a finalizer.
"""

import base64
from pods import T0, T1, T2, condition, pods

NS = "tables"
TEMPLATE = {"metadata": {"labels": {"app": "web", "tier": "front"}},
            "spec": {"containers": [{"name": "web", "image": "web:1"}, {"name": "log", "image": "r.example/log:2"}]}}
SELECTOR = {"matchLabels": {"app": "web", "tier": "front"}}
FULL_SELECTOR = {"matchLabels": {"tier": "front", "app": "web"}, "matchExpressions": [
    {"key": "zone", "operator": "In", "values": ["b", "a"]}, {"key": "alpha", "operator": "NotIn", "values": ["x"]},
    {"key": "has", "operator": "Exists"}, {"key": "not", "operator": "DoesNotExist"}]}
FULL_LABELS = {"app": "web", "tier": "front", "zone": "a", "has": "it"}


def api(version, kind, name, namespace=NS, deleted=False, labels=None, annotations=None, **fields):
    meta = {"name": name}
    if namespace:
        meta["namespace"] = namespace
    if labels:
        meta["labels"] = labels
    if annotations:
        meta["annotations"] = annotations
    if deleted:
        meta["finalizers"] = ["tables.example/keep"]
    return {"apiVersion": version, "kind": kind, "metadata": meta, **fields}


def full(kind, version="apps/v1", **spec):
    template = {"metadata": {"labels": FULL_LABELS}, "spec": TEMPLATE["spec"]}
    return api(version, kind, "full-selector", spec={"selector": FULL_SELECTOR, "template": template, **spec})


def workloads():
    base = {"selector": SELECTOR, "template": TEMPLATE}
    yield "deployments.apps", api("apps/v1", "Deployment", "new", spec=base), None, False
    yield "deployments.apps", api("apps/v1", "Deployment", "scaled", spec={**base, "replicas": 5}), {
        "replicas": 5, "readyReplicas": 3, "updatedReplicas": 4, "availableReplicas": 3, "observedGeneration": 1}, False
    yield "deployments.apps", full("Deployment", replicas=0), None, False
    yield "replicasets.apps", api("apps/v1", "ReplicaSet", "rs", spec={**base, "replicas": 3}), {
        "replicas": 3, "readyReplicas": 1, "fullyLabeledReplicas": 3}, False
    yield "replicasets.apps", full("ReplicaSet"), None, False
    yield "statefulsets.apps", api("apps/v1", "StatefulSet", "db", spec={**base, "serviceName": "db", "replicas": 2}), {
        "replicas": 2, "readyReplicas": 1}, False
    yield "statefulsets.apps", full("StatefulSet", serviceName="x"), None, False
    nodes = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "nodeSelector": {"os": "linux", "disk": "ssd"}}}
    yield "daemonsets.apps", api("apps/v1", "DaemonSet", "agent", spec={**base, "template": nodes}), {
        "desiredNumberScheduled": 9, "currentNumberScheduled": 8, "numberReady": 7, "updatedNumberScheduled": 6,
        "numberAvailable": 5, "numberMisscheduled": 0}, False
    yield "daemonsets.apps", full("DaemonSet"), None, False
    rc = {"selector": {"tier": "front", "app": "web"}, "template": TEMPLATE}
    yield "replicationcontrollers", api("v1", "ReplicationController", "rc", spec={**rc, "replicas": 4}), {
        "replicas": 4, "readyReplicas": 2}, False
    yield "podtemplates", api("v1", "PodTemplate", "template", template=TEMPLATE), None, False
    yield "podtemplates", api("v1", "PodTemplate", "no-labels", template={"spec": {"containers": [
        {"name": "a", "image": "b"}]}}), None, False
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "1", "controller": True}
    for name, owners in (("rev-free", []), ("rev-owned", [{**owner, "controller": False, "name": "no", "uid": "2"}, owner]),
                         ("rev-core", [{**owner, "apiVersion": "v1", "kind": "Thing"}])):
        obj = api("apps/v1", "ControllerRevision", name, revision=7, data={"a": 1})
        obj["metadata"]["ownerReferences"] = owners
        yield "controllerrevisions.apps", obj, None, False


def jobs():
    template = {"spec": {"restartPolicy": "Never", "containers": TEMPLATE["spec"]["containers"]}}

    def job(name, status=None, deleted=False, **spec):
        return "jobs.batch", api("batch/v1", "Job", name, deleted=deleted, spec={"template": template, **spec}), status, deleted

    yield job("fresh")
    yield job("running", {"startTime": T0, "active": 1, "ready": 0})
    yield job("complete", {"startTime": T0, "completionTime": "2026-01-02T03:09:05Z", "succeeded": 1, "conditions": [
        condition("SuccessCriteriaMet"), condition("Complete")]})
    yield job("failed", {"startTime": T0, "failed": 1, "conditions": [condition("FailureTarget"), condition("Failed")]})
    yield job("suspended", {"conditions": [condition("Suspended")]}, suspend=True)
    yield job("failure-target", {"startTime": T0, "conditions": [condition("FailureTarget")]})
    yield job("criteria-met", {"startTime": T0, "conditions": [condition("SuccessCriteriaMet")]})
    yield job("terminating", {"startTime": T2}, True)
    yield job("many", {"startTime": T1, "succeeded": 2}, completions=5, parallelism=3)
    yield job("queue", {"startTime": T1, "succeeded": 1}, parallelism=4)
    yield job("no-longer-suspended", {"startTime": T1, "conditions": [condition("Suspended", "False")]})
    for name, spec, status in (
            ("plain", {}, None),
            ("busy", {"suspend": True, "timeZone": "Etc/UTC"}, {
                "lastScheduleTime": T2, "active": [{"kind": "Job", "name": "a", "namespace": NS}, {"kind": "Job", "name": "b"}]}),
            ("resumed", {"suspend": False}, None)):
        yield "cronjobs.batch", api("batch/v1", "CronJob", name, spec={
            "schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": template}}, **spec}), status, False


def scalers():
    def hpa(name, metrics=None, current=None, **spec):
        obj = api("autoscaling/v2", "HorizontalPodAutoscaler", name, spec={
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "scaled"}, "maxReplicas": 10, **spec})
        if metrics is not None:
            obj["spec"]["metrics"] = metrics
        status = None if current is None else {"currentReplicas": 3, "desiredReplicas": 4, "currentMetrics": current}
        return "horizontalpodautoscalers.autoscaling", obj, status, False

    def metric(kind, target, **more):
        field = kind[0].lower() + kind[1:]
        return {"type": kind, field: {"target": target, **more}}

    def current(kind, value, **more):
        field = kind[0].lower() + kind[1:]
        return {"type": kind, field: {"current": value, **more}}

    cpu = metric("Resource", {"type": "Utilization", "averageUtilization": 80}, name="cpu")
    memory = metric("Resource", {"type": "AverageValue", "averageValue": "500Mi"}, name="memory")
    named = {"metric": {"name": "rps"}}
    thing = {"describedObject": {"kind": "Service", "name": "web"}, **named}
    box = {"name": "cpu", "container": "web"}
    yield hpa("default")
    yield hpa("cpu", [cpu], [current("Resource", {"averageUtilization": 55, "averageValue": "200m"}, name="cpu")], minReplicas=2)
    yield hpa("cpu-unknown", [cpu], [])
    yield hpa("memory", [memory], [current("Resource", {"averageValue": "123456789"}, name="memory")])
    yield hpa("memory-unknown", [memory])
    yield hpa("pods", [metric("Pods", {"type": "AverageValue", "averageValue": "1k"}, **named)],
              [current("Pods", {"averageValue": "1500m"}, **named)])
    yield hpa("object", [metric("Object", {"type": "Value", "value": "2k"}, **thing)],
              [current("Object", {"value": "10"}, **thing)])
    yield hpa("object-average", [metric("Object", {"type": "AverageValue", "averageValue": "2"}, **thing)],
              [current("Object", {"value": "10", "averageValue": "3"}, **thing)])
    yield hpa("external", [metric("External", {"type": "Value", "value": "30"}, **named)],
              [current("External", {"value": "31"}, **named)])
    yield hpa("external-average", [metric("External", {"type": "AverageValue", "averageValue": "30"}, **named)],
              [current("External", {"value": "0", "averageValue": "8"}, **named)])
    yield hpa("external-unknown", [metric("External", {"type": "AverageValue", "averageValue": "30"}, **named)])
    yield hpa("container", [metric("ContainerResource", {"type": "Utilization", "averageUtilization": 70}, **box)],
              [current("ContainerResource", {"averageUtilization": 7, "averageValue": "1"}, **box)])
    yield hpa("container-value", [metric("ContainerResource", {"type": "AverageValue", "averageValue": "1"}, **box)])
    yield hpa("three", [cpu, memory, metric("Pods", {"type": "AverageValue", "averageValue": "5"}, **named)],
              [current("Resource", {"averageUtilization": 1, "averageValue": "1m"}, name="cpu")])


def network():
    def service(name, status=None, **spec):
        return "services", api("v1", "Service", name, labels={"app": name}, spec=spec), status, False

    web = {"ports": [{"name": "http", "port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"}], "selector": {"b": "2", "a": "1"}}
    yield service("cluster", **web)
    yield service("headless", clusterIP="None", selector={"a": "1"})
    yield service("no-ports", clusterIP="None")
    yield service("external-ips", **web, externalIPs=["192.0.2.1", "192.0.2.2"])
    yield service("node-port", type="NodePort", ports=[{"port": 443, "nodePort": 30443}])
    yield service("balanced-pending", type="LoadBalancer", ports=[{"port": 1, "nodePort": 30001}])
    yield service("balanced", {"loadBalancer": {"ingress": [{"ip": "203.0.113.9"}, {"hostname": "lb-with-a-long-name.example.com"},
                                                           {"ip": "203.0.113.1"}, {"ip": "203.0.113.9"}]}},
                  type="LoadBalancer", ports=[{"port": 2, "nodePort": 30002}], externalIPs=["192.0.2.3"])
    yield service("external-name", type="ExternalName", externalName="db.example.com")

    def endpoints(name, subsets):
        return "endpoints", api("v1", "Endpoints", name, subsets=subsets), None, False

    ips = [{"ip": f"10.0.1.{i}"} for i in range(1, 6)]
    yield endpoints("none", [])
    yield endpoints("one", [{"addresses": ips[:1], "ports": [{"port": 80}]}])
    yield endpoints("three", [{"addresses": ips[:3], "ports": [{"port": 80}]}])
    yield endpoints("five", [{"addresses": ips, "ports": [{"port": 80}]}])
    yield endpoints("ports", [{"addresses": ips[:2], "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}]}])
    yield endpoints("no-ports", [{"addresses": ips[:4]}])
    yield endpoints("not-ready", [{"notReadyAddresses": ips[:2], "ports": [{"port": 80}]}])
    yield endpoints("v6", [{"addresses": [{"ip": "fd00::1"}], "ports": [{"port": 80}]}, {"addresses": ips[:1], "ports": [{"port": 9}]}])

    def endpointslice(name, ends, ports, kind="IPv4"):
        return "endpointslices.discovery.k8s.io", api("discovery.k8s.io/v1", "EndpointSlice", name, addressType=kind,
                                                     endpoints=ends, ports=ports), None, False

    yield endpointslice("empty", [], [])
    yield endpointslice("some", [{"addresses": ["10.0.1.1"]}, {"addresses": ["10.0.1.2"]}], [{"port": 80, "name": "http"}])
    yield endpointslice("any-port", [{"addresses": ["10.0.1.1"]}], [{"name": ""}])
    yield endpointslice("named-port", [{"addresses": ["10.0.1.1"]}], [{"name": "x"}, {"name": "y", "port": 1}])
    yield endpointslice("many", [{"addresses": [f"10.0.2.{i}"]} for i in range(1, 6)],
                [{"port": i, "name": f"p{i}"} for i in range(1, 6)])

    def ingress(name, rules, status=None, **spec):
        paths = {"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": {
            "name": "web", "port": {"number": 80}}}}]}}
        spec["rules"] = [{**({"host": rule} if rule else {}), **paths} for rule in rules]
        return "ingresses.networking.k8s.io", api("networking.k8s.io/v1", "Ingress", name, spec=spec), status, False

    yield ingress("any", [None])
    yield ingress("hosts", ["a.example", "b.example"], ingressClassName="nginx", tls=[{"hosts": ["a.example"]}])
    yield ingress("many-hosts", [f"h{i}.example" for i in range(5)], {"loadBalancer": {"ingress": [
        {"hostname": "z.example"}, {"ip": "203.0.113.5"}]}})
    yield ingress("mixed", ["a.example", None, "b.example", "c.example"])
    yield ingress("three-and-any", ["a.example", "b.example", "c.example", None])
    for name, annotations, spec in (
            ("nginx", {"ingressclass.kubernetes.io/is-default-class": "true"}, {}),
            ("params", None, {"parameters": {"apiGroup": "k.example", "kind": "Params", "name": "p", "scope": "Cluster"}}),
            ("core-params", None, {"parameters": {"kind": "ConfigMap", "name": "p", "scope": "Cluster"}})):
        yield "ingressclasses.networking.k8s.io", api("networking.k8s.io/v1", "IngressClass", name, None, annotations=annotations,
                                                     spec={"controller": "example.com/" + name, **spec}), None, False
    for name, selector in (("all", {}), ("some", SELECTOR), ("full", FULL_SELECTOR)):
        yield "networkpolicies.networking.k8s.io", api("networking.k8s.io/v1", "NetworkPolicy", name, spec={"podSelector": selector}), None, False
    yield "servicecidrs.networking.k8s.io", api("networking.k8s.io/v1", "ServiceCIDR", "extra", None,
                                               spec={"cidrs": ["10.7.0.0/24", "fd07::/112"]}), None, False
    yield "ipaddresses.networking.k8s.io", api("networking.k8s.io/v1", "IPAddress", "10.0.0.250", None,
                                              labels={"ipaddress.kubernetes.io/managed-by": "x", "ipaddress.kubernetes.io/ip-family": "IPv4"},
                                              spec={"parentRef": {"group": "apps.example", "resource": "things", "namespace": "n", "name": "t"}}), None, False
    yield "ipaddresses.networking.k8s.io", api("networking.k8s.io/v1", "IPAddress", "10.0.0.251", None, spec={
        "parentRef": {"resource": "things", "name": "t"}}), None, False


def storage():
    beta = {"volume.beta.kubernetes.io/storage-class": "beta"}

    def volume(name, status=None, deleted=False, annotations=None, **spec):
        spec = {"capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}, **spec}
        return "persistentvolumes", api("v1", "PersistentVolume", name, None, deleted, annotations=annotations, spec=spec), status, deleted

    yield volume("available", {"phase": "Available"})
    yield volume("bound", {"phase": "Bound"}, accessModes=["ReadWriteMany", "ReadOnlyMany", "ReadWriteOnce"],
                 claimRef={"namespace": NS, "name": "bound", "kind": "PersistentVolumeClaim"}, storageClassName="fast",
                 persistentVolumeReclaimPolicy="Delete", volumeMode="Block")
    yield volume("failed", {"phase": "Failed", "reason": "Broken"}, annotations=beta, capacity={"storage": "1536Mi"})
    yield volume("going", {"phase": "Released"}, True, accessModes=["ReadWriteOncePod"])

    def claim(name, status=None, deleted=False, annotations=None, **spec):
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
        return "persistentvolumeclaims", api("v1", "PersistentVolumeClaim", name, NS, deleted, annotations=annotations, spec=spec), status, deleted

    yield claim("pending", {"phase": "Pending"})
    yield claim("bound", {"phase": "Bound", "capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteMany", "ReadWriteOnce"]},
                volumeName="bound", storageClassName="fast")
    yield claim("bound-unsized", {"phase": "Bound"}, volumeName="x", annotations=beta, volumeMode="Block")
    yield claim("lost", {"phase": "Lost"}, volumeName="gone", storageClassName="")
    yield claim("going", {"phase": "Bound", "capacity": {"storage": "1Gi"}}, True, volumeName="y", volumeAttributesClassName="gold")
    for name, more in (
            ("plain", {}),
            ("default", {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}, "allowVolumeExpansion": True}),
            ("beta-default", {"annotations": {"storageclass.beta.kubernetes.io/is-default-class": "true"},
                              "reclaimPolicy": "Retain", "volumeBindingMode": "WaitForFirstConsumer"})):
        yield "storageclasses.storage.k8s.io", api("storage.k8s.io/v1", "StorageClass", name, None, provisioner="csi.example", **more), None, False
    yield "volumeattributesclasses.storage.k8s.io", api("storage.k8s.io/v1", "VolumeAttributesClass", "gold", None,
                                                       driverName="csi.example", parameters={"iops": "9"}), None, False
    attach = {"attacher": "csi.example", "nodeName": "node-1", "source": {"persistentVolumeName": "bound"}}
    yield "volumeattachments.storage.k8s.io", api("storage.k8s.io/v1", "VolumeAttachment", "a", None, spec=attach), None, False
    yield "volumeattachments.storage.k8s.io", api("storage.k8s.io/v1", "VolumeAttachment", "b", None, spec=attach), {"attached": True}, False
    yield "csidrivers.storage.k8s.io", api("storage.k8s.io/v1", "CSIDriver", "plain.example", None, spec={}), None, False
    yield "csidrivers.storage.k8s.io", api("storage.k8s.io/v1", "CSIDriver", "full.example", None, spec={
        "attachRequired": False, "podInfoOnMount": True, "storageCapacity": True, "requiresRepublish": True,
        "tokenRequests": [{"audience": "a"}, {"audience": "b"}], "volumeLifecycleModes": ["Persistent", "Ephemeral"]}), None, False
    yield "csinodes.storage.k8s.io", api("storage.k8s.io/v1", "CSINode", "none", None, spec={"drivers": []}), None, False
    yield "csinodes.storage.k8s.io", api("storage.k8s.io/v1", "CSINode", "two", None, spec={"drivers": [
        {"name": "a.example", "nodeID": "1"}, {"name": "b.example", "nodeID": "1"}]}), None, False
    yield "csistoragecapacities.storage.k8s.io", api("storage.k8s.io/v1", "CSIStorageCapacity", "c", storageClassName="fast", capacity="5Gi"), None, False


def small():
    def node(name, conditions=(), labels=None, addresses=(), info=None, **spec):
        status = {"conditions": list(conditions), "addresses": [{"type": t, "address": a} for t, a in addresses]}
        if info:
            keys = ("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion", "kubeletVersion",
                    "kubeProxyVersion", "operatingSystem", "architecture")
            status["nodeInfo"] = {key: info.get(key, "") for key in keys}
        return "nodes", api("v1", "Node", name, None, labels=labels, spec=spec), status, False

    ready = [condition("MemoryPressure", "False"), condition("Ready")]
    info = {"kubeletVersion": "v1.36.3", "osImage": "Debian 12", "kernelVersion": "6.1.0", "containerRuntimeVersion": "containerd://2.0",
            "architecture": "arm64"}
    yield node("new")
    yield node("ready", ready, {"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/control-plane": "", "kubernetes.io/role": "edge"}, [("Hostname", "h"), ("InternalIP", "10.9.0.1"), ("InternalIP", "fd00::1"),
                                                                   ("ExternalIP", "198.51.100.1")], info)
    yield node("cordoned", ready, unschedulable=True, info={"kubeletVersion": "v1.35.0"})
    yield node("broken", [condition("Ready", "False")])
    yield node("lost", [condition("Ready", "Unknown")], {"kubernetes.io/role": "worker"}, unschedulable=True)
    yield node("no-arch", ready, info={"kernelVersion": "5.10"})

    involved = {"kind": "Pod", "name": "running", "namespace": NS, "apiVersion": "v1", "fieldPath": "spec.containers{web}"}

    def event(name, **fields):
        fields.setdefault("involvedObject", involved)
        return "events", api("v1", "Event", name, **fields), None, False

    yield event("plain", type="Normal", reason="Started", message="Started container\n", firstTimestamp=T0, lastTimestamp=T1,
                count=4, source={"component": "kubelet", "host": "node-1"})
    yield event("single", type="Warning", reason="Bad", message="two\nlines", firstTimestamp=T1, source={"component": "kubelet"})
    yield event("no-name", reason="Odd", involvedObject={"kind": "Node", "namespace": NS}, message="  \ttabs\tand blanks  ")
    yield event("bare", message="")
    new = {"reportingComponent": "example.com/ctl", "reportingInstance": "ctl-1", "action": "Act", "type": "Normal", "reason": "New"}
    yield event("new-style", eventTime="2026-05-05T05:05:05.123456Z", message="new", **new)
    yield event("series", eventTime="2026-05-05T05:05:05.123456Z", message="many", **new,
                series={"count": 17, "lastObservedTime": "2026-11-20T01:02:03.000004Z"})
    for phase in ("one", "two"):
        yield "namespaces", api("v1", "Namespace", f"tables-{phase}", None, labels={"l": phase}), None, False
    yield "secrets", api("v1", "Secret", "empty"), None, False
    yield "secrets", api("v1", "Secret", "two", type="example.com/kind", data={"a": "", "b": base64.b64encode(b"x").decode()}), None, False
    yield "configmaps", api("v1", "ConfigMap", "empty"), None, False
    yield "configmaps", api("v1", "ConfigMap", "both", data={"a": "1", "b": "2"}, binaryData={"c": "AA=="}), None, False
    yield "serviceaccounts", api("v1", "ServiceAccount", "robot"), None, False
    yield "resourcequotas", api("v1", "ResourceQuota", "none", spec={}), None, False
    yield "resourcequotas", api("v1", "ResourceQuota", "all", spec={"hard": {"pods": "500"}}), {
        "hard": {"pods": "500", "requests.cpu": "4", "limits.cpu": "8", "limits.memory": "2Gi", "count/jobs.batch": "5"},
        "used": {"pods": "3", "requests.cpu": "1500m", "limits.cpu": "2", "limits.memory": "512Mi"}}, False
    yield "limitranges", api("v1", "LimitRange", "limits", spec={"limits": [{"type": "Container", "default": {"cpu": "1"}}]}), None, False
    for name, spec in (("min", {"minAvailable": 2}), ("percent", {"maxUnavailable": "30%"}), ("neither", {})):
        yield "poddisruptionbudgets.policy", api("policy/v1", "PodDisruptionBudget", name, spec={"selector": SELECTOR, **spec}), {
            "disruptionsAllowed": 1, "currentHealthy": 3, "desiredHealthy": 2, "expectedPods": 3}, False
    yield "priorityclasses.scheduling.k8s.io", api("scheduling.k8s.io/v1", "PriorityClass", "high", None, value=1000, globalDefault=True), None, False
    yield "priorityclasses.scheduling.k8s.io", api("scheduling.k8s.io/v1", "PriorityClass", "low", None, value=-5, preemptionPolicy="Never"), None, False
    yield "runtimeclasses.node.k8s.io", api("node.k8s.io/v1", "RuntimeClass", "fast", None, handler="runc"), None, False
    yield "leases.coordination.k8s.io", api("coordination.k8s.io/v1", "Lease", "free", spec={}), None, False
    yield "leases.coordination.k8s.io", api("coordination.k8s.io/v1", "Lease", "held", spec={
        "holderIdentity": "me", "renewTime": "2026-01-01T00:00:00.000000Z", "leaseDurationSeconds": 9}), None, False


def access():
    rbac = "rbac.authorization.k8s.io"
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    yield f"roles.{rbac}", api(f"{rbac}/v1", "Role", "reader", rules=rules), None, False
    yield f"clusterroles.{rbac}", api(f"{rbac}/v1", "ClusterRole", "tables-reader", None, rules=rules), None, False
    subjects = [{"kind": "User", "name": "ann"}, {"kind": "ServiceAccount", "name": "robot", "namespace": NS}, {"kind": "Group", "name": "devs"},
                {"kind": "User", "name": "bob"}, {"kind": "ServiceAccount", "name": "other", "namespace": "x"}]
    for kind, resource, namespace in (("RoleBinding", "rolebindings", NS), ("ClusterRoleBinding", "clusterrolebindings", None)):
        for name, who in (("tables-many", subjects), ("tables-nobody", [])):
            yield f"{resource}.{rbac}", api(f"{rbac}/v1", kind, name, namespace, subjects=who, roleRef={
                "apiGroup": rbac, "kind": "ClusterRole", "name": "tables-reader"}), None, False
    admission = "admissionregistration.k8s.io"
    hook = {"clientConfig": {"url": "https://127.0.0.1:1/x"}, "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore"}
    hooks = [{**hook, "name": f"h{i}.tables.example"} for i in range(2)]
    for kind, resource in (("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
                           ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations")):
        yield f"{resource}.{admission}", api(f"{admission}/v1", kind, "tables-two", None, webhooks=hooks), None, False
        yield f"{resource}.{admission}", api(f"{admission}/v1", kind, "tables-none", None, webhooks=[]), None, False
    match = {"resourceRules": [{"apiGroups": ["x.example"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["things"]}]}
    kind = {"paramKind": {"apiVersion": "tables.example/v1", "kind": "Widget"}}
    checks = [{"expression": "true"}, {"expression": "1 == 1"}]
    for name, more in (("tables-plain", {}), ("tables-param", kind)):
        yield f"validatingadmissionpolicies.{admission}", api(f"{admission}/v1", "ValidatingAdmissionPolicy", name, None, spec={
            "matchConstraints": match, "validations": checks, **more}), None, False
        yield f"mutatingadmissionpolicies.{admission}", api(f"{admission}/v1", "MutatingAdmissionPolicy", name, None, spec={
            "matchConstraints": match, "reinvocationPolicy": "Never", "mutations": [{"patchType": "JSONPatch", "jsonPatch": {
                "expression": "[JSONPatch{op: 'remove', path: '/metadata/labels'}]"}}], **more}), None, False
    absent = {"parameterNotFoundAction": "Allow"}
    for name, more in (("tables-none", {}), ("tables-name", {"paramRef": {"name": "p", **absent}}),
                       ("tables-both", {"paramRef": {"name": "p", "namespace": "n", **absent}}),
                       ("tables-selector", {"paramRef": {"selector": FULL_SELECTOR, **absent}}),
                       ("tables-everything", {"paramRef": {"selector": {}, **absent}})):
        yield f"validatingadmissionpolicybindings.{admission}", api(f"{admission}/v1", "ValidatingAdmissionPolicyBinding", name, None, spec={
            "policyName": "tables-param", "validationActions": ["Deny"], **more}), None, False
        yield f"mutatingadmissionpolicybindings.{admission}", api(f"{admission}/v1", "MutatingAdmissionPolicyBinding", name, None, spec={
            "policyName": "tables-param", **more}), None, False


def requests(csr):
    """Certificate signing requests; CSR is a PEM text."""
    wanted = {"request": base64.b64encode(csr).decode(), "usages": ["client auth"], "signerName": "example.com/signer"}
    ok = {"status": "True", "lastUpdateTime": T1, "lastTransitionTime": T1, "reason": "x"}
    for name, spec, types in (("pending", {}, []), ("approved", {"expirationSeconds": 3600}, ["Approved"]), ("denied", {"expirationSeconds": 864000}, ["Denied"]),
                              ("failed", {}, ["Approved", "Failed"]), ("issued", {}, ["Approved"])):
        yield "certificatesigningrequests.certificates.k8s.io", api("certificates.k8s.io/v1", "CertificateSigningRequest", name, None, spec={
            **wanted, **spec}), {"conditions": [{**ok, "type": t} for t in types], "certificate": name == "issued"}, False


def devices():
    group = "resource.k8s.io"
    version = f"{group}/v1"
    yield f"deviceclasses.{group}", api(version, "DeviceClass", "gpu", None, spec={}), None, False
    devices = {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}
    result = {"devices": {"results": [{"request": "r", "driver": "gpu.example", "pool": "p", "device": "d"}]}}
    user = [{"resource": "pods", "name": "running", "uid": "1"}]
    for name, status, deleted in (("pending", None, False), ("allocated", {"allocation": result}, False),
                                  ("reserved", {"allocation": result, "reservedFor": user}, False), ("going", None, True),
                                  ("going-reserved", {"allocation": result, "reservedFor": user}, True)):
        yield f"resourceclaims.{group}", api(version, "ResourceClaim", name, NS, deleted, spec={"devices": devices}), status, deleted
    yield f"resourceclaimtemplates.{group}", api(version, "ResourceClaimTemplate", "t", spec={"spec": {"devices": devices}}), None, False
    pool = {"driver": "gpu.example", "pool": {"name": "pool-1", "generation": 1, "resourceSliceCount": 1}}
    yield f"resourceslices.{group}", api(version, "ResourceSlice", "of-node", None, spec={**pool, "nodeName": "node-1", "devices": [{"name": "d"}]}), None, False
    yield f"resourceslices.{group}", api(version, "ResourceSlice", "of-all", None, spec={**pool, "allNodes": True, "devices": [{"name": "e"}]}), None, False
    taint = {"key": "example.com/bad", "value": "yes", "effect": "NoExecute"}
    for name, more in (("now", {}), ("then", {"timeAdded": T1})):
        yield f"devicetaintrules.{group}", api(f"{group}/v1beta2", "DeviceTaintRule", name, None, spec={"deviceSelector": {"driver": "gpu.example"}, "taint": {**taint, **more}}), None, False
    ended = {"reason": "x", "message": "", "lastTransitionTime": T1, "status": "True"}
    pools = [{"driver": "gpu.example", "poolName": "a", "generation": 1, "nodeName": "n", "totalDevices": 4, "availableDevices": 1, "allocatedDevices": 2,
              "unavailableDevices": 1}, {"driver": "gpu.example", "poolName": "b", "generation": 1, "validationError": "wrong"}]
    for name, status in (("pending", None), ("complete", {"poolCount": 2, "pools": pools, "conditions": [{**ended, "type": "Complete"}]}),
                         ("truncated", {"poolCount": 9, "pools": pools[:1], "conditions": [{**ended, "type": "Complete"}]}),
                         ("failed", {"poolCount": 0, "conditions": [{**ended, "type": "Failed"}]})):
        yield f"resourcepoolstatusrequests.{group}", api(f"{group}/v1alpha3", "ResourcePoolStatusRequest", name, None, spec={"driver": "gpu.example"}), status, False


def control():
    flow = "flowcontrol.apiserver.k8s.io"
    rules = [{"subjects": [{"kind": "Group", "group": {"name": "g"}}], "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}]}]
    for name, more, status in (("tables-user", {"distinguisherMethod": {"type": "ByUser"}}, {"conditions": [{
            "type": "Dangling", "status": "True", "lastTransitionTime": T1, "reason": "x", "message": ""}]}), ("tables-plain", {}, None)):
        yield f"flowschemas.{flow}", api(f"{flow}/v1", "FlowSchema", name, None, spec={
            "priorityLevelConfiguration": {"name": "tables-queue"}, "matchingPrecedence": 55, "rules": rules, **more}), status, False
    for name, response in (("tables-queue", {"type": "Queue", "queuing": {"queues": 16, "handSize": 4, "queueLengthLimit": 10}}), ("tables-reject", {"type": "Reject"})):
        yield f"prioritylevelconfigurations.{flow}", api(f"{flow}/v1", "PriorityLevelConfiguration", name, None, spec={
            "type": "Limited", "limited": {"nominalConcurrencyShares": 7, "limitResponse": response}}), None, False
    yield "apiservices.apiregistration.k8s.io", api("apiregistration.k8s.io/v1", "APIService", "v1.away.example", None, spec={
        "group": "away.example", "version": "v1", "groupPriorityMinimum": 10, "versionPriority": 10, "insecureSkipTLSVerify": True,
        "service": {"namespace": "tables", "name": "away", "port": 443}}), None, False
    versions = [{"apiServerID": f"kas-{i}", "encodingVersion": "v1", "decodableVersions": ["v1"], "servedVersions": ["v1"]} for i in range(5)]
    for name, status in (("apps.tables1", {}), ("apps.tables2", {"storageVersions": versions[:2], "commonEncodingVersion": "v1", "conditions": [{
            "type": "AllEncodingVersionsEqual", "status": "True", "reason": "x", "message": "y", "lastTransitionTime": T1}]}), ("apps.tables5", {"storageVersions": [
            {**v, "encodingVersion": f"v{i}", "decodableVersions": [f"v{i}"], "servedVersions": [f"v{i}"]} for i, v in enumerate(versions)]})):
        yield "storageversions.internal.apiserver.k8s.io", api("internal.apiserver.k8s.io/v1alpha1", "StorageVersion", name, None, spec={}), status, False
    ended = {"reason": "x", "message": "y", "lastTransitionTime": T1}
    for name, group, conditions in (("waits", "", []), ("runs", "apps", [("Running", "True")]), ("done", "apps", [("Running", "False"), ("Succeeded", "True")])):
        yield "storageversionmigrations.storagemigration.k8s.io", api("storagemigration.k8s.io/v1beta1", "StorageVersionMigration", name, None, spec={
            "resource": {"group": group, "resource": "pods" if not group else "deployments"}}), {
            "conditions": [{**ended, "type": t, "status": s} for t, s in conditions], "resourceVersion": "5"}, False
    yield "leasecandidates.coordination.k8s.io", api("coordination.k8s.io/v1beta1", "LeaseCandidate", "c", spec={
        "leaseName": "l", "binaryVersion": "1.36.0", "emulationVersion": "1.35.0", "strategy": "OldestEmulationVersion",
        "pingTime": "2026-01-01T00:00:00.000000Z", "renewTime": "2026-01-01T00:00:00.000000Z"}), None, False
    schedule = "scheduling.k8s.io/v1alpha2"
    yield "workloads.scheduling.k8s.io", api(schedule, "Workload", "w", spec={"podGroupTemplates": [
        {"name": "t", "schedulingPolicy": {"basic": {}}}]}), None, False
    reference = {"podGroupTemplateRef": {"workload": {"workloadName": "w", "podGroupTemplateName": "t"}}}
    for name, spec, conditions in (
            ("basic", {"schedulingPolicy": {"basic": {}}}, []), ("gang", {"schedulingPolicy": {"gang": {"minCount": 2}}, **reference}, [("PodGroupScheduled", "True", "Scheduled")]),
            ("stuck", {"schedulingPolicy": {"basic": {}}}, [("PodGroupScheduled", "False", "Unschedulable")]),
            ("pushed-out", {"schedulingPolicy": {"basic": {}}}, [("PodGroupScheduled", "True", "Scheduled"), ("DisruptionTarget", "True", "PreemptionByScheduler")])):
        yield "podgroups.scheduling.k8s.io", api(schedule, "PodGroup", name, spec=spec), {"conditions": [
            {"type": t, "status": s, "reason": r, "message": "", "lastTransitionTime": T1} for t, s, r in conditions]}, False


def custom():
    """A definition with columns, one without, and one whose columns lead nowhere; their objects."""
    def crd(plural, kind, columns, scope="Namespaced"):
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": True}}, "subresources": {"status": {}}}
        if columns is not None:
            version["additionalPrinterColumns"] = columns
        return "customresourcedefinitions.apiextensions.k8s.io", api(
            "apiextensions.k8s.io/v1", "CustomResourceDefinition", f"{plural}.tables.example", None, spec={
                "group": "tables.example", "scope": scope, "versions": [version], "names": {
                    "plural": plural, "singular": kind.lower(), "kind": kind, "listKind": kind + "List"}}), None, False

    def column(name, kind, path, **more):
        return {"name": name, "type": kind, "jsonPath": path, **more}

    yield crd("widgets", "Widget", [
        column("Ready", "string", '.status.conditions[?(@.type=="Ready")].status', description="Whether it is ready"),
        column("Reason", "string", ".status.conditions[?(@.type=='Ready')].reason", priority=1),
        column("Size", "integer", ".spec.size"), column("Ratio", "number", ".spec.ratio"),
        column("On", "boolean", ".spec.on"), column("Since", "date", ".spec.since"), column("Map", "string", ".spec.map"),
        column("First", "string", ".spec.list[0]"), column("All", "string", ".spec.list[*]"), column("Last", "string", ".spec.list[-1:]"),
        column("Dotted", "string", ".metadata.annotations.example\\.com/x"), column("Deep", "string", "..deep"),
        column("Two", "string", ".spec['size','on']"), column("Age", "date", ".metadata.creationTimestamp")])
    yield crd("gadgets", "Gadget", None)
    yield crd("gizmos", "Gizmo", [column("Nothing", "string", ".a.b.c"), column("Beyond", "string", ".spec.list[9]"),
                                  column("NotAList", "string", ".spec.on[0]"), column("Long", "string", ".spec.on", format="byte", priority=3)], "Cluster")
    ready = [{"type": "Other", "status": "True"}, {"type": "Ready", "status": "False", "reason": "Because"}]

    def widget(name, status=None, annotations=None, **spec):
        return "widgets.tables.example", api("tables.example/v1", "Widget", name, annotations=annotations, spec=spec), status, False

    yield widget("bare")
    yield widget("full", {"conditions": ready}, {"example.com/x": "dots"}, size=7, ratio=0.25, on=True, since=T1, map={"b": 1, "a": [True, None]},
                 list=["x", "y", "z"], more={"deep": "down"})
    yield widget("wrong-types", {"conditions": []}, size="seven", ratio="half", on="yes", since="yesterday", map="text", list={"a": 1})
    yield widget("numbers", size=3.0, ratio=12, list=[1, 2.5], map=5, deep=1)
    yield widget("big", size=9007199254740993, ratio=1e21, on=False, since="", map=1.5, list=[])
    yield widget("nulls", size=None, ratio=None, on=None, since=None, map=None, list=[None])
    yield "gadgets.tables.example", api("tables.example/v1", "Gadget", "g", spec={}), None, False
    yield "gizmos.tables.example", api("tables.example/v1", "Gizmo", "z", None, spec={"on": True, "list": [1]}), None, False


def objects(csr):
    yield "namespaces", api("v1", "Namespace", NS, None), None, False
    yield from custom()
    for obj, status, deleted in pods():
        yield "pods", obj, status, deleted
    for part in (workloads, jobs, scalers, network, storage, small, access, devices, control):
        yield from part()
    yield from requests(csr)
