#include <gtest/gtest.h>

#include "planner/cost/layer/layer_memory.h"
#include "planner/cost/layer/operation_sizes.h"
#include "planner/cost/memory/memory.h"
#include "planner/engines/engines.h"
#include "planner/spec/text/units.h"
#include "tests/support/models.h"

// Activation memory of Korthikanti et al., "Reducing Activation Recomputation in Large Transformer
// Models" (arXiv:2205.05198), section 4 and table 2. The paper leaves out what is small against
// 2 s b h: row statistics of the norms, which the tests subtract, and the copies of biases.

namespace shardwise {
namespace {

constexpr std::int64_t kSequence = 2048;
constexpr std::int64_t kBatch = 4;
constexpr std::int64_t kGptHidden = 6144;
constexpr std::int64_t kHeads = 64;
constexpr std::int64_t kVocab = 51200;
constexpr std::int64_t kSbh = kSequence * kBatch * kGptHidden;
constexpr std::int64_t kScores = 5 * kHeads * kSequence * kSequence * kBatch;  // 5 a s^2 b

JobSpec paper_job() {
  JobSpec job;
  job.sequence_length = kSequence;
  job.attention = AttentionKernel::materialised;
  job.loss = LossKernel::materialised;
  job.dropout = 0.1;
  return job;
}

std::int64_t kept(const std::string& kind, Layout layout) {
  layout.micro_batch_size = kBatch;
  const ModelSpec model = test::gpt(48, kGptHidden, kHeads, kVocab);
  for (const LayerSpec& layer : model.kinds) {
    if (layer.name != kind) continue;
    std::int64_t sum = 0;
    for (const KeptActivation& each :
         kept_activations(model, layer, paper_job(), *find_engine("megatron_ddp"), layout)) {
      sum += each.bytes - each.statistics;
    }
    return sum;
  }
  return -1;
}

TEST(LayerActivations, MatchKorthikantiEquation1WithoutParallelism) {
  EXPECT_EQ(kept("block", {}), 34 * kSbh + kScores);
}

TEST(LayerActivations, MatchKorthikantiEquation2UnderTensorParallelism) {
  EXPECT_EQ(kept("block", {.tp = 8}), 10 * kSbh + 24 * kSbh / 8 + kScores / 8);
}

TEST(LayerActivations, MatchKorthikantiEquation4UnderSequenceParallelism) {
  EXPECT_EQ(kept("block", {.tp = 8, .sequence_parallel = true}), (34 * kSbh + kScores) / 8);
}

TEST(LayerActivations, MatchKorthikantiTable2WithSelectiveRecompute) {
  EXPECT_EQ(kept("block", {.tp = 8, .recompute = Recompute::selective}), 10 * kSbh + 24 * kSbh / 8);
}

TEST(LayerActivations, MatchKorthikantiEquation6WithSequenceParallelismAndSelectiveRecompute) {
  EXPECT_EQ(kept("block", {.tp = 8, .sequence_parallel = true, .recompute = Recompute::selective}),
            34 * kSbh / 8);
}

TEST(LayerActivations, MatchKorthikantiTable2WithFullRecompute) {
  EXPECT_EQ(kept("block", {.tp = 8, .recompute = Recompute::full}), 2 * kSbh);
}

// Section 4.3: dropout mask of the embeddings s b h; layer norm and output layer 2 s b h each, fp32
// logits 4 s b v: 4 s b h (1 + v / h) together, all divided by t.
TEST(LayerActivations, MatchKorthikantiSection43OutsideTheBlocks) {
  EXPECT_EQ(kept("head", {.tp = 8, .sequence_parallel = true}),
            (4 * kSbh + 4 * kSequence * kBatch * kVocab) / 8);
}

// Equation 5: the first of p stages holds L / p layers of p micro-batches, so L layers' activations
// whatever p; interleaving adds (p - 1) / (p m) of that (section 4.2.3).
TEST(StageActivations, MatchKorthikantiEquation5WithInterleaving) {
  const ModelSpec model = test::gpt(48, kGptHidden, kHeads, kVocab);
  JobSpec job = paper_job();
  job.dropout = 0;  // the embedding keeps a mask on the first stage only
  job.global_batch_size = 64 * kBatch;
  const EngineProfile& engine = *find_engine("megatron_ddp");
  const auto first_stage = [&](int pp, int vpp) {
    const Layout layout = {
        .tp = 8, .pp = pp, .vpp = vpp, .micro_batch_size = kBatch, .sequence_parallel = true};
    const StageMemory memory = layout_memory(model, job, engine, {}, layout).stages.front();
    const Ledger& ledger = memory[MemoryPhase::steady_forward_backward];
    return ledger[MemoryCategory::activations_in_flight];
  };
  const LayerSpec& block = model.kinds[1];
  const Layout layout = {.tp = 8, .micro_batch_size = kBatch, .sequence_parallel = true};
  const std::int64_t one = layer_memory(model, block, job, engine, layout).saved;
  const std::int64_t tokens = layer_memory(model, model.kinds[0], job, engine, layout).saved;
  EXPECT_EQ(first_stage(4, 1), 3 * (48 / 4 * one + tokens));  // and one that runs
  // 4 (1 + 3 / 12) micro-batches of three chunks of 4 layers each: 15 chunks, one of them running.
  // Two rounds of 4 micro-batches have begun the chunk with the embedding, and none is back.
  EXPECT_EQ(first_stage(4, 3), 14 * 4 * one + 7 * tokens);
}

TEST(LayerActivations, OfAFusedKernelGrowWithTheSequenceAndNotWithItsSquare) {
  const ModelSpec model = test::llama_3_1_8b();
  const auto saved = [&](std::int64_t sequence) {
    JobSpec job;
    job.sequence_length = sequence;
    return layer_memory(model, model.kinds[1], job, *find_engine("megatron_ddp"), {}).saved;
  };
  EXPECT_EQ(saved(131072), 32 * saved(4096));
}

// Grouped queries: keys and values of 8 heads, not of 32.
TEST(LayerActivations, OfGroupedQueriesHoldFewerKeysAndValues) {
  const EngineProfile& engine = *find_engine("megatron_ddp");
  const auto attention = [&](std::int64_t kv_heads) {
    const ModelSpec model = test::llama(2, 4096, 14336, 32, kv_heads, 32000);
    for (const KeptActivation& each : kept_activations(model, model.kinds[1], {}, engine, {})) {
      if (each.operation == "self_attn.core") return each.bytes - each.statistics;
    }
    return std::int64_t{0};
  };
  const std::int64_t head = std::int64_t{4096} * 128 * 2;  // one head of one tensor, 4096 tokens
  EXPECT_EQ(attention(32), (32 * 2 + 2 * 32) * head);
  EXPECT_EQ(attention(8), (32 * 2 + 2 * 8) * head);
}

// By hand: keys and values of 1,048,576 tokens are 2 x 1,048,576 x 1,024 x 2 B = 4 GiB a layer, and
// so are their gradients before they are reduced. A ring has those of one of 8 ranks.
TEST(LayerActivations, OfAGatheredContextHaveTheWholeSequenceBackward) {
  const ModelSpec model = test::llama_3_1_8b();
  JobSpec job;
  job.sequence_length = 1'048'576;
  const auto backward = [&](const char* engine, ContextParallelKind kind) {
    const Layout layout = {.cp = 8, .zero_stage = 3, .cp_kind = kind};
    const OperationSizes sizes = operation_sizes(model, job, *find_engine(engine), layout);
    OperationMemory memory;
    for (const OperationSpec& op : model.kinds[1].operations) {
      if (op.kind == OpKind::attention) memory.operation = &op;
    }
    size_attention(memory, sizes);
    return memory.backward_extra;
  };
  constexpr std::int64_t kWhole = std::int64_t{4} << 30;
  const auto gathered_more = [&](const char* engine) {
    return backward(engine, ContextParallelKind::all_gather) -
           backward(engine, ContextParallelKind::ring);
  };
  EXPECT_EQ(gathered_more("megatron_fsdp"), 2 * kWhole - 2 * kWhole / 8);
  // PyTorch's ring has those in use and two more; their gradients go round in both.
  EXPECT_EQ(gathered_more("fsdp2"), kWhole - 2 * kWhole / 8);
}

}  // namespace
}  // namespace shardwise
