#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
Kills the daemons again and again, at every failpoint and at random moments, while a simulated cluster
changes, forgets its history and drops connections; the processor is stopped at random; the index is removed
and redefined in between. A follower with a cursor, and a handler that reads the cache in each call, live
through all of it. In the end:

  * the store holds exactly what the cluster holds, and `kinf verify --deep` finds no fault;
  * the follower has seen every record once, in order: event numbers rise, and the old state of each
    event is the state that the event before it left;
  * each call of the handler found its change in the cache, or was told to try again, and its calls add up to
    the state of the cluster;
  * once more with both daemons killed: no LIST was needed to come back.

The seed decides whether lists come in pages or as streams (watch-list); --streaming yes or no does.

usage: tests/crash/kill_loop.py [--seconds 60] [--seed N] [--streaming yes|no]   ($KINF_BUILD: with failpoints)
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scenario"))
from conftest import Workspace  # noqa: E402
from harness import eventually  # noqa: E402
from harness.informer import replay as replay_calls  # noqa: E402
from harness.process import program  # noqa: E402

FEED = "pods"
INDEX_SETS = [
    {"node": "spec.nodeName"},
    {"node": "spec.nodeName", "phase": "status.phase"},
    {"image": "spec.containers[*].image", "node-phase": ["spec.nodeName", "status.phase"]},
]
# Points of the reflector; all others are the processor's.
REFLECTOR = ("journal.", "list.", "ring.")
NEEDS_LIST = {"list.page", "list.reconcile", "index.list_apply"}
SLOW = {"journal.trim", "journal.trimmed"}
PASSED_ONCE = {"list.reconcile", "index.list_apply", "index.backfill", "journal.open", "index.open"} | {
    f"rebuild.{point}" for point in ("begun", "filled", "switched")
}
SKIPPED = ("cursor.", "watch.", "env.pinned")  # of readers, which are not killed here


def failpoints():
    env = {**os.environ, "KINF_FAIL": "list"}
    text = subprocess.run([program("kinf-processor")], env=env, capture_output=True, text=True).stdout
    names = [line.split()[0] for line in text.splitlines() if line.strip()]
    assert len(names) > 10, f"no failpoints in this build: {text!r}"
    return [name for name in names if not name.startswith(SKIPPED)]


class Loop:
    def __init__(self, workspace, chance, streaming):
        self.chance = chance
        self.streaming = streaming
        self.simulator = workspace.simulator()
        self.simulator.settings(bookmarkMs=200)
        self.simulator.create(FEED, 300, size=2500)
        self.store = workspace.store(simulator=self.simulator)
        self.configure()
        self.points = failpoints()
        self.daemons = {"reflector": None, "processor": None}
        self.kills = {}

    def configure(self):
        """Changes the indexes in the configuration."""
        INDEX_SETS.append(INDEX_SETS.pop(0))
        feed = {"resource": FEED, "pageSize": 40, "drop": [], "indexes": INDEX_SETS[0]}
        self.store.configure(feed, retention={"time": "1s", "size": "64MiB"}, streamingLists=self.streaming)

    # ---- daemons -------------------------------------------------------------------------------

    def start(self, role, fail=None):
        env = {"KINF_FAIL": fail} if fail else {}
        options = {"env": env}
        process = self.daemons[role]
        if process is None:
            self.daemons[role] = getattr(self.store, role)(**options)
            return
        process.env.pop("KINF_FAIL", None)
        process.env.update(env)
        process.start()

    def end(self, role, why):
        process = self.daemons[role]
        status = process.kill()
        assert status in (-signal.SIGKILL, 0), f"{role} ended by itself with {status}:\n{process.tail()}"
        self.kills[why] = self.kills.get(why, 0) + 1

    def end_all(self, why):
        """Ends the daemons before a part of the store is removed: they would end by themselves within a second."""
        for role, process in self.daemons.items():
            if process.running:
                self.end(role, why)

    def revive(self):
        for role, process in self.daemons.items():
            if process is None or not process.running:
                self.start(role)

    # ---- one round -----------------------------------------------------------------------------

    def provoke_before(self, point):
        """Prepares the store for the failpoint before the daemon that dies there is started."""
        if point in NEEDS_LIST:
            # What the reflector misses is forgotten meanwhile: it has to list, and finds deletes.
            if self.daemons["reflector"].running:
                self.end("reflector", "before")
            self.simulator.delete_many(FEED, 5)
            self.simulator.compact()
        if point.startswith("rebuild."):
            self.end_all("index removed")
            shutil.rmtree(self.store.path / "index", ignore_errors=True)
        elif point == "index.backfill":
            self.configure()

    def round_at(self, point):
        role = "reflector" if point.startswith(REFLECTOR) else "processor"
        self.end(role, "before")
        self.provoke_before(point)
        nth = 1 if point in PASSED_ONCE else self.chance.randint(1, 4)
        self.start(role, f"{point}:{nth}:kill")
        self.revive()
        # A list after 410 waits for its back-off, trimming for its turn.
        deadline = time.monotonic() + (6.0 if point in NEEDS_LIST or point in SLOW else 2.0)
        while self.daemons[role].running and time.monotonic() < deadline:
            time.sleep(0.01)
        self.end(role, point if not self.daemons[role].running else f"{point} (not reached)")

    def round_at_random(self):
        time.sleep(self.chance.uniform(0, 0.3))
        processor = self.daemons["processor"]
        if self.chance.random() < 0.4 and processor.running:
            processor.send(signal.SIGSTOP)
            time.sleep(self.chance.uniform(0, 0.5))
            processor.send(signal.SIGCONT)
            self.kills["stopped processor"] = self.kills.get("stopped processor", 0) + 1
        victims = self.chance.choice([["reflector"], ["processor"], ["reflector", "processor"]])
        for role in victims:
            self.end(role, f"random {role}")
        if self.chance.random() < 0.3:
            self.simulator.compact()
        if self.chance.random() < 0.2:
            self.end_all("runtime directory removed")
            shutil.rmtree(self.store.runtime, ignore_errors=True)
            self.store.runtime.mkdir(mode=0o700, exist_ok=True)

    def run(self, seconds, only=None):
        self.revive()
        self.store.wait_synced(FEED, 60)
        self.follower = self.store.follower("watch", FEED, "-o", "json", "--old", "--cursor", "crash")
        self.handler = self.store.process("handler", [program("programs/informer"), FEED, "--cache"]).start()
        self.simulator.churn(FEED, 150, 20)
        end = time.monotonic() + seconds
        rounds = 0
        queue = []
        while time.monotonic() < end:
            if not queue:
                queue = [p for p in self.points if not only or p.startswith(only)]
                self.chance.shuffle(queue)
            if rounds % 3 == 2:
                self.round_at_random()
            else:
                self.round_at(queue.pop())
            self.revive()
            rounds += 1
            if rounds % 10 == 0:
                self.store.wait_synced(FEED, 60)
                found = self.store.kinf("verify")
                assert found.status == 0, found
            assert self.follower.running, self.follower.tail()
            assert self.handler.running, self.handler.tail()
        return rounds

    # ---- afterwards ----------------------------------------------------------------------------

    def settle(self):
        self.simulator.churn(FEED, 0)
        self.revive()
        self.store.wait_synced(FEED, 60)
        self.store.wait_equal(self.simulator, FEED, 60)
        deep = self.store.kinf("verify", "--deep", timeout=120)
        assert deep.status == 0, deep

    def check_no_list(self):
        """Kills both daemons at once: they come back without a LIST."""
        self.simulator.wait_watching(FEED)
        self.simulator.bookmark()
        time.sleep(0.5)
        for role in self.daemons:
            self.end(role, "last")
        self.simulator.touch(FEED, 20)
        self.simulator.forget_requests()
        self.revive()
        self.store.wait_equal(self.simulator, FEED, 60)
        asked = self.simulator.requests(resource=FEED)
        lists = [request for request in asked if request["verb"] == "list" or "sendInitialEvents" in request["query"]]
        assert not lists, lists

    def check_follower(self):
        """Checks that the follower has the state of the cluster. Returns the number of its lines."""
        truth = self.simulator.truth(FEED)

        def caught_up():
            state = replay(self.follower.lines)
            assert state.keys() == truth.keys(), sorted(state.keys() ^ truth.keys())[:10]
            different = [key for key in truth if state[key] != truth[key]]
            assert not different, different[:10]
            return True

        eventually(caught_up, 60, "the follower's state as in the cluster")
        status = self.follower.stop()
        assert status == 0, self.follower.tail()
        return len(self.follower.lines)


    def check_handler(self):
        """Checks what the handler found in the cache. Returns how many calls read it, and how many had to try again."""
        truth = {key: obj["metadata"]["resourceVersion"] for key, obj in self.simulator.truth(FEED).items()}
        eventually(lambda: replay_calls(self.handler.lines) == truth, 60, "the handler's calls as in the cluster")
        read = [line for line in self.handler.lines if line["call"] in ("add", "update")]
        again = [line for line in read if line["cache"] == "again"]
        for line in read:
            older = line["cache"] not in (None, "again") and int(line["cache"]) < int(line["rv"])
            assert not older, f"the cache was older than the change: {line}"
        status = self.handler.stop()
        assert status == 0, self.handler.tail()
        return len(read), len(again)


def key_of(obj):
    return obj["metadata"]["namespace"] + "/" + obj["metadata"]["name"]


def replay(lines):
    """Returns the state after a follower's lines, each of which has to fit the ones before."""
    state, last, synced = {}, 0, False
    for line in lines:
        kind = line["type"]
        assert kind != "LAPPED", "the follower was lapped although its cursor holds history"
        if kind == "SYNC":
            synced = True
            continue
        key, obj = key_of(line["object"]), line["object"]
        if line.get("initial"):
            assert not synced, f"initial object {key} after SYNC"
            assert key not in state, f"{key} came twice in the initial state"
            state[key] = obj
            continue
        assert line["event"] > last, f"event {line['event']} after {last}"
        last = line["event"]
        before = state.get(key)
        if kind == "ADDED":
            assert before is None, f"event {last}: ADDED of {key}, which is there"
            state[key] = obj
        elif kind == "MODIFIED":
            assert before is not None and line["old"] == before, f"event {last}: another old state of {key}"
            state[key] = obj
        else:
            assert kind == "DELETED" and before is not None, f"event {last}: {kind} of {key}, unknown"
            known = obj if line.get("finalStateUnknown") else line["old"]
            assert known == before, f"event {last}: another old state of {key}"
            del state[key]
    return state


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--only", help="only failpoints whose name begins so")
    parser.add_argument("--streaming", choices=["yes", "no"], help="lists as streams; else the seed decides")
    args = parser.parse_args()
    chance = random.Random(args.seed)
    streaming = chance.random() < 0.5
    if args.streaming:
        streaming = args.streaming == "yes"
    print(f"seed {args.seed}, lists {'as streams' if streaming else 'in pages'}", flush=True)
    workspace = Workspace()
    try:
        loop = Loop(workspace, chance, streaming)
        rounds = loop.run(args.seconds, args.only)
        loop.settle()
        loop.check_no_list()
        lines = loop.check_follower()
        read, again = loop.check_handler()
        workspace.close()
    except BaseException:
        print(workspace.report())
        raise
    shutil.rmtree(workspace.directory)
    reached = sorted(k for k in loop.kills if k in loop.points)
    missed = sorted(set(loop.points) - set(reached))
    print(f"{rounds} rounds, {sum(loop.kills.values())} kills, follower read {lines} lines, "
        f"the handler read the cache {read} times, {again} of them too early")
    print(f"failpoints reached: {', '.join(reached)}")
    print(f"not reached: {', '.join(missed) or 'none'}")
    print(f"kills: {loop.kills}")


if __name__ == "__main__":
    main()
