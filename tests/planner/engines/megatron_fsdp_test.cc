#include <gtest/gtest.h>

#include "planner/cost/memory/memory.h"
#include "planner/engines/engines.h"
#include "tests/support/models.h"

namespace shardwise::test {
namespace {

// Llama-3.1-8B on 8 ranks: a unit of 218,112,000 elements ends at a multiple of 8 ranks x 28,672,
// the least common multiple of its rows. Norm and head are one unit, whose rows have 4,096.
constexpr std::int64_t kPaddedBlock = 218'136'576;
constexpr std::int64_t kEmbedding = std::int64_t{128'256} * 4096;
constexpr std::int64_t kHead = kEmbedding + std::int64_t{8} * 4096;
constexpr std::int64_t kBytes = 2;

/// The ledger of the only stage.
struct Made {
  explicit Made(bool double_buffer) : model(llama_3_1_8b()) {
    layout.dp_shard = 8;
    layout.zero_stage = 3;
    layout.fp32_gradients = false;
    layout.double_buffer = double_buffer;
    layout.recompute = Recompute::full;
    rules = memory_rules({}, engine, {});
    layers = layer_memories(model, {}, engine, layout);
    parts = stage_parts(model, layers, assign_stages(model, layout).front());
  }
  std::int64_t gathered(MemoryPhase phase) const {
    return stage_memory(parts, context)[phase][MemoryCategory::gathered_weights];
  }
  ModelSpec model;
  EngineProfile engine = megatron_fsdp();
  Layout layout;
  MemoryRules rules;
  std::vector<LayerMemory> layers;
  StageParts parts;
  StageContext context = {&rules, &layout, 0, 1};
};

// Fullest with the head and four blocks in the queue, beside four blocks gathered: the ledger of a
// stage looks there too, where activations do not say otherwise.
TEST(MegatronFsdpQueues, AreAtTheirFullestWhereTheLedgerLooks) {
  EXPECT_EQ(Made(false).gathered(MemoryPhase::steady_forward_backward),
            (kEmbedding + kHead + 4 * kPaddedBlock) * kBytes);
}

// Megatron-FSDP's finish_grad_sync leaves embedding and head gathered; two buffers for units stay
// as well. Our executor frees them. Source: Megatron-LM@d98e8a64:megatron/core/distributed/fsdp/
// src/megatron_fsdp/megatron_fsdp.py, finish_grad_sync.
TEST(MegatronFsdpBuffers, StayFromOneStepToTheNext) {
  constexpr MemoryPhase kStep = MemoryPhase::steady_optimizer_step;
  Made queue(false);
  EXPECT_EQ(queue.gathered(kStep), (kEmbedding + kHead) * kBytes);
  EXPECT_EQ(Made(true).gathered(kStep), (kEmbedding + kHead + 2 * kPaddedBlock) * kBytes);
  queue.rules.step_block = true;
  EXPECT_EQ(queue.gathered(kStep), 0);
}

}  // namespace
}  // namespace shardwise::test
