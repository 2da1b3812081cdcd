// Tensors that wait for backward in fewer bits than they were computed in.
#include "planner/cost/layer/saved_tensors.h"

#include <gtest/gtest.h>

#include "planner/cost/layer/layer_memory.h"
#include "planner/cost/layer/recompute_modules.h"
#include "planner/engines/engines.h"
#include "tests/support/models.h"

namespace shardwise {
namespace {

constexpr std::int64_t kFeedForward = 14336;

/// Half as many bytes, and the scales: 4 of 128.
constexpr std::int64_t less_in_fp8(std::int64_t elements) { return elements - elements / 32; }

LayerMemory block(const JobSpec& job, const std::string& engine, const Layout& layout = {}) {
  const ModelSpec model = test::llama_3_1_8b();
  for (const LayerSpec& kind : model.kinds) {
    if (kind.role == LayerRole::block) {
      return layer_memory(model, kind, job, *find_engine(engine), layout);
    }
  }
  return {};
}

std::int64_t spared(const JobSpec& job, const std::string& engine, const Layout& layout = {}) {
  JobSpec wide = job;
  wide.saved_linear_inputs = wide.saved_activation_inputs = wide.saved_attention_outputs =
      SavedFormat::as_computed;
  return block(wide, engine, layout).saved - block(job, engine, layout).saved;
}

TEST(SavedTensors, HaveAScaleFor128Elements) {
  EXPECT_EQ(saved_bytes(1280, SavedFormat::as_computed, 2), 2560);
  EXPECT_EQ(saved_bytes(1280, SavedFormat::fp8, 2), 1280 + 40);
  EXPECT_EQ(saved_bytes(1280, SavedFormat::e5m6, 2), 1920 + 40);
  EXPECT_EQ(saved_bytes(1, SavedFormat::fp8, 2), 1 + 4);
}

// Gate and up, which SwiGLU's backward reads. transformer_config.py of Megatron-Core:
// activation_func_fp8_input_store.
TEST(SavedTensors, OfSwigluAreGateAndUp) {
  JobSpec job;
  job.saved_activation_inputs = SavedFormat::fp8;
  for (const char* engine : {"shardwise", "megatron_ddp", "fsdp2"}) {
    EXPECT_EQ(spared(job, engine), less_in_fp8(2 * test::kDefaultTokens * kFeedForward)) << engine;
  }
}

// Inputs of queries, keys and values, of gate and up, and of down. That of the projection after
// attention is attention's output, which attention's own backward reads as it was computed.
TEST(SavedTensors, OfLinearLayersAreTheirInputs) {
  JobSpec job;
  job.saved_linear_inputs = SavedFormat::fp8;
  EXPECT_EQ(spared(job, "shardwise"), less_in_fp8(2 * test::kDefaultTokens * test::kLlama8BHidden) +
                                          less_in_fp8(test::kDefaultTokens * kFeedForward));
  job.saved_attention_outputs = SavedFormat::fp8;
  EXPECT_EQ(spared(job, "shardwise"), less_in_fp8(3 * test::kDefaultTokens * test::kLlama8BHidden) +
                                          less_in_fp8(test::kDefaultTokens * kFeedForward));
}

// PyTorch keeps a gathered input of its own; the other half's norms hold the slice.
TEST(SavedTensors, OfGatheredInputsAreNarrowToo) {
  JobSpec job;
  job.saved_linear_inputs = SavedFormat::fp8;
  const Layout layout = {.tp = 4, .sequence_parallel = true};
  EXPECT_EQ(spared(job, "fsdp2", layout),
            less_in_fp8(2 * test::kDefaultTokens * test::kLlama8BHidden) +
                less_in_fp8(test::kDefaultTokens * kFeedForward / 4));
}

// What runs again is not saved, what it runs on is: SwiGLU's output falls away, its input stays.
TEST(SavedTensors, OfWhatRunsAgainAreItsInputs) {
  JobSpec job;
  job.recompute_operations = {"mlp.activation"};
  job.saved_linear_inputs = job.saved_activation_inputs = SavedFormat::fp8;
  EXPECT_EQ(spared(job, "shardwise"), less_in_fp8(2 * test::kDefaultTokens * test::kLlama8BHidden) +
                                          less_in_fp8(2 * test::kDefaultTokens * kFeedForward));
  JobSpec all = job;
  all.recompute_operations.clear();
  EXPECT_EQ(spared(all, "shardwise", {.recompute = Recompute::full}), 0);
}

// What backward reads is widened first, so a pass needs as much as it did before for one operation.
TEST(SavedTensors, AreWidenedOneOperationAtATime) {
  JobSpec job;
  job.saved_activation_inputs = SavedFormat::fp8;
  const LayerMemory narrow = block(job, "megatron_ddp");
  const LayerMemory wide = block({}, "megatron_ddp");
  EXPECT_LE(narrow.backward.peak, wide.backward.peak + 2 * test::kDefaultTokens * kFeedForward * 2);
  EXPECT_LT(narrow.backward.kept, wide.backward.kept);
  EXPECT_GE(narrow.forward.peak - narrow.saved, wide.forward.peak - wide.saved);
}

// Bytes that casts move by themselves: written narrow once, read and written wide where read.
TEST(SavedTensors, AreCastByKernelsOfTheirOwn) {
  JobSpec job;
  job.saved_activation_inputs = SavedFormat::fp8;
  const ModelSpec model = test::llama_3_1_8b();
  for (const LayerSpec& kind : model.kinds) {
    if (kind.role != LayerRole::block) continue;
    const EngineProfile& engine = *find_engine("shardwise");
    constexpr std::int64_t kElements = 2 * test::kDefaultTokens * kFeedForward;
    constexpr std::int64_t kCast = 2 * kElements + kElements + kElements / 32;
    const SavedTensors saved = layer_saves(model, kind, job, engine, {});
    EXPECT_EQ(saved.narrowing, kCast);
    EXPECT_EQ(saved.widening, kCast);
    // An 8-bit product's input is cast for the product.
    JobSpec eight;
    eight.precision = DType::fp8;
    eight.saved_linear_inputs = SavedFormat::fp8;
    EXPECT_EQ(layer_saves(model, kind, eight, engine, {}).narrowing, 0);
  }
}

}  // namespace
}  // namespace shardwise
