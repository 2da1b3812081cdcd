// make_model against a count written down independently, for random architectures.
#include "planner/model/build.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "planner/model/parameter_counts.h"

namespace shardwise {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;

/// A seeded source of small architectures.
class Architectures {
 public:
  explicit Architectures(unsigned seed) : random_(seed) {}

  TransformerConfig next() {
    TransformerConfig c;
    c.num_key_value_heads = number(1, 4);
    c.num_attention_heads = c.num_key_value_heads * number(1, 4);
    c.head_dim = 2 * number(1, 8);
    c.hidden_size = number(1, 64);
    c.num_hidden_layers = number(1, 6);
    c.intermediate_size = number(1, 99);
    c.vocab_size = number(1, 300);
    c.max_position_embeddings = number(1, 50);
    c.tie_word_embeddings = flip();
    c.norm = flip() ? NormKind::rmsnorm : NormKind::layernorm;
    c.norm_bias = flip();
    c.qk_norm = flip();
    c.qkv_bias = flip();
    c.attention_output_bias = flip();
    c.mlp_bias = flip();
    c.fused_qkv = flip();
    c.fused_gate_up = flip();
    c.gated_mlp = flip();
    c.position_embedding = flip() ? PositionEmbedding::rope : PositionEmbedding::learned;
    c.names.position_embedding = "positions";
    if (flip()) c.moe = experts(c);
    if (flip()) c.mla = latent();
    c.num_mtp_layers = number(0, 2);
    return c;
  }

 private:
  std::int64_t number(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  bool flip() { return number(0, 1) == 1; }
  MoeConfig experts(const TransformerConfig& c) {
    MoeConfig moe;
    moe.num_experts = number(1, 8);
    moe.num_experts_per_tok = number(1, moe.num_experts);
    moe.intermediate_size = number(1, 40);
    moe.shared_intermediate_size = number(0, 2) * moe.intermediate_size;
    moe.dense_layers = dense_layers_of(c.num_hidden_layers, number(0, 2), number(1, 3));
    moe.router_bias = flip();
    return moe;
  }
  MlaConfig latent() {
    return {.q_lora_rank = number(0, 20),
            .kv_lora_rank = number(1, 20),
            .qk_nope_head_dim = number(1, 9),
            .qk_rope_head_dim = 2 * number(1, 4),
            .v_head_dim = number(1, 9)};
  }

  std::mt19937 random_;
};

struct Expected {
  std::int64_t total = 0;
  std::int64_t active = 0;  // MTP layers included
};

/// The parameters of the same architecture, counted matrix by matrix as one would on paper.
Expected count_on_paper(const TransformerConfig& c) {
  const std::int64_t h = c.hidden_size;
  const std::int64_t norm = h * (c.norm_bias ? 2 : 1);
  std::int64_t attention = 0;
  if (c.mla) {
    const MlaConfig& m = *c.mla;
    const std::int64_t heads = c.num_attention_heads;
    const std::int64_t qk = m.qk_nope_head_dim + m.qk_rope_head_dim;
    const std::int64_t latent = m.kv_lora_rank + m.qk_rope_head_dim;
    const std::int64_t norms = c.norm_bias ? 2 : 1;
    attention += m.q_lora_rank > 0
                     ? h * m.q_lora_rank + norms * m.q_lora_rank + m.q_lora_rank * heads * qk +
                           (c.qkv_bias ? m.q_lora_rank : 0)
                     : h * heads * qk;
    attention += h * latent + (c.qkv_bias ? latent : 0) + norms * m.kv_lora_rank;
    attention += m.kv_lora_rank * heads * (m.qk_nope_head_dim + m.v_head_dim);
    attention += heads * m.v_head_dim * h;
  } else {
    const std::int64_t q = c.num_attention_heads * c.head_dim;
    const std::int64_t kv = c.num_key_value_heads * c.head_dim;
    attention += h * (q + 2 * kv) + (c.qkv_bias ? q + 2 * kv : 0) + q * h;
    if (c.qk_norm) attention += 2 * c.head_dim;
  }
  if (c.attention_output_bias) attention += h;

  const auto feed_forward = [&](std::int64_t width) {
    const std::int64_t ups = c.gated_mlp ? 2 : 1;
    return (ups + 1) * h * width + (c.mlp_bias ? ups * width + h : 0);
  };
  const std::int64_t dense = attention + 2 * norm + feed_forward(c.intermediate_size);
  std::int64_t sparse = 0;
  std::int64_t sparse_active = 0;
  if (c.moe) {
    const MoeConfig& m = *c.moe;
    std::int64_t always = attention + 2 * norm + m.num_experts * h;
    if (m.router_bias) always += m.num_experts;
    if (m.shared_intermediate_size > 0) always += feed_forward(m.shared_intermediate_size);
    sparse = always + m.num_experts * feed_forward(m.intermediate_size);
    sparse_active = always + m.num_experts_per_tok * feed_forward(m.intermediate_size);
  }

  Expected expected;
  const auto add = [&](std::int64_t total, std::int64_t active) {
    expected.total += total;
    expected.active += active;
  };
  const std::int64_t dense_layers =
      c.moe ? static_cast<std::int64_t>(c.moe->dense_layers.size()) : c.num_hidden_layers;
  const std::int64_t sparse_layers = c.num_hidden_layers - dense_layers;
  add(dense_layers * dense, dense_layers * dense);
  add(sparse_layers * sparse, sparse_layers * sparse_active);
  std::int64_t tables = c.vocab_size * h * (c.tie_word_embeddings ? 1 : 2) + norm;
  if (c.position_embedding == PositionEmbedding::learned) tables += c.max_position_embeddings * h;
  add(tables, tables);
  const std::int64_t mtp = 3 * norm + 2 * h * h;
  add(c.num_mtp_layers * (mtp + (c.moe ? sparse : dense)), 0);  // active is of the main model
  return expected;
}

TEST(MakeModel, CountsWhatOneWouldOnPaper) {
  constexpr unsigned kSeed = 20260822;
  Architectures architectures(kSeed);
  for (int i = 0; i < 2000; ++i) {
    const TransformerConfig config = architectures.next();
    const Result<ModelSpec> model = make_model(config, "random");
    ASSERT_TRUE(model.ok()) << to_string(model.problems());
    const Expected expected = count_on_paper(config);
    ASSERT_EQ(model->parameter_count(), expected.total) << "seed " << kSeed << ", number " << i;
    const ParameterCounts counts = count_parameters(*model);
    ASSERT_EQ(counts.active, expected.active) << "seed " << kSeed << ", number " << i;
    ASSERT_EQ(counts.total, expected.total);
    ASSERT_LE(counts.active + counts.mtp, expected.total);
  }
}

TEST(MakeModel, SaysEverythingThatDoesNotFit) {
  TransformerConfig config;
  config.hidden_size = 100;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 7;
  config.intermediate_size = 400;
  config.vocab_size = -5;
  config.max_position_embeddings = 64;
  config.windows = {16};
  config.moe.emplace();
  config.moe->num_experts = 2;
  config.moe->num_experts_per_tok = 3;
  config.moe->intermediate_size = 8;
  const Result<ModelSpec> model = make_model(config, "mine");
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(to_string(model.problems()),
            "mine: /vocab_size: -5 is too small\n"
            "    use 1 to 100000000\n"
            "mine: /num_attention_heads: 7 does not divide hidden_size (100)\n"
            "    use 5 or 10\n"
            "mine: /windows: its length is 1, but there are 2 layers\n"
            "    give one entry a layer\n"
            "mine: /num_experts_per_tok: 3 is more than num_experts (2)\n"
            "    use 1 to 2\n"
            "4 problems, nothing was run\n");
}

TEST(MakeModel, RefusesWhatNoMachineHolds) {
  TransformerConfig config;
  config.hidden_size = 100'000'000;
  config.num_hidden_layers = 10'000;
  config.num_attention_heads = 50'000;
  config.intermediate_size = 100'000'000;
  config.vocab_size = 100'000'000;
  config.max_position_embeddings = 100'000'000;
  const Result<ModelSpec> model = make_model(config, "huge");
  ASSERT_FALSE(model.ok());
  EXPECT_THAT(model.problems(),
              ElementsAre(Field(&Diagnostic::message, HasSubstr("more than 1e+15"))));
}

TEST(DenseLayers, AreTheFirstAndThoseBetweenExperts) {
  EXPECT_THAT(dense_layers_of(4, 0, 1), testing::IsEmpty());
  EXPECT_THAT(dense_layers_of(4, 1, 1), ElementsAre(0));
  EXPECT_THAT(dense_layers_of(6, 0, 2), ElementsAre(1, 3, 5));
  EXPECT_THAT(dense_layers_of(6, 3, 2), ElementsAre(0, 1, 2, 3, 5));
}

}  // namespace
}  // namespace shardwise
