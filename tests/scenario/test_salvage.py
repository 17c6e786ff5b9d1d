# SPDX-License-Identifier: Apache-2.0
"""A copy with pages of two moments, and so with holes in the journal's trees: records in the other
pages are read all the same."""

import re
import shutil
import struct

import pytest

from harness import eventually
from harness.store import whole


def records(store, *args):
    """The rows of `kinf dump journal`, by seq."""
    rows = {row["seq"]: row for row in store.kinf("dump", "journal", "--body", "-o", "json", *args).lines}
    return {seq: {name: value for name, value in row.items() if name != "salvaged"} for seq, row in rows.items()}


def root(data):
    """Where the newest state's table of databases is: LMDB's meta pages have it at 128, and the
    number of the state at 144."""
    newest = max((0, 4096), key=lambda meta: struct.unpack_from("<Q", data, meta + 144))
    return struct.unpack_from("<Q", data, newest + 128)[0] * 4096


def copy_slowly(store, simulator, target):
    """As a slow copy is: its first pages, with the roots of the trees, are older than the rest by
    many changes, so their pages have been reused."""
    files = [f"{name}/gen-1/data.mdb" for name in ("journal", "index")]
    before = {name: (store.path / name).read_bytes() for name in files}

    def is_used_again(name):
        with open(store.path / name, "rb") as file:
            file.seek(root(before[name]))
            return file.read(4096) != before[name][root(before[name]) :][:4096]

    while not all(map(is_used_again, files)):
        simulator.touch("pods", 10)
        store.wait_equal(simulator, "pods")
    shutil.copytree(store.path, target)
    for name in files:
        with open(target / name, "r+b") as file:
            file.write(before[name][:8192])
    return target


@pytest.fixture
def running(simulator, store):
    simulator.create("pods", 300, size=6000)
    store.start(simulator, whole("pods", indexes={"node": "spec.nodeName"}), "nodes", mapSize="64MiB")
    return store


def test_what_is_left_of_a_copied_journal_is_shown(running, simulator, tmp_path):
    copy = copy_slowly(running, simulator, tmp_path / "copy")
    truth = records(running)
    dump = running.kinf("dump", "journal", "--store", copy)
    assert dump.status == 1 and "'kinf verify' says what can still be read" in dump.stderr, dump
    found = records(running, "--store", copy)
    assert found.keys() == truth.keys()
    assert all(truth[seq] == row for seq, row in found.items()), "each is as the journal has it"
    assert {"salvaged=true" in row for row in dump.stdout.splitlines()} == {True}

    note = f"note: journal: {len(found)} records were found in its pages by their checksums, events 1 to {max(found)}; their rows say"
    assert note in dump.stderr and "missing" not in dump.stderr, dump

    verify = running.kinf("verify", "--store", copy)
    assert verify.status == 1 and "'kinf dump journal' prints those that are there" in verify.stdout, verify
    assert re.search(f"{len(found)} records, .*; the index was not read: [23] faults", verify.stderr), verify
    got = running.kinf("get", "pods", "--store", copy)
    assert got.status == 1 and not got.stdout and "'kinf verify' says what can still be read" in got.stderr, got

    # A large record and its pages: no copy of it is anywhere else.
    data = (copy / "journal/gen-1/data.mdb").read_bytes()
    lost = next(seq for seq, row in found.items() if seq > 50 and row["bodySize"] > 3000)
    place = next(at for at in range(8192, len(data), 4096) if data[at + 16 : at + 24] == lost.to_bytes(8, "little"))
    with open(copy / "journal/gen-1/data.mdb", "r+b") as file:
        file.seek(place + 1000)
        file.write(b"?")
    dump = running.kinf("dump", "journal", "--store", copy)
    assert "; missing of the history after event 0: 1;" in dump.stderr and f"seq={lost} " not in dump.stdout, dump


def test_rows_of_a_copied_journal_are_selected_as_usual(running, simulator, tmp_path):
    copy = copy_slowly(running, simulator, tmp_path / "copy")
    truth = records(running)
    some = records(running, "--store", copy, "--feed", "pods", "--from", "100", "--to", "200")
    assert some and all(100 <= seq <= 200 and truth[seq] == row for seq, row in some.items())
    key = next(row["key"] for row in some.values())
    one = records(running, "--store", copy, "--feed", "pods", "--key", key)
    assert one and all(row["key"] == key and truth[seq] == row for seq, row in one.items())
    assert "no feed 'deployments'; 'kinf dump feeds' lists them" in running.kinf("dump", "journal", "--feed", "deployments", "--store", copy).stderr
    feeds = running.kinf("dump", "feeds", "-o", "json", "--store", copy)
    assert {row["name"] for row in feeds.lines} == {"pods", "nodes"} and all(row["salvaged"] for row in feeds.lines), feeds
    # The index has no part in it, and is shown as far as its own trees can be followed.
    whole_dump = running.kinf("dump", "--store", copy)
    assert whole_dump.status == 1 and "internal error" not in whole_dump.stderr and "record seq=" in whole_dump.stdout, whole_dump


def test_a_journal_of_which_nothing_is_left_is_said_to_be_damaged(running, simulator, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(running.path, copy)
    data = copy / "journal/gen-1/data.mdb"
    for content in (b"", b"x" * 100, bytes(data.stat().st_size)):
        data.write_bytes(content)
        for command in ("dump journal", "dump", "verify"):
            result = running.kinf(*command.split(), "--store", copy)
            assert result.status == 1 and "internal error" not in result.stderr, result
            assert "record seq=" not in result.stdout and "were found" not in result.stdout + result.stderr, result


def test_a_copy_that_is_cut_short_shows_what_it_has(running, simulator, tmp_path):
    """A full disk, or an aborted transfer."""
    eventually(lambda: running.kinf("status", "--check").status == 0)
    copy = tmp_path / "copy"
    shutil.copytree(running.path, copy)
    data = copy / "journal/gen-1/data.mdb"
    data.write_bytes(data.read_bytes()[: data.stat().st_size // 2 + 1000])
    truth, found = records(running), records(running, "--store", copy)
    assert len(truth) > len(found) > len(truth) / 4 and all(truth[seq] == row for seq, row in found.items())
