#!/usr/bin/env python3
"""Counts the parameters of every catalogue model with Hugging Face's own model code.

Each configs/models/*.json is handed to transformers, the model is built on the meta device (no
memory, no weights, no network) and its tensors are counted. The result is the golden file that
tests/planner/model/published_counts_test.cc compares with.

    python3 -m venv venv && venv/bin/pip install transformers==4.57.6 torch
    venv/bin/python tests/golden/parameter_counts.py > tests/golden/parameter_counts.json
    venv/bin/python tests/golden/parameter_counts.py --tensors > tests/golden/checkpoint_tensors.json

--tensors prints, for a small instance of every family, its configuration and the name and shape of
every tensor.
"""

import argparse
import json
import pathlib
import sys

import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parents[2]
CATALOGUE = ROOT / "configs" / "models"

# BERT is trained with both of its heads, and its checkpoints hold both, whatever "architectures" says.
CLASSES = {
    "bert": "BertForPreTraining",
    "bloom": "BloomForCausalLM",
    "deepseek_v2": "DeepseekV2ForCausalLM",
    "deepseek_v3": "DeepseekV3ForCausalLM",
    "falcon": "FalconForCausalLM",
    "gemma": "GemmaForCausalLM",
    "gemma2": "Gemma2ForCausalLM",
    "gemma3": "Gemma3ForConditionalGeneration",
    "gemma3_text": "Gemma3ForCausalLM",
    "gpt2": "GPT2LMHeadModel",
    "gpt_neox": "GPTNeoXForCausalLM",
    "gpt_oss": "GptOssForCausalLM",
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "mixtral": "MixtralForCausalLM",
    "mpt": "MptForCausalLM",
    "opt": "OPTForCausalLM",
    "phi3": "Phi3ForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen2_moe": "Qwen2MoeForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "qwen3_moe": "Qwen3MoeForCausalLM",
    "t5": "T5ForConditionalGeneration",
}

# Buffers that are numbers of the model, not tables computed from its sizes.
STORED_BUFFERS = ("e_score_correction_bias",)

# Gemma 3 with images: the text model alone, under the names of the published checkpoint.
GEMMA3_TEXT = "model.language_model."

SMALL = {
    "vocab_size": 96,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}
SMALL_MLA = {
    **SMALL,
    "num_key_value_heads": 4,
    "kv_lora_rank": 12,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 6,
    "n_routed_experts": 4,
    "n_shared_experts": 2,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 20,
    "first_k_dense_replace": 1,
    "n_group": 1,
    "topk_group": 1,
}


def small_configs():
    """One or more small instances of every family, each flag that adds or removes a tensor in use."""
    gpt2 = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "vocab_size": 96}
    opt = {**SMALL, "ffn_dim": 48, "word_embed_proj_dim": 32}
    falcon = {"vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    t5 = {"vocab_size": 96, "d_model": 32, "d_kv": 6, "d_ff": 48, "num_layers": 3, "num_heads": 4,
          "relative_attention_num_buckets": 8}
    moe = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 20}
    gemma3 = {**SMALL, "head_dim": 6, "num_hidden_layers": 7, "sliding_window": 16}
    yield "gpt2", "gpt2", gpt2
    yield "gpt2_inner", "gpt2", {**gpt2, "n_inner": 40}
    yield "gpt_neox", "gpt_neox", SMALL
    yield "gpt_neox_half_rotated", "gpt_neox", {**SMALL, "rotary_pct": 0.5}
    yield "gpt_neox_no_attention_bias", "gpt_neox", {**SMALL, "attention_bias": False}
    yield "opt", "opt", opt
    yield "opt_projected", "opt", {**opt, "word_embed_proj_dim": 16, "do_layer_norm_before": False}
    yield "opt_no_bias", "opt", {**opt, "enable_bias": False}
    yield "bloom", "bloom", {"vocab_size": 96, "hidden_size": 32, "n_layer": 2, "n_head": 4}
    yield "falcon_multi_query", "falcon", falcon
    yield "falcon_grouped", "falcon", {**falcon, "new_decoder_architecture": True, "num_kv_heads": 2}
    yield "falcon_grouped_one_norm", "falcon", {
        **falcon, "new_decoder_architecture": True, "num_kv_heads": 2, "num_ln_in_parallel_attn": 1,
        "tie_word_embeddings": False}
    yield "falcon_serial", "falcon", {
        **falcon, "parallel_attn": False, "multi_query": False, "bias": True, "alibi": True,
        "ffn_hidden_size": 40}
    yield "mpt", "mpt", {"vocab_size": 96, "d_model": 32, "n_layers": 2, "n_heads": 4}
    yield "bert", "bert", {**SMALL, "type_vocab_size": 3}
    yield "t5", "t5", t5
    yield "t5_gated_untied", "t5", {
        **t5, "num_decoder_layers": 2, "feed_forward_proj": "gated-gelu",
        "tie_word_embeddings": False}
    yield "llama", "llama", SMALL
    yield "llama_biased_tied", "llama", {
        **SMALL, "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True,
        "head_dim": 10}
    yield "mistral", "mistral", {**SMALL, "head_dim": 6}
    yield "mistral_no_window", "mistral", {**SMALL, "sliding_window": None}
    yield "mixtral", "mixtral", {**SMALL, "num_local_experts": 3, "num_experts_per_tok": 2}
    yield "qwen2", "qwen2", {**SMALL, "tie_word_embeddings": True}
    yield "qwen2_windowed", "qwen2", {
        **SMALL, "use_sliding_window": True, "sliding_window": 16, "max_window_layers": 1}
    yield "qwen3", "qwen3", {**SMALL, "head_dim": 10}
    yield "qwen3_biased", "qwen3", {**SMALL, "head_dim": 10, "attention_bias": True}
    yield "qwen2_moe", "qwen2_moe", {
        **SMALL, **moe, "shared_expert_intermediate_size": 28, "mlp_only_layers": [1]}
    yield "qwen2_moe_sparse_step", "qwen2_moe", {
        **SMALL, **moe, "shared_expert_intermediate_size": 28, "decoder_sparse_step": 2,
        "qkv_bias": False}
    yield "qwen3_moe", "qwen3_moe", {**SMALL, **moe, "head_dim": 10, "mlp_only_layers": [0]}
    yield "gemma", "gemma", {**SMALL, "head_dim": 6}
    yield "gemma2", "gemma2", {**SMALL, "head_dim": 6, "sliding_window": 16}
    yield "gemma3_text", "gemma3_text", gemma3
    yield "gemma3_text_pattern", "gemma3_text", {**gemma3, "sliding_window_pattern": 3}
    yield "gemma3_pattern", "gemma3", {
        "text_config": {**gemma3, "model_type": "gemma3_text", "sliding_window_pattern": 2}}
    yield "gemma3", "gemma3", {"text_config": {**gemma3, "model_type": "gemma3_text"}}
    yield "phi3", "phi3", SMALL
    yield "phi3_half_rotated", "phi3", {**SMALL, "partial_rotary_factor": 0.5}
    yield "deepseek_v2", "deepseek_v2", {**SMALL_MLA, "q_lora_rank": 14}
    yield "deepseek_v2_direct_queries", "deepseek_v2", {
        **SMALL_MLA, "q_lora_rank": None, "attention_bias": True}
    yield "deepseek_v3", "deepseek_v3", {**SMALL_MLA, "q_lora_rank": 14, "n_shared_experts": 1}
    yield "gpt_oss", "gpt_oss", {
        **SMALL, "head_dim": 6, "num_local_experts": 3, "num_experts_per_tok": 2,
        "sliding_window": 16}


def build(config):
    """The model of a config.json, without memory behind its tensors."""
    model_type = config["model_type"]
    arguments = {key: value for key, value in config.items() if key != "model_type"}
    if model_type == "gemma3":  # the images' part does not matter here: as small as it gets
        arguments["vision_config"] = {
            "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1,
            "num_attention_heads": 1, "image_size": 14, "patch_size": 14}
    configuration = transformers.AutoConfig.for_model(model_type, **arguments)
    with torch.device("meta"):
        model = getattr(transformers, CLASSES[model_type])(configuration)
    model.tie_weights()
    return model


def tensors(model, model_type):
    """Name -> shape of what a checkpoint stores once, the text model's only."""
    found = {name: list(p.shape) for name, p in model.named_parameters(remove_duplicate=True)}
    found |= {name: list(b.shape) for name, b in model.named_buffers()
              if name.endswith(STORED_BUFFERS)}
    if model_type == "gemma3":
        found = {"language_model.model." + name.removeprefix(GEMMA3_TEXT): shape
                 for name, shape in found.items() if name.startswith(GEMMA3_TEXT)}
    return found


def elements(shape):
    product = 1
    for extent in shape:
        product *= extent
    return product


def count_catalogue():
    counts = {}
    for path in sorted(CATALOGUE.glob("*.json")):
        config = json.loads(path.read_text())
        found = tensors(build(config), config["model_type"])
        counts[path.stem] = sum(elements(shape) for shape in found.values())
        print(f"{path.stem:28} {counts[path.stem]:>18,}", file=sys.stderr)
    return counts


def count_defaults():
    """What a file that says nothing but its model_type describes."""
    counts = {}
    for model_type in sorted(CLASSES):
        config = {"model_type": model_type}
        if model_type == "gemma3":
            config["text_config"] = {"model_type": "gemma3_text"}
        found = tensors(build(config), model_type)
        counts[model_type] = sum(elements(shape) for shape in found.values())
    return counts


def list_small_tensors():
    return {
        case: {"config": {"model_type": model_type, **config},
               "tensors": tensors(build({"model_type": model_type, **config}), model_type)}
        for case, model_type, config in small_configs()
    }


def dump(sections):
    """One entry a line: readable in a diff, and no longer than it must be."""
    made_by = f"transformers {transformers.__version__}, tests/golden/parameter_counts.py"
    blocks = [f'  "made_by": {json.dumps(made_by)}']
    for key, entries in sections.items():
        lines = [f"    {json.dumps(name)}: {json.dumps(entry)}" for name, entry in entries.items()]
        blocks.append(f"  {json.dumps(key)}: {{\n" + ",\n".join(lines) + "\n  }")
    print("{\n" + ",\n".join(blocks) + "\n}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tensors", action="store_true", help="names and shapes of small instances")
    if parser.parse_args().tensors:
        dump({"families": list_small_tensors()})
    else:
        dump({"defaults": count_defaults(), "parameters": count_catalogue()})


if __name__ == "__main__":
    main()
