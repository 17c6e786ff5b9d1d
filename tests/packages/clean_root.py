#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
Installs the packages of DIR in a clean Debian root, starts the service by its unit's lines against the simulated cluster,
upgrades while the store is in use, removes, installs again, and purges.

usage: tests/packages/clean_root.py DIR     (as root; $KINF_BUILD has the simulator)
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("KINF_BUILD", "build/release")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scenario"))
from conftest import Workspace  # noqa: E402
from harness import eventually  # noqa: E402
from harness.store import write_kubeconfig  # noqa: E402
from root import Root, Unit, end, follow, in_namespace, repack, run  # noqa: E402

NAMES = ["kinformer", "libkinf0", "libkinf-dev", "python3-kinf"]
PODS = 200
PYTHON = "import kinf; print(len(list(kinf.Store('/var/lib/kinf').feed('pods').list())))"


def say(text):
    print(text, flush=True)


class Lifetime:
    def __init__(self, workspace, packages):
        self.workspace, self.directory = workspace, workspace.directory
        self.packages = [next(Path(packages).glob(f"{name}_*.deb")) for name in NAMES]
        self.simulator = workspace.simulator()
        self.simulator.create("pods", PODS)
        self.root = Root(self.directory / "root")
        self.etc = self.root.path / "etc/kinf"
        self.root.apt("update")

    def lists(self):
        """Lists since the last reset, by resource."""
        return {name: kind["lists"] for name, kind in self.simulator.call("GET", "/status")["resources"].items() if kind["lists"]}

    def count(self, *argv, user="reader"):
        return int(self.root.run("kinf", *argv, "get", "pods", "-o", "count", user=user))

    def stand_in_systemctl(self):
        """A systemctl that notes its calls, and the directory by which maintainer scripts know systemd."""
        (self.root.path / "run/systemd/system").mkdir(parents=True, exist_ok=True)
        command = self.root.path / "usr/local/bin/systemctl"
        command.write_text('#!/bin/sh\necho "$*" >>/run/systemctl.log\n')
        command.chmod(0o755)
        self.log = self.root.path / "run/systemctl.log"
        self.log.write_text("")

    def asked(self):
        """The calls of systemctl about kinf since the last time, without questions."""
        lines = [line for line in self.log.read_text().splitlines()
                 if "kinf" in line and not re.search(r"is-|show|list-", line)]
        self.log.write_text("")
        return lines

    def dependencies(self):
        """Installs the packages' dependencies, to tell their leftovers apart."""
        fields = ",".join(run("dpkg-deb", "-f", package, "Depends").strip() for package in self.packages)
        names = {field.split("|")[0].split("(")[0].split(":")[0].strip() for field in fields.split(",")}
        self.root.apt("install", *sorted(names - set(NAMES)))

    # ---- the life --------------------------------------------------------------------------------

    def install(self):
        self.dependencies()
        before = self.root.files()
        self.stand_in_systemctl()
        self.root.apt("install", *self.root.copy(*self.packages))
        assert not any(re.search(r"start|enable", line) for line in self.asked()), "a service was started or enabled"
        assert "kinf-readers" in self.root.run("id", "-Gn", "kinf").split()
        assert "/usr/sbin/nologin" in self.root.run("getent", "passwd", "kinf")
        stat = self.root.run("stat", "-c", "%U:%G %a", "/var/lib/kinf", "/run/kinf", "/etc/kinf/kinf.yaml").split("\n")[:3]
        assert stat == ["kinf:kinf 755", "kinf:kinf 755", "root:root 644"], stat
        self.root.run("useradd", "-m", "-G", "kinf-readers", "reader")
        self.root.run("useradd", "-m", "stranger")
        assert "no feeds" in self.root.fails("kinf", "config", "check")
        return before

    def configure(self):
        write_kubeconfig(self.etc / "kubeconfig", self.simulator.url)
        self.root.run("chgrp", "kinf", "/etc/kinf/kubeconfig")
        os.chmod(self.etc / "kubeconfig", 0o640)
        text = (self.etc / "kinf.yaml").read_text()
        feeds = [line[1:] for line in text.splitlines() if re.match(r"#  (- resource: (pods|nodes)|  indexes:|    (node|owner):)", line)]
        (self.etc / "kinf.yaml").write_text(text.rstrip("\n") + "\n" + "\n".join(feeds) + "\n")
        assert "good: 2 feeds" in self.root.run("kinf", "config", "check", user="kinf")
        # A cluster of its own, without a store in its file.
        (self.etc / "prod.yaml").write_text("cluster: {kubeconfig: /etc/kinf/kubeconfig}\nruntimeDir: /run/kinf\n"
                                            "group: kinf-readers\nfeeds: [{resource: nodes}]\n")

    def use(self):
        """Readers: a member of the group, Python, no stranger."""
        eventually(lambda: self.count() == PODS, 20, f"{PODS} pods")
        assert self.root.run("python3", "-c", PYTHON, user="reader") == f"{PODS}\n"
        said = self.root.fails("kinf", "get", "pods", user="stranger")
        assert "kinf-readers" in said, said
        rows = self.root.run("kinf", "clusters", user="reader")
        assert re.search(r"(?m)^kinf +running +/var/lib/kinf$", rows) and re.search(r"(?m)^prod +running +/var/lib/kinf/prod$", rows), rows
        assert self.root.run("kinf", "--cluster", "prod", "get", "nodes", "-o", "count", user="reader").strip().isdigit()
        assert self.root.run("kubectl-kinf", "get", "pods", "-o", "count", user="reader") == f"{PODS}\n"

    def upgrade(self, services):
        follower = follow(self.root, "follower", "kinf", "watch", "pods", "-o", "json", "--cursor", "mine", user="reader")
        eventually(lambda: any(line["type"] == "SYNC" for line in follower.lines), 20, "SYNC")
        newer = self.directory / "newer"
        newer.mkdir()
        version = re.search(r"_(.*?)_", self.packages[0].name)[1] + "+1"
        packages = [repack(package, newer, version) for package in self.packages]
        self.simulator.control("DELETE", "/log")
        self.root.apt("install", *self.root.copy(*packages))
        asked = self.asked()
        for unit in ("kinf.service", "kinf-serve.service", "kinf@*.service"):
            assert any("try-restart" in line and unit in line for line in asked), (unit, asked)
        assert "prod.yaml" in os.listdir(self.etc) and "- resource: nodes" in (self.etc / "kinf.yaml").read_text()
        services = self.restart(services)
        assert not self.lists(), self.lists()
        self.simulator.touch("pods", 1)
        eventually(lambda: follower.lines[-1]["type"] == "MODIFIED", 20, "the change after the upgrade")
        assert not any(line["type"] == "LAPPED" for line in follower.lines)
        assert end(follower) == 0, follower.tail()
        return services

    def start(self):
        return [Unit(self.root, "kinf.service").start("kinf"), Unit(self.root, "kinf@.service", "prod").start("kinf-prod")]

    def restart(self, services):
        for unit in services:
            unit.stop()
        return self.start()

    def remove(self, services):
        self.root.apt("remove", "kinformer")
        asked = self.asked()
        for unit in ("kinf.service", "kinf-serve.socket", "kinf@*.service"):
            assert any("stop" in line and unit in line for line in asked), (unit, asked)
        for unit in services:
            unit.stop()
        assert not (self.root.path / "usr/bin/kinf").exists()
        assert not (self.root.path / "lib/systemd/system/kinf.service").exists()
        assert (self.root.path / "var/lib/kinf/journal/CURRENT").exists() and (self.etc / "kinf.yaml").exists()
        # libkinf needs no daemon, and no package but its own.
        assert self.root.run("python3", "-c", PYTHON, user="reader") == f"{PODS}\n"

    def come_back(self):
        """The store of a removed package is warm."""
        self.simulator.control("DELETE", "/log")
        self.root.apt("install", "/srv/" + self.packages[0].name)
        services = self.start()
        eventually(lambda: self.count() == PODS, 20, f"{PODS} pods")
        eventually(lambda: "live" in self.root.run("kinf", "status", "--check", user="reader"), 20, "live")
        assert not self.lists(), self.lists()
        for unit in services:
            unit.stop()

    def purge(self, before):
        (self.root.path / "var/lib/kinformer-of-mine").write_text("stays")
        self.root.apt("purge", *NAMES)
        (self.root.path / "usr/local/bin/systemctl").unlink()
        owned = set(self.root.run("sh", "-c", "cat /var/lib/dpkg/info/*.list").split("\n"))
        left = {path for path in self.root.files() - before - owned
                if path.removeprefix("/usr") not in owned and not path.startswith(("/home/", "/var/mail", "/var/spool/mail"))}
        expected = {"/etc/kinf", "/etc/kinf/kubeconfig", "/etc/kinf/prod.yaml", "/var/lib/kinformer-of-mine"}
        strange = {path for path in left - expected if not re.match(r"/etc/(passwd|group|shadow|gshadow|sub[ug]id)-?$", path)}
        assert not strange and expected <= left, (strange, expected - left)
        assert not (self.root.path / "run/kinf").exists()
        self.root.run("id", "kinf")


def system_calls(life):
    """Checks that the daemons make no system call refused by the unit."""
    allowed = set()
    todo = ["@system-service"]
    while todo:
        for line in run("systemd-analyze", "syscall-filter", todo.pop()).split("\n")[1:]:
            word = line.strip()
            (todo.append if word.startswith("@") else allowed.add)(word)
    trace = life.directory / "trace"
    unit = Unit(life.root, "kinf.service").start("kinf", "strace", "-D", "-f", "-qq", "-o", str(trace))
    life.count()
    life.simulator.touch("pods", 20)
    life.root.run("kinf", "reload", user="kinf")
    unit.stop()
    # From the execve of kinf itself: unshare, mount and chroot belong to the stand-in for systemd.
    lines = trace.read_text().split('execve("/usr/bin/kinf"', 1)[1]
    used = set(re.findall(r"(?m)^\d+ +(?:<\.\.\. )?([a-z_0-9]+)(?:\(| resumed)", lines))
    assert used and used <= allowed | {"execve"}, used - allowed
    executable = re.findall(r"(?m)^.*(?:mmap|mprotect)\(.*PROT_WRITE\|PROT_EXEC.*$", lines)
    assert not executable, executable[:3]
    return len(used)


def main():
    if os.geteuid() != 0:
        sys.exit("clean_root: needs root, for mounts and users")
    in_namespace()
    workspace = Workspace()
    try:
        life = Lifetime(workspace, sys.argv[1])
        before = life.install()
        say("installed: nothing started")
        life.configure()
        services = life.start()
        life.use()
        say(f"two clusters run as kinf; {PODS} pods read by a member of the group")
        services = life.upgrade(services)
        life.use()
        say("upgraded in use: services restarted, no LIST, follower not lapsed")
        life.remove(services)
        say("removed: the store stays, and is read")
        life.come_back()
        say("installed again: no LIST")
        say(f"{system_calls(life)} system calls used, all in the unit's filter")
        life.purge(before)
        say("purged: nothing left but the administrator's files")
    except BaseException:
        print(workspace.report(), file=sys.stderr)
        raise
    for process in life.root.processes:
        process.kill()
    subprocess.run(["umount", "-R", life.root.path / "dev", life.root.path / "proc", life.root.path / "run"], check=False)
    workspace.close()
    run("rm", "-rf", workspace.directory)
    say("1 passed, 0 failed")


if __name__ == "__main__":
    main()
