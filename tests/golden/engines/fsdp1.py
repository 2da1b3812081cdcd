#!/usr/bin/env python3
"""PyTorch's own FSDP1 (FullyShardedDataParallel): flat parameters and the peaks of two steps.

The model trains under FakeTensorMode in a fake process group, every block a unit and the rest the
root's, and torch.distributed._tools.mem_tracker counts every storage. Bytes:

    main_weights   this rank's shards of the flat parameters
    total          the peak of a pass, all that is allocated; after a step, what is then there
                   (without AdamW's counters of steps)

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 transformers==5.23.0
    venv/bin/python tests/golden/engines/fsdp1.py > tests/golden/engines/fsdp1.json
"""

import sys
import time
import warnings

import golden
import shapes
import torch
import torch_llama as llama
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.mem_tracker import MemTracker
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import MixedPrecision, ShardingStrategy
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

warnings.filterwarnings("ignore")

MODELS = {
    "8b-2": shapes.cut(shapes.LLAMA_8B, 2), "8b-4": shapes.cut(shapes.LLAMA_8B, 4),
    "8b": shapes.LLAMA_8B, "8b-mha-4": shapes.cut(shapes.LLAMA_8B, 4, num_key_value_heads=32),
    "1b": shapes.LLAMA_1B, "1b-tied": {**shapes.LLAMA_1B, **shapes.TIED},
    "1b-mha-6": shapes.llama(6, 2048, 5504, 16, 16, 32000),
    "13b-4": shapes.cut(shapes.LLAMA_13B, 4), "odd": shapes.ODD, "odder": shapes.ODDER,
    "small-table-4": shapes.llama(4, 4096, 14336, 32, 32, 2048),
    "qwen2-7b-4": shapes.cut(shapes.QWEN2_7B, 4), "gpt2": shapes.GPT2,
    "thin-4": shapes.llama(4, 4096, 2048, 32, 8, 32000),
    "phi3-4": shapes.cut(shapes.PHI3, 4), "neox-4": shapes.cut(shapes.NEOX, 4),
    "gemma2-2": shapes.cut(shapes.GEMMA2, 2), "opt-4": shapes.cut(shapes.OPT, 4)}


def case(model, ranks, mbs, seq, recompute="none", **more):
    return {"model": model, "ranks": ranks, "mbs": mbs, "seq": seq, "recompute": recompute,
            "strategy": "FULL_SHARD", "step": True, "replicate": 1, **more}


def cases():
    yield case("8b-2", 8, 1, 1024)
    yield case("8b-2", 8, 1, 1024, "full")
    yield case("8b-2", 8, 1, 256)
    yield case("8b-2", 48, 1, 1024)
    yield case("8b-4", 8, 1, 1024)
    yield case("8b-4", 8, 1, 4096)
    yield case("8b-4", 8, 1, 4096, "full")
    yield case("8b-4", 64, 1, 8192, "full")
    yield case("8b-4", 8, 1, 1024, strategy="SHARD_GRAD_OP")
    yield case("8b-4", 8, 1, 1024, strategy="NO_SHARD")
    yield case("8b-4", 8, 1, 1024, "full", strategy="NO_SHARD")
    yield case("8b-4", 8, 1, 4096, strategy="NO_SHARD")
    yield case("small-table-4", 8, 1, 1024, strategy="NO_SHARD")
    yield case("1b-mha-6", 8, 2, 2048, "full", strategy="NO_SHARD")
    yield case("1b-tied", 8, 1, 1024, strategy="NO_SHARD")
    yield case("8b-4", 8, 1, 1024, strategy="HYBRID_SHARD", replicate=2)
    yield case("8b-mha-4", 8, 1, 1024)
    yield case("8b-mha-4", 8, 1, 4096, "full")
    yield case("1b", 8, 1, 1024, "full")
    yield case("1b", 8, 1, 4096)
    yield case("1b-tied", 8, 1, 1024)
    yield case("1b-tied", 8, 1, 1024, "full")
    yield case("1b-mha-6", 8, 1, 256)
    yield case("1b-mha-6", 8, 2, 2048)
    yield case("1b-mha-6", 8, 2, 2048, "full")
    yield case("13b-4", 8, 1, 1024)
    yield case("13b-4", 8, 1, 4096, "full")
    yield case("small-table-4", 8, 1, 1024)
    yield case("small-table-4", 8, 1, 1024, "full")
    yield case("qwen2-7b-4", 8, 1, 1024)
    yield case("qwen2-7b-4", 64, 1, 1024, "full")
    yield case("gpt2", 8, 4, 1024)
    yield case("odd", 8, 1, 256)
    yield case("odd", 48, 1, 256, "full")
    yield case("thin-4", 8, 1, 4096)
    yield case("phi3-4", 8, 1, 4096)
    yield case("neox-4", 8, 2, 2048)
    yield case("gemma2-2", 8, 1, 4096, "full")
    yield case("opt-4", 8, 1, 2048, "full")
    for ranks in (8, 48):
        yield case("8b", ranks, 1, 1024, step=False)
        yield case("odder", ranks, 1, 1024, step=False)


def name(case):
    words = [f"{case['model']} dp {case['ranks']}", f"{case['mbs']} x {case['seq']}"]
    words[0] += f" x {case['replicate']}" if case["replicate"] > 1 else ""
    words += [case["strategy"]] if case["strategy"] != "FULL_SHARD" else []
    words += ["full recompute"] if case["recompute"] == "full" else []
    words += [] if case["step"] else ["states"]
    return ", ".join(words)


def mesh_of(case):
    """Of HYBRID_SHARD. It reads values, so it is made before tensors are fake."""
    if case["replicate"] == 1:
        return None
    return init_device_mesh("cpu", (case["replicate"], case["ranks"]),
                            mesh_dim_names=("replicate", "shard"))


def wrap(model, case, mesh):
    block = type(llama.blocks_of(model)[0])
    return FSDP(model, auto_wrap_policy=ModuleWrapPolicy({block}), device_mesh=mesh,
                sharding_strategy=ShardingStrategy[case["strategy"]], limit_all_gathers=True,
                device_id=torch.device("cpu"), mixed_precision=MixedPrecision(
                    param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16))


def total(tracker, kind, counters):
    return sum(snapshot["Total"] if "Total" in snapshot else
               next(v for k, v in snapshot.items() if str(k) == "Total")
               for snapshot in tracker.get_tracker_snapshot(kind).values()) - counters


def steps_of(fsdp, case, units):
    """Peaks of the passes of two steps, and what is there after each."""
    optimizer = torch.optim.AdamW(fsdp.parameters(), lr=1e-4, fused=True)
    tracker = MemTracker()
    tracker.track_external(fsdp, optimizer)
    tokens = torch.randint(0, 100, (case["mbs"], case["seq"]))
    tracker.track_external(tokens)
    ledger, counters = {}, 0
    for step in ("first", "steady"):
        with tracker:
            logits = fsdp(input_ids=tokens, use_cache=False).logits
            loss = llama.loss_of(logits, tokens, "materialised")
            del logits
            loss.backward()
            del loss
        ledger[f"{step}_forward_backward"] = {"total": total(tracker, "peak", counters)}
        tracker.reset_mod_stats()
        with tracker:
            optimizer.step()
        counters = 4 * units
        ledger[f"{step}_optimizer_step"] = {"total": total(tracker, "current", counters)}
        optimizer.zero_grad(set_to_none=True)
        tracker._peak_mem, tracker._peak_mem_snap = {}, {}
    return ledger


def measure(case):
    with llama.Group(case["ranks"] * case["replicate"]):
        mesh = mesh_of(case)
        with FakeTensorMode(allow_non_fake_inputs=True):
            model = llama.build(MODELS[case["model"]], case["recompute"] == "full")
            fsdp = wrap(model, case, mesh)
            shards = [m._handle.flat_param.numel() for m in FSDP.fsdp_modules(fsdp) if m._handle]
            ledger = {"after_init": {"main_weights": 4 * sum(shards)}}
            ledger |= steps_of(fsdp, case, len(shards)) if case["step"] else {}
            ledger.setdefault("steady_optimizer_step", {}).update(
                {"optimizer_moments": 8 * sum(shards), "gradients": 4 * sum(shards)})
    layout = {"dp_shard": case["ranks"], "zero_stage": 0 if case["strategy"] == "NO_SHARD" else 3,
              "micro_batch_size": case["mbs"]}
    layout |= {"recompute": "full"} if case["recompute"] == "full" else {}
    layout |= {"dp_replicate": case["replicate"]} if case["replicate"] > 1 else {}
    layout |= {"reshard_after_forward": False} if case["strategy"] == "SHARD_GRAD_OP" else {}
    return {"name": name(case), "model": case["model"], "layout": layout,
            "job": {"sequence_length": case["seq"], "loss": "materialised",
                    "rms_norm": "composite"}, "ledger": ledger}


def main():
    results = []
    for each in cases():
        if not golden.chosen(name(each)):
            continue
        begin = time.time()
        try:
            results.append(measure(each))
        except Exception as problem:
            if "--keep-going" not in sys.argv:
                raise
            print(f"{type(problem).__name__}: {problem}"[:300], file=sys.stderr)
        print(f"{name(each)} [{time.time() - begin:.0f} s]", file=sys.stderr, flush=True)
    golden.dump("tests/golden/engines/fsdp1.py", llama.versions(), MODELS, results)


if __name__ == "__main__":
    main()
