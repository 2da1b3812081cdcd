#!/usr/bin/env python3
"""Holds `shardwise plan` to an enumeration of its own, which shares no code with it.

    tests/oracle/enumerate_layouts.py --bin build/release/bin [--questions 30]

For each question this program enumerates the layouts of a small cluster from docs/search.md ("What is enumerated", usual
space), asks `shardwise estimate` for every one of them, and compares with `shardwise plan`: how many fit, may fit and do
not fit, the best step, and the Pareto front of memory and step time. Exit code 1 where one differs.
"""
import argparse
import concurrent.futures
import itertools
import json
import pathlib
import subprocess
import sys

BLOCKS = {"gpt2": 12, "gpt2-xl": 48, "llama-3.2-1b": 16, "pythia-2.8b": 32, "mixtral-8x7b": 32, "bert-large": 24}
EXPERTS = {"mixtral-8x7b": 8}
SEQUENCE = 2048
ORDER = "tp-cp-ep-dp_shard-dp_replicate-pp"  # with other orders, layouts differ in links alone

# model, cluster, GPUs, engine, batch, values that are locked
QUESTIONS = [
    ("gpt2", "dgx-h100", 2, "megatron_ddp", 4, {}),
    ("gpt2", "dgx-h100", 2, "fsdp2", 4, {}),
    ("gpt2", "dgx-h100", 2, "megatron_fsdp", 4, {}),
    ("gpt2", "dgx-h100", 2, "deepspeed", 4, {}),
    ("gpt2", "dgx-h100", 2, "fsdp1", 4, {}),
    ("gpt2", "dgx-h100", 2, "internevo", 4, {}),
    ("gpt2", "dgx-h100", 2, "shardwise", 4, {}),
    ("gpt2", "dgx-h100", 2, "fsdp2_in_megatron", 4, {}),
    ("gpt2", "dgx-h100", 2, "megatron_deepspeed", 4, {}),
    ("gpt2", "dgx-a100", 4, "fsdp1", 8, {"micro_batch_size": 1}),
    ("gpt2", "dgx-a100", 4, "fsdp2", 8, {"micro_batch_size": 1, "recompute": "none"}),
    ("gpt2", "rtx-4090-x8", 4, "megatron_ddp", 8, {"micro_batch_size": 1, "recompute": "none"}),
    ("gpt2", "rtx-4090-x8", 4, "fsdp2", 8, {"micro_batch_size": 2, "recompute": "none"}),
    ("gpt2", "laptop", 2, "shardwise", 4, {"recompute": "none"}),
    ("gpt2-xl", "rtx-4090-x8", 2, "deepspeed", 4, {}),
    ("gpt2-xl", "rtx-4090-x8", 2, "megatron_ddp", 4, {}),
    ("gpt2-xl", "rtx-4090-x8", 4, "fsdp2", 8, {"micro_batch_size": 1, "recompute": "full"}),
    ("gpt2-xl", "l40s-pcie", 4, "fsdp1", 8, {"micro_batch_size": 2}),
    ("gpt2-xl", "dgx-1-v100", 4, "megatron_deepspeed", 8, {"micro_batch_size": 1}),
    ("llama-3.2-1b", "dgx-h100", 2, "megatron_fsdp", 4, {"recompute": "none"}),
    ("llama-3.2-1b", "aws-g5", 2, "internevo", 4, {}),
    ("llama-3.2-1b", "aws-g5", 4, "fsdp2", 8, {"micro_batch_size": 1, "recompute": "none"}),
    ("llama-3.2-1b", "mi300x", 2, "fsdp2", 8, {}),
    ("llama-3.2-1b", "aws-p4d", 16, "fsdp1", 16, {"micro_batch_size": 1, "recompute": "none"}),
    ("llama-3.2-1b", "gcp-a3-mega", 16, "fsdp2", 16, {"micro_batch_size": 1, "recompute": "none", "pp": 1}),
    ("llama-3.2-1b", "dgx-b200", 4, "shardwise", 4, {"micro_batch_size": 1, "recompute": "none", "pp": 1}),
    ("pythia-2.8b", "dgx-a100", 2, "megatron_fsdp", 4, {"recompute": "none", "micro_batch_size": 1}),
    ("pythia-2.8b", "aws-g5", 4, "deepspeed", 8, {"micro_batch_size": 1}),
    ("mixtral-8x7b", "dgx-h200", 8, "megatron_ddp", 8, {"micro_batch_size": 1, "recompute": "full", "vpp": 1}),
    ("mixtral-8x7b", "dgx-b300", 4, "megatron_fsdp", 4, {"micro_batch_size": 1, "recompute": "full", "vpp": 1}),
]


def divisors(n):
    return [d for d in range(1, n + 1) if n % d == 0]


def run(o, *arguments):
    done = subprocess.run([o.bin / "shardwise", *map(str, arguments)], capture_output=True, text=True)
    if done.returncode not in (0, 1, 2):
        raise RuntimeError(f"exit code {done.returncode}: {arguments}\n{done.stderr}")
    return done


def asked(question):
    model, cluster, gpus, engine, batch, _ = question
    return ("--model", model, "--cluster", cluster, "--gpus", gpus, "--engine", engine, "--global-batch-size", batch,
            "--sequence-length", SEQUENCE, "--json")


def defaults(o, question):
    """What the engine does by itself, from an estimate that names nothing."""
    model, cluster, gpus, engine, _, _ = question
    done = run(o, "estimate", "--model", model, "--cluster", cluster, "--gpus", gpus, "--engine", engine, "--json",
               "--sequence-length", SEQUENCE, "--micro-batch-size", 1)
    if done.returncode == 2:
        sys.exit(f"{question}: {done.stderr}")
    layout = json.loads(done.stdout)["layout"]
    return layout["fp32_gradients"], layout["reduce_every_microbatch"]


def pipelines(model, pp):
    """Model chunks of a stage: equal ones where stages are equal, few where they are not."""
    if pp == 1:
        return [1]
    blocks = BLOCKS[model]
    if blocks % pp == 0:
        return [v for v in range(1, 9) if blocks // pp % v == 0]
    return [1, 2, 3, 4]


def layouts(question, fp32, reduces):
    """Every layout of the usual space that is not the same as another; legality is asked of estimate."""
    model, _, gpus, _, batch, locks = question
    experts = EXPERTS.get(model, 1)
    for tp, cp, pp in itertools.product(divisors(gpus), repeat=3):
        if gpus % (tp * cp * pp) or tp > 8 or cp * 1024 > SEQUENCE:
            continue
        dp = gpus // (tp * cp * pp)
        for dp_shard, mbs, vpp, ep in itertools.product(divisors(dp), (d for d in divisors(batch) if d <= 16),
                                                        pipelines(model, pp), divisors(experts)):
            if batch % (dp * mbs):
                continue
            microbatches = batch // (dp * mbs)
            replicas = dp // dp_shard
            for etp in sorted({1, tp} if experts > 1 else {1}):
                for zero, outer, reshard, reduce in itertools.product(range(4), (False, True), (True, False),
                                                                      (True, False)):
                    shards = dp_shard * cp > 1 or (outer and replicas > 1)
                    if (zero == 0 and replicas > 1  # replicas without shards are ranks like others
                            or outer and (replicas == 1 or zero != 3)
                            or zero > 0 and not shards and zero != LEAST_ZERO[question[3]]
                            or not reshard and zero < 3
                            or not reduce and (zero < 2 or microbatches == 1)
                            # reductions as the engine does them; FSDP2 in a pipeline may change
                            or zero >= 2 and microbatches > 1 and reduce != reduces
                            and not (pp > 1 and question[3] in GATHERS_ONCE)):
                        continue
                    for recompute in ("none", "full"):  # selective does nothing to fused attention
                        layout = dict(tp=tp, cp=cp, pp=pp, vpp=vpp, ep=ep, etp=etp, dp_shard=dp_shard,
                                      dp_replicate=replicas, micro_batch_size=mbs, zero_stage=zero,
                                      sequence_parallel=tp > 1, outer_shards_optimizer=outer,
                                      reshard_after_forward=reshard, reduce_every_microbatch=reduce,
                                      fp32_gradients=fp32, recompute=recompute)
                        if all(layout[key] == value for key, value in locks.items()):
                            yield layout


GATHERS_ONCE = ("fsdp2", "fsdp2_in_megatron")  # in pipelines
LEAST_ZERO = {}  # of each engine; main() asks for it


def text(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


def estimated(o, question, layout):
    """(fit, memory, step) of a layout; None where it cannot run."""
    flags = [f"--{key.replace('_', '-')}={text(value)}" for key, value in layout.items()]
    done = run(o, "estimate", *asked(question), *flags)
    if done.returncode == 2:
        return None
    report = json.loads(done.stdout)
    return report["verdict"]["fit"], report["verdict"]["point_bytes"], report["step_time_s"]


def front_of(points):
    front = []
    for memory, step in sorted(set(points)):
        if not front or step < front[-1][1]:
            front.append((memory, step))
    return front


def compare(o, question, pool):
    fp32, reduces = defaults(o, question)
    every = list(layouts(question, fp32, reduces))
    answers = [a for a in pool.map(lambda layout: estimated(o, question, layout), every) if a]
    fitting = [(memory, step) for fit, memory, step in answers if fit == "fits"]
    mine = {
        "fit": len(fitting),
        "at risk": sum(fit == "at_risk" for fit, _, _ in answers),
        "do not fit": sum(fit == "does_not_fit" for fit, _, _ in answers),
        "best step": min((step for _, step in fitting), default=None),
        "front": front_of(fitting),
    }
    locks = itertools.chain.from_iterable(("--lock", f"{k}={text(v)}") for k, v in question[5].items())
    done = run(o, "plan", *asked(question), "--lock", f"order={ORDER}", *locks)
    if done.returncode == 2:
        return len(every), [] if not answers else [f"plan refuses: {done.stderr}"]
    plan = json.loads(done.stdout)
    counts = plan["counts"][0]
    theirs = {
        "fit": counts["ranked"] + counts["too_slow"],
        "at risk": counts["at_risk"],
        "do not fit": counts["does_not_fit"],
        "best step": min((row["step_time_s"] for row in plan["best"]), default=None),
        "front": [(row["memory_bytes"], row["step_time_s"]) for row in plan["front"]],
    }
    wrong = []
    for key, value in mine.items():
        same = value == theirs[key]
        if key == "best step" and value and theirs[key]:
            same = abs(value / theirs[key] - 1) < 1e-12
        if key == "front":
            same = len(value) == len(theirs[key]) and all(
                a[0] == b[0] and abs(a[1] / b[1] - 1) < 1e-12 for a, b in zip(value, theirs[key]))
        if not same:
            wrong.append(f"{key}: enumerated {value}, plan {theirs[key]}")
    return len(answers), wrong


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/release/bin"))
    options.add_argument("--questions", type=int, default=len(QUESTIONS))
    options.add_argument("--first", type=int, default=0)
    o = options.parse_args()
    for engine in json.loads(run(o, "list", "engines", "--json").stdout)["entries"]:
        LEAST_ZERO[engine["name"]] = min(engine["zero_stages"])
    bad = total = 0
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for question in QUESTIONS[o.first:o.first + o.questions]:
            count, wrong = compare(o, question, pool)
            total += count
            bad += bool(wrong)
            name = " ".join(map(str, question[:5])) + "".join(f" {k}={v}" for k, v in question[5].items())
            print(f"{'differs' if wrong else 'agrees'}  {count:5} layouts  {name}", flush=True)
            for each in wrong:
                print(f"    {each[:400]}")
    print(f"{total} layouts estimated, {bad} questions differ")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
