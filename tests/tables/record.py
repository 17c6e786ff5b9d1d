#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
Makes objects of each kind that an API server prints specially, in many states, and records the server's Table of each
kind in tests/tables/data/RESOURCE.json, with the objects. tests/unit/test_tables.c compares kinformer's cells with them.

    KUBECONFIG=FILE tests/tables/record.py [--only RESOURCE]

$KUBECONFIG is a throw-away API server with all APIs (--runtime-config=api/all=true, --feature-gates=AllAlpha=true,
AllBeta=true), and without kubelet and controllers, which would change the states.
"""

import argparse
import base64
import json
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from lab import TABLE, Server  # noqa: E402
from objects import objects  # noqa: E402

DATA = Path(__file__).resolve().parent / "data"


def make_csr():
    made = subprocess.run(["openssl", "req", "-new", "-newkey", "rsa:2048", "-nodes", "-keyout", "/dev/null", "-subj", "/CN=x"],
                          capture_output=True, check=True, timeout=60)
    return made.stdout


def create(server, paths, resource, obj, status, deleted):
    if resource not in paths:
        paths.update(server.resources())
    root, _, namespaced = paths[resource]
    if namespaced:
        head, _, plural = root.rpartition("/")
        root = f"{head}/namespaces/{obj['metadata']['namespace']}/{plural}"
    code, answer = server.request("POST", root, obj)
    for _ in range(40):  # a new definition is served after a moment
        if code != 404:
            break
        time.sleep(0.25)
        code, answer = server.request("POST", root, obj)
    if code == 409:
        return
    name = f"{root}/{obj['metadata']['name']}"
    assert code in (200, 201), f"{name}: {code} {answer.get('message')}"
    if resource.startswith("certificatesigningrequests"):
        conditions, certificate = status["conditions"], status["certificate"]
        current = server.get(name)
        current["status"] = {"conditions": [c for c in conditions if c["type"] != "Failed"]}
        code, answer = server.request("PUT", name + "/approval", current)
        assert code == 200, f"{name}/approval: {code} {answer.get('message')}"
        status = {"conditions": conditions}
        if certificate:
            status["certificate"] = base64.b64encode(make_certificate()).decode()
    if status is not None:
        code, answer = server.put_status(name, status)
        assert code == 200, f"{name}/status: {code} {answer.get('message')}"
    if deleted:
        code, answer = server.request("DELETE", name, {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})
        assert code in (200, 202), f"DELETE {name}: {code} {answer.get('message')}"


def make_certificate():
    made = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "/dev/null", "-subj", "/CN=x"],
                          capture_output=True, check=True, timeout=60)
    return made.stdout


def columns_of(server, resource, version):
    """The columns of a custom resource's definition; None of a built-in kind."""
    code, crd = server.request("GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{resource}")
    if code != 200:
        return None
    return next(v for v in crd["spec"]["versions"] if v["name"] == version).get("additionalPrinterColumns", [])


def table(server, path):
    """(time in ns, the Table with whole objects). The answer is made within one second, so that ages are known."""
    while True:
        time.sleep((1.15 - time.time() % 1) % 1)
        now = time.time_ns()
        answer = server.get(path + "?includeObject=Object", TABLE)
        if time.time_ns() // 10**9 == now // 10**9:
            return now, answer


def record(server, resource, path):
    version = path.split("/")[-2]
    name, _, group = resource.partition(".")
    now, answer = table(server, path)
    rows = answer.get("rows") or []
    for row in rows:
        row["object"]["metadata"].pop("managedFields", None)
        row.pop("conditions", None)
    head = {"group": group, "version": version, "resource": name, "now": now, "kind": answer["kind"],
            "columns": columns_of(server, resource, version),
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
    failed = 0
    if not args.keep:
        for wanted in objects(make_csr()):
            try:
                create(server, paths, *wanted)
            except AssertionError as error:
                print(error, file=sys.stderr)
                failed += 1
    if args.no_record:
        return failed > 0
    paths = server.resources()
    kinds = total_rows = total_cells = 0
    DATA.mkdir(exist_ok=True)
    for resource, (path, _, _) in sorted(paths.items()):
        if args.only in (None, resource):
            rows, cells = record(server, resource, path)
            kinds, total_rows, total_cells = kinds + 1, total_rows + rows, total_cells + cells
            print(f"{resource}: {rows} objects")
    print(f"{kinds} kinds, {total_rows} objects, {total_cells} cells; {failed} objects were refused")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
