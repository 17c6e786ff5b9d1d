# SPDX-License-Identifier: Apache-2.0
"""kinf-serve with the sockets of a service manager (sd_listen_fds(3)): alone, and below `kinf run`."""

import os
import signal
import socket
import sys

import pytest

from harness import PATIENCE, eventually
from harness.process import program

REQUEST = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
# Listens as systemd does, and becomes the program: the sockets are the descriptors from 3 on.
LAUNCHER = """
import os, socket, sys
paths, command = sys.argv[1].split(":"), sys.argv[2:]
for fd, path in enumerate(paths, 3):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    os.dup2(listener.fileno(), 20 + fd, inheritable=False)
for fd in range(3, 3 + len(paths)):
    os.dup2(20 + fd, fd, inheritable=True)
os.environ.update(LISTEN_FDS=str(len(paths)), LISTEN_PID=str(os.getpid()))
os.execv(command[0], command)
"""


@pytest.fixture
def activated(workspace):
    simulator = workspace.simulator("--pods", "5")
    store = workspace.store(simulator=simulator)
    store.configure("pods", serve={"auth": "open"})
    store.paths = [workspace.directory / name for name in ("one.sock", "two.sock")]

    def start(*command):
        paths = ":".join(map(str, store.paths))
        return store.process("activated", [sys.executable, "-c", LAUNCHER, paths, *command]).start()

    store.activate = start
    return store


def ask(path):
    """The answer; waits in the socket's queue while nobody accepts."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(20 * PATIENCE)

        def connected():
            try:
                connection.connect(str(path))
            except (ConnectionRefusedError, FileNotFoundError):
                return False
            return True

        eventually(connected)  # listen(2) comes after bind(2)
        connection.sendall(REQUEST)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
        return answer


def test_sockets_of_a_service_manager_are_taken(activated):
    activated.daemons()
    activated.wait_synced("pods")
    activated.activate(program("kinf-serve"))
    for path in activated.paths:
        assert ask(path).endswith(b"ok")
    lines = (activated.path / "serve" / "addresses").read_text().splitlines()
    assert [line.split(" ")[2] for line in lines if line.startswith("api ")] == list(map(str, activated.paths))


@pytest.mark.parametrize("given", ["sockets of the service manager", "--serve"])
def test_a_kinf_serve_of_its_own_and_one_of_kinf_run_exclude_each_other(activated, given):
    activated.configure("pods", serve={"auth": "open", "separate": True})
    command = [program("kinf"), "run", "--config", activated.config, "--runtime-dir", activated.runtime]
    run = activated.process("kinf-run", [*command, given]).start() if given == "--serve" else activated.activate(*command)
    assert run.wait() == 78
    assert "serve.separate" in run.log and f"was given {given} for it" in run.log


def sockets_of(pid):
    """The inodes of a process's sockets, by descriptor."""
    found = {}
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{fd}")
        except FileNotFoundError:
            continue  # closed meanwhile
        if target.startswith("socket:"):
            found[int(fd)] = target
    return found


def test_kinf_run_passes_its_sockets_to_kinf_serve_and_a_killed_one_loses_no_connection(activated):
    run = activated.activate(program("kinf"), "run", "--config", activated.config, "--runtime-dir", activated.runtime, "--serve")
    for path in activated.paths:
        assert ask(path).endswith(b"ok")
    passed = {sockets_of(run.pid)[fd] for fd in (3, 4)}
    pid = lambda name: int((activated.path / name).read_text().split()[0])
    first = pid("serve/serve.lock")
    assert passed <= set(sockets_of(first).values())
    activated.wait_live("pods")

    def others():
        """The processes of both daemons, when they are known."""
        processes = activated.kinf("status", "-o", "json", check=True).json["processes"]
        found = [p["pid"] for p in processes if p["name"] != "kinf-serve" and p["pid"]]
        return len(found) == 2 and found

    for other in eventually(others):
        assert not passed & set(sockets_of(other).values()), "only kinf-serve needs them"
    os.kill(first, signal.SIGSTOP)
    os.kill(first, signal.SIGKILL)
    assert ask(activated.paths[0]).endswith(b"ok"), "by the next one"
    assert pid("serve/serve.lock") != first
    run.kill()

    def gone():
        try:
            os.kill(pid("serve/serve.lock"), 0)
        except ProcessLookupError:
            return True
        return False

    eventually(gone)
