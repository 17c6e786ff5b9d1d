# SPDX-License-Identifier: Apache-2.0
"""Processes, and their CPU time and memory as the kernel counts them."""

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")
SAMPLE_SECONDS = 0.005


def note(text):
    print(f"bench: {text}", flush=True)


def harness(build):
    """The scenarios' simulated cluster, store and waiting, with the programs of BUILD."""
    os.environ["KINF_BUILD"] = str(Path(build).resolve())
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scenario"))
    from harness import eventually
    from harness.simulator import Simulator
    from harness.store import Store

    return Simulator, Store, eventually


def run(argv, timeout=3600, **kwargs):
    """Runs a command to its end and returns its standard output; raises RuntimeError with its
    standard error if it fails."""
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=timeout, **kwargs)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(str(a) for a in argv)}: exit {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def measured(argv, **kwargs):
    """Runs a measuring program with JSON in its last line."""
    return json.loads(run(argv, **kwargs).splitlines()[-1])


def median(values):
    return statistics.median(values)


def cpu_seconds(pid):
    """User and system time of all threads, including ended ones; exact to a clock tick."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def anonymous_bytes(pid):
    """Unshared anonymous memory; store files and rings do not count."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0


def unshared_bytes(pid, store):
    """The exact memory mapped by this process only, without the files of STORE.

    The kernel counts a page of a file as private while only one process maps it. All readers share
    the pages of the store and its rings, so files with these paths are left out.
    """
    total, ours = 0, False
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        words = line.split()
        if "-" in words[0] and not words[0].endswith(":"):
            ours = len(words) < 6 or not words[5].startswith(str(store))
        elif ours and words[0] in ("Private_Clean:", "Private_Dirty:"):
            total += int(words[1]) * 1024
    return total


class Daemon:
    """A process in the background with its peak of anonymous memory."""

    def __init__(self, argv, log, env=None):
        self.started = time.monotonic()
        with open(log, "ab") as out:
            self.popen = subprocess.Popen(
                [str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                env={**os.environ, **(env or {})},
            )
        self.peak = 0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._sample, daemon=True)
        self.thread.start()

    def _sample(self):
        while not self.ended.is_set():
            try:
                self.peak = max(self.peak, anonymous_bytes(self.popen.pid))
            except OSError:
                return
            self.ended.wait(SAMPLE_SECONDS)

    @property
    def cpu(self):
        return cpu_seconds(self.popen.pid)

    def check(self):
        if self.popen.poll() is not None:
            raise RuntimeError(f"{self.popen.args[0]} has ended with {self.popen.returncode}")

    def stop_sampling(self):
        """Stops the sampling, for measurements of latencies. A precaution: in paired runs it made no difference."""
        self.ended.set()
        self.thread.join()

    def stop(self):
        self.stop_sampling()
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGTERM)
        if self.popen.wait(30) != 0:
            note(f"{self.popen.args[0]} ended with {self.popen.returncode}")


class Place:
    """A new store with its configuration, in a directory removed at the end."""

    CONFIG = """\
store: {store}
cluster: {{kubeconfig: {kubeconfig}}}
retention: {{time: 1s, size: 256MiB}}
feeds:
  - resource: pods
    indexes:
      node: spec.nodeName
      owner: metadata.ownerReferences[*].uid
      image: spec.containers[*].image
"""

    def __init__(self, build, kubeconfig="/nonexistent"):
        self.build = Path(build).resolve()
        # The rings are in memory as usual; the store is in BENCH_DIR.
        self.directory = Path(tempfile.mkdtemp(prefix="kinf-bench-", dir=os.environ.get("BENCH_DIR")))
        self.runtime = Path(tempfile.mkdtemp(prefix="kinf-bench-", dir="/dev/shm"))
        self.store = self.directory / "store"
        self.config = self.directory / "kinf.yaml"
        self.config.write_text(self.CONFIG.format(store=self.store, kubeconfig=kubeconfig))
        self.daemons = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.directory)
        shutil.rmtree(self.runtime)

    def program(self, name):
        return self.build / name

    def daemon(self, name, *options, env=None):
        argv = [self.program(name), "--config", self.config, "--runtime-dir", self.runtime, *options]
        daemon = Daemon(argv, self.directory / f"{name}.log", env)
        self.daemons.append(daemon)
        return daemon

    def stop(self):
        while self.daemons:
            self.daemons.pop().stop()

    def log(self, name, lines=5):
        path = self.directory / f"{name}.log"
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) if path.exists() else ""

    def fill(self, *words):
        return measured([self.program("bench/fill"), self.store, self.runtime, *words])

    def kinf(self, *words):
        return run([self.program("kinf"), *words, "--store", self.store])
