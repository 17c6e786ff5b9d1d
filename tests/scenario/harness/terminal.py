# SPDX-License-Identifier: Apache-2.0
"""A terminal for a program: a pseudo-terminal, and pyte for the visible screen."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios

import pyte

from harness import PATIENCE, eventually
from harness.process import SANITIZER_OPTIONS, check_sanitizers


class Terminal:
    """ARGV on a terminal of ROWS and COLUMNS (0: as a serial console, without a size). The program's output is read at each request of the screen."""

    def __init__(self, argv, env, rows=24, columns=80, term="linux"):
        self.screen = pyte.Screen(columns or 80, rows or 24)
        self.stream = pyte.ByteStream(self.screen)
        self.written = b""
        self.master, slave = pty.openpty()
        self.name = os.ttyname(slave)
        self._set_size(rows, columns)
        self.mode = termios.tcgetattr(slave)
        ours = {name: value for name, value in os.environ.items() if name not in ("TERM", "NO_COLOR")}
        environment = {**ours, **SANITIZER_OPTIONS, "LC_ALL": "C.UTF-8", **env}
        if term is not None:
            environment["TERM"] = term

        def control():
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.popen = subprocess.Popen([str(a) for a in argv], stdin=slave, stdout=slave, stderr=slave, env=environment,
                                      start_new_session=True, preexec_fn=control)
        self.slave = slave

    def _set_size(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, rows, columns):
        self.lines()
        self.screen.resize(rows, columns)
        self._set_size(rows, columns)  # the kernel sends SIGWINCH

    def press(self, keys):
        os.write(self.master, keys.encode())

    def lines(self):
        """The lines of the screen now."""
        while select.select([self.master], [], [], 0)[0]:
            data = os.read(self.master, 65536)
            self.written += data
            self.stream.feed(data)
        return [line.rstrip() for line in self.screen.display]

    def text(self):
        return "\n".join(self.lines())

    def wait_text(self, *texts, absent=(), timeout=20):
        """Waits until all TEXTS are on the screen, and none of ABSENT. Returns the screen."""

        def shown():
            text = self.text()
            return text if all(t in text for t in texts) and not any(t in text for t in absent) else None

        try:
            return eventually(shown, timeout, f"{texts} on the screen, without {absent}")
        except AssertionError as failure:
            raise AssertionError(f"{failure}\n{self.text()}") from None

    def hang_up(self):
        """The terminal vanishes."""
        os.close(self.slave)
        os.close(self.master)
        self.master = self.slave = None

    def wait(self, timeout=20):
        """The exit status; reads on meanwhile."""

        def ended():
            if self.master is not None:
                self.lines()
            return self.popen.poll() is not None

        eventually(ended, timeout, "the end of the program")
        if self.master is not None:
            self.lines()
        return self.popen.returncode

    def is_restored(self):
        """The terminal has its first mode again."""
        return termios.tcgetattr(self.slave) == self.mode

    def close(self):
        if self.popen.poll() is None:
            self.popen.kill()
        self.popen.wait(timeout=20 * PATIENCE)
        check_sanitizers(self.written.decode(errors="replace"), "a program on a terminal")
        for fd in (self.master, self.slave):
            if fd is not None:
                os.close(fd)
