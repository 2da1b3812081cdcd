#!/usr/bin/env python3
"""Words that the field has better ones for stay out of the pages and of the programs' texts.

    tests/retired_words.py ROOT

Prints each retired word with the one to write, and exits with 1. Read are README.md, CONTRIBUTING.md and docs/, without code
and what stands in backquotes, the literal texts of the programs' sources, and the comments of headers. Identifiers and
comments of sources are not read.
"""
import os
import re
import sys

ROOMS = ("planner", "simulator", "answers", "executor", "gui", "cli")
WORDS = {
    r"closed form": "step-time model, or the formula's name",
    r"guests?": "connection, or virtual machine",
    r"handed|hands? over": "given, sent, passed: who gives what to whom",
    r"holds? up": "delay, stop",
    r"lets? go": "free, release",
    r"leaves? alone|left alone": "not recomputed, not sharded: the verb that is meant",
    r"puts? off": "deferred",
    r"slots?": "task of a pipeline, buffer, layer index",
    r"whoever": "the noun that is meant",
}
# Not yet out of the comments of headers.
NOT_OF_HEADERS = re.compile(r"holds?\s+up|slots?|leaves?\s+alone", re.IGNORECASE)
# Others' words: slots of a hostfile, and what a script says of the words behind it.
OTHERS = {
    "planner/export/launch/deepspeed_ranks.cc": "slots?",
    "planner/export/export_folder.cc": "handed",
    "planner/export/launch/host_file.cc": "slots?",
}

RETIRED = {re.compile(rf"\b(?:{word})\b".replace(" ", r"\s+"), re.IGNORECASE): instead for word, instead in WORDS.items()}
TEXT = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def files(root, folders, ending):
    for top in folders:
        for folder, _, names in sorted(os.walk(os.path.join(root, top))):
            yield from (os.path.relpath(os.path.join(folder, name), root) for name in sorted(names) if name.endswith(ending))


def blanked(found):
    """As many lines, and nothing on them."""
    return "\n" * found.group().count("\n")


def words_of(text):
    """(line, word, instead) of each retired word of a text."""
    for word, instead in RETIRED.items():
        for found in word.finditer(text):
            yield text.count("\n", 0, found.start()) + 1, " ".join(found.group().split()), instead


def page_words(text):
    text = re.sub(r"^```.*?^```", blanked, text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"`[^`]*`", blanked, text)
    yield from sorted(words_of(re.sub(r"\]\([^)]*\)", "]", text)))


def source_words(text):
    for number, line in enumerate(text.split("\n"), 1):
        if not line.lstrip().startswith(("//", "#include")):
            for literal in TEXT.finditer(line):
                yield from ((number, word, instead) for _, word, instead in words_of(literal.group(1)))


def comment_words(text):
    for number, line in enumerate(text.split("\n"), 1):
        _, slashes, comment = line.partition("//")
        for _, word, instead in words_of(comment if slashes else ""):
            if not NOT_OF_HEADERS.fullmatch(word):
                yield number, word, instead


def retired_words(root):
    """(file, line, word, instead) of each."""
    pages = ["README.md", "CONTRIBUTING.md", *files(root, ["docs"], ".md")]
    sources, headers = files(root, ROOMS, (".cc", ".h", ".cu")), files(root, ROOMS, ".h")
    for reader, names in ((page_words, pages), (source_words, sources), (comment_words, headers)):
        for name in names:
            with open(os.path.join(root, name), encoding="utf-8") as file:
                for line, word, instead in reader(file.read()):
                    if not re.fullmatch(OTHERS.get(name, ""), word):
                        yield name, line, word, instead


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    found = list(retired_words(sys.argv[1]))
    for name, line, word, instead in found:
        print(f"{name}:{line}: '{word}' is retired: {instead}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
