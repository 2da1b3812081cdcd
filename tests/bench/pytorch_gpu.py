#!/usr/bin/env python3
"""Training of GPT-2 or Llama in PyTorch on one GPU, bf16: step times and peak memory as one line of JSON.

    python3 tests/bench/pytorch_gpu.py --model configs/models/gpt2.json --micro-batch-size 16 --micro-batches 4
    python3 tests/bench/pytorch_gpu.py --model configs/models/llama-3.2-1b.json --sequence-length 8192 --sharding fsdp2

Needs PyTorch alone: models are written here from their config.json, with random weights. A step is micro-batches of
forward and backward, clipping by the global norm and fused AdamW. --sharding none: fp32 weights under bf16 autocast, a
residual stream in bf16, the whole model compiled. --sharding fsdp2: fully_shard of each block and of the model in a mesh of
one, bf16 weights, fp32 reduction; blocks and the tail (last norm, head and loss) compiled. --profile: one more step under
PyTorch's profiler, split by kind of kernel. Runs on a CPU too (--device cpu), to try the program. {"oom": true} where memory
ends.
"""
import argparse
import contextlib
import json
import math
import os
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

CHUNK_ROWS = 2048


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True, help="config.json of a GPT-2 or Llama")
    parser.add_argument("--sequence-length", type=int, default=1024)
    parser.add_argument("--micro-batch-size", type=int, default=1)
    parser.add_argument("--micro-batches", type=int, default=1, help="a step")
    parser.add_argument("--sharding", choices=["none", "fsdp2"], default="none")
    parser.add_argument("--attention", choices=["cudnn", "flash", "any"], default="cudnn")
    parser.add_argument("--loss", choices=["whole", "chunked"], default="whole",
                        help="logits of a micro-batch at once, or of 2048 tokens, made again for gradients")
    parser.add_argument("--recompute", choices=["none", "full"], default="none")
    parser.add_argument("--keep-gathered", action="store_true", help="fsdp2: no resharding after forward")
    parser.add_argument("--compile-mode", default="default", help="of torch.compile, or off")
    parser.add_argument("--profile", action="store_true", help="one step more, split by kind of kernel")
    parser.add_argument("--pad-vocabulary", type=int, default=128, help="rows of the table are a multiple of it")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=3, help="steps before, not timed")
    parser.add_argument("--device", choices=["cuda", "cpu", "auto"], default="cuda")
    o = parser.parse_args()
    if o.device == "auto":
        o.device = "cuda" if torch.cuda.is_available() else "cpu"
    return o


class Attention(nn.Module):
    """Causal attention of queries [batch, sequence, heads x size] and keys and values of kv_heads, out of one product."""

    expand = False  # keys and values are repeated for their queries' heads: settled by settle_attention()

    def __init__(self, width, heads, kv_heads, size, bias, rope=None):
        super().__init__()
        self.heads, self.kv_heads, self.size, self.rope = heads, kv_heads, size, rope
        self.qkv = nn.Linear(width, (heads + 2 * kv_heads) * size, bias=bias)
        self.out = nn.Linear(heads * size, width, bias=bias)

    def forward(self, x):
        batch, sequence, _ = x.shape
        q, k, v = self.qkv(x).split([self.heads * self.size, self.kv_heads * self.size, self.kv_heads * self.size], dim=-1)
        q, k, v = (t.view(batch, sequence, -1, self.size).transpose(1, 2) for t in (q, k, v))
        if self.rope is not None:
            cosines, sines = (table.to(q.dtype) for table in self.rope(sequence, x.device))
            q, k = rotated(q, cosines, sines), rotated(k, cosines, sines)
        y = attend(q, k, v, self.expand)
        return self.out(y.transpose(1, 2).reshape(batch, sequence, -1))


def attend(q, k, v, expand):
    """[batch, heads, sequence, size]; k and v have fewer heads where several queries share one."""
    grouped = q.shape[1] != k.shape[1]
    if grouped and expand:
        k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], dim=1) for t in (k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=grouped and not expand)


def rotated(x, cosines, sines):
    low, high = x.chunk(2, dim=-1)
    return torch.cat([low * cosines - high * sines, high * cosines + low * sines], dim=-1)


class Rope(nn.Module):
    """Tables of Llama's rotary embedding, with Llama 3.1's scaling where the config has it; made once a length."""

    def __init__(self, config, size):
        super().__init__()
        inverse = 1.0 / config.get("rope_theta", 10000.0) ** (torch.arange(0, size, 2, dtype=torch.float64) / size)
        scaling = config.get("rope_scaling")
        if scaling and scaling.get("rope_type") == "llama3":
            original = scaling["original_max_position_embeddings"]
            low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
            turns = original * inverse / (2 * math.pi)
            share = ((turns - low) / (high - low)).clamp(0, 1)
            inverse = inverse * (share + (1 - share) / scaling["factor"])
        self.inverse, self.tables = inverse, {}

    def forward(self, sequence, device):
        if sequence not in self.tables:
            raise RuntimeError(f"no table of {sequence} positions")
        return self.tables[sequence]

    def make(self, sequence, device):
        angles = torch.outer(torch.arange(sequence, dtype=torch.float64), self.inverse.cpu())
        self.tables[sequence] = (angles.cos().float().to(device), angles.sin().float().to(device))


class Gpt2Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, heads = config["n_embd"], config["n_head"]
        self.norm1 = nn.LayerNorm(width, eps=config["layer_norm_epsilon"])
        self.attention = Attention(width, heads, heads, width // heads, True)
        self.norm2 = nn.LayerNorm(width, eps=config["layer_norm_epsilon"])
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class LlamaBlock(nn.Module):
    def __init__(self, config, rope):
        super().__init__()
        width, heads, inner = config["hidden_size"], config["num_attention_heads"], config["intermediate_size"]
        size = config.get("head_dim") or width // heads
        self.norm1 = nn.RMSNorm(width, eps=config["rms_norm_eps"])
        self.attention = Attention(width, heads, config["num_key_value_heads"], size, False, rope)
        self.norm2 = nn.RMSNorm(width, eps=config["rms_norm_eps"])
        self.gate_up = nn.Linear(width, 2 * inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        gate, up = self.gate_up(self.norm2(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class Tail(nn.Module):
    """Last norm, head and loss: the residual stream [batch, sequence, width] and targets -> the mean loss."""

    def __init__(self, norm, head, loss):
        super().__init__()
        self.norm, self.head, self.loss = norm, head, loss

    def sum_of(self, x, targets):
        return F.cross_entropy(self.head(x).float(), targets, reduction="sum")

    def forward(self, x, targets):
        x, targets = self.norm(x).flatten(0, 1), targets.flatten()
        if self.loss == "whole":
            return self.sum_of(x, targets) / targets.numel()
        total = 0
        for rows, each in zip(x.split(CHUNK_ROWS), targets.split(CHUNK_ROWS)):
            total = total + checkpoint(self.sum_of, rows, each, use_reentrant=False)
        return total / targets.numel()


class Model(nn.Module):
    """tokens, targets [batch, sequence] -> the mean loss."""

    def __init__(self, config, o):
        super().__init__()
        self.o = o
        gpt2 = config["model_type"] == "gpt2"
        width = config["n_embd"] if gpt2 else config["hidden_size"]
        rows = -(-config["vocab_size"] // o.pad_vocabulary) * o.pad_vocabulary
        self.tokens = nn.Embedding(rows, width)
        self.positions = nn.Embedding(config["n_positions"], width) if gpt2 else None
        self.rope = None if gpt2 else Rope(config, config.get("head_dim") or width // config["num_attention_heads"])
        layers = config["n_layer"] if gpt2 else config["num_hidden_layers"]
        self.blocks = nn.ModuleList(Gpt2Block(config) if gpt2 else LlamaBlock(config, self.rope) for _ in range(layers))
        norm = (nn.LayerNorm(width, eps=config["layer_norm_epsilon"]) if gpt2
                else nn.RMSNorm(width, eps=config["rms_norm_eps"]))
        self.tail = Tail(norm, nn.Linear(width, rows, bias=False), o.loss)
        for each in self.modules():
            if isinstance(each, (nn.Linear, nn.Embedding)):
                nn.init.normal_(each.weight, std=0.02)
        if config.get("tie_word_embeddings", gpt2):
            self.tail.head.weight = self.tokens.weight

    def forward(self, tokens, targets):
        x = self.tokens(tokens)
        if self.positions is not None:
            x = x + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        # Of fp32 weights autocast would keep the stream in fp32: twice the bytes of every pass over it.
        x = x.to(torch.bfloat16)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.o.recompute == "full" and self.training else block(x)
        return self.tail(x, targets)


def sharded(model, o):
    import torch.distributed as dist
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "0")
    store = dist.HashStore()
    dist.init_process_group("nccl" if o.device == "cuda" else "gloo", store=store, rank=0, world_size=1)
    mesh = dist.device_mesh.init_device_mesh(o.device, (1,))
    rules = {"mesh": mesh, "mp_policy": MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32),
             "reshard_after_forward": not o.keep_gathered}
    if o.compile_mode != "off":
        for each in (*model.blocks, model.tail):
            each.compile(mode=o.compile_mode)
    for block in model.blocks:
        fully_shard(block, **rules)
    return fully_shard(model, **rules)  # with the tail, whose table the embedding may share


def attention_of(o):
    from torch.nn.attention import SDPBackend, sdpa_kernel
    if o.device == "cpu" or o.attention == "any":
        return contextlib.nullcontext()
    return sdpa_kernel(SDPBackend.CUDNN_ATTENTION if o.attention == "cudnn" else SDPBackend.FLASH_ATTENTION)


def settle_attention(o, config):
    """The attention that was asked for, as this PyTorch runs it: grouped heads as they are, else repeated; else PyTorch's choice."""
    if o.device == "cpu":
        return
    heads = config.get("num_attention_heads") or config["n_head"]
    kv_heads = config.get("num_key_value_heads", heads)
    size = config.get("head_dim") or (config.get("hidden_size") or config["n_embd"]) // heads
    why = ""
    for o.attention in dict.fromkeys((o.attention, "any")):
        for Attention.expand in (False, True):
            q, k, v = (torch.randn(1, count, 256, size, device=o.device, dtype=torch.bfloat16, requires_grad=True)
                       for count in (heads, kv_heads, kv_heads))
            try:
                with attention_of(o):
                    attend(q, k, v, Attention.expand).sum().backward()
                return
            except RuntimeError as error:
                why = str(error)
    raise RuntimeError(why)


def train(o):
    with open(o.model) as file:
        config = json.load(file)
    settle_attention(o, config)
    torch.manual_seed(1234)
    torch.set_float32_matmul_precision("high")
    with torch.device(o.device):
        model = Model(config, o)
    if model.rope is not None:
        model.rope.make(o.sequence_length, o.device)
    parameters = sum(each.numel() for each in model.parameters())
    if o.sharding == "fsdp2":
        model = step_model = sharded(model, o)
        precision = contextlib.nullcontext()
    else:
        step_model = model if o.compile_mode == "off" else torch.compile(model, mode=o.compile_mode)
        precision = torch.autocast(o.device, dtype=torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    shape = (o.micro_batches, o.micro_batch_size, o.sequence_length + 1)
    draws = torch.Generator().manual_seed(1)
    text = torch.randint(0, config["vocab_size"], shape, generator=draws).to(o.device)
    wait = torch.cuda.synchronize if o.device == "cuda" else lambda: None
    times, losses = [], []

    def one_step():
        wait()
        begin = time.perf_counter()
        total = 0
        for micro in text:
            with attention_of(o):  # recompute in the backward pass has it too
                with precision:
                    loss = step_model(micro[:, :-1], micro[:, 1:]) / o.micro_batches
                loss.backward()
            total = total + loss.detach()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        wait()
        return float(total), time.perf_counter() - begin

    for step in range(o.warmup + o.steps):
        if step == o.warmup and o.device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        loss, seconds = one_step()
        times.append(seconds)
        losses.append(loss)
    made = {"attention": o.attention, "kv_heads_repeated": Attention.expand, "parameters": parameters, "first_loss": losses[0], "last_loss": losses[-1], "warmup_s": times[:o.warmup],
            "step_s": times[o.warmup:]}
    if o.device == "cuda":
        free, total_bytes = torch.cuda.mem_get_info()
        made.update(peak_allocated_bytes=torch.cuda.max_memory_allocated(), peak_reserved_bytes=torch.cuda.max_memory_reserved(),
                    used_bytes=total_bytes - free)
    if o.profile:
        made["profile"] = profiled(one_step, o.device)
    return made


# Kinds of kernels, by words of their names; the first that fits.
KINDS = (("attention", ("flash", "fmha", "sdpa", "attention", "cudnn_generated")),
         ("products", ("gemm", "cutlass", "nvjet", "cublas", "wgmma", "splitk", "matmul", "aten::mm", "aten::addmm")))


def kind_of(kernel):
    return next((kind for kind, words in KINDS if any(word in kernel.lower() for word in words)), "elementwise")


def profiled(one_step, device):
    """Seconds of one step by kind of kernel, what no kernel filled as gaps, and the ten longest kernels."""
    from torch.profiler import ProfilerActivity, profile
    gpu = device == "cuda"
    with profile(activities=[ProfilerActivity.CUDA if gpu else ProfilerActivity.CPU]) as kept:
        _, seconds = one_step()
    spans, by_kind, by_kernel = [], {"products": 0, "attention": 0, "elementwise": 0}, {}
    for event in kept.events():
        on_gpu = event.device_type == torch.autograd.DeviceType.CUDA
        if on_gpu != gpu or event.cpu_children or event.is_user_annotation:
            continue
        begin, end = event.time_range.start, event.time_range.end
        spans.append((begin, end))
        by_kind[kind_of(event.name)] += (end - begin) * 1e-6
        by_kernel[event.name] = by_kernel.get(event.name, 0) + (end - begin) * 1e-6
    busy, until = 0, 0
    for begin, end in sorted(spans):  # kernels of several streams may run at once
        busy += max(0, end - max(begin, until)) * 1e-6
        until = max(until, end)
    longest = sorted(by_kernel.items(), key=lambda each: -each[1])[:10]
    return {"step_s": seconds, **{f"{kind}_s": each for kind, each in by_kind.items()}, "gaps_s": max(0, seconds - busy),
            "longest": [{"kernel": name[:120], "s": each} for name, each in longest]}


def main():
    o = options()
    said = {"torch": torch.__version__, **vars(o)}
    if o.device == "cuda":
        if not torch.cuda.is_available():
            sys.exit("pytorch_gpu.py: PyTorch sees no GPU")
        said.update(gpu=torch.cuda.get_device_name(), cuda=torch.version.cuda, cudnn=torch.backends.cudnn.version())
    try:
        said.update(train(o), oom=False)
    except torch.OutOfMemoryError as error:
        said.update(oom=True, why=str(error).splitlines()[0])
    print(json.dumps(said), flush=True)
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
