#!/usr/bin/env python3
"""Tiny models as transformers stores them, and the logits that it computes from what is stored.

Writes tests/golden/weights/NAME/ and tests/golden/weights.json, which
tests/executor/weights/golden_test.cc holds the executor's reader against:

    python3 -m venv venv && venv/bin/pip install transformers==5.23.0 torch==2.15.0
    venv/bin/python tests/golden/make_weights_golden.py

The models are a GPT-2 as it was published (no "transformer." in the names, with the attention masks
that transformers no longer reads), a Llama in bf16 in several files and a Qwen3 in fp16.
"""

import json
import pathlib
import shutil

import make_transformer_golden as golden
import safetensors.torch
import torch
import transformers

FOLDER = pathlib.Path(__file__).resolve().parent / "weights"
LLAMA = golden.COMMON | {"hidden_size": 16, "intermediate_size": 24, "vocab_size": 96}
MODELS = {
    "gpt2": (
        golden.CONFIGS["gpt2"] | {"n_embd": 16, "n_head": 2, "n_positions": 32},
        torch.float32,
        "50GB",
    ),
    "llama": (
        LLAMA | {"rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}},
        torch.bfloat16,
        "4KB",
    ),
    "qwen3": (
        LLAMA
        | {
            "head_dim": 8,
            "tie_word_embeddings": True,
            "rope_parameters": {"rope_theta": 1000000.0, "rope_type": "default"},
        },
        torch.float16,
        "50GB",
    ),
}


def published_names(folder):
    path = folder / "model.safetensors"
    tensors = safetensors.torch.load_file(path)
    tensors = {name.removeprefix("transformer."): tensor for name, tensor in tensors.items()}
    for layer in range(2):
        tensors[f"h.{layer}.attn.bias"] = torch.tril(torch.ones(1, 1, 32, 32))
    safetensors.torch.save_file(tensors, path, metadata={"format": "pt"})


def make(name, config, dtype, shard):
    settings = transformers.AutoConfig.for_model(name, **config)
    settings._attn_implementation = "eager"
    model = transformers.AutoModelForCausalLM.from_config(settings).eval()
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            parameter.copy_(golden.weight(key, tuple(parameter.shape)))
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    model.to(dtype).save_pretrained(folder, max_shard_size=shard)
    (folder / "generation_config.json").unlink(missing_ok=True)
    if name == "gpt2":
        published_names(folder)
    stored = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager")
    inputs = torch.tensor(golden.tokens()).reshape(golden.BATCH, golden.SEQUENCE)
    with torch.no_grad():
        logits = stored.double()(input_ids=inputs, use_cache=False).logits.double()
    return golden.summary("logits", logits)


def main():
    result = {
        "transformers": transformers.__version__,
        "logits": {name: make(name, *settings) for name, settings in MODELS.items()},
    }
    (FOLDER.parent / "weights.json").write_text(json.dumps(result, indent=1) + "\n")


main()
