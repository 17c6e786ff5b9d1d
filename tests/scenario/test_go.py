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


old = pytest.mark.skipif(version() < OLDEST, reason=f"no Go {OLDEST[0]}.{OLDEST[1]} or newer is installed")
LIBKINF = ROOT / "build/release/libkinf.so"  # Go can't load one with AddressSanitizer


def go(home, *words, **env):
    """Runs go in the module's directory, without the network."""
    env = {
        "GOFLAGS": "-mod=readonly",
        "GOTOOLCHAIN": "local",
        "GOPROXY": "off",
        "CGO_ENABLED": "0",
        "GOMAXPROCS": "1",
        "KINF_BUILD": str(ROOT / BUILD),
        "HOME": os.environ.get("HOME", str(home)),  # has the cache of compiled packages
        **env,
    }
    result = run_command([GO, *words], env, timeout=300, cwd=ROOT / "go")
    assert result.status == 0, result
    assert "FAIL" not in result.stdout


@old
def test_the_go_module(tmp_path):
    go(tmp_path, "vet", "./...")
    go(tmp_path, "test", "-short", "-count=1", "./...")


@old
@pytest.mark.skipif(not shutil.which("gcc"), reason="no gcc: the Go module is not compared with libkinf")
@pytest.mark.skipif(not LIBKINF.exists(), reason="no build/release/libkinf.so: the Go module is not compared with it")
def test_the_go_module_answers_as_libkinf(tmp_path):
    words = ["-tags", "libkinf"]
    go(tmp_path, "vet", *words, ".", "./internal/libkinf", CGO_ENABLED="1")
    go(tmp_path, "test", *words, "-short", "-count=1", "-parallel=4", "-run=Libkinf", ".", CGO_ENABLED="1")
