#!/usr/bin/env python3
"""How well two runs of one model on the same GPUs are told apart: the bands of configs/ranking.json.

    tests/bench/tie_band.py --bin build/release/bin FILE.jsonl ...

Two rows of one source are a pair when model, sequence, GPU, GPUs and precision are the same, so that they differ in
layout, batch or flags. Their error is |log(predicted/measured) of one - the same of the other|: what a common error of
both, which changes no order, leaves. Printed by engine: the mean over sources of the median over a source's pairs.
"""
import argparse
import collections
import itertools
import json
import math
import pathlib
import statistics
import subprocess

FEWEST = 4  # pairs of a source, below which its median says little


def question(row):
    model, hardware = row["model"], row["hardware"]
    return (row["id"].split("/")[0], *(model.get(k) for k in ("name", "layers", "hidden", "seq")), hardware["gpu"],
            hardware["gpus"], json.dumps(row["precision"], sort_keys=True))


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/release/bin"))
    options.add_argument("files", nargs="+")
    o = options.parse_args()

    rows = {}
    for file in o.files:
        with open(file) as lines:
            rows.update((row["id"], row) for row in map(json.loads, filter(str.strip, lines)))
    scored = json.loads(subprocess.run([o.bin / "shardwise", "score", "--simulate", "--json", *o.files], check=True,
                                       capture_output=True, text=True).stdout)
    same = collections.defaultdict(list)
    for figure in scored["rows"]:
        if figure["quantity"] == "time":
            error = math.log(figure["predicted"] / figure["measured"])
            same[figure["engine"], question(rows[figure["id"]])].append(error)
    pairs = collections.defaultdict(list)
    for (engine, asked), errors in same.items():
        pairs[engine, asked[0]] += [abs(a - b) for a, b in itertools.combinations(errors, 2)]

    medians = collections.defaultdict(list)
    for (engine, source), errors in sorted(pairs.items()):
        if not errors:
            continue
        median = statistics.median(errors)
        kept = len(errors) >= FEWEST
        if kept:
            medians[engine].append((median, len(errors)))
        print(f"{engine:20} {source:20} {len(errors):6} pairs {100 * median:6.1f} %{'' if kept else '  (too few)'}")
    print()
    for engine, each in medians.items():
        print(f"{engine:20} {sum(n for _, n in each):6} pairs of {len(each)} sources "
              f"{100 * statistics.mean(m for m, _ in each):6.1f} %")
    every = [m for each in medians.values() for m, _ in each]
    print(f"{'all':20} {sum(n for each in medians.values() for _, n in each):6} pairs of {len(every)} sources "
          f"{100 * statistics.mean(every):6.1f} %")


if __name__ == "__main__":
    main()
