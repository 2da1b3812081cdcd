#!/usr/bin/env python3
"""What a short time on a GPU should tell first, each row of use alone: does a run train, with and without a graph; are the
kernels right; do tiny models learn as on the CPU; how fast are ours beside PyTorch's, at one known setting each.

Every run of ours is simulated too, so that a prediction stands beside each time, and its arena must be its ledger.
"""
import statistics

import check
import floor
import part_checkpoints as checkpoints
import part_kernels as kernels
import part_numbers as numbers
import part_pytorch as pytorch
import part_sanitizers as sanitizers
import training

TURNS = 2
# Micro-batches that fit both sides on 80 GB without recompute, by the planner.
MICRO = {"124m": 32, "1.5b": 16, "llama-1b": 2, "llama-3b": 1, "tiny": 2}
FIRST, SECOND = ("124m", "1.5b"), ("llama-1b", "llama-3b")
# What the executor can leave out of memory at 2 to 3 % of speed.
SPARING = ("attention_norm", "mlp_norm", "mlp.activation")
SUITES = 6  # that the checkers of CUDA's toolkit watch


def spare(path):
    """Has a plan keep no main weights where their remainders do, and compute norms and activations again."""
    plan = check.read_json(path)
    plan["layout"].update(store_param_remainders=True, recompute="selective")
    plan["job"]["recompute_operations"] = list(SPARING)
    check.write_json(path, plan)


def ours(part, name, one, micro, steps, sparing=False, words=()):
    """A run of ours beside its simulation."""
    path = training.plan(part, name, one["model"], sequence=one["sequence"], batch=one["batch"], dp_shard=1,
                         micro_batch_size=micro, recompute="none")
    if sparing:
        spare(path)
    predicted = part.work / f"{path.stem}.predicted.json"
    part.must(part.program("shardwise"), "simulate", path, "-o", predicted, limit=60)
    said = check.read_json(predicted)
    run = training.train(part, name, path, "cuda", steps, words, limit=240)
    ledger = max(stage["peak_allocated_bytes"] for stage in said["memory"])
    seen = run.report["step_time_s"]
    row = {**pytorch.step(run.times, one["batch"] * one["sequence"], seen), "memory_bytes": run.report["arena_bytes"],
           "ledger_bytes": ledger, "predicted_s": said["step_time_s"], "error": said["step_time_s"] / seen - 1,
           "losses": run.losses, "parts": run.report["time"], "start_s": run.seconds - sum(run.times)}
    row.update(floor.figures(part, one, micro, "selective" if sparing else "none", seen))
    row["ok"] = ledger == row["memory_bytes"]
    if not row["ok"]:
        row["why"] = f"the arena has {row['memory_bytes']:,} bytes, the ledger {ledger:,}"
    return row


def turn(part, key, one, contender):
    if contender.startswith("ours"):
        return ours(part, f"{key}-{contender.replace(' ', '-')}", one, MICRO[key], 20, contender == "ours sparing")
    return pytorch.run(part, one, contender, pytorch.Settings(MICRO[key]), 10)


def contenders(key):
    return ("ours", "ours sparing", "compile") + (("fsdp2",) if key in SECOND else ())


def verdict(part, key, one):
    """Tokens a second over the better of PyTorch's, at the same micro-batch, and memory over its."""
    rates, memory = {}, {}
    for contender in contenders(key):
        rows = [part.cases.get(f"{key} turn {each} {contender}", {}) for each in range(TURNS)]
        values = [row["tokens_per_s"] for row in rows if row.get("tokens_per_s")]
        if values:
            rates[contender] = statistics.median(values)
            memory[contender] = next((row["memory_bytes"] for row in rows if row.get("memory_bytes")), None)
    theirs = {name: rate for name, rate in rates.items() if not name.startswith("ours")}
    mine = {name: rate for name, rate in rates.items() if name.startswith("ours")}
    if not theirs or not mine:
        raise check.Lacking("no figures of " + ("PyTorch" if mine else "ours"))
    bar = max(theirs, key=theirs.get)
    best = max(mine, key=mine.get)
    least = min((memory[name] for name in mine if memory[name]), default=None)
    share = least / memory[bar] if least and memory[bar] else None
    return {"ok": None, "tokens_per_s": rates, "memory_bytes": memory, "bar": bar, "ours": best, "speed": mine[best] / theirs[bar],
            "memory": {"share": share} if share else None,
            "targets": {"now": [one["speed"][0], one["memory"][0]], "goal": [one["speed"][1], one["memory"][1]]}}


def alone(part, key, one):
    """PyTorch without recompute: whether it fits at all."""
    return pytorch.run(part, one, "compile", pytorch.Settings(MICRO[key]), 3)


def suites(part):
    """(program, suite) of all tests of kernels, or the reason why there are none."""
    try:
        return kernels.work(part), None
    except (check.Lacking, check.Wrong) as why:
        return [], why


def pairs(part, models, keys):
    for key in keys:
        for each in range(TURNS):
            for contender in contenders(key):
                yield f"{key} turn {each} {contender}", turn, (part, key, models[key], contender)
        yield f"{key} verdict", verdict, (part, key, models[key])


def cases(part):
    models = pytorch.SMALL if part.small else pytorch.MODELS
    first, second = (tuple(models), ()) if part.small else (FIRST, SECOND)
    one = models[first[0]]
    micro = MICRO[first[0]]
    yield "smoke", ours, (part, "smoke", one, micro, 15, False, ("--trace", part.work / "smoke.trace.json"))
    yield "smoke without graph", ours, (part, "smoke-without-graph", one, micro, 15, False, ("--no-graph",))
    found, why = suites(part)
    if why:
        yield "kernels", check.fails_with, (why,)
    for program, suite in found:
        yield f"{program.name} {suite}", kernels.run_suite, (part, program, suite)
    for model in ("gpt2-tiny", "llama-tiny"):
        for precision in ("fp32", "bf16"):
            yield f"{model} {precision} losses", numbers.losses_as_cpu, (part, model, precision)
    for how in ("streams", "processes"):
        yield f"2 ranks zero3 {how}", numbers.same_curve, (part, "llama-tiny", "shardwise", 2, dict(zero_stage=3, dp_shard=2), how)
    yield from pairs(part, models, first)
    yield from pairs(part, models, second)
    if second:
        yield "llama-3b compile without recompute", alone, (part, "llama-3b", models["llama-3b"])
    for tool in ("memcheck", "racecheck"):
        for program, suite in found[:SUITES]:
            yield f"{tool} {program.name} {suite}", sanitizers.watched, (part, tool, program, suite)
    for begins, resumes in (("cuda", "cpu"), ("cpu", "cuda")):
        yield f"fp32 {begins} then {resumes}", checkpoints.there_and_back, (part, "fp32", begins, resumes)


def main():
    part = check.Part("short")
    every = list(cases(part))
    of_torch = pytorch.torch_build(part)
    builds = {name: of_torch for name, function, arguments in every
              if function in (turn, alone) and not str(arguments[-1]).startswith("ours")}
    part.plan([name for name, _, _ in every], builds)
    for name, function, arguments in every:
        if name.endswith(" verdict"):
            part.cases.pop(name, None)  # of what is there now
        if part.case(name, function, *arguments) is None:
            break
    part.finish()


if __name__ == "__main__":
    main()
