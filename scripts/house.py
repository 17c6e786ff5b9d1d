#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the shape of the tree: sizes, functions, modules, names, prose.

usage: scripts/house.py [TREE]              prints the tables
       scripts/house.py --check [TREE]      prints one line per violation of a limit; exit 1 if any
       scripts/house.py --list NAME [TREE]  prints the places of a figure
       scripts/house.py --list two/ROOM     prints the sentences of ROOM with two clauses; also
                                            clause/ROOM, long/ROOM and cells/ROOM

The limits are the house style's: a function short enough to hold in mind, one noun a module, an
actor in each comment. Shape is measured in product code (common, store, reflector, processor,
reader, print, command, serve), prose and long lines in every room.
"""

import os
import re
import subprocess
import sys
from collections import Counter, defaultdict

FOLDERS = ("common", "store", "reflector", "processor", "reader", "print", "command", "serve")
FILE_MAX = 1000
FUNCTION_MAX = 80
SHORT_HELPER = 10
LONG_MAX = 60  # lines of nine functions in ten
# kinf.h is the public header of the group with the internal header handle.h (reader/README.md).
GROUPS = {"reader/handle reader/kinf"}

# A comment's sentence begins with its actor or its verb, not with a clause to decode.
DECODED = re.compile(r"(What|Who|Whose|Whoever|Of|Where)\b")
# Words with a plainer one in the glossary.
INSTEAD = {"behind": "after", "anew": "again", "folder": "directory", "whoever": "a named actor",
           "whose": "a named actor", "somebody": "a named actor", "nobody": "a named actor"}
# First words of a relative or content clause.
C_FILES = (".c", ".h", ".cpp", ".hpp")
SCRIPTS = (".py", ".sh", "Makefile")
C_COMMENT = re.compile(r"/\*[\s\S]*?\*/|//[^\n]*")
# Runs of lines with a hash, hashes after code, and docstrings.
SCRIPT_COMMENT = re.compile(r'^[ \t]*#(?!!).*(?:\n[ \t]*#.*)*|  # .*|^[ \t]*"""[\s\S]*?"""', re.M)
CLAUSE = re.compile(r"\b(that|which|who|whose|whom|what|whatever|whoever)\b", re.I)
LICENCE = re.compile(r"SPDX|Copyright|Redistribution|WARRANT|License")
COLUMNS = 100
CELL_MAX = 200
# The limits of a room: comment sentences with a clause and with two (per cent), lines over 100
# columns in C and in Markdown (tables excepted), table cells over 200 characters. Lower them when a
# room improves. The goal of each room is PROSE_GOAL and no long line or cell. Rooms without a row
# meet the goal.
PROSE_GOAL = (18.0, 2.6)
PROSE_MAX = {
    "reader": (3.0, 0.3, 0, 0, 0),
    "scripts": (3.0, 0.3, 0, 0, 0),
    "tests": (3.0, 0.3, 1, 0, 0),
}
KEYWORDS = {"if", "for", "while", "switch", "return", "sizeof", "defined", "do", "else"}


class Function:
    def __init__(self, path, line, size, name, static):
        self.path, self.line, self.size, self.name, self.static = path, line, size, name, static
        self.calls, self.mentions = 0, 0

    def __str__(self):
        return f"{self.path}:{self.line}: {self.name} {self.size}"


class Tree:
    def __init__(self, root):
        self.root = root
        names = subprocess.run(["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard"],
                               capture_output=True, text=True, check=True).stdout.split("\n")
        self.files = sorted(n for n in names if n and os.path.isfile(os.path.join(root, n)))
        self.text = {n: self.read(n) for n in self.files
                     if n.startswith(FOLDERS) and n.endswith((".c", ".h", ".cpp", ".def"))}
        self.functions = [f for n in self.text if n.endswith((".c", ".cpp")) for f in self.functions_of(n)]

    def read(self, name):
        with open(os.path.join(self.root, name), encoding="utf-8", errors="replace") as file:
            return file.read()

    def functions_of(self, path):
        """Definitions by layout: the signature begins in column 0, the body is between braces in column 0."""
        lines = self.text[path].split("\n")
        bare = without_comments(self.text[path])
        found, head = [], None
        for number, line in enumerate(bare.split("\n")):
            if line.startswith("{") and head is not None:
                signature = " ".join(bare.split("\n")[head:number])
                name = re.search(r"([A-Za-z_]\w*)\s*\(", re.sub(r"__attribute__\s*\(\(.*?\)\)", "", signature))
                start = head if name and name.group(1) not in KEYWORDS else None
                if start is not None:
                    end = next(i for i in range(number, len(lines)) if lines[i].startswith("}"))
                    found.append(Function(path, start + 1, end - start + 1, name.group(1), "static" in signature))
                head = None
            elif re.match(r"[A-Za-z_]", line):
                if head is None or lines[number - 1].rstrip().endswith((";", "}", ")")) and "(" in line:
                    head = number
                if line.rstrip().endswith((";", ",", ":", "=")) and not line.rstrip().endswith(","):
                    head = None
            elif not line.strip() or line.startswith(("#", "}")):
                head = None
        for function in found:
            if function.static:
                uses = [m.end() for m in re.finditer(rf"\b{function.name}\b", bare)]
                function.mentions = len(uses)
                function.calls = sum(bare[u:u + 1] == "(" for u in uses)
        prototypes = Counter(re.findall(r"^static [^;{}=]*?\b(\w+)\([^;{}]*\)[^;{}]*;", bare, re.M))
        for function in found:
            function.calls -= 1 + prototypes[function.name]
            function.mentions -= 1 + prototypes[function.name]
        return found


def without_comments(text):
    """TEXT with comments and string contents blanked, its lines kept."""
    def blank(match):
        piece = match.group(0)
        if piece.startswith(("/*", "//")):
            return re.sub(r"[^\n]", " ", piece)
        return piece[0] + "_" * (len(piece) - 2) + piece[-1]
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.S)


def sentences(tree):
    """(place, sentence) of every comment in the product code."""
    for path, text in tree.text.items():
        for match in re.finditer(r"/\*(.*?)\*/", text, re.S):
            line = text.count("\n", 0, match.start()) + 1
            body = re.sub(r"\n\s*\*? ?", " ", match.group(1)).strip(" *-\n")
            for sentence in re.split(r"(?<=[.:;?!])\s+", body):
                if sentence:
                    yield f"{path}:{line}", sentence


def room_of(path):
    """The top-level directory of PATH, "root" for the files beside them."""
    return path.split("/")[0] if "/" in path else "root"


def comment_texts(path, text):
    """Each comment of a file without its markers, on one line."""
    if path.endswith(SCRIPTS):
        text = re.sub(r"^# SPDX.*\n", "", text, flags=re.M)
        pattern, marker = SCRIPT_COMMENT, r"^\s*#+|\"\"\""
    else:
        pattern, marker = C_COMMENT, r"^\s*(?:/\*+|\*/|\*|//+)|\*/"
    for match in pattern.finditer(text):
        yield " ".join(re.sub(marker, " ", match.group(0), flags=re.M).split())


def prose_sentences(path, text):
    """Comment sentences of at least four words, the licence left out."""
    for comment in comment_texts(path, text):
        if LICENCE.search(comment):
            continue
        for sentence in re.split(r"(?<=[.;:!?])\s", comment):
            if len(re.findall(r"[A-Za-z]{2,}", sentence)) >= 4:
                yield sentence.strip()


def long_cells(text):
    """Line numbers of table cells over CELL_MAX characters."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("|"):
            for cell in re.split(r"(?<!\\)\|", line):
                if len(cell.strip()) > CELL_MAX:
                    yield number


class Prose:
    """The measurements of a room's comments and lines; each list holds places."""

    def __init__(self):
        self.sentences = 0
        self.lists = {"clause": [], "two": [], "long C": [], "long md": [], "cells": []}

    def share(self, name):
        return 100 * len(self.lists[name]) / self.sentences if self.sentences else 0.0

    def figures(self):
        """The figures in the order of PROSE_MAX."""
        counts = [len(self.lists[name]) for name in ("long C", "long md", "cells")]
        return [self.share("clause"), self.share("two"), *counts]

    def measure(self, path, text):
        markdown = path.endswith(".md")
        for number, line in enumerate(text.split("\n"), 1):
            table = markdown and line.startswith("|")
            if len(line.expandtabs(8)) > COLUMNS and not table and not path.endswith(SCRIPTS):
                self.lists["long md" if markdown else "long C"].append(f"{path}:{number}")
        if markdown:
            self.lists["cells"] += [f"{path}:{number}" for number in long_cells(text)]
        elif not path.endswith(".def"):
            for sentence in prose_sentences(path, text):
                clauses = len(CLAUSE.findall(sentence))
                self.sentences += 1
                self.lists["clause"] += [f"{path}: {sentence}"] * (clauses >= 1)
                self.lists["two"] += [f"{path}: {sentence}"] * (clauses >= 2)


def prose(tree):
    """Room -> Prose; "product" is the sum of the rooms of product code."""
    rooms = defaultdict(Prose)
    for path in tree.files:
        if path.endswith((*C_FILES, *SCRIPTS, ".def", ".md")):
            text = tree.text.get(path) or tree.read(path)
            rooms[room_of(path)].measure(path, text)
            if path.startswith(FOLDERS):
                rooms["product"].measure(path, text)
    return rooms


def prose_table(rooms):
    print(f"{'prose':<12}{'sentences':>10}{'clause %':>10}{'two %':>7}"
          f"{'long C':>8}{'long md':>9}{'cells':>7}")
    others = sorted(set(rooms) - set(FOLDERS) - {"product"})
    for room in [*FOLDERS, "product", *others]:
        clause, two, code, markdown, cells = rooms[room].figures()
        print(f"{room:<12}{rooms[room].sentences:>10}{clause:>10.1f}{two:>7.1f}"
              f"{code:>8}{markdown:>9}{cells:>7}")


def prose_check(rooms):
    names = ("% of sentences with a clause", "% of sentences with two clauses",
             f"lines of C over {COLUMNS} columns", f"lines of Markdown over {COLUMNS} columns",
             f"table cells over {CELL_MAX} characters")
    for room in sorted(set(rooms) - {"product"}):
        limits = PROSE_MAX.get(room, (*PROSE_GOAL, 0, 0, 0))
        for name, figure, limit in zip(names, rooms[room].figures(), limits):
            if round(figure, 1) > limit:
                yield f"{room}: {round(figure, 1):g} {name}, {limit:g} at most"


def modules(tree):
    """Module of each file: its own header, else the header of its directory in its very first include."""
    module = {}
    for path in tree.text:
        stem = re.sub(r"\.(c|cpp|h|def)$", "", path)
        if path.endswith(".h") or stem + ".h" in tree.text:
            module[path] = stem
        else:
            first = re.search(r'^#include (?:"([^"]+)\.h")?', tree.text[path], re.M)
            own = first and first.group(1) or ""
            module[path] = own if os.path.dirname(own) == os.path.dirname(path) else stem
    return {path: group(name, set(module.values())) for path, name in module.items()}


def group(name, names):
    """index_read and index_layout belong to the group of index, their neighbour in the same directory."""
    directory, words = os.path.dirname(name), os.path.basename(name).split("_")
    for count in range(1, len(words)):
        shorter = f"{directory}/{'_'.join(words[:count])}"
        if shorter in names:
            return shorter
    return name


def circles(tree):
    """Sets of modules in a round of includes."""
    module = modules(tree)
    edges = defaultdict(set)
    for path, text in tree.text.items():
        for header in re.findall(r'^#include "([^"]+)"', text, re.M):
            target = module.get(header)
            if target and target != module[path]:
                edges[module[path]].add(target)
    index, low, stack, found, counter = {}, {}, [], [], [0]

    def visit(node):
        index[node] = low[node] = counter[0]
        counter[0] += 1
        stack.append(node)
        for target in edges[node]:
            if target not in index:
                visit(target)
            if target in stack:
                low[node] = min(low[node], low[target])
        if low[node] == index[node]:
            part = []
            while True:
                part.append(stack.pop())
                if part[-1] == node:
                    break
            if len(part) > 1 and " ".join(sorted(part)) not in GROUPS:
                found.append(" ".join(sorted(part)))

    sys.setrecursionlimit(10000)
    for node in sorted(edges):
        if node not in index:
            visit(node)
    return sorted(found)


def duplicated_structs(tree):
    places = defaultdict(list)
    for path, text in tree.text.items():
        for name in re.findall(r"^(?:static )?struct (\w+) \{", without_comments(text), re.M):
            places[name].append(path)
    return [f"struct {n}: {' '.join(p)}" for n, p in sorted(places.items()) if len(p) > 1]


def code_lines(tree, pattern, skip=()):
    for path, text in tree.text.items():
        if path in skip:
            continue
        for number, line in enumerate(without_comments(text).split("\n"), 1):
            if re.search(pattern, line):
                yield f"{path}:{number}: {line.strip()}"


def figures(tree):
    """name -> list of places, in the order of the table."""
    comments = list(sentences(tree))
    result = {
        "files over 1,000 lines": [f"{p} {t.count(chr(10))}" for p, t in tree.text.items() if t.count("\n") > FILE_MAX],
        "functions over 80 lines": [str(f) for f in tree.functions if f.size > FUNCTION_MAX],
        "headers _parts, _inside": [p for p in tree.text if re.search(r"_(parts|inside)\.h$", p)],
        "circles of includes": circles(tree),
        "statics with one caller": [str(f) for f in tree.functions if f.static and f.calls == f.mentions == 1],
        "... of at most 10 lines": [str(f) for f in tree.functions
                                    if f.static and f.calls == f.mentions == 1 and f.size <= SHORT_HELPER],
        "statics without the module's prefix": [
            str(f) for f in tree.functions if f.static and f.name != "main" and not prefixed(f)],
        "static names used in several files": shared_names(tree),
        "duplicated struct names": duplicated_structs(tree),
        "comment sentences against rule 1": [f"{p}: {s}" for p, s in comments
                                             if DECODED.match(s) and not s.endswith("?")],
    }
    for word, better in INSTEAD.items():
        result[f"comments with '{word}' ({better})"] = [
            f"{p}: {s}" for p, s in comments if re.search(rf"\b{word}\b", s, re.I)]
    result["bare error returns"] = list(code_lines(
        tree, r"return (-E[A-Z0-9]+|ERR_[A-Z_]+);|\? -E[A-Z0-9]+ :|: -E[A-Z0-9]+;"))
    result["err_clear()"] = list(code_lines(tree, r"\berr_clear\(", ("common/err.c", "common/err.h")))
    result["realloc sites"] = list(code_lines(tree, r"\brealloc(array)?\("))
    return result


def prefixed(function):
    """Whether a static's name begins with a word of its file's or directory's name, or says a common thing."""
    stem = re.sub(r"\.(c|cpp)$", "", os.path.basename(function.path))
    words = set(stem.split("_")) | {w.rstrip("s") for w in stem.split("_")} | {os.path.basename(os.path.dirname(function.path))}
    return any(function.name.startswith(w + "_") or function.name == w for w in words if w)


def shared_names(tree):
    places = defaultdict(list)
    for function in tree.functions:
        if function.static and function.name != "main":
            places[function.name].append(function.path)
    return [f"{n}: {' '.join(p)}" for n, p in sorted(places.items()) if len(p) > 1]


def quantile(sizes, part):
    return sorted(sizes)[min(len(sizes) - 1, int(len(sizes) * part))] if sizes else 0


def table(tree):
    print(f"{'directory':<12}{'files':>7}{'lines':>8}{'functions':>11}{'p50':>5}{'p90':>5}{'max':>5}")
    for folder in FOLDERS + ("",):
        texts = {p: t for p, t in tree.text.items() if p.startswith(folder + "/" if folder else "")}
        sizes = [f.size for f in tree.functions if f.path in texts]
        print(f"{folder or 'product':<12}{len(texts):>7}{sum(t.count(chr(10)) for t in texts.values()):>8}"
              f"{len(sizes):>11}{quantile(sizes, .5):>5}{quantile(sizes, .9):>5}{max(sizes, default=0):>5}")
    print()
    for name, places in figures(tree).items():
        print(f"{name:<48}{len(places):>6}")
    print()
    prose_table(prose(tree))


def check(tree):
    found = figures(tree)
    bad = []
    for name in ("files over 1,000 lines", "functions over 80 lines", "headers _parts, _inside", "circles of includes",
                 "duplicated struct names", "comment sentences against rule 1"):
        bad += [f"{place}: {name}" for place in found[name]]
    ninety = quantile([f.size for f in tree.functions], .9)
    if ninety > LONG_MAX:
        bad.append(f"functions: one in ten has more than {ninety} lines, {LONG_MAX} at most")
    bad += prose_check(prose(tree))
    print("\n".join(bad), end="\n" if bad else "")
    return 1 if bad else 0


def main():
    words = sys.argv[1:]
    home = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    if words[:1] == ["--check"]:
        return check(Tree(words[1] if len(words) > 1 else home))
    if words[:1] == ["--list"] and len(words) > 1:
        tree = Tree(words[2] if len(words) > 2 else home)
        name, slash, room = words[1].partition("/")
        if slash:
            lists = prose(tree)[room].lists
            print("\n".join(place for key in lists if key.startswith(name) for place in lists[key]))
            return 0
        found = figures(tree)
        names = [n for n in found if words[1] in n]
        for name in names:
            print("\n".join(found[name]))
        return 0 if names else 2
    table(Tree(words[0] if words else home))
    return 0


if __name__ == "__main__":
    sys.exit(main())
