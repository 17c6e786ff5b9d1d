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


# The tests beside libkinf, and all others with them: with cgo on and off Go compiles each half of its
# library a second time, which takes longer than the tests.
HAS_LIBKINF = bool(shutil.which("gcc")) and LIBKINF.exists()


def go(home, *words):
    """Runs go in the module's directory, without the network. Returns its output."""
    env = {
        "GOFLAGS": "-mod=readonly",
        "GOTOOLCHAIN": "local",
        "GOPROXY": "off",
        "CGO_ENABLED": str(int(HAS_LIBKINF)),
        "GOMAXPROCS": "1",
        "KINF_BUILD": str(ROOT / BUILD),
        "HOME": os.environ.get("HOME", str(home)),  # has the cache of compiled packages
    }
    result = run_command([GO, *words], env, timeout=600, cwd=ROOT / "go")
    assert result.status == 0, result
    assert "FAIL" not in result.stdout
    return result.stdout


@old
def test_the_go_module(tmp_path):
    assert go(tmp_path, "list", "-f", "{{range .CgoFiles}}{{$.ImportPath}} {{.}}{{end}}", "./...").split() == []
    tags = ["-tags", "libkinf"] if HAS_LIBKINF else []
    go(tmp_path, "vet", *tags, "./...")
    go(tmp_path, "test", "-vet=off", *tags, "-short", "-count=1", "-parallel=4", "./...")
    if not HAS_LIBKINF:
        pytest.skip("no gcc or no build/release/libkinf.so: the Go module is not compared with libkinf")
