# SPDX-License-Identifier: Apache-2.0
"""The wheel of the kinf module with the library in it, and the table-making example."""

import importlib.util
import sys
import zipfile

import pytest

from harness.objects import pod
from harness.process import BUILD, ROOT, run_command
from harness.python import environment
from harness.store import whole

TABLE = ROOT / "tests/examples/pods_table.py"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    directory = tmp_path_factory.mktemp("wheel")
    made = run_command(["make", "-C", ROOT, "-s", "--no-print-directory", "-o", "all", "wheel", f"B={BUILD}"], timeout=120)
    assert made.status == 0, made
    path = ROOT / made.stdout.strip()
    return path.rename(directory / path.name)


@pytest.fixture(scope="module")
def site(wheel, tmp_path_factory):
    target = tmp_path_factory.mktemp("site")
    run = run_command([sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-compile",
                       "--disable-pip-version-check", "--target", target, wheel], timeout=60)
    assert run.status == 0, run
    return target


@pytest.fixture(scope="module")
def env(shared, site):
    """Of an interpreter on a store with three pods."""
    simulator = shared.simulator()
    pods = [pod("a", "web"), pod("b", "web", node="n2"), pod("c", "shop")]
    pods[0]["status"]["containerStatuses"] = [{"restartCount": 2}, {"restartCount": 3}]
    del pods[2]["spec"]["nodeName"]
    simulator.put("pods", pods)
    store = shared.store(simulator=simulator)
    store.start(simulator, whole("pods"))
    return {**store.env, **environment(site), "KINF_LIBRARY": "", "PYTHONPATH": str(site)}


def test_the_wheel_holds_module_types_and_library(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"kinf/__init__.py", "kinf/py.typed", "kinf/libkinf.so.0"} <= names
    assert wheel.name.startswith("kinf-") and "-py3-none-linux_" in wheel.name


def test_the_module_of_the_wheel_uses_its_own_library(env, site):
    script = "import kinf; print(kinf._library.lib._name, kinf.Store().feed('pods').get('web/a')['status']['phase'])"
    result = run_command([sys.executable, "-c", script], env)
    assert result.stdout == f"{site / 'kinf/libkinf.so.0'} Running\n", result


def test_the_table_of_the_example(env):
    expected = "NODE PODS RESTARTS - 1 0 n1 1 5 n2 1 0"
    plain = run_command([sys.executable, TABLE, "--plain"], env)
    assert plain.status == 0 and " ".join(plain.stdout.split()) == expected, plain
    # By pandas if it is there; without it the result is the same.
    either = run_command([sys.executable, TABLE], env, timeout=60)
    assert either.stdout == plain.stdout, (importlib.util.find_spec("pandas"), either)


def test_the_rows_of_the_example(env):
    result = run_command([sys.executable, TABLE, "--csv"], env)
    assert result.stdout.splitlines() == [
        "namespace,name,node,phase,containers,restarts,started",
        "shop,c,,Running,1,0,",
        "web,a,n1,Running,1,5,",
        "web,b,n2,Running,1,0,",
    ], result


def test_without_library_in_the_wheel_the_loader_looks_for_it(env, site, tmp_path):
    """An older build with a library leaves none to a wheel without one."""
    script = ("import sys; sys.path.insert(0, sys.argv[1]); import kinf._library as l; import os; "
              "os.remove(os.path.join(os.path.dirname(l.__file__), l.SONAME)); print(l._find())")
    copy = tmp_path / "site"
    run_command(["cp", "-r", site, copy])
    result = run_command([sys.executable, "-c", script, copy], {**env, "PYTHONPATH": ""})
    assert result.stdout == "libkinf.so.0\n", result
