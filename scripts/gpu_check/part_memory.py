#!/usr/bin/env python3
"""The arena against the ledger, to the byte; what a process takes of the GPU besides, against a constant of it.

The executor reads the GPU's used memory when its steps are over, its arena still there; nvidia-smi read it before the
process began. The constant (context, libraries, modules) is what a run of a tiny model takes beyond its arena. It is kept in
OUT/device_constants.json by GPU, driver and versions of the libraries, and measured once for each. The memory of a larger
run is that constant and its arena, within 1 % or 200 MiB.
"""
import subprocess

import check
import training

MIB = 1 << 20
CONFIGURATIONS = (  # name, model, sequence, micro-batch, locks and words of the plan
    ("124m", "gpt2", 1024, 8, dict(recompute="none")),
    ("124m full recompute", "gpt2", 1024, 16, dict(recompute="full")),
    ("1.5b", "gpt2-xl", 1024, 4, dict(recompute="none")),
    ("llama 1b", "llama-3.2-1b", 8192, 1, dict(recompute="none")),
    ("llama 3b full recompute", "llama-3.2-3b", 8192, 1, dict(recompute="full")),
)


def used_now(part):
    """Bytes of the GPU that are taken, by whomever, as nvidia-smi says; None where it does not."""
    words = ["nvidia-smi", "-i", str(part.options.gpu), "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    said = subprocess.run(words, capture_output=True, text=True).stdout.split()
    return int(said[0]) * MIB if said and said[0].isdigit() else None


def measured(part, name, model, sequence, micro_batch, locks, steps):
    path = training.plan(part, name.replace(" ", "-"), model, sequence=sequence, batch=micro_batch, dp_shard=1,
                         micro_batch_size=micro_batch, **locks)
    predicted = part.work / f"{path.stem}.predicted.json"
    part.must(part.program("shardwise"), "simulate", path, "-o", predicted, limit=60)
    before = used_now(part)
    run = training.train(part, path.stem, path, "cuda", steps)
    after = run.report.get("device_used_bytes")
    return {"ledger_bytes": max(stage["peak_allocated_bytes"] for stage in check.read_json(predicted)["memory"]),
            "arena_bytes": run.report["arena_bytes"], "used_before_bytes": before,
            "used_at_start_bytes": run.report.get("device_used_at_start_bytes"), "used_bytes": after,
            "gpu_growth_bytes": after - before if after and before is not None else None}


def key_of(part):
    """What the constant depends on: GPU, driver and libraries."""
    gpu = part.machine.get("gpu", {})
    libraries = [line for line in part.machine.get("versions", []) if any(name in line for name in ("cuBLASLt", "cuDNN", "CUDA"))]
    return "; ".join([gpu.get("name", "unknown"), f"driver {gpu.get('driver_version', 'unknown')}", *libraries])


def constants(part):
    path = part.options.out / "device_constants.json"
    return check.read_json(path)["constants"] if path.exists() else {}


def constant(part):
    known = constants(part)
    if key_of(part) in known:
        return {"ok": None, "of": key_of(part), "constant_bytes": known[key_of(part)]}
    row = measured(part, "constant", "gpt2-tiny", 64, 1, {}, 20)
    if row["gpu_growth_bytes"] is None:
        raise check.Lacking("neither nvidia-smi nor the run says how much of the GPU's memory is used")
    made = row["gpu_growth_bytes"] - row["arena_bytes"]
    check.write_json(part.options.out / "device_constants.json",
                     {"schema": "shardwise.gpu_check_constants/1", "constants": {**known, key_of(part): made}})
    return {**row, "ok": None, "of": key_of(part), "constant_bytes": made}


def configuration(part, taken, name, model, sequence, micro_batch, locks):
    row = measured(part, name, model, sequence, micro_batch, locks, 5)
    row["ok"] = row["ledger_bytes"] == row["arena_bytes"]
    if not row["ok"]:
        row["why"] = f"the arena has {row['arena_bytes']:,} bytes, the ledger {row['ledger_bytes']:,}"
    if taken and taken.get("constant_bytes") is not None and row["gpu_growth_bytes"] is not None:
        expected = row["arena_bytes"] + taken["constant_bytes"]
        row["off_bytes"] = row["gpu_growth_bytes"] - expected
        if abs(row["off_bytes"]) > max(0.01 * expected, 200 * MIB):
            row["ok"] = False
            row["why"] = f"the process took {row['gpu_growth_bytes']:,} bytes of the GPU, {expected:,} were expected"
    return row


def main():
    part = check.Part("memory")
    rows = [("tiny", "gpt2-tiny", 64, 2, {})] if part.small else CONFIGURATIONS
    part.plan(["constant"] + [row[0] for row in rows])
    taken = part.case("constant", constant, part)
    for row in rows:
        part.case(row[0], configuration, part, taken, *row)
    part.finish()


if __name__ == "__main__":
    main()
