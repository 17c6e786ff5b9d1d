# SPDX-License-Identifier: Apache-2.0
"""Feeds added and replaced while commits fail: the reflector repeats the decisions of the lost batch."""

import pytest

from harness import eventually

FRONT = {"resource": "pods", "labelSelector": "app=front"}


def pod(name, app="front"):
    return {
        "metadata": {"name": name, "namespace": "web", "labels": {"app": app}},
        "spec": {"nodeName": "n1"},
    }


def full_at(nth):
    return {"KINF_FAIL": f"journal.before_commit:{nth}:error=ENOSPC"}


def feed_names(store):
    return sorted(f["name"] for f in store.kinf("status", "-o", "json", check=True).json["feeds"])


@pytest.mark.parametrize("nth", range(1, 6))
def test_a_feed_is_added_and_listed_whichever_commit_fails(simulator, store, nth):
    simulator.put("pods", [pod("a")])
    store.configure("pods", "services")
    store.processor()
    store.reflector(env=full_at(nth))
    eventually(lambda: feed_names(store) == ["pods", "services"], 20, "both feeds")
    store.wait_equal(simulator, "pods")
    store.wait_equal(simulator, "services")


@pytest.mark.parametrize("nth", range(1, 5))
def test_a_changed_feed_takes_over_its_name_whichever_commit_fails(simulator, store, nth):
    simulator.put("pods", [pod("a"), pod("b", "back")])
    store.configure("pods")
    store.processor()
    reflector = store.reflector()
    store.wait_equal(simulator, "pods")
    reflector.stop()
    store.configure(FRONT)
    store.reflector(env=full_at(nth))
    eventually(
        lambda: feed_names(store) == ["pods"] and list(store.objects("pods")) == ["web/a"], 20, "the new feed"
    )


@pytest.mark.parametrize("daemon, counter", [("reflector", "journal"), ("processor", "index")])
def test_each_daemon_counts_its_failed_commits(simulator, store, daemon, counter):
    simulator.put("pods", [pod("a")])
    store.configure("pods")
    fails = {"KINF_FAIL": f"{counter}.before_commit:3:error=ENOSPC"}
    store.reflector(env=fails if daemon == "reflector" else None)
    store.processor(env=fails if daemon == "processor" else None)
    store.wait_equal(simulator, "pods")
    line = f'kinf_{counter}_commit_errors_total{{process="kinf-{daemon}"}} 1'
    assert line in store.kinf("metrics").stdout.splitlines()
