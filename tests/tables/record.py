#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the objects of tests/tables/data/RESOURCE.json again, each kind with a special table in an
API server in many states, and records the server's Table of each kind there, with the objects.
tests/unit/test_tables.c compares kinformer's cells with them. A new state is a row {"object":
{...}} added to such a file by hand, before it is recorded.

    KUBECONFIG=FILE tests/tables/record.py [--only RESOURCE]

$KUBECONFIG is a throw-away API server with all APIs (--runtime-config=api/all=true,
--feature-gates=AllAlpha=true, AllBeta=true), and without kubelet and controllers: they would change
the states.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from server import TABLE, Server  # noqa: E402

DATA = Path(__file__).resolve().parent / "data"
DESCRIPTIONS = DATA.parents[1] / "print/table/descriptions.txt"


# The API server makes these itself.
ITS_OWN = {"apiservices.apiregistration.k8s.io", "componentstatuses", "events.events.k8s.io", "ipaddresses.networking.k8s.io",
           "storageversions.internal.apiserver.k8s.io"}


def definition(head):
    """The definition of a recorded custom resource, with its columns."""
    namespaced = any("namespace" in row["object"]["metadata"] for row in head["rows"])
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": head["version"], "served": True, "storage": True, "schema": {"openAPIV3Schema": schema},
               "subresources": {"status": {}}, "additionalPrinterColumns": head["columns"]}
    kind = head["rows"][0]["object"]["kind"]
    names = {"plural": head["resource"], "singular": kind.lower(), "kind": kind, "listKind": kind + "List"}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{head['resource']}.{head['group']}"},
            "spec": {"group": head["group"], "scope": "Namespaced" if namespaced else "Cluster", "versions": [version], "names": names}}


def recorded():
    """(resource, object) of all recordings, namespaces and definitions first, sources of defaults last."""
    heads = {path.stem: json.loads(path.read_text()) for path in sorted(DATA.glob("*.json"))}
    definitions = "customresourcedefinitions.apiextensions.k8s.io"
    yield from ((definitions, definition(head)) for head in heads.values() if head["columns"] is not None and head["rows"])
    order = lambda name: (name not in ("namespaces", definitions), "classes" in name or name == "limitranges", name)
    for resource in sorted(heads.keys() - ITS_OWN, key=order):
        objects = (row["object"] for row in heads[resource]["rows"])
        yield from ((resource, obj) for obj in objects if obj["metadata"].get("namespace") not in ("default", "kube-system"))


def columns_of(server, resource, version):
    """The columns of a custom resource's definition; None of a built-in kind."""
    code, crd = server.request("GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{resource}")
    if code != 200:
        return None
    return next(v for v in crd["spec"]["versions"] if v["name"] == version).get("additionalPrinterColumns", [])


def table(server, path):
    """(time in ns, the Table with whole objects). The answer is made within one second: the ages are known."""
    while True:
        time.sleep((1.15 - time.time() % 1) % 1)
        now = time.time_ns()
        answer = server.get(path + "?includeObject=Object", TABLE)
        if time.time_ns() // 10**9 == now // 10**9:
            return now, answer


def describe(resource, columns):
    """Replaces the resource's descriptions of columns, but for those of all kinds."""
    texts = dict(part.split("\n", 1) for part in DESCRIPTIONS.read_text().removeprefix("# ").removesuffix("\n# \n").split("\n# "))
    texts = {head: text for head, text in texts.items() if not head.startswith(resource + "\t")}
    common = {head[1:]: text for head, text in texts.items() if head.startswith("\t")}
    texts |= {f"{resource}\t{c['name']}": c["description"] for c in columns
              if c["description"] and c["description"] != common.get(c["name"])}
    DESCRIPTIONS.write_text("".join(f"# {head}\n{text}\n" for head, text in sorted(texts.items())) + "# \n")


def record(server, resource, path):
    version = path.split("/")[-2]
    name, _, group = resource.partition(".")
    now, answer = table(server, path)
    rows = answer.get("rows") or []
    for row in rows:
        row["object"]["metadata"].pop("managedFields", None)
        row.pop("conditions", None)
    columns = columns_of(server, resource, version)
    if columns is None:
        describe(name, answer["columnDefinitions"])
    head = {"group": group, "version": version, "resource": name, "now": now, "kind": answer["kind"], "columns": columns,
            "columnDefinitions": [{k: v for k, v in c.items() if k != "description"} for c in answer["columnDefinitions"]]}
    with open(DATA / f"{resource}.json", "w") as out:
        out.write(json.dumps(head)[:-1] + ', "rows": [\n')
        out.write(",\n".join(json.dumps(row, sort_keys=True) for row in rows) + "\n]}\n")
    return len(rows), len(rows) * len(answer["columnDefinitions"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", help="record this resource alone")
    parser.add_argument("--keep", action="store_true", help="make no objects")
    parser.add_argument("--no-record", action="store_true", help="make the objects, record nothing")
    args = parser.parse_args()
    server = Server(os.environ["KUBECONFIG"])
    paths = server.resources()
    failed = set()
    if not args.keep:
        for resource, obj in recorded():
            try:
                server.create(paths, resource, obj)
            except AssertionError as error:
                print(error, file=sys.stderr)
                failed.add(resource)
    if args.no_record:
        return bool(failed)
    paths = server.resources()
    kinds = total_rows = total_cells = 0
    DATA.mkdir(exist_ok=True)
    for resource, (path, _, _) in sorted(paths.items()):
        if args.only in (None, resource) and resource not in failed:
            rows, cells = record(server, resource, path)
            kinds, total_rows, total_cells = kinds + 1, total_rows + rows, total_cells + cells
            print(f"{resource}: {rows} objects")
    print(f"{kinds} kinds, {total_rows} objects, {total_cells} cells; not recorded, since objects were refused: {sorted(failed)}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
