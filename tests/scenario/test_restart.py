# SPDX-License-Identifier: Apache-2.0
"""Daemons stopped, killed and started again: they list nothing again and lose nothing, and readers continue."""

import contextlib
import fcntl
import os
import re
import shutil
import signal
import socket
import struct
from pathlib import Path

import pytest

from harness import eventually
from harness.follow import replay
from harness.informer import calls, informer, synced, truth
from harness.informer import replay as replay_calls
from harness.process import program
from harness.store import remove_in_use, whole

BOOTS = "0123456789abcdef" * 2, "fedcba9876543210" * 2


@pytest.fixture
def filled(simulator, store):
    """(processor, reflector) with 100 pods listed and watched."""
    simulator.create("pods", 40)
    daemons = store.start(simulator, whole("pods", indexes={"node": "spec.nodeName"}))
    simulator.wait_watching("pods")
    simulator.forget_requests()
    return daemons


def lists(simulator):
    return simulator.counters("pods")["lists"]


def change(simulator):
    simulator.touch("pods", 20)
    simulator.delete_many("pods", 5)
    simulator.create("pods", 5, from_=1000)


# ---- no list ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_restart_of_both_daemons_lists_nothing(simulator, store, filled, how):
    processor, reflector = filled
    for process in (reflector, processor):
        process.kill(how)
    change(simulator)
    for process in (reflector, processor):
        process.start()
    store.wait_equal(simulator, "pods")
    assert lists(simulator) == 0
    store.verify()


def grows(follower):
    """Waits until it has printed more. Not by its lines: on a busy machine they become more faster
    than they are read."""
    size = follower.out_path.stat().st_size
    eventually(lambda: follower.out_path.stat().st_size > size)


@pytest.mark.parametrize("victim", ["reflector", "processor"])
def test_c58_a_killed_daemon_loses_and_repeats_nothing(simulator, store, filled, victim):
    follower = store.follower("watch", "pods", "-o", "json", "--old")
    eventually(lambda: "SYNC" in follower.out)
    process = dict(zip(("processor", "reflector"), filled))[victim]
    simulator.churn("pods", 200, 30)
    for _ in range(4):
        grows(follower)
        process.kill()
        process.start()
    grows(follower)
    simulator.churn("pods", 0)
    store.wait_equal(simulator, "pods")
    truth = simulator.truth("pods")
    eventually(lambda: replay(follower.lines) == truth)
    assert lists(simulator) == 0
    store.verify()


def test_a_quiet_feed_resumes_from_its_last_bookmark(simulator, store, filled):
    """Other resources change until the server has forgotten the feed's last event; only bookmarks move its version."""
    _, reflector = filled
    simulator.create("nodes", 20)
    simulator.bookmark()
    eventually(lambda: store.feed_status("pods")["resourceVersion"] == simulator.rv)
    reflector.kill()
    simulator.compact()
    reflector.start()
    simulator.wait_watching("pods")
    assert lists(simulator) == 0


def test_c59_a_forgotten_version_leads_to_one_list(simulator, store, filled):
    _, reflector = filled
    reflector.kill()
    change(simulator)
    simulator.compact()
    reflector.start()
    store.wait_equal(simulator, "pods")
    assert lists(simulator) == 1
    store.verify()


# ---- readers ---------------------------------------------------------------------------------------


def test_reads_work_while_the_daemons_are_down(simulator, store, filled):
    truth = simulator.truth("pods")
    for process in filled:
        process.kill()
    assert store.objects("pods") == truth
    result = store.kinf("get", "pods", "-o", "count", check=True)
    assert result.stdout == "40\n" and "note: pods: " in result.stderr, result
    wanted = [key for key, obj in truth.items() if obj["spec"].get("nodeName") == "node-1"]
    assert wanted and list(store.objects("pods", "--index", "node=node-1")) == wanted
    state = store.feed_status("pods")
    assert state["state"] == "offline" and state["objects"] == 40, state
    store.verify()
    for process in filled:
        process.start()
    store.wait_live("pods")


def test_a_stopped_processor_shows_as_lag(simulator, store, filled):
    processor, _ = filled
    processor.kill()
    old = store.objects("pods")
    simulator.touch("pods", 30)
    eventually(lambda: store.feed_status("pods")["lag"] >= 30)
    assert store.objects("pods") == old
    processor.start()
    store.wait_equal(simulator, "pods")
    assert store.feed_status("pods")["lag"] == 0


# ---- lost files ------------------------------------------------------------------------------------


@pytest.fixture
def supervised(simulator, store):
    """`kinf run` with a live feed of pods; counters of requests are at 0."""
    simulator.create("pods", 50)
    supervisor = store.configure(whole("pods")).run()
    store.wait_equal(simulator, "pods")
    simulator.wait_watching("pods")
    simulator.forget_requests()
    return supervisor


def remove_runtime(store):
    """Empties the runtime directory. A daemon started meanwhile may have made it again."""
    remove_in_use(store.runtime)
    store.runtime.mkdir(mode=0o700, exist_ok=True)


def files_of(store):
    return {path.name for path in store.runtime.glob("kinf-*/*")}


def ended_for(supervisor):
    """The files and directories named in the daemons' logs as their reason to end."""
    return re.findall(r" error daemon_ended .*changed while in use \('([^']+)' was removed or replaced", supervisor.log)


def test_long_readers_find_the_runtime_directory_that_daemons_made_again(simulator, store, supervised):
    """The directory is removed while daemons run, and again between two runs of them. A follower
    sees the feed live again meanwhile, not 'offline' for ever, and keeps its cursor."""
    reader = synced(informer(store, "--cursor", "long"))

    def state():
        return calls(reader, "state")[-1]["state"]

    def up_to_date():
        return replay_calls(reader.lines) == truth(simulator) and state() == "live"

    eventually(lambda: state() == "live")
    before = files_of(store)
    assert before >= {"delta.ring", "index.taken", "stats.reflector", "stats.processor", "doorbell.sock"}, before
    remove_runtime(store)
    remove_in_use(store.path / "cursors")
    eventually(lambda: files_of(store) == before, what="all files made again")
    change(simulator)
    eventually(up_to_date)
    eventually(lambda: (store.path / "cursors" / "long").exists())
    assert len(ended_for(supervised)) >= 2, supervised.tail()  # each of them, perhaps twice
    supervised.stop()
    eventually(lambda: state() == "offline")
    remove_runtime(store)
    supervised.start()
    change(simulator)
    eventually(up_to_date)
    assert lists(simulator) == 0


def test_follower_without_its_cursors_directory_makes_it(simulator, store, filled):
    """The directory is removed repeatedly while the follower writes its cursor."""
    reader = synced(informer(store, "--cursor", "long"))
    cursor = store.path / "cursors" / "long"
    eventually(cursor.exists)

    def caught_up():
        # A daemon ends with 75 if it notices the removal, and its successor makes the directory
        # too. It does not notice if another process made the directory again meanwhile and the file
        # system reused the inode.
        for process in filled:
            if not process.running:
                assert process.wait() == 75, process.tail()
                process.start()
        return cursor.exists() and replay_calls(reader.lines) == truth(simulator)

    for _ in range(5):
        shutil.rmtree(store.path / "cursors", ignore_errors=True)
        change(simulator)
        eventually(caught_up)
    assert reader.running, reader.tail()


@pytest.mark.parametrize("removed", [False, True])
def test_a_daemon_waits_for_one_that_is_ending(simulator, store, filled, removed):
    """An ending daemon holds both locks of the runtime directory during its removal."""
    processor, reflector = filled
    assert reflector.stop() == 0 and processor.stop() == 0
    runtime = Path((store.path / "runtime").read_text().rstrip("\n"))
    runtime.mkdir(mode=0o700)
    ending = os.open(runtime / "reflector.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.fcntl(ending, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    reflector.start()
    shown = store.path / "reflector.lock"
    eventually(lambda: shown.read_text() == f"{reflector.pid}\n")
    assert reflector.running
    if removed:
        shutil.rmtree(runtime)
    os.close(ending)
    if removed:
        assert reflector.wait() == 75 and "was removed by a daemon that ended" in reflector.log
        reflector.start()
    processor.start()
    simulator.touch("pods", 3)
    store.wait_equal(simulator, "pods")


@pytest.fixture
def boot(store, monkeypatch):
    """boot(ID): simulates a boot of the machine by another boot id for all processes; starts both daemons."""

    def boot(boot_id):
        monkeypatch.setenv("KINF_BOOT_ID", boot_id)
        return store.daemons()

    return boot


def test_feeds_are_listed_again_after_a_power_cut(simulator, store, boot):
    simulator.create("pods", 50)
    store.configure(whole("pods"))
    daemons = boot(BOOTS[0])
    store.wait_equal(simulator, "pods")
    for process in daemons:
        process.kill()
    # Readers check a journal from before the power cut, daemons do not trust it.
    checked = store.kinf("get", "pods", "-o", "name", env={"KINF_BOOT_ID": BOOTS[1]}, check=True)
    assert len(checked.stdout.split()) == 50 and "machine stopped" in checked.stderr, checked
    simulator.forget_requests()
    processor, reflector = boot(BOOTS[1])
    eventually(lambda: lists(simulator) == 1)  # until then the old store may still be read
    store.wait_equal(simulator, "pods")
    assert lists(simulator) == 1
    assert re.search(r"machine stopped", reflector.log), reflector.log


def test_an_orderly_reboot_lists_nothing(simulator, store, boot):
    simulator.create("pods", 50)
    store.configure(whole("pods"))
    daemons = boot(BOOTS[0])
    store.wait_equal(simulator, "pods")
    for process in reversed(daemons):
        process.stop()
    shutil.rmtree(store.runtime)
    store.runtime.mkdir(mode=0o700)
    simulator.forget_requests()
    simulator.touch("pods", 5)
    boot(BOOTS[1])
    store.wait_equal(simulator, "pods")
    assert lists(simulator) == 0


def test_a_durable_store_survives_a_power_cut(simulator, store, boot):
    simulator.create("pods", 50)
    store.configure(whole("pods"), durability="disk")
    daemons = boot(BOOTS[0])
    store.wait_equal(simulator, "pods")
    for process in daemons:
        process.kill()
    simulator.forget_requests()
    simulator.touch("pods", 5)
    boot(BOOTS[1])
    store.wait_equal(simulator, "pods")
    assert lists(simulator) == 0


# ---- directories removed while in use --------------------------------------------------------------


@pytest.mark.parametrize("part", ["store", "journal"])
def test_daemons_end_when_their_store_is_removed_and_make_it_again(simulator, store, part):
    """Otherwise they would write for ever into unlinked files."""
    simulator.create("pods", 20)
    store.configure(whole("pods"))
    supervisor = store.run()
    store.wait_equal(simulator, "pods")
    remove_in_use(store.path if part == "store" else store.path / part)
    simulator.touch("pods", 5)
    store.wait_equal(simulator, "pods")
    store.verify()
    assert supervisor.running
    ended = ended_for(supervisor)
    assert len(ended) == 2 and ended[0] == (str(store.path) if part == "store" else "journal"), ended  # one of each daemon


# ---- a reader that is stopped while it opens the store ---------------------------------------------


def test_a_reader_stopped_while_it_opens_the_store_stops_nobody(simulator, store, filled):
    """Neither a starting daemon nor other readers wait for it. Then it goes on."""
    processor, reflector = filled

    def uuid():
        return re.search(r"(?m)^uuid (\w+)$", (store.path / "journal" / "gen-1" / "STATE").read_text())[1]

    before = uuid()
    readers = [store.follower("get", "pods", "-o", "json", name=f"get-{part}", env={"KINF_FAIL": f"{part}.open:1:stop"})
               for part in ("journal", "index")]
    eventually(lambda: all(reader.stopped for reader in readers))
    for daemon in (reflector, processor):
        daemon.kill()
        daemon.start()
    change(simulator)
    store.wait_equal(simulator, "pods")
    assert lists(simulator) == 0 and uuid() == before
    assert "journal_locked" not in reflector.log and "index_building" not in processor.log.split("daemon_started")[-1]
    for reader in readers:
        reader.send(signal.SIGCONT)
        assert reader.wait() == 0
    store.verify()


# ---- order and exclusion ---------------------------------------------------------------------------


def test_no_start_order_is_needed(simulator, store):
    simulator.create("pods", 20)
    store.configure(whole("pods"))
    waiting = store.follower("wait", "pods", "--timeout", "2m")
    follower = store.follower("watch", "pods", "-o", "json", name="early")
    processor = store.processor()
    eventually(lambda: (store.runtime.exists() and list(store.runtime.iterdir())) or not processor.running)
    store.reflector()
    store.wait_equal(simulator, "pods")
    assert waiting.wait() == 0 and processor.running
    # The follower waits for the feed if the store existed when it opened it; otherwise it ends with an error.
    eventually(lambda: "SYNC" in follower.out or (not follower.running and "no store" in follower.log))


def test_a_second_daemon_of_the_same_role_is_refused(simulator, store, filled):
    for start in (store.reflector, store.processor):
        second = start()
        assert second.wait() > 0, second.tail()
    assert all(process.running for process in filled)
    change(simulator)
    store.wait_equal(simulator, "pods")


# ---- kinf run --------------------------------------------------------------------------------------


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes a user who may have one process only")
def test_daemons_that_cannot_be_started_are_tried_again_after_growing_pauses(store):
    """Twenty lines a second were logged."""
    store.configure("pods")
    os.chmod(store.directory, 0o777)
    user = ["setpriv", "--reuid", "54399", "--regid", "54399", "--clear-groups", "prlimit", "--nproc=1"]
    supervisor = store.process("limited", [*user, program("kinf"), "run", "--config", store.config]).start()
    line = r"(?m)^\S+T(\d+):(\d+):(\S+)Z warning child_not_started daemon=\"kinf-reflector\" error=\"Resource temporarily unavailable\""
    times = eventually(lambda: len(found := re.findall(line, supervisor.log)) >= 4 and found, what="the fourth start")
    seconds = [3600 * int(hour) + 60 * int(minute) + float(second) for hour, minute, second in times]
    assert (seconds[3] - seconds[0]) % 86400 >= 0.6, seconds
    supervisor.kill()  # LeakSanitizer would need one more process to look for leaks



def children(supervisor):
    """{program: pid} of its child processes."""
    with open(f"/proc/{supervisor.pid}/task/{supervisor.pid}/children") as pids:
        found = [int(pid) for pid in pids.read().split()]
    names = {}
    for pid in found:
        with open(f"/proc/{pid}/cmdline", "rb") as cmdline:
            names[os.path.basename(cmdline.read().split(b"\0")[0].decode())] = pid
    return names


def wait_children(supervisor, other_than=()):
    """Waits for both daemons, with pids outside OTHER_THAN; returns {program: pid}."""
    def both():
        found = children(supervisor)  # a just forked child is still called kinf
        daemons = found.keys() == {"kinf-reflector", "kinf-processor"}
        return daemons and not set(found.values()) & set(other_than) and found
    return eventually(both)


def gone(pid):
    """True if the process has ended, even if its parent has not waited for it yet."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_run_starts_both_and_terminates_them(simulator, store):
    simulator.create("pods", 50)
    supervisor = store.configure(whole("pods")).run()
    store.wait_equal(simulator, "pods")
    pids = wait_children(supervisor)
    assert set(pids) == {"kinf-reflector", "kinf-processor"}
    with open(f"/proc/{supervisor.pid}/maps") as maps:
        mapped = maps.read()
    assert "data.mdb" not in mapped and ".ring" not in mapped
    assert supervisor.stop(5) == 0, supervisor.tail()
    assert all(gone(pid) for pid in pids.values())
    simulator.forget_requests()
    supervisor.start()
    store.wait_live("pods")
    assert lists(simulator) == 0


@pytest.mark.parametrize("victim", ["kinf-reflector", "kinf-processor"])
def test_run_restarts_a_killed_daemon_and_logs_the_signal(simulator, store, victim):
    simulator.create("pods", 50)
    supervisor = store.configure(whole("pods")).run()
    store.wait_equal(simulator, "pods")
    before = wait_children(supervisor)
    os.kill(before[victim], signal.SIGKILL)
    supervisor.wait_log(rf"{victim}.*(signal.?9|SIGKILL|[Kk]illed)")
    change(simulator)
    store.wait_equal(simulator, "pods")
    after = wait_children(supervisor)
    assert after[victim] != before[victim] and len(set(before.values()) & set(after.values())) == 1
    assert lists(simulator) == 1


def test_daemons_end_when_their_supervisor_is_killed(simulator, store):
    simulator.create("pods", 5)
    supervisor = store.configure(whole("pods")).run()
    store.wait_equal(simulator, "pods")
    pids = wait_children(supervisor)
    supervisor.kill()
    eventually(lambda: all(gone(pid) for pid in pids.values()), what="the daemons' end")
    supervisor.start()
    store.wait_live("pods")


@pytest.mark.parametrize("first", ["run", "reflector", "processor"])
def test_a_second_run_names_the_running_process_and_ends(simulator, store, first):
    simulator.create("pods", 5)
    store.configure(whole("pods"))
    if first == "run":
        holders = wait_children(store.run())
        store.wait_equal(simulator, "pods")
    else:
        holder = getattr(store, first)()
        holder.wait_log("journal_created|daemon_started")
        holders = {f"kinf-{first}": holder.pid}
    second = store.run()
    assert second.wait() == 69, second.tail()
    assert "child_died" not in second.log, "it waits for the store before it starts anything"
    said = re.search(r"^Error: store .* is in use: (\S+) runs there as process (\d+); stop it", second.log, re.M)
    assert said and holders.get(said[1]) == int(said[2]), second.tail()
    assert not any(gone(pid) for pid in holders.values())


def test_a_processor_that_waits_for_a_journal_ends_when_it_is_told_to(store):
    processor = store.configure("pods").processor()
    processor.wait_log("journal_awaited")
    eventually(lambda: any(p["state"] == "waiting for a journal" for p in store.kinf("status", "-o", "json").json["processes"]))
    assert processor.stop() == 0, processor.tail()


def test_terminated_daemons_end_in_the_middle_of_a_list(simulator, store, filled):
    """The server has sent the beginning of a list and is silent."""
    stuck = simulator.fault(verb="list", hold=True, stallAt=10)
    simulator.down()
    simulator.touch("pods", 1)
    simulator.compact()
    simulator.up()
    eventually(lambda: simulator.fault_hits(stuck) == 1, what="a list that hangs")
    for process in reversed(filled):
        assert process.stop(5) == 0, process.tail()


# ---- daemons that hang -----------------------------------------------------------------------------


@pytest.fixture
def manager(store):
    """messages(): messages of processes to the service manager so far."""
    path = store.directory / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(path))
        listener.setblocking(False)
        received = []

        def messages():
            with contextlib.suppress(BlockingIOError):
                while True:
                    received.append(listener.recv(4096).decode())
            return received

        yield messages


@pytest.mark.parametrize("name", ["kinf-reflector", "kinf-processor"])
def test_a_daemon_that_hangs_is_started_again(simulator, store, name):
    """kinf run logs the daemon, the time and the way; the other daemon goes on."""
    simulator.create("pods", 5)
    store.configure(whole("pods"), hangLimit="5s")
    supervisor = store.run()
    store.wait_equal(simulator, "pods")
    pids = {process["name"]: process["pid"] for process in store.kinf("status", "-o", "json").json["processes"]}
    os.kill(pids[name], signal.SIGSTOP)
    supervisor.wait_log(rf'child_hung daemon="{name}" pid={pids[name]} silent_seconds=.* doing="stopped by a signal" state="')
    supervisor.wait_log(rf'child_died daemon="{name}" pid={pids[name]} ')
    simulator.touch("pods", 5)
    store.wait_equal(simulator, "pods")
    store.wait_live("pods")
    after = {process["name"]: process["pid"] for process in store.kinf("status", "-o", "json").json["processes"]}
    assert [other for other in pids if after[other] != pids[other]] == [name], (pids, after)


# ---- runtime directories ---------------------------------------------------------------------------


def runtimes(parent):
    return sorted(path.name for path in parent.iterdir())


@pytest.mark.parametrize("order", [["reflector", "processor"], ["processor", "reflector"], ["run"]])
def test_the_last_daemon_removes_the_runtime_directory(simulator, store, order):
    """It is memory; the store remembers the last contact by itself."""
    simulator.create("pods", 5)
    store.configure(whole("pods"))
    running = {name: getattr(store, name)() for name in order}
    store.wait_equal(simulator, "pods")
    assert len(runtimes(store.runtime)) == 1
    for name in order:
        assert len(runtimes(store.runtime)) == 1, "another daemon uses it"
        assert running[name].stop() == 0
    assert runtimes(store.runtime) == []
    status = store.kinf("status", "-o", "json", check=True).json
    assert {process["state"] for process in status["processes"]} == {"not running"}, status
    assert status["feeds"][0]["state"] == "offline" and status["feeds"][0]["lastContactSeconds"] >= 0, status
    assert len(store.objects("pods")) == 5
    for name in order:
        running[name].start()
    store.wait_live("pods")


# ---- the service manager ---------------------------------------------------------------------------


def run_notifying(store):
    return store.run(env={"NOTIFY_SOCKET": str(store.directory / "notify"), "KINF_DEATH_FD": ""})


def ready(messages):
    return eventually(lambda: [m for m in messages() if "READY=1" in m], what="READY=1")


def test_run_is_ready_when_readers_get_answers(simulator, store, manager):
    simulator.create("pods", 50)
    stuck = simulator.fault(verb="list", resource="pods", delayMs=60000)
    store.configure("pods", "configmaps")
    run_notifying(store)
    waiting = eventually(lambda: [m for m in manager() if "STATUS=listing: 1 of 2 feeds" in m], what="its progress")
    assert "EXTEND_TIMEOUT_USEC=" in waiting[0] and not any("READY=1" in m for m in manager())
    simulator.clear_faults(stuck)
    simulator.drop()
    ready(manager)
    eventually(lambda: [m for m in manager() if m.endswith("STATUS=2 feeds up to date")], what="all feeds in words")
    assert store.kinf("get", "pods", "-o", "count", check=True).stdout == "50\n"
    simulator.down()
    eventually(lambda: [m for m in manager() if m.startswith("STATUS=") and "refused" in m], what="the outage in words")
    assert len([m for m in manager() if "READY=1" in m]) == 1, "only the main process speaks"


def test_run_is_ready_when_it_knows_why_it_has_no_answers(simulator, store, manager):
    simulator.down()
    store.configure("pods")
    run_notifying(store)
    assert "refused" in ready(manager)[0]


def test_the_supervisor_feeds_the_service_managers_watchdog(simulator, store, manager):
    simulator.create("pods", 5)
    store.configure(whole("pods"))
    supervisor = store.run(env={"NOTIFY_SOCKET": str(store.directory / "notify"), "KINF_DEATH_FD": ""})
    store.wait_equal(simulator, "pods")
    pids = [process["pid"] for process in store.kinf("status", "-o", "json").json["processes"]]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)  # so only the supervisor can send
    messages = manager()
    seen = len(messages)
    eventually(lambda: manager()[seen:].count("WATCHDOG=1") >= 2)
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    assert supervisor.stop() == 0
