# SPDX-License-Identifier: Apache-2.0
"""`kinf watch`: the initial state, SYNC, later changes, and cursors outliving the follower."""

import re
import signal

import pytest

from harness import eventually
from harness.follow import changes, replay
from harness.objects import key_of, pod
from harness.process import program
from harness.store import whole


@pytest.fixture
def filled(simulator, store):
    simulator.create("pods", 30)
    daemons = store.start(simulator, whole("pods", indexes={"node": "spec.nodeName"}))
    return daemons


def synced(follower):
    eventually(lambda: '"type":"SYNC"' in follower.out, what="SYNC")
    return follower


def watch(store, *args, **named):
    return synced(store.follower("watch", "pods", "-o", "json", *args, **named))


# ---- lines -----------------------------------------------------------------------------------------


def test_watch_prints_the_initial_state_then_sync_then_changes(simulator, store, filled):
    truth = simulator.truth("pods")
    follower = watch(store)
    initial, sync = follower.lines[:30], follower.lines[30]
    assert sync["type"] == "SYNC" and len(follower.lines) == 31
    assert [line["type"] for line in initial] == ["ADDED"] * 30 and all(line["initial"] is True for line in initial)
    assert {key_of(line["object"]): line["object"] for line in initial} == truth
    assert [key_of(line["object"]) for line in initial] == list(truth)
    assert len({line["event"] for line in initial}) == 1
    simulator.put("pods", pod("new"))
    simulator.patch("pods", "web/new", {"spec": {"nodeName": "n2"}})
    simulator.delete("pods", "web/new")
    eventually(lambda: len(follower.lines) == 34)
    assert changes(follower.lines) == [(t, "web/new") for t in ("ADDED", "MODIFIED", "DELETED")]
    events = [line["event"] for line in follower.lines[31:]]
    assert events == sorted(set(events)) and events[0] > initial[0]["event"]
    assert not any("old" in line or "initial" in line for line in follower.lines[31:])
    assert follower.stop() == 0


def test_old_prints_the_state_before_each_change(simulator, store, filled):
    follower = watch(store, "--old")
    simulator.touch("pods", 20)
    simulator.delete_many("pods", 5)
    simulator.create("pods", 5, from_=1000)
    truth = simulator.truth("pods")
    eventually(lambda: replay(follower.lines) == truth)


def test_no_initial_prints_only_changes(simulator, store, filled):
    follower = watch(store, "--no-initial")
    assert [line["type"] for line in follower.lines] == ["SYNC"]
    simulator.put("pods", pod("new"))
    eventually(lambda: changes(follower.lines) == [("ADDED", "web/new")])


def test_count_ends_the_watch_after_that_many_objects(simulator, store, filled):
    result = store.kinf("watch", "pods", "-o", "json", "--count", "7", check=True)
    assert len(result.lines) == 7 and result.lines[0]["initial"]
    none = store.kinf("watch", "pods", "-o", "json", "--count", "0", check=True)
    assert none.stdout == "", none


def test_watch_prints_a_table_or_names(simulator, store, filled):
    table = store.kinf("watch", "pods", "--count", "3", check=True).stdout.splitlines()
    assert table[0].split()[:2] == ["NAMESPACE", "NAME"] and len(table) == 4
    names = store.kinf("watch", "pods", "-o", "name", "--count", "3", check=True).stdout.splitlines()
    assert len(names) == 3 and all(name.startswith("pod/") for name in names)


def test_a_large_initial_state_is_exact_under_change(simulator, store):
    """The follower reads the initial state in ranges while objects change; initial state and changes must add up."""
    simulator.create("pods", 3000, size=400)
    store.start_synced(whole("pods"))
    simulator.churn("pods", 300, 40)
    follower = store.follower("watch", "pods", "-o", "json", "--old")
    eventually(lambda: len(changes(follower.lines)) > 100, timeout=40)
    simulator.churn("pods", 0)
    truth = simulator.truth("pods")
    eventually(lambda: replay(follower.lines) == truth, timeout=40)


# ---- filters ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("filters", [["-l", "app=back"], ["--index", "node=n9"], ["--field-selector", "spec.nodeName=n9"], ["-n", "back"]])
def test_filters_turn_moves_into_additions_and_deletions(simulator, store, filled, filters):
    """An object is DELETED if it leaves the selection, ADDED if it enters it, as in the API server's watch."""
    namespaced = filters[0] == "-n"
    namespace = "back" if namespaced else "web"
    inside = {"app": "back", "node": "n9"}
    simulator.put("pods", pod("in", namespace, **inside))
    simulator.put("pods", pod("out", "web"))
    store.wait_equal(simulator, "pods")
    follower = watch(store, "--old", *filters)
    assert [key_of(line["object"]) for line in follower.lines if line.get("initial")] == [f"{namespace}/in"]
    for key in [key for key in simulator.truth("pods") if key.startswith("ns-")][:5]:
        simulator.patch("pods", key, {"metadata": {"labels": {"touched": "yes"}}})  # never selected
    if namespaced:
        simulator.put("pods", pod("more", "back"))
        simulator.delete("pods", "back/in")
        wanted = [("ADDED", "back/more"), ("DELETED", "back/in")]
    else:
        simulator.put("pods", pod("in", "web", **inside, phase="Failed"))
        simulator.put("pods", pod("in", "web"))
        simulator.put("pods", pod("out", "web", **inside))
        wanted = [("MODIFIED", "web/in"), ("DELETED", "web/in"), ("ADDED", "web/out")]
    eventually(lambda: len(changes(follower.lines)) >= len(wanted), what=f"{wanted}")
    assert changes(follower.lines) == wanted
    replay(follower.lines)


def test_merged_namespaces_are_one_feed(simulator, store):
    for namespace in ("web", "shop", "db"):
        simulator.put("pods", pod("a", namespace))
    store.start_synced(whole("pods", namespaces=["web", "shop"]))
    follower = watch(store, "--old")
    assert [key_of(line["object"]) for line in follower.lines if line.get("initial")] == ["shop/a", "web/a"]
    for namespace in ("web", "shop", "db"):
        simulator.put("pods", pod("b", namespace))
    eventually(lambda: sorted(changes(follower.lines)) == [("ADDED", "shop/b"), ("ADDED", "web/b")])
    replay(follower.lines)


def test_a_follower_lapses_and_continues_when_its_feed_gets_another_namespace(simulator, store):
    for namespace in ("web", "shop"):
        simulator.put("pods", pod("a", namespace))
    processes = store.start_synced(whole("pods", namespaces=["web"]))
    follower = watch(store)
    store.configure(whole("pods", namespaces=["web", "shop"]))
    for process in processes:
        process.send(signal.SIGHUP)
    eventually(lambda: follower.out.count('"type":"SYNC"') == 2, what="a second SYNC")
    simulator.put("pods", pod("b", "shop"))
    eventually(lambda: changes(follower.lines[-1:]) == [("ADDED", "shop/b")], what="shop/b")
    told = [line["type"] for line in follower.lines]
    assert told == ["ADDED", "SYNC", "LAPPED", "ADDED", "ADDED", "SYNC", "ADDED"]


# ---- cursors ---------------------------------------------------------------------------------------


def test_a_cursor_resumes_after_the_last_line(simulator, store, filled):
    first = watch(store, "--old", "--cursor", "c1", name="first")
    simulator.touch("pods", 10)
    truth = simulator.truth("pods")
    eventually(lambda: replay(first.lines) == truth)
    assert first.stop() == 0
    state = replay(first.lines)
    simulator.touch("pods", 10)
    simulator.delete_many("pods", 3)
    store.wait_equal(simulator, "pods")
    second = store.follower("watch", "pods", "-o", "json", "--old", "--cursor", "c1", name="second")
    truth = simulator.truth("pods")
    eventually(lambda: second.lines and replay(second.lines, state) == truth)
    assert not any(line.get("initial") for line in second.lines)
    last = max(line["event"] for line in first.lines if "event" in line)
    assert min(line["event"] for line in second.lines if "event" in line) > last


def test_a_cursor_read_with_counts_neither_skips_nor_repeats(simulator, store, filled):
    first = watch(store, "--old", "--cursor", "c2", name="first")
    first.stop()
    state = replay(first.lines)
    simulator.touch("pods", 12)
    truth = simulator.truth("pods")
    store.wait_equal(simulator, "pods")
    for _ in range(4):
        part = store.kinf("watch", "pods", "-o", "json", "--old", "--cursor", "c2", "--count", "3", check=True).lines
        assert len([line for line in part if "object" in line]) == 3
        state = replay(part, state)
    assert state == truth


@pytest.mark.parametrize("selected", [False, True])
def test_a_count_of_all_objects_leaves_a_cursor_and_a_smaller_one_none(simulator, store, filled, selected):
    """The next watch printed all objects once more, although the first one had printed the last of them."""
    last = list(simulator.truth("pods"))[-1].split("/")[1]
    words = ["--field-selector", f"metadata.name!={last}"] if selected else []
    command = ["watch", "pods", "-o", "json", *words, "--cursor", "c3", "--count"]
    total = int(store.kinf("get", "pods", "-o", "count", *words, check=True).stdout)
    assert total > 1
    part = store.kinf(*command, str(total - 1), check=True).lines
    assert [line["type"] for line in part] == ["ADDED"] * (total - 1) and not (store.path / "cursors" / "c3").exists()
    whole_state = store.kinf(*command, str(total), check=True).lines
    assert [line["type"] for line in whole_state] == ["ADDED"] * total + ["SYNC"]
    simulator.touch("pods")
    (line,) = [line for line in store.kinf(*command, "1", check=True).lines if "object" in line]
    assert line["type"] == "MODIFIED" and "initial" not in line


def test_a_killed_follower_sees_uncommitted_changes_again(simulator, store, filled):
    first = watch(store, "--old", "--cursor", "c1", name="first")
    cursor = store.path / "cursors" / "c1"
    eventually(cursor.exists)
    simulator.touch("pods", 10)
    eventually(lambda: len(changes(first.lines)) == 10)
    first.kill()
    simulator.touch("pods", 10)
    store.wait_equal(simulator, "pods")
    second = store.follower("watch", "pods", "-o", "json", "--old", "--cursor", "c1", name="second")
    truth = simulator.truth("pods")

    def caught_up():
        last = {}
        for line in first.lines + second.lines:
            if "object" in line:
                last[key_of(line["object"])] = line["object"]
        return last == truth

    eventually(caught_up)
    assert not any(line.get("initial") for line in second.lines)
    events = {line["event"] for line in first.lines + second.lines if "object" in line and not line.get("initial")}
    assert len(events) == 20
    again = [line for line in second.lines if line in first.lines and "object" in line]
    assert [line["event"] for line in again] == sorted(line["event"] for line in again)


def test_a_lapped_cursor_is_reported_and_begins_again(simulator, store):
    simulator.create("pods", 30)
    store.start(simulator, whole("pods"), retention={"time": "100ms", "size": "64KiB"})
    first = watch(store, "--cursor", "c1", name="first")
    assert first.stop() == 0
    for _ in range(12):
        simulator.touch("pods")
    store.wait_equal(simulator, "pods")

    def lapped():
        simulator.touch("pods", 5)
        result = store.kinf("watch", "pods", "-o", "json", "--cursor", "c1", "--count", "1")
        return [line["type"] for line in result.lines][:1] == ["LAPPED"]

    eventually(lapped, what="LAPPED")
    follower = watch(store, "--old", "--cursor", "c1", name="after")
    truth = simulator.truth("pods")
    eventually(lambda: replay([line for line in follower.lines if line["type"] != "LAPPED"]) == truth)
    assert [line["type"] for line in follower.lines].index("SYNC") >= 30


def test_cursors_are_listed_and_removed(simulator, store, filled):
    watch(store, "--cursor", "c1").stop()
    assert "c1" in store.kinf("cursor", "ls", check=True).stdout
    store.kinf("cursor", "rm", "c1", check=True)
    assert "c1" not in store.kinf("cursor", "ls", check=True).stdout
    assert store.kinf("cursor", "rm", "c1").status == 1
    assert store.kinf("watch", "pods", "--cursor", "a/b").status in (1, 2)


def test_files_that_are_no_cursors_are_named(simulator, store, filled):
    watch(store, "--cursor", "good").stop()
    cursors = store.path / "cursors"
    (cursors / "garbage").write_bytes(b"\xff\0garbage")
    (cursors / "cut").write_text((cursors / "good").read_text().removesuffix("end\n"))
    (cursors / "a\x1b[31m file").touch()
    (cursors / "directory").mkdir()
    (cursors / ".good.0123").touch()  # a cursor in the middle of its write
    result = store.kinf("cursor", "ls", check=True)
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["NAME", "good"], result
    notes = sorted(result.stderr.splitlines())
    assert len(notes) == 4 and "\x1b" not in result.stderr, result
    assert f"a file in '{cursors}' is no cursor: " in notes[0] and "'a?[31m file'" in notes[0], result
    for note, says in zip(notes[1:], ("'cut' .*its last line is missing", "'directory' is no file", "'garbage' .*first line is not")):
        assert re.search(f"note: not shown: .*{says}", note), result
    assert "kinf cursor rm garbage" in notes[3]
    store.kinf("cursor", "rm", "garbage", "cut", check=True)


# ---- daemons and followers that end ----------------------------------------------------------------


def test_a_follower_survives_kills_of_the_daemons(simulator, store, filled):
    processor, reflector = filled
    follower = watch(store, "--old", "--cursor", "c1")
    simulator.churn("pods", 40, 30)
    for victims in ([processor], [reflector], [processor, reflector]):
        eventually(lambda n=len(follower.lines): len(follower.lines) > n + 10)
        for process in victims:
            process.kill()
        simulator.touch("pods", 10)
        for process in victims:
            process.start()
    eventually(lambda n=len(follower.lines): len(follower.lines) > n + 10)
    simulator.churn("pods", 0)
    store.wait_equal(simulator, "pods")
    truth = simulator.truth("pods")
    eventually(lambda: replay(follower.lines) == truth)
    assert follower.stop() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_terminated_follower_has_committed_what_it_printed(simulator, store, filled, number):
    simulator.churn("pods", 100)
    follower = watch(store, "--old", "--cursor", "c1", name="first")
    eventually(lambda: len(changes(follower.lines)) > 50)
    assert follower.kill(number) == 0, follower.tail()
    simulator.churn("pods", 0)
    assert follower.out.endswith("\n")
    state = replay(follower.lines)
    store.wait_equal(simulator, "pods")
    truth = simulator.truth("pods")
    second = store.follower("watch", "pods", "-o", "json", "--old", "--cursor", "c1", name="second")
    eventually(lambda: replay(second.lines, state) == truth)


def test_a_cursor_has_one_follower_at_a_time(simulator, store):
    """Two followers under one name would write each other's position."""
    simulator.create("pods", 3)
    store.start_live("pods")
    first = store.follower("watch", "pods", "-o", "json", "--cursor", "mine")
    eventually(lambda: any(line["type"] == "SYNC" for line in first.lines))
    second = store.kinf("watch", "pods", "-o", "json", "--cursor", "mine")
    assert second.status == 1 and second.stdout == "", second
    assert f"Error: cursor 'mine' is in use: process {first.pid} has it. End that follower" in second.stderr, second
    informer = store.process("informer", [program("programs/informer"), "pods", "--cursor", "mine"]).start()
    assert informer.wait() != 0
    other = store.follower("watch", "pods", "-o", "json", "--cursor", "other", name="kinf-other")
    eventually(lambda: any(line["type"] == "SYNC" for line in other.lines))
    eventually(lambda: "mine" in store.kinf("cursor", "ls").stdout, what="a written cursor")
    first.kill()
    simulator.touch("pods", 1)
    third = store.follower("watch", "pods", "-o", "json", "--cursor", "mine", name="kinf-third")
    eventually(lambda: [line["type"] for line in third.lines] == ["MODIFIED"], what="the change since")
