#include "planner/model/families/check_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

namespace shardwise {
namespace {

/// The divisors of `whole` on either side of `wanted`: "16 or 32".
/// \pre wanted does not divide whole; both are at least 1
std::string nearest_divisors(std::int64_t whole, std::int64_t wanted) {
  std::int64_t below = std::min(wanted, whole);
  while (whole % below != 0) --below;
  std::int64_t above = wanted;
  while (above <= kMaxHeads && whole % above != 0) ++above;
  return above > kMaxHeads ? std::to_string(below) : fmt::format("{} or {}", below, above);
}

/// "1, 2, 4 or 8"
std::string all_divisors(std::int64_t whole) {
  std::string text;
  for (std::int64_t divisor = 1; divisor <= whole; ++divisor) {
    if (whole % divisor != 0) continue;
    if (!text.empty()) text += divisor == whole ? " or " : ", ";
    text += std::to_string(divisor);
  }
  return text;
}

class Checker {
 public:
  Checker(TransformerConfig& config, const ConfigVoice& voice) : config_(config), voice_(voice) {}

  void run() {
    ranges();
    derive();
    heads();
    rotary();
    layers();
    experts();
    latent_attention();
    total();
  }

 private:
  std::string key(std::string_view field) const { return voice_.key_of(field); }
  bool usable(std::initializer_list<std::string_view> fields) const {
    return std::all_of(fields.begin(), fields.end(),
                       [&](std::string_view f) { return voice_.usable(f) && !failed(f); });
  }
  bool failed(std::string_view field) const {
    return std::find(failed_.begin(), failed_.end(), field) != failed_.end();
  }
  void fail(std::string_view field, std::string message, std::string hint = {}) {
    failed_.emplace_back(field);
    voice_.fail(field, std::move(message), std::move(hint));
  }
  void range(std::string_view field, std::int64_t value, std::int64_t low, std::int64_t high) {
    if (!usable({field}) || (value >= low && value <= high)) return;
    fail(field, fmt::format("{} is too {}", value, value < low ? "small" : "large"),
         fmt::format("use {} to {}", low, high));
  }

  void ranges() {
    const TransformerConfig& c = config_;
    range("hidden_size", c.hidden_size, 1, kMaxSize);
    range("num_hidden_layers", c.num_hidden_layers, 1, kMaxLayers);
    range("num_encoder_layers", c.num_encoder_layers, 0, kMaxLayers);
    range("num_attention_heads", c.num_attention_heads, 1, kMaxHeads);
    range("num_key_value_heads", c.num_key_value_heads, 0, kMaxHeads);
    range("head_dim", c.head_dim, 0, kMaxSize);
    range("intermediate_size", c.intermediate_size, 1, kMaxSize);
    range("vocab_size", c.vocab_size, 1, kMaxSize);
    range("max_position_embeddings", c.max_position_embeddings, 1, kMaxSize);
    range("position_table_rows", c.position_table_rows, 0, kMaxSize);
    range("rotary_dim", c.rotary_dim, 0, kMaxSize);
    range("relative_attention_num_buckets", c.relative_attention_num_buckets, 1, kMaxSize);
    range("embedding_size", c.embedding_size, 0, kMaxSize);
    range("type_vocab_size", c.type_vocab_size, 0, kMaxSize);
    range("num_mtp_layers", c.num_mtp_layers, 0, kMaxLayers);
  }

  void derive() {
    TransformerConfig& c = config_;
    if (c.num_key_value_heads == 0) c.num_key_value_heads = c.num_attention_heads;
    if (c.embedding_size == 0) c.embedding_size = c.hidden_size;
    if (c.position_table_rows == 0) c.position_table_rows = c.max_position_embeddings;
    if (c.mla) {
      c.head_dim = c.mla->qk_nope_head_dim + c.mla->qk_rope_head_dim;
      c.num_key_value_heads = c.num_attention_heads;
      c.rotary_dim = c.mla->qk_rope_head_dim;
    }
    if (c.head_dim == 0 && usable({"hidden_size", "num_attention_heads"})) {
      if (c.hidden_size % c.num_attention_heads != 0) {
        fail("num_attention_heads",
             fmt::format("{} does not divide {} ({})", c.num_attention_heads, key("hidden_size"),
                         c.hidden_size),
             "use " + nearest_divisors(c.hidden_size, c.num_attention_heads));
        failed_.emplace_back("head_dim");
      } else {
        c.head_dim = c.hidden_size / c.num_attention_heads;
      }
    }
    if (c.rotary_dim == 0) c.rotary_dim = c.head_dim;
  }

  void heads() {
    const TransformerConfig& c = config_;
    if (!usable({"num_attention_heads", "num_key_value_heads"})) return;
    if (c.num_attention_heads % c.num_key_value_heads == 0) return;
    fail("num_key_value_heads",
         fmt::format("{} does not divide {} ({})", c.num_key_value_heads,
                     key("num_attention_heads"), c.num_attention_heads),
         "use " + all_divisors(c.num_attention_heads));
  }

  void rotary() {
    const TransformerConfig& c = config_;
    if (c.position_embedding != PositionEmbedding::rope || c.mla) return;
    if (!usable({"rotary_dim", "head_dim"})) return;
    if (c.rotary_dim > c.head_dim) {
      fail("rotary_dim",
           fmt::format("{} is more than {} ({})", c.rotary_dim, key("head_dim"), c.head_dim));
    } else if (c.rotary_dim % 2 != 0) {
      fail("rotary_dim", fmt::format("{} rotated elements of a head are not pairs", c.rotary_dim),
           "use an even number");
    }
  }

  void layers() {
    const TransformerConfig& c = config_;
    if (!usable({"num_hidden_layers"})) return;
    const auto n = static_cast<std::size_t>(c.num_hidden_layers);
    if (!c.windows.empty() && c.windows.size() != n) {
      fail("windows", fmt::format("its length is {}, but there are {} layers", c.windows.size(), n),
           "give one entry a layer");
    }
    for (const std::int64_t window : c.windows) range("windows", window, 0, kMaxSize);
  }

  void experts() {
    if (!config_.moe) return;
    const MoeConfig& moe = *config_.moe;
    range("num_experts", moe.num_experts, 1, kMaxExperts);
    range("num_experts_per_tok", moe.num_experts_per_tok, 1, kMaxExperts);
    range("moe_intermediate_size", moe.intermediate_size, 1, kMaxSize);
    range("shared_intermediate_size", moe.shared_intermediate_size, 0, kMaxSize);
    if (usable({"num_experts", "num_experts_per_tok"}) &&
        moe.num_experts_per_tok > moe.num_experts) {
      fail("num_experts_per_tok",
           fmt::format("{} is more than {} ({})", moe.num_experts_per_tok, key("num_experts"),
                       moe.num_experts),
           fmt::format("use 1 to {}", moe.num_experts));
    }
    if (!usable({"num_hidden_layers", "dense_layers"})) return;
    for (const std::int64_t layer : moe.dense_layers) {
      if (layer >= 0 && layer < config_.num_hidden_layers) continue;
      fail("dense_layers", fmt::format("there is no layer {}", layer),
           fmt::format("layers are 0 to {}", config_.num_hidden_layers - 1));
      return;
    }
  }

  void latent_attention() {
    if (!config_.mla) return;
    const MlaConfig& mla = *config_.mla;
    range("q_lora_rank", mla.q_lora_rank, 0, kMaxSize);
    range("kv_lora_rank", mla.kv_lora_rank, 1, kMaxSize);
    range("qk_nope_head_dim", mla.qk_nope_head_dim, 0, kMaxSize);
    range("qk_rope_head_dim", mla.qk_rope_head_dim, 1, kMaxSize);
    range("v_head_dim", mla.v_head_dim, 1, kMaxSize);
  }

  /// A count from above in floating point, so that the exact one cannot overflow.
  void total() {
    if (!failed_.empty()) return;
    const TransformerConfig& c = config_;
    const auto real = [](std::int64_t value) { return static_cast<double>(value); };
    const double hidden = real(c.hidden_size);
    const double heads = real(c.num_attention_heads);
    double block =
        4.0 * hidden * heads * real(c.head_dim) + 3.0 * hidden * real(c.intermediate_size);
    if (c.mla) {
      const double queries = real(c.mla->q_lora_rank);
      const double latent = real(c.mla->kv_lora_rank);
      const double values = real(c.mla->v_head_dim);
      block += queries * (hidden + heads * real(c.head_dim)) +
               latent * (hidden + heads * (real(c.head_dim) + values)) + heads * values * hidden;
    }
    if (c.moe) {
      block += 3.0 * hidden *
               (real(c.moe->num_experts) * (real(c.moe->intermediate_size) + 1) +
                real(c.moe->shared_intermediate_size));
    }
    const double layers = real(c.num_hidden_layers + c.num_encoder_layers + c.num_mtp_layers);
    const double tables = 2.0 * (real(c.vocab_size) + hidden) * real(c.embedding_size) +
                          (real(c.position_table_rows) + real(c.type_vocab_size)) * hidden;
    // Twice the blocks: attention to an encoder, biases, norms and heads are less than another one.
    const double parameters = 2.0 * layers * block + tables;
    if (parameters <= kMaxParameters) return;
    fail("hidden_size",
         fmt::format("the model has up to {:.0e} parameters, more than {:.0e}", parameters,
                     kMaxParameters),
         "check the sizes");
  }

  TransformerConfig& config_;
  const ConfigVoice& voice_;
  std::vector<std::string> failed_;
};

}  // namespace

void resolve_and_check(TransformerConfig& config, const ConfigVoice& voice) {
  Checker(config, voice).run();
}

std::vector<std::int64_t> dense_layers_of(std::int64_t num_layers, std::int64_t first_dense,
                                          std::int64_t frequency) {
  std::vector<std::int64_t> dense;
  for (std::int64_t layer = 0; layer < num_layers; ++layer) {
    if (layer < first_dense || layer % frequency != 0) dense.push_back(layer);
  }
  return dense;
}

}  // namespace shardwise
