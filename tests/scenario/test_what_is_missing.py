# SPDX-License-Identifier: Apache-2.0
"""Messages and exit status while something is missing: a right, a directory, disk space, an index,
a daemon of the same version. Each message has a remedy; nothing unreadable is called a fault."""

import os
import re
import shutil
import signal
import stat
import struct
import time
from pathlib import Path

import pytest

from harness import eventually
from harness.namespaces import unshare
from harness.process import program, run_command
from harness.store import whole

root = pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")


def as_nobody(store, *argv):
    user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    return run_command([*user, *argv], store.env, 30)


def read_only(*paths):
    """The beginning of a command to run with PATHS mounted read-only."""
    mounts = " && ".join(f"mount --bind {path} {path} && mount -o remount,ro,bind {path}" for path in paths)
    return [*unshare("-rm"), "sh", "-c", f'{mounts} && exec "$@"', "sh"]


@pytest.fixture
def live(simulator, store):
    """The store of 5 pods, with its daemons."""
    simulator.create("pods", 5)
    store.configure(whole("pods"), mapSize="64MiB")
    store.supervisor = store.run()
    store.wait_live("pods")
    for path in (store.directory, store.config, store.kubeconfig):
        os.chmod(path, 0o755)
    return store


@root
def test_a_user_who_may_not_read_the_store_learns_whose_it_is(live):
    result = as_nobody(live, program("kinf"), "get", "pods")
    assert result.status == 1 and "belongs to user root alone" in result.stderr and "'group'" in result.stderr, result
    os.chmod(live.path, 0o750)
    result = as_nobody(live, program("kinf"), "get", "pods")
    assert result.status == 1 and "user root and group root: become a member" in result.stderr, result


@root
@pytest.mark.parametrize("lacks, says", [("store", "may not write the store"), ("kubeconfig", "make the file readable")])
def test_run_without_a_right_ends_and_says_which(live, lacks, says):
    assert live.supervisor.stop() == 0
    place = live.directory / "mine"
    place.mkdir()
    os.chown(place, 65534, 65534)
    where = ["--store", place / "store", "--runtime-dir", place] if lacks == "kubeconfig" else []
    os.chmod(live.kubeconfig, 0o600 if lacks == "kubeconfig" else 0o644)
    result = as_nobody(live, program("kinf"), "run", "--config", live.config, *where)
    assert result.status == 78 and says in result.stderr and "65534" in result.stderr, result


@root
def test_what_root_left_in_the_store_of_a_user_is_named_at_once(live):
    """`kinf run` used to wait for the end of a stopped daemon, or its daemons ended without a hint."""
    assert live.supervisor.stop() == 0
    for path in (live.path, *live.path.rglob("*")):
        os.chown(path, 65534, 65534)
    for part in ("making.lock", "id", "reflector.lock", "processor.owner", "runtime", "journal", "cursors", "journal/CURRENT"):
        path = live.path / part
        os.chown(path, 0, 0)
        path.chmod(path.stat().st_mode & 0o700)
        began = time.monotonic()
        result = as_nobody(live, program("kinf"), "run", "--config", live.config, "--runtime-dir", live.runtime)
        assert result.status == 78 and f"user 65534 may not use '{path}' of its store" in result.stderr, result
        assert f"sudo chown -R 65534 {live.path}" in result.stderr and time.monotonic() - began < 5, result
        os.chown(path, 65534, 65534)


@root
def test_run_goes_on_when_a_store_that_was_given_to_root_is_given_back(live, simulator):
    """A daemon in its first life ended `kinf run`, with the status at which services stay stopped."""
    assert live.supervisor.stop() == 0
    parts = [live.path, *live.path.rglob("*"), live.runtime]
    for path in parts:
        os.chown(path, 65534, 65534)
    run = [program("kinf"), "run", "--config", live.config, "--runtime-dir", live.runtime]
    supervisor = live.process("as-nobody", ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", *run]).start()
    live.wait_live("pods")
    os.chown(live.in_generation("journal", lambda path: path), 0, 0)
    supervisor.wait_log("daemon_ended")
    simulator.touch("pods")
    os.chown(live.in_generation("journal", lambda path: path), 65534, 65534)
    live.wait_equal(simulator, "pods")
    assert supervisor.stop() == 0


def test_a_link_that_leads_nowhere_is_named(live):
    link, loop = live.directory / "link", live.directory / "loop"
    link.symlink_to("nothing")
    loop.symlink_to("loop")
    for path in (link, loop):
        result = live.kinf("get", "pods", "--store", path)
        assert result.status == 1 and f"no store at '{path}', which is a link that leads nowhere" in result.stderr, result


@root
@pytest.mark.parametrize("command", [["run"], ["compact"], ["rebuild-index"]], ids=" ".join)
def test_root_leaves_the_store_of_a_user_as_it_is(live, command):
    """As by sudo: files of root's daemons used to be unreadable to the user."""
    assert live.supervisor.stop() == 0
    parts = [live.path, *live.path.rglob("*")]
    for path in parts:
        os.chown(path, 65534, 65534)
    result = live.kinf(*command, *(["--runtime-dir", live.runtime] if command == ["run"] else []))
    assert result.status == (78 if command == ["run"] else 1) and "belongs to" in result.stderr and "that user" in result.stderr, result
    assert sorted(live.path.rglob("*")) == sorted(parts[1:]) and {path.stat().st_uid for path in parts} == {65534}
    assert as_nobody(live, program("kinf"), "get", "pods", "-o", "count").stdout == "5\n"


@root
@pytest.mark.parametrize("lacks, option", [("store", "--store"), ("runtime directory", "--runtime-dir")])
def test_a_directory_that_can_not_be_made_is_not_to_be_given_to_anybody(live, lacks, option):
    """There is no directory yet to give away."""
    assert live.supervisor.stop() == 0
    os.chmod(live.kubeconfig, 0o644)
    mine, closed = live.directory / "mine", live.directory / "closed"
    mine.mkdir()
    closed.mkdir()
    os.chown(mine, 65534, 65534)
    where = {"--store": mine / "store", "--runtime-dir": mine, option: closed / "new"}
    result = as_nobody(live, program("kinf"), "run", "--config", live.config, *(word for pair in where.items() for word in pair))
    assert result.status == 78 and f"user 65534 may not make the {lacks} '{closed}/new" in result.stderr, result
    assert f"install -d -o 65534 {closed}/new" in result.stderr and "chown -R" not in result.stderr, result


@pytest.mark.parametrize("option", ["--store", "--runtime-dir"])
def test_a_directory_that_nobody_can_make_ends_run(live, option):
    """A file where a directory should be, a link to nothing, a file system without new directories."""
    assert live.supervisor.stop() == 0
    (live.directory / "file").touch()
    (live.directory / "link").symlink_to(live.directory / "nothing")
    for path in (live.directory / "file" / "new", live.directory / "link" / "new", live.directory / "link", Path("/proc/new")):
        argv = [program("kinf"), "run", "--config", live.config, "--runtime-dir", live.runtime, option, path]
        result = run_command(argv, live.env, 30)
        assert result.status == 78 and "can't be made: a part of this path" in result.stderr and option in result.stderr, result


@pytest.mark.parametrize("daemon", [["kinf", "run"], ["kinf-reflector"], ["kinf-processor"]], ids=" ".join)
def test_a_directory_with_other_files_does_not_become_a_store(live, daemon):
    """It would be closed to other users: `kinf run --store /` was the end of a machine."""
    assert live.supervisor.stop() == 0
    place = live.directory / "website"
    place.mkdir()
    (place / "index.html").touch()
    place.chmod(0o755)
    argv = [program(daemon[0]), *daemon[1:], "--config", live.config, "--runtime-dir", live.runtime, "--store", place]
    result = run_command(argv, live.env, 30)
    assert result.status == 78 and f"'{place}' is no store, and has something else in it, such as index.html" in result.stderr, result
    assert stat.S_IMODE(place.stat().st_mode) == 0o755 and [path.name for path in place.iterdir()] == ["index.html"]


def test_the_directory_of_kinf_yaml_may_become_the_store(live):
    assert live.supervisor.stop() == 0
    place = live.directory / "mine"
    place.mkdir()
    live.config.rename(place / "kinf.yaml")
    argv = ["sh", "-c", 'cd "$0" && exec "$@"', place, program("kinf"), "run", "--store", ".", "--runtime-dir", live.runtime]
    supervisor = live.process("kinf-run", argv, {"KINF_CONFIG": ""}).start()
    eventually(lambda: live.kinf("get", "pods", "-o", "count", "--store", place).stdout == "5\n")
    assert supervisor.stop() == 0 and (place / "kinf.yaml").exists()


def test_a_path_that_is_too_long_ends_run_and_is_named(live, tmp_path):
    """The directories can be made one by one, but LMDB opens its files by their path."""
    path = (str(tmp_path) + "/" + "/".join(["d" * 200] * 30))[:4074]
    os.makedirs(os.path.dirname(path))
    result = run_command([program("kinf"), "run", "--config", live.config, "--store", path], live.env, timeout=30)
    assert result.status == 78 and "is longer than" in result.stderr and "name a shorter one" in result.stderr, result


def test_run_on_a_read_only_store_ends_and_says_so(live):
    assert live.supervisor.stop() == 0
    argv = [*read_only(live.path), program("kinf"), "run", "--config", live.config, "--runtime-dir", live.runtime]
    result = run_command(argv, live.env, 30)
    assert result.status == 78 and "mount it writable" in result.stderr, result


def test_limits_of_a_process_are_named(live):
    """A limit says nothing about the store."""
    def limited(limit):
        return run_command(["prlimit", limit, program("kinf"), "get", "pods", "-o", "count"], live.env)

    results = [limited(f"--nofile={descriptors}") for descriptors in range(5, 25)]
    refused = [result for result in results if result.stdout != "5\n"]
    for result in refused:
        assert result.status == 1 and "ulimit -n" in result.stderr and "Mount" not in result.stderr, result
    assert 0 < len(refused) < 20
    result = limited("--fsize=0")
    assert result.status == 1 and "File too large (raise the limit" in result.stderr and "Mount" not in result.stderr, result
    assert live.supervisor.stop() == 0
    for program_argv in ([program("kinf"), "run"], [program("kinf-processor")]):
        result = run_command(["prlimit", "--nofile=20", *program_argv, "--config", live.config, "--runtime-dir", live.runtime], live.env, 30)
        assert result.status == 78 and result.stderr.count("needs 64 at least") == 1 and "ulimit -n" in result.stderr, result
    live.supervisor = live.process("limited", ["prlimit", "--fsize=60000", program("kinf"), "run", "--runtime-dir", live.runtime]).start()
    eventually(lambda: live.supervisor.log.count("File too large (raise the limit") >= 2)
    assert "killed by signal" not in live.supervisor.log, live.supervisor.log


def test_a_runtime_directory_that_is_not_here_is_named(live):
    runtime = next(live.runtime.glob("kinf-*"))
    hide = f'mount --bind {live.path} {live.path} && mount -o remount,ro,bind {live.path} && mount -t tmpfs none {live.runtime} && exec "$@"'
    result = run_command([*unshare("-rm"), "sh", "-c", hide, "sh", program("kinf"), "get", "pods"], live.env)
    assert result.status == 1 and f"runtime directory '{runtime}'" in result.stderr, result


def test_without_proc_programs_say_what_to_mount(live):
    """Also without the part of /proc hidden by `subset=pid`: without the boot id a store can't be trusted."""
    hide = {"/proc": "mount -t proc proc /proc", "/proc/sys": "subset=pid"}
    env = {**live.env, "PATH": f"{os.path.dirname(program('kinf'))}:{os.environ['PATH']}"}

    def without(path):
        return [*unshare("-rm"), "sh", "-c", f'mount -t tmpfs none {path} && exec "$@"', "sh", program("kinf")]

    for path, remedy in hide.items():
        result = run_command([*without(path), "get", "pods"], env)
        assert result.status == 1 and remedy in result.stderr and "kinf run" not in result.stderr, result
        result = run_command([*without(path), "status"], env)
        assert result.status == 1 and "Feeds:   not read, see Error" in result.stdout, result
    # Neither the daemons' sockets nor the programs beside kinf can be found, and this is no fault of theirs.
    for command in (["reload"], ["relist", "pods"], ["import", live.config, "--store", live.directory / "new"], ["config", "check"]):
        result = run_command([*without("/proc"), *command], live.env)
        assert hide["/proc"] in result.stderr, result
    assert live.supervisor.stop() == 0
    if b"__asan_init" in Path(program("kinf")).read_bytes():
        del hide["/proc"]  # there LeakSanitizer reads its options and the threads, else it ends daemons with a status of its own
    for path, remedy in hide.items():
        result = run_command([*without(path), "run", "--config", live.config, "--runtime-dir", live.runtime], env, 30)
        assert result.status == 78 and remedy in result.stderr, result


def test_daemons_read_a_proc_of_another_pid_namespace(live):
    """Their own pids mean other processes there, or none."""
    assert live.supervisor.stop() == 0
    unused = next(pid for pid in range(30000, 20000, -1) if not any(Path(f"/proc/{pid + i}").exists() for i in range(100)))
    inside = f'echo {unused} > /proc/sys/kernel/ns_last_pid && exec "$@"'
    argv = [program("kinf"), "run", "--config", live.config, "--runtime-dir", live.runtime]
    supervisor = live.process("kinf-run", [*unshare("-rpf", "--kill-child"), "sh", "-c", inside, "sh", *argv]).start()
    eventually(lambda: live.kinf("wait", "pods", "--for", "live", "--timeout", "1s").status == 0)
    assert "No such process" not in supervisor.log, supervisor.log
    (inner,) = Path(f"/proc/{supervisor.pid}/task/{supervisor.pid}/children").read_text().split()
    os.kill(int(inner), signal.SIGTERM)  # unshare itself ignores it
    supervisor.wait()


def test_closed_standard_descriptors_are_no_place_for_files(live):
    """Else messages would be written into them."""
    assert live.supervisor.stop() == 0
    argv = [program("kinf"), "run", "--config", live.config, "--runtime-dir", live.runtime, "-v"]
    closed = ["sh", "-c", 'exec <&- >&- 2>&- "$@"', "sh"]
    live.supervisor = live.process("closed", [*closed, *argv]).start()
    live.wait_live("pods")
    processes = live.kinf("status", "-o", "json", check=True).json["processes"]
    pids = [live.supervisor.pid, *(p["pid"] for p in processes if p["pid"])]
    assert len(pids) == 3
    for pid in pids:
        assert [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in range(3)] == ["/"] * 3, pid
    result = run_command([*closed, program("kinf"), "get", "pods"], live.env)
    assert result.status == 1
    live.verify()


def test_run_that_is_started_with_sigchld_ignored_restarts_a_daemon_and_ends(live):
    """As a parent may leave it: the kernel then keeps no status of an ended child, and sends no signal."""
    assert live.supervisor.stop() == 0
    argv = [program("kinf"), "run", "--config", live.config, "--runtime-dir", live.runtime]
    live.supervisor = live.process("ignoring", ["env", "--ignore-signal=CHLD", *argv]).start()
    live.wait_live("pods")

    def reflector():
        return live.kinf("status", "-o", "json").json["processes"][0]

    killed = reflector()
    bad = run_command(["env", "--ignore-signal=CHLD", program("kinf"), "config", "check", "--context", "none"], live.env)
    assert bad.status == 1 and "none" in bad.stderr, bad
    assert killed["name"] == "kinf-reflector" and killed["pid"], killed
    os.kill(killed["pid"], signal.SIGKILL)
    eventually(lambda: reflector()["pid"] not in (0, None, killed["pid"]))
    live.wait_live("pods")
    assert live.supervisor.stop() == 0


@root
def test_a_umask_that_denies_the_owner_everything_is_no_reason_to_fail(live):
    """Root may open its own files in any case; another user could not."""
    os.chmod(live.kubeconfig, 0o644)
    place = live.directory / "mine"
    place.mkdir()
    os.chown(place, 65534, 65534)
    options = ["--config", live.config, "--store", place / "store", "--runtime-dir", place]
    user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "sh", "-c", 'umask 0777; exec "$@"', "sh"]
    for _ in range(2):  # in the second run the files are there
        theirs = live.process("theirs", [*user, program("kinf"), "run", *options]).start()
        result = run_command([*user, program("kinf"), "wait", "pods", "--for", "live", "--timeout", "60s", *options], live.env, 80)
        assert result.status == 0, (result, theirs.log)
        assert theirs.stop() == 0


def give_to_group(live):
    assert live.supervisor.stop() == 0
    os.chmod(live.runtime, 0o755)
    live.configure(whole("pods"), mapSize="64MiB", group="nogroup").run()
    live.wait_live("pods")


@root
def test_a_store_that_is_given_a_group_can_be_read_by_it(live):
    """As in the message to users without access: set 'group', restart, become a member."""
    give_to_group(live)
    result = as_nobody(live, program("kinf"), "get", "pods", "-o", "name")
    assert result.status == 0 and len(result.stdout.splitlines()) == 5, result


@root
def test_a_group_that_comes_later_can_ask_for_the_kubeconfig_of_kinf_serve(live):
    """The directory of kinf-serve was made before the store had a group."""
    assert live.supervisor.stop() == 0
    os.chmod(live.runtime, 0o755)
    serve = {"listen": ["127.0.0.1:0"]}
    addresses = live.path / "serve" / "addresses"
    for group in ({}, {"group": "nogroup"}):
        run = live.configure(whole("pods"), mapSize="64MiB", serve=serve, **group).run()
        eventually(lambda: addresses.exists() and "api https" in addresses.read_text())
        live.wait_live("pods")
        if group:
            eventually(lambda: as_nobody(live, program("kinf"), "--store", live.path, "kubeconfig").status == 0)
        result = as_nobody(live, program("kinf"), "--store", live.path, "kubeconfig")
        assert result.status == (0 if group else 1), result
        if not group:  # as the reflector does it, if kinf-serve is faster
            os.chown(live.path, -1, 65534)
            os.chmod(live.path, 0o2750)
            eventually(lambda: (live.path / "serve").stat().st_mode & 0o7777 == 0o2750 and (live.path / "serve").stat().st_gid == 65534)
        assert run.stop() == 0
        addresses.unlink()
    assert "server: https://127.0.0.1:" in result.stdout, result
    os.chmod(live.path / "serve", 0o700)
    refused = as_nobody(live, program("kinf"), "kubeconfig")
    assert refused.status == 1 and f"opening '{live.path}/serve': Permission denied" in refused.stderr, refused


@root
def test_a_cursor_of_another_member_is_named_as_such(live):
    """Both may write to the directory, but only its owner can move a cursor."""
    give_to_group(live)
    watch = [program("kinf"), "watch", "pods", "--cursor", "mine"]
    one, other = (["setpriv", "--reuid", uid, "--regid", "nogroup", "--clear-groups"] for uid in ("65534", "65533"))
    follower = live.process("follower", [*one, *watch]).start()
    eventually(lambda: (live.path / "cursors" / "mine").exists())
    for running in (True, False):
        result = run_command([*other, *watch, "--count", "1"], live.env)
        assert result.status == 1 and result.stdout == "", result
        assert "cursor 'mine': it belongs to user 65534: run as that user" in result.stderr, result
        assert not running or follower.stop() == 0
    removed = run_command([*other, program("kinf"), "cursor", "rm", "mine"], live.env)
    assert removed.status == 1 and "belongs to user 65534: that user, the store's owner and root may remove it" in removed.stderr, removed
    assert run_command([*one, program("kinf"), "cursor", "rm", "mine"], live.env).status == 0


@root
def test_nobody_begins_at_a_position_that_another_member_wrote(live):
    """Neither does root: events before the position would be missing without a word."""
    assert live.supervisor.stop() == 0
    os.chmod(live.runtime, 0o755)
    live.configure(whole("pods"), mapSize="64MiB", group="nogroup").run()
    live.wait_live("pods")
    planted = live.path / "cursors" / "later"
    watch = ["watch", "pods", "--cursor", "later", "--count", "1", "-o", "name"]

    def follow():
        follower = live.process("follower", [program("kinf"), "watch", "pods", "--cursor", "later"]).start()
        eventually(planted.exists)
        assert follower.stop() == 0
        return planted.read_text()

    text = follow()
    live.kinf("cursor", "rm", "later", check=True)
    made = run_command(["setpriv", "--reuid", "65534", "--regid", "nogroup", "--clear-groups", "sh", "-c", f"cat > '{planted}'"], live.env, input=text)
    assert made.status == 0 and planted.read_text() == text
    result = live.kinf(*watch)
    assert result.status == 1 and result.stdout == "", result
    assert "cursor 'later': it belongs to user 65534: run as that user" in result.stderr and "kinf cursor rm" in result.stderr, result
    live.kinf("cursor", "rm", "later", check=True)
    assert live.kinf(*watch, check=True).stdout.count("pod/") == 1
    follow()
    os.link(planted, live.path / "cursors" / "other")
    result = live.kinf("watch", "pods", "--cursor", "other", "--count", "1")
    assert result.status == 1 and "cursor 'other': its file has other names" in result.stderr, result


@root
def test_a_configuration_that_does_not_count_is_not_called_missing(tmp_path):
    (tmp_path / "kinf.yaml").write_text("feeds: [{resource: pods}]\n")
    os.chown(tmp_path / "kinf.yaml", 65534, 65534)
    result = run_command([program("kinf"), "config", "check"], {"KINF_CONFIG": ""}, cwd=tmp_path)
    assert result.status == 1 and "belongs to user 65534" in result.stderr and "no usable ./kinf.yaml" in result.stderr, result


def test_a_wait_without_a_limit_says_that_there_is_no_store(live):
    nowhere = live.directory / "nowhere"
    waiting = live.follower("wait", "pods", "--store", nowhere)
    eventually(lambda: "note: waiting; " in waiting.log and f"no store at '{nowhere}'" in waiting.log)
    assert waiting.running
    waiting.stop()


def test_a_database_that_is_not_read_is_not_called_none(live):
    """The journal of a store without an index is there, although no state of it is shown."""
    assert live.supervisor.stop() == 0
    shutil.rmtree(live.path / "index")
    status = live.kinf("status")
    assert "Journal: not read, see Error\nIndex:   none\n" in status.stdout and "Error:   the store has no index yet, and kinf-processor does not run" in status.stdout, status
    shutil.rmtree(live.path)
    assert "Journal: none\nIndex:   none\n" in live.kinf("status").stdout


def kill_reflector(store):
    os.kill(next(p["pid"] for p in store.kinf("status", "-o", "json").json["processes"] if p["name"] == "kinf-reflector"), signal.SIGKILL)


def test_run_names_a_daemon_that_no_restart_would_mend(live):
    assert live.supervisor.stop() == 0
    live.kubeconfig.unlink()
    live.supervisor.start()
    live.supervisor.wait_log('child_given_up daemon="kinf-reflector" .*can\'t run with this configuration, or on this machine')
    assert live.supervisor.wait() == 78


@pytest.mark.parametrize("text", ["bogus: 1\n", "", "feeds: []\n"])
def test_a_daemon_that_has_run_is_started_until_its_configuration_is_good_again(live, simulator, text):
    """A half-written file used to end kinf run. An empty one cost all objects."""
    before, lists = live.config.read_text(), simulator.counters("pods")["lists"]
    live.config.write_text(text)
    kill_reflector(live)
    live.supervisor.wait_log('child_died daemon="kinf-reflector" .*can\'t run with this configuration, or on this machine')
    eventually(lambda: "kinf-reflector does not run" in live.kinf("get", "pods", "-o", "name").stderr)  # between two starts
    got = live.kinf("get", "pods", "-o", "name")
    assert got.status == 0 and got.stdout and got.stderr, got
    if text == "bogus: 1\n":  # it names no store, but the environment does
        eventually(lambda: "kinf-reflector does not run: " in live.kinf("get", "pods").stderr and "bogus: unknown key" in live.kinf("get", "pods").stderr)
        assert "Error:   kinf-reflector: " in live.kinf("status").stdout
    assert live.supervisor.running
    live.config.write_text(before)
    live.wait_live("pods")
    assert simulator.counters("pods")["lists"] == lists and "feed_removed" not in live.supervisor.log


def test_readers_say_why_the_reflector_can_not_start(live):
    """They used to know only that it does not run: the remedy was 'kinf run', and it ran."""
    before = live.kubeconfig.read_text()
    live.kubeconfig.unlink()
    kill_reflector(live)
    reason = "kinf-reflector does not run: "
    eventually(lambda: reason in live.kinf("get", "pods").stderr and f"'{live.kubeconfig}'" in live.kinf("get", "pods").stderr)
    for _ in range(20):  # also while it starts once more
        assert reason in live.kinf("status").stdout
    assert f"Error: kinf-reflector: not running: kubeconfig '{live.kubeconfig}' does not exist" in live.kinf("status", "--check").stderr
    live.kubeconfig.write_text(before)
    live.wait_live("pods")
    assert live.kinf("get", "pods").stderr == ""


def test_what_verify_could_not_look_at_is_no_fault(live):
    """Neither place for pins is free."""
    result = run_command([*read_only(live.path, live.runtime), program("kinf"), "verify"], live.env)
    assert result.status == 1 and result.stdout == "", result
    assert "mount that directory writable" in result.stderr and "fault" not in result.stderr, result
    live.verify()


def test_a_cursor_on_a_read_only_store_says_what_to_mount(live):
    argv = [*read_only(live.path), program("kinf"), "watch", "pods", "--count", "1"]
    assert run_command(argv, live.env).status == 0
    result = run_command([*argv, "--cursor", "c"], live.env)
    assert result.status == 1 and "/cursors'" in result.stderr and "mount that directory writable" in result.stderr, result


def test_without_its_index_a_store_says_how_it_comes_back(live):
    assert live.supervisor.stop() == 0
    shutil.rmtree(live.path / "index" / "gen-1")
    result = live.kinf("get", "pods")
    assert result.status == 1 and "start 'kinf run'" in result.stderr, result
    verify = live.kinf("verify")
    assert verify.status == 1 and "gen-1" in verify.stdout and "8 records" in verify.stderr, verify
    dump = live.kinf("dump", "journal")
    assert dump.status == 1 and "gen-1" in dump.stderr and len(dump.stdout.splitlines()) == 8, dump
    shutil.rmtree(live.path / "index")
    follower = live.follower("watch", "pods")
    eventually(lambda: "the store has no index yet, and kinf-processor does not run: start it with 'kinf run'" in follower.log)
    live.supervisor = live.run()
    eventually(lambda: "pod-4" in follower.out)
    assert follower.stop() == 0


@pytest.mark.parametrize("runs, says", [
    ("reflector", "the store has no index yet, and kinf-processor does not run: start it with 'kinf run'"),
    ("processor", "the store has no journal yet, and kinf-reflector does not run: start it with 'kinf run'"),
])
def test_the_daemon_that_has_to_make_what_is_missing_is_named(simulator, store, runs, says):
    """The status used to say "the processor is building an index" while it waited for a journal no process made."""
    store.configure("pods")
    daemon = store.reflector() if runs == "reflector" else store.processor()
    daemon.wait_log("feed_listed" if runs == "reflector" else "journal_awaited")
    for words in (["get", "pods"], ["log"], ["status"], ["wait", "pods", "--timeout", "0s"]):
        result = store.kinf(*words)
        assert result.status == 1 and result.stderr.endswith(f": {says}\n") and "nothing is watched" not in result.stderr, result
    follower = store.follower("watch", "pods")
    eventually(lambda: follower.log == f"note: pods: nothing to read yet, waiting: {says}\n")
    follower.stop()


def copy_of_running(store, target):
    """A copy as a kill leaves it: the daemons stand still meanwhile."""
    pids = [p["pid"] for p in store.kinf("status", "-o", "json", check=True).json["processes"] if p.get("pid")]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    shutil.copytree(store.path, target)
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    return target


def test_daemons_write_a_damaged_id_again(live, simulator):
    """For any remains of it. A directory with an `id` of another program is left alone."""
    for text in (b"\xff" * 30, b"", b"kinf-store 1 zzz\n"):
        assert live.supervisor.stop() == 0
        (live.path / "id").write_bytes(text)
        result = live.kinf("get", "pods")
        assert result.status == 1 and "the id file is damaged: 'kinf run' writes it again" in result.stderr, result
        live.supervisor = live.run()
        live.wait_live("pods")
        assert re.fullmatch("kinf-store 1 [0-9a-f]{16}\n", (live.path / "id").read_text()) and live.feed_status("pods")["lists"] == 0
    for text in ("theirs\n", "kinf-store 2 0123\n"):
        other = live.directory / "other"
        other.mkdir(exist_ok=True)
        (other / "id").write_text(text)
        assert "is no store of this version" in live.kinf("get", "pods", "--store", other).stderr
        result = live.kinf("verify", "--store", other)
        assert result.status == 1 and (other / "id").read_text() == text, result


def test_the_status_of_a_damaged_copy_shows_what_is_good(live, simulator):
    simulator.patch("pods", "ns-2/pod-2", {"metadata": {"annotations": {"mark": "damage-me-2468"}}})
    live.wait_equal(simulator, "pods")
    copy = copy_of_running(live, live.directory / "copy")
    file = copy / "journal" / "gen-1" / "data.mdb"
    file.write_bytes(file.read_bytes().replace(b"damage-me-2468", b"damage-xe-2468"))
    status = live.kinf("status", "-o", "json", "--store", copy).json
    assert status["feeds"][0]["objects"] == 5 and "'ns-2/pod-2'" in status["store"]["lastError"], status
    for words in (("status",), ("top", "--once")):
        shown = live.kinf(*words, "--store", copy)
        assert "'ns-2/pod-2'" in shown.stdout and "generation 1" in shown.stdout, shown
    result = live.kinf("wait", "pods", "--timeout", "1s", "--store", copy)
    assert result.status == 1 and "kinf: fault: " in result.stderr and "'ns-2/pod-2'" in result.stderr, result
    assert "running? \n" not in result.stderr, result


@pytest.mark.parametrize("name", ["a b", "q'\"q", "$(x)", b"bad\xff", b"red\xc2\x9b31m", "a\x1b[31m"], ids=repr)
def test_odd_paths_are_valid_json_and_no_commands_for_terminals(live, name):
    """A path may hold any byte; output has characters only, and a printed command has its meaning in a shell."""
    path = os.path.join(os.fsencode(live.directory), name if isinstance(name, bytes) else name.encode())
    env = {**os.environ, **live.env, "KINF_STORE": os.fsdecode(path)}
    missing = run_command([program("kinf"), "get", "pods"], env)
    assert missing.status == 1 and not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", missing.stderr), missing
    if not isinstance(name, bytes) and "\x1b" not in name:
        (command,) = re.findall("start one with 'kinf run --store (.*)', or name", missing.stderr)
        assert run_command(["sh", "-c", f"printf %s {command}"]).stdout == os.fsdecode(path)
    shutil.copytree(copy_of_running(live, live.directory / "copy"), os.fsdecode(path))
    (Path(os.fsdecode(path)) / "journal/gen-1/STATE").write_text("rubbish")
    for damaged in (True, False):
        if not damaged:
            shutil.copy(live.directory / "copy/journal/gen-1/STATE", os.path.join(os.fsdecode(path), "journal/gen-1/STATE"))
        status = run_command([program("kinf"), "status", "-o", "json"], env).json["store"]
        assert status["path"] == path.decode(errors="replace") and status["copy"] is True, status
        for command in (["status"], ["get", "pods"], ["dump", "meta"]):
            result = run_command([program("kinf"), *command], env)
            assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", result.stdout + result.stderr), result


@root
def test_a_user_who_may_not_use_a_port_learns_what_to_do(simulator, store):
    if int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text()) <= 1:
        pytest.skip("every user may use every port here")
    home = store.directory / "home"
    home.mkdir()
    os.chown(home, 65534, 65534)
    store.configure("pods", store=str(home / "store"), runtimeDir=str(home), serve={"listen": "127.0.0.1:1"})
    for path in (store.directory, store.config, store.kubeconfig):
        os.chmod(path, 0o755)
    places = ["env", "-u", "KINF_STORE", "-u", "KINF_RUNTIME_DIR"]
    words = "listening on '127.0.0.1:1': Permission denied: user 65534 may not use this port; take one from 1024 on"
    for command, code in ((["config", "check"], 1), (["run"], 78)):
        result = as_nobody(store, *places, program("kinf"), *command, "--config", store.config)
        assert result.status == code and words in result.stderr, result


@root
def test_config_check_finds_a_store_that_is_another_users(simulator, store):
    """As a volume of root's with write access for the daemons' group."""
    home = store.directory / "volume"
    home.mkdir()
    os.chown(home, 0, 65534)
    home.chmod(0o2775)
    store.configure("pods", store=str(home))
    for path in (store.directory, store.config, store.kubeconfig):
        os.chmod(path, 0o755)
    command = ["env", "-u", "KINF_STORE", program("kinf"), "config", "check", store.config]
    result = as_nobody(store, *command)
    assert result.status == 1 and f"store: the directory '{home}' belongs to user root, and a store to" in result.stderr, result
    assert not list(home.iterdir()) and run_command(command, store.env, 30).status == 0


@root
def test_a_copy_that_became_another_users_is_read(live):
    """As root's `cp -r` of a store of the user kinf, beside its daemons. It was said to remove
    their runtime directory."""
    copy = copy_of_running(live, live.directory / "copy")
    (runtime,) = live.runtime.iterdir()
    for path in (copy, *copy.rglob("*")):
        os.chown(path, 65534, 65534)
    os.chown(runtime, 12345, -1)
    for reader in ([], ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]):
        result = run_command([*reader, program("kinf"), "get", "pods", "-o", "count", "--store", copy], live.env)
        assert result.status == 0 and result.stdout == "5\n" and "was checked, and no fault" in result.stderr, result
    refused = live.kinf("run", "--store", copy, "--runtime-dir", live.runtime)
    assert refused.status == 78 and "belongs to user nobody" in refused.stderr and "sudo -u nobody" in refused.stderr, refused
    os.chown(copy, 0, 0)
    refused = live.kinf("run", "--store", copy, "--runtime-dir", live.runtime)
    assert refused.status == 78 and "if the store is a copy of that user's, remove the file 'id' in the copy" in refused.stderr, refused
    os.chown(runtime, 0, -1)


def test_dump_reads_the_copy_of_a_running_store_without_its_index(live):
    copy = copy_of_running(live, live.directory / "copy")
    shutil.rmtree(copy / "index")
    result = live.kinf("dump", "journal", "--store", copy)
    assert result.status == 0 and len(result.stdout.splitlines()) == 8 and "was checked" in result.stderr, result


def test_an_object_whose_record_has_no_header_any_more_is_named(live, simulator):
    """All other objects are printed, also by `kinf export` (its List stays whole); and verify names the record."""
    assert live.supervisor.stop() == 0
    file = live.path / "journal" / "gen-1" / "data.mdb"
    data = bytearray(file.read_bytes())
    records = [place - 48 for place in (found.start() for found in re.finditer(rb"ns-2/pod-2", data))
               if struct.unpack_from("<H", data, place - 18)[0] == len("ns-2/pod-2") and 0 < struct.unpack_from("<Q", data, place - 48)[0] < 1000]
    assert records
    (seq,) = {struct.unpack_from("<Q", data, place)[0] for place in records}
    for place in records:
        data[place : place + 48] = bytes(48)
    file.write_bytes(data)
    for words in (["get", "pods", "-o", "json"], ["get", "pods", "--sort-by", "metadata.uid", "-o", "json"], ["export"], ["export", "--full"]):
        result = live.kinf(*words)
        names = {o["metadata"]["name"] for o in result.json["items"] if o["kind"] == "Pod"}
        assert result.status == 1 and names == {"pod-0", "pod-1", "pod-3", "pod-4"}, result
        assert f"record {seq}, a version of 'ns-2/pod-2', is damaged" in result.stderr, result
    assert f"record {seq}: " in live.kinf("verify").stdout
    assert live.kinf("get", "pods", "pod-3", "-n", "ns-3").status == 0
    assert live.kinf("get", "pods", "pod-2", "-n", "ns-2").status == 1


def test_wait_waits_until_a_store_is_good_again(live, simulator):
    """After a power cut the store is not trusted, and damaged: the starting daemons list it again."""
    copy = copy_of_running(live, live.directory / "copy")
    assert live.supervisor.stop() == 0
    shutil.rmtree(live.path)
    copy.rename(live.path)
    file = live.path / "journal" / "gen-1" / "data.mdb"
    file.write_bytes(file.read_bytes().replace(b"ns-2/pod-2", b"ns-2/pod-x"))
    waiting = live.follower("wait", "pods", "--for", "live", "--timeout", "100s")
    eventually(lambda: "waiting until the daemons have made" in waiting.log)
    live.run()
    assert waiting.wait(timeout=60) == 0, waiting.log


@pytest.mark.parametrize("filled", ["wholly", "nearly"])
def test_a_first_start_on_a_full_disk_waits_for_room(simulator, store, filled):
    """No daemon ends meanwhile."""
    simulator.create("pods", 5)
    store.configure("pods", mapSize="64MiB")
    store.path.mkdir(mode=0o700)
    leave = 'truncate -s -200K "$0/lost+found/filler"' if filled == "nearly" else "true"
    mount = f'mount -t tmpfs -o size=10m tmpfs "$0"; mkdir "$0/lost+found"; cat /dev/zero > "$0/lost+found/filler" 2>/dev/null; {leave} && exec "$@"'
    argv = [program("kinf"), "run", "--config", store.config, "--runtime-dir", store.runtime]
    supervisor = store.process("kinf-run", [*unshare("-rm"), "sh", "-c", mount, store.path, *argv]).start()
    inside = ["nsenter", "-t", str(supervisor.pid), "-U", "-m", "--preserve-credentials"]
    eventually(lambda: 'state="waiting for disk space"' in supervisor.log)
    assert run_command([*inside, program("kinf"), "get", "pods"], store.env).status == 1
    run_command([*inside, "rm", store.path / "lost+found" / "filler"], store.env)
    waited = run_command([*inside, program("kinf"), "wait", "pods", "--for", "live", "--timeout", "60s"], store.env, 70)
    assert waited.status == 0, waited
    assert " child_died " not in supervisor.log and " daemon_ended " not in supervisor.log, supervisor.log


def test_a_full_runtime_directory_is_named_and_waited_for(simulator, store):
    """A daemon stopped while it waits has not failed."""
    simulator.create("pods", 5)
    store.configure("pods", mapSize="64MiB")
    store.path.mkdir(mode=0o700)
    store.runtime.mkdir(exist_ok=True)
    mount = 'mount -t tmpfs -o size=100k tmpfs "$0"; cat /dev/zero > "$0/filler" 2>/dev/null; exec "$@"'
    argv = [program("kinf"), "run", "--config", store.config, "--runtime-dir", store.runtime]
    supervisor = store.process("kinf-run", [*unshare("-rm"), "sh", "-c", mount, store.runtime, *argv]).start()
    eventually(lambda: f"the runtime directory '{store.runtime}/kinf-" in supervisor.log and 'state="waiting for disk space"' in supervisor.log)
    assert supervisor.stop() == 0
    assert " daemon_ended " not in supervisor.log and " child_died " not in supervisor.log, supervisor.log


@pytest.mark.parametrize("spoiled", ["STATE", "data.mdb", "../CURRENT"])
def test_a_processor_that_starts_before_the_reflector_has_replaced_a_damaged_journal_logs_no_failure(live, spoiled):
    """It logs the fault after some seconds without a reflector's repair."""
    assert live.supervisor.stop() == 0
    path = live.path / "journal" / "gen-1" / spoiled
    path.unlink()
    if spoiled == "../CURRENT":
        path.write_text("rubbish\n")
    processor = live.processor()
    eventually(lambda: "waiting for a journal" in live.kinf("status").stdout)
    live.reflector()
    processor.wait_log(" index_published ")
    assert " work_failed " not in processor.log, processor.log
    for process in live.processes:
        if process.running:
            process.stop()
    path = live.path / "journal" / (live.path / "journal" / "CURRENT").read_text().strip() / spoiled
    path.unlink()
    if spoiled == "../CURRENT":
        path.write_text("rubbish\n")
    live.processor()
    processor.wait_log(" work_failed ")


def test_a_wait_for_an_object_of_a_namespace_needs_the_namespace(live):
    result = live.kinf("wait", "pods", "--for", "object=pod-1", "--timeout", "5s")
    assert result.status == 2 and "write object=NAMESPACE/pod-1" in result.stderr, result


def test_a_wait_that_times_out_says_how_the_feed_is(live):
    for condition in ("rv=99999999", "object=ns-1/none"):
        result = live.kinf("wait", "pods", "--for", condition, "--timeout", "200ms")
        assert result.status == 1 and "its state is live, with 5 objects at resourceVersion" in result.stderr, result
