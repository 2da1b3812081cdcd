#!/usr/bin/env python3
"""PyTorch's own DistributedDataParallel: its buckets and the peaks of three steps.

The model trains under FakeTensorMode in a fake process group, and
torch.distributed._tools.mem_tracker counts every storage. Parameters are fp32; passes run in them,
or in bf16 under torch.autocast as accelerate's MULTI_GPU does. `init_sync=False` leaves out the
comparison of shapes at the start, which reads values. The third step is the first with rebuilt
buckets that begins as later ones do. Bytes:

    states         parameters, and moments when there are any
    total          the peak of a pass, all that is allocated; after a step, what is then there
                   (without AdamW's counters of steps)
    first_buckets  of gradients in the first step
    buckets        and once they are rebuilt, in the order in which gradients were ready

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 transformers==5.23.0
    venv/bin/python tests/golden/engines/pytorch_ddp.py > tests/golden/engines/pytorch_ddp.json
"""

import contextlib
import sys
import time
import warnings

import golden
import shapes
import torch
import torch_llama as llama
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
from torch.distributed._tools.mem_tracker import MemTracker
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

warnings.filterwarnings("ignore")

MODELS = {
    "8b-2": shapes.cut(shapes.LLAMA_8B, 2), "8b-4": shapes.cut(shapes.LLAMA_8B, 4),
    "1b-4": shapes.cut(shapes.LLAMA_1B, 4), "1b-4-tied": shapes.cut(shapes.LLAMA_1B, 4, **shapes.TIED),
    "13b-4": shapes.cut(shapes.LLAMA_13B, 4), "odd": shapes.ODD, "odder": shapes.ODDER,
    "odd-tied": {**shapes.ODD, **shapes.TIED}, "qwen2-1b-4": shapes.cut(shapes.QWEN2_1B, 4),
    "qwen2-7b-2": shapes.cut(shapes.QWEN2_7B, 2), "qwen3-1b-4": shapes.cut(shapes.QWEN3_1B, 4),
    "gpt2": shapes.GPT2, "thin-4": shapes.llama(4, 4096, 2048, 32, 8, 32000),
    "small-8": shapes.llama(8, 256, 688, 4, 2, 4096), "phi3-2": shapes.cut(shapes.PHI3, 2),
    "neox-4": shapes.cut(shapes.NEOX, 4), "opt-4": shapes.cut(shapes.OPT, 4),
    "gemma2-2": shapes.cut(shapes.GEMMA2, 2)}


def case(model, ranks, mbs=1, seq=1024, recompute="none", precision="fp32", batches=1,
         cap=None):
    return {"model": model, "ranks": ranks, "mbs": mbs, "seq": seq, "recompute": recompute,
            "precision": precision, "batches": batches, "cap": cap}


def cases():
    for ranks in (2, 8, 48, 512):
        yield case("8b-2", ranks, seq=256)
    yield case("8b-4", 8)
    yield case("8b-4", 8, recompute="full")
    yield case("8b-4", 8, batches=2)
    yield case("8b-4", 64, recompute="full", batches=3)
    for model in ("1b-4", "1b-4-tied"):
        yield case(model, 8)
        yield case(model, 64, recompute="full", batches=2)
    yield case("13b-4", 64)
    for model in ("odd", "odder", "odd-tied"):
        yield case(model, 8, seq=256)
    yield case("odder", 48, seq=256, batches=2)
    yield case("qwen2-1b-4", 8)
    yield case("qwen2-7b-2", 8)
    yield case("qwen3-1b-4", 8, seq=512)
    yield case("gpt2", 8, 4)
    yield case("thin-4", 8, seq=4096)
    yield case("small-8", 8, 2)
    yield case("phi3-2", 8)
    yield case("neox-4", 8)
    yield case("opt-4", 8)
    yield case("gemma2-2", 8, recompute="full")
    yield case("8b-2", 8, seq=4096, precision="bf16")
    yield case("8b-4", 8, seq=8192, recompute="full", precision="bf16")
    yield case("1b-4-tied", 8, seq=4096, precision="bf16")
    yield case("gpt2", 8, 4, precision="bf16")
    yield case("thin-4", 8, seq=4096, precision="bf16")
    yield case("thin-4", 8, seq=8192, recompute="full", precision="bf16")
    yield case("8b-4", 8, seq=8192, precision="bf16", batches=2)
    yield case("8b-4", 64, mbs=2, seq=2048, precision="bf16")
    yield case("13b-4", 64, seq=4096, precision="bf16")
    yield case("qwen2-7b-2", 8, seq=4096, precision="bf16")
    yield case("qwen3-1b-4", 8, seq=8192, precision="bf16")
    yield case("qwen3-1b-4", 8, seq=8192, recompute="full", precision="bf16")
    yield case("phi3-2", 8, seq=8192, precision="bf16")
    yield case("neox-4", 8, seq=4096, precision="bf16")
    yield case("opt-4", 8, seq=2048, precision="bf16")
    yield case("opt-4", 8, seq=2048)
    for cap in (1, 100):
        yield case("8b-4", 8, cap=cap)
    yield case("1b-4-tied", 64, precision="bf16", cap=10)
    yield case("odder", 8, seq=256, batches=2, cap=50)


def name(case):
    words = [f"{case['model']} dp {case['ranks']}", f"{case['mbs']} x {case['seq']}"]
    words += [case["precision"]] if case["precision"] != "fp32" else []
    words += ["full recompute"] if case["recompute"] == "full" else []
    words += [f"{case['batches']} micro-batches"] if case["batches"] > 1 else []
    words += [f"bucket_cap_mb {case['cap']}"] if case["cap"] else []
    return ", ".join(words)


def total(tracker, kind, counters):
    return sum(snapshot["Total"] if "Total" in snapshot else
               next(v for k, v in snapshot.items() if str(k) == "Total")
               for snapshot in tracker.get_tracker_snapshot(kind).values()) - counters


def pass_of(ddp, tokens, case):
    narrow = (torch.autocast("cpu", dtype=torch.bfloat16) if case["precision"] == "bf16"
              else contextlib.nullcontext())
    with narrow:
        logits = ddp(input_ids=tokens, use_cache=False).logits
        loss = llama.loss_of(logits, tokens, "materialised")
    del logits
    loss.backward()


def steps_of(ddp, case, tracker, buckets):
    """Peaks of the passes of three steps and what is there after each, and the lists of buckets."""
    optimizer = torch.optim.AdamW(ddp.parameters(), lr=1e-4, fused=True)
    tracker.track_external(optimizer)
    tokens = torch.randint(0, 100, (case["mbs"], case["seq"]))
    tracker.track_external(tokens)
    elements = sum(p.numel() for p in ddp.parameters())
    counters = 4 * len(list(ddp.parameters()))
    ledger = {"after_init": {"main_weights": 4 * elements, "gradient_staging": 4 * elements}}
    lists = {}
    for step in ("first", "second", "steady"):
        with tracker:
            for _ in range(case["batches"] - 1):
                with ddp.no_sync():
                    pass_of(ddp, tokens, case)
                tracker.reset_mod_stats()
            pass_of(ddp, tokens, case)
        lists["buckets" if step != "first" else "first_buckets"] = golden.compress(buckets)
        buckets.clear()
        before = 0 if step == "first" else counters
        ledger[f"{step}_forward_backward"] = {"total": total(tracker, "peak", before)}
        tracker.reset_mod_stats()
        with tracker:
            optimizer.step()
        ledger[f"{step}_optimizer_step"] = {"total": total(tracker, "current", counters)}
        optimizer.zero_grad(set_to_none=True)
        tracker._peak_mem, tracker._peak_mem_snap = {}, {}
    del ledger["second_forward_backward"], ledger["second_optimizer_step"]
    ledger["steady_optimizer_step"]["optimizer_moments"] = 8 * elements
    ledger["steady_optimizer_step"]["gradients"] = 4 * elements
    return ledger, lists


class RealIndices(TorchDispatchMode):
    """Integers have values: those by which rank 0 tells the others the order of gradients."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        integers = kwargs.get("dtype") in (torch.int32, torch.int64) if not tensors else not any(
            isinstance(x, FakeTensor) for x in tensors)
        with unset_fake_temporarily() if integers else contextlib.nullcontext():
            return func(*args, **kwargs)


class FakeDDP(DDP):
    def _pre_forward(self, *inputs, **words):
        with RealIndices():
            return super()._pre_forward(*inputs, **words)


def reduced(buckets, bucket):
    """As the fake group, whose collectives end at once, would have it."""
    buckets.append(bucket.buffer().numel() * bucket.buffer().element_size())
    done = torch.futures.Future()
    done.set_result(bucket.buffer())
    return done


def measure(case):
    with llama.Group(case["ranks"]), FakeTensorMode(allow_non_fake_inputs=True):
        model = llama.build(MODELS[case["model"]], case["recompute"] == "full")
        tracker, buckets = MemTracker(), []
        tracker.track_external(model)
        with tracker:  # which then knows the buckets
            ddp = FakeDDP(model, init_sync=False, bucket_cap_mb=case["cap"])
        ddp.register_comm_hook(buckets, reduced)
        ledger, lists = steps_of(ddp, case, tracker, buckets)
    layout = {"dp_shard": case["ranks"], "zero_stage": 0, "micro_batch_size": case["mbs"]}
    layout |= {"ddp_bucket_size": case["cap"] << 18} if case["cap"] else {}
    layout |= {"recompute": "full"} if case["recompute"] == "full" else {}
    job = {"sequence_length": case["seq"], "precision": case["precision"],
           "loss": "materialised", "rms_norm": "composite"}
    more = {"micro_batches": case["batches"]} if case["batches"] > 1 else {}
    return {"name": name(case), "model": case["model"], "layout": layout, "job": job, **more,
            "ledger": ledger, "lists": lists}


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
    golden.dump("tests/golden/engines/pytorch_ddp.py", llama.versions(), MODELS, results)


if __name__ == "__main__":
    main()
