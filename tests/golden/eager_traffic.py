#!/usr/bin/env python3
"""Bytes that PyTorch's operators read and write in what only moves memory, and how many they are.

Modules of transformers and PEFT run on a CPU; each operator that autograd and they call is counted
with the bytes of the tensors that it reads and writes. A tensor that is broadcast counts once, a
view not at all. What is printed is the golden file of
tests/planner/cost/kernels/eager_traffic_test.cc.

    python3 -m venv venv && venv/bin/pip install torch transformers peft
    venv/bin/python tests/golden/eager_traffic.py > tests/golden/eager_traffic.json
"""

import json

import peft
import torch
import transformers
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers.activations import NewGELUActivation
from transformers.loss.loss_utils import ForCausalLMLoss
from transformers.models.llama.modeling_llama import LlamaRMSNorm, apply_rotary_pos_emb

BATCH, LENGTH, HIDDEN, HEADS, GROUPS, HEAD, VOCABULARY = 1, 256, 2048, 32, 8, 64, 8000
TOKENS = BATCH * LENGTH
BF16 = torch.bfloat16
VIEWS = {
    "_conj", "_reshape_alias", "_unsafe_view", "alias", "as_strided", "detach", "empty", "empty_like",
    "expand", "lift_fresh", "permute", "select", "slice", "split", "squeeze", "t", "transpose",
    "unsqueeze", "view", "view_as_complex", "view_as_real",
}
PRODUCTS = {"mm", "addmm", "bmm"}
FILLS = {"zeros", "zeros_like", "ones_like", "full_like", "fill_", "zero_", "new_zeros"}


def size(tensor):
    elements = 1
    for extent, stride in zip(tensor.shape, tensor.stride()):
        elements *= extent if stride else 1
    return elements * tensor.element_size()


class Count(TorchDispatchMode):
    """What runs inside: operators that move bytes, and matrix products apart."""

    def __init__(self):
        super().__init__()
        self.moved = self.kernels = self.products = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        name = function.overloadpacket.__name__
        if name in VIEWS:
            return made
        tensors = lambda tree: [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]
        if name in PRODUCTS:
            self.products += 1
            return made
        read = 0 if name in FILLS else sum(map(size, tensors((args, kwargs))))
        written = sum(map(size, tensors(made)))
        kernels = 1
        if name == "copy_":
            read = size(args[1])
        elif name == "nll_loss_forward":
            read = 0  # the logits that it picks
        elif name == "nll_loss_backward":
            read, kernels = 0, 2  # a fill, and the picked ones
        elif name == "slice_backward":
            written, kernels = written + read, 2  # a fill, then a copy of the slice
        elif name == "native_layer_norm_backward":
            read, kernels = read + 2 * size(args[0]), 2  # the gains' gradient reads both again
        self.kernels += kernels
        self.moved += read + written
        return made


def counted(run, inputs, elements):
    leaves = [torch.empty(i.shape, dtype=i.dtype).requires_grad_() for i in inputs]
    # No leaves for the code that is counted: a leaf adds what comes to its own gradient.
    given = [leaf.view_as(leaf) for leaf in leaves]
    with Count() as forward:
        made = run(*given)
    made = list(made) if isinstance(made, tuple) else [made]
    gradients = [torch.ones_like(m) for m in made]
    with Count() as backward:
        torch.autograd.grad(made, given + trained(run), gradients, allow_unused=True)
    return {
        "forward_bytes": round(forward.moved / elements, 1),
        "forward_kernels": forward.kernels,
        "backward_bytes": round(backward.moved / elements, 1),
        "backward_kernels": backward.kernels,
    }


def trained(run):
    parameters = run.parameters() if isinstance(run, torch.nn.Module) else ()
    return [p for p in parameters if p.requires_grad]


def states(width):
    return torch.empty(BATCH, LENGTH, width, dtype=BF16)


def heads(number):
    return torch.empty(BATCH, LENGTH, number, HEAD, dtype=BF16)


def halves_rotated(queries, keys):
    """transformers' rotary embedding."""
    angles = torch.empty(BATCH, LENGTH, HEAD, dtype=BF16)
    return apply_rotary_pos_emb(queries.transpose(1, 2), keys.transpose(1, 2), angles, angles)


def complex_rotated(queries, keys):
    """torchtitan's: pytorch/torchtitan:torchtitan/models/llama3/model/model.py, apply_rotary_emb."""
    angles = torch.empty(1, LENGTH, 1, HEAD // 2, dtype=torch.complex64)

    def rotated(x):
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * angles).flatten(3).type_as(x)

    return rotated(queries), rotated(keys)


def pointwise():
    norm = LlamaRMSNorm(HIDDEN).to(BF16)
    frozen = LlamaRMSNorm(HIDDEN).to(BF16).requires_grad_(False)
    labels = torch.zeros(BATCH, LENGTH, dtype=torch.long)
    layer_norm = torch.nn.LayerNorm(HIDDEN, dtype=BF16)
    swiglu = lambda gate, up: torch.nn.functional.silu(gate) * up
    loss = lambda logits: ForCausalLMLoss(logits, labels, VOCABULARY)
    gelu = lambda x: torch.nn.functional.gelu(x, approximate="tanh")
    all_heads = [heads(HEADS), heads(GROUPS)]
    rotated = TOKENS * (HEADS + GROUPS) * HEAD
    hidden = TOKENS * HIDDEN
    return {
        "rms_norm": counted(norm, [states(HIDDEN)], hidden),
        "rms_norm_frozen": counted(frozen, [states(HIDDEN)], hidden),
        "layer_norm": counted(layer_norm, [states(HIDDEN)], hidden),
        "rope_halves": counted(halves_rotated, all_heads, rotated),
        "rope_complex": counted(complex_rotated, all_heads, rotated),
        "gated_activation": counted(swiglu, [states(HIDDEN), states(HIDDEN)], hidden),
        "activation": counted(gelu, [states(HIDDEN)], hidden),
        "activation_composed": counted(NewGELUActivation(), [states(HIDDEN)], hidden),
        "loss_materialised": counted(loss, [states(VOCABULARY)], TOKENS * VOCABULARY),
    }


def composed_wide(x):
    """transformers' GELU of several operators where pow takes and makes fp32."""
    narrow_pow = torch.pow
    torch.pow = lambda base, exponent: narrow_pow(base.float(), exponent)
    try:
        return NewGELUActivation()(x)
    finally:
        torch.pow = narrow_pow


def autocast():
    """What CUDA's autocast leaves in fp32 and casts: pytorch:aten/src/ATen/autocast_mode.h.

    Its list has pow, softmax and norms in fp32, which a CPU's has not: they are cast here.
    """
    tokens, scores = TOKENS * HIDDEN, BATCH * HEADS * LENGTH * LENGTH
    mask = torch.ones(LENGTH, LENGTH, dtype=torch.bool)
    values = torch.empty(BATCH, HEADS, LENGTH, HEAD, dtype=BF16)
    matrix = torch.empty(HIDDEN, HIDDEN, dtype=BF16)
    wide = torch.empty(BATCH, LENGTH, HIDDEN)

    def softmax(products):
        masked = (products * HEAD**-0.5).masked_fill(mask, float("-inf"))
        return torch.nn.functional.softmax(masked.float(), dim=-1).to(BF16) @ values

    return {
        "layer_norm": counted(torch.nn.LayerNorm(HIDDEN), [wide], tokens),
        "residual": counted(torch.add, [wide, states(HIDDEN)], tokens),
        "product_input": counted(lambda x: x.to(BF16) @ matrix, [wide], tokens),
        "activation_composed": counted(composed_wide, [states(HIDDEN)], tokens),
        "softmax": counted(softmax, [torch.empty(BATCH, HEADS, LENGTH, LENGTH, dtype=BF16)], scores),
    }


def adapter(inputs, outputs, rank, dropout, dtype, autocast):
    """PEFT's operators beside one frozen matrix in bf16, less those of the matrix alone."""

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.proj = torch.nn.Linear(inputs, outputs, bias=False, dtype=BF16)

        def forward(self, x):
            return self.proj(x)

    bare = Model().requires_grad_(False)
    config = peft.LoraConfig(r=rank, target_modules=["proj"], lora_dropout=dropout)
    adapted = peft.get_peft_model(Model(), config)
    for parameter in trained(adapted):
        parameter.data = parameter.data.to(dtype)

    def run(model):
        def with_casts(x):
            with torch.autocast("cpu", BF16, enabled=autocast):
                return model(x)

        return with_casts

    leaf = torch.empty(TOKENS, inputs, dtype=BF16).requires_grad_()
    moved = {}
    for name, model in (("bare", bare), ("adapted", adapted)):
        x = leaf.view_as(leaf)
        with Count() as forward:
            y = run(model)(x)
        with Count() as backward:
            torch.autograd.grad(y, [x, *trained(model)], torch.ones_like(y))
        moved[name] = (forward, backward)
    answer = {}
    for at, direction in enumerate(("forward", "backward")):
        mine, plain = moved["adapted"][at], moved["bare"][at]
        answer[f"{direction}_bytes"] = mine.moved - plain.moved
        answer[f"{direction}_kernels"] = mine.kernels - plain.kernels
        answer[f"{direction}_products"] = mine.products - plain.products
    return answer


def adapters():
    cases = []
    for inputs, outputs in ((512, 512), (512, 128), (128, 512)):
        for dropout in (0.0, 0.1):
            for dtype, autocast in ((BF16, False), (torch.float32, False), (torch.float32, True)):
                cases.append({
                    "tokens": TOKENS, "inputs": inputs, "outputs": outputs, "rank": 8,
                    "dropout": dropout, "dtype": str(dtype).removeprefix("torch."),
                    "autocast": autocast,
                    **adapter(inputs, outputs, 8, dropout, dtype, autocast),
                })
    return cases


torch.manual_seed(1)
print(json.dumps({
    "made_by": f"torch {torch.__version__}, transformers {transformers.__version__}, "
               f"peft {peft.__version__}, tests/golden/eager_traffic.py",
    "bytes_of_an_element": 2,
    "pointwise": pointwise(),
    "autocast": autocast(),
    "adapters": adapters(),
}, indent=2))
