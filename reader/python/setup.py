# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel. With $KINF_BUNDLE, the path of a libkinf.so.0, the library is in the wheel, and
the wheel is for this kind of machine only; without, the module looks for the library where it is
used."""

import os
import shutil

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py
from wheel.bdist_wheel import bdist_wheel

BUNDLE = os.environ.get("KINF_BUNDLE")


class Build(build_py):
    def run(self):
        super().run()
        target = os.path.join(self.build_lib, "kinf", "libkinf.so.0")
        if BUNDLE:
            shutil.copyfile(BUNDLE, target)
        elif os.path.exists(target):  # of an earlier build
            os.remove(target)


class Bundled(Distribution):
    def has_ext_modules(self):
        return bool(BUNDLE)


class Wheel(bdist_wheel):
    def get_tag(self):
        _, _, platform = super().get_tag()
        return "py3", "none", platform


setup(distclass=Bundled, cmdclass={"build_py": Build, "bdist_wheel": Wheel})
