# SPDX-License-Identifier: Apache-2.0
"""A pod reading the store of its node (packaging/kubernetes/reader): another user in namespaces of
its own, the store mounted read-only, the runtime directory writable, and the store's group as a
supplementary one."""

import os
import signal
from pathlib import Path

import pytest

from harness import eventually
from harness.namespaces import unshare
from harness.process import program, run_command
from harness.store import whole

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="makes namespaces and becomes another user")

DAEMONS, READER = 10001, 20001
MOUNTS = """set -e
mount --bind "$1" "$1" && mount -o remount,ro,bind "$1"
mount -t proc proc /proc
shift
exec "$@"
"""


def as_user(uid, *groups):
    given = f"--groups={','.join(map(str, groups))}" if groups else "--clear-groups"
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", given, "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]


def contained(store, *argv, groups=(DAEMONS,)):
    """ARGV as a container of a pod: mount, PID, IPC, UTS and network namespaces, and a user without rights."""
    return [*unshare("--mount", "--pid", "--fork", "--kill-child", "--ipc", "--uts", "--net"), "sh", "-c", MOUNTS, "sh",
            store.path, *as_user(READER, *groups), *argv]


@pytest.fixture(scope="module")
def node(shared):
    """A node: directories of the daemons' user, and `kinf run` as this user. `group` is numeric, as
    ids in a pod are."""
    simulator = shared.simulator()
    simulator.create("pods", 20)
    store = shared.store(simulator=simulator)
    os.chmod(store.directory, 0o755)
    os.chmod(store.kubeconfig, 0o644)
    place = store.directory / "node"
    place.mkdir()
    store.path, store.runtime = place / "store", place / "run"
    store.runtime.mkdir()
    os.chmod(place, 0o755)
    for path in (place, store.runtime):
        os.chown(path, DAEMONS, DAEMONS)
    store.configure(whole("pods"), group=str(DAEMONS))
    os.chmod(store.config, 0o644)
    store.process("kinf-run", [*as_user(DAEMONS), program("kinf"), "run"]).start()
    eventually(lambda: store.kinf("status", "--check").status == 0, what="live")
    store.cluster = simulator
    return store


def test_a_pod_reads_the_store_of_its_node(node):
    result = run_command(contained(node, program("kinf"), "get", "pods", "-o", "count"), node.env)
    assert (result.status, result.stdout, result.stderr) == (0, "20\n", ""), result


def test_a_pod_follows_and_holds_its_own_pin(node):
    follower = node.process("follower", contained(node, program("kinf"), "watch", "pods", "-o", "json")).start()
    eventually(lambda: any(line["type"] == "SYNC" for line in follower.lines), what="SYNC")
    node.cluster.touch("pods", 1)
    eventually(lambda: follower.lines[-1]["type"] == "MODIFIED", what="the change")
    # unshare ignores signals; its child, process 1 of the namespace, is the follower.
    child = int(Path(f"/proc/{follower.pid}/task/{follower.pid}/children").read_text())
    os.kill(child, signal.SIGTERM)
    follower.wait()
    assert not Path(f"/proc/{child}").exists()


def test_a_pod_without_the_group_is_refused(node):
    result = run_command(contained(node, program("kinf"), "get", "pods", groups=()), node.env)
    assert result.status == 1 and "group" in result.stderr and not result.stdout, result


def test_a_pod_writes_nothing_into_the_store(node):
    """Neither a cursor, nor a command to the daemons."""
    result = run_command(contained(node, program("kinf"), "watch", "pods", "--cursor", "mine", "--count", "1"), node.env)
    assert result.status == 1 and "read-only" in result.stderr.lower(), result
    for command in (["relist", "pods"], ["compact"], ["remove-store", "--yes"]):
        result = run_command(contained(node, program("kinf"), *command), node.env)
        assert result.status == 1, result
    assert node.kinf("get", "pods", "-o", "count", check=True).stdout == "20\n"
