# SPDX-License-Identifier: Apache-2.0
"""The files of `make install` beside programs: systemd's units and their companions, the
configuration, the kubectl plugin."""

import re
import shutil
import subprocess

import pytest
import yaml

from harness import PATIENCE
from harness.installed import PREFIX, Installed
from harness.process import ROOT, program, run_command

UNITS = ["kinf.service", "kinf@.service", "kinf-serve.service", "kinf-serve.socket"]


def run(*argv):
    done = subprocess.run([str(a) for a in argv], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60 * PATIENCE)
    return done.returncode, done.stdout


def test_units_are_hardened(installed):
    for name in UNITS[:3]:
        # systemd takes the score of a template from an instance.
        unit = installed.destdir / name.replace("@", "@prod")
        text = (installed.root / "lib/systemd/system" / name).read_text()
        unit.write_text(text)
        status, said = run("systemd-analyze", "security", "--offline=yes", "--no-pager", unit)
        score = re.search(r"exposure level for \S+: ([\d.]+)", said)
        assert status == 0 and float(score[1]) <= 2.0, said


def test_units_are_understood(installed):
    """Programs, users and directories are those of the installed tree."""
    system = installed.root / "lib/systemd/system"
    where = installed.destdir / "units"
    where.mkdir()
    for name in UNITS:
        text = (system / name).read_text()
        assert "@" not in re.sub(r"kinf@NAME|#.*|@system-service", "", text), text
        (where / name.replace("@.", "@prod.")).write_text(text.replace(f"{PREFIX}/bin", f"{installed.root}/bin"))
    files = sorted(where.iterdir())
    status, said = run("systemd-analyze", "verify", "--man=no", *files)
    mine = [line for line in said.splitlines() if "kinf" in line]
    assert status == 0 and not mine, said


def test_user_group_and_directories_are_made(installed, tmp_path):
    for directory in ("etc", "usr/lib"):
        (tmp_path / directory).mkdir(parents=True)
    for kind in ("sysusers", "tmpfiles"):
        shutil.copytree(installed.root / f"lib/{kind}.d", tmp_path / f"usr/lib/{kind}.d")
    status, said = run("systemd-sysusers", f"--root={tmp_path}", "kinf.conf")
    assert status == 0, said
    assert re.search(r"(?m)^kinf:x:(\d+):\d+:.*:/var/lib/kinf:/usr/sbin/nologin$", (tmp_path / "etc/passwd").read_text())
    assert re.search(r"(?m)^kinf-readers:x:\d+:kinf$", (tmp_path / "etc/group").read_text())


def test_a_first_boot_enables_no_unit(installed, tmp_path):
    """systemd enables all units without a preset where there is no machine-id, as in an image;
    kinf.service then failed at each boot."""
    for directory in ("lib/systemd/system", "lib/systemd/system-preset"):
        shutil.copytree(installed.root / directory, tmp_path / directory)
    status, said = run("systemctl", f"--root={tmp_path}", "preset-all")
    assert status == 0, said
    for name in UNITS:
        status, said = run("systemctl", f"--root={tmp_path}", "is-enabled", name)
        assert said.strip() in ("disabled", "indirect"), (name, said)


def test_the_installed_configuration_needs_feeds_only(installed, tmp_path):
    text = (installed.destdir / "etc/kinf/kinf.yaml").read_text()
    file = tmp_path / "kinf.yaml"
    file.write_text(text)
    assert "no feeds" in run_command([program("kinf"), "config", "check", file], {"KINF_STORE": ""}).stderr
    # Each commented-out line works.
    lines = [line[1:] if re.match(r"#( *- |[a-z]| {2,})", line) else line for line in text.splitlines()]
    config = yaml.safe_load("\n".join(lines))
    assert config["store"] == "/var/lib/kinf" and config["group"] == "kinf-readers" and len(config["feeds"]) == 4
    file.write_text(yaml.safe_dump(config))
    result = run_command([program("kinf"), "config", "rbac", file], {"KINF_STORE": ""})
    assert result.status == 0 and "deployments" in result.stdout, result


def test_install_keeps_a_changed_configuration(tmp_path):
    installed = Installed(tmp_path)
    file = tmp_path / "etc/kinf/kinf.yaml"
    file.write_text("feeds: [{resource: pods}]\n")
    installed.make("install")
    installed.make("uninstall")
    assert file.read_text() == "feeds: [{resource: pods}]\n"
    assert installed.files() == set()


def test_kubectl_finds_the_plugin(installed, tmp_path):
    """As kubectl runs it: by its name, and for completion the other program."""
    (tmp_path / "kinf.yaml").write_text("feeds: []\n")
    env = {"PATH": f"{installed.root}/bin:/usr/bin:/bin", "KINF_STORE": str(tmp_path), **installed.env}
    version = run_command(["kubectl-kinf", "--version"], env)
    assert version.status == 0 and version.stdout == run_command([program("kinf"), "--version"]).stdout
    for words, expected in ((["sta"], ["status", ":4"]), (["verify", "--de"], ["--deep", ":4"]), (["config", "check", ""], [":0"]),
                            (["backup", "--store", ""], [":16"])):
        lines = run_command(["kubectl_complete-kinf", *words], env).stdout.splitlines()
        assert [line.split("\t")[0] for line in lines] == expected, (words, lines)


def test_the_bill_of_materials_names_the_libraries(installed):
    text = (installed.root / "share/doc/kinformer/kinformer.spdx").read_text()
    version = run_command([program("kinf"), "--version"]).stdout.split()[1]
    assert text.startswith("SPDXVersion: SPDX-2.3\n") and f"PackageVersion: {version}\n" in text
    assert {"liblmdb0", "libyaml-0-2", "libcurl4"} <= set(re.findall(r"(?m)^PackageName: (\S+)$", text))
    ids = re.findall(r"(?m)^SPDXID: (\S+)$", text)
    assert len(ids) == len(set(ids)) and set(re.findall(r"DYNAMIC_LINK (\S+)", text)) <= set(ids)
    assert (ROOT / "LICENSE").exists()
