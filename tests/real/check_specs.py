#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Kubernetes' own specs of its API machinery (test/e2e/apimachinery) through a kinf-serve filled
from a real API server, $KUBECONFIG, with `forward: on`. They run at the API server first: a spec
does not count unless it passes there.

Their program is built with Go from the module proxy, once, into the directory $KINF_SPECS
(build/tools/specs). This takes 10 minutes and 4 GiB of Go's caches. Without Go or the proxy the
specs are skipped.

usage: KUBECONFIG=FILE tests/real/check_specs.py [WORD of a spec's name...]      It creates and removes namespaces.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scenario"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
from check_clients import Through  # noqa: E402
from check_serve import prepare  # noqa: E402
from cluster import Cluster  # noqa: E402
from conftest import Workspace  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
VERSION = "v1.37.2"
MINUTES = 20  # of one run of all specs; it takes 3 to 4
SPECS = ["Watchers", "API Streaming (aka. WatchList)", "Servers with support for API chunking", "Servers with support for Table transformation",
         "[sig-api-machinery] Discovery", "AggregatedDiscovery", "CustomResourceDefinition resources", "CustomResourceDefinition Watch",
         "CustomResourceFieldSelectors", "Generated clientset", "OpenAPIV3", "client-go should negotiate", "ServerSideApply", "FieldValidation",
         "server version"]
LEFT_OUT = {
    "compacted away": "waits five minutes for etcd",
    "deletionGracePeriodSeconds of the pod": "needs a kubelet",
    "MUST list and watch custom resources matching the field selector": "needs the pod of a webhook",
    "Aggregated APIServer": "needs the pod of an API server",
}
# {a spec passed at the API server only: reason}
APART = {}


def build():
    """The program. Returns its path, or why there is none."""
    directory = Path(os.environ.get("KINF_SPECS") or ROOT / "build" / "tools" / "specs")
    program = directory / f"specs-{VERSION}.test"
    if program.exists():
        return program, None
    if not shutil.which("go"):
        return None, f"there is no Go, which builds Kubernetes' specs; {program} is taken if it is there ($KINF_SPECS)"
    with tempfile.TemporaryDirectory() as scratch:
        go = lambda *args: subprocess.run(["nice", "go", *args], cwd=scratch, capture_output=True, text=True,
                                          env={**os.environ, "GOFLAGS": "-p=1", "GOWORK": "off"})
        found = go("mod", "download", "-json", f"k8s.io/kubernetes@{VERSION}")
        if found.returncode:
            return None, f"Go's module proxy does not give k8s.io/kubernetes {VERSION}: {(found.stderr or found.stdout).strip()[-200:]}"
        # Its own modules are directories there, and modules of their own in the proxy.
        staged = sorted(set(re.findall(r"(k8s\.io/[a-z0-9-]+) => ./staging", Path(json.loads(found.stdout)["GoMod"]).read_text())))
        replaced = "".join(f"\t{name} => {name} v0{VERSION[2:]}\n" for name in staged)
        Path(scratch, "go.mod").write_text(f"module specs\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes {VERSION}\n\nreplace (\n{replaced})\n")
        shutil.copy(ROOT / "tests" / "real" / "specs" / "specs_test.go", scratch)
        print("building Kubernetes' specs, which takes 10 minutes ...", flush=True)
        for args in (("mod", "tidy"), ("test", "-c", "-trimpath", "-ldflags", "-s -w", "-o", "specs.test", ".")):
            made = go(*args)
            if made.returncode:
                return None, f"go {args[0]} failed: {made.stderr.strip()[-300:]}"
        directory.mkdir(parents=True, exist_ok=True)
        shutil.move(Path(scratch, "specs.test"), program)
    return program, None


def run(program, kubeconfig, directory, words):
    """{spec: (state, seconds, failed step)}"""
    report = directory / "report.json"
    either = lambda texts: "|".join(re.escape(text) for text in texts)
    done = subprocess.run(
        [program, f"-kubeconfig={kubeconfig}", "-provider=skeleton", "-e2e-verify-service-account=false", f"-ginkgo.focus={either(words or SPECS)}",
         f"-ginkgo.skip={either(LEFT_OUT)}", "-ginkgo.seed=1", f"-ginkgo.timeout={MINUTES}m", f"-ginkgo.json-report={report}", f"-test.timeout={MINUTES + 1}m"],
        cwd=directory, capture_output=True, text=True, timeout=(MINUTES + 2) * 60)
    if not report.exists():
        raise RuntimeError(f"the specs have not run: {(done.stdout + done.stderr)[-2000:]}")
    found = {}
    for suite in json.loads(report.read_text()):
        for spec in suite["SpecReports"] or []:
            if spec["LeafNodeType"] == "It" and spec["State"] != "skipped":
                name = " ".join([*spec["ContainerHierarchyTexts"], spec["LeafNodeText"]])
                found[name] = spec["State"], spec["RunTime"] / 1e9, (spec.get("Failure") or {}).get("Message", "")
    return found


def main():
    program, why_not = build()
    if why_not:
        print(f"skipped: {why_not}")
        return 0
    kubeconfig = os.environ["KUBECONFIG"]
    workspace = Workspace()
    try:
        prepare(Cluster(kubeconfig))
        theirs = run(program, Path(kubeconfig).resolve(), workspace.directory, sys.argv[1:])
        through = Through(workspace, kubeconfig, forward="on")
        ours = run(program, through.kubeconfig, workspace.directory, sys.argv[1:])
    finally:
        workspace.close()
    counted = [name for name, (state, _, _) in theirs.items() if state == "passed"]
    failed = [name for name in counted if ours.get(name, ("missing",))[0] != "passed"]
    for name in failed:
        state, seconds, message = ours.get(name, ("missing", 0, ""))
        print(f"{name}: {state} after {seconds:.1f} s: {message[:500]}" + (f" (known: {APART[name]})" if name in APART else ""))
    for name in sorted(theirs.keys() - set(counted)):
        print(f"not counted, as it does not pass at the API server: {name}: {theirs[name][2][:100]}")
    print(f"{len(counted) - len(failed)} of {len(counted)} specs of Kubernetes {VERSION} pass")
    return 0 if counted and set(failed) <= set(APART) else 1


if __name__ == "__main__":
    sys.exit(main())
