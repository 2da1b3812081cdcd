#include <gtest/gtest.h>

#include "planner/cost/memory/memory.h"
#include "planner/engines/engines.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/text/units.h"
#include "tests/support/models.h"

// Adapters on frozen weights under FSDP1, whose units have no gradients.

namespace shardwise {
namespace {

struct Frozen {
  ModelSpec model = test::llama(32, 4096, 14336, 32, 8, 32000);
  ClusterSpec cluster = *find_cluster("dgx-a100");
  JobSpec job;
  Layout layout = {.dp_shard = 2, .zero_stage = 3, .recompute = Recompute::full};

  Frozen() {
    job.frozen_base = true;
    job.loss = LossKernel::materialised;
  }
  StageMemory memory() {
    return layout_memory_on(cluster.gpu, model, job, *find_engine("fsdp1"), layout).stages.front();
  }
};

// Peaks of PyTorch's allocator in LoRA of Mistral-7B on two A100, with transformers' checkpoints,
// which are reentrant, and torch's loss. The adapters' own memory, 0.1 GiB, is not counted.
// Source: foundation-model-stack/fms-acceleration@876e2ed6:scripts/benchmarks/refs/a100_80gb.csv.
TEST(FrozenUnits, AreNearPeaksMeasuredUnderFsdp1) {
  Frozen f;
  f.job.recompute_stops_early = false;
  for (const auto& [batch, measured] : {std::pair{2, 14.1048}, {4, 20.4517}}) {
    f.layout.micro_batch_size = batch;
    const double gib = static_cast<double>(f.memory().peak_allocated().value()) / kBytesPerGiB;
    EXPECT_NEAR(gib / measured, 1, 0.05) << batch;
  }
}

// Two blocks and the root at most: 2 x 218,112,000 and 262,148,096 elements in bf16.
TEST(FrozenUnits, AreFreedWithTheirOwnBackwardPass) {
  Frozen f;
  const Ledger& ledger = f.memory()[MemoryPhase::steady_forward_backward];
  EXPECT_LE(ledger[MemoryCategory::gathered_weights],
            2 * (2 * std::int64_t{218'112'000} + 262'148'096));
}

// By hand: when the first of 32 blocks runs backward, 31 have left 4,096 x 4,096 inputs in bf16 and
// their gradients, where the checkpoints are reentrant.
TEST(FrozenUnits, LeaveInputsAndGradientsBehindReentrantCheckpoints) {
  Frozen f;
  f.job.loss = LossKernel::chunked;
  const std::int64_t early = f.memory().peak_allocated().value();
  f.job.recompute_stops_early = false;
  constexpr std::int64_t kInput = std::int64_t{4096} * 4096 * 2;
  // The peak moves from the last block, before which 31 inputs wait, to the first.
  const std::int64_t more = f.memory().peak_allocated().value() - early;
  EXPECT_GE(more, 30 * kInput);
  EXPECT_LE(more, 31 * kInput);
  f.job.frozen_base = false;
  const std::int64_t trained = f.memory().peak_allocated().value();
  f.job.recompute_stops_early = true;
  EXPECT_EQ(f.memory().peak_allocated().value(), trained);
}

}  // namespace
}  // namespace shardwise
