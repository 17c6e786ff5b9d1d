# SPDX-License-Identifier: Apache-2.0
"""packaging/kubernetes: the output of kustomize for base and serve fits together, and the programs
accept it. tests/real/check_manifests.py gives all of it to a real API server."""

from pathlib import Path

import pytest
import yaml

from harness.process import program, run_command
from harness.tls import Authority

MANIFESTS = Path(__file__).resolve().parents[2] / "packaging" / "kubernetes"
API = "/var/run/secrets/kubernetes.io/serviceaccount"


def load(name):
    objects = [found for found in yaml.safe_load_all((MANIFESTS / name).read_text()) if found]
    return {found["kind"]: found for found in objects}


def patched(old, new):
    """OLD with the strategic merge patch NEW, as far as serve/daemonset.yaml needs it."""
    if isinstance(new, dict) and isinstance(old, dict) and "$patch" not in new:
        return {**old, **{key: patched(old.get(key), value) for key, value in new.items()}}
    if isinstance(new, list) and isinstance(old, list):
        key = "mountPath" if "mountPath" in new[0] else "name"
        by_key = {item[key]: item for item in new}
        return [patched(item, by_key.pop(item[key], {})) for item in old] + list(by_key.values())
    return {key: value for key, value in new.items() if key != "$patch"} if isinstance(new, dict) else new


@pytest.fixture(scope="module")
def node():
    found = {}
    for name in ("namespace", "serviceaccount", "rbac", "daemonset"):
        found |= load(f"base/{name}.yaml")
    found |= load("serve/service.yaml")
    found["DaemonSet"] = patched(found["DaemonSet"], load("serve/daemonset.yaml")["DaemonSet"])
    return found


@pytest.fixture
def config():
    return yaml.safe_load((MANIFESTS / "serve/kinf.yaml").read_text())


def container(daemon_set):
    only, = daemon_set["spec"]["template"]["spec"]["containers"]
    return only


def listened(address):
    return int(address.rpartition(":")[2])


def test_the_configuration_and_the_command_are_understood(node, config, workspace):
    store = workspace.store()
    authority = Authority(workspace.directory, "ca")
    certificate, key = authority.issue("kinf-serve.kinf-system.svc")
    config["serve"]["tls"] = {"cert": str(certificate), "key": str(key)}
    config.update(store=str(store.path), runtimeDir=str(store.runtime), cluster={"kubeconfig": str(store.kubeconfig)})
    store.config.write_text(yaml.safe_dump(config))
    store.connect("http://127.0.0.1:1")
    this = container(node["DaemonSet"])
    variables = {variable["name"]: "n1" for variable in this["env"]}
    checked = store.kinf("config", "check", "--config", store.config, env=variables)
    assert checked.status == 0, checked.stderr
    # Only the cluster is missing; an unknown word would be reported first.
    assert this["args"] == ["run", "--config", "/etc/kinf/kinf.yaml"]
    run = store.process("kinf-run", [program("kinf"), "run", "--config", store.config], variables).start()
    run.wait_log("cluster_unreachable")
    run.stop()


def test_the_account_may_read_each_feed_and_no_secrets(node, config):
    rules = node["ClusterRole"]["rules"]
    granted = {(group, resource) for rule in rules for group in rule["apiGroups"] for resource in rule["resources"]}
    assert {tuple(sorted(rule["verbs"])) for rule in rules} == {("get", "list", "watch")}
    wanted = {tuple(reversed(feed["resource"].partition(".")[::2])) for feed in config["feeds"]}
    assert granted == wanted
    assert not any("secrets" in pair for pair in granted)
    binding, account = node["ClusterRoleBinding"], node["ServiceAccount"]["metadata"]
    assert binding["roleRef"]["name"] == node["ClusterRole"]["metadata"]["name"]
    assert [(s["name"], s["namespace"]) for s in binding["subjects"]] == [(account["name"], account["namespace"])]
    assert node["DaemonSet"]["spec"]["template"]["spec"]["serviceAccountName"] == account["name"]


def test_ports_paths_and_volumes_fit(node, config):
    this, pod = container(node["DaemonSet"]), node["DaemonSet"]["spec"]["template"]
    ports = {port["name"]: port["containerPort"] for port in this["ports"]}
    assert ports == {"https": listened(next(a for a in config["serve"]["listen"] if ":" in a)), "metrics": listened(config["serve"]["metrics"])}
    for probe, path in (("readinessProbe", "/readyz"), ("livenessProbe", "/livez")):
        assert this[probe]["httpGet"] == {"path": path, "port": "https", "scheme": "HTTPS"}
    mounts = {mount["mountPath"]: mount["name"] for mount in this["volumeMounts"]}
    assert set(mounts.values()) == {volume["name"] for volume in pod["spec"]["volumes"]}
    # The store is below its volume: kinf makes the directory, and sets its modes.
    for path in (str(Path(config["store"]).parent), config["runtimeDir"], str(Path(config["serve"]["tls"]["cert"]).parent), "/etc/kinf"):
        assert path in mounts, path
    assert this["securityContext"]["readOnlyRootFilesystem"] and "readOnly" not in str(this["volumeMounts"])
    labels = pod["metadata"]["labels"]
    assert node["Service"]["spec"]["selector"] == labels == node["DaemonSet"]["spec"]["selector"]["matchLabels"]
    assert node["Service"]["spec"]["internalTrafficPolicy"] == "Local"
    assert [port["targetPort"] for port in node["Service"]["spec"]["ports"]] == ["https"]
    assert this["securityContext"]["runAsNonRoot"] and this["securityContext"]["runAsGroup"] == int(config["group"])
    reader = load("reader/pod.yaml")["Pod"]["spec"]
    assert reader["securityContext"]["supplementalGroups"] == [int(config["group"])]
    assert config["store"] in reader["containers"][0]["command"]
    names = {found["metadata"]["namespace"] for found in node.values() if "namespace" in found["metadata"]}
    assert names == {node["Namespace"]["metadata"]["name"]}


def test_no_container_is_killed_because_the_api_server_is_away(node):
    """The store answers without it; the kubelet restarts by these two kinds of probes, not by the readinessProbe."""
    for found, wanted in ((load("base/daemonset.yaml")["DaemonSet"], set()), (node["DaemonSet"], {"/livez"})):
        probes = [container(found)[kind] for kind in ("startupProbe", "livenessProbe") if kind in container(found)]
        assert {probe["httpGet"]["path"] for probe in probes} == wanted, probes


def test_a_pod_finds_the_service_and_has_what_in_cluster_clients_read(node):
    pod, ca = load("serve/client.yaml")["Pod"], load("serve/client.yaml")["ConfigMap"]
    this, = pod["spec"]["containers"]
    env = {variable["name"]: variable["value"] for variable in this["env"]}
    service = node["Service"]
    assert env == {"KUBERNETES_SERVICE_HOST": "{name}.{namespace}.svc".format(**service["metadata"]),
                   "KUBERNETES_SERVICE_PORT": str(service["spec"]["ports"][0]["port"])}
    assert [mount["mountPath"] for mount in this["volumeMounts"]] == [API]
    sources = {kind: source[kind] for source in pod["spec"]["volumes"][0]["projected"]["sources"] for kind in source}
    assert sources["serviceAccountToken"]["path"] == "token"
    assert "audience" not in sources["serviceAccountToken"], "the API server has to take it"
    assert (sources["configMap"]["name"], sources["configMap"]["items"]) == (ca["metadata"]["name"], [{"key": "ca.crt", "path": "ca.crt"}])
    assert sources["downwardAPI"]["items"][0]["path"] == "namespace"
    assert pod["spec"]["automountServiceAccountToken"] is False


def test_an_operator_reads_the_store_of_its_sidecar_or_of_its_node(tmp_path):
    config = yaml.safe_load((MANIFESTS / "operator/sidecar/kinf.yaml").read_text())
    pods = {name: load(f"operator/{name}/deployment.yaml")["Deployment"]["spec"]["template"]["spec"] for name in ("sidecar", "node")}
    sidecar, = pods["sidecar"]["initContainers"]
    assert (sidecar["restartPolicy"], sidecar["args"]) == ("Always", ["run", "--config", "/etc/kinf/kinf.yaml"])
    # The operator looks for the store at its start.
    assert sidecar["startupProbe"]["exec"]["command"] == ["kinf", "status", "--check", "--config", "/etc/kinf/kinf.yaml"]
    assert [m["mountPath"] for m in sidecar["volumeMounts"]] == ["/etc/kinf", str(Path(config["store"]).parent), config["runtimeDir"]]
    assert pods["sidecar"]["securityContext"]["fsGroup"] == int(config["group"])
    assert pods["node"]["securityContext"]["supplementalGroups"] == [int(config["group"])]
    for pod in pods.values():
        operator, = pod["containers"]
        assert operator["env"] == [{"name": "KINF_STORE", "value": config["store"]}]
        assert operator["volumeMounts"] == [{"name": "store", "mountPath": str(Path(config["store"]).parent), "readOnly": True},
                                            {"name": "run", "mountPath": config["runtimeDir"]}]
        assert {"store", "run"} <= {volume["name"] for volume in pod["volumes"]}
    config.update(store=str(tmp_path / "store"), runtimeDir=str(tmp_path / "run"))
    file = tmp_path / "kinf.yaml"
    file.write_text(yaml.safe_dump(config))
    made = run_command([program("kinf"), "config", "rbac", "--name", "operator-kinf", "-n", "operator-system",
                        "--service-account", "operator", file], {"KINF_STORE": ""})
    assert made.stdout == (MANIFESTS / "operator/sidecar/rbac.yaml").read_text(), "the kinf.yaml says how to make it"
