# SPDX-License-Identifier: Apache-2.0
"""The Go modules' own tests, if a Go new enough is installed."""

import os
import re
import shutil
import subprocess

import pytest

from harness.process import BUILD, ROOT, run_command

GO = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
OLDEST = (1, 24)  # as in go/go.mod
FOR_CLIENT_GO = (1, 26)  # as in go/informers/go.mod


def version():
    """The version of Go as (major, minor); (0, 0) without one."""
    text = subprocess.run([GO, "env", "GOVERSION"], capture_output=True, text=True).stdout if GO else ""
    found = re.match(r"go(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def environment(tmp_path, **more):
    return {
        "GOFLAGS": "-mod=readonly",
        "GOTOOLCHAIN": "local",
        "KINF_BUILD": str(ROOT / BUILD),
        "HOME": os.environ.get("HOME", str(tmp_path)),  # has the cache of compiled packages
        **more,
    }


@pytest.mark.parametrize("module", ["informers", "controllerruntime"])
@pytest.mark.skipif(version() < FOR_CLIENT_GO, reason="no Go is installed that client-go 0.37 can be built with")
def test_the_modules_on_client_go(module, tmp_path):
    directory = ROOT / "go" / module
    if run_command([GO, "mod", "download"], environment(tmp_path), timeout=300, cwd=directory).status != 0:
        pytest.skip(f"the dependencies of go/{module} can't be downloaded from the module proxy")
    words = [GO, "test", "-vet=off", "-short", "-count=1", "./..."]
    result = run_command(words, environment(tmp_path, GOPROXY="off"), timeout=900, cwd=directory)
    assert result.status == 0, result
    assert "FAIL" not in result.stdout


@pytest.mark.skipif(version() < OLDEST, reason=f"no Go {OLDEST[0]}.{OLDEST[1]} or newer is installed")
def test_the_go_module(tmp_path):
    env = environment(tmp_path, GOPROXY="off", CGO_ENABLED="0", GOMAXPROCS="1")
    for command in ("vet", "test"):
        words = [GO, command] + (["-short", "-count=1"] if command == "test" else []) + ["./..."]
        result = run_command(words, env, timeout=300, cwd=ROOT / "go")
        assert result.status == 0, result
        assert "FAIL" not in result.stdout
