# SPDX-License-Identifier: Apache-2.0
"""A tree made by `make install`, and programs built against it as users build them."""

import os
import subprocess

from harness import PATIENCE
from harness.process import BUILD, ROOT

PREFIX = "/opt/kinf"
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wundef", "-Werror"]


def run(argv, env=None):
    done = subprocess.run([str(a) for a in argv], env={**os.environ, **(env or {})}, cwd=ROOT, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120 * PATIENCE)
    assert done.returncode == 0, f"{argv}: exit {done.returncode}\n{done.stdout}"
    return done.stdout


class Installed:
    """The result of `make install DESTDIR=DIRECTORY` with the build under test."""

    def __init__(self, directory):
        self.destdir = directory
        self.root = directory / PREFIX[1:]
        self.make("install")
        # A program needs AddressSanitizer itself to load a library with it.
        sanitized = b"__asan_init" in (self.root / "lib/libkinf.so.0").read_bytes()
        self.sanitizers = ["-fsanitize=address,undefined"] if sanitized else []

    def make(self, target):
        """Runs a make target without building anything, even if the compiler flags have changed since the build."""
        run(["make", "--no-print-directory", "-o", "all", target, f"B={BUILD}", f"DESTDIR={self.destdir}",
             f"PREFIX={PREFIX}"])

    def pkg_config(self, *options):
        return run(["pkg-config", *options, "kinf"], {
            "PKG_CONFIG_PATH": str(self.root / "lib/pkgconfig"),
            "PKG_CONFIG_SYSROOT_DIR": str(self.destdir),
        }).split()

    def compile(self, source, target):
        """Builds a C11 program with all warnings; returns its path."""
        flags = self.pkg_config("--cflags", "--libs")
        run(["gcc", "-std=c11", "-g", *WARNINGS, *self.sanitizers, source, *flags, "-o", target])
        return target

    def compile_cxx(self, source, target):
        """The same for a C++17 program."""
        flags = self.pkg_config("--cflags", "--libs")
        run(["g++", "-std=c++17", "-g", *WARNINGS, *self.sanitizers, source, *flags, "-pthread", "-o", target])
        return target

    def check_cxx(self, *sources):
        """Asserts that the sources also compile as C++17."""
        run(["g++", "-std=c++17", "-fsyntax-only", *WARNINGS, *self.pkg_config("--cflags"), "-x", "c++", *sources])

    @property
    def env(self):
        return {"LD_LIBRARY_PATH": str(self.root / "lib")}

    def files(self):
        """Paths below the prefix."""
        return {str(p.relative_to(self.root)) for p in self.root.rglob("*") if not p.is_dir()}
