#!/usr/bin/env python3
"""Bytes of the states that AdamW of bitsandbytes and of torchao makes for catalogue models.

Models are built on the meta device, and each optimizer makes the states of their parameters by its
own init_state(). Managed memory needs a GPU: what is asked of it is counted, not allocated. What is
printed is the golden file of tests/planner/cost/memory/bitsandbytes_moments_test.cc.

    python3 -m venv venv && venv/bin/pip install torch torchao transformers bitsandbytes
    venv/bin/python tests/golden/optimizer_states.py > tests/golden/optimizer_states.json
"""

import json
import pathlib

import bitsandbytes
import bitsandbytes.functional
import torch
import torchao
import transformers
from torchao.optim import AdamW8bit

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = ("llama-3.1-8b", "llama-3.2-1b", "qwen2.5-0.5b", "gpt2", "opt-125m", "pythia-70m")
OPTIMIZERS = {
    "bnb_8bit": bitsandbytes.optim.AdamW8bit,
    "paged": bitsandbytes.optim.PagedAdamW32bit,
    "paged_8bit": bitsandbytes.optim.PagedAdamW8bit,
}


def counted_pages(*shape, dtype=torch.float32, device=None):
    tensor = torch.empty(shape, dtype=dtype, device="meta")
    tensor.is_paged = True
    return tensor


bitsandbytes.functional.get_paged = counted_pages
bitsandbytes.functional.fill = lambda *_, **__: None


def model_of(name):
    file = json.loads((ROOT / "configs" / "models" / f"{name}.json").read_text())
    config = transformers.AutoConfig.for_model(file.pop("model_type"), **file)
    with torch.device("meta"):
        return transformers.AutoModelForCausalLM.from_config(config)


def states(name, kind):
    model = model_of(name)
    optimizer = OPTIMIZERS[kind](model.parameters())
    if kind != "paged":  # as transformers' Trainer does, in create_optimizer()
        manager = bitsandbytes.optim.GlobalOptimManager.get_instance()
        manager.initialize()
        for module in model.modules():
            if isinstance(module, torch.nn.Embedding):
                manager.register_module_override(module, "weight", {"optim_bits": 32})
        optimizer.check_overrides()
    for g, group in enumerate(optimizer.param_groups):
        for p, parameter in enumerate(group["params"]):
            optimizer.init_state(group, parameter, g, p)
    bytes_of = {False: {}, True: {}}
    for state in optimizer.state.values():
        for tensor in state.values():
            if torch.is_tensor(tensor):
                paged = getattr(tensor, "is_paged", False)
                bytes_of[paged][id(tensor)] = tensor.numel() * tensor.element_size()
    resident, paged = (sum(bytes_of[kind].values()) for kind in (False, True))
    return {"model": name, "adamw": kind, "resident_bytes": resident, "paged_bytes": paged}


def torchao_states(name):
    model = model_of(name).float()
    optimizer = AdamW8bit(model.parameters())
    resident = 0
    for parameter in model.parameters():
        for signed in (True, False):
            state = optimizer._new_buffer(parameter, signed)
            names = getattr(state, "tensor_attrs", None)
            tensors = [getattr(state, each) for each in names] if names else [state]
            resident += sum(tensor.numel() * tensor.element_size() for tensor in tensors)
    return {"model": name, "resident_bytes": resident}


def main():
    versions = ", ".join(f"{m.__name__} {m.__version__}"
                         for m in (torch, torchao, transformers, bitsandbytes))
    golden = {
        "made_by": f"{versions}, tests/golden/optimizer_states.py",
        "states": [states(name, kind) for name in MODELS for kind in OPTIMIZERS],
        "torchao": [torchao_states(name) for name in MODELS],
    }
    print(json.dumps(golden, indent=2))


main()
