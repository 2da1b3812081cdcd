// What cost models read: the operations of a layer, their shapes, and how tp cuts them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "planner/model/hf_config.h"
#include "planner/model/parameter_counts.h"
#include "planner/spec/json/catalogue.h"
#include "tests/planner/model/model_of_file.h"

namespace shardwise {
namespace {

using testing::ElementsAre;

const LayerSpec& kind(const ModelSpec& model, const std::string& name) {
  static const LayerSpec kNone;
  for (const LayerSpec& layer : model.kinds) {
    if (layer.name == name) return layer;
  }
  ADD_FAILURE() << model.name << " has no " << name;
  return kNone;
}

const OperationSpec& operation(const LayerSpec& layer, const std::string& name) {
  static const OperationSpec kNone;
  for (const OperationSpec& each : layer.operations) {
    if (each.name == name) return each;
  }
  ADD_FAILURE() << layer.name << " has no " << name;
  return kNone;
}

std::vector<std::string> operation_names(const LayerSpec& layer) {
  std::vector<std::string> names;
  names.reserve(layer.operations.size());
  for (const OperationSpec& each : layer.operations) names.push_back(each.name);
  return names;
}

/// Names of the kinds in the order of the layers, equal neighbours once with their number.
std::vector<std::string> runs(const ModelSpec& model) {
  std::vector<std::string> result;
  for (std::size_t i = 0; i < model.layers.size();) {
    std::size_t end = i;
    while (end < model.layers.size() && model.layers[end] == model.layers[i]) ++end;
    result.push_back(std::to_string(end - i) + " " +
                     model.kinds[static_cast<std::size_t>(model.layers[i])].name);
    i = end;
  }
  return result;
}

TEST(Operations, OfALlamaBlockComeInForwardOrder) {
  const ModelSpec model = test::model_of_file("llama-3.1-8b");
  EXPECT_THAT(runs(model), ElementsAre("1 embedding", "32 block", "1 head"));
  EXPECT_THAT(operation_names(kind(model, "block")),
              ElementsAre("attention_norm", "self_attn.q_proj", "self_attn.k_proj",
                          "self_attn.v_proj", "self_attn.rope", "self_attn.core",
                          "self_attn.o_proj", "attention_residual", "mlp_norm", "mlp.gate_proj",
                          "mlp.up_proj", "mlp.activation", "mlp.down_proj", "mlp_residual"));
  EXPECT_THAT(operation_names(kind(model, "head")), ElementsAre("final_norm", "lm_head", "loss"));
}

TEST(Operations, CarryShapesAndTheirSplit) {
  const ModelSpec model = test::model_of_file("llama-3.1-8b");
  const LayerSpec& block = kind(model, "block");
  const OperationSpec& k_proj = operation(block, "self_attn.k_proj");
  EXPECT_EQ(k_proj.kind, OpKind::gemm);
  EXPECT_EQ(k_proj.width, 1024);
  EXPECT_EQ(k_proj.k, 4096);
  EXPECT_EQ(k_proj.tp, TpSplit::column);
  const OperationSpec& down = operation(block, "mlp.down_proj");
  EXPECT_EQ(down.width, 4096);
  EXPECT_EQ(down.k, 14336);
  EXPECT_EQ(down.tp, TpSplit::row);
  const OperationSpec& core = operation(block, "self_attn.core");
  EXPECT_EQ(core.heads, 32);
  EXPECT_EQ(core.kv_heads, 8);
  EXPECT_EQ(core.qk_head_dim, 128);
  EXPECT_EQ(core.v_head_dim, 128);
  EXPECT_TRUE(core.causal);
  EXPECT_EQ(core.window, 0);
  EXPECT_EQ(operation(block, "self_attn.rope").width, (32 + 8) * 128);
  EXPECT_TRUE(operation(block, "mlp.activation").gated);
  EXPECT_TRUE(operation(block, "mlp_norm").rms);
  EXPECT_EQ(operation(kind(model, "head"), "loss").width, 128256);
  EXPECT_EQ(operation(kind(model, "embedding"), "token_embedding").k, 128256);
}

TEST(Operations, OfDeepseekV3HaveLatentAttentionAndExperts) {
  const ModelSpec model = test::model_of_file("deepseek-v3");
  EXPECT_THAT(runs(model),
              ElementsAre("1 embedding", "3 dense_block", "58 block", "1 head", "1 mtp"));
  const LayerSpec& block = kind(model, "block");
  EXPECT_THAT(
      operation_names(block),
      ElementsAre("attention_norm", "self_attn.q_a_proj", "self_attn.q_a_norm",
                  "self_attn.q_b_proj", "self_attn.kv_a_proj", "self_attn.kv_a_norm",
                  "self_attn.kv_b_proj", "self_attn.rope", "self_attn.core", "self_attn.o_proj",
                  "attention_residual", "mlp_norm", "mlp.router_proj", "mlp.router", "mlp.dispatch",
                  "mlp.experts.gate_proj", "mlp.experts.up_proj", "mlp.experts.activation",
                  "mlp.experts.down_proj", "mlp.combine", "mlp.shared.gate_proj",
                  "mlp.shared.up_proj", "mlp.shared.activation", "mlp.shared.down_proj",
                  "mlp.shared_residual", "mlp_residual"));
  const OperationSpec& core = operation(block, "self_attn.core");
  EXPECT_EQ(core.heads, 128);
  EXPECT_EQ(core.kv_heads, 128);
  EXPECT_EQ(core.qk_head_dim, 192);
  EXPECT_EQ(core.v_head_dim, 128);
  EXPECT_EQ(operation(block, "self_attn.kv_a_proj").width, 512 + 64);
  EXPECT_EQ(operation(block, "mlp.router").k, 256);
  EXPECT_EQ(operation(block, "mlp.router").width, 8);
  const OperationSpec& up = operation(block, "mlp.experts.up_proj");
  EXPECT_TRUE(up.routed_expert);
  EXPECT_EQ(up.width, 2048);
  EXPECT_EQ(up.k, 7168);
  EXPECT_FALSE(operation(block, "mlp.shared.up_proj").routed_expert);

  const LayerSpec& mtp = kind(model, "mtp");
  EXPECT_EQ(mtp.role, LayerRole::mtp);
  EXPECT_EQ(operation(mtp, "mtp_proj").k, 2 * 7168);
  EXPECT_EQ(operation(mtp, "mtp_lm_head").width, 129280);
}

TEST(Operations, OfSlidingLayersCarryTheirWindow) {
  const ModelSpec gpt_oss = test::model_of_file("gpt-oss-20b");
  EXPECT_EQ(operation(kind(gpt_oss, "sliding_128_block"), "self_attn.core").window, 128);
  EXPECT_EQ(operation(kind(gpt_oss, "block"), "self_attn.core").window, 0);
  EXPECT_EQ(gpt_oss.kinds[static_cast<std::size_t>(gpt_oss.layers[1])].name, "sliding_128_block");
  EXPECT_EQ(gpt_oss.kinds[static_cast<std::size_t>(gpt_oss.layers[2])].name, "block");
  // Gemma 3: five sliding layers, then a full one.
  EXPECT_THAT(runs(test::model_of_file("gemma-3-1b")),
              ElementsAre("1 embedding", "5 sliding_512_block", "1 block", "5 sliding_512_block",
                          "1 block", "5 sliding_512_block", "1 block", "5 sliding_512_block",
                          "1 block", "2 sliding_512_block", "1 head"));
  EXPECT_THAT(runs(test::model_of_file("mistral-7b-v0.1")),
              ElementsAre("1 embedding", "32 sliding_4096_block", "1 head"));
}

TEST(Operations, OfT5AttendToTheEncoder) {
  const ModelSpec model = test::model_of_file("t5-small");
  EXPECT_THAT(runs(model), ElementsAre("1 embedding", "1 encoder_first", "4 encoder",
                                       "1 encoder_last", "1 first_block", "5 block", "1 head"));
  const LayerSpec& block = kind(model, "block");
  EXPECT_TRUE(operation(block, "self_attn.core").causal);
  EXPECT_FALSE(operation(block, "cross_attn.core").causal);
  EXPECT_TRUE(operation(block, "cross_attn.core").cross);
  EXPECT_TRUE(operation(block, "cross_attn.k_proj").cross);
  EXPECT_FALSE(operation(block, "cross_attn.q_proj").cross);
  EXPECT_FALSE(operation(kind(model, "encoder"), "self_attn.core").causal);
}

TEST(Operations, OfBertNormAfterTheResidual) {
  EXPECT_THAT(
      operation_names(kind(test::model_of_file("bert-base-uncased"), "block")),
      ElementsAre("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.core",
                  "self_attn.o_proj", "attention_residual", "attention_output_norm", "mlp.up_proj",
                  "mlp.activation", "mlp.down_proj", "mlp_residual", "mlp_output_norm"));
}

TEST(Operations, OfFalconShareOneNorm) {
  EXPECT_THAT(operation_names(kind(test::model_of_file("falcon-7b"), "block")),
              ElementsAre("attention_norm", "self_attn.qkv_proj", "self_attn.rope",
                          "self_attn.core", "self_attn.o_proj", "mlp.up_proj", "mlp.activation",
                          "mlp.down_proj", "attention_residual", "mlp_residual"));
}

/// Calls `check` for every model of the catalogue.
template <class Check>
void for_catalogue(Check check) {
  const std::vector<std::string> names = catalogue_names("models");
  EXPECT_GE(names.size(), 100U);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    check(test::model_of_file(name));
  }
}

/// Elements of the matrices that the GEMMs of one layer multiply by.
std::int64_t gemm_weights(const LayerSpec& layer, std::int64_t experts) {
  std::int64_t sum = 0;
  for (const OperationSpec& each : layer.operations) {
    if (each.kind != OpKind::gemm) continue;
    sum += each.width * each.k * (each.routed_expert ? experts : 1);
  }
  return sum;
}

TEST(Catalogue, HasAGemmForEveryMatrixOfABlock) {
  for_catalogue([](const ModelSpec& model) {
    for (const LayerSpec& layer : model.kinds) {
      if (layer.role != LayerRole::block && layer.role != LayerRole::encoder_block) continue;
      std::int64_t matrices = 0;
      for (const ParameterSpec& parameter : layer.parameters) {
        const bool table = parameter.tp == TpSplit::heads;
        const bool stacked_bias = parameter.name.ends_with("_bias");
        if (parameter.shape.size() >= 2 && !table && !stacked_bias)
          matrices += parameter.elements();
      }
      EXPECT_EQ(gemm_weights(layer, model.num_experts), matrices) << layer.name;
    }
  });
}

TEST(Catalogue, NamesEveryKindAndOperationOnce) {
  for_catalogue([](const ModelSpec& model) {
    std::vector<std::string> kinds;
    for (const LayerSpec& layer : model.kinds) {
      kinds.push_back(layer.name);
      std::vector<std::string> names = operation_names(layer);
      std::sort(names.begin(), names.end());
      EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end()) << layer.name;
    }
    std::sort(kinds.begin(), kinds.end());
    EXPECT_EQ(std::adjacent_find(kinds.begin(), kinds.end()), kinds.end());
  });
}

TEST(Catalogue, SumsToItsParameterCount) {
  for_catalogue([](const ModelSpec& model) {
    std::map<int, std::int64_t> used;
    for (const int index : model.layers) ++used[index];
    std::int64_t sum = 0;
    for (const auto& [index, times] : used) {
      sum += times * model.kinds[static_cast<std::size_t>(index)].parameter_count();
    }
    EXPECT_EQ(sum, model.parameter_count());
    const ParameterCounts counts = count_parameters(model);
    EXPECT_LE(counts.active, counts.main_model());
    EXPECT_EQ(counts.active == counts.main_model(), model.num_experts == 0);
  });
}

TEST(Catalogue, NamesADimensionOfWhatTpCutsAndOfNothingElse) {
  for_catalogue([](const ModelSpec& model) {
    for (const LayerSpec& layer : model.kinds) {
      for (const ParameterSpec& parameter : layer.parameters) {
        EXPECT_EQ(parameter.tp == TpSplit::none, parameter.tp_dim == -1) << parameter.name;
        EXPECT_LT(parameter.tp_dim, static_cast<int>(parameter.shape.size())) << parameter.name;
      }
    }
  });
}

}  // namespace
}  // namespace shardwise
