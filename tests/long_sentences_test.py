#!/usr/bin/env python3
"""tests/long_sentences.py finds what it should: long sentences planted in pages, and nothing in what is no sentence."""
import os
import sys
import tempfile

sys.dont_write_bytecode = True
from long_sentences import long_sentences

MOST = " ".join(["word"] * 25)
MORE = " ".join(["word"] * 26)
CLEAN = f"""# {MORE}

Of Korthikanti et al. the {' '.join(['word'] * 20)}. All shards are equal. {MOST}.
A span `{MORE}` and a [link](https://example.org/{MORE.replace(' ', '/')}) are short.

| {MORE} |
|---|

```sh
{MORE}
```

    {MORE}

- {MOST}
- {MOST};
1. {' '.join(['word'] * 24)} = + - 1
"""
PAGES = {
    "README.md": CLEAN,
    "CONTRIBUTING.md": f"Short.\n\n{' '.join(['word'] * 14)}\n{' '.join(['word'] * 12)}. Short.\n",
    "tests/README.md": f"{MORE}.\n",
    "docs/a.md": f"- one\n- {MORE}\n",
    "docs/time.md": f"Short. ({MORE}.) Short.\n",
    "docs/measurements/b.md": f"{MOST}.\n\nA [text of a link {MOST}](b.md).\n",
}
FOUND = [
    ("CONTRIBUTING.md", 3, 26), ("tests/README.md", 1, 26), ("docs/a.md", 2, 26), ("docs/time.md", 1, 26),
    ("docs/measurements/b.md", 3, 30),
]


def main():
    with tempfile.TemporaryDirectory() as root:
        os.makedirs(os.path.join(root, "docs", "measurements"))
        os.makedirs(os.path.join(root, "tests"))
        for page, text in PAGES.items():
            with open(os.path.join(root, page), "w", encoding="utf-8") as file:
                file.write(text)
        found = [place[:3] for place in long_sentences(root)]
    assert found == FOUND, found


if __name__ == "__main__":
    main()
