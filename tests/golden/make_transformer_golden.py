#!/usr/bin/env python3
"""Logits, loss and every gradient of tiny models by Hugging Face's own model code.

Writes tests/golden/transformer.json, which tests/executor/transformer/golden_test.cc holds the
executor against:

    python3 -m venv venv && venv/bin/pip install transformers==5.23.0 torch==2.15.0
    venv/bin/python tests/golden/make_transformer_golden.py > tests/golden/transformer.json

Weights, tokens and the vectors below come from one formula of integers, `noise`, so that the file
holds results only. Models run in double, where transformers lets them: its norms and rotary tables
stay fp32. Of each tensor the file has the norm and the dot products with four vectors of noise,
which no wrong element leaves as they are.
"""

import json
import sys

import numpy
import torch
import transformers

BATCH, SEQUENCE, VOCABULARY = 2, 24, 96
IGNORED = -100
COMMON = {
    "hidden_size": 32,
    "intermediate_size": 56,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 64,
    "tie_word_embeddings": False,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
}
CONFIGS = {
    "gpt2": {
        "n_embd": 32,
        "n_layer": 2,
        "n_head": 4,
        "n_positions": 64,
        "vocab_size": VOCABULARY,
        "activation_function": "gelu_new",
        "layer_norm_epsilon": 1e-5,
        "tie_word_embeddings": True,
    },
    "gpt2_erf": {
        "n_embd": 48,
        "n_layer": 1,
        "n_head": 3,
        "n_inner": 40,
        "n_positions": 64,
        "vocab_size": VOCABULARY,
        "activation_function": "gelu",
        "layer_norm_epsilon": 1e-5,
        "tie_word_embeddings": False,
    },
    "llama": COMMON
    | {
        "attention_bias": False,
        # Waves of 2 pi to some 200 positions: as they are, blended and stretched.
        "rope_parameters": {
            "rope_theta": 100.0,
            "rope_type": "llama3",
            "factor": 4.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 48,
        },
    },
    "llama_bias": COMMON
    | {
        "num_key_value_heads": 4,
        "attention_bias": True,
        "mlp_bias": True,
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "linear", "factor": 2.0},
    },
    "mistral": COMMON
    | {
        "head_dim": 12,
        "sliding_window": 7,
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
    },
    "qwen2": COMMON
    | {
        "tie_word_embeddings": True,
        "rope_parameters": {"rope_theta": 1000000.0, "rope_type": "default"},
    },
    "qwen3": COMMON
    | {
        "head_dim": 16,
        "tie_word_embeddings": True,
        "rope_parameters": {"rope_theta": 1000000.0, "rope_type": "default"},
    },
}


def name_hash(name):
    """FNV-1a, 32 bits."""
    value = 0x811C9DC5
    for byte in name.encode():
        value = (value ^ byte) * 0x01000193 % 2**32
    return value


def noise(name, count):
    """`count` numbers of -1 to 1, all of them exact in fp32."""
    mask = numpy.uint64(0xFFFFFFFF)
    x = numpy.arange(count, dtype=numpy.uint64) * numpy.uint64(0x85EBCA77)
    x = (x + numpy.uint64(name_hash(name))) & mask
    x ^= x >> numpy.uint64(15)
    x = x * numpy.uint64(0x2C1B3C6D) & mask
    x ^= x >> numpy.uint64(12)
    x = x * numpy.uint64(0x297A2D39) & mask
    x ^= x >> numpy.uint64(15)
    return (x >> numpy.uint64(8)).astype(numpy.float64) / 2.0**23 - 1.0


def weight(name, shape):
    values = noise(name, int(numpy.prod(shape)))
    if len(shape) > 1:
        values = values / 4
    elif name.endswith(".bias"):
        values = values / 8
    else:  # of a norm
        values = 1 + values / 4
    return torch.tensor(values).reshape(shape)


def tokens():
    return ((noise("tokens", BATCH * SEQUENCE) + 1) / 2 * VOCABULARY).astype(numpy.int64)


def targets():
    """The next token; every fifth is ignored."""
    result = numpy.roll(tokens(), -1)
    result[::5] = IGNORED
    return result


def rounded(value):
    return float(f"{value:.10g}")


def summary(name, tensor):
    flat = tensor.detach().double().numpy().reshape(-1)
    return {
        "norm": rounded(numpy.linalg.norm(flat)),
        "dots": [rounded(flat @ noise(f"{name}/{i}", flat.size)) for i in range(4)],
    }


def golden(key, config):
    model_type = key.split("_")[0]
    settings = transformers.AutoConfig.for_model(model_type, **config)
    settings._attn_implementation = "eager"
    model = transformers.AutoModelForCausalLM.from_config(settings).double().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weight(name, tuple(parameter.shape)))
    inputs = torch.tensor(tokens()).reshape(BATCH, SEQUENCE)
    logits = model(input_ids=inputs, use_cache=False).logits.double()
    labels = torch.tensor(targets())
    loss = torch.nn.functional.cross_entropy(
        logits.reshape(-1, VOCABULARY), labels, ignore_index=IGNORED, reduction="sum"
    )
    loss.backward()
    return {
        "config": {"model_type": model_type} | config,
        "loss": rounded(loss.item()),
        "tokens": int((labels != IGNORED).sum()),
        "logits": summary("logits", logits),
        "gradients": {n: summary(n, p.grad) for n, p in model.named_parameters()},
    }


def main():
    result = {
        "transformers": transformers.__version__,
        "torch": torch.__version__.split("+")[0],
        "batch": BATCH,
        "sequence": SEQUENCE,
        "models": {key: golden(key, config) for key, config in CONFIGS.items()},
    }
    json.dump(result, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
