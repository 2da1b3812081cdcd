#!/usr/bin/env python3
"""Megatron-Core's own DistributedDataParallel and DistributedOptimizer: states and buckets.

A GPT of megatron.core is built of tensors without bytes in a fake process group; its buffers and
the optimizer's shards are read. The optimizer's shard of the fullest rank is worked out from the
buffers' own index maps, which for the rank that was built give what its optimizer holds. Bytes:

    weights, gradients   the buffers' (of a table that is not in one, the parameters'); weights
                         with the router's bias and counts, which are buffers of its module
    main_weights         what the optimizer updates, and moments, on the fullest rank
    buckets              of gradients, in the order in which backward fills them, dense ones
    expert_buckets       and those of routed experts

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 einops
    MEGATRON=megatron-lm venv/bin/python tests/golden/engines/megatron_ddp.py \\
        > tests/golden/engines/megatron_ddp.json
"""

import contextlib
import io
import os
import subprocess
import sys

from without_gpu import CudaHere

import golden
import megatron_models as megatron
import shapes
import torch
from megatron.core import parallel_state
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer

MODELS = {
    "8b": shapes.LLAMA_8B, "13b": shapes.LLAMA_13B, "70b": shapes.LLAMA_70B,
    "1b": shapes.LLAMA_1B, "1b-tied": {**shapes.LLAMA_1B, **shapes.TIED},
    "odd": shapes.ODD, "odd-tied": {**shapes.ODD, **shapes.TIED}, "odder": shapes.ODDER,
    "odder-8-tied": shapes.cut(shapes.ODDER, 8, **shapes.TIED), "qwen2-7b": shapes.QWEN2_7B,
    "qwen2-72b": shapes.QWEN2_72B, "qwen3-1b": shapes.QWEN3_1B, "mixtral": shapes.MIXTRAL,
    "deepseek": shapes.DEEPSEEK,
    "deepseek-lora": {**shapes.DEEPSEEK, "q_lora_rank": 1536},
    "deepseek-mtp": {**shapes.DEEPSEEK, "q_lora_rank": 1536, "model_type": "deepseek_v3",
                     "n_shared_experts": 1, "num_nextn_predict_layers": 1}, "gpt2": shapes.GPT2}


def case(model, dp, *, zero=1, stage=0, fp32=True, overlap=True, **more):
    """A case by its model, degrees and flags; what is not a layout's own is in `more`."""
    megatron_words = {key: more.pop(key) for key in ("bucket", "busbw", "sequential") if key in more}
    layout = {"dp_shard": dp, "zero_stage": zero, **more}
    if more.get("tp", 1) > 1:
        layout["sequence_parallel"] = True
    layout |= {key: value for key, value in {
        "fp32_gradients": fp32, "overlap_grad_reduce": overlap,
        "overlap_param_gather": overlap and zero == 1}.items() if not value}
    return {"model": model, "layout": layout, "stage": stage, **megatron_words}


def on(layout, key):
    return layout.get(key, True)


def cases():
    for dp in (2, 8, 48, 64):
        yield case("8b", dp)
    for dp in (8, 48):
        yield case("8b", dp, overlap=False)
        yield case("8b", dp, fp32=False)
        yield case("8b", dp, zero=0)
        yield case("8b", dp, busbw=True)
    yield case("8b", 8, bucket=10_000_000)
    yield case("8b", 512)
    yield case("8b", 8, zero=0, overlap=False)
    yield case("8b", 8, zero=0, fp32=False)
    for dp in (4, 32, 24):
        yield case("8b", dp, dp_replicate=2)
    for dp in (8, 48, 64):
        yield case("1b-tied", dp)
        yield case("13b", dp)
        yield case("odder", dp)
    yield case("1b", 64)
    yield case("13b", 48, fp32=False, busbw=True)
    yield case("odder", 2, bucket=5_000_000)
    yield case("gpt2", 8, bucket=0)
    yield case("odder", 8, busbw=True)
    yield case("odder", 12, dp_replicate=4)
    for dp in (2, 8, 48, 64):
        yield case("odd", dp)
    yield case("odd-tied", 48)
    yield case("odder", 48, overlap=False)
    yield case("odder", 48, zero=0)
    yield case("odder", 48, fp32=False)
    for dp in (8, 48):
        yield case("8b", dp, tp=2)
        yield case("8b", dp, pp=2)
        yield case("8b", dp, pp=2, stage=1)
        yield case("8b", dp, tp=2, pp=2)
        yield case("8b", dp, tp=2, pp=2, stage=1)
        yield case("1b-tied", dp, pp=2)
        yield case("1b-tied", dp, pp=2, stage=1)
    yield case("8b", 8, tp=8)
    yield case("1b-tied", 8, pp=2, stage=1, zero=0)
    yield case("odder-8-tied", 6, pp=2, stage=1)
    yield case("odder-8-tied", 48, pp=2)
    yield case("odder-8-tied", 48, pp=2, stage=1)
    for dp in (4, 24):
        yield case("8b", dp, cp=2)
    yield case("8b", 4, cp=2, tp=2)
    yield case("qwen2-72b", 64, tp=8)
    yield case("qwen2-7b", 256, tp=2)
    yield case("qwen2-7b", 8)
    yield case("qwen2-7b", 8, tp=4)
    yield case("qwen3-1b", 8)
    yield case("qwen3-1b", 8, tp=4)
    yield case("70b", 16, tp=4, pp=4)
    yield case("70b", 24, tp=4, pp=4, stage=3)
    for sequential in (True, False):
        for dp, ep in ((8, 1), (8, 8), (64, 8), (48, 8)):
            yield case("mixtral", dp, ep=ep, sequential=sequential)
        yield case("mixtral", 8, tp=2, ep=4, etp=1, sequential=sequential)
        yield case("deepseek", 8, ep=4, sequential=sequential)
        yield case("deepseek", 24, ep=8, sequential=sequential)
    yield case("mixtral", 48, ep=8, overlap=False)
    yield case("mixtral", 8, ep=8, zero=0)
    yield case("mixtral", 8, ep=2, fp32=False)
    yield case("deepseek", 8)
    yield case("deepseek-lora", 8, ep=4)
    yield case("deepseek-lora", 8, tp=2, ep=4, etp=1)
    yield case("deepseek-mtp", 8, ep=4)
    yield case("deepseek-mtp", 8, ep=4, pp=2)
    yield case("deepseek-mtp", 8, ep=4, pp=2, stage=1)
    yield case("gpt2", 8)
    yield case("gpt2", 48)
    yield case("gpt2", 8, tp=2)
    yield case("gpt2", 8, fp32=False)


def name(case):
    """The case in words: "8b dp 8 tp 2, no overlap"."""
    layout = case["layout"]
    degrees = " ".join(f"{key} {layout[key]}" for key in ("tp", "pp", "cp", "ep")
                       if layout.get(key, 1) > 1)
    words = [" ".join(filter(None, [case["model"], f"dp {layout['dp_shard']}",
                                    f"x {layout['dp_replicate']}" if "dp_replicate" in layout
                                    else "", degrees]))]
    words += [f"stage {case['stage']}"] if layout.get("pp", 1) > 1 else []
    words += ["ZeRO-0"] if layout["zero_stage"] == 0 else []
    words += [] if on(layout, "overlap_grad_reduce") else ["no overlap"]
    words += [] if on(layout, "fp32_gradients") else ["bf16 gradients"]
    words += [f"buckets of {case['bucket']}"] if "bucket" in case else []
    words += ["padded for busbw"] if "busbw" in case else []
    words += ["experts one by one"] if case.get("sequential") else []
    return ", ".join(words)


def words_of(case):
    words = {"layout": dict(case["layout"])}
    if case["stage"]:
        words["stage"] = case["stage"]
    if "bucket" in case:
        # A plan's 0 is Megatron's default; 0 elements are full with any tensor, as 1 is.
        words["layout"]["ddp_bucket_size"] = case["bucket"] or 1
    if "busbw" in case:
        words["layout"]["ddp_pad_buckets_for_high_nccl_busbw"] = True
    if case.get("sequential"):
        words["job"] = {"grouped_gemm": False}
    return words


def ddp_config(case):
    """As Megatron-LM's training loop makes it (megatron/training/training.py)."""
    layout = case["layout"]
    config = DistributedDataParallelConfig(
        grad_reduce_in_fp32=on(layout, "fp32_gradients"),
        overlap_grad_reduce=on(layout, "overlap_grad_reduce"),
        overlap_param_gather=on(layout, "overlap_param_gather"),
        use_distributed_optimizer=layout["zero_stage"] == 1, bucket_size=case.get("bucket"),
        pad_buckets_for_high_nccl_busbw="busbw" in case,
        num_distributed_optimizer_instances=layout.get("dp_replicate", 1))
    if config.bucket_size is None:
        ranks = parallel_state.get_data_parallel_world_size(with_context_parallel=True)
        config.bucket_size = max(40_000_000, 1_000_000 * ranks)
    if not on(layout, "overlap_grad_reduce"):
        config.bucket_size = None
    return config


def fullest_rank(buffer):
    """Elements that the optimizer has of a buffer, by rank that shares it."""
    ranks = buffer.data_parallel_world_size
    elements = [0] * ranks
    for begin, end, bucket in buffer.param_index_map.values():
        start, stop = buffer.bucket_indices[bucket]
        shard = (stop - start) // ranks
        for rank in range((begin - start) // shard, min(ranks, (end - start - 1) // shard + 1)):
            elements[rank] += (min(end, start + (rank + 1) * shard) -
                               max(begin, start + rank * shard))
    return elements


def measure(case):
    layout = case["layout"]
    with megatron.model_parallel(layout, case["stage"]):
        with CudaHere(), contextlib.redirect_stdout(io.StringIO()):
            grouped = not case.get("sequential", False)
            gpt, config = megatron.build(MODELS[case["model"]], layout, case["stage"],
                                         grouped=grouped)
            ddp = DistributedDataParallel(config, ddp_config(case), gpt)
            settings = OptimizerConfig(
                optimizer="adam", lr=1e-4, bf16=True, params_dtype=torch.bfloat16,
                use_distributed_optimizer=layout["zero_stage"] == 1)
            optimizer = get_megatron_optimizer(settings, [ddp], use_gloo_process_groups=False)
            main = sum(p.numel() for one in getattr(optimizer, "chained_optimizers", [optimizer])
                       for group in one.optimizer.param_groups for p in group["params"])
        size = lambda t: t.numel() * t.element_size()
        weights = gradients = own = 0
        per_rank = {}
        for buffer in ddp.buffers + ddp.expert_parallel_buffers:
            gradients += size(buffer.grad_data)
            weights += (size(buffer.param_data) if buffer.param_data is not None
                        else sum(size(p) for p in buffer.params))
            shares = fullest_rank(buffer)
            own += shares[buffer.data_parallel_group.rank()]
            per_rank.setdefault(len(shares), []).append(shares)
        weights += sum(size(each) for name, each in gpt.named_buffers() if ".router." in name)
        fullest = main
        if layout["zero_stage"] == 1:
            assert own == main, (own, main)
            fullest = sum(max(map(sum, zip(*shares))) for shares in per_rank.values())
        element = ddp.buffers[0].grad_data.element_size()
        buckets = lambda buffers: golden.compress(
            [(end - begin) * element for b in buffers for begin, end in b.bucket_indices])
        lists = {"buckets": buckets(ddp.buffers)}
        if ddp.expert_parallel_buffers:
            lists["expert_buckets"] = buckets(ddp.expert_parallel_buffers)
        return {"name": name(case), "model": case["model"], **words_of(case), "ledger": {
            "after_init": {"weights": weights, "gradients": gradients,
                           "main_weights": 4 * fullest},
            "steady_optimizer_step": {"optimizer_moments": 8 * fullest}}, "lists": lists}


def versions():
    """Of the checkout, whose commit MEGATRON_COMMIT names where it is no repository of git."""
    commit = os.environ.get("MEGATRON_COMMIT") or subprocess.run(
        ["git", "-C", os.environ["MEGATRON"], "rev-parse", "--short=8", "HEAD"],
        capture_output=True, text=True, check=True).stdout.strip()
    core = megatron.core.__version__.split("+")[0]
    return {"Megatron-LM": f"{commit} (core {core})",
            "PyTorch": torch.__version__.split("+")[0]}


def main():
    results = []
    for each in cases():
        if not golden.chosen(name(each)):
            continue
        try:
            results.append(measure(each))
        except Exception as problem:
            raise SystemExit(f"{name(each)}: {type(problem).__name__}: {problem}") from problem
    golden.dump("tests/golden/engines/megatron_ddp.py", versions(), MODELS, results)


if __name__ == "__main__":
    sys.exit(main())
