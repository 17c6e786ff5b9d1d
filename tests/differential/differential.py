# SPDX-License-Identifier: Apache-2.0
"""Runs the same random script for libkinf and for client-go, with one simulated API server, and compares the calls of
their handlers (README.md).

    differential.py --client-go PROGRAM [--serve] [--seed N] [--steps N]     $KINF_BUILD: the build under test
"""

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scenario"))

from compare import Difference, compare, is_resync  # noqa: E402
from conftest import Workspace  # noqa: E402
from harness import eventually  # noqa: E402
from harness.process import Process, program  # noqa: E402
from harness.store import whole  # noqa: E402

RESOURCE = "configmaps"
SELECTOR = "group=a"
PATIENCE = 90  # seconds; client-go's pauses grow to half a minute


@dataclass
class Handler:
    name: str
    resync_ms: int
    slow_ms: int
    selector: str
    began_at_rest: bool
    ended_at_rest: bool = False
    removed: bool = False
    over_a_relist: bool = False
    by_serve: bool = False

    def takes(self, obj):
        return self.selector == "-" or obj["metadata"].get("labels", {}).get("group") == "a"


class Side(Process):
    """One of the two programs, and its printed calls, by handler."""

    def __init__(self, name, argv, store):
        super().__init__(name, argv, store.directory, store.env)
        store.processes.append(self)
        self.told, self.read_to = {}, 0

    def start(self):
        with open(self.out_path, "wb") as out, open(self.err_path, "wb") as err:
            self.popen = subprocess.Popen(
                self.argv, stdin=subprocess.PIPE, stdout=out, stderr=err, env=self.env, cwd=self.cwd, text=True
            )
        return self

    def stop(self, timeout=20):
        if self.running:
            self.popen.stdin.close()
        return self.wait(timeout)

    def tell(self, *words):
        self.popen.stdin.write(" ".join(map(str, words)) + "\n")
        self.popen.stdin.flush()

    def calls(self, handler):
        assert self.running, self.tail()
        with open(self.out_path) as out:
            out.seek(self.read_to)
            for line in iter(out.readline, ""):
                if not line.endswith("\n"):
                    break
                self.read_to += len(line.encode())
                call = json.loads(line)
                self.told.setdefault(call["handler"], []).append(call)
        return self.told.get(handler.name, [])


class Run:
    """The run of one seed."""

    def __init__(self, workspace, seed, client_go, by_serve):
        self.by_serve = by_serve
        self.random = random.Random(seed)
        self.simulator = workspace.simulator()
        self.store = workspace.store(simulator=self.simulator)
        settings = {"serve": {"listen": ["unix", "127.0.0.1:0"], "auth": "open"}} if by_serve else {}
        self.store.configure(whole(RESOURCE), backoff={"min": "100ms", "max": "1s"}, **settings)
        self.handlers, self.steps = [], Counter()
        self.number = 0
        self.keys = [f"{namespace}/c{i}" for namespace in ("d-0", "d-1", "d-2") for i in range(6)]
        self.there = {}
        for _ in range(10):
            self.change()
        self.daemons = self.store.daemons()
        self.store.wait_synced(RESOURCE)
        self.sides = [
            Side("libkinf", [program("differential/libkinf"), RESOURCE], self.store).start(),
            Side("client-go", [client_go, *self.server(), "--resource", RESOURCE], self.store).start(),
        ]

    def server(self):
        """The options of client-go's program for its server."""
        if not self.by_serve:
            return ["--server", self.simulator.url]
        serve = self.store.process("kinf-serve", [program("kinf-serve"), "--config", self.store.config, "-v"]).start()
        serve.wait_log("daemon_started")
        addresses = (self.store.path / "serve" / "addresses").read_text().splitlines()
        address = next(line.split(" ")[2] for line in addresses if line.startswith("api https "))
        # A restarted kinf-serve must be at the same address.
        self.store.config.write_text(self.store.config.read_text().replace("127.0.0.1:0", address))
        self.serve = serve
        self.daemons = [*self.daemons, serve]
        return ["--server", f"https://{address}", "--ca", self.store.path / "serve" / "ca.crt"]

    @property
    def live(self):
        return [handler for handler in self.handlers if not handler.removed]

    # ---- the cluster ---------------------------------------------------------------------------

    def put(self, key, group=None):
        self.number += 1
        namespace, name = key.split("/")
        labels = {"group": group or self.random.choice("ab")}
        body = {"metadata": {"namespace": namespace, "name": name, "labels": labels}, "data": {"n": str(self.number)}}
        self.there[key] = self.simulator.put(RESOURCE, body)

    def delete(self, key):
        del self.there[key]
        self.simulator.delete(RESOURCE, key)

    def change(self):
        key = self.random.choice(self.keys)
        kind = self.random.random()
        if key not in self.there or kind < 0.6:
            self.put(key)
        else:
            self.delete(key)
            if kind < 0.75:
                self.put(key)  # another object of the same name

    def changes(self):
        for _ in range(self.random.randint(1, 12)):
            self.change()

    # ---- waiting -------------------------------------------------------------------------------

    def rest(self):
        """Waits until the calls of every handler add up to the server's state."""
        truth = self.simulator.truth(RESOURCE)

        def told():
            for handler in self.live:
                wanted = {k: o["metadata"]["resourceVersion"] for k, o in truth.items() if handler.takes(o)}
                for side in self.sides:
                    calls = side.calls(handler)
                    state = {}
                    for call in calls:
                        if call["call"] == "delete":
                            state.pop(call["key"], None)
                        elif "key" in call:
                            state[call["key"]] = call["rv"]
                    synced = any(call["call"] == "sync" for call in calls)
                    assert state == wanted and synced, (side.name, handler, sorted(state.items() ^ wanted.items())[:6])
            return True

        eventually(told, PATIENCE, "both informers are at rest")

    # ---- steps ---------------------------------------------------------------------------------

    def add_handler(self, first=False):
        at_rest = first or self.random.random() < 0.6
        if at_rest and not first:
            self.rest()
        handler = Handler(
            f"h{len(self.handlers)}",
            by_serve=self.by_serve,
            resync_ms=self.random.choice((0, 0, 1000)),
            slow_ms=self.random.choice((0, 0, 2, 8)),
            selector=self.random.choice(("-", "-", SELECTOR)),
            began_at_rest=at_rest,
        )
        self.handlers.append(handler)
        for side in self.sides:
            side.tell("add", handler.name, handler.resync_ms, handler.slow_ms, handler.selector)
        if at_rest:  # waits for the handler's first call, not only for the request
            self.rest()

    def remove_handler(self):
        if len(self.live) < 2:
            return
        handler = self.random.choice(self.live)
        handler.ended_at_rest = self.random.random() < 0.5
        if handler.ended_at_rest:
            self.rest()
        handler.removed = True
        for side in self.sides:
            side.tell("remove", handler.name)
        if handler.ended_at_rest:  # before any change, for one of them might still get it
            eventually(lambda: all(side.calls(handler)[-1]["call"] == "removed" for side in self.sides), PATIENCE, "the removal")

    def outage(self, expired):
        """Objects change while the server is away. EXPIRED: the server then has no history of these changes."""
        self.rest()
        time.sleep(1.2)  # client-go lists again after a watch without events ended within a second
        for handler in self.live:
            handler.over_a_relist |= expired
        self.simulator.down()
        self.changes()
        if expired:
            self.simulator.compact()
        self.simulator.up()
        if self.random.random() < 0.5:
            if expired:  # each lists at its return, and has missed the earlier changes
                self.rest()
            self.changes()
        self.rest()

    def resync(self):
        """Waits until both programs have resynced every handler with a resync; no other handler may be resynced."""
        self.rest()
        truth = self.simulator.truth(RESOURCE)

        def rounds(side, handler):
            counts = Counter(call["key"] for call in side.calls(handler) if "key" in call and is_resync(call))
            keys = [key for key, obj in truth.items() if handler.takes(obj)]
            return min((counts[key] for key in keys), default=0), bool(keys)

        wanting = [(side, handler) for side in self.sides for handler in self.live if handler.resync_ms]
        before = {(side.name, handler.name): rounds(side, handler)[0] for side, handler in wanting}

        def again():
            for side, handler in wanting:
                now, any_key = rounds(side, handler)
                assert not any_key or now > before[side.name, handler.name], (side.name, handler)
            return True

        eventually(again, PATIENCE, "a resync on both sides")

    def kill(self):
        """Kills one of our daemons during changes; no handler may notice."""
        daemon = self.random.choice(self.daemons)
        self.changes()
        daemon.kill()
        self.changes()
        daemon.start()
        self.changes()

    def count_calls(self):
        return sum(len(self.sides[0].calls(handler)) for handler in self.handlers)

    def processor(self):
        """Stops the processor while handlers and the worker read by index, and sometimes kills it then."""
        processor = next(daemon for daemon in self.daemons if "processor" in daemon.name)
        self.changes()
        processor.send(signal.SIGSTOP)
        calls = self.count_calls()
        self.put(self.random.choice(self.keys), "a")  # every handler takes it
        if self.random.random() < 0.4:  # until the first one has waited in vain; the others wait when it goes on
            eventually(lambda: self.count_calls() > calls, PATIENCE, "a call without the index")
        if self.random.random() < 0.5:
            processor.kill()
            processor.start()
        else:
            processor.send(signal.SIGCONT)
        self.changes()

    def step(self):
        steps = {
            self.changes: 60, self.add_handler: 16, self.remove_handler: 12, self.kill: 6, self.processor: 8,
            self.resync: 3,
        }  # fmt: skip
        step = self.random.choices(list(steps), weights=steps.values())[0]
        self.steps[step.__name__] += 1
        step()

    def go(self, steps):
        self.add_handler(first=True)
        outages = dict(zip(self.random.sample(range(steps), 3), (True, True, False)))
        for i in range(steps):
            self.step()
            if i in outages:
                self.outage(outages[i])
        self.rest()
        for handler in self.live:
            handler.ended_at_rest = True

    # ---- comparison ----------------------------------------------------------------------------

    def check(self):
        ours, theirs = self.sides
        calls = [call for handler in self.handlers for call in ours.calls(handler) if "key" in call]
        self.reads = sum(call["read"] for call in calls)
        self.worked = max(call["worked"] for call in calls)
        if not self.reads or not self.worked:
            raise Difference(f"{self.reads} handlers and {self.worked} workers have read the cache")
        if self.by_serve:
            self.check_served()
        for handler in self.handlers:
            mine, other = before_removal(ours.calls(handler)), before_removal(theirs.calls(handler))
            compare(handler, mine, other)
            if not handler.resync_ms:
                stray = [call for call in mine if call["call"] == "update" and is_resync(call)]
                if stray:
                    raise Difference(f"{handler}: resynced without having asked: {stray[:3]}")


    def check_served(self):
        """client-go has listed once, and has returned from every kill with a continued watch."""
        self.serve.stop()
        served = [line for line in self.serve.log.splitlines() if "request_served" in line]
        lists = [line for line in served if "watch=" not in line or "sendInitialEvents=true" in line]
        if len(lists) > 1 or not served or any("status=410" in line for line in served):
            raise Difference("client-go has listed again:\n" + "\n".join(served))


def before_removal(calls):
    """client-go's last call may end after the removal; libkinf's may not."""
    kinds = [call["call"] for call in calls]
    return calls[: kinds.index("removed")] if "removed" in kinds else calls


def run(seed, steps, client_go, by_serve):
    workspace = Workspace()
    try:
        this = Run(workspace, seed, client_go, by_serve)
        this.go(steps)
        this.check()
        calls = [sum(map(len, side.told.values())) for side in this.sides]
        print(f"seed {seed}{' by kinf-serve' * by_serve}: {len(this.handlers)} handlers, {this.number} changes, {dict(this.steps)}, "
              f"calls {calls[0]} and {calls[1]}, {this.reads} read by index, {this.worked} by a worker", flush=True)  # fmt: skip
    except BaseException:
        workspace.keep = True
        print(f"seed {seed} failed\n{workspace.report()}", file=sys.stderr)
        raise
    finally:
        workspace.close()
    shutil.rmtree(workspace.directory)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--client-go", required=True)
    parser.add_argument("--serve", action="store_true", help="client-go reads from a kinf-serve of the same store")
    parser.add_argument("--seed", type=int, action="append")
    parser.add_argument("--steps", type=int, default=40)
    arguments = parser.parse_args()
    for seed in arguments.seed or [1]:
        run(seed, arguments.steps, arguments.client_go, arguments.serve)


if __name__ == "__main__":
    main()
