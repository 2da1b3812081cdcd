#!/usr/bin/env python3
"""The arena against the ledger, to the byte; what a process takes of the GPU besides, against a constant of it.

The constant (context, libraries, modules) is what a run of a tiny model takes beyond its arena. The memory of a larger
run is that constant and its arena within 1 %, or 200 MiB.
"""
import subprocess
import threading

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


class Watch:
    """The GPU's used memory at its largest, asked of nvidia-smi some times a second."""

    def __init__(self, part):
        self.words = ["nvidia-smi", "-i", str(part.options.gpu), "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
        self.before, self.most, self.over = self.now(), 0, threading.Event()
        self.thread = threading.Thread(target=self.look, daemon=True)
        self.thread.start()

    def now(self):
        said = subprocess.run(self.words, capture_output=True, text=True).stdout.split()
        return int(said[0]) * MIB if said and said[0].isdigit() else 0

    def look(self):
        while not self.over.wait(0.2):
            self.most = max(self.most, self.now())

    def growth(self):
        self.over.set()
        self.thread.join()
        return max(0, self.most - self.before)


def measured(part, name, model, sequence, micro_batch, locks, steps):
    path = training.plan(part, name.replace(" ", "-"), model, sequence=sequence, batch=micro_batch, dp_shard=1,
                         micro_batch_size=micro_batch, **locks)
    predicted = part.work / f"{path.stem}.predicted.json"
    part.must(part.program("shardwise"), "simulate", path, "-o", predicted, limit=60)
    watch = Watch(part)
    try:
        run = training.train(part, path.stem, path, "cuda", steps)
    finally:
        growth = watch.growth()
    # Without the context, which is the constant's and not the arena's.
    said, seen = (max(stage["peak_allocated_bytes"] for stage in report["memory"]) for report in (check.read_json(predicted), run.report))
    return {"predicted_bytes": said, "arena_bytes": seen, "gpu_growth_bytes": growth}


def constant(part):
    row = measured(part, "constant", "gpt2-tiny", 64, 1, {}, 200)
    return {**row, "ok": None, "constant_bytes": row["gpu_growth_bytes"] - row["arena_bytes"]}


def configuration(part, taken, name, model, sequence, micro_batch, locks):
    row = measured(part, name, model, sequence, micro_batch, locks, 12)
    row["ok"] = row["predicted_bytes"] == row["arena_bytes"]
    if not row["ok"]:
        row["why"] = f"the arena has {row['arena_bytes']:,} bytes, the ledger {row['predicted_bytes']:,}"
    if taken and taken.get("constant_bytes") is not None:
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
