#!/usr/bin/env python3
"""tests/retired_words.py finds what it should: retired words planted in pages and texts, and none in code and comments."""
import os
import sys
import tempfile

sys.dont_write_bytecode = True
from retired_words import retired_words

FILES = {
    "README.md": "A `slot`, a [link](slot.md) and\n```sh\nslots\n```\nslotted.\n",
    "CONTRIBUTING.md": "One.\nWhat lets\ngo of it.\n",
    "docs/a.md": "| Handed | `a\nb` |\nWhoever\n",
    "docs/memory.md": "whoever\n",
    "cli/a.cc": '#include "slot.h"\n// A "slot".\nint slot = say("no \\"slot\\" here", "put", off);\n',
    "cli/a.h": "// A slot.\nint slot = 1;  // handed\n",
    "planner/export/launch/host_file.cc": 'say("slots=");\nsay("whoever");\n',
}
FOUND = [
    ("CONTRIBUTING.md", 2, "lets go"),
    ("docs/a.md", 1, "Handed"),
    ("docs/a.md", 3, "Whoever"),
    ("docs/memory.md", 1, "whoever"),
    ("planner/export/launch/host_file.cc", 2, "whoever"),
    ("cli/a.cc", 3, "slot"),
    ("cli/a.h", 2, "handed"),
]


def main():
    with tempfile.TemporaryDirectory() as root:
        for name, text in FILES.items():
            os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
            with open(os.path.join(root, name), "w", encoding="utf-8") as file:
                file.write(text)
        found = [place[:3] for place in retired_words(root)]
    assert found == FOUND, found


if __name__ == "__main__":
    main()
