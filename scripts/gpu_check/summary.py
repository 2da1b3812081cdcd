#!/usr/bin/env python3
"""Prints what OUT/*.json say of all parts as one table and writes OUT/summary.json."""
import argparse
import pathlib
import sys

import check

STATES = ("right", "wrong", "known", "lacking")


def row_of(out, part):
    path = out / f"{part}.json"
    if not path.exists():
        return {"part": part, "state": "not begun", "left": None, **dict.fromkeys(STATES, 0), "first_wrong": ""}
    said = check.read_json(path)
    cases = said["cases"]
    count = {state: sum(row["state"] == state for row in cases.values()) for state in STATES}
    first = next((f"{name}: {row.get('why', 'not as it must be')}" for name, row in cases.items() if row["state"] == "wrong"), "")
    if not first:
        first = next((f"{name}: {row['why']}" for name, row in cases.items() if row["state"] == "lacking"), "")
    state = "cut" if said["state"] == "running" else said["state"]  # its process is gone
    return {"part": part, "state": state, "left": len(said["left"]), **count, "first_wrong": first}


def figures(out):
    """What the comparisons came to, a line each."""
    for part in ("predictions", "short", "pytorch"):
        cases = check.read_json(out / f"{part}.json")["cases"] if (out / f"{part}.json").exists() else {}
        for name, row in cases.items():
            if "median_error" in row:
                yield f"step times: median error {100 * row['median_error']:.1f} % over {len(row['errors'])} configurations"
            if "speed" in row:
                share = f"{row['memory']['share']:.2f}" if row["memory"] else "not known"
                (speed, memory), (best_speed, least) = row["targets"]["now"], row["targets"]["goal"]
                yield (f"{name.removesuffix(' verdict')}: tokens/s {row['speed']:.2f} of PyTorch's {row['bar']} (target {speed}, goal "
                       f"{best_speed}), memory {share} (target {memory}, goal {least})")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--parts", required=True)
    options = parser.parse_args()
    rows = [row_of(options.out, part) for part in options.parts.split()]
    machine = check.read_json(options.out / "machine.json")
    print(f"{machine['gpu'].get('name')}, driver {machine['gpu'].get('driver_version')}, {machine['date']}")
    print(f"{'part':12} {'state':10} {'right':>6} {'wrong':>6} {'known':>6} {'lack':>6} {'left':>6}")
    for row in rows:
        left = "all" if row["left"] is None else row["left"]
        print(f"{row['part']:12} {row['state']:10} {row['right']:6} {row['wrong']:6} {row['known']:6} {row['lacking']:6} {left:>6}")
    for row in rows:
        if row["first_wrong"]:
            print(f"{row['part']}: {row['first_wrong'].splitlines()[0]}")
    for line in figures(options.out):
        print(line)
    wrong = any(row["wrong"] for row in rows)
    whole = all(row["state"] == "done" and not row["lacking"] for row in rows)
    check.write_json(options.out / "summary.json", {"schema": "shardwise.gpu_check_summary/1", "machine": machine, "parts": rows,
                                                    "wrong": wrong, "whole": whole})
    check.pack(options.out)
    return 1 if wrong else 0 if whole else 3


if __name__ == "__main__":
    sys.exit(main())
