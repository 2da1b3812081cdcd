#include <gtest/gtest.h>

#include <algorithm>

#include "planner/cost/memory.h"
#include "planner/cost/runtime_memory.h"
#include "planner/cost/state_bytes.h"
#include "planner/engines/engines.h"
#include "planner/spec/cluster_reader.h"
#include "tests/support/models.h"

namespace shardwise {
namespace {

constexpr std::int64_t kZeroPaper = 7'500'000'000;
constexpr StateWidths kMixedAdam = {2, 2, 12};

std::int64_t zero_paper(int stage) {
  return model_state_bytes(kZeroPaper, kMixedAdam, placement_of(stage, false), 64, 1);
}

// Rajbhandari et al., arXiv:1910.02054, figure 1: 120, 31.4, 16.6 and 1.9 GB.
TEST(ModelStates, MatchZeroPaperFigure1) {
  EXPECT_EQ(zero_paper(0), 120'000'000'000);
  EXPECT_EQ(zero_paper(1), 31'406'250'000);
  EXPECT_EQ(zero_paper(2), 16'640'625'000);
  EXPECT_EQ(zero_paper(3), 1'875'000'000);
}

// deepspeedai/DeepSpeed@edaa7221:docs/code-docs/source/memory.rst: t5-3b, 2851 M parameters,
// largest layer 32 M, 8 GPUs: 15.93, 5.31, 6.10, 0.79 and 0.12 GiB.
TEST(ModelStates, MatchDeepSpeedsEstimators) {
  constexpr std::int64_t kParameters = 2'851'000'000;
  constexpr std::int64_t kLargest = 4 * std::int64_t{32'000'000};
  constexpr double kGiB = 1 << 30;
  const auto gib = [](std::int64_t bytes) { return static_cast<double>(bytes) / kGiB; };
  const auto states = [](const StateWidths& widths, int stage) {
    return model_state_bytes(kParameters, widths, placement_of(stage, false), 8, 1);
  };
  EXPECT_NEAR(gib(states({2, 2, 16}, 1)), 15.93, 0.005);
  EXPECT_NEAR(gib(states({2, 0, 0}, 1)), 5.31, 0.005);
  EXPECT_NEAR(gib(states({2, 2, 14}, 3) + kLargest), 6.10, 0.01);
  EXPECT_NEAR(gib(states({2, 0, 0}, 3) + kLargest), 0.79, 0.01);
  EXPECT_NEAR(gib(kLargest), 0.12, 0.005);
}

// Llama 3 (arXiv:2407.21783), section 3.3.2 and table 4: 405B on 16,384 H100 by tp 8, pp 16, dp
// 128, sequences of 8,192, without activation checkpointing. Their FSDP shards gradients; a rank
// that keeps them whole in fp32 has 11.9 GiB of them and no room.
TEST(Llama3, FitsItsPublishedLayoutBecauseGradientsAreSharded) {
  const ModelSpec model = test::llama(126, 16384, 53248, 128, 8, 128256);
  const ClusterSpec cluster = *with_gpus(*find_cluster("dgx-h100"), 16384);
  JobSpec job;
  job.sequence_length = 8192;
  job.global_batch_size = 2048;
  Layout layout;
  layout.tp = 8;
  layout.pp = 16;
  layout.dp_shard = 128;
  layout.sequence_parallel = true;
  const auto peak = [&](const char* name, int zero_stage) {
    const EngineProfile engine = *find_engine(name);
    layout.zero_stage = static_cast<std::int8_t>(zero_stage);
    const LayoutMemory memory =
        layout_memory(model, job, engine, runtime_memory(engine, cluster.gpu), layout);
    Bytes most;
    for (const StageMemory& stage : memory.stages) most = std::max(most, stage.peak_total());
    return most;
  };
  EXPECT_LE(peak("shardwise", 2), cluster.gpu.hbm_bytes);
  EXPECT_GT(peak("megatron_ddp", 1), cluster.gpu.hbm_bytes);
  layout.fp32_gradients = false;  // its default: a queue of 1e9 gradients, of 2 bytes each
  EXPECT_LE(peak("megatron_fsdp", 2), cluster.gpu.hbm_bytes);
}

}  // namespace
}  // namespace shardwise
