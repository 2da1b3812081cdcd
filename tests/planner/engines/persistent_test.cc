#include <gtest/gtest.h>

#include "planner/cost/memory.h"
#include "planner/engines/engines.h"
#include "tests/support/models.h"

// Persistent bytes a parameter of each engine, with Adam in mixed precision on 8 ranks.

namespace shardwise {
namespace {

struct Case {
  const char* engine;
  int zero_stage;
  bool fp32_gradients;
  double whole;    // bytes a parameter on every rank
  double sharded;  // and divided by 8
};

class PersistentBytes : public testing::TestWithParam<Case> {};

TEST_P(PersistentBytes, AreThoseOfTheEngine) {
  const Case& c = GetParam();
  const ModelSpec model = test::llama_3_1_8b();
  Layout layout;
  layout.dp_shard = 8;
  layout.zero_stage = static_cast<std::int8_t>(c.zero_stage);
  layout.fp32_gradients = c.fp32_gradients;
  const StageMemory memory =
      layout_memory(model, {}, *find_engine(c.engine), {}, layout).stages.front();
  using enum MemoryCategory;
  const Ledger& step = memory[MemoryPhase::steady_optimizer_step];
  const std::int64_t bytes =
      step[weights] + step[main_weights] + step[gradients] + step[optimizer_moments];
  const auto parameters = static_cast<double>(model.parameter_count());
  EXPECT_NEAR(static_cast<double>(bytes) / parameters, c.whole + c.sharded / 8, 0.01);
}

INSTANTIATE_TEST_SUITE_P(
    Engines, PersistentBytes,
    testing::Values(Case{"megatron_ddp", 0, true, 18, 0}, Case{"megatron_ddp", 1, true, 6, 12},
                    Case{"megatron_ddp", 1, false, 4, 12}, Case{"megatron_fsdp", 0, false, 16, 0},
                    Case{"megatron_fsdp", 0, true, 18, 0}, Case{"megatron_fsdp", 1, false, 4, 12},
                    Case{"megatron_fsdp", 1, true, 6, 12}, Case{"megatron_fsdp", 2, false, 2, 14},
                    Case{"megatron_fsdp", 3, false, 0, 16}, Case{"fsdp2", 3, true, 0, 16},
                    Case{"fsdp1", 3, true, 0, 16}, Case{"fsdp2_in_megatron", 3, false, 0, 16}));

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
