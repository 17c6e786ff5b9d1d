# SPDX-License-Identifier: Apache-2.0
"""kinf-serve as a product of axes (harness/product.py): every answer must follow from the objects
of the simulated cluster. Cells and columns of tables, and bookmarks, are those of small answers;
forwarded answers are the simulator's.

$KINF_PRODUCT is how many axes are combined (default 2; `make check-all`: 3)."""

import http.client
import json
import os

from harness import product
from harness.api_server import ApiServer
from harness.product import AXES, COLUMNS, GROUP, KINDS, LARGE, SERVERS, Check, Objects, Service, ask, cover, limit_of, selected, shape_of
from harness.tls import Authority

BORN = "2010-01-01T00:00:00Z"


def possible(row):
    """The simulator gets forwarded configmaps, and knows neither tables nor compression."""
    simple = row.get("form", "object") == "object" and row.get("space") != "pretty" and row.get("encoding") != "gzip"
    return product.possible(row) and (row.get("kind") != "configmaps" or simple and row.get("size") not in LARGE)


def chosen(row, items):
    """[(objects, whether there is another page, how many objects it and those after it have; None: not said)]"""
    limit, pages, n = limit_of(row), [[]], 0
    matching = {item["metadata"]["name"] for item in selected(row, items)}
    if not limit:
        return [([item for item in items if item["metadata"]["name"] in matching], False, None)]
    found = []
    for i, item in enumerate(items):
        if item["metadata"]["name"] in matching:
            pages[-1].append(item)
        if len(pages[-1]) == limit and i + 1 < len(items):
            found.append((pages[-1], True, None if row["selector"] != "none" else len(items) - i - 1))
            pages.append([])
    found.append((pages[-1], False, None))
    return found[-1:] if row["pages"] == "last" else found


class Simulated:
    """The answers derived from the simulator's objects."""

    def __init__(self, simulator, service):
        self.simulator, self.service = simulator, service
        self.known, self.rows, self.bookmarks, self.columns, self.rvs, self.rounds = {}, {}, {}, {}, {}, 0
        self.far = http.client.HTTPConnection("127.0.0.1", simulator.port, timeout=60)
        self.far.identity = {}

    def make(self, kind, namespace, objects):
        for item in objects:
            item["metadata"]["creationTimestamp"] = BORN
        self.rvs[kind] = self.simulator.put(kind, json.dumps(objects, ensure_ascii=False))  # configmaps come back as they are

    def wait(self):
        for kind, rv in self.rvs.items():
            if kind != "configmaps":
                self.service.wait(kind, rv)

    def rv(self, kind):
        return self.rvs[kind]

    def items(self, kind, namespace):
        if (kind, namespace) not in self.known:
            listed = self.simulator.get(f"{KINDS[kind].root}/namespaces/{namespace}/{kind}").json["items"]
            self.known[kind, namespace] = listed
        return self.known[kind, namespace]

    def touch(self, namespaces):
        self.rounds += 1
        for kind, namespace in namespaces:
            for item in self.items(kind, namespace):
                patch = {"metadata": {"annotations": {"touched": f"{self.rounds:02}"}}}
                self.rvs[kind] = self.simulator.patch(kind, f"{namespace}/{item['metadata']['name']}", patch)
            del self.known[kind, namespace]

    # ---- small answers -----------------------------------------------------------------------------

    def small(self, path, form, verb="list"):
        connection = self.service.connect("unix")
        connection.request("GET", path, headers={**connection.identity, **product.headers({"form": form, "verb": verb})})
        response = connection.getresponse()
        line = response.readline()
        connection.close()
        assert response.status == 200, line
        return json.loads(line)

    def row(self, kind, namespace, name):
        """The row of an object without the object."""
        if (namespace, name) not in self.rows:
            table = self.small(f"{KINDS[kind].root}/namespaces/{namespace}/{kind}/{name}?includeObject=None", "table v1")
            self.columns[kind] = product.normal_ages(table, None)
            self.rows[namespace, name] = {key: value for key, value in table["rows"][0].items() if key != "object"}
        return self.rows[namespace, name]

    def bookmark(self, row):
        kind, form = row["kind"], row["form"]
        if (kind, form) not in self.bookmarks:
            path = product.path({**row, "selector": "none"}, "none", watch=1, sendInitialEvents="true",
                                resourceVersionMatch="NotOlderThan", allowWatchBookmarks="true")
            event = self.small(path, form, "watch")
            self.columns[kind] = product.normal_event(event, None) or self.columns.get(kind)
            for bearer in event["object"].get("rows", ()):  # as a kube-apiserver has it
                wanted = "object" if form.endswith("Object") else f"metadata {form.split(' ')[1]}"
                bearer["object"] = self.bookmark({**row, "form": wanted})["object"]
            self.bookmarks[kind, form] = event
        return json.loads(json.dumps(self.bookmarks[kind, form]))

    # ---- forms -------------------------------------------------------------------------------------

    def whole(self, kind, item):
        return {"kind": KINDS[kind].kind, "apiVersion": KINDS[kind].version, **item}

    def thing(self, row, item):
        """An item or row of a list."""
        form, version, include = (*row["form"].split(" "), "", "")[:3]
        metadata = {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}", "metadata": item["metadata"]}
        if form == "table":
            thing = {"Metadata": metadata, "Object": self.whole(row["kind"], item), "None": None}[include]
            return {**self.row(row["kind"], item["metadata"]["namespace"], item["metadata"]["name"]), "object": thing}
        return metadata if form == "metadata" else item

    def table(self, row, metadata, things, begun=False):
        columns = self.columns.get(row["kind"]) if not begun else None
        return {"kind": "Table", "apiVersion": f"meta.k8s.io/{row['form'].split(' ')[1]}", "metadata": metadata, "columnDefinitions": columns, "rows": things}

    def document(self, row, items, more, left):
        form, version, _ = (*row["form"].split(" "), "", "")[:3]
        kind = KINDS[row["kind"]]
        metadata = {"resourceVersion": "N"}
        if more:
            metadata["continue"] = {"v": "meta.k8s.io/v1", "rv": "N", "start": f"/{more}\0"}
        if left:
            metadata["remainingItemCount"] = left
        things = [self.thing(row, item) for item in items]
        if form == "table":
            if not things:
                self.bookmark(row)  # has the columns
            return self.table(row, metadata, things)
        if form == "metadata":
            return {"kind": "PartialObjectMetadataList", "apiVersion": f"meta.k8s.io/{version}", "metadata": metadata, "items": things}
        return {"kind": f"{kind.kind}List", "apiVersion": kind.version, "metadata": metadata, "items": things}

    def event(self, row, type_, item, begun):
        thing = self.thing(row, item)
        if row["form"].startswith("table"):
            thing = self.table(row, {"resourceVersion": item["metadata"]["resourceVersion"]}, [thing], begun)
        return {"type": type_, "object": self.whole(row["kind"], thing) if row["form"] == "object" else thing}

    # ---- answers -----------------------------------------------------------------------------------

    def pages(self, row, namespace):
        if row["kind"] == "configmaps":
            return [answer.json for answer in ask(self.far, row, namespace)]
        found = chosen(row, self.items(row["kind"], namespace))
        return [self.document(row, items, more and items[-1]["metadata"]["name"], left) for items, more, left in found]

    def expect(self, row, namespace, rv, n):
        pass  # the answer follows from the objects

    def initial(self, row, namespace):
        items = selected(row, self.items(row["kind"], namespace))
        bookmark = self.bookmark(row)
        if items and row["form"].startswith("table"):
            bookmark["object"]["columnDefinitions"] = None
        return [self.event(row, "ADDED", item, i > 0) for i, item in enumerate(items)] + [bookmark]

    def changes(self, row, namespace, n, begun):
        items = selected(row, self.items(row["kind"], namespace))
        return [self.event(row, "MODIFIED", item, begun or i > 0) for i, item in enumerate(items)]


def test_every_answer_of_the_product_follows_from_the_objects(workspace):
    simulator = workspace.simulator()
    simulator.create("nodes", 10000)  # keeps the versions' number of digits
    simulator.add_kind(group="apiextensions.k8s.io", version="v1", resource="customresourcedefinitions", kind="CustomResourceDefinition",
                       namespaced=False)
    simulator.add_kind(group=GROUP, version="v1", resource="gadgets", kind="Gadget")
    version = {"name": "v1", "additionalPrinterColumns": COLUMNS}
    simulator.put("customresourcedefinitions", {"metadata": {"name": f"gadgets.{GROUP}"}, "spec": {"group": GROUP, "versions": [version]}})
    api = workspace.add(ApiServer(simulator))
    api.decide = lambda kind, authorization, spec: (
        {"authenticated": True, "user": {"username": "u", "groups": ["system:authenticated"]}} if kind == "tokenreviews" else {"allowed": True})
    store = workspace.store()
    store.connect(api.url)
    token_file = store.directory / "token"
    token_file.write_text("OWN\n")
    service = Service(store, Authority(store.directory, "clients"), "T", token_file)
    service.configure("open")
    store.daemons()
    store.wait_synced("customresourcedefinitions.apiextensions.k8s.io")
    store.wait_synced(f"gadgets.{GROUP}")
    service.start("open")

    reference = Simulated(simulator, service)

    def measure(row, namespace):
        row = {"pages": "none", "encoding": "identity", "size": "one", **row}
        if row["kind"] == "configmaps":
            return len(ask(reference.far, row, namespace)[0].body)
        connection = service.connect("unix")
        size = len(ask(connection, row, namespace)[0].body)
        connection.close()
        return size

    objects = Objects("product", reference.make, measure)
    rows = cover(AXES, possible, int(os.environ.get("KINF_PRODUCT", 2)))
    making = objects.make_all(dict.fromkeys(map(shape_of, rows)))
    next(making)
    reference.wait()
    for _ in making:
        pass
    reference.wait()
    check = Check(reference, objects)
    for server in SERVERS:
        if server != "open":
            service.start(server)
        product.run(check, [row for row in rows if row["server"] == server], service.connect)
    assert not check.wrong, "\n".join([check.report(), *check.wrong[:30]])
    assert not check.off, "\n".join([check.report(), *check.off[:30]])
    assert not [path for method, path, _ in api.seen if "/gadgets?" in path and "/namespaces/" in path], "the cache has them"
