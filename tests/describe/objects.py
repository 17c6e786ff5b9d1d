# SPDX-License-Identifier: Apache-2.0
"""Objects that belong together, for the comparison of `kinf describe` with kubectl's: make(server) creates them.

tests/tables/objects.py has objects of each kind in many states; these have what a description shows beside that:
containers with everything, owners, endpoints, claims in use, quotas, events.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tables"))
from lab import Server  # noqa: E402,F401

NS = "described"
T = ["2026-01-02T03:04:05Z", "2026-01-02T04:00:00Z", "2026-02-28T23:59:59Z"]
LONG = "x" * 150


def meta(name, namespace=NS, **fields):
    return {"name": name, **({"namespace": namespace} if namespace else {}), **fields}


def owned(kind, name, uid, version="apps/v1"):
    return [{"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": True}]


PROBE = {"initialDelaySeconds": 5, "timeoutSeconds": 2, "periodSeconds": 7, "successThreshold": 1, "failureThreshold": 4}
VOLUMES = [
    {"name": "host", "hostPath": {"path": "/var/log", "type": "Directory"}},
    {"name": "plain-host", "hostPath": {"path": "/tmp"}},
    {"name": "scratch", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}},
    {"name": "unlimited", "emptyDir": {}},
    {"name": "keys", "secret": {"secretName": "keys", "optional": True}},
    {"name": "config", "configMap": {"name": "config"}},
    {"name": "claim", "persistentVolumeClaim": {"claimName": "data"}},
    {"name": "files", "nfs": {"server": "nfs.example", "path": "/export", "readOnly": True}},
    {"name": "me", "downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}, {
        "path": "cpu", "resourceFieldRef": {"containerName": "web", "resource": "limits.cpu", "divisor": "1m"}}]}},
    {"name": "all", "projected": {"sources": [{"secret": {"name": "keys"}}, {"configMap": {"name": "config", "optional": True}}, {
        "serviceAccountToken": {"path": "token", "expirationSeconds": 3607}}, {
        "downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]}}]}},
    {"name": "driver", "csi": {"driver": "disk.example", "volumeAttributes": {"b": "2", "a": "1"}}},
    {"name": "made", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast",
                                                                    "resources": {"requests": {"storage": "1Gi"}}}}}},
]
ENV = [
    {"name": "PLAIN", "value": "one"},
    {"name": "LINES", "value": "first\nsecond"},
    {"name": "EMPTY"},
    {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "k"}}},
    {"name": "SETTING", "valueFrom": {"configMapKeyRef": {"name": "config", "key": "k", "optional": True}}},
    {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
    {"name": "APP", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
]
CONTAINERS = [
    {"name": "web", "image": "web:1", "command": ["sh", "-c"], "args": ["echo a\necho b", "--flag"],
     "ports": [{"containerPort": 80, "name": "http"}, {"containerPort": 53, "protocol": "UDP", "hostPort": 5353}],
     "resources": {"limits": {"memory": "128Mi", "cpu": "500m"}, "requests": {"cpu": "250m", "memory": "64Mi"}},
     "livenessProbe": {"httpGet": {"path": "/ok", "port": "http", "scheme": "HTTPS"}, **PROBE},
     "readinessProbe": {"exec": {"command": ["cat", "/ready"]}, **PROBE},
     "startupProbe": {"tcpSocket": {"port": 80}, **PROBE}, "env": ENV,
     "envFrom": [{"configMapRef": {"name": "config"}}, {"prefix": "P_", "secretRef": {"name": "keys", "optional": True}}],
     "volumeMounts": [{"name": "scratch", "mountPath": "/z"}, {"name": "config", "mountPath": "/etc/c", "readOnly": True},
                      {"name": "host", "mountPath": "/log", "subPath": "a b"}],
     "securityContext": {"seccompProfile": {"type": "Localhost", "localhostProfile": "p.json"}}},
    {"name": "side", "image": "side:2", "livenessProbe": {"grpc": {"port": 9, "service": "s"}, **PROBE}},
    {"name": "last", "image": "last:3", "ports": [{"containerPort": 8080}]},
]
POD = {"serviceAccountName": "default", "priorityClassName": "system-cluster-critical", "nodeSelector": {"b": "2", "a": "1"},
       "containers": CONTAINERS, "volumes": VOLUMES, "readinessGates": [{"conditionType": "example.com/ok"}, {"conditionType": "x/y"}],
       "initContainers": [{"name": "first", "image": "init:1", "resources": {"requests": {"cpu": "2"}}},
                          {"name": "proxy", "image": "proxy:1", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}}],
       "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
       "tolerations": [{"key": "b", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}, {"operator": "Exists"},
                       {"key": "a", "value": "v", "effect": "NoSchedule"}],
       "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
                                      "labelSelector": {"matchLabels": {"app": "web"}}},
                                     {"maxSkew": 2, "topologyKey": "host", "whenUnsatisfiable": "ScheduleAnyway"}]}
STATUSES = [
    {"name": "web", "ready": True, "restartCount": 3, "image": "web:1", "imageID": "sha256:1", "containerID": "c://1",
     "state": {"running": {"startedAt": T[1]}},
     "lastState": {"terminated": {"exitCode": 137, "signal": 9, "reason": "OOMKilled", "message": "too much", "startedAt": T[0],
                                  "finishedAt": T[1]}}},
    {"name": "side", "ready": False, "restartCount": 0, "image": "", "imageID": "",
     "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no"}}},
    {"name": "last", "ready": False, "restartCount": 1, "image": "", "imageID": "",
     "state": {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": T[0], "finishedAt": T[1]}}},
]
POD_STATUS = {"phase": "Running", "startTime": T[0], "podIP": "10.0.0.7", "podIPs": [{"ip": "10.0.0.7"}, {"ip": "fd00::7"}],
              "hostIP": "192.0.2.1", "hostIPs": [{"ip": "192.0.2.1"}], "qosClass": "Burstable", "reason": "Because", "message": "It is so",
              "conditions": [{"type": "Ready", "status": "False"}, {"type": "example.com/ok", "status": "True"}],
              "containerStatuses": STATUSES}
TEMPLATE = {"metadata": {"labels": {"app": "web", "b": "2"}, "annotations": {"note": "n"}},
            "spec": {k: v for k, v in POD.items() if k not in ("readinessGates",)}}
SELECTOR = {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "b", "operator": "In", "values": ["3", "2"]}]}
SMALL = {"metadata": {"labels": {"app": "web", "b": "2"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


class Maker:
    def __init__(self, server):
        self.server = server
        self.paths = server.resources()

    def path(self, resource, namespace):
        root, _, namespaced = self.paths[resource]
        if not namespaced:
            return root
        head, _, plural = root.rpartition("/")
        return f"{head}/namespaces/{namespace}/{plural}"

    def put(self, resource, version, kind, metadata, status=None, **fields):
        """Creates an object unless it exists; returns its uid."""
        root = self.path(resource, metadata.get("namespace"))
        code, answer = self.server.request("POST", root, {"apiVersion": version, "kind": kind, "metadata": metadata, **fields})
        assert code in (200, 201, 409), f"{resource} {metadata['name']}: {answer}"
        if status:
            code, answer = self.server.put_status(f"{root}/{metadata['name']}", status)
            assert code == 200, f"{resource} {metadata['name']}: {answer}"
        return self.server.get(f"{root}/{metadata['name']}")["metadata"]["uid"]


def make_work(m):
    deployment = m.put("deployments.apps", "apps/v1", "Deployment", meta("web", annotations={
        "deployment.kubernetes.io/revision": "2", "long": LONG, "lines": "a\nb\n", "kubectl.kubernetes.io/last-applied-configuration": "{}"}),
        {"replicas": 3, "updatedReplicas": 2, "readyReplicas": 1, "availableReplicas": 1, "unavailableReplicas": 2, "conditions": [
            {"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable"}]},
        spec={"replicas": 3, "selector": SELECTOR, "template": TEMPLATE, "minReadySeconds": 5,
              "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": "25%"}}})
    sets = [m.put("replicasets.apps", "apps/v1", "ReplicaSet", meta(f"web-{i}", labels={"app": "web", "b": "2"}, annotations={
        "deployment.kubernetes.io/revision": str(i)}, ownerReferences=owned("Deployment", "web", deployment)),
        {"replicas": i}, spec={"replicas": i, "selector": SELECTOR, "template": TEMPLATE if i == 2 else SMALL}) for i in (1, 2)]
    daemon = m.put("daemonsets.apps", "apps/v1", "DaemonSet", meta("agent"), {
        "desiredNumberScheduled": 9, "currentNumberScheduled": 8, "updatedNumberScheduled": 7, "numberAvailable": 6, "numberMisscheduled": 1,
        "numberReady": 1}, spec={"selector": SELECTOR, "template": TEMPLATE})
    m.put("statefulsets.apps", "apps/v1", "StatefulSet", meta("db"), {"replicas": 2}, spec={
        "replicas": 3, "selector": SELECTOR, "template": SMALL, "serviceName": "db",
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}},
        "volumeClaimTemplates": [{"metadata": {"name": "data", "labels": {"a": "1"}, "annotations": {"k": "v"}},
                                  "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast",
                                           "resources": {"requests": {"storage": "1Gi"}}}}]})
    cron = m.put("cronjobs.batch", "batch/v1", "CronJob", meta("nightly"), {"lastScheduleTime": T[1], "active": [{"name": "nightly-1"}, {"name": "nightly-2"}]},
                 spec={"schedule": "0 3 * * *", "timeZone": "Etc/UTC", "startingDeadlineSeconds": 9, "suspend": True, "jobTemplate": {
                     "spec": {"parallelism": 2, "template": {"spec": {**SMALL["spec"], "restartPolicy": "Never"}}}}})
    m.put("jobs.batch", "batch/v1", "Job", meta("nightly-1", ownerReferences=owned("CronJob", "nightly", cron, "batch/v1")), {
        "startTime": T[0], "active": 1, "ready": 1, "succeeded": 2, "failed": 3, "completedIndexes": "0,2-" + ",".join(map(str, range(5, 40, 2)))},
        spec={"completions": 50, "parallelism": 3, "completionMode": "Indexed", "activeDeadlineSeconds": 600, "ttlSecondsAfterFinished": 5,
              "template": {"spec": {**SMALL["spec"], "restartPolicy": "Never"}}})
    for i, phase in enumerate(["Running", "Pending", "Failed", "Running"]):
        m.put("pods", "v1", "Pod", meta(f"web-2-{i}", labels={"app": "web", "b": "2"}, ownerReferences=owned("ReplicaSet", "web-2", sets[1])),
              {"phase": phase, "qosClass": "BestEffort"}, spec={**SMALL["spec"], "nodeName": "node-1"})
    m.put("pods", "v1", "Pod", meta("agent-1", labels={"app": "web", "b": "2"}, ownerReferences=owned("DaemonSet", "agent", daemon)),
          {"phase": "Running"}, spec={"nodeName": "node-1", "containers": [
              {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1", "memory": "1Gi", "example.com/gpu": 1}, "limits": {"memory": "1536Mi", "example.com/gpu": 1}}}]})


def make_core(m):
    m.put("namespaces", "v1", "Namespace", meta(NS, None, labels={"team": "a"}))
    m.put("namespaces", "v1", "Namespace", meta("limited", None))
    m.put("serviceaccounts", "v1", "ServiceAccount", meta("default"))
    m.put("serviceaccounts", "v1", "ServiceAccount", meta("puller"), imagePullSecrets=[{"name": "a"}, {"name": "b"}])
    m.put("configmaps", "v1", "ConfigMap", meta("config"), data={"b": "one\ntwo\n", "a": "x", "empty": ""}, binaryData={"bin": "AAEC"})
    m.put("configmaps", "v1", "ConfigMap", meta("nothing"))
    m.put("secrets", "v1", "Secret", meta("keys"), data={"k": "c2VjcmV0", "empty": ""}, type="example.com/kind")
    m.put("resourcequotas", "v1", "ResourceQuota", meta("quota", "limited"), {"hard": {"pods": "10", "limits.cpu": "20"}, "used": {"pods": "3"}},
          spec={"hard": {"pods": "10", "limits.cpu": "20"}})
    m.put("limitranges", "v1", "LimitRange", meta("limits", "limited"), spec={"limits": [{"type": "Pod", "max": {"cpu": "20"}}]})
    node = m.put("nodes", "v1", "Node", meta("node-1", None, labels={"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "db"}), {
        "capacity": {"cpu": "8", "memory": "16Gi", "pods": "110", "example.com/gpu": "4", "hugepages-2Mi": "0", "ephemeral-storage": "100Gi"},
        "allocatable": {"cpu": "7910m", "memory": "15Gi", "pods": "110", "example.com/gpu": "4", "hugepages-2Mi": "0", "ephemeral-storage": "90Gi"},
        "addresses": [{"type": "InternalIP", "address": "192.0.2.1"}, {"type": "Hostname", "address": "node-1"}],
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "all is well", "lastHeartbeatTime": T[1],
                        "lastTransitionTime": T[0]}],
        "nodeInfo": {"machineID": "m", "systemUUID": "s", "bootID": "b", "kernelVersion": "6.1", "osImage": "Debian", "operatingSystem": "linux",
                     "architecture": "amd64", "containerRuntimeVersion": "containerd://2", "kubeletVersion": "v1.32.0", "kubeProxyVersion": ""}},
        spec={"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"], "providerID": "p://1", "unschedulable": True,
              "taints": [{"key": "z", "effect": "NoSchedule"}, {"key": "a", "value": "v", "effect": "NoExecute"}]})
    m.put("nodes", "v1", "Node", meta("bare", None))
    m.put("namespaces", "v1", "Namespace", meta("kube-node-lease", None))
    m.put("leases.coordination.k8s.io", "coordination.k8s.io/v1", "Lease", meta("node-1", "kube-node-lease"), spec={
        "holderIdentity": "node-1", "renewTime": "2026-01-02T03:04:05.123456Z"})
    return node


def make_network(m):
    m.put("services", "v1", "Service", meta("web", labels={"app": "web"}), spec={
        "type": "NodePort", "selector": {"b": "2", "app": "web"}, "sessionAffinity": "ClientIP", "externalIPs": ["192.0.2.9"],
        "ports": [{"name": "http", "port": 80, "targetPort": "http", "appProtocol": "h2c"}, {"name": "dns", "port": 53, "targetPort": 5353, "protocol": "UDP"}]})
    m.put("services", "v1", "Service", meta("headless"), spec={"clusterIP": "None", "selector": {"app": "none"}, "ports": [{"port": 80}]})
    m.put("services", "v1", "Service", meta("alias"), spec={"type": "ExternalName", "externalName": "a.example"})
    m.put("services", "v1", "Service", meta("balanced"), {"loadBalancer": {"ingress": [{"ip": "192.0.2.7", "ipMode": "VIP"}, {"hostname": "lb.example"}]}},
          spec={"type": "LoadBalancer", "ports": [{"port": 443}], "loadBalancerSourceRanges": ["192.0.2.0/24"]})
    m.put("endpointslices.discovery.k8s.io", "discovery.k8s.io/v1", "EndpointSlice", meta("web-1", labels={"kubernetes.io/service-name": "web"}),
          addressType="IPv4", ports=[{"name": "http", "port": 8080, "protocol": "TCP"}, {"name": "dns", "port": 5353, "protocol": "UDP"}],
          endpoints=[{"addresses": [f"10.0.0.{i}"], "conditions": {"ready": i != 2}} for i in range(1, 7)])
    m.put("ingresses.networking.k8s.io", "networking.k8s.io/v1", "Ingress", meta("front", annotations={"a": "b"}),
          {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}, {"hostname": "lb.example"}, {"ip": "192.0.2.7"}]}}, spec={
        "ingressClassName": "nginx", "tls": [{"hosts": ["a.example", "b.example"], "secretName": "cert"}, {"hosts": ["c.example"]}],
        "rules": [{"host": "a.example", "http": {"paths": [
            {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "web", "port": {"number": 80}}}},
            {"path": "/dns", "pathType": "Exact", "backend": {"service": {"name": "web", "port": {"name": "dns"}}}},
            {"path": "/gone", "pathType": "Exact", "backend": {"service": {"name": "gone", "port": {"number": 1}}}},
            {"path": "/r", "pathType": "Exact", "backend": {"resource": {"apiGroup": "x.example", "kind": "Bucket", "name": "b"}}}]}},
            {"http": {"paths": [{"path": "/any", "pathType": "Prefix", "backend": {"service": {"name": "headless", "port": {"number": 80}}}}]}}]})
    m.put("ingresses.networking.k8s.io", "networking.k8s.io/v1", "Ingress", meta("default-only"), spec={
        "defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}})


def make_storage(m):
    m.put("persistentvolumes", "v1", "PersistentVolume", meta("disk", None), {"phase": "Bound", "message": "m"}, spec={
        "capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteMany", "ReadWriteOnce"], "storageClassName": "fast",
        "csi": {"driver": "disk.example", "volumeHandle": "h", "volumeAttributes": {"b": "2", "a": "1"}},
        "claimRef": {"namespace": NS, "name": "data"}, "nodeAffinity": {"required": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}, {"key": "x", "operator": "Exists"}]}]}}})
    m.put("persistentvolumes", "v1", "PersistentVolume", meta("local", None), spec={
        "capacity": {"storage": "1Ti"}, "accessModes": ["ReadOnlyMany"], "hostPath": {"path": "/d"}, "persistentVolumeReclaimPolicy": "Delete"})
    m.put("persistentvolumeclaims", "v1", "PersistentVolumeClaim", meta("data"), {
        "phase": "Bound", "capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"], "conditions": [
            {"type": "Resizing", "status": "True", "reason": "r", "message": "m", "lastTransitionTime": T[1]}]}, spec={
        "accessModes": ["ReadWriteOnce"], "volumeName": "disk", "resources": {"requests": {"storage": "10Gi"}}, "storageClassName": "fast"})
    m.put("persistentvolumeclaims", "v1", "PersistentVolumeClaim", meta("pending"), spec={
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": ""})


def make_events(m, pod, node):
    about = {"kind": "Pod", "namespace": NS, "name": "full", "uid": pod, "apiVersion": "v1"}
    m.put("events", "v1", "Event", meta("full.1"), involvedObject={**about, "fieldPath": "spec.containers{web}"}, reason="Pulled",
          type="Normal", message="  pulled the image\n", source={"component": "kubelet"}, firstTimestamp=T[0], lastTimestamp=T[0], count=1)
    m.put("events", "v1", "Event", meta("full.2"), involvedObject=about, reason="BackOff", type="Warning", message="back-off",
          source={"component": "kubelet"}, firstTimestamp=T[0], lastTimestamp=T[2], count=7)
    m.put("events", "v1", "Event", meta("full.3"), involvedObject=about, reason="Scheduled", type="Normal", message="assigned",
          eventTime="2026-01-02T03:30:00.000000Z", reportingComponent="default-scheduler", reportingInstance="x", action="Binding",
          series={"count": 3, "lastObservedTime": "2026-01-03T03:30:00.000000Z"})
    m.put("events", "v1", "Event", meta("node-1.1", "default"), involvedObject={"kind": "Node", "name": "node-1", "uid": "node-1"},
          reason="Starting", type="Normal", message="kubelet", source={"component": "kubelet"}, firstTimestamp=T[0], lastTimestamp=T[0])
    m.put("events", "v1", "Event", meta("node-1.2", "default"), involvedObject={"kind": "Node", "name": "node-1", "uid": node},
          reason="Registered", type="Normal", message="registered", source={"component": "controller"}, firstTimestamp=T[1], lastTimestamp=T[1])


def make(server):
    m = Maker(server)
    node = make_core(m)
    make_storage(m)
    make_network(m)
    make_work(m)
    pod = m.put("pods", "v1", "Pod", meta("full", labels={"app": "full", "b": "2"}, annotations={"z": "1", "a": "two\nlines"}), POD_STATUS,
                spec={**POD, "nodeName": "node-1"})
    m.put("pods", "v1", "Pod", meta("small"), spec=SMALL["spec"])
    make_events(m, pod, node)
