#!/usr/bin/env python3
"""Trains tiny models for 5 steps with the exported scripts, on 2 CPU ranks over gloo.

    venv/bin/pip install torch==2.15.0 transformers==5.23.0 einops
    venv/bin/pip install --no-deps megatron-fsdp==0.6.1
    venv/bin/python tests/golden/exported_script.py --shardwise build/dev/bin/shardwise \\
        -o tests/golden/exported_script.json

needs no GPU: what Megatron-FSDP asks of CUDA, cuda_on_cpu.py answers. Exit code 1 where a script
fails, prints another number of steps or a loss that is not near log(vocabulary), or where cases of
one model and framework, which compute the same numbers, have losses more than 0.02 apart or norms
of gradients more than 2 %. The result is the golden file with which
tests/planner/export/golden_test.cc compares what is exported.
"""

import argparse
import hashlib
import importlib.metadata
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Framework, model, loss, what is locked.
CASES = [
    ("torch-fsdp2", "llama-tiny", "materialised", "recompute=none,reshard_after_forward=true"),
    ("torch-fsdp2", "llama-tiny", "chunked", "recompute=full,reshard_after_forward=false"),
    ("torch-fsdp2", "gpt2-tiny", "materialised", "recompute=full"),
    ("torch-fsdp2", "gpt2-tiny", "chunked", "recompute=none"),
    ("torch-fsdp2", "qwen3-tiny", "materialised", "reshard_after_forward=false"),
    ("torch-fsdp2", "llama-tiny", "materialised", "dp_shard=1,dp_replicate=2"),
    ("megatron-fsdp", "llama-tiny", "materialised", "zero_stage=3,recompute=none"),
    ("megatron-fsdp", "llama-tiny", "chunked", "zero_stage=3,recompute=full,double_buffer=true"),
    ("megatron-fsdp", "llama-tiny", "materialised", "zero_stage=2"),
    ("megatron-fsdp", "llama-tiny", "materialised", "zero_stage=1"),
    ("megatron-fsdp", "llama-tiny", "materialised", "zero_stage=3,dp_shard=1,dp_replicate=2"),
    ("megatron-fsdp", "gpt2-tiny", "materialised", "zero_stage=3"),
    ("megatron-fsdp", "gpt2-tiny", "chunked", "zero_stage=2"),
    ("megatron-fsdp", "qwen3-tiny", "materialised", "zero_stage=0"),
]
ENGINES = {"torch-fsdp2": "fsdp2", "megatron-fsdp": "megatron_fsdp"}
MOST_APART = 0.02
MOST_APART_OF_NORMS = 0.02  # of the norm


def run(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})  # fmt: skip
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def export_case(shardwise, case, folder):
    """\\returns the plan, and the folder of its export"""
    framework, model, loss, locks = case
    plan, job = folder / "plan.json", folder / "job"
    given = [*locks.split(","), "micro_batch_size=2"]
    locked = [word for lock in given for word in ("--lock", lock)]
    run([shardwise, "plan", "--model", model, "--cluster", "dgx-h100", "--gpus", "2", "--engine",
         ENGINES[framework], "--loss", loss, "--sequence-length", "128", "--global-batch-size",
         "8", *locked, "-o", plan], ROOT)  # fmt: skip
    run([shardwise, "export", plan, "--to", framework, "-o", job], ROOT)
    return json.loads(plan.read_text()), job


def numbers_of(framework, job):
    """Losses and norms of the steps."""
    [script] = job.glob("train_*.py")
    start = [script.name, "--device", "cpu"]
    if framework == "megatron-fsdp":
        start = [ROOT / "tests" / "golden" / "cuda_on_cpu.py", script.name]
    out = run([sys.executable, "-m", "torch.distributed.run", "--nnodes", "1",
               "--nproc-per-node", "2", *start, "--steps", "5"], job)  # fmt: skip
    lines = [line.split() for line in out.split("\n") if line.startswith("step ")]
    return [float(words[3]) for words in lines], [float(words[5]) for words in lines]


def scripts_digest(framework):
    """Of the script that ran, and of what it shares with the other."""
    text = b"".join((ROOT / "configs" / "frameworks" / name).read_bytes()
                    for name in (f"train_{framework.replace('-', '_')}.py", "training_job.py"))  # fmt: skip
    return hashlib.sha256(text).hexdigest()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shardwise", required=True, type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("-o", type=pathlib.Path, help="the golden file")
    asked = parser.parse_args()
    failed, first, rows = False, {}, []
    for case in CASES:
        framework, model, loss, locks = case
        with tempfile.TemporaryDirectory() as folder:
            plan, job = export_case(asked.shardwise, case, pathlib.Path(folder))
            settings = (job / "settings.json").read_text()
            losses, norms = numbers_of(framework, job)
        config = json.loads((ROOT / "configs" / "models" / f"{model}.json").read_text())
        start = math.log(config["vocab_size"])
        good = len(losses) == 5 and all(abs(each - start) < 0.5 for each in losses)
        same, same_norms = first.setdefault((framework, model), (losses, norms))
        good = good and all(abs(a - b) < MOST_APART for a, b in zip(losses, same))
        good = good and all(
            abs(a - b) < MOST_APART_OF_NORMS * b for a, b in zip(norms, same_norms)
        )
        failed = failed or not good
        wrong = "" if good else f"wrong: near {start:.2f}?"
        print(framework, model, loss, locks, losses, norms, wrong, flush=True)
        rows.append({"framework": framework, "model": model, "gpus": 2, "engine": ENGINES[framework],
                     "layout": plan["layout"], "job": plan["job"], "configuration": settings,
                     "losses": losses, "norms": norms})  # fmt: skip
    if asked.o and not failed:
        packages = ("torch", "transformers", "megatron-fsdp")
        versions = {name: importlib.metadata.version(name) for name in packages}
        scripts = {framework: scripts_digest(framework) for framework in ENGINES}
        made = {"versions": versions, "scripts": scripts, "cases": rows}
        asked.o.write_text(json.dumps(made, indent=1) + "\n")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
