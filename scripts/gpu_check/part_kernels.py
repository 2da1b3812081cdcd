#!/usr/bin/env python3
"""Tests with the label gpu: kernels on the device against their CPU counterparts, a case a suite."""
import json
import os

import check


def programs(part):
    return sorted(path for path in part.options.binaries.glob("gpu_*_test") if os.access(path, os.X_OK))


def suites(part, program):
    """Names of the suites of a GoogleTest program, with their instantiations: "Kinds/CudaNorm"."""
    listed = part.must(program, "--gtest_list_tests", limit=60).out
    return [line.split(".")[0] for line in listed.splitlines() if line and not line.startswith((" ", "Running"))]


def run_suite(part, program, suite, words=(), limit=300):
    """Runs a suite, `words` before the program. Every test must pass; one that skips says why."""
    report = part.work / f"{program.name}-{suite.replace('/', '-')}.json"
    report.unlink(missing_ok=True)
    done = part.run(*words, program, f"--gtest_filter={suite}.*", f"--gtest_output=json:{report}", limit=limit)
    if not report.exists():
        raise check.Wrong(done.why())
    tests = [test for each in json.loads(report.read_text())["testsuites"] for test in each["testsuite"]]
    failed = {test["name"]: "\n".join(check.tail(each["failure"][-1000:], 4) for each in test["failures"][:3])
              for test in tests if test.get("failures")}
    skipped = [test["name"] for test in tests if test["result"] == "SKIPPED"]
    row = {"ok": done.code == 0 and not failed, "tests": len(tests), "failed": failed, "skipped": skipped}
    if not row["ok"]:
        row["why"] = next(iter(failed.values()), done.why())
    elif len(skipped) == len(tests):
        raise check.Lacking("every test was skipped: " + why_skipped(done.out))
    return row


def why_skipped(out):
    """The line behind the first "file:line: Skipped" of GoogleTest."""
    lines = out.splitlines()
    said = [lines[at + 1].strip() for at in range(len(lines) - 1) if lines[at].endswith(": Skipped")]
    return said[0] if said else check.tail(out, 1)


def work(part):
    """All programs and their suites."""
    found = programs(part)
    if not found:
        raise check.Lacking(f"{part.options.binaries} has no gpu_*_test")
    return [(program, suite) for program in found for suite in suites(part, program)]


def each(part, cases):
    """Runs cases (name, function, arguments…) of all suites; `cases` makes them of work(part)."""
    try:
        made = cases(work(part))
    except (check.Lacking, check.Wrong) as why:
        made = [("programs", check.fails_with, why)]
    part.plan([name for name, *_ in made])
    for name, function, *arguments in made:
        part.case(name, function, *arguments)
    part.finish()


def main():
    part = check.Part("kernels")
    each(part, lambda all_work: [(f"{program.name} {suite}", run_suite, part, program, suite) for program, suite in all_work])


if __name__ == "__main__":
    main()
