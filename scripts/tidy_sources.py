#!/usr/bin/env python3
"""Runs clang-tidy over sources of build/tidy/compile_commands.json: what scripts/tidy.sh calls.

    scripts/tidy_sources.py --all | --since REV | FILE…

A source is clean for as long as these stay the same: clang-tidy's version, .clang-tidy, the compile command, and the
contents of the source and of every header of this tree that it includes. Names of clean contents are kept in
$XDG_CACHE_HOME/shardwise/tidy, relative to the root, so that one cache serves every checkout.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TIDY = os.environ.get("CLANG_TIDY", "clang-tidy-19")


def cache_folder():
    home = os.environ.get("XDG_CACHE_HOME", "")
    return (pathlib.Path(home) if os.path.isabs(home) else pathlib.Path.home() / ".cache") / "shardwise" / "tidy"


def digest(*texts):
    made = hashlib.sha256()
    for text in texts:
        made.update(text if isinstance(text, bytes) else text.encode())
        made.update(b"\0")
    return made.hexdigest()


def compiled():
    """The command and folder of each source, by its path relative to the root."""
    rows = json.loads((ROOT / "build/tidy/compile_commands.json").read_text())
    return {os.path.relpath(row["file"], ROOT): row for row in rows if row["file"].startswith(f"{ROOT}/")
            and not row["file"].startswith(f"{ROOT}/build/")}


def changed(since):
    """Files that differ from a revision, headers too, and new ones."""
    words = (["diff", "--name-only", "--diff-filter=d", since, "--"], ["ls-files", "--others", "--exclude-standard"])
    return {line for each in words
            for line in subprocess.run(["git", *each], cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()}


class Sources:
    def __init__(self, commands):
        self.commands = commands
        self.folder = cache_folder()
        self.folder.mkdir(parents=True, exist_ok=True)
        version = subprocess.run([TIDY, "--version"], check=True, capture_output=True, text=True).stdout
        self.rules = digest(version, (ROOT / ".clang-tidy").read_bytes())

    def command_of(self, source):
        return digest(self.rules, source, self.commands[source]["command"].replace(str(ROOT), ""))

    def headers_of(self, source):
        """Headers of this tree that the source includes, as the compiler finds them; kept until one of them changes."""
        kept = self.folder / f"{self.command_of(source)}.headers"
        try:
            known = json.loads(kept.read_text())
            if known["contents"] == self.contents(known["files"]):
                return known["files"]
        except (OSError, ValueError, KeyError):
            pass
        row = self.commands[source]
        words = shlex.split(row["command"])
        words[words.index("-o") + 1] = "-"  # the rule of make instead of the object
        asked = subprocess.run([*words, "-MM"], cwd=row["directory"], capture_output=True, text=True)
        if asked.returncode != 0:
            return None  # clang-tidy says why
        names = asked.stdout.partition(":")[2].replace("\\\n", " ").split()
        files = sorted({os.path.relpath(os.path.join(row["directory"], name), ROOT) for name in names})
        files = [file for file in files if not file.startswith("..")]
        write(kept, json.dumps({"files": files, "contents": self.contents(files)}))
        return files

    def contents(self, files):
        return digest(*(part for file in files for part in (file, (ROOT / file).read_bytes())))

    def clean_name(self, source):
        files = self.headers_of(source)
        return files and self.folder / f"{digest(self.command_of(source), self.contents(files))}.clean"

    def check(self, source):
        """"cached", "clean", or what clang-tidy says of it."""
        name = self.clean_name(source)
        if name and name.exists():
            return "cached"
        done = subprocess.run([TIDY, "-p", "build/tidy", "--quiet", "--warnings-as-errors=*", source], cwd=ROOT, capture_output=True, text=True)
        if done.returncode == 0:
            if name:
                write(name, "")
            return "clean"
        return done.stdout.strip() or done.stderr.strip() or f"{TIDY} ended with {done.returncode}"


def write(path, text):
    beside = path.with_suffix(f".{os.getpid()}.{id(path)}")
    beside.write_text(text)
    beside.replace(path)


def chosen(words, sources):
    if words == ["--all"]:
        return sorted(sources.commands)
    if words[0] == "--since":
        files = changed(words[1])
        own = {file for file in files if file in sources.commands}
        headers = {file for file in files if file.endswith(".h")}
        # A header is looked at through one source that includes it, its own where there is one.
        for header in sorted(headers):
            if header[:-2] + ".cc" not in own and header[:-2] + ".cc" in sources.commands:
                own.add(header[:-2] + ".cc")
        return sorted(own)
    files = [os.path.relpath(os.path.abspath(word), ROOT) for word in words]
    for word, file in zip(words, files):
        if file not in sources.commands:
            print(f"{word}: not a source that preset tidy compiles", file=sys.stderr)
            sys.exit(2)
    return files


def main(words):
    sources = Sources(compiled())
    asked = chosen(words, sources)
    counts, broken, began = {"cached": 0, "clean": 0}, [], time.monotonic()
    shown = began
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        waiting = {pool.submit(sources.check, source): source for source in asked}
        for done in concurrent.futures.as_completed(waiting):
            said = done.result()
            if said in counts:
                counts[said] += 1
            else:
                broken.append(waiting[done])
                print(said, flush=True)
            if time.monotonic() - shown > 20:
                shown = time.monotonic()
                print(f"{sum(counts.values()) + len(broken)} of {len(asked)} sources", file=sys.stderr, flush=True)
    print(f"clang-tidy: {counts['clean'] + counts['cached']} clean ({counts['cached']} known), {len(broken)} not, of {len(asked)} sources "
          f"in {time.monotonic() - began:.0f} s")
    for source in sorted(broken):
        print(f"    {source}")
    return 1 if broken else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
