#!/usr/bin/env python3
"""Training of GPT-2 124M and of a Llama of 100 M parameters in PyTorch eager, fp32, on the CPU: tokens a second.

    python3 -m venv venv && venv/bin/pip install transformers==5.23.0 torch==2.15.0
    venv/bin/python tests/bench/pytorch_training.py --model gpt2 --ranks 1 --threads 1
    venv/bin/python tests/bench/pytorch_training.py --model gpt2 --ranks 2 --threads 1 --sharding fsdp2
    venv/bin/python tests/bench/pytorch_training.py --model gpt2 --ranks 1 --shardwise build/release/bin

The same step in both: forward, backward, clipping by the global norm, AdamW (PyTorch's is fused). Prints the median step
and, for machines that others use too, the processor time of one. `--shardwise` runs the same job with shardwise-run.
"""
import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

LLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": 768,
    "intermediate_size": 2048, "max_position_embeddings": 1024, "num_attention_heads": 12, "num_hidden_layers": 12,
    "num_key_value_heads": 12, "rms_norm_eps": 1e-05, "rope_scaling": None, "rope_theta": 10000.0,
    "tie_word_embeddings": True, "torch_dtype": "float32", "vocab_size": 20000,
}


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=["gpt2", "llama-100m"], default="gpt2")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1, help="that compute, a rank")
    parser.add_argument("--sharding", choices=["ddp", "fsdp2"], default="ddp")
    parser.add_argument("--tokens", type=int, default=512, help="a rank and step, one sequence")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--shardwise", help="folder of its programs: runs it in PyTorch's place")
    return parser.parse_args()


def report(o, who, times, processor):
    middle = statistics.median(times[1:])
    tokens = o.ranks * o.tokens
    print(f"{who}, {o.model}, {o.ranks} ranks x {o.threads} threads, {tokens} tokens a step: {tokens / middle:.0f} tokens/s, "
          f"step {middle:.2f} s ({min(times[1:]):.2f} to {max(times[1:]):.2f}), {processor:.2f} s of processors", flush=True)


def model_of(o):
    import torch
    import transformers
    torch.manual_seed(1234)
    if o.model == "gpt2":
        return transformers.GPT2LMHeadModel(transformers.GPT2Config(attn_pdrop=0, embd_pdrop=0, resid_pdrop=0))
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA))


def train(rank, o):
    import torch
    import torch.distributed as dist
    torch.set_num_threads(o.threads)
    model = model_of(o)
    if o.ranks > 1:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29533")
        dist.init_process_group("gloo", rank=rank, world_size=o.ranks)
        if o.sharding == "ddp":
            model = torch.nn.parallel.DistributedDataParallel(model)
        else:
            from torch.distributed.fsdp import fully_shard
            blocks = model.transformer.h if o.model == "gpt2" else model.model.layers
            for block in blocks:
                fully_shard(block)
            fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    times, used = [], []
    for step in range(o.steps):
        tokens = torch.randint(0, 256, (1, o.tokens))
        begin, before = time.perf_counter(), time.process_time()
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        times.append(time.perf_counter() - begin)
        used.append(time.process_time() - before)
    if rank == 0:
        who = f"PyTorch {torch.__version__}" + (f" {o.sharding}" if o.ranks > 1 else "")
        report(o, who, times, o.ranks * statistics.median(used[1:]))
    if o.ranks > 1:
        dist.destroy_process_group()


def shardwise(o):
    folder = pathlib.Path(tempfile.mkdtemp())
    model = o.model
    if model != "gpt2":
        model = folder / "llama-100m.json"
        model.write_text(json.dumps(LLAMA))
    tools = pathlib.Path(o.shardwise)

    def tool(name, *words):
        subprocess.run([str(tools / name), *map(str, words)], check=True, stdout=subprocess.DEVNULL)

    stage = 3 if o.sharding == "fsdp2" and o.ranks > 1 else 0
    tool("shardwise", "plan", "--model", model, "--cluster", "laptop", "--gpus", o.ranks, "--engine", "shardwise", "--precision",
         "fp32", "--loss", "chunked", "--sequence-length", o.tokens, "--global-batch-size", o.ranks, "--lock", "micro_batch_size=1",
         "--lock", "recompute=none", "--lock", f"zero_stage={stage}", "--lock", f"dp_shard={o.ranks}", "-o", folder / "plan.json")

    def run(steps):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        tool("shardwise-run", "train", folder / "plan.json", "--steps", steps, "--threads", o.threads, "--metrics", folder / "steps.jsonl")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        lines = (folder / "steps.jsonl").read_text().splitlines()[1:]
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return [json.loads(line)["step_time_s"] for line in lines], used

    _, start = run(1)  # starting the program and the first step
    times, used = run(o.steps)
    report(o, f"Shardwise ZeRO-{stage}" if o.ranks > 1 else "Shardwise", times, (used - start) / (o.steps - 1))


def main():
    o = options()
    if o.shardwise:
        shardwise(o)
    elif o.ranks == 1:
        train(0, o)
    else:
        import torch.multiprocessing as processes
        processes.spawn(train, args=(o,), nprocs=o.ranks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
