#!/usr/bin/env python3
"""Losses and gradients of tiny models against the CPU's; every stage, engine and number of ranks against one rank's curve.

Bounds. fp32: sums of other orders, 1e-4 of a gradient's norm, 1e-5 of a first loss. bf16: the GPU rounds where the CPU
rounds, so its gradients may be no further from fp32's than 1.5 times the CPU's own bf16 gradients, and its losses within
1e-2. Curves of several ranks: reductions of another order, within 1e-3 of every loss after five steps of fp32.
"""
import shutil

import check
import training

MODELS = ("gpt2-tiny", "llama-tiny", "qwen3-tiny")
STEPS = 5
LAYOUTS = {  # locks of dp_shard x dp_replicate on so many ranks
    2: [("zero0", dict(zero_stage=0, dp_shard=2)), ("zero1", dict(zero_stage=1, dp_shard=2)),
        ("zero2", dict(zero_stage=2, dp_shard=2)), ("zero3", dict(zero_stage=3, dp_shard=2))],
    4: [("zero0", dict(zero_stage=0, dp_shard=4)), ("zero1", dict(zero_stage=1, dp_shard=4)),
        ("zero2", dict(zero_stage=2, dp_shard=4)), ("zero3", dict(zero_stage=3, dp_shard=4)),
        ("hsdp2x2", dict(zero_stage=3, dp_shard=2, dp_replicate=2))],
}
ENGINES = (("megatron_ddp", 1), ("megatron_fsdp", 3), ("fsdp2", 3), ("fsdp1", 3))


def one_rank(part, model, device, precision, words=(), name="curve"):
    """The run of one rank that all others are held against; made once."""
    path = training.plan(part, f"{model}-{device}-{precision}", model, device=device, precision=precision, dp_shard=1)
    return training.train(part, f"{model}-{device}-{precision}-{name}", path, device, STEPS, words)


def gradients(part, model, device, precision):
    """A step's gradients: the first moments after one step are (1 - beta) of them; no clipping."""
    name = f"{model}-{device}-{precision}-gradients"
    folder = part.work / name
    shutil.rmtree(folder, ignore_errors=True)
    path = training.plan(part, f"{model}-{device}-{precision}", model, device=device, precision=precision, dp_shard=1)
    training.train(part, name, path, device, 1, ["--clip-norm", 0, "--checkpoint-dir", folder])
    every = training.tensors(training.latest_checkpoint(folder))
    return {key: values for key, values in every.items() if key.startswith("first_moment/")}


def losses_as_cpu(part, model, precision):
    gpu, cpu = (one_rank(part, model, device, precision) for device in ("cuda", "cpu"))
    first = training.largest_difference(gpu.losses[:1], cpu.losses[:1])
    far = training.largest_difference(gpu.losses, cpu.losses)
    norm = training.largest_difference(gpu.norms[:1], cpu.norms[:1])
    bound = dict(first=1e-5, all=1e-3, norm=1e-4) if precision == "fp32" else dict(first=1e-2, all=1e-2, norm=2e-2)
    row = {"ok": first <= bound["first"] and far <= bound["all"] and norm <= bound["norm"], "bounds": bound,
           "first_loss": first, "all_losses": far, "first_norm": norm, "gpu": gpu.losses, "cpu": cpu.losses}
    if not row["ok"]:
        row["why"] = f"first loss {first:.2g}, losses {far:.2g}, first norm {norm:.2g} away from the CPU's"
    return row


def gradients_as_cpu(part, model, precision):
    exact = gradients(part, model, "cpu", "fp32")
    gpu = gradients(part, model, "cuda", precision)
    whole, worst = training.relative_distance(gpu, exact)
    row = {"whole": whole, "worst_tensor": worst}
    if precision == "fp32":
        row.update(ok=whole <= 1e-4 and worst <= 1e-3, bounds=[1e-4, 1e-3])
    else:
        own, own_worst = training.relative_distance(gradients(part, model, "cpu", precision), exact)
        row.update(ok=whole <= 1.5 * own + 1e-3 and worst <= 1.5 * own_worst + 1e-2, bounds=[1.5 * own + 1e-3, 1.5 * own_worst + 1e-2])
    if not row["ok"]:
        row["why"] = f"gradients {whole:.2g} of their norm away from fp32, the worst tensor {worst:.2g}; allowed {row['bounds']}"
    return row


def same_bits(part, model, words):
    """A second run, or one with other flags that must not change a bit."""
    first, second = one_rank(part, model, "cuda", "bf16"), one_rank(part, model, "cuda", "bf16", words, "again")
    ok = first.losses == second.losses and first.norms == second.norms
    return {"ok": ok, "losses": first.losses, **({} if ok else {"why": f"{second.losses} instead of {first.losses}"})}


def same_curve(part, model, engine, ranks, locks, how):
    one = one_rank(part, model, "cuda", "fp32")
    name = f"{model}-{engine}-{ranks}-" + "-".join(f"{key}{value}" for key, value in locks.items())
    path = training.plan(part, name, model, gpus=ranks, precision="fp32", engine=engine, **locks)
    if how == "streams":
        run = training.train(part, f"{name}-{how}", path, "cuda", STEPS, ["--share-gpu", "--ranks", ranks])
    else:
        run = training.train_processes(part, f"{name}-{how}", path, ranks, STEPS)
    far = training.largest_difference(run.losses, one.losses)
    arena = run.report["verdict"]["point_bytes"] if run.report else None
    row = {"ok": far <= 1e-3, "far": far, "losses": run.losses, "arena_bytes": arena}
    if not row["ok"]:
        row["why"] = f"losses {far:.2g} away from one rank's"
    return row


def cases(part):
    models = MODELS[:1] if part.small else MODELS
    for model in models:
        for precision in ("fp32", "bf16"):
            yield f"{model} {precision} losses", losses_as_cpu, (part, model, precision)
            yield f"{model} {precision} gradients", gradients_as_cpu, (part, model, precision)
    yield "a second run has the same bits", same_bits, (part, models[-1], [])
    yield "graphs change no bit", same_bits, (part, models[-1], ["--no-graph"])
    for how in ("streams", "processes"):
        for ranks, layouts in LAYOUTS.items():
            for name, locks in layouts[-1:] if part.small else layouts:
                yield f"{how} {ranks} {name}", same_curve, (part, models[-1], "shardwise", ranks, locks, how)
        for engine, stage in ENGINES[:1] if part.small else ENGINES:
            for ranks in (2,) if part.small else (2, 4):
                yield (f"{how} {ranks} {engine}", same_curve,
                       (part, models[-1], engine, ranks, dict(zero_stage=stage, dp_shard=ranks), how))


def main():
    part = check.Part("numbers")
    every = list(cases(part))
    part.plan([name for name, _, _ in every])
    for name, function, arguments in every:
        part.case(name, function, *arguments)
    part.finish()


if __name__ == "__main__":
    main()
