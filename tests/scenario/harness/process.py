# SPDX-License-Identifier: Apache-2.0
"""Processes as objects: start, signal, wait, and read their output."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path

from harness import PATIENCE, eventually

ROOT = Path(__file__).resolve().parents[3]
BUILD = ROOT / os.environ.get("KINF_BUILD", "build/asan")

SANITIZER = re.compile(
    r"(ERROR|WARNING): (Address|Leak|Memory|Thread|UndefinedBehavior)Sanitizer|runtime error:"
)
SANITIZER_OPTIONS = {
    "ASAN_OPTIONS": "abort_on_error=1:detect_leaks=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1",
}


_checked_for_leaks = set()  # (test or file, command) of run_command()


def program(name, build=BUILD):
    """Path of a program, by default of the build under test."""
    path = build / name
    assert path.exists(), f"{path} is not built (KINF_BUILD={BUILD})"
    return str(path)


def check_sanitizers(text, name):
    found = SANITIZER.search(text)
    assert not found, f"{name}: sanitizer report:\n{text[max(0, found.start() - 200):][:4000]}"


class Result:
    """An ended command."""

    def __init__(self, argv, status, stdout, stderr):
        self.argv, self.status, self.stdout, self.stderr = argv, status, stdout, stderr

    @property
    def json(self):
        return json.loads(self.stdout)

    @property
    def lines(self):
        """The JSON values in the output, one from each line."""
        return [json.loads(line) for line in self.stdout.splitlines()]

    def __repr__(self):
        command = " ".join([Path(self.argv[0]).name, *self.argv[1:]])
        return f"<{command}: exit {self.status}, stdout {self.stdout[:500]!r}, stderr {self.stderr[:500]!r}>"


class Process:
    """A process with output files NAME.out and NAME.err, appended to by each start."""

    def __init__(self, name, argv, directory, env=None):
        self.name, self.argv = name, [str(a) for a in argv]
        self.out_path = Path(directory) / f"{name}.out"
        self.err_path = Path(directory) / f"{name}.err"
        self.env = {**os.environ, **SANITIZER_OPTIONS, **(env or {})}
        self.cwd = str(directory)
        self.popen = None
        self.parsed, self.parsed_bytes = [], 0  # of `lines`

    def start(self):
        assert not self.running, f"{self.name} runs already"
        if not self.out_path.exists():
            self.parsed, self.parsed_bytes = [], 0
        with open(self.out_path, "ab") as out, open(self.err_path, "ab") as err:
            self.popen = subprocess.Popen(
                self.argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=self.env, cwd=self.cwd
            )
        return self

    @property
    def running(self):
        return self.popen is not None and self.popen.poll() is None

    @property
    def pid(self):
        return self.popen.pid

    @property
    def stopped(self):
        """True after SIGSTOP has taken effect."""
        return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

    def send(self, number):
        self.popen.send_signal(number)

    def kill(self, number=signal.SIGKILL):
        """Sends a signal and waits for the end. Returns the exit status (negative: the signal)."""
        if self.running:
            self.send(number)
        return self.wait()

    def stop(self, timeout=20):
        """Sends SIGTERM and waits for the end. Returns the exit status. Fails if the process ignores the signal."""
        if self.running:
            self.send(signal.SIGTERM)
        return self.wait(timeout)

    def wait(self, timeout=20):
        try:
            return self.popen.wait(timeout * PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} did not end within {timeout * PATIENCE} s") from None

    @property
    def log(self):
        return self.err_path.read_text(errors="replace") if self.err_path.exists() else ""

    @property
    def out(self):
        return self.out_path.read_text(errors="replace") if self.out_path.exists() else ""

    @property
    def lines(self):
        """The JSON values printed so far, one from each complete line. Earlier lines are not parsed
        again: a follower of many changes prints faster than a busy machine parses all of it for
        each question."""
        if not self.out_path.exists():
            return []
        with open(self.out_path, "rb") as out:
            out.seek(self.parsed_bytes)
            complete = out.read().rpartition(b"\n")[0]
        if complete:
            self.parsed += [json.loads(line) for line in complete.decode(errors="replace").split("\n") if line]
            self.parsed_bytes += len(complete) + 1
        return self.parsed[:]

    def wait_log(self, pattern, timeout=20):
        """Waits until PATTERN is in the log, and returns the match."""
        return eventually(lambda: re.search(pattern, self.log), timeout, f"/{pattern}/ in {self.name}'s log")

    def tail(self, n=30):
        state = "running" if self.running else f"exit {self.popen.returncode}" if self.popen else "not started"
        text = [f"--- {self.name} ({state}): {' '.join(self.argv)}"]
        for label, content in (("stdout", self.out), ("stderr", self.log)):
            lines = content.splitlines()
            text += [f"  {label}: ... {len(lines) - n} lines before"] if len(lines) > n else []
            text += [f"  {label}: {line[:500]}" for line in lines[-n:]]
        return "\n".join(text)

    def check(self):
        """Asserts that no sanitizer has reported a fault since the first start."""
        check_sanitizers(self.log, self.name)


def run_command(argv, env=None, timeout=60, input=None, cwd=None, check=False):
    """Runs a command to its end; with CHECK it must succeed. Leaks are looked for once in a test,
    since this takes half of a short command's time; if the command must succeed, once in a file of
    tests, since such a command goes the same way in each test."""
    argv = [str(a) for a in argv]
    test = os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0]
    once = test.partition("::")[0] if check else test, *argv
    leaks = {"ASAN_OPTIONS": "abort_on_error=1:detect_leaks=0"} if once in _checked_for_leaks else {}
    _checked_for_leaks.add(once)
    done = subprocess.run(
        argv,
        env={**os.environ, **SANITIZER_OPTIONS, **leaks, **(env or {})},
        input=input,
        stdin=None if input is not None else subprocess.DEVNULL,
        capture_output=True,
        timeout=timeout * PATIENCE,
        cwd=cwd,
        text=True,
        errors="replace",
    )
    check_sanitizers(done.stderr, " ".join(argv))
    result = Result(argv, done.returncode, done.stdout, done.stderr)
    assert not check or result.status == 0, result
    return result
