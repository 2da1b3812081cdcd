#!/usr/bin/env python3
"""Predicted and measured memory and step time of one model under several layouts, as one table.

    python3 tests/bench/step_times.py [--ranks 4] [--model llama-tiny] [--cluster FILE]
    python3 tests/bench/step_times.py --stages "" --microbatches 4 --layout pp=2,zero_stage=0 --layout pp=4,schedule=gpipe

Each ZeRO stage of --stages over all ranks and each --layout, but those that shardwise-run refuses, which are named
(shardwise measure trains the planner's own best layouts). Every step has ranks x micro-batch size x --microbatches
sequences. Measures this machine first (shardwise-run calibrate, a minute) unless a cluster file is named. Plans,
simulates and trains; every file it makes stays in --out. The exit code is 1 when the arena is not as predicted to the
byte. Times are worth something on an idle machine only, with a core a rank where there are pipelines: ranks that
share one have it while others idle. --processor-time adds a column of what a step would take on an idle one, from the
processor time that it took. "hidden" is the share of communication beside which ranks compute, from when the last
rank of a group has come; measured over all ranks where they are threads. "waited" is what a rank waited for others
before. "bubble" is the share of the step in which the busiest stage is idle by schedule. Of three layouts or more
Kendall's tau says how far measured steps are in the order of the predicted ones (1: all pairs, -1: none).
"""
import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default="build/release/bin", help="folder of shardwise and shardwise-run")
    parser.add_argument("--out", default="build/step_times")
    parser.add_argument("--cluster", help="of as many ranks; measured when absent")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--model", default="llama-tiny")
    parser.add_argument("--sequence-length", type=int, default=128)
    parser.add_argument("--micro-batch-size", type=int, default=1)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--data", help="a text; the shipped one when absent")
    parser.add_argument("--stages", default="0123")
    parser.add_argument("--layout", action="append", default=[], metavar="FIELD=VALUE,...", help="repeatable")
    parser.add_argument("--microbatches", type=int, default=1, help="of each rank, were all of them data parallel")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--processor-time", action="store_true")
    parser.add_argument("--mpi", action="store_true", help="ranks are processes that mpirun starts")
    return parser.parse_args()


def tool(o, name, *words, launch=(), may_refuse=False):
    """What it prints; of one that may refuse what it says then, as the second of two."""
    command = [*launch, str(pathlib.Path(o.bin) / name), *map(str, words)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE if may_refuse else None, text=True)
    if may_refuse and done.returncode == 2:
        return None, done.stderr
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr or ''}")
    return (done.stdout, None) if may_refuse else done.stdout


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def launcher(o):
    if not o.mpi:
        return []
    as_root = ["--allow-run-as-root"] if os.getuid() == 0 else []
    return ["mpirun", *as_root, "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "-np", str(o.ranks)]


def train(o, plan, steps, report, metrics, trace):
    """Processor seconds, and why the plan is refused, if it is."""
    data = ["--data", o.data] if o.data else []
    before = processor_seconds()
    _, refused = tool(o, "shardwise-run", "train", plan, "--steps", steps, "--report", report, "--metrics", metrics,
                      "--trace", trace, "--learning-rate", "0.001", *data, launch=launcher(o), may_refuse=True)
    return processor_seconds() - before, refused


def communication(trace):
    """Of a step's ranks together: the hidden share of what moved, and seconds a rank waited for others before."""
    events = json.loads(trace.read_text())["traceEvents"]
    lanes = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    spans = [(e["pid"], lanes[e["pid"], e["tid"]], e["ts"] + e.get("args", {}).get("waited_us", 0), e["ts"] + e["dur"])
             for e in events if e["ph"] == "X"]
    kernels = [span for span in spans if span[1] == "compute"]
    moves = [span for span in spans if span[1] != "compute"]
    moved = sum(end - begin for _, _, begin, end in moves)
    beside = sum(max(0, min(end, k_end) - max(begin, k_begin)) for rank, _, begin, end in moves
                 for k_rank, _, k_begin, k_end in kernels if k_rank == rank)
    waited = sum(e.get("args", {}).get("waited_us", 0) for e in events if e["ph"] == "X")
    return beside / moved if moved else 0, waited * 1e-6 / len({span[0] for span in spans})


def question(o, cluster):
    return ["plan", "--model", o.model, "--cluster", cluster, "--gpus", o.ranks, "--engine", "shardwise", "--precision",
            o.precision, "--loss", "chunked", "--sequence-length", o.sequence_length, "--global-batch-size",
            o.ranks * o.micro_batch_size * o.microbatches]


def asked_layouts(o):
    """Fields that are locked, of each row."""
    rows = [{"zero_stage": stage} for stage in o.stages]
    rows += [dict(field.split("=", 1) for field in each.split(",")) for each in o.layout]
    for row in rows:
        row.setdefault("tp", 1)
        ranks = o.ranks // (int(row["tp"]) * int(row.get("pp", 1)) * int(row.get("dp_replicate", 1)))
        defaults = {"pp": 1, "dp_shard": ranks, "micro_batch_size": o.micro_batch_size, "recompute": "none",
                    "zero_stage": 0}
        for field, value in defaults.items():
            row.setdefault(field, value)
    return rows


def name_of(layout):
    words = [f"ZeRO-{layout['zero_stage']}"]
    if layout.get("outer_shards_optimizer") == "true":
        words[0] = "HFSDP"
    words += [f"tp {layout['tp']}"] if int(layout["tp"]) > 1 else []
    if int(layout["pp"]) > 1:
        words.append(f"pp {layout['pp']}")
        words += [f"vpp {layout['vpp']}"] if int(layout.get("vpp", 1)) > 1 else []
        words += [layout["schedule"]] if layout.get("schedule", "one_f_one_b") != "one_f_one_b" else []
    replicas = int(layout.get("dp_replicate", 1))
    words.append(f"dp {layout['dp_shard']}" + (f" x {replicas}" if replicas > 1 else ""))
    words += [f"mbs {layout['micro_batch_size']}"]
    words += [layout["recompute"]] if layout.get("recompute", "none") != "none" else []
    return ", ".join(words)


def layout_row(o, out, cluster, number, layout):
    plan, predicted, measured, metrics, trace = (out / f"{name}{number}.{kind}" for name, kind in (
        ("plan", "json"), ("predicted", "json"), ("measured", "json"), ("metrics", "jsonl"), ("trace", "json")))
    locks = [word for field, value in layout.items() for word in ("--lock", f"{field}={value}")]
    tool(o, "shardwise", *question(o, cluster), *locks, "-o", plan)
    tool(o, "shardwise", "simulate", plan, "-o", predicted)
    computed, refused = train(o, plan, o.steps, measured, metrics, trace)
    if refused:
        print(f"{name_of(layout)} is not executed: {refused.splitlines()[0].split(': ', 1)[-1]}")
        return None
    if o.processor_time:  # less the start of the program and the first step
        few = 3
        computed -= train(o, plan, few, out / "few.json", out / "few.jsonl", out / "few.trace.json")[0]
        computed /= (o.steps - few) * min(o.ranks, len(os.sched_getaffinity(0)))
    said, seen = (json.loads(path.read_text()) for path in (predicted, measured))
    lines = [json.loads(line) for line in metrics.read_text().splitlines()[1:]]
    times = sorted(line["step_time_s"] for line in lines[1:])
    hidden, waited = communication(trace)
    return {
        "name": name_of(layout), "pipeline": int(layout["pp"]) > 1, "bubble": [each["time"]["bubble_s"] / each["step_time_s"] for each in (said, seen)],
        "said": said["verdict"]["point_bytes"], "seen": seen["verdict"]["point_bytes"],
        "growth": seen.get("process_growth_bytes", 0), "step": said["step_time_s"], "times": times,
        "hidden": [said["timeline"]["overlap"], hidden], "waited": waited, "computed": computed,
        "loss": (lines[0]["loss"], lines[-1]["loss"]),
    }


def main():
    o = options()
    out = pathlib.Path(o.out)
    out.mkdir(parents=True, exist_ok=True)
    cluster = o.cluster or out / "machine.json"
    if not o.cluster:
        ranks = [] if o.mpi else ["--ranks", o.ranks]
        print(tool(o, "shardwise-run", "calibrate", *ranks, "-o", cluster, launch=launcher(o)))
    rows = [layout_row(o, out, cluster, number, layout) for number, layout in enumerate(asked_layouts(o))]
    rows = [row for row in rows if row]

    mib = 1 << 20
    sequences = o.ranks * o.micro_batch_size * o.microbatches
    print(f"{o.model} in {o.precision}, {o.ranks} ranks, {sequences} x {o.sequence_length} tokens a step, {o.steps} steps")
    pipelines = any(r["pipeline"] for r in rows)
    head = ["layout", "arena, MiB", "measured", "process grew", "", "step, ms", "measured", "fastest", "slowest", "error"]
    head += ["computed", "error"] if o.processor_time else []
    head += ["bubble", "measured"] if pipelines else []
    table = [head + ["hidden", "measured", "waited, ms", "loss"]]
    for r in rows:
        middle = statistics.median(r["times"])
        line = [r["name"], f"{r['said'] / mib:.2f}", "equal" if r["said"] == r["seen"] else f"{r['seen'] / mib:.2f}",
                f"{r['growth'] / mib:.2f}", f"{100 * (r['growth'] / r['said'] - 1):+.1f} %", f"{1e3 * r['step']:.1f}",
                f"{1e3 * middle:.1f}", f"{1e3 * r['times'][0]:.1f}", f"{1e3 * r['times'][-1]:.1f}",
                f"{100 * (r['step'] / middle - 1):+.1f} %"]
        if o.processor_time:
            line += [f"{1e3 * r['computed']:.1f}", f"{100 * (r['step'] / r['computed'] - 1):+.1f} %"]
        line += [f"{100 * share:.1f} %" for share in r["bubble"]] if pipelines else []
        line += [f"{100 * share:.0f} %" for share in r["hidden"]]
        line.append(f"{1e3 * r['waited']:.1f}")
        table.append(line + [f"{r['loss'][0]:.3f} -> {r['loss'][1]:.3f}"])
    widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
    for line in table:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths)).rstrip())
    errors = [abs(r["step"] / statistics.median(r["times"]) - 1) for r in rows]
    print(f"median error of the step {100 * statistics.median(errors):.1f} %")
    if len(rows) > 2:
        pairs = [(a["step"] - b["step"]) * (statistics.median(a["times"]) - statistics.median(b["times"]))
                 for i, a in enumerate(rows) for b in rows[:i]]
        print(f"Kendall's tau of {len(rows)} layouts {sum((p > 0) - (p < 0) for p in pairs) / len(pairs):.2f}")
    return 0 if all(r["said"] == r["seen"] for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
