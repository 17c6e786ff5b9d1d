# SPDX-License-Identifier: Apache-2.0
"""Killed readers: their abandoned pins."""

from harness import eventually


def slots(store, processes):
    """Slots in pin files, of journal and index together, shown by `kinf status` for each of these processes."""
    shown = {reader["pid"]: reader["slots"] for reader in store.kinf("status", "-o", "json", check=True).json["readers"]}
    return [shown.get(process.pid, 0) for process in processes]


def test_slots_of_killed_readers_are_freed_in_journal_and_index(simulator, store):
    simulator.create("pods", 10)
    store.configure({"resource": "pods", "drop": []})
    store.daemons()
    store.wait_equal(simulator, "pods")
    followers = [store.follower("watch", "pods", name=f"kinf-watch-{i}") for i in range(4)]
    eventually(lambda: min(slots(store, followers)) >= 2, what="each has one in both")
    for follower in followers:
        follower.kill()
    eventually(lambda: slots(store, followers) == [0, 0, 0, 0], 20, "slots freed")
