#!/usr/bin/env python3
"""Adapters of catalogue models by PEFT, and narrow matrices by bitsandbytes, in bytes.

Models are built on the meta device; matrices are quantised on the CPU. What is printed is the
golden file that tests/planner/cost/layer/adapters_test.cc compares with.

    python3 -m venv venv && venv/bin/pip install torch transformers peft bitsandbytes
    venv/bin/python tests/golden/adapters.py > tests/golden/adapters.json
"""

import json
import pathlib

import bitsandbytes
import peft
import torch
import transformers
from bitsandbytes.functional import int8_vectorwise_quant, quantize_4bit

ROOT = pathlib.Path(__file__).resolve().parents[2]

CASES = (
    ("llama-3.1-8b", ["q_proj", "v_proj"], 8),
    ("llama-3.1-8b", "all-linear", 16),
    ("llama-3.1-8b", ["gate_proj", "self_attn.o_proj", "lm_head"], 32),
    ("mistral-7b-v0.1", ["q_proj", "k_proj", "v_proj", "o_proj"], 16),
    ("qwen2.5-0.5b", "all-linear", 8),
    ("gemma-2-2b", "all-linear", 64),
    ("phi-3-mini-4k", ["qkv_proj", "gate_up_proj"], 8),
    ("pythia-70m", "all-linear", 8),
    ("gpt2", ["c_attn", "c_proj"], 4),
    ("opt-125m", "all-linear", 8),
    ("falcon-7b", ["query_key_value"], 8),
)
SHAPES = ((4096, 4096), (1024, 4096), (14336, 4096), (896, 4864), (128, 100))


def config_of(name):
    file = json.loads((ROOT / "configs" / "models" / f"{name}.json").read_text())
    kind = file.pop("model_type")
    return transformers.AutoConfig.for_model(kind, **file)


def adapters(name, targets, rank):
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config_of(name))
    config = peft.LoraConfig(r=rank, target_modules=targets, task_type="CAUSAL_LM")
    model = peft.get_peft_model(model, config, low_cpu_mem_usage=True)
    trained = [p for p in model.parameters() if p.requires_grad]
    return {
        "model": name,
        "targets": targets if isinstance(targets, str) else ",".join(targets),
        "rank": rank,
        "tensors": len(trained),
        "elements": sum(p.numel() for p in trained),
    }


def size(*tensors):
    return sum(t.numel() * t.element_size() for t in tensors)


def packed(shape, double):
    matrix = torch.randn(shape, dtype=torch.bfloat16)
    four, state = quantize_4bit(matrix, blocksize=64, quant_type="nf4", compress_statistics=double)
    beside = [state.absmax, state.code]
    if double:
        beside += [state.offset, state.state2.absmax, state.state2.code]
    return {
        "shape": list(shape),
        "format": "nf4_double" if double else "nf4",
        "matrix_bytes": size(four),
        "beside_bytes": size(*beside),
    }


def of_int8(shape):
    matrix, scales, _ = int8_vectorwise_quant(torch.randn(shape, dtype=torch.float16))
    return {
        "shape": list(shape),
        "format": "int8",
        "matrix_bytes": size(matrix),
        "beside_bytes": size(scales),
    }


def main():
    torch.manual_seed(0)
    versions = ", ".join(f"{m.__name__} {m.__version__}"
                         for m in (torch, transformers, peft, bitsandbytes))
    golden = {
        "made_by": f"{versions}, tests/golden/adapters.py",
        "adapters": [adapters(*case) for case in CASES],
        "packed": [packed(shape, double) for shape in SHAPES for double in (False, True)]
        + [of_int8(shape) for shape in SHAPES],
    }
    print(json.dumps(golden, indent=2))


main()
