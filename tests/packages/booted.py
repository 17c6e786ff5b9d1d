#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
Boots a Debian with systemd, installs the packages of DIR in it, and lives with them as an administrator does: configures,
enables, reloads, reads, freezes and kills, tries to get out of the sandbox, activates kinf-serve by its socket, upgrades in use.

usage: tests/packages/booted.py DIR     (as root; $KINF_BUILD has the simulator)
"""

import http.client
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

os.environ.setdefault("KINF_BUILD", "build/release")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scenario"))
from conftest import Workspace  # noqa: E402
from harness import eventually  # noqa: E402
from harness.store import write_kubeconfig  # noqa: E402
from root import Machine, follow, in_namespace, repack, run  # noqa: E402

NAMES = ["kinformer", "libkinf0", "libkinf-dev", "python3-kinf"]
PODS = 200
UNITS = ["kinf.service", "kinf@prod.service", "kinf-serve.service"]
PYTHON = "import kinf; print(len(list(kinf.Store('/var/lib/kinf').feed('pods').list())))"
# Reads from one store, opened before, again and again.
HOLDER = """
import kinf, time
store = kinf.Store('/var/lib/kinf')
while True:
    print(len(list(store.feed('pods').list())), flush=True)
    time.sleep(0.2)
"""
SANDBOX = Path(__file__).with_name("sandbox.py")


def say(text):
    print(text, flush=True)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Life:
    def __init__(self, workspace, packages):
        self.workspace, self.directory = workspace, workspace.directory
        self.packages = [next(Path(packages).glob(f"{name}_*.deb")) for name in NAMES]
        self.simulator = workspace.simulator()
        self.simulator.create("pods", PODS)
        self.simulator.create("nodes", 3)
        self.port = free_port()
        self.machine = Machine(self.directory / "root")

    # ---- shorthands ------------------------------------------------------------------------------

    def systemctl(self, *words):
        return self.machine.run("systemctl", *words)

    def active(self, unit):
        return self.machine.ask("systemctl", "is-active", unit)

    def enabled(self, unit):
        return self.machine.ask("systemctl", "is-enabled", unit)

    def lists(self):
        """Lists since the last reset, by resource."""
        return {name: kind["lists"] for name, kind in self.simulator.call("GET", "/status")["resources"].items() if kind["lists"]}

    def count(self, *argv, user="reader"):
        return int(self.machine.run("kinf", *argv, "get", "pods", "-o", "count", user=user))

    def pids(self, name, unit="kinf.service"):
        """Processes of a unit, by the name of their program, in the machine's own numbers."""
        group = self.machine.show(unit, "ControlGroup")
        found = [line.split() for line in self.machine.ask("ps", "-eo", "pid,comm,cgroup").splitlines()[1:]]
        return [int(pid) for pid, comm, groups in found if group and comm == name and f":{group}" in groups]

    def signal(self, number, *pids):
        self.machine.run("kill", f"-{number}", *map(str, pids))

    def live(self, cluster=None):
        words = ["--cluster", cluster] if cluster else []
        eventually(lambda: self.machine.ask("kinf", *words, "status", "--check", user="reader").endswith("live"), 60, "live feeds")

    def restarted(self, unit, before):
        eventually(lambda: int(self.machine.show(unit, "NRestarts")) > before and self.active(unit) == "active", 60, f"{unit} again")

    def ended(self, follower):
        """Ends kinf watch in the machine; returns its exit status."""
        self.machine.run("pkill", "-INT", "-u", "reader", "-x", "kinf")
        return follower.wait()

    def messages(self, unit):
        return [entry["MESSAGE"] for entry in self.machine.journal(unit) if isinstance(entry["MESSAGE"], str)]

    def served(self, path="/api/v1/pods"):
        """Asks kinf-serve through its socket."""
        with urllib.request.urlopen(f"https://127.0.0.1:{self.port}{path}", timeout=60, context=ssl._create_unverified_context()) as answer:
            return json.load(answer)

    # ---- the life --------------------------------------------------------------------------------

    def install(self):
        """Nothing is enabled or started; user, groups and directories are there."""
        machine = self.machine
        assert machine.boot() == "running"
        machine.apt("update")
        fields = ",".join(run("dpkg-deb", "-f", package, "Depends").strip() for package in self.packages)
        names = {field.split("|")[0].split("(")[0].split(":")[0].strip() for field in fields.split(",")}
        machine.apt("install", *sorted(names - set(NAMES)))
        machine.apt("install", *machine.copy(*self.packages))
        for unit in ("kinf.service", "kinf-serve.service", "kinf-serve.socket", "kinf@prod.service"):
            assert self.active(unit) == "inactive" and self.enabled(unit) in ("disabled", "indirect"), unit
        assert "kinf-readers" in machine.run("id", "-Gn", "kinf").split()
        assert "/usr/sbin/nologin" in machine.run("getent", "passwd", "kinf")
        stat = machine.run("stat", "-c", "%U:%G %a", "/var/lib/kinf", "/run/kinf", "/etc/kinf/kinf.yaml").split("\n")[:3]
        assert stat == ["kinf:kinf 755", "kinf:kinf 755", "root:root 644"], stat
        for user in ("reader", "late", "stranger"):
            machine.run("useradd", "-m", user)
        machine.run("usermod", "-aG", "kinf-readers", "reader")

    def start_without_feeds(self):
        """A service without a configuration ends, says why, and is not tried again."""
        done = subprocess.run(self.machine.inside("systemctl", "start", "kinf"), capture_output=True, text=True)
        assert done.returncode != 0 and self.active("kinf") == "failed"
        assert self.machine.show("kinf", "ExecMainStatus") == "78" and self.machine.show("kinf", "NRestarts") == "0"
        assert any("no feeds" in message for message in self.messages("kinf")), self.messages("kinf")
        self.systemctl("reset-failed", "kinf")

    def configure(self):
        etc = self.machine.path / "etc/kinf"
        write_kubeconfig(etc / "kubeconfig", self.simulator.url)
        self.machine.run("chgrp", "kinf", "/etc/kinf/kubeconfig")
        os.chmod(etc / "kubeconfig", 0o640)
        text = (etc / "kinf.yaml").read_text()
        feeds = [line[1:] for line in text.splitlines() if re.match(r"#  (- resource: (pods|nodes)|  indexes:|    (node|owner):)", line)]
        self.base = text.rstrip("\n") + "\n" + "\n".join(feeds) + "\n"
        self.machine.write("/etc/kinf/kinf.yaml", self.base)
        assert "good: 2 feeds" in self.machine.run("kinf", "config", "check", user="kinf")
        # A cluster of its own, without a store in its file.
        self.machine.write("/etc/kinf/prod.yaml", "cluster: {kubeconfig: /etc/kinf/kubeconfig}\nruntimeDir: /run/kinf\n"
                                                  "group: kinf-readers\nfeeds: [{resource: nodes}]\n")

    def start(self):
        """systemctl returns when readers get answers; the status has words; the journal has levels."""
        self.systemctl("enable", "--now", "kinf", "kinf@prod")
        assert self.count() == PODS
        assert self.machine.show("kinf", "StatusText"), "no STATUS="
        for name in ("kinf", "kinf-reflector", "kinf-processor"):
            pids = self.pids(name)
            assert pids, name
            assert all(self.machine.ask("ps", "-o", "user=", "-p", str(pid)) == "kinf" for pid in pids), name
        levels = {"error": "3", "warning": "4", "notice": "5", "info": "6"}
        entries = [entry for entry in self.machine.journal("kinf") if not entry["MESSAGE"].startswith("Error:")
                   and entry.get("_COMM", "").startswith("kinf")]
        assert entries and all(entry["PRIORITY"] == levels[entry["MESSAGE"].split()[0]] for entry in entries), entries
        assert not list((self.machine.path / "var/log").rglob("*kinf*")), "a log that nobody rotates"

    def read(self):
        """Members of the group read, also a later one, and no other user."""
        machine = self.machine
        assert self.count() == PODS
        assert machine.run("python3", "-c", PYTHON, user="reader") == f"{PODS}\n"
        said = machine.fails("kinf", "get", "pods", user="stranger")
        assert "kinf-readers" in said, said
        rows = machine.run("kinf", "clusters", user="reader")
        assert re.search(r"(?m)^kinf +running +/var/lib/kinf$", rows) and re.search(r"(?m)^prod +running +/var/lib/kinf/prod$", rows), rows
        assert int(machine.run("kinf", "--cluster", "prod", "get", "nodes", "-o", "count", user="reader")) == 3
        assert machine.run("kubectl-kinf", "get", "pods", "-o", "count", user="reader") == f"{PODS}\n"
        machine.run("usermod", "-aG", "kinf-readers", "late")
        assert self.count(user="late") == PODS
        machine.run("gpasswd", "-d", "late", "kinf-readers")
        machine.fails("kinf", "get", "pods", user="late")

    def reload(self):
        """A good file is taken, a wrong one refused in the words of the command, and the old one stays."""
        self.machine.write("/etc/kinf/kinf.yaml", self.base + "  - resource: configmaps\n")
        self.systemctl("reload", "kinf")
        eventually(lambda: "configmaps" in self.machine.ask("kinf", "status", user="reader"), 30, "the new feed")
        main = self.machine.show("kinf", "MainPID")
        self.machine.write("/etc/kinf/kinf.yaml", self.base + "  - resource: [\n")
        said = self.machine.fails("systemctl", "reload", "kinf")
        assert "kinf.service" in said
        assert self.active("kinf") == "active" and self.machine.show("kinf", "MainPID") == main
        assert any("kinf.yaml" in message and "error" in message.lower() for message in self.messages("kinf")), self.messages("kinf")[-5:]
        assert "configmaps" in self.machine.ask("kinf", "status", user="reader"), "readers go on with a wrong file"
        self.machine.write("/etc/kinf/kinf.yaml", self.base)
        self.systemctl("reload", "kinf")
        self.live()

    def freeze(self):
        """The watchdog ends a frozen supervisor, the supervisor a frozen daemon."""
        self.machine.drop_in("kinf.service", "WatchdogSec=4")
        self.machine.write("/etc/kinf/kinf.yaml", self.base + "hangLimit: 5s\n")
        self.systemctl("restart", "kinf")
        before = int(self.machine.show("kinf", "NRestarts"))
        self.simulator.control("DELETE", "/log")
        self.signal("STOP", self.machine.show("kinf", "MainPID"))
        self.restarted("kinf", before)
        assert any("watchdog" in entry["MESSAGE"].lower() for entry in self.machine.journal("kinf")), "no word of the watchdog"
        for name in ("kinf-reflector", "kinf-processor"):
            old = self.pids(name)
            self.signal("STOP", *old)
            eventually(lambda: self.pids(name) and self.pids(name) != old, 60, f"another {name}")
        self.live()
        assert not self.lists(), self.lists()
        assert int(self.machine.show("kinf", "NRestarts")) == before + 1
        self.machine.write("/etc/kinf/kinf.yaml", self.base)

    def crash(self):
        """kill -9 of each process: they come back, nothing is listed, a follower goes on."""
        follower = follow(self.machine, "follower-of-crashes", "kinf", "watch", "pods", "-o", "json", user="reader")
        eventually(lambda: any(line["type"] == "SYNC" for line in follower.lines), 20, "SYNC")
        self.simulator.control("DELETE", "/log")
        for name in ("kinf-reflector", "kinf-processor", "kinf"):
            old, before = self.pids(name), int(self.machine.show("kinf", "NRestarts"))
            self.signal("KILL", *old)
            eventually(lambda: self.pids(name) and self.pids(name) != old, 60, f"another {name}")
            if name == "kinf":
                self.restarted("kinf", before)
            self.live()
            n = len(follower.lines)
            self.simulator.touch("pods", 1)
            eventually(lambda: len(follower.lines) > n, 20, f"the change after the death of {name}")
        assert not self.lists(), self.lists()
        assert not any(line["type"] == "LAPPED" for line in follower.lines)
        assert self.ended(follower) == 0, follower.tail()

    def sandbox(self):
        """The same sandbox around a program trying to get out of it."""
        for unit in UNITS:
            exposure = self.machine.run("systemd-analyze", "security", "--no-pager", unit)
            level = float(re.search(r"exposure level for [^:]+: ([\d.]+)", exposure)[1])
            assert level <= 2.0, exposure
        (self.machine.path / "usr/local/bin/attempts").write_text(SANDBOX.read_text())
        self.machine.run("chmod", "755", "/usr/local/bin/attempts")
        self.machine.write("/home/reader/secret", "s")
        self.machine.write("/tmp/of-the-machine", "t")
        for unit in UNITS:
            text = (self.machine.path / "lib/systemd/system" / re.sub("@.*[.]", "@.", unit)).read_text()
            text = re.sub(r"(?m)^(ExecReload|Restart|RestartSec|RestartPrevent\w+|WatchdogSec|ExecStartPre)=.*\n", "", text)
            text = re.sub(r"(?m)^ExecStart=.*$", "ExecStart=/usr/local/bin/attempts", text).replace("Type=notify", "Type=oneshot")
            self.machine.write("/etc/systemd/system/attempts.service", text)
            self.systemctl("daemon-reload")
            self.systemctl("reset-failed")
            done = subprocess.run(self.machine.inside("systemctl", "start", "attempts"), capture_output=True, text=True)
            said = self.messages("attempts")
            assert done.returncode == 0 and any(line.startswith("all ") for line in said), (unit, said[-30:])
        return next(line for line in reversed(said) if line.startswith("all "))

    def system_calls(self):
        """The daemons make no system call refused by the unit, and map no memory to write and execute."""
        self.machine.drop_in("kinf.service", "ExecStart=", "SystemCallFilter=@debug", "ExecStart=/usr/bin/strace -D -f -qq -o /var/lib/kinf/.trace "
                             "/usr/bin/kinf run --config /etc/kinf/kinf.yaml")
        self.systemctl("restart", "kinf")
        self.count()
        self.simulator.touch("pods", 20)
        self.systemctl("reload", "kinf")
        self.systemctl("stop", "kinf")
        trace = (self.machine.path / "var/lib/kinf/.trace").read_text()
        calls = set(re.findall(r"(?m)^\d+ +(?:<\.\.\. )?([a-z_0-9]+)(?:\(| resumed)", trace))
        allowed, todo = set(), ["@system-service"]
        while todo:
            for line in self.machine.run("systemd-analyze", "syscall-filter", todo.pop()).split("\n")[1:]:
                (todo.append if line.strip().startswith("@") else allowed.add)(line.strip())
        assert calls and calls <= allowed | {"execve"}, calls - allowed
        executable = re.findall(r"(?m)^.*(?:mmap|mprotect)\(.*PROT_WRITE\|PROT_EXEC.*$", trace)
        assert not executable, executable[:3]
        self.machine.run("rm", "-r", "/etc/systemd/system/kinf.service.d", "/var/lib/kinf/.trace")
        self.systemctl("daemon-reload")
        self.systemctl("start", "kinf")
        return f"{len(calls)} system calls used, all in the unit's filter"

    def serve(self):
        """Socket activation: the address is there before kinf-serve is, and while it is away."""
        self.base += "serve: {auth: open, separate: true}\n"
        self.machine.write("/etc/kinf/kinf.yaml", self.base)
        self.systemctl("restart", "kinf")
        self.machine.drop_in("kinf-serve.socket", "ListenStream=", f"ListenStream=127.0.0.1:{self.port}", section="Socket")
        self.systemctl("enable", "--now", "kinf-serve.socket")
        assert self.active("kinf-serve") == "inactive"
        assert len(self.served()["items"]) == PODS and self.active("kinf-serve") == "active"
        with Clients(self) as clients:
            old = self.machine.show("kinf-serve", "MainPID")
            self.systemctl("restart", "kinf-serve")
            assert self.machine.show("kinf-serve", "MainPID") != old
            before = int(self.machine.show("kinf-serve", "NRestarts"))
            self.signal("KILL", self.machine.show("kinf-serve", "MainPID"))
            self.restarted("kinf-serve", before)
            self.systemctl("restart", "kinf")
            self.live()
        assert clients.lost <= 4, clients.problems  # the ones being answered

    def upgrade(self):
        """In use: services are restarted, nothing is listed, a follower is not lapsed, a reader
        reads on, no client is refused."""
        follower = follow(self.machine, "follower", "kinf", "watch", "pods", "-o", "json", "--cursor", "mine", user="reader")
        holder = follow(self.machine, "holder", "python3", "-c", HOLDER, user="reader")
        eventually(lambda: any(line["type"] == "SYNC" for line in follower.lines) and holder.lines, 20, "SYNC")
        newer = self.directory / "newer"
        newer.mkdir()
        version = re.search(r"_(.*?)_", self.packages[0].name)[1] + "+1"
        packages = [repack(package, newer, version) for package in self.packages]
        self.simulator.control("DELETE", "/log")
        old = [self.machine.show(unit, "MainPID") for unit in UNITS]
        with Clients(self) as clients:
            self.machine.apt("install", *self.machine.copy(*packages))
        assert clients.lost <= 2, clients.problems
        assert all(self.machine.show(unit, "MainPID") not in ("0", pid) for unit, pid in zip(UNITS, old)), "not restarted"
        assert self.machine.path.joinpath("etc/kinf/kinf.yaml").read_text() == self.base
        self.live()
        self.live("prod")
        assert not self.lists(), self.lists()
        self.simulator.touch("pods", 1)
        eventually(lambda: follower.lines[-1]["type"] == "MODIFIED", 20, "the change after the upgrade")
        assert not any(line["type"] == "LAPPED" for line in follower.lines)
        assert holder.running and self.ended(follower) == 0, follower.tail()
        n = len(holder.lines)
        eventually(lambda: len(holder.lines) > n + 1, 20, "a read of the old program")
        assert holder.lines[-1] == PODS
        # By its own parent, to wait for it: the machine does not stop before all its processes have been waited for.
        self.machine.run("pkill", "-u", "reader", "-x", "python3")
        holder.wait()


class Clients(threading.Thread):
    """A client asking kinf-serve all the time, with a connection for each question. Nobody may be refused."""

    def __init__(self, life):
        super().__init__(daemon=True)
        self.life, self.ending, self.answered, self.problems = life, False, 0, []

    @property
    def lost(self):
        return len(self.problems)

    def run(self):
        while not self.ending:
            try:
                self.life.served()
                self.answered += 1
            except (urllib.error.URLError, OSError, http.client.HTTPException) as problem:
                self.problems.append(repr(problem))

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *failure):
        self.ending = True
        self.join(60)
        assert failure[0] or self.answered > 0, self.problems
        assert failure[0] or not any("refused" in problem for problem in self.problems), self.problems


STEPS = ["install", "start_without_feeds", "configure", "start", "read", "reload", "freeze", "crash", "sandbox", "system_calls", "serve", "upgrade"]


def main():
    if os.geteuid() != 0:
        sys.exit("booted: needs root, for mounts and users")
    in_namespace()
    workspace = Workspace()
    life = Life(workspace, sys.argv[1])
    try:
        for step in STEPS:
            said = getattr(life, step)()
            say(f"{step}: {said or getattr(life, step).__doc__ or 'done'}")
    except BaseException:
        print(workspace.report(), file=sys.stderr)
        for unit in UNITS if life.machine.leader else ():
            print(f"--- {unit}", *life.messages(unit)[-20:], sep="\n  ", file=sys.stderr)
        raise
    life.machine.shut_down()
    workspace.close()
    run("rm", "-rf", workspace.directory)
    say("1 passed, 0 failed")


if __name__ == "__main__":
    main()
