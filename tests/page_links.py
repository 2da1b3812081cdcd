#!/usr/bin/env python3
"""Links of the pages lead somewhere, and files that they name are in this tree.

    tests/page_links.py ROOT

Prints each link whose file or heading is missing, and each path in backquotes that is not there, and exits with 1. Paths
are those that begin with a folder of the tree. A word in capitals stands for a name, as in `executor/kernels/NAME.cu`.
"""
import fnmatch
import os
import re
import sys

FOLDERS = ("answers", "cli", "cmake", "configs", "docs", "examples", "executor", "gui", "planner", "scripts", "simulator", "tests")
LINK = re.compile(r"\]\(([^)\s]+)\)")
PATH = re.compile(rf"(?:{'|'.join(FOLDERS)})/[\w./*-]+")

CAPITALS = re.compile("[A-Z]{3,}")


def blanked(found):
    """As many lines, and nothing on them."""
    return "\n" * found.group().count("\n")


def heading_name(heading):
    """What a link calls a heading, as GitHub names it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.lstrip("#").strip()).lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return re.sub(r"^```.*?^```", blanked, file.read(), flags=re.DOTALL | re.MULTILINE)


def pages(root):
    yield from (name for name in sorted(os.listdir(root)) if name.endswith(".md"))
    for top in ("docs", "tests", "examples"):
        for folder, _, files in sorted(os.walk(os.path.join(root, top))):
            yield from (os.path.relpath(os.path.join(folder, file), root) for file in sorted(files) if file.endswith(".md"))


def is_there(root, path):
    if "*" not in path:
        return os.path.exists(os.path.join(root, path)) or os.path.exists(os.path.join(root, path + ".h"))
    folder, name = os.path.split(path)
    return os.path.isdir(os.path.join(root, folder)) and bool(fnmatch.filter(os.listdir(os.path.join(root, folder)), name))


def broken(root):
    """(page, line, what is not there) of each."""
    for page in pages(root):
        text = text_of(os.path.join(root, page))
        found = []
        for link in LINK.finditer(text):
            target, _, heading = link.group(1).partition("#")
            if re.match(r"\w+:", target):
                continue
            path = os.path.normpath(os.path.join(os.path.dirname(page), target)) if target else page
            if not os.path.exists(os.path.join(root, path)):
                found.append((link.start(), link.group(1)))
            elif heading and heading not in map(heading_name, re.findall(r"^#+ .*", text_of(os.path.join(root, path)), re.M)):
                found.append((link.start(), link.group(1)))
        for code in re.finditer(r"`([^`\n]+)`", text):
            path = code.group(1).rstrip("/")
            if PATH.fullmatch(path) and not CAPITALS.search(path.replace("README", "")) and not is_there(root, path):
                found.append((code.start(), path))
        yield from ((page, text.count("\n", 0, at) + 1, what) for at, what in sorted(found))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    found = list(broken(sys.argv[1]))
    for page, line, what in found:
        print(f"{page}:{line}: {what}: not in this tree")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
