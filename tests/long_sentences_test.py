#!/usr/bin/env python3
"""tests/long_sentences.py finds what it should: long sentences planted in pages, and nothing in what is no sentence."""
import os
import sys
import tempfile

sys.dont_write_bytecode = True
from long_sentences import long_sentences

MANY = " ".join(["word"] * 26)
MORE = " ".join(["word"] * 39)
CLEAN = f"""# {MORE}

Of Korthikanti et al. the {' '.join(['word'] * 33)}. All shards are equal. {' '.join(['word'] * 38)}.
A span `{MORE}` and a [link](https://example.org/{MORE.replace(' ', '/')}) are short.

| {MORE} |
|---|

```sh
{MORE}
```

    {MORE}

- {' '.join(['word'] * 38)}
- {' '.join(['word'] * 38)};
1. {' '.join(['word'] * 37)} = + - 1
"""
PAGES = {
    "README.md": CLEAN,
    "CONTRIBUTING.md": f"Short.\n\n{' '.join(['word'] * 20)}\n{' '.join(['word'] * 19)}. Short.\n",
    "docs/a.md": f"- one\n- {MORE}\n",
    "docs/time.md": f"Short. ({MANY}.) Short.\n",
    "docs/memory.md": f"{MORE}.\n",
    "docs/measurements/b.md": f"{MANY}.\n\nA [text of a link {MORE}](b.md).\n",
}
FOUND = [("CONTRIBUTING.md", 3, 39, 38), ("docs/a.md", 2, 39, 38), ("docs/time.md", 1, 26, 25), ("docs/measurements/b.md", 3, 44, 38)]


def main():
    with tempfile.TemporaryDirectory() as root:
        os.makedirs(os.path.join(root, "docs", "measurements"))
        for page, text in PAGES.items():
            with open(os.path.join(root, page), "w", encoding="utf-8") as file:
                file.write(text)
        found = [place[:4] for place in long_sentences(root)]
    assert found == FOUND, found


if __name__ == "__main__":
    main()
