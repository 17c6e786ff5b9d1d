# SPDX-License-Identifier: Apache-2.0
"""The tree as `make install` leaves it, and programs built against it as a user builds them."""

import os
import subprocess

from harness.process import BUILD, ROOT

PREFIX = "/opt/kinf"
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wundef", "-Werror"]


def run(argv, env=None):
    done = subprocess.run([str(a) for a in argv], env={**os.environ, **(env or {})}, cwd=ROOT, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    assert done.returncode == 0, f"{argv}: exit {done.returncode}\n{done.stdout}"
    return done.stdout


class Installed:
    """What `make install DESTDIR=DIRECTORY` of the build under test gives."""

    def __init__(self, directory):
        self.destdir = directory
        self.root = directory / PREFIX[1:]
        self.make("install")
        # A program that loads a library under AddressSanitizer has to begin with it itself.
        sanitized = b"__asan_init" in (self.root / "lib/libkinf.so.0").read_bytes()
        self.sanitizers = ["-fsanitize=address,undefined"] if sanitized else []

    def make(self, target):
        """What is built is not built again, also where the flags are others than they were then."""
        run(["make", "--no-print-directory", "-o", "all", target, f"B={BUILD}", f"DESTDIR={self.destdir}",
             f"PREFIX={PREFIX}"])

    def pkg_config(self, *options):
        return run(["pkg-config", *options, "kinf"], {
            "PKG_CONFIG_PATH": str(self.root / "lib/pkgconfig"),
            "PKG_CONFIG_SYSROOT_DIR": str(self.destdir),
        }).split()

    def compile(self, source, target):
        """A C11 program with all warnings; its path."""
        flags = self.pkg_config("--cflags", "--libs")
        run(["gcc", "-std=c11", "-g", *WARNINGS, *self.sanitizers, source, *flags, "-o", target])
        return target

    def check_cxx(self, *sources):
        """They are C++17 too."""
        run(["g++", "-std=c++17", "-fsyntax-only", *WARNINGS, *self.pkg_config("--cflags"), "-x", "c++", *sources])

    @property
    def env(self):
        return {"LD_LIBRARY_PATH": str(self.root / "lib")}

    def files(self):
        """Paths below the prefix."""
        return {str(p.relative_to(self.root)) for p in self.root.rglob("*") if not p.is_dir()}
