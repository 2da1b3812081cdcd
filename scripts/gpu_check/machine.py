#!/usr/bin/env python3
"""Writes OUT/machine.json: the GPU, what drives it, and the programs that run. Refuses a folder of another GPU or driver."""
import argparse
import csv
import io
import pathlib
import platform
import subprocess
import sys
import time

import check

FIELDS = ("name", "uuid", "driver_version", "compute_cap", "memory.total", "memory.reserved", "power.limit", "clocks.max.sm",
          "clocks.max.mem", "pcie.link.gen.max", "persistence_mode", "ecc.mode.current", "mig.mode.current")
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


def commit():
    """Of the tree that this script is in: what git says, or the file COMMIT of a copy; None where neither does."""
    copied = check.ROOT / "COMMIT"
    if copied.exists():
        return copied.read_text().strip()
    try:
        done = subprocess.run(["git", "-C", str(check.ROOT), "rev-parse", "HEAD"], capture_output=True, text=True)
    except OSError:  # no git here
        return None
    return done.stdout.strip() or None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--binaries", type=pathlib.Path, required=True)
    parser.add_argument("--versions", default="", help="what shardwise-run --version printed")
    parser.add_argument("--gpu", type=int, default=0)
    options = parser.parse_args()
    check.unpack(options.out)
    path = options.out / "machine.json"
    now = facts(options.gpu)
    if path.exists():
        before = check.read_json(path)["gpu"]
        other = [field for field in SAME if before.get(field) != now.get(field)]
        if other:
            sys.stderr.write(f"gpu_check.sh: {options.out} has results of {before.get(other[0])}, this is "
                             f"{now.get(other[0])} ({other[0]}): name another folder\n")
            return 2
    check.write_json(path, {"schema": "shardwise.gpu_check_machine/1", "gpu": now, "host": platform.node(),
                            "system": platform.platform(), "commit": commit(), "build": check.build_of(options.binaries),
                            "versions": options.versions.splitlines(), "date": time.strftime("%Y-%m-%d", time.gmtime())})
    return 0


if __name__ == "__main__":
    sys.exit(main())
