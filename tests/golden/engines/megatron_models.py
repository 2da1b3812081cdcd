"""GPT models of megatron.core without memory, their parameters in Transformer Engine's order.

Transformer Engine is not needed: its modules are stood in for by classes that register the same
parameters in the same order, and Megatron's own specification of a layer puts them together.
TELayerNormColumnParallelLinear registers the norm's weight and bias, then the matrix and its bias;
TEGroupedLinear registers one matrix an expert, weight0, weight1 and so on; TENorm a weight (and a
bias, LayerNorm); TELinear a whole matrix. Source: NVIDIA/TransformerEngine,
transformer_engine/pytorch/module/{layernorm_linear,grouped_linear}.py.
"""

import contextlib
import functools
import io

from without_gpu import device

import torch

with contextlib.redirect_stdout(io.StringIO()):
    import megatron.core as core
from megatron.core import parallel_state
from megatron.core.models import backends
from megatron.core.models.gpt import gpt_layer_specs
from megatron.core.models.gpt.gpt_model import GPTModel
from megatron.core.tensor_parallel.layers import ColumnParallelLinear, RowParallelLinear
from megatron.core.transformer import mla_qk_norm_config, multi_latent_attention
from megatron.core.transformer import multi_token_prediction
from megatron.core.transformer.dot_product_attention import DotProductAttention
from megatron.core.transformer.moe import experts as moe_experts
from megatron.core.transformer.transformer_config import MLATransformerConfig, TransformerConfig


def parameter(config, *shape):
    return torch.nn.Parameter(torch.empty(*shape, dtype=config.params_dtype, device=device()))


class Norm(torch.nn.Module):
    """What TENorm registers."""

    def __init__(self, config=None, hidden_size=0, eps=1e-5, **_):
        super().__init__()
        self.weight = parameter(config, hidden_size)
        if config.normalization == "LayerNorm":
            self.bias = parameter(config, hidden_size)

    def forward(self, x):
        return torch.nn.functional.rms_norm(x, self.weight.shape, self.weight)


class NormThenLinear(ColumnParallelLinear):
    """What TELayerNormColumnParallelLinear registers."""

    def __init__(self, input_size, *args, config, **kwargs):
        super().__init__(input_size, *args, config=config, **kwargs)
        matrix = {name: self._parameters.pop(name) for name in ("weight", "bias")
                  if self._parameters.get(name) is not None}
        self.layer_norm_weight = parameter(config, input_size)
        if config.normalization == "LayerNorm":
            self.layer_norm_bias = parameter(config, input_size)
        for name, value in matrix.items():
            self._parameters.pop(name, None)
            self.register_parameter(name, value)

    def forward(self, x, *args, **kwargs):
        norm = torch.nn.functional.rms_norm(x, self.layer_norm_weight.shape, self.layer_norm_weight)
        return super().forward(norm, *args, **kwargs)


class WholeLinear(torch.nn.Module):
    """What TELinear registers where every tensor-parallel rank has all of it."""

    def __init__(self, input_size, output_size, *, config, bias=False, **_):
        super().__init__()
        self.weight = parameter(config, output_size, input_size)
        if bias:
            self.bias = parameter(config, output_size)

    def forward(self, x):
        return torch.nn.functional.linear(x, self.weight), None


class GroupedLinear(torch.nn.Module):
    """What TEGroupedLinear registers: `cut` is the dimension that tensor parallelism shares."""

    cut = 0

    def __init__(self, num_gemms, input_size, output_size, *, config, pg_collection=None, **_):
        super().__init__()
        ranks = pg_collection.expt_tp.size()
        shape = [output_size, input_size]
        shape[self.cut] //= ranks
        for expert in range(num_gemms):
            weight = parameter(config, *shape)
            weight.allreduce = (
                config.expert_model_parallel_size == 1 and
                config.expert_tensor_parallel_size == config.tensor_model_parallel_size)
            self.register_parameter(f"weight{expert}", weight)


class GroupedRows(GroupedLinear):
    cut = 1


class Attention(DotProductAttention):
    """Megatron's own attention, which takes no widths of latent attention; it has no parameters."""

    def __init__(self, *args, k_channels=None, v_channels=None, **kwargs):
        super().__init__(*args, **kwargs)


class TransformerEngineOrder(backends.LocalSpecProvider):
    """Megatron's choice of Transformer Engine's modules, with the stand-ins above."""

    sequential = False

    def core_attention(self):
        return Attention

    def linear(self):
        return WholeLinear

    def fuse_layernorm_and_linear(self):
        return True

    def column_parallel_layer_norm_linear(self):
        return NormThenLinear

    def layer_norm(self, rms_norm=False, for_qk=False, has_residual=False):
        return Norm

    def grouped_mlp_modules(self, moe_use_grouped_gemm):
        if not moe_use_grouped_gemm:
            return super().grouped_mlp_modules(False)
        return functools.partial(
            moe_experts.TEGroupedMLP,
            submodules=moe_experts.GroupedMLPSubmodules(
                linear_fc1=GroupedLinear, linear_fc2=GroupedRows))


gpt_layer_specs.TESpecProvider = TransformerEngineOrder
gpt_layer_specs.TENorm = Norm
multi_latent_attention.TELinear = WholeLinear
multi_token_prediction.is_inference_column_parallel_linear = lambda _: False
mla_qk_norm_config.get_backend = lambda _: TransformerEngineOrder()


def padded_vocabulary(vocabulary, tensor_ranks):
    step = 128 * tensor_ranks  # --make-vocab-size-divisible-by
    return -(-vocabulary // step) * step


def config_of(model, layout, grouped):
    """Megatron's configuration of a shape and the degrees of a layout."""
    gpt2 = model["model_type"] == "gpt2"
    layers = model["n_layer"] if gpt2 else model["num_hidden_layers"]
    words = dict(
        num_layers=layers, bf16=True, params_dtype=torch.bfloat16, pipeline_dtype=torch.bfloat16,
        perform_initialization=False, gradient_accumulation_fusion=False, attention_dropout=0,
        hidden_dropout=0, mtp_num_layers=model.get("num_nextn_predict_layers") or None,
        tensor_model_parallel_size=layout.get("tp", 1),
        pipeline_model_parallel_size=layout.get("pp", 1),
        expert_model_parallel_size=layout.get("ep", 1),
        expert_tensor_parallel_size=layout.get("etp", 1))
    if gpt2:
        return TransformerConfig(
            hidden_size=model["n_embd"], num_attention_heads=model["n_head"],
            ffn_hidden_size=4 * model["n_embd"], normalization="LayerNorm", add_bias_linear=True,
            **words)
    experts = model.get("num_local_experts") or model.get("n_routed_experts")
    words |= dict(
        hidden_size=model["hidden_size"], num_attention_heads=model["num_attention_heads"],
        ffn_hidden_size=model["intermediate_size"], gated_linear_unit=True, add_bias_linear=False,
        add_qkv_bias=model["model_type"] == "qwen2", normalization="RMSNorm",
        activation_func=torch.nn.functional.silu, qk_layernorm=model["model_type"] == "qwen3")
    if experts:
        dense = model.get("first_k_dense_replace", 0)
        words |= dict(
            num_moe_experts=experts, moe_router_topk=model["num_experts_per_tok"],
            moe_grouped_gemm=grouped, moe_router_pre_softmax=True,
            moe_ffn_hidden_size=model.get("moe_intermediate_size", model["intermediate_size"]),
            moe_layer_freq=[0] * dense + [1] * (layers - dense))
        if model["model_type"] == "deepseek_v3":
            words |= dict(moe_router_enable_expert_bias=True, moe_router_score_function="sigmoid",
                          moe_router_pre_softmax=False)
        if model.get("n_shared_experts"):
            words["moe_shared_expert_intermediate_size"] = (
                model["n_shared_experts"] * model["moe_intermediate_size"])
    if "kv_lora_rank" in model:
        return MLATransformerConfig(
            multi_latent_attention=True, q_lora_rank=model["q_lora_rank"],
            kv_lora_rank=model["kv_lora_rank"], qk_head_dim=model["qk_nope_head_dim"],
            qk_pos_emb_head_dim=model["qk_rope_head_dim"], v_head_dim=model["v_head_dim"],
            **(words | {"qk_layernorm": True}))
    return TransformerConfig(
        num_query_groups=model["num_key_value_heads"], kv_channels=model["head_dim"], **words)


def build(model, layout, stage, *, grouped=True, modules="te"):
    """The GPT of one pipeline stage; its parameters in bf16 on device()."""
    config = config_of(model, layout, grouped)
    gpt2 = model["model_type"] == "gpt2"
    pp = layout.get("pp", 1)
    spec = gpt_layer_specs.get_gpt_decoder_block_spec(
        config, use_transformer_engine=modules == "te", normalization=config.normalization)
    predicted = None  # multi-token prediction, on the last stage
    if config.mtp_num_layers and stage == pp - 1:
        predicted = gpt_layer_specs.get_gpt_mtp_block_spec_for_backend(
            config, spec, backend=TransformerEngineOrder())
    gpt = GPTModel(
        config, spec, mtp_block_spec=predicted, vocab_size=padded_vocabulary(model["vocab_size"], layout.get("tp", 1)),
        max_sequence_length=1024 if gpt2 else 8192,
        position_embedding_type="learned_absolute" if gpt2 else "rope",
        share_embeddings_and_output_weights=gpt2 or model.get("tie_word_embeddings", False),
        pre_process=stage == 0, post_process=stage == pp - 1)
    for module in gpt.modules():  # Module.to does not take parameters without bytes
        for name, value in list(module._parameters.items()):
            if value is not None and (value.device != device() or value.dtype != torch.bfloat16):
                own = torch.nn.Parameter(
                    torch.empty(value.shape, dtype=torch.bfloat16, device=device()))
                own.__dict__.update(value.__dict__)
                module._parameters[name] = own
    return gpt, config


@contextlib.contextmanager
def model_parallel(layout, stage):
    """Megatron's groups for one rank of a stage: the first one of it."""
    from without_gpu import process_group

    degrees = {key: layout.get(key, 1) for key in ("tp", "pp", "cp", "ep", "etp", "dp_shard",
                                                   "dp_replicate")}
    world = (degrees["tp"] * degrees["pp"] * degrees["cp"] * degrees["dp_shard"] *
             degrees["dp_replicate"])
    with process_group(stage * world // degrees["pp"], world):
        parallel_state.initialize_model_parallel(
            degrees["tp"], degrees["pp"], context_parallel_size=degrees["cp"],
            expert_model_parallel_size=degrees["ep"],
            expert_tensor_parallel_size=degrees["etp"], create_gloo_process_groups=False,
            num_distributed_optimizer_instances=degrees["dp_replicate"])
        try:
            yield
        finally:
            parallel_state.destroy_model_parallel()
