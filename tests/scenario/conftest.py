# SPDX-License-Identifier: Apache-2.0
"""
Fixtures of the scenarios: real binaries against the simulated API server.

$KINF_BUILD is the build directory (default build/asan). Each test has its own directory. When the test fails, pytest
keeps the directory and prints its name and the last lines of every process. A sanitizer report of any process fails
the test. Tests never sleep for a fixed time: they wait with eventually().
"""

import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from harness.installed import Installed
from harness.simulator import Simulator
from harness.store import Store
from harness.tls import Authority

# A shell starts background jobs with SIGINT ignored, and every process below inherits it.
signal.signal(signal.SIGINT, signal.default_int_handler)


class Workspace:
    """A test's directory and everything started in it."""

    def __init__(self):
        self.directory = Path(tempfile.mkdtemp(prefix="kinf-scenario-"))
        self.started = []
        self.keep = False

    def simulator(self, *options, **named):
        number = sum(isinstance(thing, Simulator) for thing in self.started)
        named.setdefault("name", f"kinf-simulator-{number}" if number else "kinf-simulator")
        simulator = Simulator(self.directory, *options, **named)
        self.started.append(simulator)
        return simulator.start()

    def store(self, name="", simulator=None, **kubeconfig):
        directory = self.directory / name if name else self.directory
        directory.mkdir(exist_ok=True)
        store = Store(directory, simulator, **kubeconfig)
        self.started.append(store)
        return store

    @property
    def processes(self):
        for thing in self.started:
            yield from getattr(thing, "processes", [thing.process] if hasattr(thing, "process") else [])

    def add(self, thing):
        """Registers a running THING; close() stops it."""
        self.started.append(thing)
        return thing

    def report(self):
        tails = "\n".join(process.tail() for process in self.processes)
        return f"kept: {self.directory}\n{tails}"

    def close(self):
        """Stops everything, the last started first. Fails if a process reports a fault at its end."""
        problems = []
        for thing in reversed(self.started):
            try:
                thing.stop()
            except AssertionError as problem:
                problems.append(str(problem))
        for process in self.processes:
            if process.running:
                process.kill()
        assert not problems, "\n".join(problems)


# These files take a minute or more each and begin first: `make test` gives whole files to its
# processes, and a late one would run alone at the end.
LONG = ["test_go", "test_serve_watch", "test_restart", "test_shared_blocks", "test_serve_review", "test_what_is_missing", "test_watch",
        "test_serve_hostile", "test_serve_product", "test_simulator", "test_serve_swarm", "test_serve_transport"]


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: LONG.index(item.path.stem) if item.path.stem in LONG else len(LONG))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    used = getattr(item, "funcargs", {})
    for workspace in filter(None, (used.get("workspace"), used.get("shared"))):
        if report.failed:
            workspace.keep = True
            report.sections.append(("processes", workspace.report()))


def lifetime():
    """Yields a workspace; closes it at the end of the fixture, and keeps its directory if the test has failed."""
    workspace = Workspace()
    yield workspace
    try:
        workspace.close()
    except AssertionError:
        workspace.keep = True
        raise
    if not workspace.keep:
        shutil.rmtree(workspace.directory)


@pytest.fixture
def workspace():
    yield from lifetime()


@pytest.fixture(scope="module")
def shared():
    """A workspace shared by all tests of a file; for read-only tests."""
    yield from lifetime()


@pytest.fixture
def simulator(workspace):
    """A simulated cluster with namespaces and nothing else."""
    return workspace.simulator()


@pytest.fixture
def store(workspace, simulator):
    """A store with a kubeconfig for `simulator`; configure() it, then start daemons."""
    return workspace.store(simulator=simulator)


@pytest.fixture
def kinf(store):
    """Runs the kinf command on `store`: kinf("get", "pods", "-o", "json")."""
    return store.kinf


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    """authority("name"): the CA NAME, made at the first call (harness/tls.py)."""
    directory, made = tmp_path_factory.mktemp("authorities"), {}
    return lambda name: made.get(name) or made.setdefault(name, Authority(directory, name))


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """(certificate, key): files of a self-signed certificate for 127.0.0.1."""
    directory = tmp_path_factory.mktemp("tls")
    paths = directory / "server.crt", directory / "server.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
         "-days", "2", "-subj", "/CN=simulator", "-addext", "subjectAltName=IP:127.0.0.1",
         "-out", paths[0], "-keyout", paths[1]],
        check=True, capture_output=True,
    )
    return paths


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A tree made by `make install`."""
    directory = tmp_path_factory.mktemp("installed")
    yield Installed(directory)
    shutil.rmtree(directory)  # some 40 MB
