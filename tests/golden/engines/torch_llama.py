"""Llama, Qwen and GPT-2 models of transformers for PyTorch's own engines, on fake tensors.

Tensors are on a fake "cpu": a fake "cuda" has no backward pass where there is no driver. PyTorch
takes the same path on both but for attention, which here keeps and makes what PyTorch's CUDA
FlashAttention does, and for nn.RMSNorm, of which CUDA has one kernel (FusedNorm); the models of
transformers compute that norm by several operations.
"""

import os

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
import torch.distributed as dist
import torch.nn.functional as functional
import transformers
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.testing._internal.distributed.fake_pg import FakeStore


def rounded(number, multiple):
    return -(-number // multiple) * multiple


class Flash(torch.autograd.Function):
    """Bytes of FlashAttention, not its arithmetic. q, k, v: [batch, seq, heads, width].

    Keeps q, k, v, the output and a fp32 number a row of scores; backward makes dq, dk, dv, sums dq
    in fp32 meanwhile, and for grouped heads makes dk and dv of every query's head before they are
    summed. Source: pytorch@v2.15.0, aten/src/ATen/native/transformers/cuda/flash_attn/
    flash_api.cpp, mha_bwd.
    """

    @staticmethod
    def forward(ctx, q, k, v):
        out = torch.empty_like(q)
        sums = torch.empty(q.shape[0], q.shape[2], q.shape[1], dtype=torch.float32)
        ctx.save_for_backward(q, k, v, out, sums)
        return out

    @staticmethod
    def backward(ctx, grad):
        saved = ctx.saved_tensors  # all of them are there until this returns
        return flash_gradients(*saved[:3])


def flash_gradients(q, k, v):
    """Makes dq, dk, dv, and meanwhile what the kernel makes besides. [batch, seq, heads, width]."""
    dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    batch, seq, heads, width = q.shape
    rows = rounded(seq, 128)
    products = torch.empty(batch, heads, rows, dtype=torch.float32)
    dq_sum = torch.empty(batch, rows, heads, rounded(width, 32 if width <= 128 else 64),
                         dtype=torch.float32)
    wide = ()
    if heads != k.shape[2]:
        wide = tuple(torch.empty(batch, k.shape[1], heads, t.shape[3], dtype=t.dtype)
                     for t in (k, v))
    del products, dq_sum, wide
    return dq, dk, dv


def flash(module, query, key, value, attention_mask, **_):  # [batch, heads, seq, width]
    if torch.is_autocast_enabled("cpu"):  # which has scaled_dot_product_attention in its list
        query, key, value = (t.bfloat16() for t in (query, key, value))
    return Flash.apply(query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)), None


def flash_of_repeated(module, query, key, value, attention_mask, **_):
    """Of keys and values that are repeated for the heads of their group first."""
    times = query.shape[1] // key.shape[1]
    wide = [t[:, :, None].expand(-1, -1, times, -1, -1).reshape(query.shape[:2] + t.shape[2:])
            for t in (key, value)]
    return flash(module, query, *wide, attention_mask)


transformers.AttentionInterface.register("golden", flash)
transformers.AttentionInterface.register("golden_repeated", flash_of_repeated)
ATTENTION = {}  # another one, by what asks for it


class FusedNorm(torch.nn.Module):
    """Bytes of nn.RMSNorm on CUDA since PyTorch 2.9: keeps its input and a fp32 number a row."""

    class Kernel(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            ctx.save_for_backward(x, weight, torch.empty(x.shape[:-1], dtype=torch.float32))
            return torch.empty_like(x)

        @staticmethod
        def backward(ctx, grad):
            x, weight, _ = ctx.saved_tensors
            return torch.empty_like(x), torch.empty_like(weight)

    def __init__(self, norm):
        super().__init__()
        self.weight = norm.weight

    def forward(self, x):
        return FusedNorm.Kernel.apply(x, self.weight)


def fuse_norms(model):
    for name, norm in list(model.named_modules()):
        if type(norm).__name__.endswith("RMSNorm"):
            parent, _, own = name.rpartition(".")
            setattr(model.get_submodule(parent), own, FusedNorm(norm))


def build(shape, recompute, norm="composite", repeat=False):
    """The model of a config.json, in fp32; every block is recomputed where `recompute` says so."""
    words = {key: value for key, value in shape.items() if key != "model_type"}
    config = transformers.AutoConfig.for_model(
        shape["model_type"], use_cache=False,
        attn_implementation=ATTENTION.get(
            "context_parallel", "golden_repeated" if repeat else "golden"), **words)
    model = transformers.AutoModelForCausalLM.from_config(config)
    if norm == "fused":
        fuse_norms(model)
    model.train()
    if recompute:
        blocks = blocks_of(model)
        for i, block in enumerate(blocks):
            blocks[i] = checkpoint_wrapper(block)
    return model


class Dropout(torch.autograd.Function):
    """Bytes of dropout on CUDA: a mask of a byte an element, where PyTorch's on CPUs has its type."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(torch.empty_like(x, dtype=torch.bool))
        return torch.empty_like(x)

    @staticmethod
    def backward(ctx, grad):
        return torch.empty_like(grad)


class Adapted(torch.nn.Module):
    """A frozen product with an adapter of rank 8 beside it (LoRA), as PEFT and torchtune compute it."""

    def __init__(self, frozen):
        super().__init__()
        self.frozen = frozen
        self.down = torch.nn.Linear(frozen.in_features, 8, bias=False)
        self.up = torch.nn.Linear(8, frozen.out_features, bias=False)

    def forward(self, x):
        return self.frozen(x) + self.up(self.down(Dropout.apply(x)))


def narrow(model):
    """Makes parameters bf16."""
    made = {}  # Module.to does not take fake tensors' parameters; a tied table is one of them
    for module in model.modules():
        for name, value in module._parameters.items():
            if value is not None:
                made.setdefault(value, torch.nn.Parameter(
                    torch.empty_like(value, dtype=torch.bfloat16), value.requires_grad))
                module._parameters[name] = made[value]


def freeze(model):
    """Trains adapters of queries and values alone, all in bf16 (as torchtune's recipes have it)."""
    model.requires_grad_(False)
    for block in blocks_of(model):
        attention = getattr(block, "_checkpoint_wrapped_module", block).self_attn
        attention.q_proj, attention.v_proj = Adapted(attention.q_proj), Adapted(attention.v_proj)
    narrow(model)


def body_of(model):
    """The modules between the model and its blocks."""
    for path in ("transformer", "gpt_neox", "model.decoder", "model"):
        module = model
        for name in path.split("."):
            module = getattr(module, name, None)
        if module is not None:
            return module
    raise ValueError(type(model).__name__)


def blocks_of(model):
    body = body_of(model)
    return body.h if hasattr(body, "h") else body.layers


def table_of(model):
    return model.get_input_embeddings()


def final_norm_of(model):
    body = body_of(model)
    names = ("ln_f", "final_layer_norm", "norm")
    return next(getattr(body, name) for name in names if hasattr(body, name))


def head_of(model):
    return model.get_output_embeddings()


def loss_of(logits, labels, kind):
    """As transformers and accelerate compute it ("materialised"), or of bf16 logits."""
    logits = logits.float() if kind == "materialised" else logits
    return functional.cross_entropy(logits.view(-1, logits.shape[-1]), labels.view(-1))


class Group:
    """A process group of any size in which nothing travels."""

    def __init__(self, world, rank=0):
        self.world, self.rank = world, rank

    def __enter__(self):
        dist.init_process_group(
            "fake", rank=self.rank, world_size=self.world, store=FakeStore())

    def __exit__(self, *_):
        dist.destroy_process_group()


def versions():
    return {"PyTorch": torch.__version__.split("+")[0], "transformers": transformers.__version__}
