#!/usr/bin/env python3
"""PyTorch's own FSDP2 (fully_shard): the peak of every phase of the first two steps.

The model trains under FakeTensorMode in a fake process group, and
torch.distributed._tools.fsdp2_mem_tracker counts every storage by what it is for. Bytes of a phase:

    states         sharded parameters and the moments (without AdamW's counters of steps)
    all_gradients  shards of gradients, in the optimizer step
    total          the peak of the phase, all that is allocated

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 transformers==5.23.0
    venv/bin/python tests/golden/engines/fsdp2.py > tests/golden/engines/fsdp2.json
"""

import sys
import time
import warnings

import golden
import shapes
import torch
import torch_llama as llama
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily
from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.fsdp._fully_shard import _fully_shard
from torch.distributed.tensor import Shard

warnings.filterwarnings("ignore")

MODELS = {
    "8b-4": shapes.cut(shapes.LLAMA_8B, 4), "8b": shapes.LLAMA_8B,
    "8b-mha-4": shapes.cut(shapes.LLAMA_8B, 4, num_key_value_heads=32),
    "1b": shapes.LLAMA_1B, "1b-tied": {**shapes.LLAMA_1B, **shapes.TIED},
    "1b-4-tied": shapes.cut(shapes.LLAMA_1B, 4, **shapes.TIED),
    "1b-mha-6": shapes.llama(6, 2048, 5504, 16, 16, 32000),
    "small-table-4": shapes.llama(4, 4096, 14336, 32, 32, 2048),
    "wide-table-4": shapes.llama(4, 2560, 10240, 16, 16, 262144, 128),
    "odd": shapes.ODD, "odd-tied": {**shapes.ODD, **shapes.TIED},
    "qwen2-1b-4-tied": shapes.cut(shapes.QWEN2_1B, 4, **shapes.TIED),
    "qwen2-7b-4": shapes.cut(shapes.QWEN2_7B, 4), "qwen3-1b-4": shapes.cut(shapes.QWEN3_1B, 4),
    "gpt2": shapes.GPT2, "thin-2-tied": shapes.llama(2, 4096, 2048, 32, 8, 8192, **shapes.TIED),
    "phi3-4": shapes.cut(shapes.PHI3, 4), "neox-4": shapes.cut(shapes.NEOX, 4),
    "gemma2-2": shapes.cut(shapes.GEMMA2, 2), "opt-4": shapes.cut(shapes.OPT, 4)}


def case(model, ranks, mbs, seq, recompute="none", **more):
    """A case; `units` "table" has embedding and head in units of their own, as torchtitan has.
    `tells_last` calls set_is_last_backward(): all but the last backward then keep the input of the
    reduction that they issued last."""
    return {"model": model, "ranks": ranks, "mbs": mbs, "seq": seq, "recompute": recompute,
            "units": "table", "loss": "materialised", "micro": 1, "reshard": True,
            "reduce_every": True, "tells_last": False, "replicate": 1, "frozen": False,
            "adamw": "fused", "norm": "composite", "repeat": False, **more}


def cases():
    for ranks, mbs, seq, recompute in (
            (8, 1, 4096, "none"), (8, 2, 4096, "none"), (8, 2, 4096, "full"),
            (64, 1, 8192, "full"), (64, 1, 4096, "none"), (512, 1, 4096, "none")):
        yield case("8b-4", ranks, mbs, seq, recompute)
    yield case("8b-4", 8, 1, 4096, reshard=False)
    yield case("8b-4", 8, 1, 4096, "full", reshard=False)
    yield case("8b-4", 8, 1, 4096, micro=2)
    yield case("8b-4", 8, 1, 4096, micro=2, tells_last=True)
    yield case("8b-4", 8, 1, 4096, micro=2, reduce_every=False)
    yield case("8b-4", 8, 1, 1024)
    yield case("8b-4", 8, 1, 4096, replicate=2)
    yield case("8b-mha-4", 8, 1, 4096)
    yield case("8b-mha-4", 8, 1, 4096, "full")
    yield case("8b", 8, 1, 4096, "full")
    yield case("8b", 64, 1, 8192, "full")
    yield case("1b", 8, 1, 4096)
    yield case("1b", 8, 1, 1024, "full")
    yield case("1b", 64, 2, 4096, "full")
    yield case("1b-tied", 8, 1, 4096)
    yield case("1b-tied", 64, 1, 4096, "full")
    yield case("1b-4-tied", 8, 4, 2048)
    yield case("1b-mha-6", 8, 2, 2048)
    yield case("1b-mha-6", 8, 4, 2048, "full")
    yield case("1b-mha-6", 64, 4, 2048, "full")
    yield case("small-table-4", 8, 1, 4096)
    yield case("small-table-4", 8, 1, 4096, "full")
    yield case("small-table-4", 8, 1, 4096, micro=2)
    yield case("small-table-4", 8, 1, 4096, micro=2, reduce_every=False)
    yield case("wide-table-4", 8, 1, 4096)
    yield case("wide-table-4", 8, 1, 4096, "full")
    yield case("odd", 8, 2, 1024)
    yield case("odd", 48, 2, 1024)
    yield case("odd", 64, 4, 2048, "full")
    yield case("odd-tied", 8, 2, 1024)
    yield case("qwen2-7b-4", 8, 1, 4096)
    yield case("qwen2-7b-4", 64, 1, 4096, "full")
    yield case("qwen3-1b-4", 8, 1, 4096)
    yield case("qwen3-1b-4", 8, 1, 4096, "full")
    for recompute in ("none", "full"):
        yield case("8b-4", 8, 1, 4096, recompute, frozen=True)
    for adamw in ("foreach", "for_loop"):
        yield case("8b-4", 8, 1, 4096, "full", adamw=adamw)
    yield case("8b-4", 8, 1, 4096, norm="fused")
    yield case("8b-4", 64, 1, 8192, "full", norm="fused")
    yield case("8b-4", 8, 1, 4096, repeat=True)
    yield case("1b-tied", 8, 1, 1024, "full", reshard=False)
    yield case("1b-tied", 8, 1, 1024, "full", micro=2)
    yield case("1b", 8, 1, 1024, "full", micro=2, reduce_every=False)
    yield case("qwen2-1b-4-tied", 64, 1, 2048, "full")
    yield case("gpt2", 8, 4, 1024)
    yield case("gpt2", 8, 4, 1024, "full")
    yield case("1b-4-tied", 8, 1, 2048, frozen=True)
    yield case("1b-4-tied", 8, 1, 2048, "full", micro=2, frozen=True)
    yield case("thin-2-tied", 8, 4, 512, "full")
    yield case("phi3-4", 8, 1, 4096, norm="fused")
    yield case("neox-4", 8, 2, 2048)
    yield case("gemma2-2", 8, 1, 4096)
    yield case("opt-4", 64, 1, 2048, "full")
    yield case("8b-4", 16, 1, 4096, reshard=8)
    yield case("8b-4", 16, 1, 4096, "full", micro=2, reshard=4)
    yield case("8b", 16, 1, 1024, "full", reshard=2)
    yield case("1b-tied", 8, 1, 1024, "full", reshard=2)


def name(case):
    words = [f"{case['model']} dp {case['ranks']}", f"{case['mbs']} x {case['seq']}"]
    words[0] += f" x {case['replicate']}" if case["replicate"] > 1 else ""
    words += ["full recompute"] if case["recompute"] == "full" else []
    words += [f"AdamW {case['adamw']}"] if case["adamw"] != "fused" else []
    words += ["fused norms"] if case["norm"] == "fused" else []
    words += ["repeated keys and values"] if case["repeat"] else []
    words += [f"{case['micro']} micro-batches"] if case["micro"] > 1 else []
    words += [] if case["reshard"] else ["kept after forward"]
    words += [f"resharded to {case['reshard']}"] if case["reshard"] > 1 else []
    words += ["LoRA"] if case["frozen"] else []
    words += ["told the last backward"] if case["tells_last"] else []
    words += [] if case["reduce_every"] else ["reduced on the last"]
    return ", ".join(words)


def small_groups(*words):
    """The mesh of an integer reshard_after_forward, whose ranks are read: not of fake tensors."""
    with unset_fake_temporarily():
        return mesh_after_forward(*words)


mesh_after_forward = _fully_shard._get_post_forward_mesh_info
_fully_shard._get_post_forward_mesh_info = small_groups


def experts_apart(ranks):
    """Experts are cut by number, or by rows where the ranks are more and divide them (torchtitan)."""
    def placement(p):
        return Shard(1) if p.dim() == 3 and p.shape[0] < ranks and p.shape[1] % ranks == 0 else None
    return placement


def shard(model, case, mesh):
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    words = {"mesh": mesh, "mp_policy": policy, "reshard_after_forward": case["reshard"]}
    for block in llama.blocks_of(model):
        fully_shard(block, shard_placement_fn=experts_apart(case["ranks"]), **words)
    if not model.config.tie_word_embeddings:
        fully_shard(llama.table_of(model), **words)
        fully_shard([llama.final_norm_of(model), llama.head_of(model)], mesh=mesh,
                    mp_policy=policy, reshard_after_forward=False)
    fully_shard(model, mesh=mesh, mp_policy=policy,
                reshard_after_forward=None if case["reshard"] else False)


def phase(tracker, model, kind):
    """Bytes of a snapshot by what they are for, in the ledger's words."""
    found = {}
    for snapshot in tracker.get_tracker_snapshot(kind).values():
        for key, value in snapshot.items():
            name = getattr(key, "value", key)
            found[name] = found.get(name, 0) + value
    counters = 4 * sum(p.requires_grad for p in model.parameters()) if found.get("OptState", 0) else 0
    return {"states": found.get("Sharded Param", 0) + found.get("OptState", 0) - counters,
            "all_gradients": found.get("Sharded Grad", 0), "total": found["Total"] - counters}


def measure(case):
    world = case["ranks"] * case["replicate"]
    with llama.Group(world):
        mesh = (init_device_mesh("cpu", (world,)) if case["replicate"] == 1 else
                init_device_mesh("cpu", (case["replicate"], case["ranks"]),
                                 mesh_dim_names=("replicate", "shard")))
        with FakeTensorMode(allow_non_fake_inputs=True):
            model = llama.build(MODELS[case["model"]], case["recompute"] == "full", case["norm"],
                                case["repeat"])
            if case["frozen"]:
                llama.freeze(model)
            shard(model, case, mesh)
            trained = [p for p in model.parameters() if p.requires_grad]
            optimizer = torch.optim.AdamW(trained, lr=1e-4, fused=case["adamw"] == "fused",
                                          foreach=case["adamw"] == "foreach")
            tokens = torch.randint(0, 100, (case["mbs"], case["seq"]))
            tracker = FSDPMemTracker(model, optimizer)
            tracker.track_inputs((tokens,))
            ledger = {}
            for step in ("first", "steady"):
                with tracker:
                    for part in range(case["micro"]):
                        last = part == case["micro"] - 1
                        if case["tells_last"]:
                            model.set_is_last_backward(last)
                        if not case["reduce_every"]:
                            model.set_requires_gradient_sync(last)
                        logits = model(input_ids=tokens, use_cache=False).logits
                        loss = llama.loss_of(logits, tokens, case["loss"])
                        del logits
                        loss.backward()
                        del loss
                        tracker.reset_mod_stats()
                passed = phase(tracker, model, "peak")
                ledger[f"{step}_forward_backward"] = {
                    key: passed[key] for key in ("states", "total")}
                with tracker:
                    optimizer.step()
                # DTensor makes whole tensors for their shapes alone in the first step
                ledger[f"{step}_optimizer_step"] = phase(
                    tracker, model, "current" if step == "first" else "peak")
                optimizer.zero_grad(set_to_none=True)
    layout = {"dp_shard": case["ranks"], "zero_stage": 3, "micro_batch_size": case["mbs"]}
    layout |= {"recompute": "full"} if case["recompute"] == "full" else {}
    layout |= {"dp_replicate": case["replicate"]} if case["replicate"] > 1 else {}
    layout |= {} if case["reshard"] is True else {"reshard_after_forward": case["reshard"]}
    layout |= {} if case["reduce_every"] else {"reduce_every_microbatch": False}
    job = {"sequence_length": case["seq"], "loss": case["loss"], "rms_norm": case["norm"]}
    job |= {"adamw": case["adamw"]} if case["adamw"] != "fused" else {}
    job |= {"repeat_key_values": True} if case["repeat"] else {}
    if case["frozen"]:  # adapters are small, and the ledger counts none of their states
        job["frozen_base"] = True
        ledger = {phase: {"total": found["total"]} for phase, found in ledger.items()}
    if case["adamw"] != "fused":  # the tracker takes temporaries of the step for states
        del ledger["first_optimizer_step"]
        ledger["steady_optimizer_step"] = {"total": ledger["steady_optimizer_step"]["total"]}
    engine = {"engine": {"keeps_last_reduction": True}} if case["tells_last"] else {}
    result = {"name": name(case), "model": case["model"], "layout": layout, **engine, "job": job,
              "ledger": ledger}
    return result | ({"micro_batches": case["micro"]} if case["micro"] > 1 else {})


def main():
    results = []
    for each in cases():
        if not golden.chosen(name(each)):
            continue
        begin = time.time()
        results.append(measure(each))
        print(f"{name(each)} [{time.time() - begin:.0f} s]", file=sys.stderr, flush=True)
    golden.dump("tests/golden/engines/fsdp2.py", llama.versions(), MODELS, results)


if __name__ == "__main__":
    main()
