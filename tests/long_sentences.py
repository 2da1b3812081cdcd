#!/usr/bin/env python3
"""No sentence of the pages is too long to be understood when it is read aloud once.

    tests/long_sentences.py ROOT

Prints each sentence that has more than 25 words, and exits with 1. Read are README.md, CONTRIBUTING.md, docs/, and the
READMEs of tests/, tests/bench/ and examples/.
A word has a letter or a digit. What stands in backquotes is one word, and of a link only its text counts. Tables, code and
headings have no sentences. An item of a list ends its sentence.
"""
import os
import re
import sys

MOST = 25

ITEM = re.compile(r"(?:[-*]|\d+\.) ")
END = re.compile(r"(?<!e\.g\.)(?<!i\.e\.)(?<! al\.)(?:(?<=[.!?])|(?<=[.!?][)\"*]))\s+")


def paragraphs(lines):
    """(line, text) of each paragraph and each item of a list."""
    text, first, code = [], 0, False
    for number, line in enumerate([*lines, ""], 1):
        stripped = line.strip()
        fence = line.startswith("```")
        apart = fence or code or not stripped or line.startswith(("#", "|")) or (line.startswith("    ") and not text)
        item = None if apart else ITEM.match(stripped)
        if text and (apart or item):
            yield first, " ".join(text)
            text = []
        code ^= fence
        if not apart:
            first = first if text else number
            text.append(stripped[item.end():] if item else stripped)


def sentences(lines):
    """(line of its paragraph, number of words, text) of each sentence."""
    for line, text in paragraphs(lines):
        text = re.sub(r"`[^`]*`", "x", text)
        text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
        for sentence in END.split(text):
            yield line, sum(bool(re.search(r"\w", word)) for word in sentence.split()), sentence


def pages(root):
    tops = ("README.md", "CONTRIBUTING.md", "tests/README.md", "tests/bench/README.md", "examples/README.md")
    yield from (page for page in tops if os.path.exists(os.path.join(root, page)))
    for folder, _, files in sorted(os.walk(os.path.join(root, "docs"))):
        yield from (os.path.relpath(os.path.join(folder, file), root) for file in sorted(files) if file.endswith(".md"))


def long_sentences(root):
    """(page, line, words, sentence) of each that is too long."""
    for page in pages(root):
        with open(os.path.join(root, page), encoding="utf-8") as file:
            for line, words, sentence in sentences(file.read().split("\n")):
                if words > MOST:
                    yield page, line, words, sentence


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    found = list(long_sentences(sys.argv[1]))
    for page, line, words, sentence in found:
        print(f"{page}:{line}: {words} words in a sentence, at most {MOST}: make it two, a list or a table\n    {sentence}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
