// What the layers save and need is what the planner's ledger says, to the byte.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "executor/transformer/layer.h"
#include "planner/cost/layer/layer_memory.h"
#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"
#include "planner/spec/plan/names.h"

namespace shardwise::exec {
namespace {

struct Setting {
  const char* model;
  DType precision;
  Recompute recompute;
  LossKernel loss;
  std::int64_t chunk_rows = 0;
};

class LayerMemoryOf : public testing::TestWithParam<Setting> {};

TEST_P(LayerMemoryOf, EveryKindIsThePlannersToTheByte) {
  const Setting& setting = GetParam();
  const Result<ModelSpec> model = load_model(setting.model);
  ASSERT_TRUE(model.ok());
  JobSpec job;
  job.sequence_length = 512;
  job.precision = setting.precision;
  job.loss = setting.loss;
  job.loss_chunk_rows = setting.chunk_rows;
  Layout layout;
  layout.micro_batch_size = 2;
  layout.recompute = setting.recompute;
  const LayerShape shape = layer_shape(*model, job, layout);
  ASSERT_TRUE(cannot_run(*model, job).empty());
  const std::int64_t stream =
      shape.tokens() * model->hidden_size * (setting.precision == DType::fp32 ? 4 : 2);
  for (const LayerSpec& kind : model->kinds) {
    const LayerMemory planned = layer_memory(*model, kind, job, shardwise_engine(), layout);
    const LayerBytes bytes = make_layer(*model, kind, shape)->bytes();
    EXPECT_EQ(bytes.saved, planned.saved) << kind.name;
    EXPECT_EQ(bytes.saved + stream + bytes.forward_workspace, planned.forward.peak) << kind.name;
    EXPECT_EQ(bytes.saved + stream + bytes.backward_workspace, planned.backward.peak) << kind.name;
    EXPECT_EQ(bytes.tables, planned.tables) << kind.name;
  }
}

// Whatever operations run again: their results take memory while a pass reads them, no longer.
TEST(LayerMemoryOfRecomputedOperations, IsThePlannersToTheByte) {
  for (const char* name : {"gpt2", "llama-3.1-8b", "llama-3.2-1b", "qwen2-0.5b", "qwen3-0.6b"}) {
    const Result<ModelSpec> model = load_model(name);
    ASSERT_TRUE(model.ok());
    const LayerSpec& block = *std::ranges::find(model->kinds, LayerRole::block, &LayerSpec::role);
    for (const DType precision : {DType::fp32, DType::bf16}) {
      for (unsigned chosen = 1; chosen < 1U << kRecomputable.size(); ++chosen) {
        JobSpec job;
        job.sequence_length = 512;
        job.precision = precision;
        job.loss = LossKernel::chunked;
        std::string said = name;
        for (std::size_t i = 0; i < kRecomputable.size(); ++i) {
          if ((chosen >> i & 1U) == 0) continue;
          job.recompute_operations.emplace_back(kRecomputable[i]);
          said += fmt::format(" {}", kRecomputable[i]);
        }
        Layout layout;
        layout.micro_batch_size = 2;
        ASSERT_TRUE(cannot_run(*model, job).empty());
        const LayerShape shape = layer_shape(*model, job, layout);
        const std::int64_t stream =
            shape.tokens() * model->hidden_size * (precision == DType::fp32 ? 4 : 2);
        const LayerMemory planned = layer_memory(*model, block, job, shardwise_engine(), layout);
        const LayerBytes bytes = make_layer(*model, block, shape)->bytes();
        EXPECT_EQ(bytes.saved, planned.saved) << said;
        EXPECT_EQ(bytes.saved + stream + bytes.forward_workspace, planned.forward.peak) << said;
        EXPECT_EQ(bytes.saved + stream + bytes.backward_workspace, planned.backward.peak) << said;
      }
    }
  }
}

std::vector<Setting> settings() {
  std::vector<Setting> all;
  for (const char* model : {"gpt2", "llama-3.1-8b", "llama-3.2-1b", "mistral-7b-v0.1", "qwen2-0.5b",
                            "qwen2.5-7b", "qwen3-0.6b", "qwen3-8b"}) {
    for (const DType precision : {DType::fp32, DType::bf16}) {
      for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
        for (const LossKernel loss : {LossKernel::chunked, LossKernel::fused}) {
          all.push_back({model, precision, recompute, loss});
        }
        all.push_back({model, precision, recompute, LossKernel::chunked, 300});
      }
    }
  }
  return all;
}

std::string label(const testing::TestParamInfo<Setting>& info) {
  const Setting& s = info.param;
  std::string text = fmt::format("{}_{}_{}_{}", s.model, name_of(s.precision), name_of(s.recompute),
                                 name_of(s.loss));
  if (s.chunk_rows > 0) text += fmt::format("_{}", s.chunk_rows);
  std::ranges::replace_if(
      text, [](char c) { return c == '-' || c == '.'; }, '_');
  return text;
}

INSTANTIATE_TEST_SUITE_P(Models, LayerMemoryOf, testing::ValuesIn(settings()), label);

}  // namespace
}  // namespace shardwise::exec
