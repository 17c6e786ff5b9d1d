# SPDX-License-Identifier: Apache-2.0
"""scripts/test.sh (`make test`) counts passed, failed and skipped tests. Here it runs in a tree of
its own with dummy programs."""

import os
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "test.sh"
UNIT = r"""#!/bin/sh
echo '[====] Synthesis: Tested: 2 | Passing: 2 | Failing: 0 | Crashing: 0 '
for argument; do case $argument in --output=tap:*) printf 'ok - disk::full  # SKIP no mount namespaces here\nok - disk::room  (0.01s)\n' >"${argument#*:}" ;; esac; done
"""
SCENARIO_DIRECTORY = "tests/scenario"
SCENARIOS = """
import pytest

@pytest.mark.parametrize("number", [1, 2])
def test_one(number):
    pytest.skip("no kubectl here")

def test_two():
    pass
"""


def runs(tmp_path, torture):
    programs = {
        "bin/make": "#!/bin/sh\n",
        "bin/nproc": "#!/bin/sh\necho 1\n",
        "scripts/check-style.sh": "#!/bin/sh\n",
        "scripts/check-torture.sh": torture,
        "build/asan/unit/test_disk": UNIT,
        "build/asan/fuzz/fuzz_a": "#!/bin/sh\n",
        "build/asan/model/model": "#!/bin/sh\n",
        "build/tsan/stress/ring_threads": "#!/bin/sh\n",
        "tests/stress/rebuild.py": "",
        f"{SCENARIO_DIRECTORY}/test_it.py": SCENARIOS,
        "scripts/test.sh": SCRIPT.read_text(),
    }
    for name, text in programs.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    done = subprocess.run(
        [tmp_path / "scripts/test.sh"], env={**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}, capture_output=True, text=True, timeout=120
    )
    return done.returncode, done.stdout


def test_skipped_tests_are_named_and_counted_before_the_last_line(tmp_path):
    torture = '#!/bin/sh\nif [ "$2" != memory ]; then echo "members: skipped: it needs root"; fi\n[ "$2" != kills ]\n'
    status, out = runs(tmp_path, torture)
    assert status == 1, out
    assert out.splitlines()[-8:] == [
        "skipped: unit test_disk: disk::full: no mount namespaces here",
        f"skipped: scenarios: {SCENARIO_DIRECTORY}/test_it.py:6: no kubectl here",
        f"skipped: scenarios: {SCENARIO_DIRECTORY}/test_it.py:6: no kubectl here",
        "skipped: torture freezing: it needs root",
        "skipped: torture members: it needs root",
        "5 skipped",
        "failed: torture kills",
        "10 passed, 1 failed",
    ], out
