#!/usr/bin/env python3
"""tests/page_links.py finds what it should: planted links that lead nowhere and files that are not there, and no others."""
import os
import sys
import tempfile

sys.dont_write_bytecode = True
from page_links import broken

FILES = {
    "README.md": "# A title\n\n[a](docs/a.md), [b](docs/a.md#two-words-cp-1) and [c](#a-title), `planner/a.h`.\n",
    "CONTRIBUTING.md": "[gone](docs/gone.md)\n\nand [no such heading](docs/a.md#three-words).\n",
    "docs/a.md": "# Two words, `cp` 1\n\n`planner/NAME.cc`, `planner/*.h`, `planner/a` and [up](../README.md).\n\n```\n[code](gone.md)\n```\n",
    "docs/b.md": "`planner/gone.cc`,\n`planner/*.py` and `gone/a.cc`; [far](https://example.org/gone).\n",
    "planner/a.h": "",
}
FOUND = [
    ("CONTRIBUTING.md", 1, "docs/gone.md"), ("CONTRIBUTING.md", 3, "docs/a.md#three-words"), ("docs/b.md", 1, "planner/gone.cc"),
    ("docs/b.md", 2, "planner/*.py"),
]


def main():
    with tempfile.TemporaryDirectory() as root:
        for name, text in FILES.items():
            os.makedirs(os.path.dirname(os.path.join(root, name)) or root, exist_ok=True)
            with open(os.path.join(root, name), "w", encoding="utf-8") as file:
                file.write(text)
        found = list(broken(root))
    assert found == FOUND, found


if __name__ == "__main__":
    main()
