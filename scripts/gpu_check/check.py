"""What the parts of scripts/gpu_check.sh share: a part's file of results, cases, commands with a time limit."""
import argparse
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

SCHEMA = "shardwise.gpu_check/1"
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class Wrong(Exception):
    """A case whose result is not as it must be: its message says what is instead."""


class Lacking(Exception):
    """A case that cannot run here: its message says what is missing."""


class DoesNotFit(Exception):
    """A case that needs more memory than this GPU has: nothing is wrong, and nothing will change it."""


class OutOfTime(Exception):
    """The part's time is over: the case runs in the next call."""


def fails_with(why):
    """A case of what could not even be listed."""
    raise why


def write_json(path, value):
    """Writes the whole file or leaves the one that is there."""
    partial = path.with_name(path.name + ".partial")
    with open(partial, "w") as file:
        json.dump(value, file, indent=1)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)


def read_json(path):
    """An object of a file; ends with exit code 2 where it has none."""
    try:
        with open(path) as file:
            value = json.load(file)
    except ValueError as broken:
        value = broken
    if not isinstance(value, dict):
        sys.stderr.write(f"gpu_check.sh: {path}: {value if isinstance(value, ValueError) else 'not an object'}; remove it\n")
        sys.exit(2)
    return value


def digest_of(paths):
    """Of files' names and bytes: another program has another."""
    every = hashlib.sha256()
    for path in sorted(paths):
        every.update(path.name.encode())
        with open(path, "rb") as file:
            while block := file.read(1 << 22):
                every.update(block)
    return every.hexdigest()[:16]


def gpu_library(binaries):
    """Where shardwise-run looks for its library of GPUs: the file, or None."""
    places = (binaries / "libshardwise_cuda.so", binaries.parent / "lib" / "libshardwise_cuda.so")
    return next((place for place in places if place.exists()), None)


PROGRAMS = ("shardwise", "shardwise-run", "gpu_ceilings", "gpu_kernels_test", "gpu_compute_test")


def build_of(binaries):
    """Digest of the programs that the parts run."""
    found = [binaries / name for name in PROGRAMS if (binaries / name).exists()]
    library = gpu_library(binaries)
    return digest_of(found + ([library] if library else []))


ALL = "all.json"


def pack(out):
    """Writes OUT/all.json: every JSON file of OUT in one, from which unpack() makes the folder again."""
    files = {path.name: read_json(path) for path in sorted(out.glob("*.json")) if path.name != ALL}
    write_json(out / ALL, {"schema": "shardwise.gpu_check_all/1", "files": files})


def unpack(out):
    """Of the files in OUT/all.json writes those that are missing."""
    if not (out / ALL).exists():
        return
    for name, value in read_json(out / ALL)["files"].items():
        if pathlib.PurePath(name).name == name and not (out / name).exists():
            write_json(out / name, value)


def tail(text, lines=12):
    return "\n".join(text.strip().splitlines()[-lines:])


class Done:
    """A command that ended: exit code, output, what it wrote to standard error, seconds."""

    def __init__(self, words, code, out, err, seconds, timed_out):
        self.words, self.code, self.out, self.err = words, code, out, err
        self.seconds, self.timed_out = seconds, timed_out

    def why(self):
        said = tail(self.err or self.out, 4)
        if self.timed_out:
            return f"did not end within {self.seconds:.0f} s: {said}"
        return f"exit code {self.code}: {said}"


class Running:
    """A command in a process group of its own, so that nothing of it outlives the part."""

    all = []

    def __init__(self, words, env=None):
        self.words = [str(word) for word in words]
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            self.words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            errors="replace", cwd=ROOT, start_new_session=True, env={**os.environ, **(env or {})})
        Running.all.append(self)

    def kill(self, number=signal.SIGKILL):
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass

    def wait(self, seconds):
        timed_out = False
        try:
            out, err = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            timed_out = True
            self.kill()
            out, err = self.process.communicate()
        self.kill()  # what it left running
        Running.all.remove(self)
        return Done(self.words, self.process.returncode, out, err, time.monotonic() - self.began, timed_out)


class Part:
    """One part: its cases, each a row of OUT/NAME.json that is there as soon as the case has ended.

    A case of an earlier call is not run again, unless time cut it, something was missing, or the row is of another build.
    State: "done" when every planned case has a row, else "cut".
    """

    def __init__(self, name, words=None):
        parser = argparse.ArgumentParser(description=f"Part {name} of scripts/gpu_check.sh")
        parser.add_argument("--out", type=pathlib.Path, required=True)
        parser.add_argument("--binaries", type=pathlib.Path, required=True)
        parser.add_argument("--gpu", type=int, default=0)
        parser.add_argument("--pytorch", default="python3")
        parser.add_argument("--seconds", type=float, default=3600)
        parser.add_argument("--again", action="store_true")
        parser.add_argument("--wrong-again", action="store_true")
        parser.add_argument("--small", action="store_true")
        self.options = parser.parse_args(words)
        self.name = name
        self.small = self.options.small
        self.path = self.options.out / f"{name}.json"
        self.work = self.options.out / name
        self.work.mkdir(parents=True, exist_ok=True)
        self.deadline = time.monotonic() + self.options.seconds
        machine = self.options.out / "machine.json"
        self.machine = read_json(machine) if machine.exists() else {}
        self.commit, self.build = (self.machine.get(key) for key in ("commit", "build"))
        self.builds = {}  # of cases whose rows are another program's
        self.cases, self.planned = {}, []
        if self.path.exists() and not self.options.again:
            kept = read_json(self.path)
            if kept.get("schema") != SCHEMA:
                sys.exit(f"{self.path}: schema {kept.get('schema')}, not {SCHEMA}")
            if kept.get("small") == self.small:
                self.cases = {key: row for key, row in kept["cases"].items() if self.stays(row)}
        signal.signal(signal.SIGTERM, self.end_now)
        signal.signal(signal.SIGINT, self.end_now)

    def stays(self, row):
        states = ("right", "known") if self.options.wrong_again else ("right", "wrong", "known")
        return row["state"] in states and not row.get("again")

    def gpu_name(self):
        return self.machine.get("gpu", {}).get("name", "")

    def end_now(self, *_):
        for each in list(Running.all):
            each.kill()
        self.write("cut")
        pack(self.options.out)
        os._exit(124)

    def left(self):
        return self.deadline - time.monotonic()

    def program(self, name):
        path = self.options.binaries / name
        if not path.exists():
            raise Lacking(f"{self.options.binaries} has no {name}")
        return path

    def start(self, *words, env=None):
        return Running(words, env)

    def run(self, *words, limit=600, env=None):
        """The command when it has ended. Raises OutOfTime where the part's time ends it."""
        left = self.left()
        if left < 1:
            raise OutOfTime()
        done = Running(words, env).wait(min(limit, left))
        if done.timed_out and left < limit:
            raise OutOfTime()
        return done

    def must(self, *words, limit=600, env=None):
        done = self.run(*words, limit=limit, env=env)
        if done.timed_out or done.code != 0:
            raise Wrong(f"{os.path.basename(done.words[0])}: {done.why()}")
        return done

    def plan(self, names, builds=None):
        """All cases, in the order in which they run. `builds`: of those that are no program of Shardwise's, by name."""
        self.planned, self.builds = list(names), builds or {}
        self.cases = {name: row for name, row in self.cases.items() if row.get("build") == self.build_of(name)}
        self.write("running")

    def build_of(self, name):
        return self.builds.get(name, self.build)

    def case(self, name, function, *arguments):
        """Runs a case once. `function` gives its row: the figures. {"ok": False} makes it wrong, {"ok": None} neither.

        {"again": True}: it counts for this call, and runs again in the next.
        """
        if name not in self.planned:
            self.planned.append(name)
        if name in self.cases:
            return self.cases[name]
        began = time.monotonic()
        row = {}
        try:
            if self.left() < 1:
                raise OutOfTime()
            row = function(*arguments) or {}
            ok = row.pop("ok", True)
            row["state"] = "known" if ok is None else "right" if ok else "wrong"
        except Wrong as wrong:
            row = {"state": "wrong", "why": str(wrong)}
        except Lacking as lacking:
            row = {"state": "lacking", "why": str(lacking)}
        except DoesNotFit as why:
            row = {"state": "known", "fits": False, "why": f"does not fit: {why}"}
        except OutOfTime:
            return None
        except Exception as error:  # a case that breaks leaves the others their turn
            row = {"state": "wrong", "why": f"{type(error).__name__}: {error}"}
        row["seconds"] = round(time.monotonic() - began, 3)
        row["at"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        row["commit"], row["build"] = self.commit, self.build_of(name)
        self.cases[name] = row
        self.write("running")
        print(f"   {row['state']:8} {name}" + (f": {tail(row['why'], 1)}" if "why" in row else ""), flush=True)
        return row

    def write(self, state):
        left = [name for name in self.planned if name not in self.cases]
        write_json(self.path, {"schema": SCHEMA, "part": self.name, "state": state, "small": self.small, "left": left,
                               "cases": self.cases})

    def finish(self):
        done = all(name in self.cases for name in self.planned)
        self.write("done" if done else "cut")
        pack(self.options.out)
        states = [row["state"] for row in self.cases.values()]
        sys.exit(1 if "wrong" in states else 0 if done and "lacking" not in states else 3)
