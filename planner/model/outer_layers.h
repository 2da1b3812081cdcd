#pragma once

#include "planner/model/families/transformer_config.h"
#include "planner/model/layer_builder.h"

namespace shardwise {

// The layers around the blocks. All take a configuration whose derived sizes are resolved.

/// Token embedding and what is added to it.
LayerSpec embedding_layer(const TransformerConfig& config);

/// Final norm, projection to the vocabulary and loss. A tied head owns no matrix.
LayerSpec head_layer(const TransformerConfig& config);

/// One multi-token-prediction layer: joins the hidden state with the embedding of the next token,
/// runs one block and predicts with the model's own head. Embedding and head are shared with the
/// model, so they are not parameters of this layer, although DeepSeek's checkpoint stores copies.
/// Source: DeepSeek-V3 (arXiv:2412.19437), section 2.2.
LayerSpec mtp_layer(const TransformerConfig& config);

/// The norm after an encoder's last block.
void add_encoder_final_norm(LayerBuilder& layer, const TransformerConfig& config);

}  // namespace shardwise
