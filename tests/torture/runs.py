# SPDX-License-Identifier: Apache-2.0
"""Runs the kinf command and both daemons with one fault each: an allocation or a system call that fails."""

import re
import signal

from torture import FEED, INDEXES, ORDERLY, SANITIZER, Tally, chosen, eventually, place_of, program, whole

OBJECTS = 40
AGE = re.compile(r"\(\w+ ago\)")
COMMANDS = [
    ["get", FEED, "-o", "json"],
    ["get", FEED, "-o", "yaml", "--index", "node=node-1"],
    ["get", FEED, "--sort-by", "spec.nodeName", "--limit", "7", "-o", "custom-columns=A:.metadata.name,B:.spec.nodeName"],
    ["get", FEED, "-l", "app in (a,b),!x", "--field-selector", "status.phase=Running", "-o", "name"],
    ["get", FEED, "-o", "jsonpath={range .items[*]}{.metadata.name}{end}"],
    ["describe", FEED, "ns-0/pod-0"],
    ["index", FEED, "node"],
    ["watch", FEED, "-o", "json", "--count", "5"],
    ["dump", "objects"],
    ["verify", "--deep"],
    ["config", "check"],
]


class Note:
    """The file in which a program under test reports its allocations."""

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

    KINDS: {name: environment of that kind}; PREFIX: of the programs in the build directory.
    """

    def __init__(self, workspace, options, kinds, prefix=""):
        self.options, self.kinds, self.prefix = options, kinds, prefix
        self.tally = Tally()
        self.simulator = workspace.simulator()
        self.simulator.create(FEED, OBJECTS, size=800)
        self.store = workspace.store(simulator=self.simulator)
        self.store.configure(whole(FEED, indexes=INDEXES), "configmaps", hangLimit="5m")
        self.note_path = workspace.directory / "note"

    # ---- commands --------------------------------------------------------------------------------

    def command(self, words, env, number):
        note = Note(self.note_path)
        process = self.store.process("kinf", [program(self.prefix + "kinf"), *words], {**env, **note.env(number)})
        for path in (process.out_path, process.err_path):
            path.unlink(missing_ok=True)
        return process.start().wait(60), process, note

    def commands(self):
        """The daemons have ended: nothing changes between two runs."""
        for words in COMMANDS:
            name = f"kinf {words[0]}"
            if self.options.only not in name:
                continue
            for kind, env in self.kinds.items():
                status, process, note = self.command(words, env, 0)
                assert status == 0, process.tail()
                good = process.out
                for number in chosen(note.made, self.options.count, self.options.seed):
                    status, process, note = self.command(words, env, number)
                    self.tally.tried(f"{name} {kind}".strip(), self.fault_of_command(status, process, note, good))

    def fault_of_command(self, status, process, note, good):
        def fault(what):
            return f"{what}; {note.text(process)}\n{process.tail(12)}"

        if SANITIZER.search(process.log):
            return fault("a sanitizer's report")
        if not note.failed:
            return fault("the allocation was not reached")
        if status == 0:
            return None if AGE.sub("", process.out) == AGE.sub("", good) else fault("exit 0, another result")
        if status not in (1, 2, 75, 78) or not process.log.strip():
            return fault(f"status {status}")
        return fault("a failure without a sentence") if re.search(r"Error: *$", process.log, re.M) else None

    # ---- daemons ---------------------------------------------------------------------------------

    def start(self, name, env, note, number):
        argv = [program(self.prefix + name), "--config", self.store.config, "--runtime-dir", self.store.runtime]
        process = self.store.process(name, argv, {**env, **note.env(number)})
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
        """One run of the daemon for each number: it starts, takes changes, and ends. CLEAN: the same daemon without fault."""
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
        """The uuid of the journal: another one means that everything was listed again, and history is lost."""
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
        processor.start()
        self.store.wait_equal(self.simulator, FEED)
        reflector.stop()
        self.daemon("kinf-reflector", reflector)
        reflector.start()
        self.store.wait_equal(self.simulator, FEED)
        self.store.verify()
        for process in (processor, reflector):
            process.stop()
        self.commands()
        return self.tally.end()


