#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
Compares the manual pages with the programs and headers: prints a line for each difference; exit 1 if there is one.

usage: scripts/manual.py [--write] [BUILD]

Pages contain blocks that this script generates:

    .\\" made: options kinf get         (from --help of a program in BUILD; "but common": without the common options)
    .\\" end

Prototypes, structures and errors come from reader/kinf*.h and common/err.def, counters from common/stats.def, keys of
kinf.yaml from common/config/config.def. With --write the script writes the blocks, otherwise it compares them. Without
BUILD it leaves out blocks that need programs. It also checks that each function of kinf.h is on one page and in its NAME
section, and that each key of kinf.yaml and each subcommand is explained.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "reader/man").glob("*.[135]"))
HEADER = "".join(header.read_text() for header in sorted(ROOT.glob("reader/kinf*.h")))
CODE = re.sub(r"/\*.*?\*/", "", HEADER, flags=re.S)
BLOCK = re.compile(r'^\.\\" made: ([^\n]*)\n(.*?)^\.\\" end\n', re.S | re.M)


def roff(text):
    """TEXT escaped for a text line of a page."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in (".", "'") else text


# ---- options: from --help -------------------------------------------------------------------------

OPTION = re.compile(r"^  (?:-(?P<letter>\w), |    )--(?P<name>[\w-]+)(?: (?P<value>\S+))?\s+(?P<text>.*)$")


def help_of(build, words):
    """The lines of --help, with wrapped ones joined."""
    program, *command = words
    done = subprocess.run([build / program, *command, "--help"], capture_output=True, text=True, check=True)
    return re.sub(r"\n {33}(?=\S)", " ", done.stdout).splitlines()


def option_item(match):
    value = f" Ar {match['value']}" if match["value"] else ""
    letter = f"Fl {match['letter']} , " if match["letter"] else ""
    return [f".It {letter}Fl \\-{match['name']}{value}".replace("\\-", "-"), roff(match["text"])]


def make_options(build, *words):
    """The options of a program or subcommand; after "but common" without the common ones."""
    lines, group, without = [], "", words[:2] == ("but", "common")
    for line in help_of(build, words[2:] if without else words):
        match = OPTION.match(line)
        group = line if line.endswith(":") else group
        common = group == "Common options:" or (match and match["name"] in ("help", "version"))
        if match and not (without and common):
            lines += option_item(match)
    return [".Bl -tag -width Ds", *lines, ".El"] if lines else []


def make_common(build, *words):
    """The options that all subcommands have."""
    own = make_options(build, "but", "common", *words)
    return [line for line in make_options(build, *words) if line not in own or line[:3] in (".Bl", ".El")]


def make_commands(build, program):
    matches = [re.match(r"^  ([\w-]+) +(.*)$", line) for line in help_of(build, [program])]
    items = [line for m in matches if m for line in (f".It Cm {m[1]}", roff(m[2]))]
    return [".Bl -tag -width Ds", *items, ".El"]


# ---- the header -------------------------------------------------------------------------------------


def declarations():
    """{name: (return type, [parameters])} of all functions and types of functions."""
    found = {}
    for match in re.finditer(r"(?:KINF_API|(typedef))\s+([^;{]*?)(\w+)\(([^;]*)\);", CODE):
        typedef, returns, name, parameters = match.groups()
        words = [" ".join(p.split()) for p in parameters.split(",")]
        found[name] = (f"{typedef or ''} {' '.join(returns.split())}".strip(), words)
    return found


FUNCTIONS = {name for name, (returns, _) in declarations().items() if not returns.startswith("typedef")}


def make_prototypes(_, *names):
    lines = []
    for name in names:
        returns, parameters = declarations()[name]
        lines += [f".Ft {returns}", f".Fo {name}", *(f'.Fa "{p}"' for p in parameters), ".Fc"]
    return lines


def make_types(_, *names):
    """The structures and enumerations of the header, with their comments."""
    lines = []
    for name in names:
        found = re.search(rf"^(?:struct|enum) {name} \{{\n.*?^\}};\n", HEADER, re.S | re.M)
        lines += [".Bd -literal", *(roff(line).replace("\\-", "-") for line in found[0].splitlines()), ".Ed"]
    return lines


def make_errors(_):
    texts = dict(re.findall(r'^ERR\((\w+), -\d+, "(.*)"\)', (ROOT / "common/err.def").read_text(), re.M))
    names = re.findall(r"KINF_(\w+) = -\d+", CODE)
    items = [line for name in names for line in (f".It Dv KINF_{name}", roff(texts[name]))]
    return [".Bl -tag -width Ds", *items, ".El"]


def make_counters(_):
    found = re.findall(r'^STAT\(\w+, "(.*?)", "(.*)"\)', (ROOT / "common/stats.def").read_text(), re.M)
    return [".Bl -tag -width Ds", *(line for name, text in found for line in (f".It {name}", roff(text))), ".El"]


# ---- the keys of kinf.yaml ---------------------------------------------------------------------------


def keys(macro):
    """The lines of config.def: [(key, type, field, minimum, maximum, default, [restart,] help)]."""
    table = re.sub(r"/\*.*?\*/", "", (ROOT / "common/config/config.def").read_text(), flags=re.S)
    for line in re.findall(rf'^{macro}\(((?:[^()"]|"[^"]*")*)\)', table, re.M):
        parts = re.findall(r'((?:"[^"]*"\s*)+|[^,\s"]+)(?:,|$)', line)
        yield ["".join(re.findall(r'"([^"]*)"', p)) if p[0] == '"' else p for p in parts]


KINDS = {"NUMBER": "number", "DURATION": "duration", "DURATION_OR_NONE": "duration", "SIZE": "size", "SHARE": "share"}


def make_keys(_, *names):
    """The keys of config.def below NAMES (those of a feed: "feed"), with their values and defaults."""
    lines = []
    for name, kind, _, low, high, default, *restart, text in keys("FEED_KEY" if names == ("feed",) else "KEY"):
        if names != ("feed",) and name.split(".")[0] not in names:
            continue
        facts = [f"One of {low}, {high}." if kind == "CHOICE" else "True or false." if kind == "SWITCH" else f"A {KINDS[kind]}" if kind in KINDS else ""]
        if kind == "WORD":
            facts[0] = f"One of {', '.join(low.split('|'))}."
        if kind in KINDS:
            facts[0] += "." if low == "NULL" else f" from {low} to {high}" + (", or 0s." if kind == "DURATION_OR_NONE" else ".")
        facts += [f"Default: {default}."] if default not in ("NULL", "") else []
        facts += ["Needs a restart."] if restart not in ([], ["RELOAD"]) else []
        lines += [f".It Cm {name}", roff(text), *([roff(" ".join(filter(None, facts)))] if any(facts) else [])]
    return [".Bl -tag -width Ds", *lines, ".El"]


# ---- pages ------------------------------------------------------------------------------------------

MAKERS = {"options": make_options, "common": make_common, "commands": make_commands, "prototypes": make_prototypes,
          "types": make_types, "errors": make_errors, "counters": make_counters, "keys": make_keys}
NEED_BUILD = ("options", "common", "commands")


def made(build, what, old):
    kind, *words = what.split()
    if kind in NEED_BUILD and not build:
        return old
    return "".join(line + "\n" for line in MAKERS[kind](build, *words))


def check_page(page, build, write):
    text = page.read_text()
    faults = []

    def block(match):
        new = made(build, match[1], match[2])
        if new != match[2]:
            faults.append(f"{page.relative_to(ROOT)}: '{match[1]}' is out of date; run 'make manual'")
        return f'.\\" made: {match[1]}\n{new}.\\" end\n'

    text = BLOCK.sub(block, text)
    if write:
        page.write_text(text)
        return []
    return faults


def names_of(page):
    """The functions in a page's NAME section."""
    head = page.read_text().split(".Sh NAME\n")[1].split("\n.Sh ")[0]
    return re.findall(r"^\.Nm (\w+)", head, re.M)


def check_functions():
    promised = [name for page in PAGES if page.suffix == ".3" for name in names_of(page)]
    declared = [name for page in PAGES for name in re.findall(r"^\.Fo (kinf_\w+)", page.read_text(), re.M)]
    for name in sorted(FUNCTIONS):
        if promised.count(name) != 1 or declared.count(name) != 1:
            yield f"reader/man: {name} is in {promised.count(name)} NAME and {declared.count(name)} SYNOPSIS sections"
    for name in sorted(set(promised) - FUNCTIONS - {page.stem for page in PAGES}):
        yield f"reader/man: {name} is not a function of kinf.h"


def check_commands(build):
    """Checks that each subcommand has a section."""
    explained = set(re.findall(r"^\.Ss kinf ([\w-]+)", (ROOT / "reader/man/kinf.1").read_text(), re.M))
    known = {line.split()[-1] for line in make_commands(build, "kinf") if line.startswith(".It")}
    for name in sorted(known ^ explained):
        yield f"reader/man/kinf.1: {name} is {'not explained' if name in known else 'not a command'}"


def check_keys():
    """Checks that each key of common/config/config.def is in exactly one block."""
    blocks = re.findall(r'^\.\\" made: keys (.*)$', (ROOT / "reader/man/kinf.yaml.5").read_text(), re.M)
    explained = [word for block in blocks for word in block.split()]
    known = {"feed"} | {name.split(".")[0] for name, *_ in keys("KEY")}
    for name in sorted(known.symmetric_difference(explained)):
        yield f"reader/man/kinf.yaml.5: {name} is {'not explained' if name in known else 'not a key'}"


def main():
    arguments = [a for a in sys.argv[1:] if a != "--write"]
    build = Path(arguments[0]).resolve() if arguments else None
    faults = [fault for page in PAGES for fault in check_page(page, build, "--write" in sys.argv)]
    if "--write" not in sys.argv:
        faults += [*check_functions(), *check_keys(), *(check_commands(build) if build else [])]
    for fault in faults:
        print(fault)
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
