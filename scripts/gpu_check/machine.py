#!/usr/bin/env python3
"""Writes OUT/machine.json: the GPU and what drives it. Refuses a folder with results of another GPU or driver."""
import argparse
import csv
import io
import pathlib
import platform
import subprocess
import sys
import time

import check

FIELDS = ("name", "uuid", "driver_version", "compute_cap", "memory.total", "power.limit", "clocks.max.sm", "clocks.max.mem",
          "pcie.link.gen.max", "persistence_mode", "ecc.mode.current", "mig.mode.current")
SAME = ("name", "driver_version", "memory.total")


def facts(gpu):
    """Of the fields those that this nvidia-smi knows."""
    found = {}
    for field in FIELDS:
        done = subprocess.run(["nvidia-smi", "-i", str(gpu), f"--query-gpu={field}", "--format=csv,noheader"],
                              capture_output=True, text=True)
        rows = list(csv.reader(io.StringIO(done.stdout.strip())))
        if done.returncode == 0 and rows and rows[0]:
            found[field] = rows[0][0].strip()
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--gpu", type=int, default=0)
    options = parser.parse_args()
    path = options.out / "machine.json"
    now = facts(options.gpu)
    if path.exists():
        before = check.read_json(path)["gpu"]
        other = [field for field in SAME if before.get(field) != now.get(field)]
        if other:
            sys.stderr.write(f"gpu_check.sh: {options.out} has results of {before.get(other[0])}, this is "
                             f"{now.get(other[0])} ({other[0]}): name another folder\n")
            return 2
        return 0
    commit = subprocess.run(["git", "-C", str(check.ROOT), "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    check.write_json(path, {"schema": "shardwise.gpu_check_machine/1", "gpu": now, "host": platform.node(),
                            "system": platform.platform(), "commit": commit,
                            "date": time.strftime("%Y-%m-%d", time.gmtime())})
    return 0


if __name__ == "__main__":
    sys.exit(main())
