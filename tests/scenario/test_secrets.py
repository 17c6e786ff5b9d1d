# SPDX-License-Identifier: Apache-2.0
"""Secrets stay in memory: no log (of any verbosity), file of the store or runtime directory, command line or status
contains one, after success and after failure."""

import json
import os
from pathlib import Path

import pytest

from harness import eventually
from harness.reverse_proxy import UNAUTHORIZED, ReverseProxy
from harness.proxy import ConnectProxy
from harness.store import whole

MARKER = "s3cr3t"
V1 = "client.authentication.k8s.io/v1"
QUICK = {"backoff": {"min": "50ms", "max": "100ms"}}


def contents(path):
    """The data of a file without its holes."""
    with open(path, "rb") as file:
        end = os.fstat(file.fileno()).st_size
        at = 0
        while at < end:
            try:
                at = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError:
                return  # the rest is a hole
            stop = os.lseek(file.fileno(), at, os.SEEK_HOLE)
            file.seek(at)
            yield file.read(stop - at)
            at = stop


def command_lines():
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield str(path), path.read_bytes()
        except OSError:
            pass  # the process has ended


def files_of(directory):
    """(path, data) for the data of all files of DIRECTORY. Begins again when a file was renamed meanwhile."""
    while True:
        files = [path for path in directory.rglob("*") if path.is_file()]
        assert files, directory
        try:
            return [(str(path), data) for path in files for data in contents(path)]
        except FileNotFoundError:
            continue


def found(store, words):
    """The places with any of WORDS."""
    secrets = [word.encode() for word in words]
    places = [(process.name, (process.log + process.out).encode()) for process in store.processes]
    for args in (["status", "-o", "json"], ["status"], ["dump", "meta"]):
        result = store.kinf(*args)
        assert result.stdout, result  # its status is 1 while no feed is live
        places.append((" ".join(args), (result.stdout + result.stderr).encode()))
    places += command_lines()
    for directory in (store.path, store.runtime):
        places += files_of(directory)
    return [name for name, data in places if any(secret in data for secret in secrets)]


@pytest.fixture
def world(workspace, simulator, authority):
    """world(user, cluster): (store, door, daemons). The server has refused requests, then answered them."""

    def make(user, cluster=None, words=(), good=lambda request: True):
        refusing = [True]
        door = workspace.add(ReverseProxy(
            simulator, authority("one").issue("server", "IP:127.0.0.1"), authority("clients").ca,
            lambda request: (401, UNAUTHORIZED) if refusing or not good(request) else None))
        store = workspace.store()
        store.connect(door.url, ca=authority("one").ca, user=user, cluster=cluster)
        simulator.create("pods", 5)
        daemons = store.configure(whole("pods"), **QUICK).run("-v", "-v")
        daemons.wait_log("cluster_unreachable .*HTTP 401")
        assert found(store, words) == []
        refusing.clear()
        store.wait_equal(simulator, "pods")
        return store, door, daemons

    return make


def test_tokens_keys_and_the_password_of_a_proxy_are_never_written(workspace, simulator, authority, world):
    certificate, key = authority("clients").issue("me")
    proxy = workspace.add(ConnectProxy(None, ("me", f"{MARKER}-proxy")))
    words = [MARKER, key.read_text().splitlines()[1]]

    def good(request):
        return request["headers"]["Authorization"] == f"Bearer {MARKER}-token" and request["client"] == "me"

    store, _, _ = world({"token": f"{MARKER}-token", "client-certificate": str(certificate), "client-key": str(key)},
                        {"proxy-url": proxy.url()}, words, good)
    assert proxy.asked and found(store, words) == []


def test_basic_passwords_are_never_written(world):
    words = [MARKER, "bWU6czNjcjN0"]  # me:s3cr3t in base64
    store, door, _ = world({"username": "me", "password": MARKER}, words=words)
    assert door.requests[0]["headers"]["Authorization"] == f"Basic {words[1]}"
    assert found(store, words) == []
    there = " ".join(found(store, ["containers", "pods", "kinf-r"]))
    assert all(place in there for place in ("data.mdb", "kinf-run", "status", "/proc/")), there


def test_secrets_of_an_exec_plugin_are_never_written(workspace, simulator, world, tmp_path):
    """The log repeats the plugin's standard error, but neither its output (broken in the end) nor its environment."""
    answer = {"apiVersion": V1, "kind": "ExecCredential", "status": {"token": f"{MARKER}-exec"}}
    plugin = tmp_path / "plugin"
    plugin.write_text(f"""#!/bin/sh
echo "plugin: hello" >&2
tr '\\0' ' ' </proc/$PPID/cmdline >>{tmp_path}/parent
test "$OWN" = {MARKER[::-1]}-own || exit 1
[ -e {tmp_path}/broken ] && echo '{{"status":{{"token":"{MARKER}-broken' && exit 0
echo '{json.dumps(answer)}'
""")
    plugin.chmod(0o700)
    words = [f"{MARKER}-", f"{MARKER[::-1]}-own"]
    store, door, daemons = world({"exec": {
        "apiVersion": V1, "command": str(plugin), "interactiveMode": "Never",
        "env": [{"name": "OWN", "value": f"{MARKER[::-1]}-own"}]}}, words=words)
    assert door.requests[-1]["headers"]["Authorization"] == f"Bearer {MARKER}-exec"
    assert "plugin: hello" in daemons.log
    (tmp_path / "broken").touch()
    door.refuse = lambda _: (401, UNAUTHORIZED)
    door.cut()
    daemons.wait_log("its output is not JSON")
    eventually(lambda: "not JSON" in store.feed_status("pods")["lastError"])
    assert found(store, words) == []
    assert MARKER not in (tmp_path / "parent").read_text()
