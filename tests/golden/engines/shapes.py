"""Models of the goldens beside this file, as the keys of a Hugging Face config.json."""


def llama(layers, hidden, intermediate, heads, groups, vocabulary, head=0, **more):
    return {"model_type": "llama", "num_hidden_layers": layers, "hidden_size": hidden,
            "intermediate_size": intermediate, "num_attention_heads": heads,
            "num_key_value_heads": groups, "vocab_size": vocabulary,
            "head_dim": head or hidden // heads, "hidden_act": "silu",
            "max_position_embeddings": 131072, "rms_norm_eps": 1e-5,
            "tie_word_embeddings": False, **more}


def cut(model, layers, **more):
    """The same model with other layers, and with whatever else is said."""
    return {**model, "num_hidden_layers": layers, **more}


TIED = {"tie_word_embeddings": True}
LLAMA_8B = llama(32, 4096, 14336, 32, 8, 128256)
LLAMA_1B = llama(16, 2048, 8192, 32, 8, 128256, 64)
LLAMA_13B = llama(40, 5120, 13824, 40, 40, 32000)
LLAMA_70B = llama(80, 8192, 28672, 64, 8, 128256)
ODD = llama(7, 1344, 3572, 21, 3, 50021)  # rows that few degrees divide
ODDER = llama(7, 1050, 3571, 21, 3, 50021)  # and sizes that are no multiple of 64
SMALL_TABLE = llama(5, 1050, 3571, 21, 3, 20021)
QWEN2_1B = {**llama(28, 1536, 8960, 12, 2, 151936), "model_type": "qwen2",
            "use_sliding_window": False}
QWEN2_7B = {**llama(28, 3584, 18944, 28, 4, 152064), "model_type": "qwen2",
            "use_sliding_window": False}
QWEN2_72B = {**llama(80, 8192, 29568, 64, 8, 152064), "model_type": "qwen2",
             "use_sliding_window": False}
QWEN3_1B = {**llama(28, 2048, 6144, 16, 8, 151936, 128), "model_type": "qwen3",
            "use_sliding_window": False, **TIED}
MIXTRAL = {**llama(4, 4096, 14336, 32, 8, 32000), "model_type": "mixtral",
           "num_local_experts": 8, "num_experts_per_tok": 2}
DEEPSEEK = {
    "model_type": "deepseek_v2", "num_hidden_layers": 6, "hidden_size": 2048,
    "intermediate_size": 10944, "num_attention_heads": 16, "num_key_value_heads": 16,
    "vocab_size": 102400, "kv_lora_rank": 512, "q_lora_rank": None, "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 16, "n_shared_experts": 2,
    "num_experts_per_tok": 6, "moe_intermediate_size": 1408, "first_k_dense_replace": 1,
    "moe_layer_freq": 1, "n_group": 1, "topk_group": 1, "hidden_act": "silu",
    "max_position_embeddings": 16384, "rms_norm_eps": 1e-6, "tie_word_embeddings": False}
GPT2 = {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "n_positions": 1024,
        "n_ctx": 1024, "vocab_size": 50257, "activation_function": "gelu_pytorch_tanh",
        "layer_norm_epsilon": 1e-5, "attn_pdrop": 0, "embd_pdrop": 0, "resid_pdrop": 0}
WIDE_GPT2 = {**GPT2, "n_layer": 3, "n_embd": 1024, "n_head": 16}
PHI3 = {**llama(32, 3072, 8192, 32, 32, 32064), "model_type": "phi3", "pad_token_id": 0,
        "sliding_window": None}
NEOX = {"model_type": "gpt_neox", "num_hidden_layers": 16, "hidden_size": 2048,
        "intermediate_size": 8192, "num_attention_heads": 16, "vocab_size": 50432,
        "max_position_embeddings": 2048, "rotary_pct": 0.25, "use_parallel_residual": True,
        "tie_word_embeddings": False, "layer_norm_eps": 1e-5, "hidden_act": "gelu"}
GEMMA2 = {**llama(26, 2304, 9216, 8, 4, 256000, 256), "model_type": "gemma2", **TIED,
          "query_pre_attn_scalar": 256, "sliding_window": 4096, "attn_logit_softcapping": 50.0,
          "final_logit_softcapping": 30.0}
OPT = {"model_type": "opt", "num_hidden_layers": 24, "hidden_size": 2048, "ffn_dim": 8192,
       "num_attention_heads": 32, "vocab_size": 50272, "max_position_embeddings": 2048,
       "word_embed_proj_dim": 2048, "do_layer_norm_before": True, "activation_function": "relu",
       "dropout": 0.0, "attention_dropout": 0.0, **TIED}
