#!/usr/bin/env python3
"""Names that are local to a source stand in one source of a folder: sources of a folder are compiled in groups.

    tests/local_names.py ROOT

Prints each name of an unnamed namespace, or after `static`, that several sources of a folder have, and exits with 1.
Relies on the formatting that .clang-format gives: such declarations begin in the first column.
"""
import collections
import os
import re
import sys

ROOMS = ("planner", "simulator", "answers", "executor", "gui", "cli", "tests")
# One program a source there.
APART = ("tests/bench", "tests/fuzz")

TEMPLATE = r"^(?:template\s*<.*>\s*)?"
STORAGE = r"(?:(?:static|inline|constexpr|const|thread_local)\s+)"
TYPE = re.compile(TEMPLATE + r"(?:struct|class|enum class|enum|union|concept) (\w+)\b(?!;)")
ALIAS = re.compile(r"^using (\w+) =")
VALUE = re.compile(r"^" + STORAGE + r"+[\w:<>,&*\s]*?[\s&*>](\w+)(?:\[[^\]]*\])?\s*(?:=|\{|;)")
FUNCTION = re.compile(r"^[\w:<>,&*\s]*?[\s&*>](\w+)\(")
NO_DECLARATION = re.compile(r"^(?:namespace|public|private|protected|return|case|using namespace|TEST|INSTANTIATE|typedef)")


def local_names(lines):
    inside = False
    for line in lines:
        if line.startswith("namespace {"):
            inside = True
        elif line.startswith("}  // namespace") and line.strip() == "}  // namespace":
            inside = False
        elif (inside or line.startswith("static ")) and line[:1].isalpha() and not NO_DECLARATION.match(line):
            found = TYPE.match(line) or ALIAS.match(line) or VALUE.match(line) or FUNCTION.match(line)
            if found:
                yield found.group(1)


def shared_names(root):
    """(folder, name, sources) of each name that several sources of a folder have."""
    for room in ROOMS:
        for folder, _, files in sorted(os.walk(os.path.join(root, room))):
            where = os.path.relpath(folder, root)
            if where in APART:
                continue
            sources = collections.defaultdict(set)
            for file in files:
                if file.endswith(".cc"):
                    with open(os.path.join(folder, file), encoding="utf-8") as lines:
                        for name in local_names(lines):
                            sources[name].add(file)
            for name, having in sorted(sources.items()):
                if len(having) > 1:
                    yield where, name, sorted(having)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    found = list(shared_names(sys.argv[1]))
    for folder, name, sources in found:
        print(f"{folder}: {name} is local to {', '.join(sources)}: give each a name of its own, or write it once")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
