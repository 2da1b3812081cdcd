#pragma once

#include <string>

#include "planner/model/families/transformer_config.h"
#include "planner/spec/plan/model_spec.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// The layers, parameters and operations of a transformer.
///
/// The sequence is: embedding, encoder blocks, blocks, head, multi-token-prediction layers. Equal
/// layers share a kind: "embedding", "encoder_first", "encoder", "encoder_last", "block" (the usual
/// one), "dense_block" (dense feed-forward in a model of experts), "sliding_4096_block" when a
/// window limits attention, "first_block" when the layer owns the table of relative positions,
/// "head", "mtp".
///
/// Operations have the same names in every family, whatever the checkpoint calls the tensors:
///   embedding  token_embedding, token_type_embedding, position_embedding, each added one followed
///              by token_type_add, position_add; embedding_norm, project_in
///   block      attention_norm, self_attn.q_proj k_proj v_proj | qkv_proj | q_a_proj q_a_norm
///   q_b_proj
///              kv_a_proj kv_a_norm kv_b_proj, self_attn.q_norm k_norm, self_attn.rope,
///              self_attn.core, self_attn.o_proj, attention_output_norm, attention_residual,
///              the same with cross_attn. and cross_attention_, mlp_norm,
///              mlp.gate_proj up_proj | gate_up_proj, mlp.activation, mlp.down_proj |
///              mlp.router_proj, mlp.router, mlp.dispatch, mlp.experts.*, mlp.combine,
///              mlp.shared.*, mlp.shared_gate_proj, mlp_output_norm, mlp_residual
///   head       final_norm, project_out, transform, transform_activation, transform_norm, lm_head,
///              logit_softcap, loss
///   mtp        mtp_embedding_norm, mtp_hidden_norm, mtp_proj, a block's, then a head's
/// GEMMs of routed experts count tokens × num_experts_per_tok rows, spread over the experts. Keys
/// and values of cross-attention (`cross`) are made from the encoder's tokens. BERT's pooler and
/// next-sentence head run once a sequence; they are parameters without an operation.
///
/// \returns the model, or everything inconsistent in `config` (path = "/" + the field's name)
Result<ModelSpec> make_model(const TransformerConfig& config, const std::string& name);

}  // namespace shardwise
