# SPDX-License-Identifier: Apache-2.0
"""The Go module's own tests, if a Go new enough is installed. scripts/check-go.sh has those on client-go."""

import os
import re
import shutil
import subprocess

import pytest

from harness.process import BUILD, ROOT, run_command

GO = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
OLDEST = (1, 24)  # as in go/go.mod


def version():
    """The version of Go as (major, minor); (0, 0) without one."""
    text = subprocess.run([GO, "env", "GOVERSION"], capture_output=True, text=True).stdout if GO else ""
    found = re.match(r"go(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


@pytest.mark.skipif(version() < OLDEST, reason=f"no Go {OLDEST[0]}.{OLDEST[1]} or newer is installed")
def test_the_go_module(tmp_path):
    env = {
        "GOFLAGS": "-mod=readonly",
        "GOTOOLCHAIN": "local",
        "GOPROXY": "off",
        "CGO_ENABLED": "0",
        "GOMAXPROCS": "1",
        "KINF_BUILD": str(ROOT / BUILD),
        "HOME": os.environ.get("HOME", str(tmp_path)),  # has the cache of compiled packages
    }
    for command in ("vet", "test"):
        words = [GO, command] + (["-short", "-count=1"] if command == "test" else []) + ["./..."]
        result = run_command(words, env, timeout=300, cwd=ROOT / "go")
        assert result.status == 0, result
        assert "FAIL" not in result.stdout
