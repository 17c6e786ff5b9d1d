# SPDX-License-Identifier: Apache-2.0
"""Truncated and damaged files, full disks: programs report the fault, do not crash, and serve nothing wrong."""

import os
import random
import re
import signal
import shutil
import struct

import pytest

from harness import eventually
from harness.follow import replay, since_lapped
from harness.informer import informer as start_informer
from harness.informer import replay as replay_calls
from harness.informer import synced
from harness.informer import truth as versions
from harness.process import program, run_command
from harness.serve import Serve
from harness.store import whole

# 70: a command prints the reason of a SIGBUS or SIGSEGV in a mapped file.
CLEAN = (0, 1, 70)


@pytest.fixture(scope="module")
def sound(shared):
    """(store, truth): a store after an ordered stop of its daemons, and the objects in it."""
    simulator = shared.simulator()
    simulator.create("pods", 120, size=1500)
    store = shared.store(simulator=simulator)
    daemons = store.start(simulator, whole("pods", indexes={"node": "spec.nodeName"}), mapSize="64MiB")
    simulator.touch("pods", 40)
    simulator.delete_many("pods", 10)
    store.wait_equal(simulator, "pods")
    for process in reversed(daemons):
        process.stop()
    return store, simulator.truth("pods")


@pytest.fixture
def damaged(sound, tmp_path):
    """damaged(): a new copy of the sound store."""
    store, _ = sound

    def copy():
        target = tmp_path / "copy"
        shutil.rmtree(target, ignore_errors=True)
        return store.copy(target)

    return copy


def databases(path):
    return {name: path / name / "gen-1" / "data.mdb" for name in ("journal", "index")}


def check_reads(sound, path):
    """Runs each reading command: it must end by itself and print only true objects. Returns the failed ones."""
    store, truth = sound
    here = ["--store", str(path)]
    failed = []
    for command in (
        ["get", "pods", "-o", "json"],
        ["get", "pods", "--index", "node=node-1", "-o", "json"],
        ["index", "pods", "node"],
        ["verify", "--deep"],
        ["dump", "journal"],
    ):
        result = store.kinf(*command, *here, timeout=20)
        assert result.status in CLEAN, result
        if result.status != 0:
            failed.append(command[0])
            assert result.stderr or command[0] == "verify", result
        if command[0] == "get" and result.status == 0:
            for obj in result.json["items"]:
                key = f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
                assert truth[key] == obj, f"wrong object served: {key}"
        if command == ["get", "pods", "-o", "json"] and result.status == 0:
            assert len(result.json["items"]) == len(truth), "objects are missing without an error"
    return failed


@pytest.mark.parametrize("name", ["journal", "index"])
def test_readers_of_a_truncated_database_fail_cleanly(sound, damaged, name):
    file = databases(damaged())[name]
    size = file.stat().st_size
    used = file.stat().st_blocks * 512
    for left in (0, 1, 4095, 4096, 8192, 40960, used // 4, used // 2, used - 4096):
        path = damaged()
        os.truncate(databases(path)[name], min(left, size))
        failed = check_reads(sound, path)
        assert failed or left > used // 4, left  # the last pages may be unused


@pytest.mark.parametrize("name", ["journal", "index"])
@pytest.mark.parametrize("seed", range(3))
def test_readers_of_a_database_with_a_flipped_bit_serve_nothing_wrong(sound, damaged, name, seed):
    """Of an object's rows: each has its key, and the same checksum covers the rest."""
    chance = random.Random(seed)
    keys = sorted(sound[1])
    key = chance.choice([key for key, after in zip(keys, [*keys[1:], ""]) if not after.startswith(key)]).encode()
    at, bit = chance.randrange(len(key) + 16), 1 << chance.randrange(8)
    file = databases(damaged())[name]
    data = bytearray(file.read_bytes())
    places = [found.start() + at for found in re.finditer(re.escape(key), data)]
    assert places
    for place in places:
        data[place] ^= bit
    file.write_bytes(data)
    assert "verify" in check_reads(sound, file.parents[2]), (key, at, bit)


@pytest.mark.parametrize(
    "name, text",
    [("id", "rubbish\n"), ("id", ""), ("journal/CURRENT", "gen-7\n"), ("index/CURRENT", "../../etc\n"), ("index/CURRENT", ""),
     ("journal/gen-1/STATE", ""), ("index/gen-1/STATE", "x" * 100000), ("journal/gen-1/STATE", "kinf-state 99\n")],
)
def test_readers_of_broken_small_files_fail_cleanly(sound, damaged, name, text):
    path = damaged()
    (path / name).write_text(text)
    # Readers ignore journal/CURRENT: they open the journal named by the index.
    assert check_reads(sound, path) or name == "journal/CURRENT"


@pytest.fixture
def closed(simulator, store):
    """A store of 60 pods. Its daemons have stopped in order."""
    simulator.create("pods", 60)
    daemons = store.start(simulator, whole("pods"), mapSize="64MiB")
    for process in reversed(daemons):
        process.stop()
    return store


@pytest.mark.parametrize(
    "file, how",
    [("STATE", "removed"), ("STATE", "directory"), ("data.mdb", "removed"), ("data.mdb", "rubbish"), ("data.mdb", "cut"), ("data.mdb", "directory"),
     ("lock.mdb", "rubbish"), ("hints", "rubbish"), ("../CURRENT", "removed"), (".", "removed"), (".", "rubbish")],
)
def test_an_index_without_a_file_is_built_again_without_the_api_server(simulator, closed, file, how):
    spoil(closed.path / "index" / "gen-1" / file, how)
    closed.processor()  # alone: nothing can be listed
    closed.wait_equal(simulator, "pods")
    closed.verify()


@pytest.mark.parametrize(
    "file, how",
    [("STATE", "removed"), ("data.mdb", "removed"), ("data.mdb", "rubbish"), ("data.mdb", "cut"), ("../CURRENT", "rubbish"), (".", "removed")],
)
def test_a_journal_without_a_file_is_listed_again(simulator, closed, file, how):
    spoil(closed.path / "journal" / "gen-1" / file, how)
    supervisor = closed.run()
    simulator.touch("pods", 5)
    closed.wait_equal(simulator, "pods")
    assert supervisor.running
    closed.verify()


@pytest.mark.parametrize("name", ["journal", "index"])
@pytest.mark.parametrize("file", ["STATE", "data.mdb"])
@pytest.mark.parametrize("how", ["removed", "rubbish"])
def test_a_file_that_is_spoiled_under_running_daemons_is_made_again(simulator, store, name, file, how):
    """STATE is written again within a second; another data.mdb is built or listed."""
    simulator.create("pods", 60)
    store.configure(whole("pods"), mapSize="64MiB")
    supervisor = store.run()
    store.wait_equal(simulator, "pods")
    path = store.path / name / "gen-1" / file
    if how == "rubbish" and file == "data.mdb":
        path.rename(path.with_name("old"))  # its own inode stays as it is
        path.write_bytes(b"rubbish" * 1000)
    else:
        spoil(path, how)
    if file == "STATE":
        eventually(lambda: path.exists() and path.read_text().startswith("kinf-generation"))
    simulator.touch("pods", 5)
    store.wait_equal(simulator, "pods")
    assert supervisor.running
    store.verify()
    assert (file == "STATE") == ((store.path / name / "CURRENT").read_text() == "gen-1\n")


@pytest.fixture
def killed(simulator, store):
    """A store whose daemons were killed during changes of objects."""
    simulator.create("pods", 200, size=3000)
    daemons = store.start(simulator, whole("pods", indexes={"node": "spec.nodeName"}), mapSize="64MiB")
    simulator.touch("pods", 50)
    store.wait_equal(simulator, "pods")
    for process in daemons:
        process.kill()
    return store


def test_the_copy_of_a_store_whose_daemons_were_killed_is_checked_and_read(simulator, killed):
    copy = killed.directory / "copy"
    shutil.copytree(killed.path, copy)
    result = killed.kinf("get", "pods", "-o", "json", "--store", copy, check=True)
    assert len(result.json["items"]) == 200
    notes = [line for line in result.stderr.splitlines() if "was checked, and no fault was found" in line]
    assert len(notes) == 1, result.stderr
    assert killed.kinf("verify", "--deep", "--store", copy).status == 0
    assert killed.kinf("dump", "journal", "--store", copy).status == 0
    # Nothing was written to it.
    again = killed.directory / "again"
    shutil.copytree(killed.path, again)
    for file in again.rglob("data.mdb"):
        assert file.read_bytes() == (copy / file.relative_to(again)).read_bytes()


def test_daemons_on_the_copy_of_a_killed_store_list_again(simulator, killed):
    """Neither database is used: the reflector makes a journal, and the processor an index from it."""
    copy = killed.directory / "copy"
    shutil.copytree(killed.path, copy)
    shutil.rmtree(killed.path)
    copy.rename(killed.path)
    processor, _ = killed.daemons()
    simulator.touch("pods", 5)
    killed.wait_equal(simulator, "pods")
    killed.wait_live("pods")
    killed.verify()
    assert " work_failed " not in processor.log, processor.log


def test_verify_names_a_file_that_only_the_reflector_reads(damaged):
    """Readers go by the index; but the next reflector would make a new journal."""
    path = damaged()
    for text in ("gen-x\n", None):
        (path / "journal" / "CURRENT").unlink()
        if text:
            (path / "journal" / "CURRENT").write_text(text)
        result = run_command([program("kinf"), "verify", "--store", path])
        assert result.status == 1 and "CURRENT" in result.stdout and ": 1 fault\n" in result.stderr, result


def test_a_journal_that_ends_its_reflector_is_given_up(simulator, killed):
    """A row read at each start of the daemon: each start would end at it. The objects are listed again."""
    journal = databases(killed.path)["journal"]
    data = bytearray(journal.read_bytes())
    places = [found.end() for found in re.finditer(rb"\x00\x00\x00\x01ns-\d+/pod-\d+(?=.{6}\x00\x00\x24\x00)", data)]
    assert places
    for place in places:  # the size of the uid in the head of each object
        data[place + 8] = 0xFF
    journal.write_bytes(data)
    simulator.touch("pods", 40)
    reflector = killed.reflector()
    assert reflector.wait() != 0 and "damaged data" in reflector.log, reflector.tail()
    killed.daemons()
    killed.wait_equal(simulator, "pods")
    killed.wait_live("pods")
    assert "a daemon met damage in it" in reflector.log, reflector.tail()
    killed.verify()


def test_an_index_at_which_the_processor_aborted_is_built_again(simulator, killed):
    """LMDB ends the process by an assertion: the next one would meet it too."""
    (killed.path / "index/gen-1/damaged").write_text("an assertion\n")
    assert len(killed.objects("pods")) == len(simulator.truth("pods"))  # readers don't write, and need not be refused
    processor = killed.processor()
    killed.reflector()
    killed.wait_live("pods")
    killed.wait_equal(simulator, "pods")
    assert re.search(r"index_building .*a daemon met damage in it: an assertion", processor.log), processor.tail()
    killed.verify()


def test_a_damaged_copy_of_a_killed_store_is_shown_as_far_as_it_is_good(killed):
    """The faults are named, the rest is shown, and the status is 1."""
    copy = killed.directory / "copy"
    shutil.copytree(killed.path, copy)
    journal = copy / "journal" / "gen-1" / "data.mdb"
    with open(journal, "r+b") as file:
        data = file.read()
        file.seek(data.index(b"pod-7\xa9") if b"pod-7\xa9" in data else len(data) // 2 // 4096 * 4096 + 600)
        file.write(b"\xff" * 64)
    verify = killed.kinf("verify", "--store", copy)
    assert verify.status == 1 and verify.stdout
    dump = killed.kinf("dump", "journal", "--store", copy)
    assert dump.status == 1 and len(dump.stdout.splitlines()) > 50 and "fault" in dump.stderr, dump
    got = killed.kinf("get", "pods", "-o", "count", "--store", copy)
    assert got.status == 1 and "fault" in got.stderr, got
    metrics = killed.kinf("metrics", "--store", copy)
    assert metrics.status == 1 and "copied while its daemons wrote" in metrics.stderr, metrics
    assert "kinf_store_error 1\n" in metrics.stdout and 'kinf_feed_objects{feed="pods"} 200\n' in metrics.stdout, metrics
    top = killed.kinf("top", "--once", "--store", copy)
    assert top.status == 1 and "copied while its daemons wrote" in top.stderr and "pods" in top.stdout, top


def test_a_journal_of_a_newer_version_is_named(sound, damaged):
    """The message used to be: there is no index yet."""
    store = sound[0]
    state = damaged() / "journal" / "gen-1" / "STATE"
    state.write_text(state.read_text().replace("kinf-generation 1", "kinf-generation 9"))
    for command in ("get pods", "export", "backup x.tar"):
        result = store.kinf(*command.split(), "--store", state.parents[2])
        assert result.status == 1 and "format" in result.stderr and "no index" not in result.stderr, result


def test_a_copy_with_a_cut_index_says_what_makes_another(sound, damaged):
    """From its journal, without daemons and API server."""
    store, truth = sound
    path = damaged()
    (data,) = (path / "index").glob("gen-*/data.mdb")
    os.truncate(data, 3 * 4096)
    result = store.kinf("get", "pods", "--store", path)
    assert result.status == 1 and "was cut" in result.stderr and "'kinf rebuild-index' makes another" in result.stderr, result
    assert store.kinf("rebuild-index", "--store", path).status == 0
    assert len(store.kinf("get", "pods", "-o", "json", "--store", path, check=True).json["items"]) == len(truth)


def test_a_copy_with_a_damaged_current_file_is_read(sound, damaged):
    """The index names its journal, and the command finds it."""
    store, truth = sound
    path = damaged()
    (path / "journal/CURRENT").write_text("rubbish\n")
    assert len(store.kinf("get", "pods", "-o", "json", "--store", path, check=True).json["items"]) == len(truth)
    (path / "index/CURRENT").write_text("rubbish\n")
    result = store.kinf("get", "pods", "--store", path)
    assert result.status == 1 and "CURRENT names no generation: the daemons make it again" in result.stderr, result


@pytest.fixture
def torn(simulator, killed):
    """As a copy made while daemons wrote, of the journal first."""
    copy = killed.directory / "copy"
    journal = killed.directory / "journal-of-then"
    shutil.copytree(killed.path / "journal", journal)
    killed.daemons()
    simulator.touch("pods", 30)
    simulator.delete("pods", "ns-3/pod-3")
    simulator.create("pods", 2, from_=500, size=3000)
    killed.wait_equal(simulator, "pods")
    for process in killed.processes:
        process.kill()
    shutil.copytree(killed.path, copy)
    shutil.rmtree(copy / "journal")
    shutil.copytree(journal, copy / "journal")
    return copy


def test_a_copy_whose_index_is_newer_than_its_journal_shows_what_both_have(simulator, killed, torn):
    """Each object shown is the newest one. Each other one is named, and so are the missing events."""
    truth = simulator.truth("pods")
    reason = r"index: the index has taken event \d+, and the journal ends at event \d+"
    verify = killed.kinf("verify", "--store", torn)
    assert verify.status == 1 and re.fullmatch(reason, verify.stdout.splitlines()[0]), verify
    status = killed.kinf("status", "--store", torn)
    assert status.status == 1 and "nothing is watched" not in status.stderr, status
    assert re.search(f"machine stopped: \\d+ faults, the first: {reason}; 'kinf verify'", status.stdout)
    for order in ([], ["--sort-by", "metadata.uid"], ["--index", "node=node-1"]):
        got = killed.kinf("get", "pods", *order, "-o", "json", "--show-managed-fields", "--store", torn)
        shown = {f"{o['metadata']['namespace']}/{o['metadata']['name']}": o for o in got.json["items"]}
        assert got.status == 1 and "no fault was found" not in got.stderr and "the rest is shown" in got.stderr, got
        assert shown and all(truth[key] == o for key, o in shown.items())
        if not order:
            lacking = truth.keys() - shown.keys()
            assert len(lacking) > 2 and all(f"'{key}' can't be shown: this copy lacks its version" in got.stderr for key in lacking), got
    one = killed.kinf("get", "pods", min(lacking), "--store", torn)
    assert one.status == 1 and "this copy lacks its version" in one.stderr and not one.stdout, one


def test_changes_and_older_states_of_a_copy_of_two_moments_are_refused(killed, torn):
    watch = killed.kinf("watch", "pods", "--store", torn)
    assert watch.status == 1 and not watch.stdout and "so changes can't be followed: 'kinf get'" in watch.stderr, watch
    backup = killed.kinf("backup", killed.directory / "b.tar", "--store", torn)
    assert backup.status == 1 and "a damaged copy can't be copied again" in backup.stderr, backup
    rebuilt = killed.kinf("rebuild-index", "--store", torn)
    assert rebuilt.status == 1 and "'kinf run' on it lists everything again" in rebuilt.stderr, rebuilt
    waited = killed.kinf("wait", "pods", "--timeout", "3s", "--store", torn)  # longer than the check before the first wait
    assert waited.status == 1 and "is 'kinf run' running? what is named above is damaged or missing" in waited.stderr, waited
    assert "type=ADDED" in killed.kinf("dump", "journal", "--store", torn).stdout


@pytest.mark.parametrize("lacks, says", [
    ("journal/gen-1", "its journal can't be opened: gen-1: No such file"),
    ("journal/gen-1/STATE", "its journal can't be opened: reading STATE: No such file"),
    ("journal", " is missing, or the file CURRENT in it: copy the "),
    ("index", "the copy has no index, by which objects are found: copy the whole store again"),
])  # fmt: skip
def test_a_copy_that_lacks_a_part_says_which(killed, lacks, says):
    """The message used to be "there is no index yet", even if only the journal was missing."""
    copy = killed.directory / "copy"
    shutil.copytree(killed.path, copy)
    spoil(copy / lacks, "removed")
    for command in ("get pods", "export", "status", "top --once", *(["metrics", "dump journal", "verify"] if lacks == "journal" else [])):
        result = killed.kinf(*command.split(), "--store", copy)
        assert result.status == 1 and says in result.stdout + result.stderr, result
        assert "no index yet" not in result.stdout + result.stderr, result
    compared = killed.kinf("diff", killed.path, copy)
    assert compared.status == 1 and says in compared.stderr and not compared.stdout, compared


def test_readers_and_servers_of_a_copy_leave_the_daemons_of_the_original_alone(simulator, store):
    """Both have the same id, and name the same runtime directory."""
    simulator.create("pods", 20)
    daemons = store.start(simulator, whole("pods"), serve={"listen": ["unix"]})
    for process in reversed(daemons):
        assert process.stop() == 0
    store.copy(store.directory / "copy")
    store.daemons()
    serve = Serve(store, simulator)
    simulator.touch("pods", 5)
    store.wait_equal(simulator, "pods")
    newest = serve.ask("/api/v1/pods").rv

    named = {"KINF_STORE": str(store.directory / "copy")}
    copied = store.process("kinf-serve-of-the-copy", [program("kinf-serve"), "--store", store.directory / "copy"]).start()
    copied.wait_log("serve_waiting .*is that of another store of the same id")
    store.kinf("verify", "--deep", env=named, check=True)
    assert "lastSeq" not in store.kinf("dump", "ring", env=named, check=True).stdout
    refused = store.process("refused", [program("kinf-reflector"), "--config", store.config, "--store", store.directory / "copy"], named)
    assert refused.start().wait() != 0 and "another store of the same id" in refused.log
    store.kinf("compact", env=named, check=True)
    assert serve.process.running and serve.ask("/api/v1/pods").rv == newest
    assert copied.running and copied.stop() == 0
    store.kinf("remove-store", "--yes", env=named, check=True)
    simulator.touch("pods", 5)
    store.wait_equal(simulator, "pods")
    assert serve.process.running and serve.ask("/api/v1/pods").rv != newest
    store.verify()


def test_diff_refuses_a_damaged_copy(killed, torn):
    """An object that the copy lacks would seem to be new."""
    result = killed.kinf("diff", killed.path, torn)
    assert result.status == 1 and result.stdout == "" and "a damaged copy can't be compared" in result.stderr, result


def leaves(path):
    """Yields the place of each present or former leaf page in an LMDB file."""
    data = path.read_bytes()
    for place in range(2 * 4096, len(data), 4096):
        number, _, flags = struct.unpack_from("<QHH", data, place)
        if number == place // 4096 and flags == 2:
            yield place


def test_a_page_of_the_index_that_counts_fewer_rows_than_it_has_hides_nothing(sound, damaged):
    """With status 0 the output is complete."""
    store, _ = sound
    commands = [["index", "pods", "node"], ["get", "pods", "-o", "name"], ["get", "pods", "-n", "ns-1", "-o", "name"],
                ["get", "pods", "--index", "node=node-1", "-o", "name"]]  # fmt: skip
    whole_outputs = [store.kinf(*command, check=True).stdout for command in commands]
    noticed = 0
    for place in leaves(databases(store.path)["index"]):
        path = damaged()
        with open(databases(path)["index"], "r+b") as file:
            file.seek(place + 12)
            (lower,) = struct.unpack("<H", file.read(2))
            file.seek(place + 12)
            file.write(struct.pack("<H", max(lower - 2, 16)))
        for command, output in zip(commands, whole_outputs):
            result = store.kinf(*command, "--store", path)
            assert result.status == 1 or result.stdout == output, (place, command, result)
            noticed += result.status
    assert noticed >= 4


def test_no_row_of_a_feed_is_believed_when_it_is_damaged(sound, damaged):
    """A checkpoint with a trim beyond the feed's end would make a follower lapse for ever."""
    store, _ = sound
    for row, name in ((rb"\x00(?=\xde)", "definition"), (rb"\x01(?=\x01\x00\x00\x00)", "checkpoint")):
        path = damaged()
        file = databases(path)["journal"]
        data = bytearray(file.read_bytes())
        # An entry of a leaf: no flags, the size and bytes of its key, and how its value begins.
        places = [found.end() for found in re.finditer(rb"(?<=\x00{4})\x05\x00\x00\x00\x00\x01" + row, data)]
        assert places
        for place in places:
            data[place + 32 + 5] ^= 0x10
        file.write_bytes(data)
        for command in (["watch", "pods", "-o", "name", "--count", "2000"], ["get", "pods"]):
            result = store.kinf(*command, "--store", path, timeout=20)
            # A flip elsewhere in the file may make it refuse the whole journal.
            refusal = f"journal: the {name} of feed 1 is damaged|'kinf verify' says what can still be read"
            assert result.status == 1 and re.search(refusal, result.stderr), result
            assert not result.stdout


def test_a_copy_that_lacks_a_page_names_what_lacks(simulator, killed):
    """A machine's crash leaves pages of zeros. LMDB takes some for a fault of its own, and aborts."""
    simulator.touch("pods", 400)
    killed.daemons()
    killed.wait_equal(simulator, "pods")
    for process in killed.processes:
        process.kill()
    truth = simulator.truth("pods")
    good = {int(re.search(r"seq=(\d+)", row)[1]): row for row in killed.kinf("dump", "journal", check=True).stdout.splitlines()}
    named = set()
    for name in ("journal", "index"):
        pages = list(leaves(databases(killed.path)[name]))  # tests/torture/bytes.py takes all
        for number, place in enumerate(pages[::5] + pages[1::5] + pages[2::5] + pages[3::5] + pages[4::5]):
            if number >= len(pages) / 5 and named:
                break
            copy = killed.directory / "copy"
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(killed.path, copy)
            with open(databases(copy)[name], "r+b") as file:
                file.seek(place)
                file.write(bytes(4096))
            verify = killed.kinf("verify", "--store", copy)
            got = killed.kinf("get", "pods", "-o", "json", "--store", copy)
            dump = killed.kinf("dump", "journal", "--store", copy)
            log = killed.kinf("log", "-o", "json", "--store", copy)
            for result in (verify, got, dump, log):
                assert result.status in (0, 1) and "internal error" not in result.stderr, (name, place, result)
            assert (verify.status == 0) == ("no fault was found" in got.stderr), (name, place, verify, got)
            for obj in got.json["items"] if got.stdout and verify.status == 0 else []:
                assert truth[f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"] == obj
            for after in map(int, re.findall(r"reading the log: the records after (\d+): ", verify.stdout)):
                rows = {int(re.search(r"seq=(\d+)", row)[1]): row for row in dump.stdout.splitlines()}
                events = [change["event"] for change in log.lines]
                assert dump.status == 1 and all(seq <= after or "salvaged=true" in row for seq, row in rows.items()), (place, verify)
                assert all(rows[seq].replace(" salvaged=true", "") == good[seq] for seq in rows), "copies in older pages are also good"
                assert log.status == 1 and events == sorted(events) and all(event <= after for event in events), (place, log)
                assert verify.stdout.count("neither the newest") == 0 and "BAD_TXN" not in verify.stdout, verify
                named.update(seq for seq in rows if seq > after)
    assert named, "the log has leaves, and records after a missing one are salvaged"


def test_a_copy_taken_while_daemons_write_is_never_read_wrongly(simulator, store):
    simulator.create("pods", 300, size=3000)
    store.start(simulator, whole("pods", indexes={"node": "spec.nodeName"}), mapSize="64MiB", retention={"time": "1s", "size": "1MiB"})
    simulator.churn("pods", 1000, 0)
    for number in range(6):
        copy = store.directory / f"copy-{number}"
        shutil.copytree(store.path, copy)
        result = store.kinf("get", "pods", "-o", "json", "--store", copy)
        assert result.status in (0, 1), result
        assert ("was checked, and no fault" in result.stderr) if result.status == 0 else result.stderr, result
        if result.status == 0:
            assert len(result.json["items"]) == 300
            assert store.kinf("verify", "--deep", "--store", copy).status == 0
    simulator.churn("pods", 0)


@pytest.mark.parametrize("how", ["cp", "data", "dd"])
def test_a_copy_that_is_put_over_a_running_store_is_noticed(simulator, store, how):
    """The files stay, their content is of then. It was shown as live, for ever."""
    simulator.create("pods", 60, size=2500)
    store.configure(whole("pods", indexes={"node": "spec.nodeName"}), mapSize="64MiB")
    supervisor = store.run()
    store.wait_equal(simulator, "pods")
    copy, lineage = store.copy(store.directory / "copy"), store.lineage()
    simulator.touch("pods", 50)
    simulator.delete_many("pods", 5)
    store.wait_equal(simulator, "pods")
    if how == "cp":
        run_command(["cp", "-a", f"{copy}/.", store.path])
    for part in ("journal", "index") if how != "cp" else ():
        source, target = (path / part / "gen-1/data.mdb" for path in (copy, store.path))
        run_command(["cp", source, target] if how == "data" else ["dd", "conv=notrunc", f"if={source}", f"of={target}"])
    simulator.touch("pods", 3)
    store.wait_equal(simulator, "pods")
    store.wait_live("pods")
    eventually(lambda: store.lineage() != lineage, 10, "another journal, because the numbers of its events were used")
    store.wait_equal(simulator, "pods")
    store.verify()
    assert supervisor.running


@pytest.mark.parametrize("end", ["killed", "stopped"])
def test_a_follower_of_a_store_that_an_older_copy_replaced_begins_again(simulator, store, end):
    """The events after the copy got the numbers of others, already handled by the follower."""
    simulator.create("pods", 20)
    simulator.create("configmaps", 20)
    daemons = store.start(simulator, whole("pods"), whole("configmaps"))
    store.wait_equal(simulator, "configmaps")
    copy = store.copy(store.directory / "copy")
    for _ in range(3):
        simulator.touch("configmaps", 20)
    simulator.touch("pods", 1)
    store.wait_equal(simulator, "pods")
    store.wait_equal(simulator, "configmaps")
    follower = store.follower("watch", "pods", "-o", "json", "--cursor", "mine")
    eventually(lambda: '"SYNC"' in follower.out)
    follower.stop()
    for daemon in reversed(daemons):
        assert daemon.kill() if end == "killed" else daemon.stop() == 0
    run_command(["cp", "-a", f"{copy}/.", store.path])
    simulator.compact()
    simulator.delete("pods", "ns-3/pod-3")
    for daemon in daemons:
        daemon.start()
    store.wait_live("pods")
    for _ in range(5):  # more events than were lost
        simulator.touch("pods", 20)
    store.wait_equal(simulator, "pods")
    follower = store.follower("watch", "pods", "-o", "json", "--cursor", "mine", name="later")
    eventually(lambda: follower.lines)
    assert follower.lines[0]["type"] == "LAPPED", follower.lines[0]
    assert follower.stop() == 0
    store.verify()


def spoil(path, how):
    if how == "cut":
        os.truncate(path, 8192)
        return
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    if how == "rubbish":
        path.write_text("rubbish\n" * 1000)
    elif how == "directory":
        path.mkdir()


@pytest.mark.parametrize("end", ["killed", "stopped"])
def test_followers_that_slept_while_an_older_copy_replaced_the_store_begin_again(simulator, store, end):
    """When they go on, the journal has other events under their numbers, and has grown beyond them."""
    simulator.create("pods", 20)
    simulator.create("nodes", 5)
    daemons = store.start(simulator, whole("pods"), whole("nodes"), retention={"time": "1h"})
    follower = store.follower("watch", "pods", "-o", "json", "--old")
    informer = synced(start_informer(store, "--cursor", "mine"))
    eventually(lambda: '"SYNC"' in follower.out)
    for daemon in reversed(daemons):
        assert daemon.stop() == 0
    copy = store.copy(store.directory / "copy")
    for daemon in daemons:
        daemon.start()

    def change(times):
        for _ in range(times):
            simulator.touch("pods", 2)
            simulator.touch("nodes", 1)

    def have_all():
        return replay(since_lapped(follower.lines)) == simulator.truth("pods") and replay_calls(informer.lines) == versions(simulator)

    store.wait_live("pods")
    change(20)
    eventually(have_all)
    for process in (follower, informer):
        process.send(signal.SIGSTOP)
    for daemon in reversed(daemons):
        assert daemon.kill() if end == "killed" else daemon.stop() == 0
    run_command(["cp", "-a", f"{copy}/.", store.path])
    supervisor = store.run()
    change(40)
    simulator.delete_many("pods", 2)
    store.wait_equal(simulator, "pods")
    store.wait_live("pods")
    for process in (follower, informer):
        process.send(signal.SIGCONT)
    eventually(have_all)
    assert [line["type"] for line in follower.lines].count("LAPPED") == 1
    assert [line["call"] for line in informer.lines].count("lapped") == 1
    assert supervisor.running


def test_an_older_journal_that_is_put_beside_its_index_is_listed_anew(simulator, store):
    """Else the journal would grow beyond the index before a processor is started."""
    simulator.create("pods", 20)
    daemons = store.start(simulator, whole("pods"))
    for daemon in reversed(daemons):
        assert daemon.stop() == 0
    copy, lineage = store.copy(store.directory / "copy"), store.lineage()
    for daemon in daemons:
        daemon.start()
    store.wait_live("pods")
    simulator.touch("pods", 10)
    store.wait_equal(simulator, "pods")
    for daemon in reversed(daemons):
        assert daemon.stop() == 0
    run_command(["cp", "-a", f"{copy}/journal", store.path])
    processor, reflector = daemons
    reflector.start()
    reflector.wait_log("journal_created .*an older copy was put in its place")
    processor.start()
    store.wait_equal(simulator, "pods")
    assert store.lineage() != lineage
    store.verify()


def test_a_damaged_cursor_file_is_reported(simulator, store):
    simulator.create("pods", 5)
    store.start(simulator, whole("pods"))
    cursor = store.path / "cursors" / "c1"
    for text in ("", "kinf-cursor 1\n", "kinf-cursor 9\nend\n", "\0" * 100):
        cursor.write_text(text)
        result = store.kinf("watch", "pods", "-o", "json", "--cursor", "c1", "--count", "1")
        assert result.status == 1 and "c1" in result.stderr and result.stdout == "", result


def test_status_of_a_refused_store_shows_the_processes(simulator, store):
    simulator.create("pods", 5)
    store.configure(whole("pods"))
    supervisor = store.run()
    store.wait_equal(simulator, "pods")
    processes = {p["name"]: p for p in store.kinf("status", "-o", "json", check=True).json["processes"]}
    os.kill(processes["kinf-processor"]["pid"], signal.SIGSTOP)  # it would write the file again
    (store.path / "index" / "gen-1" / "STATE").write_text("rubbish\n")
    result = store.kinf("status", "-o", "json")
    assert result.status == 1 and "index" in result.stderr and "kinf rebuild-index" in result.stderr, result
    shown = {p["name"]: p for p in result.json["processes"]}
    assert {name: p["pid"] for name, p in shown.items()} == {name: p["pid"] for name, p in processes.items()}
    assert shown["kinf-reflector"]["state"] == "running"
    os.kill(processes["kinf-processor"]["pid"], signal.SIGKILL)  # its successor builds the index again
    store.wait_equal(simulator, "pods")
    assert supervisor.stop() == 0
    os.unlink(store.path / "id")
    result = store.kinf("status", "-o", "json")
    assert result.status == 1 and {p["state"] for p in result.json["processes"]} == {"not running"}, result
