"""The least that a step takes where each of its operations runs at the best rate that this GPU showed.

The planner's own sum over the operations of a step, by a GPU without starts, launches, tails or waves: products at the best
rate of gpu_ceilings, attention at its best rate by size of heads, all else by its bytes at the rate of copies.
"""
import json

import check
import training

# Of one layout: seconds and FLOPs that `shardwise estimate` gives.
FIGURES = ("model_flops", "flops_formula")
FIT = {"measured": False, "fitted_on": "", "method": "the best that gpu_ceilings measured here, without starts and tails"}


def attention_curve(seen, direction, peak, products):
    """Rates by size of heads; where attention was not measured, products' rate, which it does not reach."""
    sizes = sorted(int(key.split("_")[2]) for key in seen if key.startswith(f"attention_{direction}_"))
    rates = [(size, seen[f"attention_{direction}_{size}_tflops"]) for size in sizes] or [(64, products)]
    return {"start_us": 0, "block_us": 0, "tail_share": 0, "bandwidth_share": 1,
            "rates": [{"head_dim": size, "rate_share": min(1, rate / peak)} for size, rate in rates], "fit": FIT}


def cluster_at_ceilings(part):
    """A cluster file of this GPU at its ceilings, and the peak that rates are shares of; None where none were measured."""
    seen = training.ceilings(part)
    if not seen.get("best_tflops_bf16"):
        return None
    made = training.cluster_json(part)
    gpu = made["gpu"]
    best, copy = seen["best_tflops_bf16"], seen["best_copy_gb_per_s"]
    peak = max(best, gpu["peak_tflops"]["bf16"])
    gpu["peak_tflops"]["bf16"] = peak
    gpu["memory_bandwidth_gb_per_s"] = copy
    gpu["launch_latency_us"] = 0
    gpu["gemm"] = [{"dtype": "bf16", "rate_share": best / peak, "bandwidth_share": 1,
                    "tiles": [{"rows": 1, "columns": 1, "rate_share": 1}], "fit": FIT}]
    for direction in ("forward", "backward"):
        gpu[f"attention_{direction}"] = attention_curve(seen, direction, peak, best)
    gpu.pop("attention_by_type", None)
    gpu["memory_bound"] = {"start_us": 0, "bandwidth_share": 1, "fit": FIT}
    path = part.work / "at-ceilings.json"
    check.write_json(path, made)
    return path


def estimate(part, of, one, micro, recompute):
    """What `shardwise estimate` says of one step on one GPU, whether or not it fits."""
    done = part.run(part.program("shardwise"), "estimate", "--model", one["model"], "--cluster", of, "--gpus", 1, "--engine",
                    "shardwise", "--precision", "bf16", "--loss", "chunked", "--sequence-length", one["sequence"],
                    "--global-batch-size", one["batch"], "--micro-batch-size", micro, "--recompute", recompute, "--json", limit=60)
    if done.code not in (0, 1):
        raise check.Wrong(f"shardwise estimate: {done.why()}")
    return json.loads(done.out)


def figures(part, one, micro, recompute, step_s):
    """Of a step of `step_s` seconds: its floor, its share of the floor, FLOPs by which formula, the peak and the MFU."""
    at_peak = estimate(part, training.cluster(part), one, micro, recompute)
    # What the formula counts over the peak is the MFU's share of the step.
    peak = at_peak["model_flops"] / (at_peak["mfu"] * at_peak["step_time_s"])
    row = {key: at_peak[key] for key in FIGURES}
    row.update(peak_tflops=peak / 1e12, mfu=at_peak["model_flops"] / step_s / peak)
    ceilings = cluster_at_ceilings(part)
    if ceilings is not None:
        least = estimate(part, ceilings, one, micro, recompute)
        row["floor"] = {"step_s": least["step_time_s"], **least["compute"], "optimizer_s": least["time"]["optimizer_s"]}
        row["floor_over_step"] = least["step_time_s"] / step_s
    return row
