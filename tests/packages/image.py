#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Follows packaging/Containerfile as a builder does, in clean Debian roots, since there is no
container engine here: each FROM is a root, RUN runs in it, COPY copies. Then the entry point runs
as the image's user against the simulated cluster, with the root read-only and volumes where kinf
writes; and a second user reads, as another container would.

usage: tests/packages/image.py     (as root; $KINF_BUILD has the simulator)
"""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

os.environ.setdefault("KINF_BUILD", "build/release")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scenario"))
from conftest import Workspace  # noqa: E402
from harness import eventually  # noqa: E402
from harness.process import ROOT, Process  # noqa: E402
from harness.store import write_kubeconfig  # noqa: E402
from root import Root, in_namespace, run  # noqa: E402

FILE = ROOT / "packaging/Containerfile"
KNOWN = {"FROM", "RUN", "COPY", "WORKDIR", "USER", "ENTRYPOINT", "CMD", "ENV", "LABEL", "EXPOSE", "VOLUME", "ARG"}
BASE = "docker.io/library/debian:bookworm-slim"


def instructions(text):
    """[(line, word, rest)]: comments and empty lines away, continued lines joined, as the reference
    of the format says."""
    found, pending, start = [], "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        start = start if pending else number
        pending += line.rstrip().removesuffix("\\")
        if line.rstrip().endswith("\\"):
            continue
        word, _, rest = pending.strip().partition(" ")
        assert word.isupper() and word in KNOWN, f"{FILE.name}:{start}: unknown instruction '{word}'"
        assert rest.strip(), f"{FILE.name}:{start}: {word} needs something"
        found.append((start, word, rest.strip()))
        pending = ""
    assert not pending, f"{FILE.name}: the last line is continued"
    assert found[0][1] == "FROM", f"{FILE.name}: the first instruction must be FROM"
    return found


def size(path):
    return int(run("du", "-sxB1", path).split()[0])


class Image:
    """The stages of a Containerfile, done one after the other."""

    def __init__(self, directory):
        self.directory, self.stages, self.settings = directory, [], {}

    def perform(self, line, word, rest):
        print(f"{line}: {word} {rest[:90]}", flush=True)
        getattr(self, word.lower(), lambda text: self.settings.__setitem__(word, json.loads(text)))(rest)

    def from_(self, rest):
        found = re.fullmatch(r"(\S+)(?: AS (\w+))?", rest)
        assert found and found[1] == BASE, rest
        self.root = Root(self.directory / f"stage-{len(self.stages)}")
        self.stages.append((found[2], self.root))
        self.place, self.settings = "/", {}
        self.began = size(self.root.path)

    def run(self, rest):
        self.root.run("sh", "-c", f"cd {shlex.quote(self.place)} && {rest}")

    def copy(self, rest):
        *sources, target = shlex.split(rest)
        if sources[0].startswith("--from="):
            stage = dict(self.stages)[sources.pop(0).removeprefix("--from=")]
            for source in sources:
                origin, goal = stage.path / source[1:], self.root.path / target[1:]
                goal.mkdir(parents=True, exist_ok=True)
                # A directory's content is copied, a file is copied into a directory.
                run("cp", "-a", *([f"{origin}/."] if origin.is_dir() else [origin]), goal)
            return
        assert sources == ["."], rest
        goal = self.root.path / target[1:]
        goal.mkdir()
        files = run("git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
        subprocess.run(["tar", "-x", "-C", goal], check=True, input=subprocess.run(
            ["tar", "-c", "-C", ROOT, *[f for f in files if f and (ROOT / f).exists()]], check=True, stdout=subprocess.PIPE).stdout)

    def workdir(self, rest):
        self.place = rest
        (self.root.path / rest[1:]).mkdir(parents=True, exist_ok=True)

    def user(self, rest):
        self.uid, self.gid = map(int, rest.split(":"))


def container(image, volumes, *argv, uid, gid, groups=()):
    """The command line of a container: namespaces, the root read-only, VOLUMES {path: (directory,
    mode)}, an unprivileged user."""
    mounts = "; ".join(f"mount --bind {directory} $root{path}; mount -o remount,{mode},bind $root{path}"
                       for path, (directory, mode) in volumes.items())
    script = (f'set -e; root=$1; shift; mount --rbind $root $root; mount -t proc proc $root/proc; mount -o remount,ro,bind $root; '
              f'{mounts}; exec "$@"')
    become = ["setpriv", f"--reuid={uid}", f"--regid={gid}", f"--groups={','.join(map(str, groups))}" if groups else "--clear-groups",
              "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]
    return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script, "sh", image.root.path, "chroot",
            image.root.path, *become, "env", "-i", "PATH=/usr/bin:/bin", "NODE_NAME=node-1", *argv]


def use(workspace, image):
    """kinf run as in the DaemonSet, and a reader of the node's store as in reader/pod.yaml."""
    simulator = workspace.simulator()
    simulator.create("pods", 60)
    node = workspace.directory / "node"
    for name in ("store", "run", "etc"):
        (node / name).mkdir(parents=True)
    os.chmod(node, 0o755)
    # As the init container of the DaemonSet does.
    for name in ("store", "run"):
        os.chown(node / name, image.uid, image.gid)
        os.chmod(node / name, 0o755)
    text = (ROOT / "packaging/kubernetes/base/kinf.yaml").read_text()
    (node / "etc/kinf.yaml").write_text(text + "cluster: {kubeconfig: /etc/kinf/kubeconfig}\n")
    write_kubeconfig(node / "etc/kubeconfig", simulator.url)
    os.chmod(node / "etc/kubeconfig", 0o644)
    (image.root.path / "etc/kinf").mkdir(exist_ok=True)
    volumes = {"/etc/kinf": (node / "etc", "ro"), "/var/lib/kinf": (node / "store", "rw"), "/run/kinf": (node / "run", "rw")}
    argv = container(image, volumes, *image.settings["ENTRYPOINT"], *image.settings["CMD"], uid=image.uid, gid=image.gid)
    daemons = Process("container", argv, workspace.directory).start()

    read = {"/var/lib/kinf": (node / "store", "ro"), "/run/kinf": (node / "run", "rw")}

    def reader(*command, groups=(image.gid,)):
        return subprocess.run([str(a) for a in container(image, read, "kinf", *command, "--store", "/var/lib/kinf/store", uid=20001, gid=20001,
                                         groups=groups)], text=True, capture_output=True, timeout=60)

    here = json.loads(simulator.control("GET", "/objects", resource="pods"))
    expected = sorted(p["metadata"]["name"] for p in here if p["spec"].get("nodeName") == "node-1")
    assert 0 < len(expected) < len(here)

    def equal():
        assert daemons.running, daemons.tail()
        answer = reader("get", "pods", "-o", "name")
        return answer.returncode == 0 and sorted(line.removeprefix("pod/") for line in answer.stdout.split()) == expected

    eventually(equal, 30, "the pods of the node in another container")
    refused = reader("get", "pods", groups=())
    assert refused.returncode == 1 and "group" in refused.stderr, refused
    probe = subprocess.run([str(a) for a in container(image, volumes, "kinf", "status", "--check", uid=image.uid, gid=image.gid)],
                           text=True, capture_output=True, timeout=60)
    # The simulated cluster lacks a resource of the manifest: the probe names it.
    assert probe.returncode == (0 if "endpointslices" not in probe.stderr else 1), probe
    # unshare ignores the signal; its child, process 1 of the namespace, is `kinf run`.
    child = int(Path(f"/proc/{daemons.pid}/task/{daemons.pid}/children").read_text())
    os.kill(child, signal.SIGTERM)
    assert daemons.wait() == 0, daemons.tail()
    return probe.stdout + probe.stderr


def main():
    if os.geteuid() != 0:
        sys.exit("image: needs root, for mounts and users")
    steps = instructions(FILE.read_text())
    in_namespace()
    workspace = Workspace()
    image = Image(workspace.directory)
    image.__dict__["from"] = image.from_
    try:
        for line, word, rest in steps:
            image.perform(line, word, rest)
        grown = size(image.root.path) - image.began
        print(f"the image adds {grown / 2**20:.0f} MiB to {BASE}", flush=True)
        assert grown < 80 * 2**20, "the image is too large"
        assert image.uid != 0 and not shutil.which("gcc", path=str(image.root.path / "usr/bin")), "a user and no compiler"
        print(use(workspace, image).strip(), flush=True)
    except BaseException:
        print(workspace.report(), file=sys.stderr)
        raise
    workspace.close()
    for _, root in image.stages:
        for place in ("dev", "proc", "run"):
            run("umount", "-R", root.path / place)
    run("rm", "-rf", workspace.directory)
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
