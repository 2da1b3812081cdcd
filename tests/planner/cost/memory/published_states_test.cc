#include <gtest/gtest.h>

#include <algorithm>

#include "planner/cost/memory/memory.h"
#include "planner/cost/memory/state_bytes.h"
#include "planner/cost/software/runtime_memory.h"
#include "planner/engines/engines.h"
#include "planner/spec/machine/cluster_reader.h"
#include "tests/support/models.h"

namespace shardwise {
namespace {

/// The states of DeepSpeed, as the ledger counts them, where `elements` are shared by `ranks`: of
/// one matrix under ZeRO-3, which pads each, and below it of one a rank, which keeps gradients of
/// whole ones.
StageStates states_of(std::int64_t elements, std::int32_t ranks, int zero_stage,
                      bool offload = false) {
  LayerMemory layer;
  layer.parameters.dense = elements;
  const std::int64_t matrices = zero_stage < 3 ? ranks : 1;
  layer.parameters.tensors = matrices;
  layer.parameters.groups = 1;
  layer.parameters.group[0] = {elements / matrices, 1, matrices, false};
  layer.parameters.in_order = {layer.parameters.group[0]};
  StageParts parts;
  parts.dense = elements;
  parts.runs = 1;
  parts.run[0] = {&layer, 1};
  parts.in_order = {{&layer, 1, 0}};
  const EngineProfile engine = deepspeed();
  JobSpec job;
  job.precision = DType::bf16;
  Layout layout;
  layout.dp_shard = ranks;
  layout.zero_stage = static_cast<std::int8_t>(zero_stage);
  layout.offload_optimizer = offload;
  layout.overlap_grad_reduce = false;
  const MemoryRules rules = memory_rules(job, engine, {});
  return stage_states(parts, {&rules, &layout, 0, 1});
}

std::int64_t weights_and_optimizer(const StageStates& s) {
  return s.weights.bytes() + s.main_weights.bytes() + s.moments.bytes();
}

// Rajbhandari et al., arXiv:1910.02054, figure 1: 120, 31.4, 16.6 and 1.9 GB of 7.5 billion
// parameters on 64 ranks, with fp16 gradients.
TEST(ModelStates, MatchZeroPaperFigure1) {
  const auto zero_paper = [](int stage) {
    const StageStates s = states_of(7'500'000'000, 64, stage);
    return weights_and_optimizer(s) + s.late_gradients.bytes() + s.gradients.bytes();
  };
  EXPECT_EQ(zero_paper(0), 120'000'000'000);
  EXPECT_EQ(zero_paper(1), 31'406'250'000);
  EXPECT_EQ(zero_paper(2), 16'640'625'000);
  EXPECT_EQ(zero_paper(3), 1'875'000'000);
}

// deepspeedai/DeepSpeed@edaa7221:docs/code-docs/source/memory.rst: t5-3b, 2851 M parameters,
// largest layer 32 M, 8 GPUs: 15.93, 5.31, 6.10 and 0.79 GiB. The estimators count gradients of the
// optimizer's dtype too; under ZeRO-3 instead of those that are reduced, beside a gathered layer.
TEST(ModelStates, MatchDeepSpeedsEstimators) {
  constexpr std::int64_t kParameters = 2'851'000'000;
  constexpr std::int64_t kLargest = 4 * std::int64_t{32'000'000};
  const auto gib = [](std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 30); };
  const auto states = [](int stage, bool offload) {
    const StageStates s = states_of(kParameters, 8, stage, offload);
    return weights_and_optimizer(s) + s.first_step.cast.bytes() +
           (stage < 3 ? s.late_gradients.bytes() : 0);
  };
  EXPECT_NEAR(gib(states(1, false)), 15.93, 0.005);
  EXPECT_NEAR(gib(states(1, true)), 5.31, 0.005);
  EXPECT_NEAR(gib(states(3, false) + kLargest), 6.10, 0.01);
  EXPECT_NEAR(gib(states(3, true) + kLargest), 0.79, 0.01);
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
