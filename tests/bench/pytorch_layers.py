#!/usr/bin/env python3
"""The layers of kernels_bench in PyTorch eager on the same cores: forward and backward, fp32.

    python3 -m venv venv && venv/bin/pip install transformers==5.23.0 torch==2.15.0
    venv/bin/python tests/bench/pytorch_layers.py --threads 2

Prints, for a block and the head (with its loss) at 1024 tokens, the least of some rounds and the
rate of the products' work, which kernels_bench prints as Flops.
"""

import argparse
import time

import torch
import transformers

TOKENS = 1024


def least_seconds(step, rounds):
    """The least of the rounds, by the clock and of CPU time (all threads together)."""
    wall, cpu = [], []
    for _ in range(rounds):
        starts = time.perf_counter(), time.process_time()
        step()
        wall.append(time.perf_counter() - starts[0])
        cpu.append(time.process_time() - starts[1])
    return min(wall), min(cpu)


def matrices(module):
    return sum(p.numel() for p in module.parameters() if p.dim() > 1)


def show(name, seconds, flops):
    wall, cpu = seconds
    print(f"{name:18} {wall * 1e3:8.1f} ms {flops / wall / 1e9:6.1f} GFLOP/s"
          f"   CPU {cpu * 1e3:8.1f} ms {flops / cpu / 1e9:6.1f} GFLOP/s")


def gpt2():
    config = transformers.GPT2Config(attn_pdrop=0, embd_pdrop=0, resid_pdrop=0)
    model = transformers.GPT2LMHeadModel(config)
    return "gpt2", model, model.transformer.h[0], model.transformer.ln_f, 12 * 64, None


def qwen3():
    config = transformers.Qwen3Config(
        hidden_size=1024, intermediate_size=3072, num_hidden_layers=1, num_attention_heads=16,
        num_key_value_heads=8, head_dim=128, vocab_size=1024, tie_word_embeddings=True)
    model = transformers.Qwen3ForCausalLM(config)
    positions = torch.arange(TOKENS)[None]
    angles = model.model.rotary_emb(torch.zeros(1, TOKENS, 1024), positions)
    return "qwen3-0.6b", model, model.model.layers[0], model.model.norm, 16 * 128, angles


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    for make in (gpt2, qwen3):
        name, model, block, norm, attention_width, angles = make()
        x = torch.randn(1, TOKENS, model.config.hidden_size, requires_grad=True)

        def run_block():
            extra = {} if angles is None else {"position_embeddings": angles}
            out = block(x, **extra)
            (out[0] if isinstance(out, tuple) else out).backward(x.detach())

        flops = 6.0 * matrices(block) * TOKENS + 3.5 * 2 * attention_width * TOKENS**2
        show(f"{name} block", least_seconds(run_block, arguments.rounds), flops)
        if angles is not None:
            continue
        targets = torch.full((TOKENS,), 7)

        def run_head():
            logits = model.lm_head(norm(x))[0]
            torch.nn.functional.cross_entropy(logits, targets, reduction="sum").backward()

        flops = 6.0 * model.lm_head.weight.numel() * TOKENS
        show(f"{name} head", least_seconds(run_head, arguments.rounds), flops)


main()
