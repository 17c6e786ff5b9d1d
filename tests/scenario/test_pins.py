# SPDX-License-Identifier: Apache-2.0
"""Readers in containers, and their limits: mounts, PID namespaces, the files in pins/."""

import glob
import os
import signal

from harness import eventually
from harness.namespaces import unshare
from harness.process import program, run_command

# As in a container: a mount namespace and a PID namespace with the command as pid 1. Root needs no user namespace.
CONTAINER = ["--mount", "--pid", "--fork", "--kill-child"] + ([] if os.geteuid() == 0 else ["--map-root-user"])
READ_ONLY = 'for d in $1; do mount --bind "$d" "$d" && mount -o remount,ro,bind "$d" || exit 99; done; shift; exec "$@"'


def contained(store, read_only, *args):
    """The command line of `kinf ARGS` in a container with the directories READ_ONLY mounted so."""
    return [*unshare(*CONTAINER), "sh", "-c", READ_ONLY, "sh", " ".join(str(path) for path in read_only), program("kinf"), *args]


def filled(simulator, store):
    simulator.create("pods", 10)
    store.configure({"resource": "pods", "drop": []})
    daemons = store.daemons()
    store.wait_equal(simulator, "pods")
    return daemons


def pin_files(store):
    return [path for path in store.runtime.glob("kinf-*/pins/*")]


def snapshots(store):
    """{program name: snapshots} of all readers but the daemons and the asking command."""
    readers = store.kinf("status", "-o", "json", check=True).json["readers"]
    return {r["name"]: r["snapshots"] for r in readers if not r["name"].startswith("kinf-")}


def test_a_store_that_is_mounted_read_only_is_read_while_its_daemons_run(simulator, store):
    filled(simulator, store)
    result = run_command(contained(store, [store.path], "get", "pods", "-o", "name"), store.env, 60)
    assert result.status == 0, result
    assert len(result.stdout.split()) == 10
    assert not result.stderr, result


def test_without_a_writable_directory_the_error_says_how_to_mount(simulator, store):
    daemons = filled(simulator, store)
    command = contained(store, [store.path, store.runtime], "get", "pods", "-o", "name")
    result = run_command(command, store.env, 60)
    assert result.status != 0
    assert "mount that directory writable" in result.stderr and str(store.runtime) in result.stderr, result
    for daemon in reversed(daemons):
        daemon.stop()
    result = run_command(command, store.env, 60)
    assert result.status == 0, f"nobody writes now: {result}"
    assert len(result.stdout.split()) == 10


def test_followers_that_are_pid_1_of_their_namespaces_run_at_once(simulator, store):
    filled(simulator, store)
    followers = [store.process(f"watch-{i}", contained(store, [store.path], "watch", "pods", "-o", "json")).start()
                 for i in range(2)]
    for follower in followers:
        eventually(lambda: len(follower.lines) >= 10, what="the initial state")
    simulator.create("pods", 5)
    for follower in followers:
        eventually(lambda: len(follower.lines) >= 15, what="the new pods")
    assert snapshots(store).keys() == {"kinf"}
    for follower in followers:
        follower.kill()


def holders(path):
    """The processes with PATH open, in any namespace: as fuser(1) finds them."""
    found = set()
    for link in glob.iglob("/proc/[0-9]*/fd/*"):  # Path.glob fails if a process ends meanwhile
        try:
            if os.readlink(link) == path:
                found.add(int(link.split("/")[2]))
        except OSError:
            pass  # it has ended
    return found


def test_a_frozen_reader_of_another_namespace_is_found_by_its_pin_file_and_ended(simulator, store):
    daemons = filled(simulator, store)
    container = store.process("reader", contained(store, [store.path], "get")[:-2] + [program("programs/reader"), "pods"]).start()
    eventually(lambda: container.lines, what="a snapshot")
    (shown,) = [r for r in store.kinf("status", "-o", "json", check=True).json["readers"] if r["snapshots"] and not r["name"].startswith("kinf-")]
    assert shown["pid"] == 0 and shown["pinFile"].startswith(str(store.runtime)), shown
    assert shown["pinFile"] in store.kinf("status").stdout
    (holder,) = holders(shown["pinFile"]) - {daemon.pid for daemon in daemons}
    os.kill(holder, signal.SIGSTOP)
    simulator.touch("pods", 10)
    store.wait_equal(simulator, "pods")
    os.kill(holder, signal.SIGKILL)
    container.wait()
    eventually(lambda: not snapshots(store), what="no snapshot is held")


def test_what_killed_readers_leave_is_removed(simulator, store):
    daemons = filled(simulator, store)
    followers = [store.follower("watch", "pods", name=f"kinf-watch-{i}") for i in range(4)]
    pids = {follower.pid for follower in followers}

    def theirs():  # the daemons also have such files, and make them when they come to it
        return [path for path in pin_files(store) if holders(str(path)) & pids]

    eventually(lambda: set().union(*(holders(str(path)) for path in theirs())) >= pids, what="files of four readers")
    for follower in followers:
        os.kill(follower.pid, signal.SIGSTOP)  # a frozen one as well
    files = theirs()
    for follower in followers:
        follower.kill()
    eventually(lambda: not any(path.exists() for path in files), what="the files' removal")
    assert all(daemon.running for daemon in daemons)


def test_a_store_whose_pin_directory_was_removed_is_read_again_after_a_moment(simulator, store):
    simulator.create("pods", 10)
    store.configure({"resource": "pods", "drop": []})
    store.run()
    store.wait_equal(simulator, "pods")
    follower = store.follower("watch", "pods", "-o", "json")
    eventually(lambda: len(follower.lines) >= 10, what="the initial state")
    for path in store.runtime.glob("kinf-*/pins"):
        for file in path.iterdir():
            file.unlink()
        path.rmdir()
    eventually(lambda: list(store.runtime.glob("kinf-*/pins")), 30, what="the directory")
    simulator.create("pods", 5)
    store.wait_equal(simulator, "pods")
    eventually(lambda: len(follower.lines) >= 15, what="the new pods")


OWN_MEMORY = ('mount -t tmpfs none "$1" && mkdir -p "$2" && shift 2 || exit 99; '
              'for d in $1; do mount --bind "$d" "$d" && mount -o remount,ro,bind "$d" || exit 99; done; shift; exec "$@"')


def test_a_container_with_memory_of_its_own_pins_where_the_daemons_look_or_is_refused(simulator, store):
    filled(simulator, store)
    pins = next(iter(store.runtime.glob("kinf-*/pins")))

    def command(read_only):
        return [*unshare(*CONTAINER), "sh", "-c", OWN_MEMORY, "sh", str(store.runtime), str(pins), read_only, program("kinf"), "get",
                "pods", "-o", "name"]
    result = run_command(command(""), store.env, 60)
    assert result.status == 0, f"the store's own directory is the same one: {result}"
    assert len(result.stdout.split()) == 10
    result = run_command(command(str(store.path)), store.env, 60)
    assert result.status != 0
    assert "mount that directory writable" in result.stderr and str(store.runtime) in result.stderr, result


def test_a_pin_page_that_was_removed_is_made_again_by_its_running_daemons(simulator, store):
    """Nothing is listed, and readers are refused or served rightly meanwhile."""
    simulator.create("pods", 10)
    store.configure({"resource": "pods", "drop": []})
    supervisor = store.run()
    store.wait_equal(simulator, "pods")
    lists = simulator.counters("pods")["lists"]
    pages = [store.path / name / "gen-1" / "pins" for name in ("journal", "index")]
    for page in pages:
        page.unlink()
    eventually(lambda: all(page.exists() for page in pages), what="the daemons are started again, and make them")
    simulator.touch("pods", 3)

    def equal():
        result = store.kinf("get", "pods", "-o", "json", "--show-managed-fields")
        assert result.status == 0 or "removed, replaced or copied" in result.stderr, result
        return result.status == 0 and {o["metadata"]["name"]: o for o in result.json["items"]} == {
            o["metadata"]["name"]: o for o in simulator.truth("pods").values()
        }

    eventually(equal)
    assert simulator.counters("pods")["lists"] == lists
    assert "pins' of the" in supervisor.log, supervisor.log  # the loss is in the log
    store.verify()
