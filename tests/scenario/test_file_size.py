# SPDX-License-Identifier: Apache-2.0
"""The files of a store are about as long as their content, at every moment: a copy needs no flags."""

import os
import signal
import threading
import shutil

from harness import eventually
from harness.store import whole

MIB = 1 << 20


class Watched(threading.Thread):
    """Reads the lengths of all files of a store again and again, until stop()."""

    def __init__(self, *directories):
        super().__init__()
        self.directories, self.faults, self.seen, self.ended = directories, [], 0, threading.Event()
        self.start()

    def run(self):
        while not self.ended.wait(0.02):
            for directory in self.directories:
                for folder, _, names in os.walk(directory):
                    for name in names:
                        self.look(os.path.join(folder, name))

    def look(self, path):
        try:
            file = os.stat(path)
        except FileNotFoundError:
            return
        self.seen += 1
        if file.st_size > 1.3 * file.st_blocks * 512 + 16 * MIB:
            self.faults.append((path, file.st_size, file.st_blocks * 512))

    def stop(self):
        self.ended.set()
        self.join()
        assert self.seen > 0 and not self.faults, self.faults[:10]


def lengths(path):
    return {str(f.relative_to(path)): f.stat().st_size for f in path.rglob("*") if f.is_file()}


def test_files_are_as_long_as_what_they_hold_while_daemons_run_and_after_kills(simulator, store):
    """mapSize keeps its default of 64 GiB; no file is ever near this length."""
    simulator.create("pods", 1000, size=3000)
    store.configure(whole("pods", indexes={"node": "spec.nodeName"}))
    watched = Watched(store.path, store.runtime)
    for _ in range(4):
        daemons = store.daemons()
        store.wait_equal(simulator, "pods")
        simulator.touch("pods", 500)
        for daemon in daemons:
            daemon.kill()
        assert sum(lengths(store.path).values()) < 60 * MIB, lengths(store.path)
    # A copy by a program without support for holes is as long, and complete.
    copy = store.directory / "copy"
    shutil.copytree(store.path, copy)
    assert lengths(copy) == lengths(store.path)
    store.daemons()
    store.wait_equal(simulator, "pods")
    watched.stop()
    store.verify()


def test_files_are_short_even_if_a_daemon_is_killed_while_it_starts(simulator, store):
    simulator.create("pods", 10)
    store.start(simulator, whole("pods"))
    for process in store.processes:
        process.kill()
    watched = Watched(store.path)
    for number in range(20):
        for start in (store.reflector, store.processor):
            daemon = start()
            threading.Event().wait(0.01 * number)
            daemon.kill()
    watched.stop()
    store.daemons()
    store.wait_equal(simulator, "pods")
    store.verify()


def test_a_file_that_is_much_longer_than_what_it_holds_gets_short_by_itself(simulator, store):
    """After many deletions. A starting reflector need not wait for a quiet minute."""
    simulator.create("pods", 20, size=1000000)
    store.configure(whole("pods"), retention={"time": "1s"})
    reflector = store.reflector()
    store.processor()
    store.wait_synced("pods")

    def journal():
        return store.kinf("status", "-o", "json", check=True).json["store"]["journal"]

    simulator.delete_many("pods", 19)
    eventually(lambda: journal()["usedBytes"] < 4 * MIB)
    assert journal()["fileBytes"] > 16 * MIB
    reflector.stop()
    reflector.start()
    eventually(lambda: journal()["fileBytes"] < 4 * MIB)
    assert sum(lengths(store.path / "journal").values()) < 6 * MIB
    store.wait_equal(simulator, "pods")
    store.verify()
