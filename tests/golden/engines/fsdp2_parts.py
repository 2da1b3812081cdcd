#!/usr/bin/env python3
"""PyTorch's FSDP2 where a part of the pass is spread over ranks or experts, or weights are most of
it: two whole steps.

Jobs and bytes are those of fsdp2.py. Besides, of PyTorch and transformers,

    experts            models of transformers, whose experts are one tensor and multiply by groups
                       (its default). They are placed as torchtitan places them
    few tokens         LoRA, two blocks, gradients that wait: fullest where weights are copied out
                       or gradients copied in
    context parallel   PyTorch's own ring (_templated_ring_attention and its backward), by all-to-all
                       or all-gather, with the stand-in for attention in each of its steps. Ranks do
                       not work alike: the larger figures of the first, the second and the last
    LoRA               PEFT's own modules on queries and values, in fp32 beside a base in bf16.
                       Passes alone: the ledger counts no states of adapters

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 transformers==5.23.0 peft==0.21.2
    venv/bin/python tests/golden/engines/fsdp2_parts.py > tests/golden/engines/fsdp2.parts.json
"""

import sys
import time

import fsdp2
import golden
import peft
import shapes
import torch
import torch.distributed as dist
import torch_llama as llama
import transformers
from torch.distributed.tensor.experimental._context_parallel import _attention as context_parallel

QWEN3_MOE = {**shapes.llama(4, 2048, 6144, 32, 4, 151936, 128), "model_type": "qwen3_moe",
             "num_experts": 64, "num_experts_per_tok": 8, "moe_intermediate_size": 768,
             "norm_topk_prob": True, "decoder_sparse_step": 1, "mlp_only_layers": [],
             "use_sliding_window": False}
fsdp2.MODELS.update({
    "mixtral-4": {**shapes.MIXTRAL, "intermediate_size": 3584}, "qwen3-moe-4": QWEN3_MOE,
    "mixtral-2": {**shapes.cut(shapes.MIXTRAL, 2), "intermediate_size": 3584},
    "wide-2": shapes.llama(2, 4096, 14336, 32, 8, 2048),
    "sixty-experts-3": {**shapes.cut(QWEN3_MOE, 3), "num_experts": 60, "num_experts_per_tok": 4,
                        "moe_intermediate_size": 1408},
    "thin-mha-3": shapes.llama(3, 4096, 1024, 32, 32, 2048),
    "thin-3": shapes.llama(3, 4096, 1024, 32, 8, 2048)})
RINGS = {"ring": "alltoall", "all_gather": "allgather"}
RING = {}


def kernel(query, key, value, **_):
    """Bytes of a step of the ring, forward. query, key, value: [batch, heads, seq, width]."""
    return torch.empty_like(query), torch.empty(query.shape[:3], dtype=torch.float32)


def kernel_backward(query, key, value, **_):
    """The same backward: what llama.Flash makes, of a part of the queries or keys."""
    made = llama.flash_gradients(*(t.transpose(1, 2) for t in (query, key, value)))
    return tuple(t.transpose(1, 2) for t in made)


class Ring(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v):
        out, sums = context_parallel._templated_ring_attention(
            RING["group"], 2, kernel, q, k, v, is_causal=True)
        ctx.save_for_backward(q, k, v, out, sums)
        return out

    @staticmethod
    def backward(ctx, grad):
        q, k, v, out, sums = ctx.saved_tensors
        return context_parallel._templated_ring_attention_backward(
            RING["group"], 2, kernel_backward, grad, "grad_out", q, k, v, out, sums, True)


def ring(module, query, key, value, attention_mask, **_):
    return Ring.apply(query, key, value).transpose(1, 2), None


transformers.AttentionInterface.register("golden_ring", ring)


class Group(llama.Group):
    """Of all ranks, with the ring of the first ones in it."""

    def __enter__(self):
        self.rank = RING.get("rank", 0)
        super().__enter__()
        RING["group"] = dist.new_group(list(range(RING.get("ranks", 1))))


def measure_ring(case, cp, kind):
    """The case, whose ranks and tokens are those of one rank's part of a sequence."""
    context_parallel.set_rotate_method(RINGS[kind])
    fsdp2.llama.Group, plain = Group, fsdp2.llama.Group
    llama.ATTENTION["context_parallel"] = "golden_ring"
    result = None
    for rank in sorted({0, 1, cp - 1}):
        RING.update(rank=rank, ranks=cp)
        one = fsdp2.measure(case)
        for phase, figures in (result or one)["ledger"].items():
            for key in figures:
                figures[key] = max(figures[key], one["ledger"][phase][key])
        result = result or one
    RING.clear()
    del llama.ATTENTION["context_parallel"]
    fsdp2.llama.Group = plain
    ranks = case["ranks"] // cp
    result["name"] = (f"{case['model']} dp {ranks} cp {cp}, {kind.replace('_', '-')}, "
                      f"{case['mbs']} x {case['seq'] * cp}")
    result["name"] += ", full recompute" if case["recompute"] == "full" else ""
    result["layout"] |= {"dp_shard": ranks, "cp": cp, "cp_kind": kind}
    result["job"]["sequence_length"] = case["seq"] * cp
    return result


class Dropout(torch.nn.Module):
    def forward(self, x):
        return llama.Dropout.apply(x)


def adapt(model):
    """PEFT's adapters of rank 8; the base in bf16."""
    llama.narrow(model)
    move, torch.nn.Module.to = torch.nn.Module.to, lambda self, *_, **__: self  # all are in place
    peft.inject_adapter_in_model(peft.LoraConfig(
        r=8, lora_alpha=16, lora_dropout=0.05, target_modules=["q_proj", "v_proj"]), model)
    torch.nn.Module.to = move
    for module in model.modules():
        for name, inner in module._modules.items():
            if isinstance(inner, torch.nn.Dropout):
                module._modules[name] = Dropout()


def measure_adapted(case):
    own, llama.freeze = llama.freeze, adapt
    result = fsdp2.measure(case)
    llama.freeze = own
    result["name"] = result["name"].replace("LoRA", "LoRA by PEFT")
    for phase in ("first_optimizer_step", "steady_optimizer_step"):
        del result["ledger"][phase]
    return result


def adapted():
    yield fsdp2.case("8b-4", 8, 1, 4096, frozen=True)
    yield fsdp2.case("8b-4", 8, 1, 4096, "full", frozen=True)
    yield fsdp2.case("1b-4-tied", 8, 1, 2048, frozen=True)
    yield fsdp2.case("qwen2-7b-4", 8, 1, 4096, micro=2, frozen=True, norm="fused")


def cases():
    yield fsdp2.case("mixtral-4", 8, 1, 4096)
    yield fsdp2.case("mixtral-4", 8, 2, 4096, "full", norm="fused")
    yield fsdp2.case("qwen3-moe-4", 8, 1, 4096)
    yield fsdp2.case("qwen3-moe-4", 64, 4, 4096)
    yield fsdp2.case("qwen3-moe-4", 64, 4, 8192, "full")
    yield fsdp2.case("qwen3-moe-4", 8, 1, 2048, micro=2, norm="fused")
    yield fsdp2.case("sixty-experts-3", 8, 2, 4096)
    yield fsdp2.case("sixty-experts-3", 48, 2, 4096, "full")
    yield fsdp2.case("1b-4-tied", 8, 1, 512, "full", micro=2, tells_last=True)
    yield fsdp2.case("thin-2-tied", 8, 2, 256, micro=2, tells_last=True)
    yield fsdp2.case("8b-4", 8, 1, 256, frozen=True)
    yield fsdp2.case("1b-4-tied", 8, 1, 256, "full", frozen=True)
    yield fsdp2.case("wide-2", 8, 1, 512)
    yield fsdp2.case("wide-2", 8, 1, 2048)
    yield fsdp2.case("wide-2", 8, 1, 512, micro=2, reduce_every=False)
    yield fsdp2.case("small-table-4", 8, 1, 512, micro=2, reduce_every=False)
    yield fsdp2.case("mixtral-2", 16, 1, 512)
    yield fsdp2.case("mixtral-2", 16, 1, 512, "full")
    yield fsdp2.case("mixtral-4", 32, 1, 4096, "full")


def rings():
    for kind in RINGS:
        yield fsdp2.case("8b-4", 8, 1, 4096), 2, kind
        yield fsdp2.case("8b-4", 8, 1, 8192, "full"), 4, kind
        yield fsdp2.case("8b-mha-4", 8, 1, 4096, norm="fused"), 2, kind
        yield fsdp2.case("thin-3", 16, 1, 8192, "full"), 4, kind
        yield fsdp2.case("thin-mha-3", 16, 1, 8192, "full"), 4, kind
        yield fsdp2.case("thin-mha-3", 16, 1, 4096, "full"), 8, kind


def main():
    results = []
    for each in cases():
        if not golden.chosen(fsdp2.name(each)):
            continue
        begin = time.time()
        results.append(fsdp2.measure(each))
        print(f"{fsdp2.name(each)} [{time.time() - begin:.0f} s]", file=sys.stderr, flush=True)
    results += map(measure_adapted, adapted())
    for case, cp, kind in rings():
        begin = time.time()
        results.append(measure_ring(case, cp, kind))
        print(f"{results[-1]['name']} [{time.time() - begin:.0f} s]", file=sys.stderr, flush=True)
    golden.dump("tests/golden/engines/fsdp2_parts.py", llama.versions(), fsdp2.MODELS, results)


if __name__ == "__main__":
    main()
