# SPDX-License-Identifier: Apache-2.0
"""A Debian root of its own, services in it as started by systemd, and a machine booted by systemd."""

import configparser
import json
import os
import re
import select
import shlex
import signal
import socket
import subprocess
import sys
from pathlib import Path

from harness import eventually
from harness.process import ROOT, Process

PATH = "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PLAIN = "packages-root", ()
BOOTED = "packages-booted", ("systemd", "systemd-sysv", "dbus", "procps", "python3", "strace")


def in_namespace():
    """Starts this program again in mount and PID namespaces of its own: its mounts and processes end with it."""
    if os.environ.get("KINF_PACKAGES_INSIDE"):
        return
    os.environ["KINF_PACKAGES_INSIDE"] = "1"
    command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, *sys.argv]
    sys.exit(subprocess.run(command).returncode)


def run(*argv, **named):
    done = subprocess.run([str(a) for a in argv], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=1800, **named)
    assert done.returncode == 0, f"{shlex.join(map(str, argv))}: exit {done.returncode}\n{done.stdout[-6000:]}"
    return done.stdout


class Root:
    """A minimal Debian in DIRECTORY, with the machine's network."""

    def __init__(self, directory, form=PLAIN, mounted=True):
        name, packages = form
        cache = ROOT / f"build/{name}.tar"
        self.path = Path(directory)
        self.processes = []
        if not cache.exists():
            cache.parent.mkdir(exist_ok=True)
            new = cache.with_suffix(".new.tar")
            run("mmdebstrap", "--quiet", "--variant=minbase", *[f"--include={package}" for package in packages], "bookworm", new)
            new.rename(cache)
        self.path.mkdir(parents=True)
        run("tar", "-xf", cache, "-C", self.path)
        if not mounted:
            return
        run("mount", "-t", "proc", "proc", self.path / "proc")
        run("mount", "--bind", "/dev", self.path / "dev")
        run("mount", "-t", "tmpfs", "tmpfs", self.path / "run")
        (self.path / "etc/resolv.conf").write_bytes(Path("/etc/resolv.conf").read_bytes())

    def inside(self, *argv, user=None):
        """The command line for ARGV in the root."""
        become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"] if user else []
        return ["chroot", self.path, "env", "-i", f"PATH={PATH}", "LC_ALL=C.UTF-8", "HOME=/root",
                "DEBIAN_FRONTEND=noninteractive", *become, *argv]

    def run(self, *argv, user=None):
        return run(*self.inside(*argv, user=user))

    def fails(self, *argv, user=None):
        """Runs a command, expected to fail; returns its output."""
        done = subprocess.run([str(a) for a in self.inside(*argv, user=user)], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
        assert done.returncode != 0, f"{argv} succeeded\n{done.stdout}"
        return done.stdout

    def apt(self, *argv):
        # apt-get's own path for maintainer scripts lacks /usr/local/bin, where a test may put a stand-in.
        return self.run("apt-get", "-q", "-y", "--no-install-recommends", "-o", f"DPkg::Path={PATH}", *argv)

    def copy(self, *files):
        """Copies packages into the root; returns their names for apt-get."""
        # Not /tmp: a booted machine has it in memory.
        for file in files:
            run("cp", file, self.path / "srv")
        return [f"/srv/{Path(file).name}" for file in files]

    def files(self):
        """All paths except those in memory, caches, logs and package lists."""
        skip = re.compile(r"/(proc|sys|dev|run|tmp|srv)/|/var/(cache|log|lib/(apt|dpkg|systemd/deb-systemd|ucf))/|/etc/ld.so.cache|.*/__pycache__")
        found = set()
        for directory, names, files in os.walk(self.path):
            inner = "/" + os.path.relpath(directory, self.path).removeprefix(".")
            found |= {path for name in names + files if not skip.match((path := os.path.join(inner, name)) + "/")}
        return found


class Unit:
    """The directives of a unit file for its process, as systemd reads them."""

    def __init__(self, root, name, instance=""):
        self.root = root
        parser = configparser.ConfigParser(strict=False, interpolation=None, delimiters=("=",), dict_type=Many)
        parser.optionxform = str
        parser.read_string((root.path / "lib/systemd/system" / name).read_text())
        self.keys = {key: [line.replace("%i", instance) for line in value.split("\n")] for key, value in parser["Service"].items()}

    def one(self, key):
        assert len(self.keys[key]) == 1, (key, self.keys[key])
        return self.keys[key][0]

    def start(self, name, *before):
        """Runs ExecStartPre as root, then ExecStart as systemd does: user, groups, umask, no
        capabilities, everything but ReadWritePaths read-only, /home and /root hidden,
        NOTIFY_SOCKET. BEFORE is put before the command. Waits for READY=1."""
        for line in self.keys["ExecStartPre"]:
            assert line.startswith("+"), line
            self.root.run(*shlex.split(line[1:]))
        address = self.root.path / f"run/notify-{name}"
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(str(address))
        os.chmod(address, 0o777)
        user = self.one("User")
        writable = shlex.split(self.one("ReadWritePaths"))
        assert self.one("ProtectSystem") == "strict" and self.one("ProtectHome") == "yes"
        # As ProtectSystem=strict and ProtectHome: in a mount namespace of its own.
        prepare = "; ".join(["set -e", 'root=$1; shift', 'mount --rbind "$root" "$root"',
                             *[f'mount --bind "$root{path}" "$root{path}"' for path in writable],
                             'mount -o remount,ro,bind "$root"',
                             *[f'mount -o remount,rw,bind "$root{path}"' for path in writable],
                             *[f'mount -t tmpfs -o mode=000 tmpfs "$root{path}"' for path in ("/home", "/root")],
                             f'umask {self.one("UMask")}', 'exec "$@"'])
        command = ["chroot", self.root.path, "setpriv", f"--reuid={user}", f"--regid={self.one('Group')}", "--init-groups",
                   "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", "env", "-i", "PATH=/usr/bin:/bin", f"USER={user}",
                   "HOME=/var/lib/kinf", f"NOTIFY_SOCKET=/run/notify-{name}", *shlex.split(self.one("ExecStart"))]
        self.process = Process(name, [*before, "unshare", "--mount", "sh", "-c", prepare, "sh", self.root.path, *command],
                               self.root.path.parent)
        self.root.processes.append(self.process.start())
        self.ready()
        return self

    def ready(self):
        def told():
            assert self.process.running, self.process.tail()
            while select.select([self.notify], [], [], 0)[0]:
                if b"READY=1" in self.notify.recv(4096):
                    return True
            return False

        eventually(told, 30, "READY=1")

    def stop(self):
        """As systemctl stop."""
        assert self.process.stop(int(self.one("TimeoutStopSec"))) == 0, self.process.tail()
        self.notify.close()
        (self.root.path / f"run/notify-{self.process.name}").unlink()


class Many(dict):
    """Keeps all values of a repeated key."""

    def __setitem__(self, key, value):
        if isinstance(value, list) and isinstance(self.get(key), list):
            value = self[key] + value
        super().__setitem__(key, value)


class Machine(Root):
    """A Debian in DIRECTORY, booted by systemd-nspawn; it shares the machine's network and users' ids."""

    def __init__(self, directory):
        super().__init__(directory, BOOTED, mounted=False)
        self.nspawn = self.leader = None

    def boot(self):
        """Boots, and waits until systemd has started all enabled units. Returns its state: running or degraded."""
        self.nspawn = Process("nspawn", ["systemd-nspawn", "--quiet", "--boot", "--register=no", "--keep-unit", "--console=pipe",
                                         "--resolv-conf=replace-host", "-D", self.path], self.path.parent).start()
        self.processes = [self.nspawn]

        def state():
            assert self.nspawn.running, self.nspawn.tail()
            # The first child makes the namespaces and is replaced by systemd.
            children = Path(f"/proc/{self.nspawn.pid}/task/{self.nspawn.pid}/children").read_text().split()
            self.leader = children and children[-1]
            return self.leader and (found := self.ask("systemctl", "is-system-running")) in ("running", "degraded") and found

        found = eventually(state, 30, "the boot")
        # nspawn shows commands another boot id than systemd shows units with ProtectKernelTunables=
        # (they get a /proc of their own). On a machine both are the same.
        while self.ask("grep", "-c", "boot_id", "/proc/self/mountinfo") != "0":
            self.run("umount", "/proc/sys/kernel/random/boot_id")
        return found

    def shut_down(self):
        self.run("systemctl", "poweroff")
        self.nspawn.wait(60)

    def inside(self, *argv, user=None):
        become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"] if user else []
        return ["nsenter", f"--target={self.leader}", "--mount", "--uts", "--ipc", "--pid", "--cgroup", "env", "-i", f"PATH={PATH}",
                "LC_ALL=C.UTF-8", "HOME=/root", "DEBIAN_FRONTEND=noninteractive", "SYSTEMD_PAGER=", *become, *argv]

    def ask(self, *argv, user=None):
        """The output of a command, without the newline at its end, for any exit status."""
        done = subprocess.run([str(a) for a in self.inside(*argv, user=user)], text=True, capture_output=True, timeout=60)
        return done.stdout.rstrip("\n")

    def show(self, unit, name):
        """A property of a unit."""
        return self.ask("systemctl", "show", "--value", "--property", name, unit)

    def journal(self, unit):
        """A unit's log: a dict for each entry."""
        return [json.loads(line) for line in self.ask("journalctl", "-o", "json", "-u", unit).splitlines()]

    def write(self, path, text, mode=0o644):
        file = self.path / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)

    def drop_in(self, unit, *lines, section="Service"):
        """As systemctl edit."""
        self.write(f"/etc/systemd/system/{unit}.d/test.conf", f"[{section}]\n" + "\n".join(lines) + "\n")
        self.run("systemctl", "daemon-reload")


def repack(package, directory, version):
    """Makes a package of a higher version with the same files, and the same dependency on its
    siblings. Returns its path."""
    tree = Path(directory) / Path(package).stem
    run("dpkg-deb", "-R", package, tree)
    control = tree / "DEBIAN/control"
    text = control.read_text()
    old = re.search(r"(?m)^Version: (.*)$", text)[1]
    text = text.replace(f"Version: {old}", f"Version: {version}").replace(f"(= {old})", f"(= {version})")
    control.write_text(text)
    run("dpkg-deb", "--root-owner-group", "-b", tree, directory)
    run("rm", "-rf", tree)
    name = re.search(r"(?m)^Package: (.*)$", text)[1]
    return next(Path(directory).glob(f"{name}_{version}_*.deb"))


def follow(root, name, *argv, user):
    """A reader in the root, running until the end."""
    process = Process(name, root.inside(*argv, user=user), root.path.parent)
    root.processes.append(process.start())
    return process


def end(process, number=signal.SIGINT):
    return process.kill(number)
