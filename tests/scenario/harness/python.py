# SPDX-License-Identifier: Apache-2.0
"""Python interpreters with the kinf module, for some functions of tests.

They are separate processes because AddressSanitizer (perhaps in the library) must be loaded before
the interpreter, and because a crash of the library must not end pytest.
"""

import functools
import importlib
import json
import shutil
import signal
import subprocess
import sys
import traceback

from harness import eventually
from harness.process import BUILD, ROOT, Process, run_command
from harness.simulator import Simulator

LIBRARY = BUILD / "libkinf.so.0"
SOURCE = ROOT / "reader" / "python"

# Reads function names from stdin, one a line, and calls them.
GUEST = "from harness.python import serve; serve()"


def install(directory):
    """Installs the module into DIRECTORY with pip, without network; returns the directory for PYTHONPATH."""
    source, target = directory / "source", directory / "site"
    shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    run = run_command(
        ["/usr/bin/python3", "-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps",
         "--no-index", "--no-compile",
         "--disable-pip-version-check", "--target", target, source],
        env={"PIP_NO_INPUT": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        timeout=60,
    )
    assert run.status == 0, run
    return target


@functools.cache
def preload():
    """The path of the sanitizer's runtime if the library needs it, else ""."""
    needed = subprocess.run(["ldd", LIBRARY], capture_output=True, text=True, check=True).stdout
    found = [line.split()[2] for line in needed.splitlines() if "libasan.so" in line]
    return found[0] if found else ""


def environment(site):
    return {
        "KINF_LIBRARY": str(LIBRARY),
        "PYTHONPATH": f"{site}:{ROOT / 'tests' / 'scenario'}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONMALLOC": "malloc",
        "PYTHONFAULTHANDLER": "1",
        "LD_PRELOAD": preload(),
        # The interpreter does not free all of its memory at its end.
        "ASAN_OPTIONS": "abort_on_error=1:detect_leaks=0",
    }


class Interpreter(Process):
    """An interpreter running functions of test modules one after the other, each with an open
    kinf.Store as its first argument."""

    def __init__(self, site, store, name):
        super().__init__(name, [sys.executable, "-c", GUEST], store.directory, {**store.env, **environment(site)})
        store.processes.append(self)

    def start(self):
        with open(self.out_path, "ab") as out, open(self.err_path, "ab") as err:
            self.popen = subprocess.Popen(
                self.argv, stdin=subprocess.PIPE, stdout=out, stderr=err, env=self.env, cwd=self.cwd, text=True
            )
        return self

    def begin(self, function, simulator=None):
        """Starts FUNCTION in the interpreter."""
        ports = simulator and [simulator.port, simulator.control_port]
        self.popen.stdin.write(json.dumps([function.__module__, function.__name__, ports]) + "\n")
        self.popen.stdin.flush()

    def run(self, function, simulator=None, timeout=60):
        """Runs FUNCTION in the interpreter and waits for its end."""
        before = len(self.out.splitlines())
        self.begin(function, simulator)

        def ended():
            return [line for line in self.out.splitlines()[before:] if line in ("done", "failed")] or not self.running

        assert eventually(ended, timeout, function.__name__) == ["done"], self.tail(60)

    def stop(self, timeout=20):
        """Closes its stdin to end it, and waits."""
        if self.running:
            self.popen.stdin.close()
        return self.wait(timeout)


def serve():
    """The interpreter's main loop."""
    import kinf

    # A background shell starts its programs with SIGINT ignored, and Python then leaves it so.
    signal.signal(signal.SIGINT, signal.default_int_handler)

    for line in sys.stdin:
        module, function, ports = json.loads(line)
        arguments = {"simulator": Simulator.at(*ports)} if ports else {}
        try:
            with kinf.Store() as store:
                getattr(importlib.import_module(module), function)(store, **arguments)
            print("done", flush=True)
        except BaseException:
            traceback.print_exc()
            print("failed", flush=True)
