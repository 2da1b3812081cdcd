#!/usr/bin/env python3
"""What checkpoints cost a run: how long it stands still for them, and how much slower the steps beside a writer are.

    python3 tests/bench/checkpoint_cost.py [--model gpt2] [--ranks 1] [--every 4] [--steps 13]

Plans and trains the model with a checkpoint every few steps, in --out, and prints its bytes, the time for which the run
stood still for one (its state is copied, a writer goes on beside it), the steps during which a writer was at work and
those without, and what the disk alone takes for as many bytes (written and kept, one file a rank). The last checkpoint,
for which a run waits at its end, is not among them.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import time


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default="build/release/bin", help="folder of shardwise and shardwise-run")
    parser.add_argument("--out", default="build/checkpoint_cost")
    parser.add_argument("--model", default="gpt2")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sequence-length", type=int, default=128)
    parser.add_argument("--every", type=int, default=4)
    parser.add_argument("--steps", type=int, default=13)
    return parser.parse_args()


def plan(o, out):
    words = f"plan --model {o.model} --cluster laptop --gpus {o.ranks} --engine shardwise --precision fp32 --loss chunked"
    words += f" --sequence-length {o.sequence_length} --global-batch-size {o.ranks} --lock tp=1 --lock pp=1 --lock cp=1"
    command = [str(pathlib.Path(o.bin) / "shardwise"), *words.split(), "-o", str(out / "plan.json")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def train(o, out):
    metrics = out / "metrics.jsonl"
    command = [str(pathlib.Path(o.bin) / "shardwise-run"), "train", str(out / "plan.json"), "--steps", str(o.steps)]
    command += ["--threads", str(o.threads), "--metrics", str(metrics), "--checkpoint-dir", str(out / "checkpoints")]
    command += ["--checkpoint-every", str(o.every), "--keep", "1"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return [json.loads(line) for line in metrics.read_text().splitlines()[1:]]


def disk_seconds(out, count):
    path = out / "disk"
    block = os.urandom(1 << 20)
    begin = time.monotonic()
    with open(path, "wb", buffering=0) as file:
        for _ in range(count // len(block)):
            file.write(block)
        os.fsync(file.fileno())
    seconds = time.monotonic() - begin
    path.unlink()
    return seconds


def main():
    o = options()
    out = pathlib.Path(o.out)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    plan(o, out)
    steps = train(o, out)
    saved = sum(file.stat().st_size for file in (out / "checkpoints").rglob("*") if file.is_file())
    held = [step["held_by_checkpoint_s"] for step in steps[:-1] if step["held_by_checkpoint_s"] > 0]
    # The first step is another program's; the one after a checkpoint has its writer beside it.
    after = {step["step"] + 1 for step in steps if step["held_by_checkpoint_s"] > 0}
    beside = [step["step_time_s"] for step in steps[1:] if step["step"] in after]
    alone = [step["step_time_s"] for step in steps[1:] if step["step"] - 1 not in after and step["step"] not in after]
    disk = disk_seconds(out, saved)
    print(f"{o.model}, {o.ranks} ranks, {len(held)} checkpoints of {saved / 1e9:.2f} GB")
    print(f"stood still for one {statistics.median(held):.2f} s, {saved / 1e9 / statistics.median(held):.1f} GB/s")
    print(f"steps {statistics.median(alone):.2f} s, with a writer beside them {statistics.median(beside):.2f} s")
    print(f"the disk alone {disk:.2f} s, {saved / 1e9 / disk:.2f} GB/s")
    shutil.rmtree(out)


main()
