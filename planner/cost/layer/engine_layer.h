#pragma once

#include <optional>
#include <string_view>

#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/model_spec.h"

namespace shardwise {

/// A norm in front of the queries of latent attention, which the checkpoint does not have.
inline constexpr std::string_view kQueryNorm = "self_attn.q_proj_norm";

/// A layer as the engine's own modules compute it.
///
/// Megatron fuses a norm of the hidden size with the projection of queries where latent attention
/// has no q_lora_rank: its profile says norms_latent_queries. All else is the checkpoint's layer.
/// A layer that has the norm already stays as it is.
/// Source: Megatron-LM@d98e8a64:megatron/core/transformer/mla_qk_norm_config.py,
/// _resolve_mla_qk_layernorm.
class EngineLayer {
 public:
  /// \pre `layer` outlives this
  EngineLayer(const LayerSpec& layer, const EngineProfile& engine);
  EngineLayer(const EngineLayer&) = delete;
  EngineLayer& operator=(const EngineLayer&) = delete;

  const LayerSpec& operator*() const { return own_ ? *own_ : layer_; }
  const LayerSpec* operator->() const { return &**this; }

 private:
  const LayerSpec& layer_;
  std::optional<LayerSpec> own_;
};

}  // namespace shardwise
