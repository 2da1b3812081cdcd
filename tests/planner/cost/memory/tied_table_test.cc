// Gradients of a token table that embedding and head share.
#include <gtest/gtest.h>

#include "planner/cost/memory/memory.h"
#include "planner/engines/engines.h"
#include "tests/support/models.h"

namespace shardwise::test {
namespace {

using enum MemoryCategory;

// A model of few tokens and a wide table: backward is fullest at the embedding. Its gradient is a
// temporary of the layer; the head's and the sum of the two lie beside it. PyTorch 2.15.0's peak
// grows by three tables there, by one where nothing is tied.
TEST(TiedTable, HasThreeGradientsUnderPlainAutograd) {
  constexpr std::int64_t kVocabulary = 1 << 20;
  constexpr std::int64_t kHidden = 512;
  const ModelSpec model = gpt(2, kHidden, 8, kVocabulary);
  JobSpec job = open_job();
  job.sequence_length = 64;
  job.loss = LossKernel::chunked;
  Layout layout;
  layout.recompute = Recompute::full;
  constexpr std::int64_t kTable = kVocabulary * kHidden * 2;
  for (const char* name : {"fsdp1", "deepspeed"}) {
    const EngineProfile& engine = *find_engine(name);
    layout.zero_stage = 0;
    const Ledger pass = layout_memory(model, job, engine, {}, layout)
                            .stages.front()[MemoryPhase::steady_forward_backward];
    // FSDP1's unit of embedding, norm and head waits for all of its gradients.
    const std::int64_t norm = engine.name == "fsdp1" ? 2 * kHidden * 2 : 0;
    const std::int64_t positions = model.max_position_embeddings * kHidden * 2;  // made before
    EXPECT_EQ(pass[gradient_staging], 2 * kTable + positions + norm) << name;
    EXPECT_GE(pass[working], kTable) << name;
    EXPECT_LT(pass[working], kTable + (1 << 20)) << name;
  }
}

TEST(TiedTable, HasNoOtherWhereGemmsAddToTheGradientBuffer) {
  const ModelSpec model = gpt(2, 512, 8, 1 << 20);
  JobSpec job = open_job();
  job.sequence_length = 64;
  job.loss = LossKernel::chunked;
  Layout layout;
  layout.zero_stage = 1;
  layout.recompute = Recompute::full;
  const Ledger fused = layout_memory(model, job, megatron_ddp(), {}, layout)
                           .stages.front()[MemoryPhase::steady_forward_backward];
  job.fused_gradient_accumulation = false;
  const Ledger plain = layout_memory(model, job, megatron_ddp(), {}, layout)
                           .stages.front()[MemoryPhase::steady_forward_backward];
  EXPECT_LT(fused[gradient_staging], plain[gradient_staging]);
}

}  // namespace
}  // namespace shardwise::test
