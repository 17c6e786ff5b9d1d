#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
Gives docs/manifests/ to a real API server as a server-side dry run: it validates every field, and stores nothing but their
namespace, which is removed again. usage: KUBECONFIG=FILE tests/real/check_manifests.py
"""

import os
import sys
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parent))
from cluster import Cluster  # noqa: E402

MANIFESTS = Path(__file__).resolve().parents[2] / "docs" / "manifests"


def main():
    cluster, n = Cluster(os.environ["KUBECONFIG"]), 0
    made = []
    try:
        for path in sorted(MANIFESTS.glob("*.yaml")):
            for found in filter(None, yaml.safe_load_all(path.read_text())):
                if found["kind"] == "Namespace":  # a dry run does not make it for the others
                    cluster.kubectl("apply", "--validate=strict", "-f", "-", body=yaml.safe_dump(found))
                    made.append(found["metadata"]["name"])
                said = cluster.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", body=yaml.safe_dump(found))
                assert "server dry run" in said, said
                n += 1
    finally:
        for name in made:
            cluster.kubectl("delete", "namespace", name, "--wait=false", check=False)
    print(f"{n} objects pass the server-side dry run")


if __name__ == "__main__":
    main()
