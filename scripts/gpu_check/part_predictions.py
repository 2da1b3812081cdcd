#!/usr/bin/env python3
"""Step times as simulated against step times as measured, over models, micro-batches, recompute and sequence lengths.

On the catalogue's GPU with the curves of products, attention and moves fitted to this one; where that fails, on the catalogue's as it
is, which the row says. The median of the errors must be at most 5 %.
"""
import json
import statistics

import check
import training

CONFIGURATIONS = (  # name, model, sequence, micro-batch, recompute
    ("124m 1k", "gpt2", 1024, 16, "none"),
    ("124m 1k small", "gpt2", 1024, 4, "none"),
    ("124m 1k recompute", "gpt2", 1024, 32, "full"),
    ("355m 1k", "gpt2-medium", 1024, 8, "none"),
    ("1.5b 1k", "gpt2-xl", 1024, 4, "none"),
    ("1.5b 1k recompute", "gpt2-xl", 1024, 8, "full"),
    ("1b 2k", "llama-3.2-1b", 2048, 4, "none"),
    ("1b 8k", "llama-3.2-1b", 8192, 1, "none"),
    ("1b 32k recompute", "llama-3.2-1b", 32768, 1, "full"),
    ("3b 8k recompute", "llama-3.2-3b", 8192, 1, "full"),
)
BOUND = 0.05
LEAST = 8  # configurations that the bound is for


def calibrate(part):
    """Fits the curves of this GPU's products, attention and moves to its own times; the rest stays the catalogue's."""
    gemms, moves, attention, before, fitted = (
        part.work / name for name in ("gemm.csv", "moves.csv", "attention.csv", "gpu-before.json", "gpu.json"))
    said = json.loads(part.must(part.program("gpu_ceilings"), "--gemm-csv", gemms, "--moves-csv", moves, "--attention-csv", attention,
                                limit=400).out)
    cluster = training.cluster_json(part)
    check.write_json(before, cluster["gpu"])
    sources = [word for kind in ("gemm", "attention", "memory_bound", "sustained")
               for word in ("--source", f"{kind}=this machine, gpu_check.sh")]
    residuals = part.must(part.program("shardwise"), "fit", "--gpu", before, "--gemm", gemms, "--attention", attention,
                          "--memory-bound", moves, "--sustained", f"bf16={said['sustained_tflops_bf16']}", *sources, "-o", fitted,
                          limit=120).out
    cluster["gpu"] = check.read_json(fitted)
    check.write_json(part.options.out / "calibrated.json", cluster)
    return {"ok": None, **said, "residuals": residuals}


def configuration(part, name, model, sequence, micro_batch, recompute):
    calibrated = part.options.out / "calibrated.json"
    of = str(calibrated) if calibrated.exists() else str(training.cluster(part))
    path = training.plan(part, name.replace(" ", "-"), model, of=of, sequence=sequence, batch=micro_batch, dp_shard=1,
                         micro_batch_size=micro_batch, recompute=recompute)
    predicted = part.work / f"{path.stem}.predicted.json"
    part.must(part.program("shardwise"), "simulate", path, "-o", predicted, limit=60)
    run = training.train(part, path.stem, path, "cuda", 15, limit=240)
    measured = part.work / f"{path.stem}.report.json"
    compared = part.run(part.program("shardwise"), "compare", predicted, measured, "--long", limit=60)
    said = check.read_json(predicted)["step_time_s"]
    seen = run.report["step_time_s"]
    return {"ok": None, "predicted_s": said, "measured_s": seen, "error": said / seen - 1, "all_s": run.times,
            "cluster": of, "tokens_per_s": micro_batch * sequence / seen, "compare": compared.out}


def verdict(part, names):
    errors = {name: part.cases[name]["error"] for name in names if "error" in part.cases.get(name, {})}
    fit = [name for name in names if part.cases.get(name, {}).get("fits", True)]
    if not errors or len(errors) < min(LEAST, len(fit)):
        raise check.Lacking(f"{len(errors)} of {len(names)} configurations were measured")
    median = statistics.median(abs(each) for each in errors.values())
    judged = len(errors) >= LEAST  # of fewer, as this GPU holds, it is a figure
    row = {"ok": median <= BOUND if judged else None, "median_error": median, "bound": BOUND, "errors": errors}
    if row["ok"] is False:
        row["why"] = f"median error {100 * median:.1f} %"
    return row


def main():
    part = check.Part("predictions")
    rows = [("tiny", "gpt2-tiny", 64, 2, "none")] if part.small else CONFIGURATIONS
    names = [row[0] for row in rows]
    first = [] if part.small else ["calibrate"]
    part.plan([*first, *names, "median"])
    for name in first:
        part.case(name, calibrate, part)
    for row in rows:
        part.case(row[0], configuration, part, *row)
    if all(name in part.cases for name in names):
        part.case("median", verdict, part, names)
    part.finish()


if __name__ == "__main__":
    main()
