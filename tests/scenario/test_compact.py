# SPDX-License-Identifier: Apache-2.0
"""kinf compact: the values of removed feeds and trimmed versions are gone, and nobody notices anything else."""

import os
import re
import signal
import subprocess

import pytest

from harness import PATIENCE, eventually
from harness.follow import replay
from harness.process import program
from harness.store import whole

MARK = "dGhlLXNlY3JldC1vZi10aGUtdGVzdA"  # in a Secret's data
LABEL = "a-label-of-the-secret-alone"
OLD = "an-old-value-of-a-pod-that-was-replaced"


def files_with(store, text):
    """The files of store and runtime directory with TEXT in any of their bytes."""
    found = []
    for top in (store.path, store.runtime):
        for path in top.rglob("*"):
            if path.is_file() and text.encode() in path.read_bytes():
                found.append(str(path.relative_to(store.directory)))
    return found


def feeds(*names, **settings):
    return [whole(name, **settings) for name in names]


@pytest.fixture
def removed(simulator, store):
    """A store with daemons, a removed feed of Secrets, and a pod with a replaced value."""
    simulator.create("pods", 300, size=3000)
    for i in range(40):
        meta = {"name": f"s-{i}", "namespace": "web", "labels": {"l": f"{LABEL}-{i}"}}
        simulator.put("secrets", {"metadata": meta, "data": {"key": MARK + "AAAA" * (1 + i * 50)}, "type": "Opaque"})
    store.configure(*feeds("pods", "secrets"), retention={"time": "1h"}).daemons()
    store.wait_equal(simulator, "pods")
    store.wait_equal(simulator, "secrets")
    assert files_with(store, MARK) and files_with(store, LABEL)
    store.configure(*feeds("pods"), retention={"time": "1h"})
    store.kinf("reload", check=True)
    eventually(lambda: store.kinf("get", "secrets").status != 0)
    taken(store)
    assert files_with(store, MARK)
    return store


def status(store):
    return store.kinf("status", "-o", "json", check=True).json["store"]


def taken(store):
    """Waits until the index has taken all of the journal."""
    eventually(lambda: (lambda s: s["taken"] == s["lastEvent"])(status(store)))


def gone(store):
    """Asserts that only the names of the Secrets are left."""
    assert files_with(store, MARK) == [] and files_with(store, LABEL) == []


def same(store, before):
    """Asserts that the journal is of the same lineage and history, and in another file."""
    after = status(store)
    for key in ("uuid", "horizon"):
        assert after[key] == before[key], (before, after)
    assert after["lastEvent"] >= before["lastEvent"]
    assert after["journal"]["generation"] > before["journal"]["generation"]
    assert after["index"]["generation"] > before["index"]["generation"]
    for name in ("journal", "index"):
        assert len(list((store.path / name).glob("gen-*"))) == 1
    store.verify()


def test_the_values_of_a_removed_feed_are_gone_from_all_files(simulator, removed):
    before = status(removed)
    simulator.forget_requests()
    result = removed.kinf("compact", check=True)
    assert [line.split(":")[0] for line in result.stdout.splitlines()] == ["journal", "index"], result
    assert "MiB of disk space" in result.stderr and "are free" in result.stderr, result
    gone(removed)
    same(removed, before)
    removed.wait_equal(simulator, "pods")
    simulator.touch("pods", 50)
    removed.wait_equal(simulator, "pods")
    assert not simulator.requests(resource="pods"), "the watch goes on: there is neither a list nor another watch"
    removed.verify()


def database(store, name):
    return store.path / name / (store.path / name / "CURRENT").read_text().strip() / "data.mdb"


def test_without_daemons(simulator, removed):
    removed.stop()
    before = status(removed)
    lengths = [database(removed, name).stat().st_size for name in ("journal", "index")]
    result = removed.kinf("compact", check=True)
    for name, old, line in zip(("journal", "index"), lengths, result.stdout.splitlines(), strict=True):
        assert line == f"{name}: {database(removed, name).stat().st_size / 2**20:.1f} MiB, before {old / 2**20:.1f} MiB", result
    gone(removed)
    same(removed, before)
    simulator.forget_requests()
    simulator.touch("pods", 50)
    removed.daemons()
    removed.wait_equal(simulator, "pods")
    assert not simulator.requests(resource="pods", verb="list")
    removed.verify()


def test_values_that_were_trimmed_are_gone(simulator, store):
    simulator.create("pods", 100, size=500)
    keys = list(simulator.truth("pods"))
    for key in keys[::7]:
        simulator.patch("pods", key, {"metadata": {"annotations": {"note": OLD}}})
    store.start(simulator, whole("pods"), retention={"time": "1s"})
    for key in keys[::7]:
        simulator.patch("pods", key, {"metadata": {"annotations": {"note": "new"}}})
    store.wait_equal(simulator, "pods")
    eventually(lambda: status(store)["horizon"] == status(store)["lastEvent"])
    store.kinf("compact", check=True)
    assert files_with(store, OLD) == []
    store.wait_equal(simulator, "pods")
    store.verify()


def test_no_follower_begins_again(simulator, removed):
    """Followers before, during and after compactions under changes: each event once, no LAPPED, no
    second initial state."""
    follower = removed.follower("watch", "pods", "-o", "json", "--old")
    eventually(lambda: any(line["type"] == "SYNC" for line in follower.lines))
    with_cursor = removed.follower("watch", "pods", "-o", "json", "--old", "--cursor", "mine", name="first")
    eventually(lambda: any(line["type"] == "SYNC" for line in with_cursor.lines))
    for _ in range(4):
        simulator.touch("pods", 60)
        simulator.delete_many("pods", 3)
        simulator.create("pods", 3)
        if with_cursor.running:
            with_cursor.stop()
        removed.kinf("compact", check=True)
        simulator.touch("pods", 20)
    removed.wait_equal(simulator, "pods")
    second = removed.follower("watch", "pods", "-o", "json", "--old", "--cursor", "mine", name="second")
    truth = simulator.truth("pods")
    eventually(lambda: replay(follower.lines) == truth)
    earlier = replay(with_cursor.lines)
    eventually(lambda: replay(second.lines, earlier) == truth)


def test_a_frozen_reader_of_replaced_files_is_shown_until_it_ends(simulator, removed):
    """It keeps the space of unlinked files."""
    reader = removed.process("reader", [program("programs/reader"), "pods"]).start()
    eventually(lambda: reader.lines)
    reader.send(signal.SIGSTOP)
    removed.kinf("compact", check=True)

    def shown():
        return [r for r in removed.kinf("status", "-o", "json", check=True).json["readers"] if r["oldFiles"]]

    eventually(lambda: [(r["name"], r["pid"], r["oldFiles"]) for r in shown()] == [("reader", reader.pid, 2)])
    (entry,) = shown()
    assert entry["snapshots"] and os.path.exists(entry["pinFile"]), entry
    assert re.search(r"(?m)^reader .* old file +/", removed.kinf("status").stdout), removed.kinf("status")
    reader.kill()
    eventually(lambda: not shown())


STEPS = ["compact.slice:1", "compact.filled:1", "compact.switched:1"]


@pytest.mark.parametrize("step", STEPS)
def test_the_reflector_is_killed_at_each_step(simulator, removed, step):
    reflector = removed.processes[0]
    reflector.stop()
    reflector.env["KINF_FAIL"] = f"{step}:kill"
    reflector.start()
    removed.wait_live("pods")
    simulator.forget_requests()
    before = status(removed)
    result = removed.kinf("compact")
    assert result.status == 1 and "ended meanwhile" in result.stderr, result
    reflector.wait()
    del reflector.env["KINF_FAIL"]
    simulator.touch("pods", 30)
    reflector.start()
    removed.wait_equal(simulator, "pods")
    assert not simulator.requests(resource="pods", verb="list")
    assert len(list((removed.path / "journal").glob("gen-*"))) == 1
    assert status(removed)["uuid"] == before["uuid"]
    removed.kinf("compact", check=True)
    gone(removed)
    same(removed, before)


@pytest.mark.parametrize("step", ["index.copy:1", "rebuild.switched:1"])
def test_the_processor_is_killed_at_each_step(simulator, removed, step):
    processor = removed.processes[1]
    processor.stop()
    processor.env["KINF_FAIL"] = f"{step}:kill"
    processor.start()
    taken(removed)
    before = status(removed)
    result = removed.kinf("compact")
    assert result.status == 1 and "ended meanwhile" in result.stderr, result
    processor.wait()
    del processor.env["KINF_FAIL"]
    processor.start()
    removed.wait_equal(simulator, "pods")
    eventually(lambda: len(list((removed.path / "index").glob("gen-*"))) == 1)
    removed.kinf("compact", check=True)
    gone(removed)
    same(removed, before)


@pytest.mark.parametrize("step", [*STEPS, "index.copy:1", "rebuild.switched:1"])
def test_the_command_is_killed_at_each_step_without_daemons(simulator, removed, step):
    removed.stop()
    before = status(removed)
    result = removed.kinf("compact", env={"KINF_FAIL": f"{step}:kill"})
    assert result.status == -signal.SIGKILL, result
    assert removed.objects("pods") == simulator.truth("pods")
    removed.verify()
    removed.kinf("compact", check=True)
    gone(removed)
    same(removed, before)
    simulator.forget_requests()
    removed.daemons()
    removed.wait_equal(simulator, "pods")
    assert not simulator.requests(resource="pods", verb="list")


@pytest.mark.parametrize("step", ["compact.slice:1", "compact.filled:1", "index.copy:1"])
def test_a_full_disk_changes_nothing(simulator, removed, step):
    """Without daemons, and with them: the failure is said, and no second copy is left."""
    removed.stop()
    failing = {"KINF_FAIL": f"{step}:error=ENOSPC"}
    result = removed.kinf("compact", env=failing)
    assert result.status == 1 and "No space left" in result.stderr, result
    for process in removed.processes:
        process.env.update(failing)
        process.start()
    removed.wait_live("pods")  # else the command compacts by itself
    result = removed.kinf("compact")
    assert result.status == 1 and "No space left" in result.stderr, result
    for name in ("journal", "index"):
        assert len(list((removed.path / name).glob("gen-*"))) == 1
    removed.kinf("compact", check=True)  # the point acts once
    gone(removed)


@pytest.mark.parametrize("daemons", [True, False])
def test_an_interrupted_command_leaves_nothing(simulator, removed, daemons):
    """SIGINT while a slice is paused. With daemons the reflector gives the copy up."""
    pause = {"KINF_FAIL": "compact.slice:1:pause=3000"}
    if daemons:
        reflector = removed.processes[0]
        reflector.stop()
        reflector.env.update(pause)
        reflector.start()
        removed.wait_live("pods")
    else:
        removed.stop()
    before = status(removed)
    command = removed.follower("compact", name="compact", env=pause)
    eventually(lambda: len(list((removed.path / "journal").glob("gen-*"))) == 2)
    command.kill(signal.SIGINT)
    eventually(lambda: len(list((removed.path / "journal").glob("gen-*"))) == 1)
    assert status(removed)["journal"]["generation"] == before["journal"]["generation"]
    assert removed.objects("pods") == simulator.truth("pods")
    removed.verify()


def test_a_damaged_record_stops_it(simulator, removed):
    """A copy would make damage look sound."""
    removed.stop()
    (data,) = (removed.path / "journal").glob("gen-*/data.mdb")
    content = data.read_bytes()
    at = content.index(b"containers")
    with open(data, "r+b") as file:
        file.seek(at)
        file.write(b"cOntainers")
    before = status(removed)
    result = removed.kinf("compact")
    assert result.status == 1 and "damaged data" in result.stderr, result
    assert status(removed)["journal"] == before["journal"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("owner, name", [(0, "root"), (54321, "54321")])
def test_another_user_may_not(removed, owner, name):
    removed.stop()
    for directory in [removed.directory, removed.path, removed.path / "journal", removed.path / "index"]:
        directory.chmod(0o755)
    for path in removed.path.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    os.chown(removed.path, owner, owner)
    said = subprocess.run(
        [program("kinf"), "compact", "--store", removed.path],
        user=65534, group=65534, capture_output=True, text=True, timeout=60 * PATIENCE, cwd="/",
        env={"PATH": os.environ["PATH"], "ASAN_OPTIONS": "detect_leaks=0"},
    )
    assert said.returncode == 1 and f"belongs to user {name}: run this as that user" in said.stderr, said


def test_two_at_a_time(simulator, removed):
    first, second = (removed.follower("compact", name=f"compact-{i}") for i in range(2))
    codes = sorted([first.wait(), second.wait()])
    assert codes[0] == 0, [first.log, second.log]
    assert codes[1] == 0 or "already" in first.log + second.log
    removed.wait_equal(simulator, "pods")
    gone(removed)
    removed.verify()
