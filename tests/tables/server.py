# SPDX-License-Identifier: Apache-2.0
"""Requests to the API server of a kubeconfig."""

import base64
import json
import re
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

GIVEN = ("uid", "resourceVersion", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds")
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


class Server:
    def __init__(self, kubeconfig):
        view = ["kubectl", "--kubeconfig", kubeconfig, "config", "view", "--raw", "--minify", "--flatten", "-o", "json"]
        config = json.loads(subprocess.run(view, capture_output=True, check=True, timeout=60).stdout)
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.url = cluster["server"]
        self.headers = {"Content-Type": "application/json"}
        self.tls = ssl.create_default_context(
            cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        if "token" in user:
            self.headers["Authorization"] = "Bearer " + user["token"]
        else:
            with tempfile.NamedTemporaryFile() as both:
                both.write(base64.b64decode(user["client-certificate-data"]) + b"\n")
                both.write(base64.b64decode(user["client-key-data"]))
                both.flush()
                self.tls.load_cert_chain(both.name)

    def request(self, method, path, body=None, accept="application/json"):
        """(status, document)"""
        request = urllib.request.Request(self.url + path, method=method, headers={**self.headers, "Accept": accept},
                                         data=None if body is None else json.dumps(body).encode())
        try:
            with urllib.request.urlopen(request, context=self.tls, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            text = error.read().decode()
            return error.code, json.loads(text) if text.startswith("{") else {"message": text}

    def get(self, path, accept="application/json"):
        status, document = self.request("GET", path, accept=accept)
        while status == 429:  # of a new definition
            time.sleep(0.25)
            status, document = self.request("GET", path, accept=accept)
        assert status == 200, f"GET {path}: {status} {document.get('message')}"
        return document

    def resources(self):
        """{plural[.group]: (path, kind, namespaced)} of all resources with list, in the preferred version."""
        roots = [("", ["/api/v1"])]
        for group in self.get("/apis")["groups"]:
            versions = [group["preferredVersion"], *group["versions"]]
            roots.append((group["name"], [f"/apis/{v['groupVersion']}" for v in versions]))
        found = {}
        for group, versions in roots:
            for root in versions:
                code, document = self.request("GET", root)
                for resource in document["resources"] if code == 200 else []:  # an APIService may be away
                    if "list" in resource["verbs"] and "/" not in resource["name"]:
                        name = resource["name"] + ("." + group if group else "")
                        found.setdefault(name, (f"{root}/{resource['name']}", resource["kind"], resource["namespaced"]))
        return found

    def put_status(self, path, status):
        current = self.get(path)
        current["status"] = status
        return self.request("PUT", path + "/status", current)

    def create(self, paths, resource, recorded):
        """Makes an object as it was RECORDED, with its status; an object in deletion stays because
        of its finalizer. An existing one is left as it is. Returns its uid. PATHS: of resources(),
        asked again for new ones.
        """
        if resource not in paths:
            paths.update(self.resources())
        root, _, namespaced = paths[resource]
        meta = {key: value for key, value in recorded["metadata"].items() if key not in GIVEN}
        obj = {**recorded, "metadata": meta, "apiVersion": re.sub(r"^/apis?/(.*)/.*", r"\1", root)}
        status = {key: value for key, value in obj.pop("status", {}).items() if key != "qosClass"}
        if resource == "jobs.batch":  # their selector has the uid
            template = {"spec": recorded["spec"]["template"]["spec"]}
            obj["spec"] = {**{k: v for k, v in recorded["spec"].items() if k != "selector"}, "template": template}
        if namespaced:
            head, _, plural = root.rpartition("/")
            root = f"{head}/namespaces/{meta['namespace']}/{plural}"
        path = f"{root}/{meta['name']}"
        code, answer = self.request("POST", root, obj)
        for _ in range(40):  # a new definition is served after a moment
            if code not in (404, 429):
                break
            time.sleep(0.25)
            code, answer = self.request("POST", root, obj)
        if code == 409:
            return self.get(path)["metadata"]["uid"]
        assert code in (200, 201), f"{path}: {code} {answer.get('message')}"
        uid = answer["metadata"]["uid"]
        if resource.startswith("certificatesigningrequests") and status:
            current = {**answer, "status": {"conditions": [c for c in status.get("conditions", []) if c["type"] != "Failed"]}}
            code, answer = self.request("PUT", path + "/approval", current)
            assert code == 200, f"{path}/approval: {code} {answer.get('message')}"
        if status and answer.get("status") != status:
            code, answer = self.put_status(path, status)
            assert code == 200, f"{path}/status: {code} {answer.get('message')}"
        if "deletionTimestamp" in recorded["metadata"]:
            code, answer = self.request("DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})
            assert code in (200, 202), f"DELETE {path}: {code} {answer.get('message')}"
        return uid
