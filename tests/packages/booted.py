#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
Boots a Debian with systemd, installs the packages of DIR in it, and does as an administrator does: starts the services,
reads, reloads. Readiness, the journal, exit statuses and rights are those of the service manager.

usage: tests/packages/booted.py DIR     (as root; $KINF_BUILD has the simulator)
"""

import os
import re
import subprocess
import sys
from pathlib import Path

os.environ.setdefault("KINF_BUILD", "build/release")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scenario"))
from conftest import Workspace  # noqa: E402
from harness import eventually  # noqa: E402
from harness.store import write_kubeconfig  # noqa: E402
from root import Machine, in_namespace, run  # noqa: E402

NAMES = ["kinformer", "libkinf0", "libkinf-dev", "python3-kinf"]
PODS = 200
UNITS = ["kinf.service", "kinf@prod.service", "kinf-serve.service"]
PYTHON = "import kinf; print(len(list(kinf.Store('/var/lib/kinf').feed('pods').list())))"


def say(text):
    print(text, flush=True)


class Life:
    def __init__(self, workspace, packages):
        self.workspace, self.directory = workspace, workspace.directory
        self.packages = [next(Path(packages).glob(f"{name}_*.deb")) for name in NAMES]
        self.simulator = workspace.simulator()
        self.simulator.create("pods", PODS)
        self.simulator.create("nodes", 3)
        self.machine = Machine(self.directory / "root")

    # ---- shorthands ------------------------------------------------------------------------------

    def systemctl(self, *words):
        return self.machine.run("systemctl", *words)

    def active(self, unit):
        return self.machine.ask("systemctl", "is-active", unit)

    def enabled(self, unit):
        return self.machine.ask("systemctl", "is-enabled", unit)

    def count(self, *argv, user="reader"):
        return int(self.machine.run("kinf", *argv, "get", "pods", "-o", "count", user=user))

    def pids(self, name, unit="kinf.service"):
        """Processes of a unit, by the name of their program, in the machine's own numbers."""
        group = self.machine.show(unit, "ControlGroup")
        found = [line.split() for line in self.machine.ask("ps", "-eo", "pid,comm,cgroup").splitlines()[1:]]
        return [int(pid) for pid, comm, groups in found if comm == name and f":{group}" in groups]

    def messages(self, unit):
        return [entry["MESSAGE"] for entry in self.machine.journal(unit) if isinstance(entry["MESSAGE"], str)]

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
        # A cluster of its own, whose file names no store.
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
        """Members of the group read, also one that was added later, and nobody else."""
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
        # Without --store the command reads the wrong file too.
        assert "configmaps" in self.machine.ask("kinf", "--store", "/var/lib/kinf", "status", user="reader")
        self.machine.write("/etc/kinf/kinf.yaml", self.base)
        self.systemctl("reload", "kinf")
        eventually(lambda: self.machine.ask("kinf", "status", "--check", user="reader").endswith("live"), 60, "live feeds")


STEPS = ["install", "start_without_feeds", "configure", "start", "read", "reload"]


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
