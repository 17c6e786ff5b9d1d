# SPDX-License-Identifier: Apache-2.0
"""Runs the kinf command, an informer, both daemons and kinf-serve with one fault each: a failing
allocation or system call."""

import http.client
import re
import signal

from torture import FEED, INDEXES, ORDERLY, SANITIZER, Tally, chosen, eventually, place_of, program, whole

from harness.informer import replay
from harness.serve import Client, UnixConnection

OBJECTS = 40
VARIES = re.compile(r"\(\w+ ago\)|\b\d+s\b|[0-9.]+ \w+ free")  # ages, and the room on the disk
STORE = "(store)"
COMMANDS = [
    ["get", FEED, "-o", "json"],
    ["get", FEED, "-o", "yaml", "--index", "node=node-1"],
    ["get", FEED, "--sort-by", "spec.nodeName", "--limit", "7", "-o", "custom-columns=A:.metadata.name,B:.spec.nodeName"],
    ["get", FEED, "-l", "app in (a,b),!x", "--field-selector", "status.phase=Running", "-o", "name"],
    ["get", FEED, "-o", "jsonpath={range .items[*]}{.metadata.name}{end}"],
    ["describe", FEED, "ns-0/pod-0"],
    ["log", FEED],
    ["export"],
    ["index", FEED, "node"],
    ["watch", FEED, "-o", "json", "--count", "5"],
    ["top", "--once", "--store", STORE],
    ["dump", "objects"],
    ["verify", "--deep"],
    ["config", "check"],
]


class Note:
    """The file with a program's report of its allocations."""

    def __init__(self, path):
        self.path = path
        path.unlink(missing_ok=True)

    def env(self, number):
        return {"KINF_TORTURE_FAIL": str(number), "KINF_TORTURE_NOTE": str(self.path)}

    def _find(self, word):
        return re.findall(rf"(?m)^{word} (\d+) (\S+)$", self.path.read_text() if self.path.exists() else "")

    @property
    def failed(self):
        return self._find("failed")

    def text(self, process):
        return [f"{number} {place_of(process.argv[0], at) if at.startswith('0x') else at}" for number, at in self.failed]

    @property
    def made(self):
        return max((int(number) for number, _ in self._find("made")), default=0)


class Runs:
    """Runs each program again and again; a fault of one kind at one place in each run.

    KINDS: {name: its environment}; PREFIX: of the programs in the build directory.
    """

    def __init__(self, workspace, options, kinds, prefix=""):
        self.options, self.kinds, self.prefix = options, kinds, prefix
        self.tally = Tally()
        self.simulator = workspace.simulator()
        self.simulator.create(FEED, OBJECTS, size=800)
        self.store = workspace.store(simulator=self.simulator)
        self.store.configure(whole(FEED, indexes=INDEXES), "configmaps", hangLimit="5m", serve={"listen": ["unix"], "auth": "open"})
        self.note_path = workspace.directory / "note"

    # ---- commands --------------------------------------------------------------------------------

    def command(self, words, env, number):
        note = Note(self.note_path)
        words = [self.store.path if word == STORE else word for word in words]
        process = self.store.process("kinf", [program(self.prefix + "kinf"), *words], {**env, **note.env(number)})
        for path in (process.out_path, process.err_path):
            path.unlink(missing_ok=True)
        return process.start().wait(60), process, note

    def commands(self):
        """The daemons have ended: nothing changes between two runs."""
        for words in COMMANDS:
            name = f"kinf {words[0]}"
            if self.options.only not in name or (words[0] == "top" and not self.prefix):
                continue  # a page shows what can be read, after a failed system call too
            for kind, env in self.kinds.items():
                status, process, note = self.command(words, env, 0)
                assert status == 0, process.tail()
                good = process.out
                made = note.made
                for number in chosen(made, self.options.count, self.options.seed):
                    status, process, note = self.command(words, env, number)
                    if not note.failed and status == 0 and number > made - 5:
                        continue  # the number of allocations varies by a few from run to run
                    self.tally.tried(f"{name} {kind}".strip(), self.fault_of_command(status, process, note, good))

    def fault_of_command(self, status, process, note, good):
        def fault(what):
            return f"{what}; {note.text(process)}\n{process.tail(12)}"

        if SANITIZER.search(process.log):
            return fault("a sanitizer's report")
        if not note.failed:
            return fault("the allocation was not reached")
        if status == 0:
            return None if VARIES.sub("", process.out) == VARIES.sub("", good) else fault("exit 0, another result")
        if status not in (1, 2, 75, 78) or not process.log.strip():
            return fault(f"status {status}")
        return fault("a failure without a sentence") if re.search(r"Error: *$", process.log, re.M) else None

    # ---- informers -------------------------------------------------------------------------------

    def informer(self, words, env, note, number):
        argv = [program("torture/informer" if self.prefix else "programs/informer"), FEED, *words]
        process = self.store.process("informer", argv, {**env, **note.env(number)})
        for path in (process.out_path, process.err_path):
            path.unlink(missing_ok=True)
        return process.start()

    def informers(self):
        """The daemons run: handlers are called, with and without a cursor."""
        for words in (["--cache", "--filter", "app in (a,b)"], ["--cursor", "torture", "--cache", "--track-keys"]):
            name = "informer with a cursor" if "--cursor" in words else "informer"
            if self.options.only not in name:
                continue
            for kind, env in self.kinds.items():
                note = Note(self.note_path)
                process = self.informer(words, env, note, 0)
                assert not self.fault_of_informer(process, note, words), process.tail()
                for number in chosen(note.made, self.options.count, self.options.seed):
                    note = Note(self.note_path)
                    process = self.informer(words, env, note, number)
                    fault = self.fault_of_informer(process, note, words)
                    if note.failed or fault:
                        self.tally.tried(f"{name} {kind}".strip(), fault and f"{fault}; {note.text(process)}\n{process.tail(12)}")

    def fault_of_informer(self, process, note, words):
        """It hands out each change, or ends with a sentence."""
        try:
            for _ in range(2):
                eventually(lambda: '"sync"' in process.out or "--cursor" in words or not process.running, 8)
                rv = str(self.simulator.touch(FEED, 3))
                eventually(lambda: f'"rv":"{rv}"' in process.out or not process.running, 8)
            status = process.stop(30)
            if "--cursor" not in words:
                replay(line for line in process.lines if "filtered" not in line)
        except AssertionError as problem:
            process.kill(signal.SIGKILL)
            return f"it neither goes on nor ends: {str(problem)[:300]}"
        if SANITIZER.search(process.log):
            return "a sanitizer's report"
        if status not in (0, 1) or (status and not re.search(r"(?m)^informer: \S.*\w", process.log)):
            return f"status {status}"
        return None if note.failed or not status else "it ended without a fault"

    # ---- kinf-serve ------------------------------------------------------------------------------

    def serve(self):
        if self.options.only not in "kinf-serve":
            return
        for kind, env in self.kinds.items():
            if kind.endswith("EAGAIN"):
                continue  # the kernel says so only of a full socket, and then reports when it has room again (EPOLLET)
            note = Note(self.note_path)
            process = self.start("kinf-serve", env, note, 0)
            fault = self.fault_of_serve(process)
            assert not fault, f"{fault}\n{process.tail()}"
            for number in chosen(note.made, self.options.count, self.options.seed):
                note = Note(self.note_path)
                process = self.start("kinf-serve", env, note, number)
                fault = self.fault_of_serve(process)
                if note.failed or fault:
                    self.tally.tried(f"kinf-serve {kind}".strip(), fault and f"{fault}; {note.text(process)}\n{process.tail(12)}")

    def ask(self, path, right):
        """Whether the answer to PATH is RIGHT. A wrong answer of status 200 is a fault."""
        addresses = (self.store.path / "serve/addresses").read_text().splitlines()
        socket = next(line.split(" ")[2] for line in addresses if line.startswith("api unix "))
        try:
            answer = Client(lambda: UnixConnection(socket)).ask(path)
            if answer.status != 200:
                assert answer.json["kind"] == "Status" and answer.message, f"{path}: {answer.status} without a sentence"
                return False
            found = right(answer)
        except (OSError, http.client.HTTPException, ValueError):
            return False  # the connection ended, perhaps inside of the answer
        assert found, f"{path}: {answer.body[:300]}"
        return True

    def fault_of_serve(self, process):
        """After the fault it answers as before, or has ended with a sentence."""
        names = sorted(key.split("/")[1] for key in self.simulator.truth(FEED))
        questions = [
            (f"/api/v1/{FEED}", lambda answer: sorted(answer.names) == names),
            (f"/api/v1/{FEED}?limit=7&labelSelector=app%21%3Dnone", lambda answer: len(answer.names) == 7),
            (f"/api/v1/namespaces/ns-0/{FEED}/pod-0", lambda answer: answer.json["metadata"]["name"] == "pod-0"),
            (f"/api/v1/{FEED}?watch=1&timeoutSeconds=1&resourceVersion=0", lambda answer: len(answer.events) >= len(names)),
            ("/apis", lambda answer: "kind" in answer.json),
        ]
        try:
            eventually(lambda: "daemon_started" in process.log or not process.running, 8)
            for path, right in questions:
                if process.running:
                    self.ask(path, right)
            for path, right in questions[:3]:
                eventually(lambda: not process.running or self.ask(path, right), 4, f"an answer to {path}")
            status = process.stop(30)
        except AssertionError as problem:
            process.kill(signal.SIGKILL)
            return str(problem)[:500]
        if SANITIZER.search(process.log):
            return "a sanitizer's report"
        if status not in ORDERLY or (status and not re.search(r" daemon_ended |^\S+: .", process.log, re.M)):
            return f"status {status}"
        return None

    # ---- daemons ---------------------------------------------------------------------------------

    def start(self, name, env, note, number):
        argv = [program(self.prefix + name), "--config", self.store.config, "--runtime-dir", self.store.runtime]
        process = self.store.process(name, argv if name != "kinf-serve" else argv + ["-v"], {**env, **note.env(number)})
        process.err_path.unlink(missing_ok=True)
        return process.start()

    def settle(self, process):
        """Changes reach readers, or PROCESS has ended."""
        self.simulator.touch(FEED, 3)
        truth = self.simulator.truth(FEED)

        def settled():
            if not process.running:
                return True
            found = self.store.kinf("get", FEED, "-o", "json")
            return found.status == 0 and {(o["metadata"]["name"], o["metadata"]["resourceVersion"]) for o in found.json["items"]} == {
                (o["metadata"]["name"], o["metadata"]["resourceVersion"]) for o in truth.values()}  # fmt: skip

        eventually(settled, timeout=8)

    def daemon(self, name, clean):
        """One run of the daemon for each number: it starts, takes changes, and ends. CLEAN: the
        same daemon without fault."""
        if self.options.only not in name:
            return
        for kind, env in self.kinds.items():
            note = Note(self.note_path)
            process = self.start(name, env, note, 0)
            self.settle(process)
            self.settle(process)
            assert process.stop(30) == 0, process.tail()
            for number in chosen(note.made, self.options.count, self.options.seed):
                note = Note(self.note_path)
                process = self.start(name, env, note, number)
                fault = self.fault_of_daemon(process, clean)
                if not note.failed and not fault:
                    continue  # this run had less to do
                if fault:
                    fault += f"; {note.text(process)}\n{process.tail(25)}"
                self.tally.tried(f"{name} {kind}".strip(), fault)

    def lineage(self):
        """The uuid of the journal: another one means a new list and a lost history."""
        journal = self.store.path / "journal"
        return re.search(r"(?m)^uuid (\w+)$", (journal / (journal / "CURRENT").read_text().strip() / "STATE").read_text())[1]

    def fault_of_daemon(self, process, clean):
        before = self.lineage()
        try:
            self.settle(process)
            self.settle(process)
            status = process.stop(30)
        except AssertionError as problem:
            process.kill(signal.SIGKILL)
            return f"it neither goes on nor ends: {str(problem)[:300]}"
        if SANITIZER.search(process.log):
            return "a sanitizer's report"
        if status not in ORDERLY or (status and not re.search(r" daemon_ended |^\S+: .", process.log, re.M)):
            return f"status {status}"
        if status:  # its supervisor starts it again
            try:
                clean.start()
                self.settle(clean)
            except AssertionError as problem:
                return f"it does not recover: {str(problem)[:300]}"
            finally:
                clean.stop()
        if self.lineage() != before:
            return "it gave up the journal"
        if (verified := self.store.kinf("verify")).status:
            return f"verify: {verified}"
        return None

    def run(self):
        processor, reflector = self.store.daemons()
        self.store.wait_equal(self.simulator, FEED)
        processor.stop()
        self.daemon("kinf-processor", processor)
        followed = processor.log.count(" journal_followed ")
        processor.start()
        # An ending daemon takes the lock of a just started one for a moment. The new one then ends
        # also, for its supervisor.
        eventually(lambda: processor.log.count(" journal_followed ") > followed, what="the processor follows the journal")
        self.store.wait_equal(self.simulator, FEED)
        reflector.stop()
        self.daemon("kinf-reflector", reflector)
        reflector.start()
        self.store.wait_equal(self.simulator, FEED)
        self.informers()
        self.serve()
        self.store.verify()
        for process in (processor, reflector):
            process.stop()
        self.commands()
        return self.tally.end()


