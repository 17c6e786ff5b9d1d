# SPDX-License-Identifier: Apache-2.0
"""kinf import and kinf open: dumps of clusters as stores."""

import io
import json
import os
import re
import socket
import struct
import tarfile
import zipfile
from datetime import datetime, timedelta, timezone

import pytest
import yaml

from harness.process import program, run_command
from harness.serve import Serve
from harness.store import whole


def pod(name, namespace="web", **metadata):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace, **metadata},
            "spec": {"nodeName": "node-1", "containers": [{"name": "c", "image": "nginx"}]}}


CRD = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "indices.example.com"},
       "spec": {"group": "example.com", "scope": "Namespaced",
                "names": {"plural": "indices", "singular": "index", "kind": "Index", "listKind": "IndexList", "shortNames": ["ix"],
                          "categories": ["books"]},
                "versions": [{"name": "v1", "served": True, "storage": True, "additionalPrinterColumns": [
                    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]}]}}
INDEX = {"apiVersion": "example.com/v1", "kind": "Index", "metadata": {"name": "one", "namespace": "web"}, "spec": {"size": 3}}


def bare(*objects):
    """Items as in a typed list: without kind and apiVersion."""
    return [{key: value for key, value in item.items() if key not in ("kind", "apiVersion")} for item in objects]


def listed(kind, *objects):
    return json.dumps({"kind": f"{kind}List", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}, "items": bare(*objects)})


# Each layout has the pods a and b in web and one more thing.
LAYOUTS = {
    "cluster-info dump": {"nodes.json": listed("Node", {"metadata": {"name": "node-1"}}),
                          "web/pods.json": listed("Pod", pod("a"), pod("b")),
                          "web/daemonsets.json": '{"kind":"DaemonSetList","apiVersion":"apps/v1","metadata":{},"items":null}',
                          "web/a/logs.txt": "{ no object\n"},
    "cluster-info dump in YAML": {"nodes.yaml": "---\napiVersion: v1\nitems:\n- metadata:\n    name: node-1\nkind: NodeList\n",
                                  "web/pods.yaml": "---\n" + yaml.safe_dump({"apiVersion": "v1", "items": bare(pod("a"), pod("b")),
                                                                             "kind": "PodList"})},
    "kubectl get": {"all.yaml": yaml.safe_dump({"apiVersion": "v1", "items": [pod("a"), pod("b"), INDEX, CRD], "kind": "List"})},
    "manifests": {"app/pods.yaml": yaml.safe_dump_all([pod("a"), None, pod("b")]), "app/values.yaml": "replicas: 3\n",
                  "crd.yml": yaml.safe_dump(CRD), "app/index.json": json.dumps(INDEX)},
    "must-gather": {"quay-io-x/cluster-scoped-resources/apiextensions.k8s.io/customresourcedefinitions/indices.example.com.yaml":
                    yaml.safe_dump(CRD),
                    "quay-io-x/namespaces/web/core/pods.yaml": yaml.safe_dump({"apiVersion": "v1", "kind": "PodList",
                                                                               "items": [pod("a", resourceVersion="7")]}),
                    "quay-io-x/namespaces/web/pods/a/a.yaml": "---\n" + yaml.safe_dump(pod("a", resourceVersion="8")),
                    "quay-io-x/namespaces/web/pods/b/b.yaml": "---\n" + yaml.safe_dump(pod("b")),
                    "quay-io-x/namespaces/web/pods/a/c/logs/current.log": "- x\n",
                    "quay-io-x/namespaces/web/example.com/indices/one.yaml": yaml.safe_dump(INDEX)},
    "troubleshoot": {"bundle/cluster-resources/pods/web.json": json.dumps(bare(pod("a"), pod("b"))),
                     "bundle/cluster-resources/pods/logs/web/a/c.log": "",
                     "bundle/cluster-resources/pvcs/web.json": listed("PersistentVolumeClaim", {"metadata": {"name": "v", "namespace": "web"}}),
                     "bundle/cluster-resources/resources.json": json.dumps([
                         {"kind": "APIResourceList", "groupVersion": "example.com/v1", "resources": [
                             {"name": "indices", "kind": "Index", "namespaced": True, "shortNames": ["ix"]},
                             {"name": "indices/status", "kind": "Index", "namespaced": True}]}]),
                     "bundle/cluster-resources/custom-resources/indices.example.com/web.yaml": yaml.safe_dump([INDEX]),
                     "bundle/cluster-resources/nodes.json": json.dumps({"kind": "Node", "apiVersion": "v1", "metadata": {},
                                                                        "items": bare({"metadata": {"name": "node-1"}})}),
                     "bundle/helm/errors.json": '["no such host"]',
                     "bundle/cluster-resources/auth-cani-list/web.json": '{"status":{}}',
                     "bundle/version.yaml": "apiVersion: troubleshoot.sh/v1beta2\nkind: SupportBundle\nspec: {versionNumber: 1}\n"},
    "Velero": {"metadata/version": "1.1.0\n",
               "resources/pods/namespaces/web/a.json": json.dumps(pod("a")), "resources/pods/namespaces/web/b.json": json.dumps(pod("b")),
               "resources/pods/v1-preferredversion/namespaces/web/a.json": json.dumps(pod("a")),
               "resources/customresourcedefinitions.apiextensions.k8s.io/cluster/indices.example.com.json": json.dumps(CRD),
               "resources/indices.example.com/namespaces/web/one.json": json.dumps(INDEX)},
}


@pytest.fixture(autouse=True)
def configured(store):
    store.configure(whole("pods"))


def write(directory, files):
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return directory


def tar(path, files, mode="w:gz"):
    with tarfile.open(path, mode) as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return path


def pods(store, target):
    return store.kinf("get", "pods", "-n", "web", "-o", "name", "--store", target, check=True).stdout.split()


def skipped(result):
    return [line.split(" ", 1)[1] for line in result.stderr.splitlines() if "import_skipped" in line]


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_as_directory_and_archive(store, name):
    files, targets = LAYOUTS[name], []
    for number, make in enumerate((lambda p: write(p, files), lambda p: tar(p, files), lambda p: tar(p, files, "w"))):
        source, target = store.directory / f"source-{number}", store.directory / f"made-{number}"
        result = store.kinf("import", make(source), "--store", target, check=True)
        assert result.stderr == ""
        assert pods(store, target) == ["pod/a", "pod/b"]
        store.kinf("verify", "--deep", "--store", target, check=True)
        targets.append(target)
    assert [store.kinf("diff", targets[0], other).stdout for other in targets[1:]] == ["", ""]
    target = targets[0]
    if "one" in str(files):
        assert store.kinf("get", "ix", "-A", "--store", target, check=True).stdout.splitlines()[1].split()[:2] == ["web", "one"]
        assert store.kinf("get", "indices.example.com", "-o", "count", "--store", target, check=True).stdout == "1\n"
    if "customresourcedefinitions" in str(files):
        assert store.kinf("get", "ix", "-n", "web", "--store", target, check=True).stdout == "NAME   SIZE\none    3\n"
        assert store.kinf("get", "books", "-A", "-o", "name", "--store", target, check=True).stdout == "index.example.com/one\n"
    if name == "must-gather":
        assert store.kinf("get", "pods", "-n", "web", "a", "-o", "jsonpath={.metadata.resourceVersion}", "--store", target,
                          check=True).stdout == "8", "the newer one of two"
    if name == "cluster-info dump":
        assert store.kinf("get", "ds", "-o", "count", "--store", target, check=True).stdout == "0\n", "an empty list is known"


def test_a_manifest_without_a_namespace_is_in_default(store):
    """Charts leave the namespace out, and some give one to objects that have none."""
    cluster_crd = {**CRD, "metadata": {"name": "shelves.example.com"}, "spec": {
        **CRD["spec"], "scope": "Cluster", "names": {"plural": "shelves", "kind": "Shelf"}}}
    manifests = [
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}, pod("a", "web"), CRD, cluster_crd,
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r", "namespace": "web"}},
        {**INDEX, "metadata": {"name": "one"}}, {**INDEX, "apiVersion": "example.org/v1", "metadata": {"name": "two"}},
        {"apiVersion": "example.com/v1", "kind": "Shelf", "metadata": {"name": "s", "namespace": "web"}}]
    target = store.directory / "made"
    (store.directory / "all.yaml").write_text(yaml.safe_dump_all(manifests))
    store.kinf("import", store.directory / "all.yaml", "--store", target, check=True)
    store.kinf("verify", "--deep", "--store", target, check=True)

    def namespaces(*args):
        found = store.kinf("get", *args, "-o", "json", "--store", target, check=True).json
        return [item["metadata"].get("namespace") for item in found.get("items", [found])]

    assert namespaces("deploy", "d", "-n", "default") == namespaces("ix", "one", "-n", "default") == ["default"]
    assert namespaces("clusterroles", "r") == namespaces("shelf", "s") == [None], "the namespace of a cluster-scoped one is ignored"
    assert namespaces("indexes.example.org", "-A") == [None], "a kind that nothing defines"
    table = store.kinf("get", "clusterroles", "-A", "--store", target, check=True).stdout
    assert table.startswith("NAME "), table


def test_the_directory_of_a_namespace_makes_no_namespace_of_its_objects(store):
    """As an archive of the Insights operator has them: without kind and apiVersion."""
    one, = bare(INDEX)
    files = {"namespaces/web/indices/one.json": json.dumps(one), "namespaces/web/pods/a/a.json": json.dumps(*bare(pod("a"))),
             "config/namespaces/web.json": json.dumps({"metadata": {"name": "web"}})}
    target = store.directory / "made"
    result = store.kinf("import", write(store.directory, files), "--store", target)
    assert result.status == 1 and "indices/one.json" in result.stderr and "it has no kind and apiVersion" in result.stderr, result
    found = store.kinf("get", "namespaces,pods", "-A", "-o", "name", "--store", target, check=True)
    assert found.stdout.splitlines() == ["namespace/web", "pod/a"]
    assert "note: pods: offline, imported from a dump" in found.stderr, "no reflector is to be started"


def test_the_items_of_a_list_within_a_list_are_taken(store):
    """jq -s and shell scripts put several answers into one file."""
    within = json.loads(listed("Pod", pod("a"), pod("b")))
    node = json.loads(listed("Node", {"metadata": {"name": "node-1"}}))
    wholes = [[within, node], {"kind": "List", "apiVersion": "v1", "items": [within, node]},
              {"kind": "List", "apiVersion": "v1", "items": [{"kind": "List", "apiVersion": "v1", "items": [within, node]}]}]
    for number, (whole_, text) in enumerate((w, text) for w in wholes for text in (json.dumps, yaml.safe_dump)):
        source, target = store.directory / f"dump-{number}", store.directory / f"made-{number}"
        source.write_text(text(whole_))
        store.kinf("import", source, source, "--store", target, check=True)
        assert pods(store, target) == ["pod/a", "pod/b"]
        assert store.kinf("get", "nodes", "-o", "name", "--store", target, check=True).stdout == "node/node-1\n"
        assert "DELETED" not in store.kinf("log", "--store", target, check=True).stdout
    within["items"].append(7)
    (store.directory / "bad.json").write_text(json.dumps([within]))
    result = store.kinf("import", store.directory / "bad.json", "--store", store.directory / "bad")
    assert result.status == 1 and "an item that is no object" in result.stderr and pods(store, store.directory / "bad") == ["pod/a", "pod/b"]


def test_what_macos_adds_to_an_archive_is_left_alone(store):
    files = {"web/pods.json": listed("Pod", pod("a"), pod("b")), "web/._pods.json": "\0\5\x16\7", "__MACOSX/web/._pods.json": "\0\5\x16\7"}
    for number, make in enumerate((write, tar)):
        target = store.directory / f"made-{number}"
        assert store.kinf("import", make(store.directory / f"source-{number}", files), "--store", target, check=True).stderr == ""
        assert pods(store, target) == ["pod/a", "pod/b"]


@pytest.mark.parametrize("path", ["resources/network-attachment-definitions.k8s.cni.cncf.io/namespaces/web/x.json",
                                  "cluster-resources/custom-resources/network-attachment-definitions.k8s.cni.cncf.io.json",
                                  "namespaces/web/k8s.cni.cncf.io/network-attachment-definitions/x.json"])
def test_the_plural_beside_the_group_in_a_path_is_believed(store, path):
    """Velero, troubleshoot and oc adm inspect: it need not begin as the kind does."""
    item = {"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition", "metadata": {"name": "x", "namespace": "web"}}
    metrics = {"apiVersion": "metrics.k8s.io/v1", "kind": "PodMetrics", "metadata": {"name": "p", "namespace": "web"}}
    other = {"apiVersion": "example.com/v1", "kind": "Box", "metadata": {"name": "b", "namespace": "web"}}
    files = {path: json.dumps(item), "x/metrics.k8s.io/pods/p.json": json.dumps(metrics), "example.com/prod/thing.example.com.json": json.dumps(other)}
    store.kinf("import", write(store.directory / "dump", files), "--store", store.directory / "made", check=True)
    for name in ("network-attachment-definitions.k8s.cni.cncf.io", "pods.metrics.k8s.io", "boxes.example.com"):
        assert store.kinf("get", name, "-A", "-o", "count", "--store", store.directory / "made", check=True).stdout == "1\n"


def test_zip_and_zstd(store):
    files = LAYOUTS["kubectl get"]
    with zipfile.ZipFile(store.directory / "dump.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    gz = tar(store.directory / "dump.tar", files, "w")
    run_command(["zstd", "-q", gz], store.env) if (have := run_command(["which", "zstd"], store.env).status == 0) else None
    run_command(["gzip", "-k", write(store.directory, files) / "all.yaml"], store.env)
    for name in ("dump.zip", "all.yaml.gz", *(["dump.tar.zst"] if have else [])):
        store.kinf("import", store.directory / name, "--store", store.directory / f"made-{name}", check=True)
        assert pods(store, store.directory / f"made-{name}") == ["pod/a", "pod/b"]


def test_members_of_a_zip_may_have_any_name(store):
    path = store.directory / "dump.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("Störung/pods.json", json.dumps([pod("a")]))
        archive.writestr("障害.json", json.dumps([pod("b")]))
    bad = path.with_name("bad.zip")
    bad.write_bytes(path.read_bytes().replace("障".encode(), b"\xff~~"))
    for locale in ("C", "C.UTF-8"):
        target = store.directory / f"made-{locale}"
        store.kinf("import", path, "--store", target, env={"LC_ALL": locale}, check=True)
        assert pods(store, target) == ["pod/a", "pod/b"]
    result = store.kinf("import", bad, "--store", store.directory / "bad")
    assert result.status == 1 and "bad.zip: ?" in result.stderr and "its name can't be read" in result.stderr, result
    assert pods(store, store.directory / "bad") == ["pod/a"]


def test_words_of_yaml_are_read_as_kubectl_does(store):
    text = """apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: web, labels: &l {x: "yes"}}
plain: [yes, Off, ~, null, '', "", 1, -3, 0644, 0x1f, 1_000, +2, 1.50, 1e3, 1.2.3, 2026-01-01, .5.5, "1", no more, -, "héllo"]
block: |
  one
  two
folded: >-
  one
  two
again: *l
"""
    (store.directory / "a.yaml").write_text(text)
    target = store.directory / "made"
    store.kinf("import", store.directory / "a.yaml", "--store", target, check=True)
    got = store.kinf("get", "cm", "a", "-n", "web", "-o", "json", "--server-order", "--store", target, check=True).stdout
    made = json.loads(got)
    assert made["plain"] == [True, False, None, None, "", "", 1, -3, 420, 31, 1000, 2, 1.5, 1000, "1.2.3", "2026-01-01", ".5.5", "1",
                             "no more", "-", "héllo"]
    assert (made["block"], made["folded"], made["again"]) == ("one\ntwo\n", "one two", {"x": "yes"})


def test_odd_numbers_and_keys_of_yaml_are_read_as_kubectl_does(store):
    """The expected values are kubectl's."""
    numbers = {".5": 0.5, "-.5": -0.5, "+1.5": 1.5, "1.": 1, "089": 89, "-089.50": -89.5, "1_000.5": 1000.5, "+.5e1": 5, "1.e3": 1000,
               "00": 0, "0.": 0, "012": 10, ".": ".", "-.": "-.", "1:30": "1:30", "._5": "._5", "0x": "0x", ".e1": ".e1", "1e": "1e",
               "_1": "_1", "089a": "089a", "0..2": "0..2", "82e828": "82e828", "82.e828": "82.e828"}
    keys = {"yes": "true", "Off": "false", "010": "8", "1.0": "1", "1.10": "1.1", ".5": "0.5", "-7": "-7", "'yes'": "yes", "name": "name",
            "!!str 020": "020"}
    text = f"""apiVersion: v1
kind: ConfigMap
metadata: {{name: a, namespace: web}}
numbers: [{", ".join(numbers)}]
keys:
""" + "".join(f"  {key}: {i}\n" for i, key in enumerate(keys))
    (store.directory / "a.yaml").write_text(text)
    target = store.directory / "made"
    store.kinf("import", store.directory / "a.yaml", "--store", target, check=True)
    made = store.kinf("get", "cm", "a", "-n", "web", "-o", "json", "--store", target, check=True).json
    assert made["numbers"] == list(numbers.values())
    assert made["keys"] == {key: i for i, key in enumerate(keys.values())}


def test_the_last_of_equal_keys_of_yaml_counts(store):
    """Charts render a label twice. kubectl sends the last one."""
    (store.directory / "a.yaml").write_text("""apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: x, name: a, namespace: web, labels: {z: old, app: one, app: two, z: new}}}
- {apiVersion: v1, kind: ConfigMap, data: {yes: 1, "true": 2}, metadata: {namespace: web, name: b}, data: {k: [{b: 1, a: 2, b: 3}]}}
""")
    target = store.directory / "made"
    store.kinf("import", store.directory / "a.yaml", "--store", target, check=True)
    text = store.kinf("get", "cm", "-n", "web", "-o", "json", "--server-order", "--store", target, check=True).stdout
    a, b = json.loads(text, object_pairs_hook=lambda pairs: dict(pairs, twice=len(pairs) != len(dict(pairs))))["items"]
    assert (a["metadata"]["name"], a["metadata"]["labels"]) == ("a", {"z": "new", "app": "two", "twice": False})
    assert b["data"]["k"] == [{"a": 2, "b": 3, "twice": False}] and not b["twice"]
    found = store.kinf("get", "cm", "-n", "web", "-l", "app=two", "-o", "name", "--store", target, check=True).stdout
    assert found == "configmap/a\n"
    store.kinf("verify", "--deep", "--store", target, check=True)


def test_a_document_that_is_no_object_ends_no_file(store):
    target = store.directory / "made"
    (store.directory / "a.yaml").write_text("---\n".join(["~\n", yaml.safe_dump(pod("a")), "null\n", "# nothing\n", "hello\n",
                                                          yaml.safe_dump(pod("b"))]))
    result = store.kinf("import", store.directory / "a.yaml", "--store", target)
    named, = skipped(result)
    assert result.status == 1 and re.search(r'a.yaml:\d+" error="it is no object"', named), result
    assert pods(store, target) == ["pod/a", "pod/b"]


def test_redacted_words_are_strings(store):
    """troubleshoot replaces addresses in the text: such a word would be an alias. Also across the ends of reads."""
    plain = ("kind: ConfigMap\napiVersion: v1\nmetadata: {namespace: web, name: c%d}\n"
             "data: {pad: %s, a: ***HIDDEN***:1, b: 'x ***HIDDEN***', c: '***HID'}")
    sizes = range(16300, 16390)
    (store.directory / "a.yaml").write_text("\n---\n".join(plain % (n, "x" * n) for n in sizes))
    target = store.directory / "made"
    store.kinf("import", store.directory / "a.yaml", "--store", target, check=True)
    made = store.kinf("get", "cm", "-n", "web", "-o", "json", "--store", target, check=True).json["items"]
    assert {m["metadata"]["name"]: m["data"] for m in made} == {
        f"c{n}": {"pad": "x" * n, "a": "***HIDDEN***:1", "b": "x ***HIDDEN***", "c": "***HID"} for n in sizes}


@pytest.mark.parametrize("names", [{"kind": "Foo\u001b[31mRED"}, {"kind": "Pod\n"}, {"kind": "Foo/Bar"}, {"apiVersion": "a b/v1"},
                                   {"apiVersion": "a/b/v1"}, {"apiVersion": "a\u001b/v1"}, {"apiVersion": "a/"}])
def test_a_kind_that_no_server_has_is_refused(store, names):
    """A dump may come from a stranger, and kinds are printed to a terminal."""
    (store.directory / "dump.json").write_text(json.dumps({"kind": "List", "items": [pod("a"), {**pod("odd"), **names}]}))
    result = store.kinf("import", store.directory / "dump.json", "--store", store.directory / "made")
    assert result.status == 1 and len(skipped(result)) == 1, result
    assert 'object="web/odd" error="its kind or apiVersion is no name' in result.stderr and "\033" not in result.stderr
    assert pods(store, store.directory / "made") == ["pod/a"]


LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{','.join('*' + chr(97 + i) for _ in range(10))}]\n" for i in range(9))
FAULTS = {  # text, words in the error, the remaining pods
    "cut.json": (json.dumps({"kind": "List", "items": [pod("a")] * 2 + [pod("b")]})[:-20], r'cut.json:1" error="list: the body ends', ["a"]),
    "cut.yaml": (yaml.safe_dump(pod("a")) + "---\n" + 'kind: "Po', r'cut.yaml:\d+" error=', ["a"]),
    "twice.json": (json.dumps({"kind": "List", "items": [pod("a", uid="1"), pod("b"), pod("a", uid="2")]}),
                   r'object="web/a" error="it is there twice, and differs"', ["a", "b"]),
    "tag.yaml": (yaml.safe_dump_all([pod("a"), pod("b")]) + "---\nkind: !!binary UG9k\nmetadata: {}\n", r"tag.yaml:23.*tag", ["a", "b"]),
    "laughs.yaml": (yaml.safe_dump(pod("a")) + "---\n" + LAUGHS, r"laughs.yaml:12.*aliases", ["a"]),
    "deep.yaml": (yaml.safe_dump(pod("a")) + "---\nx: " + "[" * 400 + "]" * 400 + "\n---\n" + yaml.safe_dump(pod("b")),
                  r"deep.yaml:12.*nested deeper", ["a", "b"]),
    "nameless.yaml": (yaml.safe_dump_all([pod("a"), {**pod("x"), "metadata": {"generateName": "x-"}}]),
                      r'nameless.yaml:12" error="it has no name"', ["a"]),
    "latin.yaml": (yaml.safe_dump(pod("a")) + "---\nname: \udce9\n", r"latin.yaml:\d+.*UTF-8", ["a"]),
    "escape.yaml": ("---\n".join(yaml.safe_dump(pod(name)) for name in "ab") + "---\nkind: ConfigMap\ndata: {x: '\033[31m'}\n---\n" + yaml.safe_dump(pod("c")),
                    r'escape.yaml:24" error="control characters', ["a", "b", "c"]),
    "open.yaml": (yaml.safe_dump(pod("a")) + "---\nkind: [x\nmetadata: {}\n---\n" + yaml.safe_dump(pod("b")),
                  r"open.yaml:1[234]", ["a", "b"]),
    "close.yaml": ("}\n--- # a\n" + yaml.safe_dump(pod("a")), r"close.yaml:1\"", ["a"]),
    "merge.yaml": ("apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {<<: {a: b}}\n---\n" + yaml.safe_dump(pod("a")),
                   r"merge.yaml:1.*merge key", ["a"]),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_with_file_and_line_and_the_rest_is_there(store, name):
    text, named, left = FAULTS[name]
    (store.directory / "dump").mkdir()
    (store.directory / "dump" / name).write_text(text, errors="surrogateescape")
    (store.directory / "dump" / "z.json").write_text(json.dumps(pod("z")))
    target = store.directory / "made"
    result = store.kinf("import", store.directory / "dump", "--store", target)
    assert result.status == 1 and "without what is named above" in result.stdout, result
    assert len(skipped(result)) == 1 and re.search(named, result.stderr), result
    assert pods(store, target) == [f"pod/{name}" for name in [*left, "z"]]


def test_unsafe_members_are_left_out_and_named(store):
    path = store.directory / "dump.tar"
    with tarfile.open(path, "w") as archive:
        for name, kind, link in (("../../evil.json", tarfile.REGTYPE, ""), ("/abs.json", tarfile.REGTYPE, ""),
                                 ("link.json", tarfile.SYMTYPE, "/etc/passwd"), ("hard.json", tarfile.LNKTYPE, "a.json"),
                                 ("link.log", tarfile.SYMTYPE, "/etc/passwd"), ("a.json", tarfile.REGTYPE, "")):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, link
            text = json.dumps(pod(name.split(".")[-2].strip("/"))).encode() if kind == tarfile.REGTYPE else b""
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
    target = store.directory / "made"
    result = store.kinf("import", path, "--store", target)
    assert result.status == 1
    assert [re.search(r'dump.tar: ([^"]*)"', line)[1] for line in skipped(result)] == [
        "../../evil.json", "/abs.json", "link.json", "hard.json"]
    assert pods(store, target) == ["pod/a"]
    (store.directory / "tree").mkdir()
    (store.directory / "tree" / "p.json").write_text(json.dumps(pod("a")))
    (store.directory / "tree" / "l.json").symlink_to("/etc/passwd")
    result = store.kinf("import", store.directory / "tree", "--store", store.directory / "two")
    assert result.status == 1 and len(skipped(result)) == 1 and "tree/l.json" in result.stderr


@pytest.mark.parametrize("cut", [0.3, 0.7, 0.99])
def test_a_cut_archive_gives_what_it_has(store, cut):
    path = tar(store.directory / "dump.tar.gz", {f"{i:03}.json": json.dumps(pod(f"p-{i:03}", uid=str(i * 7919))) for i in range(300)})
    data = path.read_bytes()
    path.write_bytes(data[:int(len(data) * cut)])
    result = store.kinf("import", path, "--store", store.directory / "made")
    assert result.status == 1 and len(skipped(result)) == 1 and "damaged or cut" in result.stderr, result
    found = pods(store, store.directory / "made")
    assert 0 < len(found) < 300 and found == [f"pod/p-{i:03}" for i in range(len(found))]


def test_a_bomb_is_bounded(store):
    """Non-objects are not unpacked to their end."""
    path = store.directory / "bomb.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, size in (("zeros.json", 64 << 20), ("string.json", 100 << 20), ("string.yaml", 100 << 20)):
            member = tarfile.TarInfo(name)
            start = b'{"kind":"Pod","metadata":{"name":"a","x":"' if "string" in name else b""
            member.size = len(start) + size
            archive.addfile(member, io.BytesIO(start + (b"x" if start else b"\0") * size))
        text = json.dumps(pod("a")).encode()
        member = tarfile.TarInfo("a.json")
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text))
    result = store.kinf("import", path, "--store", store.directory / "made")
    assert result.status == 1 and len(skipped(result)) == 3, result
    assert pods(store, store.directory / "made") == ["pod/a"]


def test_several_dumps_become_history(store):
    """Each source is a list: changes, deletions and a new object of an old name are between them."""
    first = {"p.json": json.dumps({"kind": "List", "items": [
        pod("same", resourceVersion="1", uid="1"), pod("changed", resourceVersion="2", uid="2"),
        pod("gone", resourceVersion="3", uid="3"), pod("anew", resourceVersion="4", uid="4")]}), "cm.json": json.dumps(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "left", "namespace": "web"}})}
    second = {"p.json": json.dumps({"kind": "List", "items": [
        pod("same", resourceVersion="1", uid="1"), pod("changed", resourceVersion="9", uid="2", labels={"a": "b"}),
        pod("anew", resourceVersion="8", uid="44")]})}
    old, new = write(store.directory / "old", first), write(store.directory / "new", second)
    os.utime(old, (1_700_000_000, 1_700_000_000))
    target = store.directory / "made"
    store.kinf("import", old, new, "--store", target, check=True)
    assert pods(store, target) == ["pod/anew", "pod/changed", "pod/same"]
    assert store.kinf("get", "cm", "-n", "web", "-o", "name", "--store", target, check=True).stdout == "configmap/left\n", \
        "a kind that a dump lacks stays"
    os.utime(new, (1_700_000_060, 1_700_000_060))
    dated = store.directory / "dated"
    store.kinf("import", new, "--store", dated, check=True)
    assert "note: pods: offline, imported from a dump of 2023-11-14T22:14:20Z\n" in store.kinf("get", "pods", "-A", "--store", dated, check=True).stderr
    versions = store.kinf("history", "pods", "web/changed", "--store", target, check=True).stdout
    assert "2023-11-14" in versions and "labels" in versions, versions
    assert "DELETED" in store.kinf("history", "pods", "web/gone", "--store", target, check=True).stdout
    assert store.kinf("history", "pods", "web/anew", "--store", target, check=True).stdout.count("ADDED") == 2
    store.kinf("verify", "--deep", "--store", target, check=True)


@pytest.mark.parametrize("empty", [listed("Pod"), '{"kind":"PodList","apiVersion":"v1","metadata":{},"items":null}'])
def test_a_dump_of_an_empty_list_says_that_all_are_gone(store, empty):
    full, none = (store.directory / name for name in ("full.json", "none.json"))
    full.write_text(listed("Pod", pod("a"), pod("b")))
    none.write_text(empty)
    for number, (sources, left) in enumerate((((full, none), []), ((none, full), ["pod/a", "pod/b"]))):
        target = store.directory / f"made-{number}"
        store.kinf("import", *sources, "--store", target, check=True)
        assert pods(store, target) == left
        store.kinf("verify", "--deep", "--store", target, check=True)
    result = store.kinf("import", none, none, "--store", store.directory / "nothing")
    assert result.status == 1 and result.stderr == "Error: there is no object to import\n", result


DEEP = {"status": json.loads("[" * 300 + "]" * 300)}


@pytest.mark.parametrize(("text", "stays"), [
    (json.dumps({"kind": "List", "items": [pod("a"), {**pod("b"), **DEEP}]}), ["a", "b"]),
    (json.dumps({"kind": "PodList", "apiVersion": "v1", "items": bare({**pod("b"), **DEEP}, pod("a"))}), ["a", "b"]),
    (json.dumps({"kind": "List", "items": [pod("a"), pod("b"), pod("c")]})[:-20], ["a", "b", "c"]),
    (yaml.safe_dump(pod("a")) + "---\n" + 'kind: "Po', ["a", "b", "c"]),
    (json.dumps({"kind": "List", "items": [pod("a"), {**pod("x"), "metadata": {}}]}), ["a", "b", "c"])],
    ids=["a deep object", "a deep item of a typed list", "cut JSON", "cut YAML", "no name"])
def test_what_a_later_dump_has_unreadable_is_not_deleted(store, text, stays):
    first, second, target = (store.directory / name for name in ("first.json", "second", "made"))
    first.write_text(json.dumps({"kind": "List", "items": [pod("a"), pod("b"), pod("c")]}))
    second.write_text(text)
    result = store.kinf("import", first, second, "--store", target)
    assert pods(store, target) == [f"pod/{name}" for name in stays], result
    assert len(skipped(result)) == 1 + ("c" in stays) and ("it is not whole" in result.stderr) == ("c" in stays), result
    store.kinf("verify", "--deep", "--store", target, check=True)


def test_an_unreadable_object_without_a_namespace_keeps_that_of_default(store):
    bad = {**pod("b"), **DEEP}
    del bad["metadata"]["namespace"]
    first, second, target = (store.directory / name for name in ("first.json", "second.json", "made"))
    first.write_text(json.dumps({"kind": "List", "items": [pod("a", namespace="default"), pod("b", namespace="default")]}))
    second.write_text(json.dumps({"kind": "List", "items": [pod("a", namespace="default"), bad]}))
    store.kinf("import", first, second, "--store", target)
    assert store.kinf("get", "pods", "-n", "default", "-o", "name", "--store", target, check=True).stdout.split() == ["pod/a", "pod/b"]


def test_a_cut_archive_deletes_nothing(store):
    paths = [tar(store.directory / f"{n}.tar.gz", {f"{i:03}.json": json.dumps(pod(f"p-{i:03}", uid=str(i * 7919))) for i in range(300)})
             for n in range(2)]
    paths[1].write_bytes(paths[1].read_bytes()[:-2000])
    result = store.kinf("import", *paths, "--store", store.directory / "made")
    assert result.status == 1 and "it is not whole" in result.stderr, result
    assert len(pods(store, store.directory / "made")) == 300


def test_a_dump_of_another_cluster_is_refused(store):
    paths = []
    for uid in ("one", "two"):
        paths.append(store.directory / f"{uid}.json")
        paths[-1].write_text(json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": uid}}))
    result = store.kinf("import", *paths, "--store", store.directory / "made")
    assert result.status == 1 and "two.json" in result.stderr and "another cluster" in result.stderr, result
    assert not (store.directory / "made").exists()


ASK = """
import json, os, ssl, sys, urllib.error, urllib.request, yaml
config = yaml.safe_load(open(os.environ["KUBECONFIG"]))
cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
import base64
context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
def ask(path, token=user["token"]):
    request = urllib.request.Request(cluster["server"] + path, headers={"Authorization": "Bearer " + token} if token else {})
    try:
        answer = urllib.request.urlopen(request, context=context)
        return answer.status, answer.headers.get("Warning"), json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, None, None
status, warning, pods = ask("/api/v1/namespaces/web/pods")
secret = ask("/api/v1/namespaces/web/secrets/s")[0]
wrong = [ask("/api/v1/pods", token)[0] for token in ("", "x", user["token"] + "x", user["token"][:-1] + "x")]
print(json.dumps([status, warning, [pod["metadata"]["name"] for pod in pods["items"]], secret, wrong, cluster["server"],
                  os.environ["KUBECONFIG"], os.stat(os.environ["KUBECONFIG"]).st_mode & 0o777]))
sys.exit(7)
"""


def test_kinf_serve_serves_a_store_that_never_had_daemons(workspace):
    imported, backup = (workspace.store(name).configure("pods", serve={"listen": ["unix"]}) for name in ("imported", "backup"))
    dump = write(imported.directory / "dump", {"web/pods.json": listed("Pod", pod("a"), pod("b"))})
    imported.kinf("import", dump, "--store", imported.path, check=True)
    imported.kinf("backup", f"{backup.path}/", "--store", imported.path, check=True)
    for store in (imported, backup):
        serve = Serve(store, None)
        assert serve.ask("/api/v1/pods").names == ["a", "b"]
        nodes = serve.ask("/api/v1/nodes")
        assert nodes.status == 404 and nodes.message.endswith("the imported dump does not have nodes.v1"), nodes.message


def test_deprecated_kinds_of_a_dump_have_the_api_servers_warning(workspace):
    store = workspace.store().configure(whole("pods"), serve={"listen": ["unix"]})
    kinds = {"ComponentStatus": '299 - "v1 ComponentStatus is deprecated in v1.19+"', "Pod": None,
             "Endpoints": '299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"'}
    objects = [{"apiVersion": "v1", "kind": kind, "metadata": {"name": "a", **({} if kind == "ComponentStatus" else {"namespace": "web"})}}
               for kind in kinds]
    (store.directory / "all.json").write_text(json.dumps({"kind": "List", "items": objects}))
    store.kinf("import", store.directory / "all.json", "--store", store.path, check=True)
    serve = Serve(store, None)
    paths = "componentstatuses", "componentstatuses/a", "pods", "endpoints", "namespaces/web/endpoints/a"
    assert [serve.ask(f"/api/v1/{path}").headers.get("warning") for path in paths] == [
        kinds[kind] for kind in ("ComponentStatus", "ComponentStatus", "Pod", "Endpoints", "Endpoints")]


def test_the_core_group_is_there_without_feeds_of_it(workspace):
    """kubectl looks for the kind List in it."""
    store = workspace.store().configure(whole("pods"), serve={"listen": ["unix"]})
    (store.directory / "one.json").write_text(json.dumps(INDEX))
    store.kinf("import", store.directory / "one.json", "--store", store.path, check=True)
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    serve = Serve(store, None)
    assert serve.ask("/api", accept=accept).json["items"] == [
        {"metadata": {}, "versions": [{"version": "v1", "freshness": "Current", "resources": []}]}]
    assert [item["metadata"]["name"] for item in serve.ask("/apis", accept=accept).json["items"]] == ["example.com"]


def test_open_serves_a_dump_to_a_command(store):
    cache = store.directory / "cache"
    dump = write(store.directory / "dump", {"web/pods.json": listed("Pod", pod("a"), pod("b")), "web/secrets.json": listed(
        "Secret", {"metadata": {"name": "s", "namespace": "web"}, "data": {}})})
    env = {"XDG_CACHE_HOME": str(cache), "XDG_RUNTIME_DIR": ""}
    for again in (False, True):
        result = store.kinf("open", dump, "--", "/usr/bin/python3", "-c", ASK, env=env)
        assert result.status == 7, result
        status, warning, names, secret, wrong, server, kubeconfig, mode = json.loads(result.stdout)
        assert (status, warning, names, secret) == (200, None, ["a", "b"], 200)
        assert wrong == [401] * 4 and mode == 0o600
        assert ("made before" in result.stderr) == again
        assert not os.path.exists(os.path.dirname(kubeconfig)), "nothing is left but the store"
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", int(server.rsplit(":", 1)[1]))).close()
    assert len(list((cache / "kinf").iterdir())) == 1
    ask_twice = '"$0" open "$1" -- "$2" -c "$3"; exec "$2" -c "$3"'
    result = store.kinf("open", dump, "--", "sh", "-c", ask_twice, program("kinf"), dump, "/usr/bin/python3", ASK, env=env)
    assert [json.loads(line)[2] for line in result.stdout.splitlines()] == [["a", "b"]] * 2, "one within the other"
    write(dump, {"web/pods.json": listed("Pod", pod("c"))})
    result = store.kinf("open", dump, "--", "/usr/bin/python3", "-c", ASK, env=env)
    assert json.loads(result.stdout)[2] == ["c"], "a changed dump is another one"
    kept = store.directory / "kept"
    assert store.kinf("open", dump, "--store", kept, "--", "true", env=env).status == 0
    assert pods(store, kept) == ["pod/c"]
    for command in (["open"], ["open", "--", "true"]):
        assert store.kinf(*command, env=env).status == 2
    assert store.kinf("open", "/nowhere", "--", "true", env=env).status == 1
    homeless = store.kinf("open", dump, "--", "true", env={"XDG_CACHE_HOME": "", "HOME": "/dev/null"})
    assert homeless.status == 1 and "Not a directory; name another one with --store DIR" in homeless.stderr, homeless


def audited(verb, time, answer, user="alice", code=200, stage="ResponseComplete", **ref):
    metadata = answer.get("metadata", {})
    return json.dumps({"kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "stage": stage, "verb": verb,
                       "user": {"username": user}, "objectRef": {"resource": "pods", "namespace": metadata.get("namespace"),
                                                                 "name": metadata.get("name"), "apiVersion": "v1", **ref},
                       "responseStatus": {"code": code}, "responseObject": answer, "stageTimestamp": f"2026-01-02T03:04:{time}Z"})


def test_an_audit_log_is_the_history_of_a_cluster(store):
    a = [pod("a", resourceVersion=str(rv), uid="1", labels={"v": str(rv)}) for rv in (5, 7, 9)]
    success = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    lines = [audited("create", "01.5", a[0]), audited("create", "01.6", pod("b", resourceVersion="6", uid="2"), "bob"),
             audited("update", "02.5", a[1], "bob"), audited("patch", "03.5", a[2], code=409), audited("get", "03.6", a[2]),
             audited("patch", "03.7", a[2], stage="ResponseStarted"),
             audited("create", "04.0", {"kind": "Binding", "apiVersion": "v1", "metadata": {"name": "a", "namespace": "web"}}),
             audited("update", "04.1", {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {
                 "name": "a", "namespace": "web", "resourceVersion": "8"}}, subresource="scale"),
             audited("delete", "05.0", pod("b", resourceVersion="8", uid="2", deletionGracePeriodSeconds=30)),
             audited("delete", "06.0", success, name="b", namespace="web"),
             audited("patch", "07.0", a[2], "carol")]
    (store.directory / "audit.log").write_text("\n".join(lines) + "\n")
    target = store.directory / "made"
    result = store.kinf("import", store.directory / "audit.log", "--store", target, check=True)
    assert result.stderr == "" and pods(store, target) == ["pod/a"]
    made = store.kinf("history", "pods", "web/a", "-o", "json", "--store", target, check=True).stdout
    for time, user in (("03:04:01.5", "alice"), ("03:04:02.5", "bob"), ("03:04:07", "carol")):
        assert f"2026-01-02T{time}" in made and user in made, made
    gone = store.kinf("history", "pods", "web/b", "--store", target, check=True).stdout
    assert [line.split()[1] for line in gone.splitlines() if line[0] != " "] == ["ADDED", "MODIFIED", "DELETED"], gone
    assert store.kinf("status", "-o", "json", "--store", target, check=True).json["feeds"][0]["objects"] == 1
    store.kinf("verify", "--deep", "--store", target, check=True)
    dump = write(store.directory / "dump", {"pods.json": json.dumps({"kind": "List", "items": [a[0], pod("c", resourceVersion="4")]})})
    store.kinf("import", dump, store.directory / "audit.log", "--store", store.directory / "both", check=True)
    assert pods(store, store.directory / "both") == ["pod/a", "pod/c"], "a log deletes nothing that it does not name"
    (store.directory / "late.log").write_text(audited("delete", "08.0", success, name="c", namespace="web") + "\n")
    store.kinf("import", dump, store.directory / "late.log", "--store", store.directory / "late", check=True)
    assert pods(store, store.directory / "late") == ["pod/a"], "a log of deletions alone has content"


def test_the_plural_of_an_audit_log_is_a_name(store):
    """It is printed to a terminal."""
    gadget = {"kind": "Gadget", "apiVersion": "example.com/v1", "metadata": {"name": "g", "namespace": "web", "resourceVersion": "5"}}
    for plural, feed in (("gadgetry", "gadgetry.example.com"), ("gad\u001b[31mget", "gadgets.example.com")):
        (store.directory / "audit.log").write_text(audited("create", "01", gadget, resource=plural, apiGroup="example.com") + "\n")
        target = store.directory / feed
        store.kinf("import", store.directory / "audit.log", "--store", target, check=True)
        status = store.kinf("status", "-o", "json", "--store", target, check=True)
        assert [row["name"] for row in status.json["feeds"]] == [feed], status


def also(line, **members):
    return json.dumps({**json.loads(line), **members})


def test_an_audit_log_has_the_end_of_each_object(store):
    def claim(rv, **metadata):
        return {"kind": "PersistentVolumeClaim", "apiVersion": "v1",
                "metadata": {"name": "data", "namespace": "web", "uid": "10", "resourceVersion": str(rv), **metadata}}

    def namespace(rv, finalizers, **metadata):
        return {"kind": "Namespace", "apiVersion": "v1", "spec": {"finalizers": finalizers} if finalizers else {},
                "metadata": {"name": "gone", "uid": "20", "resourceVersion": str(rv), **metadata}}

    def map_(name, rv, uid, **members):
        return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name, "namespace": "web", "uid": uid, "resourceVersion": str(rv)},
                **members}

    def untyped(item):
        return {key: value for key, value in item.items() if key not in ("kind", "apiVersion")}

    def write_of(verb, second, answer, resource, **ref):
        return audited(verb, f"{second:02}", answer, resource=resource, **ref)

    ending = {"deletionTimestamp": "2026-01-02T03:04:02Z"}
    held = {"finalizers": ["kubernetes.io/pvc-protection"]}
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    running = pod("stays", resourceVersion="30", uid="30")
    running["spec"].update(nodeName="n1", terminationGracePeriodSeconds=30)
    part = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    lines = [
        write_of("create", 1, claim(1, **held), "persistentvolumeclaims"),
        write_of("delete", 2, claim(2, **held, **ending, deletionGracePeriodSeconds=0), "persistentvolumeclaims"),
        write_of("patch", 3, claim(2, **ending, deletionGracePeriodSeconds=0), "persistentvolumeclaims"),
        write_of("create", 4, namespace(3, ["kubernetes"]), "namespaces", namespace=None),
        write_of("delete", 5, namespace(4, ["kubernetes"], **ending), "namespaces", namespace=None),
        write_of("update", 6, namespace(5, [], **ending), "namespaces", namespace=None, subresource="finalize"),
        *(write_of("create", 7, map_(name, rv, uid), "configmaps") for name, rv, uid in (("one", 6, "40"), ("two", 7, "41"), ("kept", 8, "42"))),
        write_of("create", 8, running, "pods"), write_of("create", 8, pod("waits", resourceVersion="31", uid="31"), "pods"),
        write_of("deletecollection", 9, {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "33"}, "items": [
            untyped(map_("one", 6, "40")), untyped(map_("two", 7, "41"))]}, "configmaps"),
        write_of("deletecollection", 10, {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "34"}, "items": [
            untyped(running), untyped(pod("waits", resourceVersion="31", uid="31"))]}, "pods"),
        # Nothing of these is written, or it is not what exists now.
        also(write_of("delete", 11, status, "configmaps", name="kept", namespace="web"),
             requestObject={"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/__internal", "dryRun": ["All"]}),
        also(write_of("patch", 12, map_("kept", 9, "42", data={"k": "wished"}), "configmaps"),
             requestURI="/api/v1/namespaces/web/configmaps/kept?fieldManager=kubectl&dryRun=All"),
        write_of("delete", 13, {**status, "details": {"name": "kept", "kind": "configmaps", "uid": "39"}}, "configmaps", name="kept",
                 namespace="web"),
        write_of("patch", 14, {**part, "metadata": map_("kept", 9, "42")["metadata"]}, "configmaps"),
        # The garbage collector's removal of the last finalizer.
        write_of("create", 15, map_("owner", 50, "50"), "configmaps"),
        write_of("patch", 16, {**part, "metadata": {**map_("owner", 51, "50")["metadata"], **ending}}, "configmaps"),
        write_of("create", 17, map_("last", 60, "60"), "configmaps"),
        also(write_of("delete", 18, {**status, "details": {"uid": "60"}}, "configmaps", name="last", namespace="web"),
             impersonatedUser={"username": "mallory"})]
    (store.directory / "audit.log").write_text("\n".join(lines) + "\n")
    target = store.directory / "made"
    result = store.kinf("import", store.directory / "audit.log", "--store", target, check=True)
    assert result.stderr == ""

    def names(feed):
        return store.kinf("get", feed, "-A", "-o", "name", "--store", target, check=True).stdout.split()

    assert [names(feed) for feed in ("persistentvolumeclaims", "namespaces", "configmaps", "pods")] == [[], [], ["configmap/kept"], ["pod/stays"]]
    kept = store.kinf("history", "configmaps", "web/kept", "--store", target, check=True).stdout
    assert len(kept.splitlines()) == 1, kept
    gone = store.kinf("history", "namespaces", "gone", "--store", target, check=True).stdout
    assert [line.split()[1] for line in gone.splitlines() if line[0] != " "] == ["ADDED", "MODIFIED", "DELETED"], gone
    last = store.kinf("history", "configmaps", "web/last", "--store", target, check=True).stdout
    assert re.fullmatch(r".*  ADDED  .*  by alice\n.*  DELETED  .*  by mallory\n", last), last
    store.kinf("verify", "--deep", "--store", target, check=True)


def test_an_audit_log_without_objects_is_refused_with_the_level_it_needs(store):
    event = json.loads(audited("create", "01.5", pod("a", resourceVersion="5")))
    del event["responseObject"]
    (store.directory / "audit.log").write_text(json.dumps({**event, "level": "Metadata"}) + "\n")
    result = store.kinf("import", store.directory / "audit.log", "--store", store.directory / "made")
    assert result.status == 1 and "there is no object in it: it is an audit log" in result.stderr, result
    assert "RequestResponse" in result.stderr and not (store.directory / "made").exists()


def test_an_object_in_two_api_versions_of_an_audit_log_is_one(store):
    def scaler(name, version, rv):
        return {"apiVersion": f"autoscaling/{version}", "kind": "HorizontalPodAutoscaler", "metadata": {
            "name": name, "namespace": "web", "uid": name, "resourceVersion": str(rv)}}

    lines = [audited(verb, f"0{rv}.0", scaler(name, version, rv), apiGroup="autoscaling", resource="horizontalpodautoscalers")
             for rv, (verb, name, version) in enumerate([("create", "a", "v1"), ("create", "b", "v1"), ("update", "a", "v2"),
                                                         ("delete", "a", "v2"), ("create", "c", "v2"), ("patch", "c", "v1")])]
    (store.directory / "audit.log").write_text("\n".join(lines) + "\n")
    target = store.directory / "made"
    store.kinf("import", store.directory / "audit.log", "--store", target, check=True)
    hpas = store.kinf("get", "horizontalpodautoscalers.v2.autoscaling", "-A", "-o", "json", "--store", target, check=True).json["items"]
    assert [(hpa["metadata"]["name"], hpa["apiVersion"]) for hpa in hpas] == [("b", "autoscaling/v1"), ("c", "autoscaling/v1")]
    log = store.kinf("log", "-o", "json", "--store", target, check=True).lines
    assert [(line["type"], line["key"]) for line in log] == [
        ("ADDED", "web/a"), ("ADDED", "web/b"), ("MODIFIED", "web/a"), ("DELETED", "web/a"), ("ADDED", "web/c"),
        ("MODIFIED", "web/c")]


def test_the_log_of_the_last_hours_is_read_from_there(store):
    now = datetime.now(timezone.utc)
    lines = []
    for hours in range(6, 0, -1):
        line = audited("create" if hours == 6 else "update", "00", pod("a", resourceVersion=str(10 - hours), uid="1"))
        lines.append(line.replace("2026-01-02T03:04:00Z", f"{now - timedelta(hours=hours):%Y-%m-%dT%H:%M:%SZ}"))
    (store.directory / "audit.log").write_text("\n".join(lines) + "\n")
    target = store.directory / "made"
    store.kinf("import", store.directory / "audit.log", "--store", target, check=True)

    def events(*options):
        return [row["event"] for row in store.kinf("log", "-o", "json", "--store", target, *options, check=True).lines]

    every = events()
    assert len(every) == 6
    for since, last in (("150m", 2), ("330m", 5), ("24h", 6)):
        assert events("--since", since) == every[-last:]
    assert events("--since", "1m") == []
    assert events("--since", "330m", "--from", str(every[-1])) == every[-1:]


# ---- snapshots of etcd -----------------------------------------------------------------------------

PAGE = 4096


def number(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(tag, value):
    return number(tag << 3 | 2) + number(len(value)) + value if isinstance(value, bytes) else number(tag << 3) + number(value)


def revision(number_, key, value=b"", gone=False):
    """A row of etcd's bucket."""
    row = field(1, key.encode()) + field(2, 1) + field(3, number_) + field(4, 1) + field(5, value)
    return struct.pack(">QcQ", number_, b"_", 0) + b"t" * gone, field(1, key.encode()) if gone else row


def leaf(page, rows, bucket=False):
    heads, at = b"", 16 * len(rows)
    for i, (key, value) in enumerate(rows):
        heads += struct.pack("<IIII", bucket, at - 16 * i, len(key), len(value))
        at += len(key) + len(value)
    more = max(0, at + 16 - 1) // PAGE
    return (struct.pack("<QHHI", page, 2, len(rows), more) + heads + b"".join(k + v for k, v in rows)).ljust(PAGE * (more + 1), b"\0")


def branch(page, children):
    heads = b"".join(struct.pack("<IIQ", 16 * len(children) - 16 * i, 0, child) for i, child in enumerate(children))
    return (struct.pack("<QHHI", page, 1, len(children), 0) + heads).ljust(PAGE, b"\0")


def meta(page, root, txid=1):
    body = struct.pack("<IIIIQQQQQ", 0xED0CDAED, 2, PAGE, 0, root, 0, 2**64 - 1, 99, txid)
    total = 0xCBF29CE484222325
    for byte in body:
        total = (total ^ byte) * 0x100000001B3 % 2**64
    return (struct.pack("<QHHI", page, 4, 0, 0) + body + struct.pack("<Q", total)).ljust(PAGE, b"\0")


def snapshot(*rows, per_leaf=3):
    """A bbolt file: the root with etcd's buckets, a branch, leaves."""
    leaves, children, page = b"", [], 4
    for i in range(0, len(rows), per_leaf):
        children.append(page)
        leaves += leaf(page, rows[i:i + per_leaf])
        page = 4 + len(leaves) // PAGE
    inline = struct.pack("<QQ", 0, 0) + struct.pack("<QHHI", 0, 2, 1, 0) + struct.pack("<IIII", 0, 16, 1, 1) + b"ab"
    root = leaf(2, [(b"alarm", inline), (b"key", struct.pack("<QQ", 3, 0)), (b"meta", inline)], bucket=True)
    return meta(0, 77, txid=1) + meta(1, 2, txid=2) + root + branch(3, children) + leaves


def etcd_json(obj):
    return json.dumps({**obj, "metadata": {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}}).encode()


def index(name, size):
    return {**INDEX, "metadata": {**INDEX["metadata"], "name": name, "uid": f"u-{name}"}, "spec": {"size": size, "text": "x" * 3000}}


OLD_CRD = {**CRD, "apiVersion": "apiextensions.k8s.io/v1beta1", "spec": {
    **CRD["spec"], "versions": [{"name": "v1", "served": True, "storage": True}],
    "additionalPrinterColumns": [{"name": "Size", "type": "integer", "JSONPath": ".spec.size"}]}}
INDEX_KEY = "/registry/example.com/indices/web/"
SNAPSHOT = snapshot(
    revision(2, "compact_rev_key", b"1"),
    revision(3, "/registry/apiextensions.k8s.io/customresourcedefinitions/indices.example.com", etcd_json(OLD_CRD)),
    revision(4, INDEX_KEY + "one", etcd_json(index("one", 1))),
    revision(5, INDEX_KEY + "two", etcd_json(index("two", 2))),
    revision(6, "/registry/pods/web/a", b"k8s\0" + field(1, field(1, b"v1") + field(2, b"Pod")) + field(2, b"\x0a\x00")),
    revision(7, "/registry/pods/web/a", b"k8s\0" + field(1, field(1, b"v1") + field(2, b"Pod")) + field(2, b"\x0a\x00")),
    revision(8, INDEX_KEY + "one", etcd_json(index("one", 3))),
    revision(9, INDEX_KEY + "two", gone=True),
    revision(10, "/registry/secrets/web/s", b"k8s:enc:aescbc:v1:key1:xxxx"))


def test_a_snapshot_of_etcd_gives_custom_resources_and_their_history(store):
    path, target = store.directory / "snap.db", store.directory / "made"
    path.write_bytes(SNAPSHOT + b"\x01" * 32)  # etcdctl appends a hash
    result = store.kinf("import", path, "--store", target)
    assert result.status == 1 and len(skipped(result)) == 1
    assert "3 versions are left out (Pod, (encrypted))" in result.stderr
    store.kinf("verify", "--deep", "--store", target, check=True)
    assert store.kinf("get", "ix", "-A", "--store", target, check=True).stdout == "NAMESPACE   NAME   SIZE\nweb         one    3\n"
    one = index("one", 3)
    one["metadata"]["resourceVersion"] = "8"
    assert store.kinf("get", "ix", "-n", "web", "one", "-o", "json", "--store", target, check=True).json == one
    log = store.kinf("log", "indices.example.com", "-o", "json", "--store", target, check=True).lines
    assert [(line["type"], line["key"], line["resourceVersion"]) for line in log] == [
        ("ADDED", "web/one", "4"), ("ADDED", "web/two", "5"), ("MODIFIED", "web/one", "8"), ("DELETED", "web/two", "5")]
    ask = "import os, subprocess; print(os.environ['KINF_STORE'])"
    opened = store.kinf("open", path, "--store", os.path.relpath(store.directory / "kept"), "--", "/usr/bin/python3", "-c", ask)
    assert opened.status == 0 and os.path.isabs(opened.stdout.strip()), opened


def test_an_object_of_etcd_is_one_in_all_versions_of_its_definition(store):
    """After a change of the storage version the objects are rewritten one by one."""
    crd = {**OLD_CRD, "spec": {**OLD_CRD["spec"], "versions": [{"name": "v1", "served": True, "storage": True},
                                                               {"name": "v1alpha1", "served": True, "storage": False}]}}
    old = {name: etcd_json({**index(name, 1), "apiVersion": "example.com/v1alpha1"}) for name in ("one", "two", "three")}
    (store.directory / "snap.db").write_bytes(snapshot(
        revision(3, "/registry/apiextensions.k8s.io/customresourcedefinitions/indices.example.com", etcd_json(crd)),
        *(revision(4 + i, INDEX_KEY + name, body) for i, (name, body) in enumerate(old.items())),
        revision(7, INDEX_KEY + "one", etcd_json(index("one", 10))), revision(8, INDEX_KEY + "two", gone=True)))
    target = store.directory / "made"
    store.kinf("import", store.directory / "snap.db", "--store", target, check=True)
    store.kinf("verify", "--deep", "--store", target, check=True)
    table = store.kinf("get", "ix", "-A", "--store", target, check=True).stdout
    assert table == "NAMESPACE   NAME    SIZE\nweb         one     10\nweb         three   1\n", "with the columns of v1"
    objects = store.kinf("get", "ix", "-A", "-o", "json", "--store", target, check=True).json["items"]
    assert [item["apiVersion"] for item in objects] == ["example.com/v1", "example.com/v1alpha1"]
    log = store.kinf("log", "indices.example.com", "-o", "json", "--store", target, check=True).lines
    assert [line["type"] for line in log] == ["ADDED"] * 3 + ["MODIFIED", "DELETED"]


def hostile():
    cut = SNAPSHOT
    yield "cut", cut[:5 * PAGE + 100], "is not in the file"
    yield "a head alone", cut[:PAGE], "is not in the file, which may be cut"
    yield "both metas", cut[:24] + b"x" * 8 + cut[32:PAGE + 24] + b"x" * 8 + cut[PAGE + 32:], "with both meta pages damaged"
    yield "a cycle", cut[:3 * PAGE] + branch(3, [3]) + cut[4 * PAGE:], "page 3 is in it twice"
    yield "a page for two", cut[:3 * PAGE] + branch(3, [4, 4]) + cut[4 * PAGE:], "page 4 is in it twice"
    yield "a meta page", cut[:3 * PAGE] + branch(3, [0]) + cut[4 * PAGE:], "page 0 is not in the file"
    count = bytearray(cut)
    count[3 * PAGE + 10:3 * PAGE + 12] = b"\xff\xff"
    yield "rows", bytes(count), "page 3 has more rows than can be"
    more = bytearray(cut)
    more[3 * PAGE + 12:3 * PAGE + 16] = b"\xff\xff\xff\xff"
    yield "further pages", bytes(more), "page 3 is larger than can be"
    size = bytearray(cut)
    size[4 * PAGE + 16 + 12:4 * PAGE + 16 + 16] = b"\xff\xff\xff\xff"
    yield "a row's size", bytes(size), "page 4 has a row outside of it"
    kind = bytearray(cut)
    kind[4 * PAGE + 8] = 16
    yield "a free list", bytes(kind), "page 4 is neither a branch nor a leaf"
    yield "no bucket", cut[:2 * PAGE] + leaf(2, [(b"alarm", b"x" * 40)], bucket=True) + cut[3 * PAGE:], "without the bucket 'key'"
    within = [(b"alarm", b"\0" * 16 + leaf(0, [])[:16])]
    yield "copied while etcd runs", cut[:4 * PAGE] + leaf(4, within, bucket=True) + cut[5 * PAGE:], "page 4 has a bucket where rows are"
    yield "no revision", snapshot((b"x", b"y")), "it has a row that is no revision of etcd"


@pytest.mark.parametrize(("name", "data", "sentence"), list(hostile()), ids=[case[0] for case in hostile()])
def test_a_damaged_snapshot_is_named(store, name, data, sentence):
    (store.directory / "snap.db").write_bytes(data)
    result = store.kinf("import", store.directory / "snap.db", "--store", store.directory / "made")
    assert result.status == 1 and sentence in result.stderr, (name, result)
