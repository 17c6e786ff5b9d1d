# SPDX-License-Identifier: Apache-2.0
"""Readers that are killed: the pins that they leave behind."""

from harness import eventually


def slots(store):
    """Slots of pin files of journal and index, including those of this status command."""
    status = store.kinf("status", "-o", "json", check=True).json
    return status["store"]["journal"]["readers"], status["store"]["index"]["readers"]


def test_slots_of_killed_readers_are_freed_in_journal_and_index(simulator, store):
    simulator.create("pods", 10)
    store.configure({"resource": "pods", "drop": []})
    store.processor(), store.reflector()
    store.wait_equal(simulator, "pods")
    eventually(lambda: slots(store) == slots(store), what="daemons at rest")
    before = slots(store)
    followers = [store.follower("watch", "pods", name=f"kinf-watch-{i}") for i in range(4)]
    eventually(lambda: min(a - b for a, b in zip(slots(store), before)) >= 4, what="four readers")
    for follower in followers:
        follower.kill()
    # The daemons may have had one more when they were counted first.
    eventually(lambda: all(now <= then for now, then in zip(slots(store), before)), 20, "slots freed")
