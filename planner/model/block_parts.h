#pragma once

#include <cstdint>
#include <string>

#include "planner/model/families/transformer_config.h"
#include "planner/model/layer_builder.h"

namespace shardwise {

// The parts a block is made of. All take a configuration whose derived sizes are resolved.

/// A norm over `width` elements a token, with its parameters.
void add_norm(LayerBuilder& layer, const TransformerConfig& config, const std::string& op,
              const std::string& module, std::int64_t width);

/// Differences of one attention from another in the same model.
struct AttentionSite {
  std::string op = "self_attn.";
  bool causal = true;
  bool cross = false;       // keys and values from the encoder
  std::int64_t window = 0;  // 0 = full
  bool owns_table = false;  // holds the table of relative positions its stack shares
};

/// Projections, rotary embedding, attention and output projection.
void add_attention(LayerBuilder& layer, const TransformerConfig& config,
                   const AttentionNames& names, const AttentionSite& site);

/// The dense feed-forward.
void add_mlp(LayerBuilder& layer, const TransformerConfig& config, const BlockNames& names);

/// Router, routed experts and shared experts.
void add_experts(LayerBuilder& layer, const TransformerConfig& config, const MoeConfig& moe,
                 const BlockNames& names);

/// A whole block, norms and residuals included.
struct BlockSite {
  AttentionSite attention;
  const MoeConfig* experts = nullptr;  // none: the dense feed-forward
  bool attends_to_encoder = false;
};
void add_block(LayerBuilder& layer, const TransformerConfig& config, const BlockNames& names,
               const BlockSite& site);

}  // namespace shardwise
