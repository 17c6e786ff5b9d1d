#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
kinf-serve beside a real API server, $KUBECONFIG, as a product of axes (scenario/harness/product.py): some 1,000 lists and watches,
their pages and events compared whole with those of the API server. Makes namespaces named PREFIX-NNNN and a CustomResourceDefinition,
and removes them.

usage: KUBECONFIG=FILE tests/real/check_product.py [--prefix PREFIX] [--keep]
"""

import argparse
import http.client
import json
import os
import shutil
import ssl
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scenario"))
from conftest import Workspace  # noqa: E402
from harness import eventually, product  # noqa: E402
from harness.product import AXES, COLUMNS, GROUP, KINDS, SERVERS, Check, Objects, Service, Watch, ask, cover, possible, shape_of  # noqa: E402
from harness.tls import Authority  # noqa: E402

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def settled(answers):
    """ANSWERS of the API server without its two whims: an empty list is null in some forms
    (docs/serve.md), and a watch of Tables gives its columns again with the second event if the
    first was encoded for another watch of the same form.
    """
    columns = None
    for answer in answers:
        thing = answer.get("object", answer)
        if thing is answer:
            for name in {"items", "rows"}.intersection(thing):
                thing[name] = thing[name] or []
        elif thing.get("kind") == "Table":
            columns, thing["columnDefinitions"] = columns or thing["columnDefinitions"], None if columns else thing["columnDefinitions"]
    return answers


class BesideServer(Check):
    def note(self, row, ours, wanted):
        """Config maps are no feed: their answers are forwarded."""
        super().note(row, settled(ours) if row["kind"] == "configmaps" else ours, settled(wanted))


class ApiServer:
    """The API server of a kubeconfig, and its answers."""

    def __init__(self, kubeconfig):
        config = yaml.safe_load(Path(kubeconfig).read_text())
        cluster = config["clusters"][0]["cluster"]
        self.address = cluster["server"].removeprefix("https://")
        self.context = ssl.create_default_context(cafile=cluster["certificate-authority"])
        self.token = next(user["user"]["token"] for user in config["users"] if "token" in user["user"])
        self.watches, self.namespaces, self.rounds = {}, [], 0
        self.kept, self.threads, self.under_way = threading.local(), ThreadPoolExecutor(8), []
        self.readers = ThreadPoolExecutor(2 * product.BATCH)

    @property
    def connection(self):
        """The thread's connection."""
        if not hasattr(self.kept, "connection"):
            self.kept.connection = self.connect()
        return self.kept.connection

    def connect(self):
        connection = http.client.HTTPSConnection(self.address, timeout=120, context=self.context)
        connection.identity = {"authorization": f"Bearer {self.token}"}
        return connection

    def call(self, method, path, body=None, type_="application/json", good=(200, 201, 202)):
        text = None if body is None else json.dumps(body)
        try:
            self.connection.request(method, path, text, {**self.connection.identity, "content-type": type_})
            response = self.connection.getresponse()
        except ConnectionError:  # it was idle for too long
            del self.kept.connection
            self.connection.request(method, path, text, {**self.connection.identity, "content-type": type_})
            response = self.connection.getresponse()
        answer = json.loads(response.read())
        assert response.status in good, f"{method} {path}: {answer}"
        return answer

    # ---- objects -----------------------------------------------------------------------------------

    def define(self):
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema},
                   "additionalPrinterColumns": COLUMNS}
        names = {"plural": "gadgets", "singular": "gadget", "kind": "Gadget"}
        self.call("POST", DEFINITIONS, {
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"gadgets.{GROUP}"},
            "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]}}, good=(201, 409))
        eventually(self.is_served, what="the custom resource")

    def is_served(self):
        conditions = self.call("GET", f"{DEFINITIONS}/gadgets.{GROUP}").get("status", {}).get("conditions") or ()
        return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)

    def make(self, kind, namespace, objects):
        """Begins to make them; finish() waits until all are there."""
        self.namespaces.append(namespace)
        self.under_way.append(self.threads.submit(self.make_now, kind, namespace, objects))

    def finish(self):
        for thing in self.under_way:
            thing.result()
        self.under_way.clear()

    def make_now(self, kind, namespace, objects):
        self.call("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        if kind == "pods":  # are refused without it; where there is a controller it may make it first
            self.call("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "default"}},
                      good=(201, 409))
        for item in objects:
            self.call("POST", f"{KINDS[kind].root}/namespaces/{namespace}/{kind}", item)

    def remove(self):
        """The namespaces' contents go with them, where there is a controller of namespaces."""
        list(self.threads.map(lambda namespace: self.call("DELETE", f"/api/v1/namespaces/{namespace}"),
                              self.namespaces))
        self.call("DELETE", f"{DEFINITIONS}/gadgets.{GROUP}")

    def items(self, kind, namespace):
        return self.call("GET", f"{KINDS[kind].root}/namespaces/{namespace}/{kind}")["items"]

    def touch(self, namespaces):
        """At once: a watch is ended if its client reads nothing for a minute."""
        self.rounds += 1
        list(self.threads.map(self.touch_all, namespaces))

    def touch_all(self, place):
        kind, namespace = place
        for item in self.items(kind, namespace):
            self.call("PATCH", f"{KINDS[kind].root}/namespaces/{namespace}/{kind}/{item['metadata']['name']}",
                      {"metadata": {"annotations": {"touched": f"{self.rounds:02}"}}}, "application/merge-patch+json")

    # ---- answers -----------------------------------------------------------------------------------

    def measure(self, row, namespace):
        row = {"pages": "none", "encoding": "identity", "size": "one", **row}
        return len(ask(self.connection, row, namespace)[0].body)

    def rv(self, kind):
        return self.call("GET", f"{KINDS[kind].root}/{kind}?limit=1")["metadata"]["resourceVersion"]

    def pages(self, row, namespace):
        return [answer.json for answer in ask(self.connection, row, namespace)]

    def expect(self, row, namespace, rv, n):
        """Reads the watch in a thread: the API server ends the watches of slow clients."""
        watch = Watch(self.connect(), row, namespace, rv)
        initial = self.readers.submit(watch.initial if row["verb"] == "watch-list" else list)
        changes = self.readers.submit(lambda: initial.result() is not None and watch.changes(n))
        self.watches[tuple(row.values())] = watch, initial, changes

    def initial(self, row, namespace):
        return self.watches[tuple(row.values())][1].result()

    def changes(self, row, namespace, n, begun):
        watch, _, changes = self.watches.pop(tuple(row.values()))
        found = changes.result()
        watch.connection.close()
        return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--prefix", default="kinf-product", help="of the namespaces that it makes")
    parser.add_argument("--keep", action="store_true", help="do not remove what it has made")
    args = parser.parse_args()
    server = ApiServer(os.environ["KUBECONFIG"])
    workspace = Workspace()
    try:
        server.define()
        store = workspace.store()
        shutil.copy(os.environ["KUBECONFIG"], store.kubeconfig)
        token_file = store.directory / "token"
        token_file.write_text(server.token)
        service = Service(store, Authority(store.directory, "clients"), server.token, token_file)
        service.configure("open")
        store.daemons()
        store.wait_synced(f"gadgets.{GROUP}")
        store.wait_synced("pods")
        objects = Objects(args.prefix, server.make, server.measure)
        rows = cover(AXES, possible)
        began = time.monotonic()
        for _ in objects.make_all(dict.fromkeys(map(shape_of, rows))):
            server.finish()
        server.finish()
        print(f"{len(server.namespaces)} namespaces made in {time.monotonic() - began:.0f} s")
        check = BesideServer(server, objects)
        for name in SERVERS:
            began = time.monotonic()
            service.start(name)
            for kind in ("pods", "gadgets"):
                service.wait(kind, server.rv(kind))
            wrong, off = len(check.wrong), len(check.off)
            product.run(check, [row for row in rows if row["server"] == name], service.connect)
            print(*check.wrong[wrong:], *check.off[off:], sep="\n")
            print(f"{name}: {time.monotonic() - began:.0f} s; so far {check.report()}", flush=True)
        sys.exit(1 if check.wrong else 0)  # versions may have a digit more meanwhile
    finally:
        if not args.keep:
            server.remove()
        workspace.close()


if __name__ == "__main__":
    main()
