#include <gtest/gtest.h>

#include "planner/cost/memory/memory.h"
#include "planner/cost/memory/stage_buffers.h"
#include "planner/engines/engines.h"
#include "tests/support/models.h"

// Persistent bytes of each engine with Adam in mixed precision, Llama-3.1-8B on 8 ranks: the sums
// of the engines' documents (Megatron-LM@d98e8a64:docs, distributed optimizer), to the byte.
// DeepSpeed's ZeRO-1 and 2 have no 16-bit gradients while the optimizer runs.

namespace shardwise {
namespace {

using enum MemoryCategory;

constexpr std::int64_t kParameters = 8'030'261'248;
constexpr std::int64_t kBlock = 218'112'000;
constexpr std::int64_t kTable = std::int64_t{128256} * 4096;
constexpr std::int64_t kRoot = 2 * kTable + 4096;  // embedding, head and its norm
/// Megatron-FSDP ends a unit on a multiple of ranks x lcm of its rows: 28,672 in a block, whose
/// rows have 4,096 or 14,336 elements, 4,096 in embedding and head (with its norm).
constexpr std::int64_t padded(std::int64_t ranks) {
  const auto up = [](std::int64_t elements, std::int64_t step) {
    return (elements + step - 1) / step * step;
  };
  return 32 * up(kBlock, ranks * 28672) + up(kTable, ranks * 4096) +
         up(kTable + 4096, ranks * 4096);
}
static_assert(padded(8) == 8'031'076'352);

struct Case {
  const char* engine;
  int zero_stage;
  bool fp32_gradients;
  std::int64_t whole;    // bytes a parameter on every rank
  std::int64_t sharded;  // and divided by the ranks that share states
  std::int32_t shard = 8;
  std::int32_t replicate = 1;
  bool outer = false;
  std::int64_t outer_sharded = 0;  // and divided by all ranks
};

std::int64_t persistent(const Case& c) {
  Layout layout;
  layout.dp_shard = c.shard;
  layout.dp_replicate = c.replicate;
  layout.outer_shards_optimizer = c.outer;
  layout.zero_stage = static_cast<std::int8_t>(c.zero_stage);
  layout.fp32_gradients = c.fp32_gradients;
  const Ledger step = layout_memory(test::llama_3_1_8b(), {}, *find_engine(c.engine), {}, layout)
                          .stages.front()[MemoryPhase::first_optimizer_step];
  return step[weights] + step[main_weights] + step[gradients] + step[optimizer_moments];
}

class PersistentBytes : public testing::TestWithParam<Case> {};

TEST_P(PersistentBytes, AreThoseOfTheEngineToTheByte) {
  const Case& c = GetParam();
  const bool pads = std::string_view(c.engine) == "megatron_fsdp" && c.zero_stage > 0;
  const std::int64_t all = std::int64_t{c.shard} * c.replicate;
  const std::int64_t inner = pads ? padded(c.shard) : kParameters;
  const std::int64_t outer = pads ? padded(all) : kParameters;
  // HFSDP pads what the inner ranks share for all ranks.
  EXPECT_EQ(persistent(c), c.whole * inner + c.sharded * (c.outer ? outer : inner) / c.shard +
                               c.outer_sharded * outer / all);
}

INSTANTIATE_TEST_SUITE_P(
    Engines, PersistentBytes,
    testing::Values(Case{"megatron_ddp", 0, true, 18, 0}, Case{"megatron_ddp", 0, false, 16, 0},
                    Case{"megatron_ddp", 1, true, 6, 12}, Case{"megatron_ddp", 1, false, 4, 12},
                    Case{"megatron_fsdp", 0, false, 16, 0}, Case{"megatron_fsdp", 0, true, 18, 0},
                    Case{"megatron_fsdp", 1, false, 4, 12}, Case{"megatron_fsdp", 1, true, 6, 12},
                    Case{"megatron_fsdp", 2, false, 2, 14}, Case{"megatron_fsdp", 3, false, 0, 16},
                    Case{"fsdp2", 3, true, 0, 16}, Case{"fsdp1", 3, true, 0, 16},
                    Case{"fsdp1", 0, true, 16, 0}, Case{"fsdp2_in_megatron", 3, false, 0, 16},
                    Case{"deepspeed", 0, false, 16, 0}, Case{"deepspeed", 1, false, 2, 12},
                    Case{"deepspeed", 2, false, 2, 12}, Case{"deepspeed", 3, false, 0, 16}));

// HSDP: the inner ranks share, the outer ones are copies. Optimizer instances of Megatron-Core
// are the same for ZeRO-1.
INSTANTIATE_TEST_SUITE_P(Hybrid, PersistentBytes,
                         testing::Values(Case{"megatron_ddp", 1, true, 6, 12, 4, 2},
                                         Case{"megatron_ddp", 1, false, 4, 12, 2, 4},
                                         Case{"megatron_fsdp", 1, false, 4, 12, 4, 2},
                                         Case{"megatron_fsdp", 2, false, 2, 14, 4, 2},
                                         Case{"megatron_fsdp", 3, false, 0, 16, 4, 2},
                                         Case{"fsdp2", 3, true, 0, 16, 4, 2},
                                         Case{"fsdp1", 3, true, 0, 16, 4, 2}));

// HFSDP, di inner and d all ranks: 4 N / di + 12 N / d.
INSTANTIATE_TEST_SUITE_P(Hfsdp, PersistentBytes,
                         testing::Values(Case{"megatron_fsdp", 3, false, 0, 4, 4, 2, true, 12},
                                         Case{"megatron_fsdp", 3, false, 0, 4, 2, 4, true, 12},
                                         Case{"megatron_fsdp", 3, false, 0, 4, 8, 8, true, 12}));

// update_main_grads casts to the main dtype until zero_grad; FSDP2 in Megatron keeps bf16 shards
// and steps on fp32 gradients: 16 N / d, and 4 N / d more during the step.
TEST(CastGradients, ArePresentInTheStepWhereTheEngineMakesThem) {
  const auto cast = [](const char* engine, int stage, bool fp32) {
    Layout layout = {.dp_shard = 8};
    layout.zero_stage = static_cast<std::int8_t>(stage);
    layout.fp32_gradients = fp32;
    const StageMemory memory =
        layout_memory(test::llama_3_1_8b(), {}, *find_engine(engine), {}, layout).stages.front();
    EXPECT_EQ(memory[MemoryPhase::steady_forward_backward][main_gradients], 0);
    return memory[MemoryPhase::steady_optimizer_step][main_gradients];
  };
  EXPECT_EQ(cast("megatron_fsdp", 3, false), 4 * padded(8) / 8);
  EXPECT_EQ(cast("megatron_fsdp", 1, true), 0);
  EXPECT_EQ(cast("fsdp2_in_megatron", 3, false), 4 * kParameters / 8);
  EXPECT_EQ(cast("fsdp2", 3, true), 0);
}

/// The block in the middle of a pass, where gathers and reductions of its neighbours overlap.
struct Middle {
  explicit Middle(const char* engine, bool double_buffer = false, DType reduce = DType::fp32)
      : profile(*find_engine(engine)) {
    profile.reduce_dtype = reduce;
    layout.dp_shard = 8;
    layout.zero_stage = 3;
    layout.double_buffer = double_buffer;
    layout.fp32_gradients = reduce == DType::fp32;
    rules = memory_rules({}, profile, {});
    layers = layer_memories(model, {}, profile, layout);
    parts = stage_parts(model, layers, assign_stages(model, layout).front());
    for (const StageMoment& each : parts.moments) {
      if (each.layer->role == LayerRole::block) moment = each;
    }
    // As many blocks before it as after.
    moment.previous = {kBlock, 0};
    moment.before = moment.after = {16 * kBlock, 0};
    moment.outside_before = 0;
  }
  std::int64_t gathered(bool backward) const {
    const Gathered g =
        gathered_weights_at(stage_buffers(parts, context), parts, context, moment, backward);
    return g.bytes(rules) - g.cast.bytes(rules);
  }
  std::int64_t staging() const {
    return staging_at(stage_buffers(parts, context), parts, context, moment, true).bytes();
  }

  ModelSpec model = test::llama_3_1_8b();
  EngineProfile profile;
  Layout layout;
  MemoryRules rules;
  std::vector<LayerMemory> layers;
  StageParts parts;
  StageMoment moment;
  StageContext context = {&rules, &layout, 0, 1};
};

constexpr double kGiB = 1 << 30;
double gib(std::int64_t bytes) { return static_cast<double>(bytes) / kGiB; }

// The example worked out by hand from the engines' sources: 134.6, 56.1 and 41.1 GiB of states.
TEST(WorkedExample, HasTheStatesOfMegatron) {
  EXPECT_NEAR(gib(persistent({"megatron_ddp", 0, true, 0, 0})), 134.6, 0.05);
  EXPECT_NEAR(gib(persistent({"megatron_ddp", 1, true, 0, 0})), 56.1, 0.05);
  EXPECT_NEAR(gib(persistent({"megatron_ddp", 1, false, 0, 0})), 41.1, 0.05);
}

// 14.96 GiB of states, 3.74 of cast gradients, 1.96 of embedding and head kept gathered, 1.63 of
// units in the default queue or 0.81 in two buffers, up to 2.44 of reductions.
TEST(WorkedExample, HasTheBuffersOfMegatronFsdp) {
  EXPECT_NEAR(gib(persistent({"megatron_fsdp", 3, false, 0, 0})), 14.96, 0.005);
  EXPECT_NEAR(gib(4 * padded(8) / 8), 3.74, 0.005);
  const Middle queue("megatron_fsdp", false, DType::bf16);
  const Middle two("megatron_fsdp", true, DType::bf16);
  constexpr std::int64_t kPaddedBlock = 218'136'576;
  constexpr std::int64_t kPaddedRoot = padded(8) - 32 * kPaddedBlock;
  EXPECT_EQ(queue.gathered(false), (4 * kPaddedBlock + kPaddedRoot) * 2);
  EXPECT_EQ(two.gathered(false), (2 * kPaddedBlock + kPaddedRoot) * 2);
  EXPECT_NEAR(gib(kRoot * 2), 1.96, 0.005);
  EXPECT_NEAR(gib(kBlock * 8), 1.63, 0.005);
  EXPECT_NEAR(gib(kBlock * 4), 0.81, 0.005);
  EXPECT_NEAR(gib(queue.staging()), 2.44, 0.005);
  EXPECT_NEAR(gib(two.staging()), 0.81, 0.005);
}

// 14.96 GiB of states; two units forward; backward two units, the unit's gradients and the input
// of the reduction: 1.63 GiB when it is bf16, 2.03 when fp32.
TEST(WorkedExample, HasTheBuffersOfFsdp2) {
  EXPECT_NEAR(gib(persistent({"fsdp2", 3, true, 0, 0})), 14.96, 0.005);
  const Middle fp32("fsdp2");
  const Middle bf16("fsdp2", false, DType::bf16);
  EXPECT_EQ(fp32.gathered(false), 2 * kBlock * 2);
  EXPECT_NEAR(gib(fp32.gathered(false)), 0.81, 0.005);
  const std::int64_t unit_gradients = kBlock * 2;
  EXPECT_NEAR(gib(bf16.gathered(true) + unit_gradients + bf16.staging()), 1.63, 0.005);
  EXPECT_NEAR(gib(fp32.gathered(true) + unit_gradients + fp32.staging()), 2.03, 0.005);
}

// Two sequences of 8,192 tokens: 3.9 GiB in bf16, 7.8 in fp32, more than all staging of FSDP2.
TEST(WorkedExample, HasLogitsLargerThanAllStaging) {
  JobSpec job;
  job.sequence_length = 8192;
  const Layout layout = {.dp_shard = 8, .micro_batch_size = 2, .zero_stage = 1};
  const auto logits = [&](LossKernel loss) {
    job.loss = loss;
    return gib(layout_memory(test::llama_3_1_8b(), job, *find_engine("megatron_ddp"), {}, layout)
                   .stages.front()[MemoryPhase::steady_forward_backward][logits_and_loss]);
  };
  EXPECT_NEAR(logits(LossKernel::fused), 3.9, 0.05);
  EXPECT_NEAR(logits(LossKernel::materialised), 3.9 + 7.8, 0.1);
}

TEST(Engines, AreFoundByTheirNames) {
  for (const std::string& name : engine_names()) {
    ASSERT_NE(find_engine(name), nullptr) << name;
    EXPECT_EQ(find_engine(name)->name, name);
    EXPECT_FALSE(find_engine(name)->sources.empty()) << name;
  }
  EXPECT_EQ(find_engine("none"), nullptr);
}

}  // namespace
}  // namespace shardwise
