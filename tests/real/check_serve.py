#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sends the same requests and watches to a real API server, $KUBECONFIG, and to a kinf-serve filled
from it, and compares the answers byte by byte: status, headers read by clients, body. Masked are
ages in tables, the resourceVersion of a list (a cache may be a little behind), the one in a
continue token, and the host in /api.

Every difference must be in APART with its reason, and every reason there must still be needed;
docs/serve.md lists them.

usage: KUBECONFIG=FILE tests/real/check_serve.py [--keep] [NAME...]  (NAME: these requests only, with all bytes of both)
"""

import argparse
import base64
import gzip
import http.client
import json
import os
import re
import shutil
import socket
import ssl
import sys
import threading
import time
import urllib.parse
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scenario"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
from cluster import Cluster  # noqa: E402
from conftest import Workspace  # noqa: E402
from harness import eventually  # noqa: E402
from harness.process import program  # noqa: E402
from harness.serve import INITIAL, Answer, addresses  # noqa: E402

A, B, GROUP = "kinf-serve-a", "kinf-serve-b", "kinf-serve.example.com"
PODS, ALL, MAPS = f"/api/v1/namespaces/{A}/pods", "/api/v1/pods", f"/api/v1/namespaces/{A}/configmaps"
DEPLOYMENTS, GADGETS = f"/apis/apps/v1/namespaces/{A}/deployments", f"/apis/{GROUP}/v1/namespaces/{A}/gadgets"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
KUBECTL = TABLE + ",application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
META = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METAS = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
PROTOBUF = "application/vnd.kubernetes.protobuf"
# As client-go's metadata client asks.
PROTOBUF_META, PROTOBUF_METAS = (accept.replace("application/json", PROTOBUF) + "," + accept for accept in (META, METAS))
DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
HEADERS = ("content-type", "content-encoding", "vary", "cache-control", "retry-after", "x-content-type-options", "warning")


def q(**parameters):
    return "?" + urllib.parse.urlencode(parameters)


# ---- the objects ---------------------------------------------------------------------------------


def objects():
    def meta(name, namespace=A, **labels):
        return {"name": name, "namespace": namespace, "labels": labels, "annotations": {"a": "<grün> & 日本"}}

    container = {"name": "c", "image": "none:1"}
    for namespace in (A, B):
        for i in range(5):
            yield {"apiVersion": "v1", "kind": "Pod", "metadata": meta(f"p{i}", namespace, app=f"app{i % 2}", n=str(i)),
                   "spec": {"containers": [container], "nodeName": f"n{i % 2}"}}
            yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta(f"m{i}", namespace, app=f"app{i % 2}"),
                   "data": {"a.b": "1", "z": "x" * 3000}}
    for i in range(60):
        yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta(f"large{i}"), "data": {"z": "y" * 4000}}
    yield {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta("d", app="d"),
           "spec": {"selector": {"matchLabels": {"app": "d"}},
                    "template": {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [container]}}}}
    yield {"apiVersion": "v1", "kind": "Service", "metadata": meta("s"), "spec": {"ports": [{"port": 80}]}}
    yield {"apiVersion": "v1", "kind": "Secret", "metadata": meta("s"), "data": {"k": "AAEC"}}
    # The viewer may read one object, and one namespace.
    rbac, rules = "rbac.authorization.k8s.io", [("configmaps", ["m1"], ["get", "list", "watch"]), ("namespaces", [], ["get"])]
    yield {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": {"name": "viewer", "namespace": A},
           "rules": [{"apiGroups": [""], "resources": [r], "resourceNames": names, "verbs": verbs} for r, names, verbs in rules]}
    yield {"apiVersion": f"{rbac}/v1", "kind": "RoleBinding", "metadata": {"name": "viewer", "namespace": A},
           "subjects": [{"kind": "User", "name": "viewer", "apiGroup": rbac}], "roleRef": {"kind": "Role", "name": "viewer", "apiGroup": rbac}}
    # It may get as the user other, who has the same rights, and review what that user may; no more.
    yield {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": "kinf-serve-viewer"}, "rules": [
        {"apiGroups": ["authentication.k8s.io"], "resources": ["users"], "resourceNames": ["other"], "verbs": ["impersonate:user-info"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["impersonate-on:user-info:get"]},
        {"apiGroups": ["authorization.k8s.io"], "resources": ["selfsubjectaccessreviews"], "verbs": ["impersonate-on:user-info:create"]}]}
    yield {"apiVersion": f"{rbac}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "kinf-serve-viewer"},
           "subjects": [{"kind": "User", "name": "viewer", "apiGroup": rbac}],
           "roleRef": {"kind": "ClusterRole", "name": "kinf-serve-viewer", "apiGroup": rbac}}
    yield {"apiVersion": f"{rbac}/v1", "kind": "RoleBinding", "metadata": {"name": "other", "namespace": A},
           "subjects": [{"kind": "User", "name": "other", "apiGroup": rbac}], "roleRef": {"kind": "Role", "name": "viewer", "apiGroup": rbac}}
    for i in range(2):
        yield {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"kinf-serve-{i}"}, "spec": {"unschedulable": i == 1}}
    yield {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": A}, "reason": "Made", "type": "Normal",
           "involvedObject": {"kind": "Pod", "name": "p0", "namespace": A, "uid": "u"}, "source": {"component": "test"},
           "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z", "count": 3}


def definition():
    schema = {"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"color": {"type": "string"}, "size": {"type": "integer"}, "odd": {"type": "boolean"}}}}}
    columns = [{"name": "Color", "type": "string", "jsonPath": ".spec.color", "description": "its colour"},
               {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1},
               {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema},
               "additionalPrinterColumns": columns,
               "selectableFields": [{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.size"}, {"jsonPath": ".spec.odd"}]}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"gadgets.{GROUP}"},
            "spec": {"group": GROUP, "scope": "Namespaced", "versions": [version],
                     "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "shortNames": ["gd"]}}}


def gadgets():
    for i, color in enumerate(("red", "blue", "red", None)):
        spec = {"size": i, "odd": i % 2 == 1, **({"color": color} if color else {})}
        yield {"apiVersion": f"{GROUP}/v1", "kind": "Gadget", "metadata": {"name": f"g{i}", "namespace": A}, "spec": spec}


# ---- the requests --------------------------------------------------------------------------------


def requests(rv):
    """{name: (path, headers)}; RV is the version of a list of all pods."""
    old = {"resourceVersion": rv}
    plain = {
        # S01-S09: lists and objects
        "list": PODS, "list-all": ALL, "list-none": "/api/v1/namespaces/zzz/pods", "get": PODS + "/p0",
        "get-missing": PODS + "/nope", "get-missing-group": DEPLOYMENTS + "/nope", "get-deployment": DEPLOYMENTS + "/d",
        "get-custom": GADGETS + "/g0", "list-custom": GADGETS, "list-custom-all": f"/apis/{GROUP}/v1/gadgets",
        "get-without-namespace": "/api/v1/pods/p0", "cluster-scoped-in-namespace": f"/api/v1/namespaces/{A}/nodes",
        "list-nodes": "/api/v1/nodes", "get-node": "/api/v1/nodes/kinf-serve-0", "get-namespace": f"/api/v1/namespaces/{A}",
        "unknown-resource": "/api/v1/nosuch", "unknown-resource-in-namespace": f"/api/v1/namespaces/{A}/nosuch",
        "unknown-group": "/apis/none/v1/x", "unknown-version": "/apis/apps/v9/deployments", "unknown-path": "/nosuch",
        "unknown-custom": f"/apis/{GROUP}/v1/nosuch", "list-events": f"/api/v1/namespaces/{A}/events",
        "list-secrets": f"/api/v1/namespaces/{A}/secrets", "list-maps": MAPS, "get-crd": f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.{GROUP}",
        # S11-S18: labels
        **{f"labels {s}": PODS + q(labelSelector=s) for s in (
            "app=app1", "app==app1", "app!=app1", "app", "!app", "x", "!x", "app in (app0,app1),!x", "app in ()", "app notin (app1)",
            "n>3", "n<2", "n>x", "app in (web", "a,", ",a", "_a", "a=(b)", "a b", "!", "app=-x", "a" * 64, "app=" + "b" * 64,
            "A.b/c", "a/b/c", "app in", "app=app1,app!=app1", "app>1,app<3", "app in (a,,b)", "in", "in in (in)", "a=", "a==", "a!=", "=a",
            " app = app1 ", "a in (b", "a in b", "a,,b", "a notin", "a>b", "a>1x", "/a", "a/", "grün")},
        # S19-S27: fields
        **{f"fields {s}": PODS + q(fieldSelector=s) for s in (
            "status.phase=Pending", "status.phase!=Pending", "spec.nodeName=n1", "spec.host=n1", "status.podIPs=10.0.0.1", "foo=bar", "foo",
            ",metadata.name=p1,", "metadata.name=p1,metadata.namespace=" + B, "metadata.namespace=" + B, "metadata.name!=p1", "spec.hostNetwork=false",
            "spec.restartPolicy=Always", "spec.schedulerName=default-scheduler", "metadata.name==p1", "=", "metadata.name=a\\x", "metadata.name=a\\",
            "metadata.name=a=b", "status.podIP=", "spec.serviceAccountName=default", "metadata.name=p1,metadata.name=p2", "metadata.uid=x")},
        "fields-all": ALL + q(fieldSelector="metadata.name=p1"), "fields-all-namespace": ALL + q(fieldSelector=f"metadata.namespace={A}"),
        "fields-deployments": DEPLOYMENTS + q(fieldSelector="foo=bar"), "fields-deployments-name": DEPLOYMENTS + q(fieldSelector="metadata.name=d"),
        "fields-events": f"/api/v1/namespaces/{A}/events" + q(fieldSelector="involvedObject.name=p0,reason=Made"),
        "fields-events-source": f"/api/v1/namespaces/{A}/events" + q(fieldSelector="source=test"),
        "fields-events-bad": f"/api/v1/namespaces/{A}/events" + q(fieldSelector="foo=bar"),
        "fields-nodes": "/api/v1/nodes" + q(fieldSelector="spec.unschedulable=true"),
        "fields-nodes-namespace": "/api/v1/nodes" + q(fieldSelector="metadata.namespace=a"),
        "fields-secrets": f"/api/v1/namespaces/{A}/secrets" + q(fieldSelector="type=Opaque"),
        "fields-services": f"/api/v1/namespaces/{A}/services" + q(fieldSelector="spec.type=ClusterIP"),
        "fields-namespaces": "/api/v1/namespaces" + q(fieldSelector=f"status.phase=Active,metadata.name={A}"),
        "fields-custom": GADGETS + q(fieldSelector="spec.color=red"), "fields-custom-not": GADGETS + q(fieldSelector="spec.color!=red"),
        "fields-custom-none": GADGETS + q(fieldSelector="spec.color="), "fields-custom-number": GADGETS + q(fieldSelector="spec.size=2"),
        "fields-custom-bool": GADGETS + q(fieldSelector="spec.odd=true"), "fields-custom-bad": GADGETS + q(fieldSelector="spec.other=x"),
        "fields-jobs-bad": f"/apis/batch/v1/namespaces/{A}/jobs" + q(fieldSelector="foo=bar"),
        "fields-maps-bad": MAPS + q(fieldSelector="foo=bar"),
        # S28-S44: pages and versions
        "limit": PODS + q(limit=2), "limit-labels": PODS + q(limit=2, labelSelector="app=app0"), "limit-all": ALL + q(limit=3),
        "limit-large": PODS + q(limit=100), "limit-0-rv": PODS + q(limit=2, resourceVersion=0),
        **{f"limit {v}": PODS + q(limit=v) for v in ("abc", "", "-1", "0", "1.5", "99999999999999999999", " 1", "+2")},
        **{f"rv {v}": PODS + q(resourceVersion=v) for v in ("0", "1", rv, "007", "abc", "-1", "+1", "1.0", " 1", "99999999999999999999", "00", "x y")},
        **{f"get-rv {v}": PODS + "/p0" + q(resourceVersion=v) for v in ("0", "1", rv, "abc")},
        "rv-future": PODS + q(resourceVersion="99999999"), "rv quoted": PODS + q(resourceVersion='a"\\\n'), "limit quoted": PODS + q(limit='a"b'), "limit-min": PODS + q(limit=-2**63), "limit-less": PODS + q(limit=-2**63 - 1),
        "timeout-quoted": PODS + q(timeout='1x"'), "timeout-overflow": PODS + q(timeout="9999999h"), "token one": PODS + "?continue=x", "get-rv-future": PODS + "/p0" + q(resourceVersion="99999999"),
        "exact": ALL + q(**old, resourceVersionMatch="Exact"), "not-older": ALL + q(**old, resourceVersionMatch="NotOlderThan"),
        "exact-limit": ALL + q(**old, limit=3), "exact-none": PODS + q(resourceVersionMatch="Exact"),
        "exact-0": PODS + q(resourceVersion=0, resourceVersionMatch="Exact"), "match-foo": PODS + q(resourceVersion=1, resourceVersionMatch="foo"),
        "match-and-token": PODS + "?resourceVersionMatch=foo&continue=x", "initial-list": PODS + q(sendInitialEvents="false"),
        "initial-list-true": PODS + q(sendInitialEvents="true", resourceVersionMatch="Exact"),
        **{f"token {t}": PODS + "?continue=" + t for t in ("%25%25%25", "e30", "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ", "eyJ2IjoidjkiLCJydiI6MX0", "bm9uc2Vuc2U")},
        "token-and-rv": PODS + q(**{"continue": token(rv, "p1\0")}, resourceVersion=5), "token-good": PODS + q(limit=2, **{"continue": token(rv, "p1\0")}),
        "token-newest": PODS + q(**{"continue": token(-1, "p1\0")}), "token-dots": PODS + q(**{"continue": token(rv, "../x\0")}),
        "timeout-bad": PODS + q(timeout="x"), "timeout-seconds-bad": PODS + q(timeoutSeconds="x"), "export": PODS + q(export="true"),
        "unknown-parameter": PODS + q(foo="bar"), "repeated-parameter": PODS + "?limit=2&limit=3", "watch-false": PODS + "?watch=false", "watch-0": PODS + "?watch=0",
        # S91: odd paths
        "slash-at-end": PODS + "/", "slash-after-name": PODS + "/p0/", "two-slashes": "/api/v1//pods", "dots": "/api/v1/../v1/pods", "encoded-dots": "/api/v1/%2e%2e/v1/pods",
        "encoded-slash": f"/api/v1/namespaces/{A}%2fpods", "encoded-name": PODS + "/%70%30", "root-of-namespaces": "/api/v1/namespaces/", "namespace-status": f"/api/v1/namespaces/{A}/status",
        "bad-percent": PODS + "/a%zz", "no-utf8": PODS + "/a%ff", "control": PODS + "/a%01%22%5C", "long-name": PODS + "/" + "a" * 5000,
        # odd queries
        "get-with-options-of-lists": PODS + "/p0?limit=x&continue=x&labelSelector=,,&timeoutSeconds=x&sendInitialEvents=true",
        "document-with-options": "/api/v1/nosuch/x?limit=x", "two-limits": PODS + "?limit=1&limit=x", "semicolon": PODS + "?limit=1;labelSelector=x",
        "bad-percent-in-query": PODS + "?labelSelector=%zz", "two-selectors": PODS + "?labelSelector=app%3Dapp1&labelSelector=app%3Dapp0",
        "many-parameters": PODS + "?" + "&".join(f"a{i}=1" for i in range(7000)), "large-selector": PODS + q(labelSelector="a," * 10000 + "b"),
        "large-set": PODS + q(labelSelector="app in (" + ",".join(f"v{i}" for i in range(5000)) + ")"),
        "limit-max": PODS + q(limit=2**63 - 1), "timeout-huge": PODS + q(timeoutSeconds=2**63 - 1), "timeout-negative": PODS + q(timeoutSeconds=-1),
        "exact-future": PODS + q(resourceVersion="99999999", resourceVersionMatch="Exact"), "limit-future": PODS + q(resourceVersion="99999999", limit=2),
        "token-future": PODS + "?continue=" + token("99999999", "p1\0"), "token-zero": PODS + "?continue=" + token("0", "p1\0"),
        "token-dots": PODS + "?continue=" + token("-1", "../../kinf-serve-b/pods/p0"), "token-other": PODS + "?continue=" + token("-1", "/p1\0"),
        # S84: documents
        "api": "/api", "apis": "/apis", "api-v1": "/api/v1", "apps": "/apis/apps", "apps-v1": "/apis/apps/v1", "custom-group": f"/apis/{GROUP}", "custom-v1": f"/apis/{GROUP}/v1",
        "no-group": "/apis/none", "no-version": "/apis/apps/v9", "version": "/version", "version-slash": "/version/", "root": "/",
        # watches refused before they begin
        "watch-initial": PODS + q(watch=1, sendInitialEvents="true"), "watch-initial-exact": PODS + q(watch=1, sendInitialEvents="true", resourceVersionMatch="Exact"),
        "watch-match": PODS + q(watch=1, resourceVersionMatch="NotOlderThan"), "watch-match-exact": PODS + q(watch=1, resourceVersionMatch="Exact", resourceVersion=1),
        "watch-rv": PODS + q(watch=1, resourceVersion="abc"), "watch-rv-long": PODS + q(watch=1, resourceVersion="9" * 30),
        "watch-name-of-all": "/api/v1/watch/pods/p0", "watch-labels": PODS + q(watch=1, labelSelector="a,"), "watch-fields": PODS + q(watch=1, fieldSelector="foo=bar"),
        "watch-timeout": PODS + q(watch=1, timeoutSeconds="x"), "watch-prefix-name": f"/api/v1/watch/namespaces/{A}/pods/p0" + q(fieldSelector="metadata.name=b"),
        "watch-match-token": PODS + "?watch=1&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&continue=x",
    }
    found = {name: (path, {}) for name, path in plain.items()}
    # S75-S83: forms
    for name, path in {"pods": PODS, "pod": PODS + "/p0", "all": ALL, "deployments": DEPLOYMENTS, "gadgets": GADGETS, "gadget": GADGETS + "/g0", "nodes": "/api/v1/nodes",
                       "events": f"/api/v1/namespaces/{A}/events", "none": "/api/v1/namespaces/zzz/pods", "missing": PODS + "/nope", "crds": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                       "page": PODS + "?limit=2"}.items():
        found[f"table-{name}"] = (path, {"accept": KUBECTL})
    for include in ("Object", "None", "Metadata", "", "x"):
        found[f"table-include-{include}"] = (PODS + q(includeObject=include), {"accept": TABLE})
    for name, accept in {
            "none": "", "any": "*/*", "application": "application/*", "js": "application/json, */*;q=0.8", "html": "text/html", "yaml": "application/yaml", "protobuf": PROTOBUF,
            "protobuf-json": PROTOBUF + ",application/json", "v9": "application/json;as=Table;v=v9;g=meta.k8s.io", "v9-json": "application/json;as=Table;v=v9;g=meta.k8s.io,application/json",
            "beta": "application/json;as=Table;v=v1beta1;g=meta.k8s.io", "metas": METAS, "meta-of-list": META, "metas-beta": METAS.replace("v=v1", "v=v1beta1"),
            "other-group": "application/json;as=Table;v=v1;g=x", "quality-0": "application/json;q=0", "quality": "application/yaml;q=0.1,application/json;q=0.9", "stream": "application/json;stream=watch",
            "charset": "application/json;charset=utf-8", "quality-bad": TABLE + ";q=x,application/json", "pretty": "application/json;pretty=1", "garbage": ";;;", "unknown-as": "application/json;as=Foo;v=v1;g=meta.k8s.io", "cbor": "application/cbor",
            "metas-protobuf": PROTOBUF_METAS, "metas-beta-protobuf": PROTOBUF_METAS.replace("v=v1", "v=v1beta1") + "," + META}.items():
        found[f"accept-{name}"] = (PODS, {"accept": accept})
    for name, path in {"all": ALL, "page": PODS + "?limit=2", "custom": GADGETS, "none": "/api/v1/namespaces/zzz/pods", "pretty": PODS + "?pretty=true",
                       "labels": PODS + "?labelSelector=app%3Dapp0", "nodes": "/api/v1/nodes"}.items():
        found[f"metas-protobuf-{name}"] = (path, {"accept": PROTOBUF_METAS})
    for name, path in {"get": PODS + "/p0", "custom": GADGETS + "/g0"}.items():
        found[f"meta-protobuf-{name}"] = (path, {"accept": PROTOBUF_META})
    found["accept-many"] = (PODS, {"accept": ", ".join(f"application/x{i}" for i in range(1000)) + ", application/json"})
    found["range"] = (PODS + "/p0", {"range": "bytes=0-9"})
    found["conditions"] = (PODS + "/p0", {"if-none-match": "*", "if-match": '"x"', "if-modified-since": "Fri, 01 Jan 2100 00:00:00 GMT"})
    found["impersonate"] = (PODS, {"impersonate-user": "viewer"})
    found["impersonate-group"] = (PODS, {"impersonate-user": "x", "impersonate-group": "system:masters"})
    found["impersonate-nobody"] = (PODS, {"impersonate-group": "system:masters"})
    found["accept-meta"] = (PODS + "/p0", {"accept": META})
    found["accept-metas-none"] = ("/api/v1/namespaces/zzz/pods", {"accept": METAS})
    found["accept-metas-missing"] = (PODS + "/nope", {"accept": METAS})
    found["accept-meta-of-custom-list"] = (GADGETS, {"accept": META})
    found["accept-table-bad-selector"] = (PODS + "?labelSelector=,,", {"accept": TABLE})
    found["accept-metas-of-object"] = (PODS + "/p0", {"accept": METAS})
    found["accept-meta-of-list-bad-rv"] = (PODS + "?continue=x", {"accept": META})
    found["include-of-missing"] = (PODS + "/nope?includeObject=x", {"accept": TABLE})
    found["limit-and-timeout"] = (PODS + "?limit=x&timeoutSeconds=y", {})
    found["accept-upper"] = (PODS, {"accept": "APPLICATION/JSON"})
    found["accept-upper-bad-limit"] = (PODS + "?limit=x", {"accept": "APPLICATION/JSON"})
    for name, accept in {"table": TABLE, "html": "text/html", "json": "application/json"}.items():
        found[f"deadline-{name}"] = (PODS + "?timeout=x&limit=x", {"accept": accept})
    for start in ("a", "a\0", "/a", "a\0b", "/"):
        found[f"token-start {start!r}"] = (ALL + q(limit=1, **{"continue": token(1, start)}), {})
    found["accept-table-missing-json"] = (PODS + "/nope", {"accept": TABLE})
    found["accept-watch-yaml"] = (PODS + "?watch=1&timeoutSeconds=1", {"accept": "application/yaml"})
    found["accept-watch-html"] = (PODS + "?watch=1&timeoutSeconds=1", {"accept": "text/html"})
    found["accept-discovery-html"] = ("/api/v1", {"accept": "text/html"})
    found["meta-custom"] = (GADGETS, {"accept": METAS})
    for name, headers in {"gzip": {"accept-encoding": "gzip"}, "gzip-quality": {"accept-encoding": "gzip;q=1"}, "gzip-and": {"accept-encoding": "deflate, gzip"}}.items():
        found[name] = (MAPS, headers)
        found[name + "-small"] = (MAPS + "/m0", headers)
    found["pretty-curl"] = (PODS, {"user-agent": "curl/8"})
    found["pretty-object"] = (PODS + "/p0", {"user-agent": "Wget/1"})
    found["pretty-error"] = (PODS + "/nope", {"user-agent": "Mozilla/5.0 x"})
    for value in ("true", "1", "t", "false", "x", "", "TRUE", "tRUE", "0"):
        found[f"pretty {value}"] = (PODS + "/p0" + q(pretty=value), {})
        found[f"pretty-curl {value}"] = (PODS + "/p0" + q(pretty=value), {"user-agent": "curl/8"})
    found["pretty-not"] = (PODS + q(pretty="false"), {"user-agent": "curl/8"})
    found["pretty-table"] = (PODS, {"accept": TABLE, "user-agent": "curl/8"})
    found["pretty-custom"] = (GADGETS, {"user-agent": "curl/8"})
    found["pretty-discovery"] = ("/api/v1", {"user-agent": "curl/8"})
    for path in ("/api", "/apis"):
        found[f"aggregated {path}"] = (path, {"accept": DISCOVERY})
        found[f"aggregated-beta {path}"] = (path, {"accept": DISCOVERY.replace("v=v2", "v=v2beta1")})
    found["no-token"] = (PODS, {"authorization": ""})
    found["bad-token"] = (PODS, {"authorization": "Bearer nobody"})
    found["basic"] = (PODS, {"authorization": "Basic YTpi"})
    for name, path in {"list": PODS, "get": PODS + "/p0", "watch": PODS + "?watch=1", "all": ALL, "group": DEPLOYMENTS, "get-group": DEPLOYMENTS + "/d",
                       "node": "/api/v1/nodes/kinf-serve-0", "document": "/api/v1", "version": "/version"}.items():
        found[f"viewer-{name}"] = (path, {"authorization": "viewer"})
    one = f"/api/v1/watch/namespaces/{A}/configmaps/"
    for name, path in {"get": MAPS + "/m1", "get-other": MAPS + "/m2", "list": MAPS + q(fieldSelector="metadata.name=m1"), "list-other": MAPS + q(fieldSelector="metadata.name=m2"),
                       "list-not": MAPS + q(fieldSelector="metadata.name!=m1"), "list-slash": MAPS + q(fieldSelector="metadata.name=m1/x"), "list-all": "/api/v1/configmaps" + q(fieldSelector="metadata.name=m1"),
                       "watch": MAPS + q(fieldSelector="metadata.name=m1", watch=1, resourceVersion=0, timeoutSeconds=1), "watch-other": MAPS + q(fieldSelector="metadata.name=m2", watch=1),
                       "watch-prefix": one + "m1" + q(resourceVersion=0, timeoutSeconds=1), "watch-prefix-other": one + "m2", "watch-prefix-selected": one[:-1] + q(fieldSelector="metadata.name=m1"), "namespace": f"/api/v1/namespaces/{A}",
                       "namespace-other": f"/api/v1/namespaces/{B}", "namespaces": "/api/v1/namespaces", "namespaces-one": "/api/v1/namespaces" + q(fieldSelector=f"metadata.name={A}"),
                       "namespace-watch": f"/api/v1/watch/namespaces/{A}", "log": PODS + "/p1/log"}.items():
        found[f"viewer-one-{name}"] = (path, {"authorization": "viewer"})
        found[f"as-viewer-{name}"] = (path, {"impersonate-user": "viewer"})
        found[f"constrained-{name}"] = (path, {"authorization": "viewer", "impersonate-user": "other"})
    for method in ("POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"):
        found[f"{method} list"] = ("/api/v1/namespaces/zzz/pods", {"method": method})
        found[f"{method} object"] = (PODS + "/nope", {"method": method})
        found[f"{method} document"] = ("/api/v1", {"method": method})
    return found


def token(rv, start):
    text = json.dumps({"v": "meta.k8s.io/v1", "rv": int(rv), "start": start}, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


WATCHES = {
    # each with resourceVersion=RV unless it says another
    "pods": PODS + "?watch=1", "all": ALL + "?watch=true", "labels": PODS + "?watch=1&labelSelector=app%3Dapp0", "labels-not": PODS + "?watch=1&labelSelector=app!%3Dapp0",
    "fields": PODS + "?watch=1&fieldSelector=metadata.name%3Dp1", "phase": PODS + "?watch=1&fieldSelector=spec.nodeName%3Dn1", "prefix": "/api/v1/watch/pods?",
    "prefix-bookmarks": f"/api/v1/watch/namespaces/{A}/pods?resourceVersion=0&allowWatchBookmarks=true", "zeros": PODS + "?watch=1&resourceVersion=00&allowWatchBookmarks=true",
    "zeros-no-initial": PODS + "?watch=1&resourceVersion=00&sendInitialEvents=false&resourceVersionMatch=NotOlderThan",
    "prefix-namespace": f"/api/v1/watch/namespaces/{A}/pods?", "prefix-name": f"/api/v1/watch/namespaces/{A}/pods/p1?", "maps": MAPS + "?watch=1",
    "custom": GADGETS + "?watch=1", "custom-fields": GADGETS + "?watch=1&fieldSelector=spec.color%3Dred", "empty-value": PODS + "?watch",
    "none": "/api/v1/namespaces/zzz/pods?watch=1", "nodes": "/api/v1/nodes?watch=1",
    "bookmarks": PODS + "?watch=1&allowWatchBookmarks=true", "no-initial": PODS + "?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan",
    "initial": PODS + "?watch=1&resourceVersion=0", "initial-none": PODS + "?watch=1&resourceVersion=", "initial-custom": GADGETS + "?watch=1&resourceVersion=0",
    "watch-list": PODS + "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=",
    "watch-list-rv": PODS + "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
    "watch-list-empty": "/api/v1/namespaces/zzz/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=",
    "watch-list-no-bookmarks": PODS + "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=",
    "watch-list-custom": GADGETS + "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=",
    "watch-list-future": PODS + "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=99999999",
    "future": PODS + "?watch=1&resourceVersion=99999999", "limit": PODS + "?watch=1&limit=1", "pretty": PODS + "?watch=1&pretty=true",
    "continue": PODS + "?watch=1&continue=x", "continue-newest": PODS + "?watch=1&continue=x&resourceVersion=0", "continue-path": f"/api/v1/watch/namespaces/{A}/pods?continue=x",
}
WATCH_FORMS = {"table": (PODS, TABLE), "table-initial": (PODS + "?resourceVersion=0", KUBECTL), "table-none": (PODS + "?includeObject=None", TABLE),
               "table-object": (PODS + "?includeObject=Object", TABLE), "table-custom": (GADGETS, TABLE), "table-bookmarks": (PODS + "?allowWatchBookmarks=true", TABLE),
               "metadata-protobuf": (PODS, PROTOBUF_META), "metadata-protobuf-custom": (GADGETS, PROTOBUF_META),
               "metadata-protobuf-bookmarks": (PODS + "?allowWatchBookmarks=true", PROTOBUF_META),
               "metadata-protobuf-initial": (PODS + "?sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=", PROTOBUF_META),
               "metadata-protobuf-old": (PODS + "?resourceVersion=1", PROTOBUF_META),
               "metadata": (PODS, META), "metadata-custom": (GADGETS, META), "metadata-bookmarks": (PODS + "?allowWatchBookmarks=true", META), "metadata-list-form": (PODS, METAS),
               "any": (PODS, "*/*"), "stream": (PODS, "application/json;stream=watch")}

# ---- the known differences -----------------------------------------------------------------------

# {name (or its beginning with *): reason}. docs/serve.md has the same list in words.
# Needed in some clusters only: the first two where there are none, the others where there are some.
SOMETIMES = {
    "every table /api/v1/limitranges": "rows [] instead of null", "every table /apis/storage.k8s.io/v1/csistoragecapacities": "rows [] instead of null",
    "every table /apis/apps/v1/daemonsets": "with the annotation of their generation",
    "every protobuf /apis/apps/v1/daemonsets": "with the annotation of their generation",
}
APART = {
    **SOMETIMES,
    # Requests not served by kinf-serve.
    "unknown-path": "every 404 is a Status that says why", "unknown-group": "names the feed to add", "unknown-resource*": "names the feed to add",
    "document-with-options": "names the feed to add", "bad-percent": "a Status in place of text", "impersonate-nobody": "403 in place of 400",
    "unknown-version": "names the feed to add", "unknown-custom": "names the feed to add", "no-group": "every 404 is a Status",
    "namespace-status": "subresources are not cached", "root": "other paths", "apis": "only what is served",
    "every table /apis/flowcontrol.apiserver.k8s.io/v1/flowschemas": "rows in the order of names", "version*": "no version of the server is known",
    "viewer-version": "no version of the server is known", "api-v1": "only what is served", "apps-v1": "only what is served",
    "custom-v1": "only what is served", "viewer-document": "only what is served", "pretty-discovery": "only what is served", "aggregated*": "only what is served",
    "accept-yaml": "JSON only", "accept-protobuf*": "objects in JSON only", "accept-metas-beta-protobuf": "protobuf of v1 only", "accept-cbor": "JSON only", "accept-html": "names JSON only", "accept-v9": "names JSON only",
    "accept-upper*": "names JSON only", "accept-meta-of-list-bad-rv": "the form first", "accept-metas-missing": "the form first", "include-of-missing": "the form first", "accept-other-group": "names JSON only", "accept-unknown-as": "names JSON only", "accept-garbage": "names JSON only", "accept-watch-yaml": "JSON only",
    "accept-watch-html": "names JSON only", "accept-metas-none": "items [] instead of null", "accept-discovery-html": "names JSON only",
    # Requests answered otherwise by kinf-serve, on purpose.
    "accept-application": "application/* is JSON", "accept-quality-0": "q=0 is not acceptable", "timeout-bad": "ignored", "timeout-quoted": "ignored", "timeout-overflow": "ignored", "deadline-*": "ignored",
    "fields-jobs-bad": "the words of pods", "get-rv abc": "400 instead of 500", "watch-rv*": "400 instead of 500", "slash-*": "one path, one object", "encoded-slash": "one path, one object",
    "root-of-namespaces": "one path, one object", "token *": "other words", "token-dots": "a key like others", "token-zero": "other words", "token-start*": "other words, a key like others", "no-token": "no anonymous user", "basic": "no anonymous user",
    "HEAD*": "answered as GET", "POST list": "writes are not served", "PUT object": "writes are not served", "PATCH object": "writes are not served", "DELETE list": "writes are not served",
    "DELETE object": "writes are not served", "watch metadata-list-form": "406 instead of a stream without events", "watch old": "history begins at our first list",
    "watch metadata-protobuf-old": "history begins at our first list", "socket old": "history begins at our first list",
}

# ---- asking --------------------------------------------------------------------------------------


class Side:
    """One server, asked with the administrator's token unless a request says otherwise."""

    def __init__(self, address, ca, token, viewer):
        self.address, self.token, self.viewer = address, token, viewer
        self.context = ssl.create_default_context(cafile=ca)

    def ask(self, path, headers):
        headers = {"user-agent": "check", "accept-encoding": "", **headers}
        method = headers.pop("method", "GET")
        who = headers.pop("authorization", "admin")
        if who:
            headers["authorization"] = "Bearer " + {"admin": self.token, "viewer": self.viewer}.get(who, who) if " " not in who else who
        connection = http.client.HTTPSConnection(self.address, timeout=30, context=self.context)
        try:
            connection.putrequest(method, path, skip_accept_encoding=True)
            for name, value in headers.items():
                if value or name == "accept":
                    connection.putheader(name, value)
            connection.endheaders()
            response = connection.getresponse()
            return Answer(response, response.read())
        finally:
            connection.close()


    def converse(self, path, headers, said):
        """Asks for a WebSocket, says SAID on it after a second, and returns the data at its end:
        the head's lines read by clients, and all bytes after it."""
        headers = {"connection": "Upgrade", "upgrade": "websocket", "origin": f"https://{self.address}", "authorization": "admin",
                   "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==", "sec-websocket-version": "13", **headers}
        headers["authorization"] = "Bearer " + {"admin": self.token, "viewer": self.viewer}.get(headers["authorization"], "nobody")
        host, _, port = self.address.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=4) as plain, self.context.wrap_socket(plain, server_hostname=host) as connection:
            lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {self.address}\r\n{lines}\r\n".encode())
            if said:
                time.sleep(1)
                connection.sendall(said)
            answer = b""
            try:
                while piece := connection.recv(65536):
                    answer += piece
                answer += b"the end"
            except TimeoutError:
                pass  # an answer without upgrade leaves the connection open
        head, _, body = answer.partition(b"\r\n\r\n")
        other = b"audit-id:", b"date:", b"content-length:", b"x-kubernetes-pf-"
        kept = sorted(line.lower() for line in head.split(b"\r\n") if not line.lower().startswith(other))
        if CHUNKED in kept:  # the API server's choice for over 2 kB
            kept.remove(CHUNKED)
            body = joined_chunks(body)
        return kept, TOO_OLD.sub(rb"\1N", masked(body))


CHUNKED = b"transfer-encoding: chunked"


def joined_chunks(body):
    """The content of chunked BODY."""
    content = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        content, body = content + body[: int(size, 16)], body[int(size, 16) + 2 :]
    return content


AGE = re.compile(rb'(?<=")(\d+[smhdy]){1,2}(?=")')
LIST_RV = re.compile(rb'("kind": ?"\w*(?:List|Table)",\s*"apiVersion": ?"[^"]*",\s*"metadata": ?\{\s*"resourceVersion": ?")\d+')
CUSTOM_LIST_RV = re.compile(rb'("kind": ?"\w*List",\s*"metadata": ?\{(?:\s*"continue": ?"[^"]*",)?(?:\s*"remainingItemCount": ?\d+,)?\s*"resourceVersion": ?")\d+')
CONTINUE = re.compile(rb'("continue": ?")([\w-]+)')
CURRENT = re.compile(rb"(Too large resource version: \d+, current: )\d+")
PROTOBUF_LIST_RV = re.compile(rb"(PartialObjectMetadataList\x12.{2,12}?\n\0\x12.)\d+", re.DOTALL)
PROTOBUF_CONTINUE = re.compile(rb"(PartialObjectMetadataList\x12.{2,12}?\n\0\x12.N\x1a.)([\w-]+)", re.DOTALL)
PROTOBUF_BOOKMARK_RV = re.compile(rb"(^\n\x08BOOKMARK.*?\x32.)\d+", re.DOTALL)
TOO_OLD = re.compile(rb"(too old resource version: \d+ \()\d+")
COLUMNS = re.compile(rb'"columnDefinitions":\[.*?\](?=,"rows")')


def masked_token(match):
    text = base64.urlsafe_b64decode(match[2] + b"=" * (-len(match[2]) % 4))
    return match[1] + re.sub(rb'"rv":\d+', b'"rv":N', text)


def masked(body):
    for pattern, with_ in ((AGE, b"AGE"), (LIST_RV, rb"\1N"), (CUSTOM_LIST_RV, rb"\1N"), (CONTINUE, masked_token), (CURRENT, rb"\1N"),
                           (PROTOBUF_LIST_RV, rb"\1N"), (PROTOBUF_CONTINUE, masked_token),
                           (re.compile(rb'"serverAddress": ?"[^"]*"'), b'"serverAddress":""')):
        body = pattern.sub(with_, body)
    return body


def plain(answer):
    return gzip.decompress(answer.body) if answer.headers.get("content-encoding") == "gzip" else answer.body


def parts(answer):
    """The compared parts of an answer."""
    body = plain(answer)
    if answer.status >= 400 and body.startswith(b"{\n"):  # to clients that accept no plain objects
        body = json.dumps(json.loads(body), separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
    headers = {name: answer.headers[name] for name in HEADERS if name in answer.headers}
    return answer.status, headers, masked(body)


def first_difference(a, b):
    for i, (x, y) in enumerate(zip(a, b)):
        if x != y:
            break
    else:
        i = min(len(a), len(b))
    return f"at {i}: server {a[max(0, i - 60):i + 120]!r} kinf-serve {b[max(0, i - 60):i + 120]!r}"


def unordered(path, body):
    """The BODY, JSON, without the order of members, which is of no account for custom resources."""
    if GROUP not in path or not body.startswith(b"{"):
        return body
    document = json.loads(body)
    if document.get("metadata", {}).get("continue") == "":
        del document["metadata"]["continue"]
    return json.dumps(document, sort_keys=True).encode()


def difference(path, theirs, ours):
    """A sentence, or None."""
    for name, a, b in zip(("status", "headers", "body"), parts(theirs), parts(ours)):
        if a != b and name == "body":
            a, b = unordered(path, a), unordered(path, b)
        if a != b:
            if name != "body":
                return f"{name}: server {a} kinf-serve {b}: {ours.body[:300]!r} server {theirs.body[:300]!r}"
            return first_difference(a, b)
    return None


def reason(name):
    return next((key for key in APART if key == name or (key.endswith("*") and name.startswith(key[:-1]))), None)


class Check:
    def __init__(self, names):
        self.names, self.equal, self.wrong, self.used = names, 0, [], set()

    def wants(self, name):
        return not self.names or name in self.names

    def note(self, name, different):
        key = reason(name)
        if key and different:
            self.used.add(key)
        elif different:
            self.wrong.append(f"{name}: {different}")
        else:
            self.equal += 1
            if self.names:
                print(f"{name}: equal")

    def compare(self, name, server, serve, path, headers):
        if not self.wants(name):
            return
        for _ in range(3):  # ages and events go on meanwhile
            theirs, ours = server.ask(path, headers), serve.ask(path, headers)
            different = difference(path, theirs, ours)
            if not different:
                break
        if self.names:
            print(theirs.status, theirs.headers, theirs.body[:2000], ours.status, ours.headers, ours.body[:2000], sep="\n")
        self.note(name, different)


def frames(body):
    """The events of a watch in protobuf."""
    while body:
        size = int.from_bytes(body[:4], "big")
        yield PROTOBUF_BOOKMARK_RV.sub(rb"\1N", body[4:4 + size])
        body = body[4 + size:]


def bookmark(line):
    """LINE without its version, and without what docs/serve.md names."""
    event = json.loads(line)
    for row in event["object"].get("rows", []):
        row["cells"] = None
    for whole in [event["object"], *(row["object"] for row in event["object"].get("rows", []))]:
        if whole and "metadata" in whole:
            whole["metadata"]["resourceVersion"] = "N"
            whole["metadata"].get("annotations", {}).pop("deprecated.daemonset.template.generation", None)
            if not whole["metadata"].get("annotations", True):
                del whole["metadata"]["annotations"]
    return json.dumps(event, separators=(",", ":"), sort_keys=True).replace('{"object":', '{"type":"BOOKMARK","object":', 1).encode()


def lines(answer):
    """The events of a watch; bookmarks come at any time, so only the first one of a run counts, and
    its version does not."""
    found = []
    if answer.headers.get("content-type", "").startswith(PROTOBUF):
        for frame in frames(answer.body):
            if not (frame.startswith(b"\n\x08BOOKMARK") and found and found[-1].startswith(b"\n\x08BOOKMARK") and b"initial-events-end" not in frame):
                found.append(frame)
        return found
    for line in masked(plain(answer)).splitlines():
        line = bookmark(line) if line.startswith(b'{"type":"BOOKMARK"') else line
        if found:  # the API server may send the columns again, from its cache of encoded events
            line = COLUMNS.sub(b'"columnDefinitions":null', line)
        if line.startswith(b'{"type":"BOOKMARK"') and found and found[-1].startswith(b'{"type":"BOOKMARK"') and b"initial-events-end" not in line:
            continue
        found.append(line)
    return found


def watches(rv, paths):
    for path in paths:  # no object, but the bookmark of each kind
        yield f"bookmark {path}", f"{path}?watch=1&{INITIAL}&allowWatchBookmarks=true&labelSelector=no%3Dlabel&timeoutSeconds=14", {}
    for name, path in WATCHES.items():
        path += "" if "resourceVersion=" in path else f"&resourceVersion={rv}"
        yield f"watch {name}", path + "&timeoutSeconds=14", {}
    for name, (path, accept) in WATCH_FORMS.items():
        path += ("&" if "?" in path else "?") + "watch=1"
        path += "" if "resourceVersion=" in path else f"&resourceVersion={rv}"
        yield f"watch {name}", path + "&timeoutSeconds=14", {"accept": accept}
    yield "watch old", PODS + "?watch=1&resourceVersion=1&timeoutSeconds=14", {}
    yield "watch gzip", PODS + f"?watch=1&resourceVersion={rv}&timeoutSeconds=14", {"accept-encoding": "gzip"}
    yield "watch gzip-objects", PODS + f"?watch=1&{INITIAL}&allowWatchBookmarks=true&timeoutSeconds=14", {"accept-encoding": "gzip"}
    yield "watch curl", PODS + f"?watch=1&resourceVersion={rv}&timeoutSeconds=14", {"user-agent": "curl/8"}


def check_watches(check, cluster, server, serve, rv):
    """Runs all watches at once on both servers, with the changes in the middle."""
    answers, threads, paths = {}, [], {}
    for name, path, headers in watches(rv, sorted(cluster.all_paths().values())):
        if not check.wants(name):
            continue
        paths[name] = path
        for side in (server, serve):
            threads.append(threading.Thread(target=lambda k=(name, side), p=path, h=headers: answers.__setitem__(k, k[1].ask(p, h))))
    for thread in threads:
        thread.start()
    time.sleep(5)  # the initial states are read before the changes
    change(cluster)
    for thread in threads:
        thread.join()
    for name in dict.fromkeys(name for name, _ in answers):
        theirs, ours = answers[name, server], answers[name, serve]
        if check.names:
            print(theirs.body.decode(errors="replace"), ours.body.decode(errors="replace"), sep="\n====\n")
        a, b = (parts(side)[:2] + ([unordered(paths[name], line) for line in lines(side)],) for side in (theirs, ours))
        if a[:2] != b[:2]:
            check.note(name, f"server {a[:2]} kinf-serve {b[:2]}: {ours.body[:300]!r}, server {theirs.body[:300]!r}")
        elif a[2] != b[2]:
            i = next((i for i, (x, y) in enumerate(zip(a[2], b[2])) if x != y), min(len(a[2]), len(b[2])))
            x, y = (side[2][i] if i < len(side[2]) else b"" for side in (a, b))
            check.note(name, f"event {i} of {len(a[2])} and {len(b[2])}: {first_difference(x, y)}")
        else:
            check.note(name, None)


SOCKETS = {
    "list": PODS + "?watch=1&resourceVersion=0", "all": ALL + "?watch=true&resourceVersion=0&labelSelector=n", "prefix": "/api/v1/watch/pods?resourceVersion=0&labelSelector=n",
    "custom": GADGETS + "?watch=1&resourceVersion=0", "none": "/api/v1/namespaces/zzz/pods?watch=1&resourceVersion=0", "old": PODS + "?watch=1&resourceVersion=1",
    "refused": PODS + "?watch=1&labelSelector=,,", "no-watch": PODS + "/p0",
}
PING, LEAVE = b"\x89\x84\1\2\3\4\x60\x60\x60\x60", b"\x88\x82\1\2\3\4\x02\xea"
SOCKET_FORMS = {"metadata": {"accept": META}, "protocol": {"sec-websocket-protocol": "v4.channel.k8s.io"}, "viewer": {"authorization": "viewer"},
                "bad-token": {"authorization": "Bearer nobody"}}


def check_sockets(check, server, serve):
    """Watches over WebSockets, with all bytes of both."""
    wanted = [(name, path, {}, b"") for name, path in SOCKETS.items()]
    wanted += [(name, SOCKETS["list"], headers, b"") for name, headers in SOCKET_FORMS.items()]
    wanted += [("ping", SOCKETS["list"], {}, PING), ("leave", SOCKETS["list"], {}, LEAVE)]
    for name, path, headers, said in wanted:
        name = f"socket {name}"
        if not check.wants(name):
            continue
        path += ("&" if "?" in path else "?") + "timeoutSeconds=2"
        theirs, ours = server.converse(path, headers, said), serve.converse(path, headers, said)
        check.note(name, None if theirs == ours else f"server {theirs} kinf-serve {ours}")


def check_progress(check, cluster, server, serve):
    """Reads at the resourceVersion of another resource, not reached by pods."""
    slowest = 0
    for name, path in {"list": PODS + "?resourceVersion={}", "exact": PODS + "?resourceVersion={}&resourceVersionMatch=Exact", "page": ALL + "?resourceVersion={}&limit=3",
                       "get": PODS + "/p0?resourceVersion={}", "token": PODS + "?continue={token}",
                       "initial": PODS + "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion={}&timeoutSeconds=6"}.items():
        name = f"progress {name}"
        if not check.wants(name):
            continue
        cluster.kubectl("annotate", "configmap", "-n", B, "m1", f"n={time.monotonic()}", "--overwrite")
        rv = json.loads(cluster.raw(f"/api/v1/namespaces/{B}/configmaps/m1"))["metadata"]["resourceVersion"]
        path = path.format(rv, token=token(rv, "p1\0"))
        began = time.monotonic()
        ours = serve.ask(path, {})
        if name != "progress initial":
            slowest = max(slowest, time.monotonic() - began)
        theirs = server.ask(path, {})
        a, b = ((parts(side)[:2], lines(side) if "watch=1" in path else parts(side)[2]) for side in (theirs, ours))
        check.note(name, None if a == b else f"server {a} kinf-serve {b}")
        time.sleep(1)
    print(f"progress on demand: at most {slowest:.1f} s")


def change(cluster):
    cluster.kubectl("label", "pod", "-n", A, "p0", "app=app1", "--overwrite")
    cluster.kubectl("label", "pod", "-n", A, "p1", "app=app0", "--overwrite")
    cluster.kubectl("patch", "gadget", "-n", A, "g0", "--type=merge", "-p", '{"spec":{"color":"green"}}')
    cluster.kubectl("patch", "gadget", "-n", A, "g1", "--type=merge", "-p", '{"spec":{"color":"red"}}')
    cluster.kubectl("delete", "pod", "-n", A, "p3", "--grace-period=0", "--force")
    cluster.kubectl("delete", "gadget", "-n", A, "g2")
    cluster.kubectl("label", "configmap", "-n", A, "m0", "x=y")
    cluster.kubectl("annotate", "node", "kinf-serve-0", "x=y")


# ---- all -----------------------------------------------------------------------------------------


def prepare(cluster):
    cluster.kubectl("delete", "crd", f"gadgets.{GROUP}", "--ignore-not-found")
    cluster.kubectl("delete", "pods,configmaps,deployments,services,secrets,events,roles,rolebindings", "--all", "-n", A, "--grace-period=0", "--force", check=False)
    cluster.kubectl("delete", "pods,configmaps", "--all", "-n", B, "--grace-period=0", "--force", check=False)
    cluster.kubectl("delete", "clusterroles,clusterrolebindings", "kinf-serve-viewer", "--ignore-not-found")
    cluster.kubectl("delete", "nodes", "kinf-serve-0", "kinf-serve-1", "--ignore-not-found")
    cluster.kubectl("create", "-f", "-", body=json.dumps(definition()))
    cluster.kubectl("wait", "--for=condition=Established", f"crd/gadgets.{GROUP}", "--timeout=30s")
    cluster.make_namespaces(A, B)
    cluster.kubectl("create", "-f", "-", body="\n".join(json.dumps(o) for o in objects()))
    cluster.kubectl("create", "-f", "-", body="\n".join(json.dumps(o) for o in gadgets()))


def start(workspace, kubeconfig, **settings):
    store = workspace.store()
    shutil.copy(kubeconfig, store.kubeconfig)
    store.configure(*({"resource": resource, "drop": []} for resource in ("*", "events", "events.events.k8s.io", "secrets")),
                    serve={"listen": ["unix", "127.0.0.1:0"], "auth": "self", **settings})
    store.daemons()
    serve = store.process("kinf-serve", [program("kinf-serve"), "-v"]).start()

    def live():
        states = {f["resource"]: f["state"] for f in store.kinf("status", "-o", "json", check=True).json["feeds"]}
        return f"gadgets.{GROUP}" in states and set(states.values()) == {"live"}

    eventually(live, 120, "all feeds live, that of the new custom resource also")
    serve.wait_log("daemon_started")
    return store


def sides(store, kubeconfig):
    config = yaml.safe_load(Path(kubeconfig).read_text())
    users = {user["name"]: user["user"] for user in config["users"]}
    tokens = [user["token"] for user in users.values() if "token" in user]
    viewer = users.get("viewer", {}).get("token", tokens[-1])
    server = config["clusters"][0]["cluster"]
    return (Side(server["server"].removeprefix("https://"), server["certificate-authority"], tokens[0], viewer),
            Side(addresses(store)["api", "https"], str(store.path / "serve" / "ca.crt"), tokens[0], viewer))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep", action="store_true", help="make no objects")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    kubeconfig = os.environ["KUBECONFIG"]
    cluster = Cluster(kubeconfig)
    if not args.keep:
        prepare(cluster)
    workspace = Workspace()
    check = Check(args.names)
    try:
        store = start(workspace, kubeconfig)
        server, serve = sides(store, kubeconfig)
        rv = json.loads(cluster.raw(ALL))["metadata"]["resourceVersion"]
        eventually(lambda: serve.ask(PODS + f"?resourceVersion={rv}", {}).status == 200, 30, "the version of the list")
        for name, (path, headers) in requests(rv).items():
            check.compare(name, server, serve, path, headers)
        for path in sorted(cluster.all_paths().values()):
            check.compare(f"every {path}", server, serve, path, {})
            check.compare(f"every table {path}", server, serve, path, {"accept": KUBECTL})
            check.compare(f"every protobuf {path}", server, serve, path, {"accept": PROTOBUF_METAS})
        check_sockets(check, server, serve)
        check_progress(check, cluster, server, serve)
        rv = json.loads(cluster.raw(ALL))["metadata"]["resourceVersion"]
        check_watches(check, cluster, server, serve, rv)
        for line in check.wrong:
            print(line)
        unused = [key for key in APART if key not in check.used and key not in SOMETIMES] if not args.names else []
        for key in unused:
            print(f"APART names {key}, which is equal: {APART[key]}")
        print(f"{check.equal} requests and watches equal byte by byte; {len(check.used)} known differences; {len(check.wrong)} others")
        sys.exit(1 if check.wrong or unused else 0)
    finally:
        workspace.close()


if __name__ == "__main__":
    main()
