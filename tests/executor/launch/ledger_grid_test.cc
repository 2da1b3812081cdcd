// What ranks of threads hold under every engine, stage, type and accumulation that runs, against
// the ledger with our kernels (--kernels planned), in every phase and category.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "executor/comm/thread_world.h"
#include "executor/engine/trainer.h"
#include "executor/recorder/measured_report.h"
#include "planner/cost/legality.h"
#include "planner/cost/memory.h"
#include "planner/cost/runtime_memory.h"
#include "planner/engines/engines.h"
#include "planner/spec/cluster_reader.h"
#include "tests/executor/launch/plans.h"

namespace shardwise::exec::test {
namespace {

using enum MemoryCategory;

StageMemory measured(const Plan& plan) {
  const std::ifstream file("docs/memory.md");
  std::ostringstream text;
  text << file.rdbuf();
  const TokenSequences data =
      *TokenSequences::cut(TokenStream(text.str()), plan.job.sequence_length, plan.model.vocab_size,
                           1, "docs/memory.md");
  LayerShape shape = layer_shape(plan.model, plan.job, plan.layout);
  shape.gradients = state_types(lowering_context(plan, Granularity::layer, false)).made;
  const LayerKernels kernels = {
      [&](const LayerSpec& kind) { return make_layer(plan.model, kind, shape); },
      [&](std::byte* tables) { fill_tables(plan.model, shape, tables); }};
  std::vector<Arena> arenas(static_cast<std::size_t>(plan.layout.world()));
  AbortSignal abort;
  RankRecord record;
  const auto rank_main = [&](World& world) {
    Trainer trainer(plan, world, arenas[static_cast<std::size_t>(world.rank())], abort, {},
                    kernels);
    trainer.initialise();
    for (int step = 0; step < 2; ++step) trainer.step(data);
    const StepSpans& median = trainer.median_step();
    if (world.rank() != 0) return;
    const auto kept = [&](const StepSpans& step) -> StepRecord {
      return {trainer.program(step.program), trainer.items(step.program), step.spans, step.seconds};
    };
    record.first = kept(trainer.first_step());
    record.steady = kept(median);
  };
  run_ranks(static_cast<int>(plan.layout.world()), abort, rank_main, std::chrono::seconds(60));
  return measured_report(plan, record).stages.front();
}

StageMemory predicted(const Plan& plan) {
  return layout_memory(plan.model, plan.job, plan.engine,
                       runtime_memory(plan.engine, plan.cluster.gpu), plan.layout)
      .stages.front();
}

std::string name_of(const Plan& plan, std::int64_t num_microbatches) {
  const Layout& layout = plan.layout;
  return fmt::format("{} ZeRO-{} {}, {} gradients, {} micro-batches{}", plan.engine.name,
                     layout.zero_stage, name_of(plan.job.precision),
                     layout.fp32_gradients ? "fp32" : "narrow", num_microbatches,
                     layout.reduce_every_microbatch ? "" : " reduced on the last");
}

std::vector<Plan> plans_of(const char* engine, std::int64_t num_microbatches) {
  std::vector<Plan> plans;
  for (const int zero_stage : find_engine(engine)->zero_stages) {
    for (const auto& [precision, wide] :
         {std::pair{DType::fp32, true}, {DType::bf16, true}, {DType::bf16, false}}) {
      for (const bool each : {true, false}) {
        Plan plan = tiny_plan(engine, zero_stage, 2, num_microbatches);
        plan.job.precision = precision;
        plan.job.kernels = Kernels::planned;
        plan.layout.fp32_gradients = wide;
        plan.layout.reduce_every_microbatch = each;
        if (num_microbatches == 1 && !each) continue;  // it is the last
        if (!is_legal(plan.model, plan.cluster, plan.job, plan.engine, plan.layout)) continue;
        plans.push_back(plan);
      }
    }
  }
  return plans;
}

/// Whether what is there in a pass depends on when communication ends.
bool has_queues(const Plan& plan) {
  const std::string& engine = plan.engine.name;
  if (engine == "shardwise" || engine == "megatron_ddp") return false;
  return plan.layout.zero_stage > 1 || engine == "fsdp1";
}

/// FSDP's single tensors, where the ledger has them apart and the executor together: sums of whole
/// gradients and what joins them; fp32 gradients of a layer and the bf16 ones they are cast from.
bool is_known(const Plan& plan, std::int64_t num_microbatches) {
  const bool tensors = plan.engine.gradient_buffer == GradientBuffer::copy_in;
  const bool casts = plan.layout.zero_stage == 0 && plan.job.precision == DType::bf16;
  return tensors && (!plan.layout.reduce_every_microbatch || (casts && num_microbatches == 1));
}

// Each category in each phase where buffers are planned; where units come and go with their
// communication states and optimizer steps are, and passes have no more than the ledger.
TEST(LedgerGrid, IsTheRunsForEveryEngineStageTypeAndAccumulation) {
  int exact = 0;
  int bounded = 0;
  for (const char* engine : {"shardwise", "megatron_ddp", "megatron_fsdp", "fsdp2", "fsdp1"}) {
    for (const std::int64_t num_microbatches : {1, 2, 3}) {
      for (const Plan& plan : plans_of(engine, num_microbatches)) {
        SCOPED_TRACE(name_of(plan, num_microbatches));
        const StageMemory held = measured(plan);
        const StageMemory said = predicted(plan);
        const bool queues = has_queues(plan);
        for (std::size_t p = 0; p < kMemoryPhases; ++p) {
          const auto phase = static_cast<MemoryPhase>(p);
          const bool passes = phase == MemoryPhase::first_forward_backward ||
                              phase == MemoryPhase::steady_forward_backward;
          if (queues && passes && is_known(plan, num_microbatches)) continue;
          if (queues && passes) {
            EXPECT_LE(held[phase].total(), said[phase].total()) << name_of(phase);
          } else {
            EXPECT_EQ(held[phase].bytes, said[phase].bytes) << name_of(phase);
          }
        }
        ++(queues ? bounded : exact);
      }
    }
  }
  EXPECT_EQ(exact, 120);
  EXPECT_EQ(bounded, 75);
}

}  // namespace
}  // namespace shardwise::exec::test
