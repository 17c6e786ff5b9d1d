#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Kills (kill -9) daemons, `kinf run`, readers and followers, several in a second, while the
cluster changes and forgets its history: at random moments and at failpoints. The index is removed
and redefined in between, the runtime directory removed, and processes stopped for a moment;
lists come in pages and as streams. After every few hundred kills all of it comes to rest:

  * the store equals the cluster, `kinf verify --deep` finds no fault, and the journal is the first
    one;
  * once more with both daemons killed: no LIST was needed to come back;
  * for each cursor no event is lost and none comes twice, and each call of a cache-reading handler
    found its change there, or was told to try again (ledger.py);
  * no file has grown beyond its early size, and no file is left over.

usage: tests/torture/kills.py [--count N] [--seed N]    N kills ($KINF_BUILD: with failpoints)
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

os.environ.setdefault("KINF_BUILD", "build/debug")
from torture import FEED, arguments, eventually, program, whole, with_workspace  # noqa: E402
from ledger import Ledger, call_line, cursor_seq, watch_line  # noqa: E402

from harness.process import check_sanitizers  # noqa: E402
from harness.simulator import object_key  # noqa: E402

OBJECTS = 120
ROUND = 250  # kills between two rests
READS = [["get", FEED, "-o", "json"], ["get", FEED, "--index", "node=node-1", "-o", "name"], ["status"], ["describe", FEED, "ns-0/pod-0"]]
FOLLOWERS = {
    "watch": (lambda: [program("kinf"), "watch", FEED, "-o", "json", "--old", "--cursor", "watch"], watch_line),
    "informer": (lambda: [program("programs/informer"), FEED, "--cursor", "informer", "--cache"], call_line),
}
INDEX_SETS = [
    {"node": "spec.nodeName"},
    {"node": "spec.nodeName", "phase": "status.phase"},
    {"image": "spec.containers[*].image", "node-phase": ["spec.nodeName", "status.phase"]},
]
REFLECTOR, PROCESSOR = ("journal.", "list.", "ring."), ("index.", "rebuild.")
NEEDS_LIST = {"list.page", "list.reconcile", "index.list_apply"}
PASSED_ONCE = {"list.reconcile", "index.list_apply", "index.backfill", "journal.open", "index.open", "rebuild.begun", "rebuild.filled",
               "rebuild.switched"}  # fmt: skip


def failpoints():
    text = subprocess.run([program("kinf-processor")], env={**os.environ, "KINF_FAIL": "list"}, capture_output=True, text=True).stdout
    names = [line.split()[0] for line in text.splitlines() if line.strip()]
    assert len(names) > 10, f"no failpoints in this build: {text!r}"
    return names


class Kills:
    def __init__(self, workspace, options):
        self.options, self.counts, self.ledgers, self.sizes = options, {}, {}, []
        self.simulator = workspace.simulator()
        self.store = workspace.store(simulator=self.simulator)
        self.failure, self.streaming = None, False
        self.lock = threading.Lock()
        points = failpoints()
        self.points = {
            "reflector": [point for point in points if point.startswith(REFLECTOR)],
            "processor": [point for point in points if point.startswith(PROCESSOR) and point != "index.copy"],
            "follower": ["cursor.write", "watch.feeds", "env.pinned"],
        }
        self.turns = {"reflector": [], "processor": []}  # each point once before any comes again

    # ---- the store -----------------------------------------------------------------------------

    def begin(self):
        self.simulator.settings(bookmarkMs=200)
        self.simulator.create(FEED, OBJECTS, size=900)
        self.configure()
        self.reflector = self.daemon("kinf-reflector")
        self.processor = self.daemon("kinf-processor")
        self.supervisor = self.store.process("kinf-run", [program("kinf"), "run", "--config", self.store.config, "--runtime-dir", self.store.runtime])
        self.revive()
        self.store.wait_equal(self.simulator, FEED, 60)
        self.lineage = self.store.lineage()
        self.simulator.churn(FEED, 60, 20)
        for name in FOLLOWERS:
            process = self.follower(name).start()
            eventually(lambda: self.cursor(name), 30, f"the cursor of {name}")
            assert process.stop() == 0, process.tail()
            self.ledgers[name] = Ledger(self.events(name, process), self.cursor(name))
        self.rest()

    def configure(self):
        """Other indexes than before, and lists as streams instead of pages or the other way round."""
        INDEX_SETS.append(INDEX_SETS.pop(0))
        self.streaming = not self.streaming
        self.store.configure(whole(FEED, indexes=INDEX_SETS[0], pageSize=40), retention={"time": "1s", "size": "256MiB"},
                             streamingLists=self.streaming, hangLimit="5m")  # fmt: skip

    def daemon(self, name):
        return self.store.process(name, [program(name), "--config", self.store.config, "--runtime-dir", self.store.runtime])

    def cursor(self, name):
        return cursor_seq(self.store.path / "cursors" / name)

    # ---- kills ---------------------------------------------------------------------------------

    @property
    def total(self):
        return sum(self.counts.values())

    def killed(self, what):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + 1

    def end(self, process, what, fail=None):
        """Kills PROCESS and counts it under FAIL, a failpoint, if it has died there already."""
        there = not process.running
        status = process.kill()
        assert status == -signal.SIGKILL, f"{what} ended by itself with {status}:\n{process.tail()}"
        self.killed(f"{what} at {fail}" if there and fail else f"{what} at random")

    def start(self, process, fail=None):
        process.env.pop("KINF_FAIL", None)
        if fail:
            process.env["KINF_FAIL"] = fail
        process.err_path.unlink(missing_ok=True)
        process.out_path.unlink(missing_ok=True)
        return process.start()

    def revive(self):
        for process in (self.reflector, self.processor):
            if not process.running:
                self.start(process)

    def kill_daemon(self, chance):
        role = chance.choice(["reflector", "processor"])
        process = getattr(self, role)
        if chance.random() < 0.3:
            time.sleep(chance.uniform(0, 0.25))
            if chance.random() < 0.1:
                stop_for_a_moment(self.processor, chance)
            self.end(process, role)
            if chance.random() < 0.2:
                self.simulator.compact()
            if chance.random() < 0.3:
                self.end(self.processor if role == "reflector" else self.reflector, "both daemons")
                if chance.random() < 0.3:
                    shutil.rmtree(self.store.runtime, ignore_errors=True)
                    self.store.runtime.mkdir(mode=0o700, exist_ok=True)
            self.revive()
            return
        if not self.turns[role]:
            self.turns[role] = chance.sample(self.points[role], len(self.points[role]))
        point = self.turns[role].pop()
        self.end(process, role)
        if point in NEEDS_LIST:
            if role == "processor":
                self.end(self.reflector, "reflector")
            self.simulator.delete_many(FEED, 3)
            self.simulator.compact()
        if point.startswith("rebuild."):
            self.end(self.reflector, "reflector before its index goes")
            shutil.rmtree(self.store.path / "index", ignore_errors=True)
        elif point == "index.backfill":
            self.configure()
        self.start(process, f"{point}:{1 if point in PASSED_ONCE else chance.randint(1, 6)}:kill")
        self.revive()
        # A list after 410 waits for its back-off, trimming for its turn.
        deadline = time.monotonic() + (6 if point in NEEDS_LIST or point.startswith("journal.trim") else 2)
        while process.running and time.monotonic() < deadline:
            time.sleep(0.01)
        self.end(process, role, point)
        self.revive()

    def kill_supervisor(self, chance):
        """`kinf run` starts a killed daemon again; the daemons end when it is killed itself."""
        for process in (self.reflector, self.processor):
            self.end(process, "daemon before kinf run")
        self.start(self.supervisor)
        for _ in range(chance.randint(0, 3)):
            children = eventually(lambda: children_of(self.supervisor.pid), 10, "daemons")
            time.sleep(chance.uniform(0, 0.2))
            victim = chance.choice(children)
            try:
                os.kill(victim, signal.SIGKILL)
                self.killed("daemon of kinf run at random")
            except ProcessLookupError:
                pass
        time.sleep(chance.uniform(0, 0.1))
        children = children_of(self.supervisor.pid)
        self.end(self.supervisor, "kinf run")
        eventually(lambda: not [pid for pid in children if is_running(pid)], 5, "the daemons end without kinf run")
        self.revive()

    def daemons_loop(self, chance, limit):
        while self.goes_on(limit):
            (self.kill_supervisor if chance.random() < 0.05 else self.kill_daemon)(chance)

    def readers_loop(self, chance, limit):
        reader = self.store.process(f"reader-{threading.get_ident()}", [])
        while self.goes_on(limit):
            words = chance.choice(READS)
            reader.argv = [program("kinf"), *words]
            self.start(reader)
            time.sleep(chance.expovariate(1 / 0.03))
            if chance.random() < 0.1:
                stop_for_a_moment(reader, chance)
                status = reader.wait(60)
                assert status in (0, 1) and (status == 0 or reader.log.strip()), reader.tail()
                if status == 0 and words == READS[0]:
                    keys = [object_key(item) for item in json.loads(reader.out)["items"]]
                    assert keys == sorted(set(keys)), keys
            elif reader.running:
                reader.kill()
                self.killed("reader at random")

    def follower(self, name):
        return self.store.process(f"follower-{name}", FOLLOWERS[name][0]())

    def events(self, name, process):
        parse = FOLLOWERS[name][1]
        return list(filter(None, (parse(line) for line in process.lines)))

    def followers_loop(self, name, chance, limit):
        process = self.follower(name)
        while self.goes_on(limit):
            fail = None
            if chance.random() < 0.3:
                fail = f"{chance.choice(self.points['follower'])}:{chance.randint(1, 8)}:kill"
            self.start(process, fail)
            if chance.random() < 0.1:
                stop_for_a_moment(process, chance)
            deadline = time.monotonic() + chance.expovariate(1 / 0.8)
            while process.running and time.monotonic() < deadline:
                time.sleep(0.02)
            self.end(process, f"follower {name}", fail and fail.split(":")[0])
            check_sanitizers(process.log, name)
            self.ledgers[name].run_ended(self.events(name, process), self.cursor(name))

    def goes_on(self, limit):
        return not self.failure and self.total < limit

    def guarded(self, body, *args):
        try:
            body(*args)
        except BaseException as problem:  # noqa: B902
            self.failure = self.failure or problem

    def round(self, limit, seed):
        """Kills until there were LIMIT kills."""
        chances = [random.Random(f"{seed} {i}") for i in range(5)]
        threads = [
            threading.Thread(target=self.guarded, args=args)
            for args in [
                (self.daemons_loop, chances[0], limit),
                (self.readers_loop, chances[1], limit),
                (self.readers_loop, chances[2], limit),
                *((self.followers_loop, name, chance, limit) for name, chance in zip(FOLLOWERS, chances[3:])),
            ]
        ]
        self.simulator.create(FEED, OBJECTS, size=900)  # the deleted ones
        if (more := len(self.simulator.truth(FEED)) - 2 * OBJECTS) > 0:
            self.simulator.delete_many(FEED, more)
        self.simulator.churn(FEED, 60, 20)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.failure:
            raise self.failure

    # ---- rest ----------------------------------------------------------------------------------

    def rest(self):
        self.simulator.churn(FEED, 0)
        self.revive()
        self.store.wait_synced(FEED, 60)
        self.store.wait_equal(self.simulator, FEED, 60)
        assert self.store.lineage() == self.lineage, "another journal"
        self.check_no_list()
        processes = {name: self.start(self.follower(name)) for name in FOLLOWERS}
        self.simulator.touch(FEED, 3)  # for each of them to print
        truth = {name: {} for name in FOLLOWERS}
        for key, obj in self.simulator.truth(FEED).items():
            truth["informer"][key] = obj["metadata"]["resourceVersion"]
            truth["watch"][key] = watch_line({"type": "ADDED", "event": 0, "object": obj})[4]
        for name, ledger in self.ledgers.items():
            process = processes[name]

            def caught_up():
                assert process.running, process.tail()
                state = dict(ledger.confirmed)
                for number, kind, key, _, new in self.events(name, process):
                    if kind == "DELETED":
                        state.pop(key, None)
                    else:
                        state[key] = new
                return state == truth[name]

            eventually(caught_up, 60, f"{name} as in the cluster")
            assert process.stop() == 0, process.tail()
            ledger.run_ended(self.events(name, process), self.cursor(name))
            assert ledger.confirmed == truth[name] and not ledger.pending, f"{name}: {len(ledger.pending)} events after the cursor"
        deep = self.store.kinf("verify", "--deep", timeout=120)
        assert deep.status == 0, deep
        eventually(self.has_not_grown, 10)
        self.sizes.append(self.size())

    def check_no_list(self):
        self.simulator.wait_watching(FEED)
        self.simulator.bookmark()
        eventually(lambda: self.store.feed_status(FEED)["resourceVersion"] == self.simulator.rv, 30, "the bookmark is stored")
        for process in (self.reflector, self.processor):
            self.end(process, "both daemons at rest")
        self.simulator.touch(FEED, 20)
        self.simulator.forget_requests()
        self.revive()
        self.store.wait_equal(self.simulator, FEED, 60)
        asked = self.simulator.requests(resource=FEED)
        lists = [request for request in asked if request["verb"] == "list" or "sendInitialEvents" in request["query"]]
        assert asked and not lists, lists

    def size(self):
        files = [path for top in (self.store.path, self.store.runtime) for path in top.rglob("[!.]*") if path.is_file()]
        return {"files": len(files), "bytes": sum(path.stat().st_size for path in files), "kills": self.total,
                "names": sorted(map(str, files))}  # fmt: skip

    def has_not_grown(self):
        """Files left by a killed process are removed by daemons and by other processes, after a
        while. The daemons have up to two pin files of their own. A follower's temporary files, with
        a dot, are removed by the reflector after an hour."""
        now, first = self.size(), self.sizes[:2] or [self.size()]
        allowed = max(size["bytes"] for size in first) * 1.3 + (16 << 20)
        assert now["bytes"] <= allowed and now["files"] <= max(size["files"] for size in first) + 2, (first, now)
        return True

    def run(self):
        try:
            self.begin()
            while self.total < self.options.count:
                self.round(self.total + ROUND, f"{self.options.seed} {self.total}")
                self.rest()
                print(f"{self.total} kills, {self.sizes[-1]['files']} files, {self.sizes[-1]['bytes'] >> 10} KiB", flush=True)
            for process in (self.reflector, self.processor):
                assert process.stop() == 0, process.tail()
        finally:
            self.report()

    def report(self):
        for what, n in sorted(self.counts.items()):
            print(f"{what:50} {n:8}")
        for name, ledger in self.ledgers.items():
            print(f"cursor {name}: {ledger.events} events, {ledger.runs} runs, {ledger.repeated} came again after a kill")
        print(f"{'all':50} {self.total:8}", flush=True)


def stop_for_a_moment(process, chance):
    """With its pins and locks."""
    process.send(signal.SIGSTOP)
    time.sleep(chance.uniform(0, 0.5))
    process.send(signal.SIGCONT)


def children_of(pid):
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def main():
    options = arguments(__doc__, 500)
    with_workspace(lambda workspace: Kills(workspace, options).run())


if __name__ == "__main__":
    sys.exit(main())
