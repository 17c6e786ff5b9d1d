# SPDX-License-Identifier: Apache-2.0
"""kinf backup and kinf restore."""

import grp
import os
import random
import re
import signal
import stat
import subprocess
import tarfile

import pytest

from harness import PATIENCE, eventually
from harness.follow import replay
from harness.process import SANITIZER_OPTIONS, program, run_command
from harness.store import Store, whole


@pytest.fixture
def full(simulator, store):
    """A store in use with 300 pods, some of them with a past."""
    simulator.create("pods", 300, size=3000)
    store.start(simulator, whole("pods", indexes={"node": "spec.nodeName"}), retention={"time": "1h"})
    simulator.touch("pods", 100)
    simulator.delete_many("pods", 20)
    store.wait_equal(simulator, "pods")
    return store


def status(store, *args):
    return store.kinf("status", "-o", "json", *args, check=True).json["store"]


def leftovers(directory):
    return [str(path) for path in directory.rglob("*kinf-partial*")]


def another(full, path, workspace):
    """The store PATH with a configuration, runtime directory and processes of its own."""
    directory = full.directory / f"home-of-{path.name}"
    directory.mkdir()
    other = Store(directory)
    other.path = path
    other.kubeconfig = full.kubeconfig
    workspace.add(other)
    other.configure(whole("pods", indexes={"node": "spec.nodeName"}), retention={"time": "1h"})
    return other


def make(full, kind, name="b"):
    """Makes a backup, and returns the arguments for kinf restore."""
    target = full.directory / name
    if kind == "directory":
        full.kinf("backup", f"{target}/", check=True)
        return target
    if kind == "file":
        full.kinf("backup", target, check=True)
        return target
    with open(target, "wb") as out:
        done = subprocess.run([program("kinf"), "backup", "-"], stdout=out, stderr=subprocess.PIPE, timeout=60 * PATIENCE,
                              env={**os.environ, **full.env, **SANITIZER_OPTIONS, "TMPDIR": str(full.directory)})
    assert done.returncode == 0, done
    return target


@pytest.mark.parametrize("kind", ["file", "directory", "pipe"])
def test_a_restored_store_is_warm(simulator, workspace, full, kind):
    """It has objects, history and indexes, and goes on watching without a list."""
    past = full.kinf("dump", "journal", "--body", check=True).stdout
    backup = make(full, kind)
    assert full.kinf("get", "pods", "-o", "count", check=True).stdout == "280\n"
    simulator.touch("pods", 30)
    full.wait_equal(simulator, "pods")
    full.stop()
    simulator.forget_requests()
    target = full.directory / "restored"
    assert str(target) in full.kinf("restore", backup, target, check=True).stdout
    assert leftovers(full.directory) == []
    other = another(full, target, workspace)
    assert other.kinf("dump", "journal", "--body", check=True).stdout == past
    assert other.kinf("get", "pods", "-o", "count", check=True).stdout == "280\n"
    other.verify()
    assert status(other)["uuid"] != status(full)["uuid"], "a lineage of its own"
    other.daemons()
    other.wait_equal(simulator, "pods")
    assert not simulator.requests(resource="pods", verb="list"), "it watches on"
    node = next(iter(simulator.truth("pods").values()))["spec"]["nodeName"]
    assert other.kinf("get", "pods", "--index", f"node={node}", "-o", "name", check=True).stdout
    other.verify()


def test_the_backup_of_a_store_under_changes_is_consistent(simulator, full):
    simulator.churn("pods", 400)
    for i in range(4):
        directory = full.directory / f"b-{i}"
        full.kinf("backup", f"{directory}/", check=True)
        full.kinf("verify", "--deep", "--store", directory, check=True)
    simulator.churn("pods", 0)


def test_a_backup_directory_is_a_store_of_its_own(simulator, workspace, full):
    """It can be read and started beside the one it comes from."""
    backup = make(full, "directory")
    full.kinf("restore", backup, full.directory / "restored", check=True)
    other = another(full, backup, workspace)
    assert len({(path / "id").read_text() for path in (full.path, backup, full.directory / "restored")}) == 3
    other.daemons()
    simulator.touch("pods", 20)
    for store in (full, other):
        store.wait_equal(simulator, "pods")
        store.verify()


def test_a_follower_of_the_store_before_begins_again(simulator, workspace, full):
    """Its cursor may be ahead of the backup: it gets LAPPED and the whole state, and misses nothing."""
    backup = make(full, "file")
    simulator.touch("pods", 30)
    full.wait_equal(simulator, "pods")
    follower = full.follower("watch", "pods", "-o", "json", "--cursor", "mine")
    eventually(lambda: any(line["type"] == "SYNC" for line in follower.lines))
    follower.stop()
    full.stop()
    full.kinf("restore", backup, full.directory / "restored", check=True)
    other = another(full, full.directory / "restored", workspace)
    assert other.kinf("cursor", "ls", check=True).stdout.count("mine") == 0
    (other.path / "cursors").mkdir(exist_ok=True)
    (other.path / "cursors" / "mine").write_bytes((full.path / "cursors" / "mine").read_bytes())
    other.daemons()
    other.wait_equal(simulator, "pods")
    again = other.follower("watch", "pods", "-o", "json", "--old", "--cursor", "mine", name="again")
    eventually(lambda: any(line["type"] == "SYNC" for line in again.lines))
    assert again.lines[0]["type"] == "LAPPED"
    assert replay(again.lines[1:]) == simulator.truth("pods")


def test_tar_can_read_the_file(full):
    """It unpacks to a readable store."""
    backup = make(full, "file")
    assert os.stat(backup).st_mode & 0o077 == 0
    target = full.directory / "unpacked"
    target.mkdir()
    with tarfile.open(backup) as tar:
        names = tar.getnames()
        tar.extractall(target)
    assert names[0] == "kinf-backup" and not any("cursors" in name or "lock" in name for name in names)
    assert full.kinf("get", "pods", "-o", "count", "--store", target, check=True).stdout == "280\n"


def test_a_file_is_replaced_and_a_directory_with_files_is_not(full):
    backup = make(full, "file")
    backup.write_text("old")
    full.kinf("backup", backup, check=True)
    assert tarfile.is_tarfile(backup)
    directory = make(full, "directory", "d")
    for command in (["backup", f"{directory}/"], ["backup", directory], ["restore", backup, directory]):
        result = full.kinf(*command)
        assert result.status == 1 and "with files in it" in result.stderr, result
    full.kinf("get", "pods", "--store", directory, check=True)
    assert leftovers(full.directory) == []


def test_a_device_is_not_replaced(full):
    """A backup to /dev/null as root used to replace it by a file, and all programs wrote to it."""
    pipe, link, nowhere = full.directory / "pipe", full.directory / "link", full.directory / "nowhere"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    nowhere.symlink_to(full.directory / "not" / "there")
    places = [pipe, link]
    if os.geteuid() == 0:
        os.mknod(full.directory / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        places.append(full.directory / "null")
    for place in places:
        before = os.lstat(place)[:4]  # kind, inode, device, links
        result = full.kinf("backup", place)
        assert result.status == 1 and "is a device, a pipe or a socket" in result.stderr and "write - for" in result.stderr, result
        assert os.lstat(place)[:4] == before
        result = full.kinf("restore", make(full, "file"), place)
        assert result.status == 1 and "exists and is no directory" in result.stderr, result
    for command in (["backup", nowhere], ["restore", make(full, "file"), nowhere]):
        result = full.kinf(*command)
        assert result.status == 1 and "is a link that leads nowhere" in result.stderr and nowhere.is_symlink(), result
    assert leftovers(full.directory) == []


def test_a_link_stays_and_what_it_leads_to_is_replaced(full):
    """It may lead to another disk, because this one has no room."""
    disk, link, directory = full.directory / "disk", full.directory / "newest.tar", full.directory / "restored"
    disk.mkdir()
    (disk / "store").mkdir()
    (disk / "backup").write_text("old")
    link.symlink_to("disk/backup")
    directory.symlink_to(disk / "store")
    full.kinf("backup", link, check=True)
    full.kinf("restore", link, directory, check=True)
    assert link.is_symlink() and tarfile.is_tarfile(disk / "backup") and directory.is_symlink()
    assert full.kinf("get", "pods", "-o", "count", "--store", disk / "store", check=True).stdout == "280\n"
    assert leftovers(full.directory) == []


def test_the_root_of_a_file_system_is_named(full):
    """It can't be replaced by a rename."""
    place = full.directory / "volume"
    place.mkdir()
    inside = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', place, program("kinf")]
    if run_command([*inside[:-1], "true"]).status:
        pytest.skip("no mount namespaces here")
    for command in (["backup", place], ["restore", make(full, "file"), place]):
        result = run_command([*inside, *command], full.env)
        assert result.status == 1 and "is the root of a file system: name a directory in it" in result.stderr, result


def test_wrong_usage_and_places_that_do_not_exist(full):
    for command in (["backup"], ["backup", "a", "b"], ["backup", ""], ["restore", "a"], ["restore"], ["restore", "", "b"]):
        result = full.kinf(*command)
        assert result.status == 2 and len(result.stderr.splitlines()) == 1, result
    backup = make(full, "file")
    for command in (["backup", "/nowhere/b"], ["restore", backup, "/nowhere/b"], ["restore", "/nowhere/b", "b"],
                    ["backup", "/proc/b"], ["backup", "."], ["backup", ".."], ["backup", "/"]):
        result = full.kinf(*command)
        assert result.status == 1 and result.stderr.splitlines()[-1].startswith("Error: "), result
    result = full.kinf("backup", "b", "--store", "/nowhere")
    assert result.status == 1 and "no store at" in result.stderr, result


@pytest.mark.parametrize("command", ["backup", "restore"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interruption_leaves_nothing(full, command, number):
    """After SIGKILL the next command for the same place removes the leftovers."""
    backup, target = make(full, "file"), full.directory / "target"
    argv = ["backup", target] if command == "backup" else ["restore", backup, target]
    process = full.follower(*argv, name=command, env={"KINF_FAIL": "compact.slice:1:pause=1500"})
    eventually(lambda: leftovers(full.directory))
    eventually(lambda: list(full.directory.rglob("*kinf-partial/store/journal/gen-1/data.mdb")))
    code = process.kill(number)
    assert code == (-number if number == signal.SIGKILL else 1)
    assert not target.exists()
    if number == signal.SIGKILL:
        full.kinf(*argv, check=True)
        assert target.exists()
    assert leftovers(full.directory) == []
    full.verify()


def test_a_backup_to_a_program_that_takes_nothing_is_interrupted(full):
    scratch = full.directory / "scratch"
    scratch.mkdir()
    backup = subprocess.Popen([program("kinf"), "backup", "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env={**os.environ, **SANITIZER_OPTIONS, **full.env, "TMPDIR": str(scratch)})  # fmt: skip
    assert len(backup.stdout.read(512)) == 512
    backup.send_signal(signal.SIGTERM)
    assert backup.wait(timeout=30) == 1
    assert b"interrupted" in backup.stderr.read()
    backup.stdout.close()
    backup.stderr.close()
    assert not list(scratch.iterdir())


def test_a_restoration_of_a_backup_that_does_not_go_on_is_interrupted(full):
    tar, part = full.directory / "whole.tar", full.directory / "part"
    full.kinf("backup", tar, check=True)
    os.mkfifo(part)
    restore = full.process("restore", [program("kinf"), "restore", part, full.directory / "restored"]).start()
    with open(part, "wb") as pipe:
        pipe.write(tar.read_bytes()[:100000])
        pipe.flush()
        assert restore.stop() == 1
    assert "interrupted" in restore.log and not leftovers(full.directory)


def test_two_backups_of_one_name(full):
    target = full.directory / "target"
    first = full.follower("backup", target, name="first", env={"KINF_FAIL": "compact.slice:1:pause=1500"})
    eventually(lambda: leftovers(full.directory))
    result = full.kinf("backup", target)
    assert result.status == 1 and "another kinf makes" in result.stderr, result
    assert first.wait() == 0
    assert target.exists() and leftovers(full.directory) == []


def test_a_file_that_is_no_backup_is_refused(full):
    """Cut, changed, extended and hostile files: exit 1 with a sentence, and no directory is left."""
    backup = make(full, "file")
    whole_file = backup.read_bytes()
    chance = random.Random(11)
    tries = {"empty": b"", "text": b"hello" * 300, "zeros": bytes(4096), "half": whole_file[: len(whole_file) // 2],
             "one block": whole_file[:512]}
    for i in range(20):
        at = chance.randrange(0, 6 * 512)
        tries[f"byte {at}"] = whole_file[:at] + bytes([whole_file[at] ^ (1 << chance.randrange(8))]) + whole_file[at + 1:]
    for name, content in tries.items():
        (full.directory / "bad").write_bytes(content)
        result = full.kinf("restore", full.directory / "bad", full.directory / "target")
        if result.status == 0 and name.startswith("byte"):
            # A byte without meaning: the time of a header is under its checksum, padding and
            # manifest are not.
            subprocess.run(["rm", "-r", full.directory / "target"], check=True)
            continue
        assert result.status == 1 and result.stderr.splitlines()[-1].startswith("Error: "), (name, result)
        assert not (full.directory / "target").exists() and leftovers(full.directory) == []


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_a_backup_of_another_format_is_for_its_own_version(full, kind):
    backup = make(full, kind)
    (held,) = [backup] if kind == "file" else backup.glob("journal/gen-*/STATE")
    # The journal's STATE is the first of the file; a tar has no checksum of its files' contents.
    changed, n = re.subn(rb"\nformat \d\n", b"\nformat 1\n", held.read_bytes(), count=1)
    assert n == 1
    held.write_bytes(changed)
    result = full.kinf("restore", backup, full.directory / "target")
    said = f"Error: another version of kinf made the backup '{backup}', in a format that this version can't read: restore and read it"
    assert result.status == 1 and said in result.stderr and "daemons" not in result.stderr, result
    assert not (full.directory / "target").exists() and leftovers(full.directory) == []


@pytest.mark.parametrize("name", ["../outside", "/tmp/outside", "journal/gen-1/../../../outside", "cursors/x", "journal/gen-01/STATE"])
def test_a_tar_with_other_names_is_refused(full, name):
    backup = full.directory / "hostile"
    with tarfile.open(backup, "w", format=tarfile.USTAR_FORMAT) as tar:
        for entry in ("kinf-backup", name):
            info = tarfile.TarInfo(entry)
            tar.addfile(info)
    result = full.kinf("restore", backup, full.directory / "target")
    assert result.status == 1 and "not a" in result.stderr, result
    assert not (full.directory / "outside").exists() and leftovers(full.directory) == []


def test_a_link_in_a_tar_is_refused(full):
    backup = full.directory / "hostile"
    with tarfile.open(backup, "w", format=tarfile.USTAR_FORMAT) as tar:
        tar.addfile(tarfile.TarInfo("kinf-backup"))
        info = tarfile.TarInfo("id")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(info)
    result = full.kinf("restore", backup, full.directory / "target")
    assert result.status == 1 and "something else" in result.stderr, result


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to any group")
def test_a_restored_store_gets_the_group_of_its_configuration(simulator, workspace, full):
    """A backup has no group; the daemons give the files to the group in kinf.yaml."""
    full.kinf("restore", make(full, "file"), full.directory / "restored", check=True)
    other = another(full, full.directory / "restored", workspace)
    other.start(simulator, whole("pods"), group="nogroup")
    gid = grp.getgrnam("nogroup").gr_gid

    def given():
        for path in other.path.glob("*/gen-*/data.mdb"):
            assert (path.stat().st_gid, path.stat().st_mode & 0o777) == (gid, 0o640), path
            assert (path.parent.stat().st_gid, path.parent.stat().st_mode & 0o7777) == (gid, 0o2750), path
        return True

    eventually(given)  # the restored index can be read before the processor has opened it


def test_the_backup_has_no_removed_values(simulator, store):
    mark = "dGhlLXNlY3JldC1vZi10aGUtYmFja3Vw"
    simulator.put("secrets", {"metadata": {"name": "s", "namespace": "web"}, "data": {"key": mark}, "type": "Opaque"})
    store.start(simulator, whole("secrets"), whole("pods"))
    store.configure(whole("pods"))
    store.kinf("reload", check=True)
    eventually(lambda: store.kinf("get", "secrets").status != 0)
    eventually(lambda: (lambda s: s["taken"] == s["lastEvent"])(status(store)))
    for kind in ("file", "directory"):
        backup = make(store, kind, kind)
        for path in [backup] if backup.is_file() else backup.rglob("*"):
            assert not path.is_file() or mark.encode() not in path.read_bytes(), path
