#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks each reference to a document, section, case or test for its target in the repository.

* A name of a .md file is one of a tracked file: from the root, from the file's own directory, or
  bare (FORMAT.md); documents of docs/ are named with docs/ outside of it. Paths below spec/ and
  design/ do not exist here. A source file with its directory (store/env/env.c) is tracked.
* A link of a .md file, [text](file#section) or ![text](picture), leads to a tracked file or
  directory, and its section is a heading there.
* A source file in backticks, in a .md file, is tracked: from the root or from a directory above it
  (`env/env.c`).
* Modules in the first column of a README's table `| file |` are files or directories below the
  README.
* Each directory of product code is named in the section Directories of docs/architecture.md.
* `docs/protocol.md 7.5` and `FORMAT.md, Ring` name a section by its number or title.
* Log events of docs/operations.md are in common/log.def.
* C01, K03, S12 are cases of docs/protocol.md 18, also in the names of tests.
* Rows of tests/ROWS.md and tests/INFORMER_ROWS.md are cases of docs/protocol.md and tests of
  docs/informer.md 9, and all cases and all those tests have a row. A row is `| ID | TEST, TEST |
  NOTE |`, and may be followed by more rows of the same ID. TEST is FILE::NAME, a pytest function or
  a Criterion test; "*" stands for a part of a long name. "-" for none, then the note says why. A
  test of a case has its id in its name. FILE is a path, or a name in tests/unit/ or
  tests/scenario/.

Prints one line for each fault; exit 1 when there is one.
"""

import collections
import fnmatch
import functools
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CASES = ROOT / "docs/protocol.md"
INFORMER = ROOT / "docs/informer.md"
NOT_TEXT = ("tests/fuzz/",)  # seeds are bytes for parsers
INSTALLED = ("share/doc/", "/usr/share/doc/", "usr/share/doc/", "-X")  # where installed files are; patterns of debhelper
PRODUCT = ("common", "store", "reflector", "processor", "reader", "print", "command", "serve")
FOREIGN = ("sys/sdt.h", "curl.h", "lmdb.h", "msgpack.h", "ncurses.h", "simdjson.h", "xxhash.h", "yaml.h")
SOURCE = r"(?<![\w/.<-])(?:common|store|reflector|processor|reader|print|command|serve|tests|scripts)/[\w./-]+\.(?:c|h|cpp|def|py|sh)\b"


@functools.cache
def tracked():
    if (ROOT / ".git").exists():
        names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    else:  # a released tree
        names = [str(file.relative_to(ROOT)) for file in ROOT.rglob("*") if file.parts[len(ROOT.parts)] != "build"]
    return {name for name in names if name and (ROOT / name).is_file()}


@functools.cache
def headings(path):
    """Numbers and titles of a document's sections."""
    found = re.findall(r"^#+ +(.+?) *$", (ROOT / path).read_text(), re.M)
    numbers = {match[1] for title in found if (match := re.match(r"([0-9]+(?:\.[0-9]+)?)\.? ", title))}
    return numbers, [title.split(":")[0].strip().lower() for title in found]


def ids_of(path, pattern):
    return re.findall(rf"^\| ({pattern}) \|", path.read_text(), re.M)


def resolve(name, path):
    """The tracked file meant by NAME in the file PATH, None if there is none."""
    own = (ROOT / path).parent / name
    for place in (own.resolve(), ROOT / name):
        if place.is_relative_to(ROOT) and (short := str(place.relative_to(ROOT))) in tracked():
            return short
    if "/" in name:
        return None
    same = sorted(short for short in tracked() if short.endswith("/" + name) and not short.startswith("docs/"))
    return same[0] if same else None


def joined(text):
    """Comments and paragraphs as one line each, to join broken references; and where each line began."""
    out, lines, at = [], [], 0
    for number, line in enumerate(text.split("\n"), 1):
        line = re.sub(r"^\s*(?:/\*|\*|#)?\s*", "", line).rstrip().removesuffix("*/").rstrip() + " "
        lines.append((at, number))
        out.append(line)
        at += len(line)
    return "".join(out), lines


@functools.cache
def anchors(path):
    """The anchors of a document's headings, as GitHub makes them."""
    counts = collections.Counter()
    found = set()
    for line in without_fences((ROOT / path).read_text()).split("\n"):
        if match := re.match(r"#+ +(.+?) *$", line):
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match[1]).lower()
            slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
            found.add(f"{slug}-{counts[slug]}" if counts[slug] else slug)
            counts[slug] += 1
    return frozenset(found)


def without_fences(text):
    """TEXT with the lines of fenced blocks emptied: the others keep their numbers."""
    lines, inside = [], False
    for line in text.split("\n"):
        fence = line.lstrip().startswith("```")
        lines.append("" if inside or fence else line)
        inside ^= fence
    return "\n".join(lines)


def check_links(path):
    """Links of a document without a target."""
    for number, line in enumerate(without_fences((ROOT / path).read_text()).split("\n"), 1):
        for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`(?!\])", "", line)):
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = link.partition("#")
            place = ((ROOT / path).parent / name).resolve() if name else ROOT / path
            short = str(place.relative_to(ROOT)) if place.is_relative_to(ROOT) else ""
            if short not in tracked() and not any(file.startswith(short + "/") for file in tracked()):
                yield f"{path}:{number}: the link '{link}' leads nowhere"
            elif anchor and (not short.endswith(".md") or anchor not in anchors(short)):
                yield f"{path}:{number}: the link '{link}' names a section that is not there"


def check_sections(target, rest):
    """The fault of the section asked for by REST, the text after a document's name; None: nothing."""
    numbers, titles = headings(target)
    if match := re.match(r"`?\)?,? ([0-9]+\.[0-9]+|[0-9]+)(?![0-9.]*[0-9])", rest):
        return None if match[1] in numbers or not numbers else f"{target} has no section {match[1]}"
    if match := re.match(r"`?, ([A-Z][a-z]+)", rest):
        asked = rest[match.start(1):].lower()
        if not any(re.match(rf"{re.escape(title)}\b", asked) for title in titles):
            return f"{target} has no section '{match[1]} ...'"
    return None


def check_text(path):
    try:
        text, lines = joined((ROOT / path).read_text())
    except UnicodeDecodeError:
        return

    def fault(position, why):
        return f"{path}:{max(number for start, number in lines if start <= position)}: {why}"

    for match in re.finditer(r"(?<![\w/.-])(?:\.\./)?(?:shared/)?(?:spec|design)/[a-z]+\.md", text):
        yield fault(match.start(), f"'{match[0]}' is not in the repository")
    for match in re.finditer(r"(?<![\w/:.-])[\w./-]*\w\.md\b", text):
        name = match[0]
        if name.startswith(INSTALLED) or re.match(r"(?:spec|design)/", name):
            continue
        target = resolve(name, path)
        why = check_sections(target, text[match.end():match.end() + 100]) if target else f"there is no '{name}'"
        if why:
            yield fault(match.start(), why)
    for match in re.finditer(SOURCE, text):
        if match[0] not in tracked():
            yield fault(match.start(), f"there is no '{match[0]}'")
    known = cases()
    for match in re.finditer(r"(?<![\w&#%+-])[CKS][0-9]{2}(?!\w)", text):
        if match[0] not in known:
            yield fault(match.start(), f"docs/protocol.md has no case {match[0]}")


@functools.cache
def cases():
    return frozenset(ids_of(CASES, r"[CKS]\d\d"))


@functools.cache
def tests_of(path):
    """Names of the tests in a file; None when it is not there."""
    places = [path, f"tests/unit/{path}", f"tests/scenario/{path}"]
    path = next((place for place in places if place in tracked()), None)
    if path is None:
        return None
    pattern = r"^def (test_\w+)\(" if path.endswith(".py") else r"^Test\(\w+,\s*(\w+)"
    return frozenset(re.findall(pattern, (ROOT / path).read_text(), re.M))


def check_names(path):
    """Tests named after cases or client-go's tests."""
    rows = {row.split()[0] for row in ids_of(INFORMER, "Test.+?")}
    for name in sorted(tests_of(path)):
        for case in re.findall(r"[cks]\d\d(?=_)", (re.match(r"(?:test_)?((?:[cks]\d\d_)*)", name) or [""])[1]):
            if case.upper() not in cases():
                yield f"{path}: {name}: docs/protocol.md has no case {case.upper()}"
        if re.match(r"Test[A-Z]", name) and name not in rows:
            yield f"{path}: {name}: docs/informer.md 9 has no such test"


def check_row(row, tests, note):
    """The fault of a row."""
    if tests == "-":
        return [] if note else ["neither a test nor a reason"]
    faults = []
    for test in (name.strip("` ") for name in tests.split(",")):
        path, separator, name = test.partition("::")
        known = tests_of(path) if separator else None
        if known is None:
            faults.append(f"'{test}': no such file")
        elif len(fnmatch.filter(known, name)) != 1:
            faults.append(f"'{test}': no such test, or several")
        elif re.fullmatch(r"[A-Z]\d\d", row) and not re.search(rf"(^|_){row.lower()}_", name):
            faults.append(f"'{test}': the name does not hold {row.lower()}")
    return faults


def check_page(page, expected):
    """A page of rows: each is right, those of the id's kind are EXPECTED, and all of these are there."""
    seen, last = {}, None
    for number, line in enumerate((ROOT / page).read_text().splitlines(), 1):
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        if not line.startswith("|") or len(cells) != 3 or cells[0] == "id" or set(cells[0]) <= set("-:"):
            continue
        faults = check_row(*cells)
        if re.match(r"Test[A-Z]|[A-Z]\d\d$", cells[0]) and cells[0] not in expected:
            faults.append("the documents have no such row")
        if cells[0] in seen and cells[0] != last:
            faults.append(f"is also in line {seen[cells[0]]}")
        seen[cells[0]] = number
        last = cells[0]
        yield from (f"{page}:{number}: {cells[0]}: {fault}" for fault in faults)
    yield from (f"{page}: {row} is missing" for row in expected if row not in seen)


def check_ids(path, pattern):
    """Each id of a document is defined once."""
    counts = collections.Counter(ids_of(path, pattern))
    yield from (f"{path.relative_to(ROOT)}: {row} is defined {n} times" for row, n in counts.items() if n > 1)


def check_events():
    """Log events in the operator's guide are in common/log.def."""
    known = set(re.findall(r"^EVENT\((\w+)", (ROOT / "common/log.def").read_text(), re.M))
    log = (ROOT / "docs/operations.md").read_text().partition("\n## Log\n")[2].partition("\n## ")[0]
    named = re.findall(r"`([a-z]+_[a-z_]+)`", log)
    yield from (f"docs/operations.md: common/log.def has no event {name}" for name in named if name not in known)


def is_tracked(pattern):
    """Whether a tracked file or directory ends with PATTERN, perhaps with wildcards and without its suffix."""
    pattern = pattern.rstrip("/").removeprefix("../")
    return any(fnmatch.fnmatch("/" + place, "*/" + pattern) for place in places())


@functools.cache
def places():
    """Tracked files with and without their suffixes, and directories."""
    found = set()
    for name in tracked():
        path = pathlib.PurePosixPath(name)
        found.update((name, str(path.with_suffix("")), *map(str, path.parents)))
    return frozenset(found)


def check_backticks(path):
    """Missing source files in backticks."""
    for number, line in enumerate(without_fences((ROOT / path).read_text()).split("\n"), 1):
        for name in re.findall(r"`([\w*./-]+\.(?:c|h|hpp|cpp|def|py|sh))`", line):
            placeholder = re.search(r"[A-Z]{2}|^/", name)
            if not placeholder and name not in FOREIGN and not is_tracked(name):
                yield f"{path}:{number}: there is no '{name}'"


def check_file_column(path):
    """Missing modules of a README's table of files."""
    inside = False
    for number, line in enumerate((ROOT / path).read_text().split("\n"), 1):
        inside = line.startswith("| file ") or inside and line.startswith("|")
        if not inside:
            continue
        cell = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", line.split("|")[1]).replace("`", "")
        names = [name for name in re.split(r"[,\s]+", cell) if "/" in name or "_" in name]
        yield from (f"{path}:{number}: there is no '{name}'" for name in names if not is_tracked(name))


def check_directories():
    """Directories of product code missing in docs/architecture.md, one level below the rooms."""
    text = (ROOT / "docs/architecture.md").read_text().partition("\n## Directories\n")[2].partition("\n## ")[0]
    named = set(re.findall(r"(?<![\w./])\.?[\w-]+/", text))
    for place in sorted({tuple(name.split("/")[:-1][:2]) for name in tracked()}):
        if place and (len(place) == 1 or place[0] in PRODUCT) and f"{place[-1]}/" not in named:
            yield f"docs/architecture.md: Directories lacks {'/'.join(place)}/"


def check_all():
    for path in sorted(tracked()):
        if not path.startswith(NOT_TEXT):
            yield from check_text(path)
        if path.endswith(".md"):
            yield from check_links(path)
            yield from check_backticks(path)
            yield from check_file_column(path)
        if re.match(r"tests/unit/test_\w+\.c$|tests/scenario/test_\w+\.py$", path):
            yield from check_names(path)
    yield from check_ids(CASES, r"[CKS]\d\d")
    yield from check_events()
    yield from check_directories()
    yield from check_page("tests/ROWS.md", ids_of(CASES, r"[CKS]\d\d"))
    yield from check_page("tests/INFORMER_ROWS.md", sorted(set(ids_of(INFORMER, "Test.+?"))))


if __name__ == "__main__":
    found = list(check_all())
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(bool(found))
