#include "planner/lowering/checks/arena_layout.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/planner/lowering/lowered.h"

namespace shardwise::test {
namespace {

/// The buffers of a program as items, which operations begin and end.
std::vector<ArenaItem> items_of(const StageProgram& stage) {
  std::vector<ArenaItem> items;
  for (const ProgramBuffer& b : stage.buffers) items.push_back({b.bytes, kNone, kNone});
  for (OpId op = 0; op < stage.operations.size(); ++op) {
    for (const std::uint32_t b : stage.of(stage.operations[op].allocates)) items[b].first = op;
    for (const std::uint32_t b : stage.of(stage.operations[op].frees)) items[b].last = op;
  }
  return items;
}

/// Runs operations in a random order that streams and waits allow, some of them at once, and looks
/// for two items that exist at the same moment on the same bytes.
void expect_no_overlap(const StageProgram& stage, const std::vector<ArenaItem>& items,
                       const ArenaLayout& layout, std::mt19937& random) {
  const std::size_t n = stage.operations.size();
  std::vector<int> state(n, 0);  // 0 waits, 1 runs, 2 done
  std::vector<std::size_t> live;
  std::size_t done = 0;
  const auto ready = [&](OpId op) {
    if (state[op] != 0) return false;
    for (OpId before = 0; before < op; ++before) {
      if (stage.operations[before].stream == stage.operations[op].stream && state[before] != 2) {
        return false;
      }
    }
    for (const std::uint32_t w : stage.of(stage.operations[op].waits)) {
      if (state[w] != 2) return false;
    }
    return true;
  };
  while (done < n) {
    std::vector<OpId> can_start;
    std::vector<OpId> can_end;
    for (OpId op = 0; op < n; ++op) {
      if (state[op] == 1) can_end.push_back(op);
      if (ready(op)) can_start.push_back(op);
    }
    const bool start = !can_start.empty() && (can_end.empty() || random() % 3 != 0);
    const std::vector<OpId>& from = start ? can_start : can_end;
    const OpId op = from[random() % from.size()];
    state[op] = start ? 1 : 2;
    done += start ? 0 : 1;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (start && items[i].first == op) {
        for (const std::size_t other : live) {
          const bool disjoint = layout.offsets[i] + items[i].bytes <= layout.offsets[other] ||
                                layout.offsets[other] + items[other].bytes <= layout.offsets[i];
          EXPECT_TRUE(disjoint || items[i].bytes == 0) << name_of(stage, stage.operations[op]);
        }
        live.push_back(i);
      }
      if (!start && items[i].last == op) std::erase(live, i);
    }
  }
}

Plan plan_of(const EngineProfile& engine, int zero_stage) {
  Layout layout;
  layout.dp_shard = 4;
  layout.zero_stage = static_cast<std::int8_t>(zero_stage);
  layout.fp32_gradients = engine.fp32_gradients_default;
  return small_plan(engine, layout, 2, 4);
}

TEST(ArenaLayout, NeverOverlapsWhatMayExistAtOnceWhateverTheTiming) {
  std::mt19937 random(20261121);
  for (const char* name : {"shardwise", "megatron_ddp", "megatron_fsdp", "fsdp2", "fsdp1"}) {
    const EngineProfile& engine = *find_engine(name);
    for (const int zero_stage : engine.zero_stages) {
      const StepProgram program = lower(plan_of(engine, zero_stage));
      const StageProgram& stage = program.stages.front();
      const std::vector<ArenaItem> items = items_of(stage);
      const ArenaLayout layout = arena_layout(stage, DependencyOrder(stage), items);
      for (int trial = 0; trial < 5; ++trial) expect_no_overlap(stage, items, layout, random);
    }
  }
}

TEST(ArenaLayout, TakesLittleMoreThanWhatExistsAtOnce) {
  for (const std::string& name : engine_names()) {
    const EngineProfile& engine = *find_engine(name);
    for (const int zero_stage : engine.zero_stages) {
      const StepProgram program = lower(plan_of(engine, zero_stage));
      const StageProgram& stage = program.stages.front();
      const ArenaLayout layout = arena_layout(stage, DependencyOrder(stage), items_of(stage));
      const double ratio =
          static_cast<double>(layout.bytes) / static_cast<double>(layout.live_bytes);
      EXPECT_GE(ratio, 1.0) << name << " ZeRO-" << zero_stage;
      EXPECT_LE(ratio, 1.1) << name << " ZeRO-" << zero_stage;
    }
  }
}

// Two streams without a dependency between them: in the order of issue one buffer ends before the
// other begins, in time they may exist together.
TEST(ArenaLayout, SharesMemoryOnlyWhereADependencyOrdersTheUsers) {
  for (const bool dependent : {false, true}) {
    StageProgram stage;
    StageBuilder builder(stage);
    const BufferId a = builder.buffer(MemoryCategory::working, 640);
    const BufferId b = builder.buffer(MemoryCategory::gathered_weights, 640);
    ProgramOp compute;
    ProgramOp gather;
    gather.role = OpRole::gather;
    gather.stream = Stream::all_gather;
    const OpId first = builder.add(compute, {}, {a}, {a});
    builder.add(gather, {dependent ? first : kNone}, {b}, {b});
    const ArenaLayout layout = arena_layout(stage, DependencyOrder(stage), items_of(stage));
    EXPECT_EQ(layout.bytes, dependent ? 640 : 1280);
    EXPECT_EQ(layout.live_bytes, 640);
  }
}

}  // namespace
}  // namespace shardwise::test
