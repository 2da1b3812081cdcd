// What ranks of threads hold under every engine, stage, type and accumulation that runs, against
// the ledger with our kernels (--kernels planned), in every phase and category.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "executor/comm/thread_world.h"
#include "executor/device/cpu/cpu_device.h"
#include "executor/engine/trainer.h"
#include "executor/recorder/measured_report.h"
#include "planner/cost/memory/memory.h"
#include "planner/engines/engines.h"
#include "planner/legality/legality.h"
#include "planner/spec/machine/cluster_reader.h"
#include "tests/executor/launch/plans.h"

namespace shardwise::exec::test {
namespace {

using enum MemoryCategory;

/// What a rank of a run held, and what its arena has room for.
struct RankRun {
  StageMemory held;
  std::int64_t at_once = 0;  // most that exists when operations run one after the other
  std::int64_t arena = 0;    // and whenever they run
};

RankRun run_of(const Plan& plan) {
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
      [&](std::byte* tables, const Issue& to) { fill_tables(plan.model, shape, tables, to); }};
  CpuDevice device;
  std::vector<Arena> arenas(static_cast<std::size_t>(plan.layout.world()));
  AbortSignal abort;
  RankRecord record;
  const auto rank_main = [&](World& world) {
    Trainer trainer(plan, world, device, arenas[static_cast<std::size_t>(world.rank())], abort, {},
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
  const std::int64_t at_once =
      std::max(arenas[0].layout(0).live_bytes, arenas[0].layout(1).live_bytes);
  return {measured_report(plan, std::span(&record, 1)).stages.front(), at_once, arenas[0].bytes()};
}

/// Without what NVIDIA's libraries take themselves.
StageMemory predicted(const Plan& plan) {
  StageMemory said =
      layout_memory_on(plan.cluster.gpu, plan.model, plan.job, plan.engine, plan.layout)
          .stages.front();
  for (Ledger& phase : said.phases) phase[communicator] = phase[runtime_context] = 0;
  return said;
}

std::string plan_name(const Plan& plan, std::int64_t num_microbatches) {
  const Layout& layout = plan.layout;
  return fmt::format("{} ZeRO-{} {} main {}, {} gradients, {} micro-batches{}{}", plan.engine.name,
                     layout.zero_stage, name_of(plan.job.precision), name_of(plan.job.main_dtype),
                     layout.fp32_gradients ? "fp32" : "narrow", num_microbatches,
                     layout.reduce_every_microbatch ? "" : " reduced on the last",
                     layout.store_param_remainders ? ", remainders" : "");
}

std::vector<Plan> plans_of(const char* engine, std::int64_t num_microbatches,
                           const char* cluster = "laptop", int ranks = 2) {
  std::vector<Plan> plans;
  for (const int zero_stage : find_engine(engine)->zero_stages) {
    for (const auto& [precision, wide] :
         {std::pair{DType::fp32, true}, {DType::bf16, true}, {DType::bf16, false}}) {
      for (const bool each : {true, false}) {
        Plan plan = tiny_plan(engine, zero_stage, ranks, num_microbatches);
        plan.cluster = *with_gpus(*find_cluster(cluster), plan.layout.world());
        plan.job.precision = precision;
        plan.job.kernels = Kernels::planned;
        plan.layout.fp32_gradients = wide;
        plan.layout.reduce_every_microbatch = each;
        if (num_microbatches == 1 && !each) continue;  // it is the last
        const auto add = [&](DType main_dtype, bool remainders) {
          plan.job.main_dtype = main_dtype;
          plan.layout.store_param_remainders = remainders;
          if (!is_legal(plan.model, plan.cluster, plan.job, plan.engine, plan.layout)) return;
          plans.push_back(plan);
        };
        add(DType::fp32, false);
        add(DType::fp32, true);
        const bool ours = plan.engine.name == "shardwise" && precision == DType::bf16;
        if (ours) add(DType::bf16, false);
      }
    }
  }
  return plans;
}

/// How far what is there in a pass is known.
enum class Agreement : std::uint8_t {
  exact,    // each category
  total,    // the sum: the ledger has a layer's gradients in staging until the layer is done
  at_most,  // a sum that depends on when communication ends
};
Agreement held_in_passes(const Plan& plan, std::int64_t num_microbatches) {
  const std::string& engine = plan.engine.name;
  const std::int8_t stage = plan.layout.zero_stage;
  if (engine == "shardwise" || engine == "megatron_ddp") return Agreement::exact;
  if (engine == "megatron_fsdp") {
    const bool waits = stage == 2 && !plan.layout.reduce_every_microbatch;
    return stage < 2 || waits ? Agreement::exact : Agreement::at_most;
  }
  if (stage > 0) return Agreement::at_most;
  if (num_microbatches > 1) return Agreement::exact;
  return plan.job.precision == DType::fp32 ? Agreement::total : Agreement::at_most;
}

std::int64_t largest_layer(const Plan& plan) {
  std::int64_t largest = 0;
  for (const LayerSpec& kind : plan.model.kinds) {
    largest = std::max(largest, kind.parameter_count());
  }
  return largest;
}

/// FSDP1's ZeRO-0 in bf16: the fp32 gradients of the layer that runs, as PyTorch casts the bf16
/// ones when the layer's activations are gone, our kernels as they make them.
std::int64_t beside_the_ledger(const Plan& plan) {
  const bool casts = plan.layout.zero_stage == 0 &&
                     plan.engine.gradient_buffer == GradientBuffer::copy_in &&
                     plan.job.precision == DType::bf16;
  return casts ? largest_layer(plan) * bytes_of(DType::fp32) : 0;
}

std::int64_t all_layers(const Plan& plan) {
  std::int64_t all = 0;
  for (const std::int32_t kind : plan.model.layers) {
    all += plan.model.kinds[static_cast<std::size_t>(kind)].parameter_count();
  }
  return all;
}

/// What communication that ends early or late may add: the two units that are gathered ahead at
/// most, which the ledger has at moments when less else is there; and gradients of the micro-batch
/// before in Megatron-FSDP's queue, which the ledger has empty when another one begins, while a run
/// does not wait for that.
std::int64_t by_timing(const Plan& plan, std::int64_t num_microbatches) {
  const bool queues = plan.engine.reduce_queue_elements > 0 && num_microbatches > 1;
  const DType gradients = plan.layout.fp32_gradients ? DType::fp32 : plan.job.precision;
  return 2 * largest_layer(plan) * bytes_of(plan.job.precision) +
         (queues ? all_layers(plan) * bytes_of(gradients) : 0);
}

void expect_held(const Ledger& held, const Ledger& said, Agreement how, std::int64_t beyond) {
  switch (how) {
    case Agreement::exact:
      EXPECT_EQ(held.bytes, said.bytes);
      return;
    case Agreement::total:
      EXPECT_EQ(held.total(), said.total());
      return;
    case Agreement::at_most:
      EXPECT_LE(held.total(), said.total() + Bytes(beyond));
      return;
  }
}

/// The arena's sizes, which do not depend on the run.
void expect_arena(const Plan& plan, const RankRun& run, const StageMemory& said, Agreement how,
                  std::int64_t beyond) {
  const std::int64_t ledger = said.peak_total().value();
  if (how == Agreement::at_most) {
    EXPECT_LE(run.at_once, ledger + beside_the_ledger(plan));
    EXPECT_LE(run.arena, ledger + beyond);
  } else {
    EXPECT_EQ(run.at_once, ledger);
  }
}

// States and optimizer steps are the ledger's in each category everywhere, passes too where nothing
// depends on when communication ends.
TEST(LedgerGrid, IsTheRunsForEveryEngineStageTypeAndAccumulation) {
  std::map<Agreement, int> plans;
  for (const char* engine : {"shardwise", "megatron_ddp", "megatron_fsdp", "fsdp2", "fsdp1"}) {
    for (const std::int64_t num_microbatches : {1, 2, 3}) {
      for (const Plan& plan : plans_of(engine, num_microbatches)) {
        SCOPED_TRACE(plan_name(plan, num_microbatches));
        const RankRun run = run_of(plan);
        const StageMemory said = predicted(plan);
        const Agreement how = held_in_passes(plan, num_microbatches);
        const std::int64_t beyond = by_timing(plan, num_microbatches);
        expect_arena(plan, run, said, how, beyond);
        for (std::size_t p = 0; p < kMemoryPhases; ++p) {
          const auto phase = static_cast<MemoryPhase>(p);
          SCOPED_TRACE(name_of(phase));
          const bool passes = phase == MemoryPhase::first_forward_backward ||
                              phase == MemoryPhase::steady_forward_backward;
          expect_held(run.held[phase], said[phase], passes ? how : Agreement::exact, beyond);
        }
        ++plans[how];
      }
    }
  }
  EXPECT_EQ(plans[Agreement::exact], 218);
  EXPECT_EQ(plans[Agreement::total], 1);
  EXPECT_EQ(plans[Agreement::at_most], 56);
}

// Of what is known to the byte. Three ranks divide no unit, so that each ends with a padded piece;
// later micro-batches add to the sum of earlier ones; and the workspace of the kernels that GPUs
// run is there too, 32 MiB on an H100.
TEST(LedgerGrid, IsThatOfRunsOfPlansForGpus) {
  std::map<std::string, int> plans;
  for (const char* engine : {"shardwise", "megatron_ddp", "megatron_fsdp", "fsdp1"}) {
    for (const std::int64_t num_microbatches : {1, 2, 3}) {
      for (const Plan& plan : plans_of(engine, num_microbatches, "dgx-h100", 3)) {
        SCOPED_TRACE(plan_name(plan, num_microbatches));
        const Agreement how = held_in_passes(plan, num_microbatches);
        if (how == Agreement::at_most) continue;
        const RankRun run = run_of(plan);
        const StageMemory said = predicted(plan);
        expect_arena(plan, run, said, how, 0);
        for (std::size_t p = 0; p < kMemoryPhases; ++p) {
          const auto phase = static_cast<MemoryPhase>(p);
          SCOPED_TRACE(name_of(phase));
          const bool passes = phase == MemoryPhase::first_forward_backward ||
                              phase == MemoryPhase::steady_forward_backward;
          expect_held(run.held[phase], said[phase], passes ? how : Agreement::exact, 0);
          EXPECT_EQ(run.held[phase][library_workspace], 32 << 20);
        }
        ++plans[engine];
      }
    }
  }
  EXPECT_EQ(plans["shardwise"], 140);
  EXPECT_EQ(plans["megatron_ddp"], 30);
  EXPECT_EQ(plans["megatron_fsdp"], 36);
  EXPECT_EQ(plans["fsdp1"], 13);
}

// The head's 8224 elements in fp32, of the second micro-batch, lie beside the sum on a CPU alone.
// It is then that a pass is at its fullest.
TEST(LedgerGrid, HasNoGradientsBesideASumOnGpus) {
  Plan plan = tiny_plan("shardwise", 0, 1, 2);
  plan.job.kernels = Kernels::planned;
  const auto staged = [&] {
    const RankRun run = run_of(plan);
    return run.held[MemoryPhase::steady_forward_backward][gradient_staging];
  };
  EXPECT_EQ(staged(), 8224 * 4);
  plan.cluster = *with_gpus(*find_cluster("dgx-h100"), 1);
  EXPECT_EQ(staged(), 0);
}

// Elements: 8192 of the embedding, 11584 of a block and 8224 of the head, whose units end at a
// multiple of two ranks' 64: 8192 + 2 x 11648 + 8320 = 39808.
TEST(LedgerGrid, HasTheStatesOfAPlanForGpusByHand) {
  Plan plan = tiny_plan("shardwise", 1, 2, 1);
  plan.cluster = *with_gpus(*find_cluster("dgx-h100"), 2);
  plan.job.precision = DType::bf16;
  plan.layout.fp32_gradients = true;
  for (const bool remainders : {false, true}) {
    plan.layout.store_param_remainders = remainders;
    const RankRun run = run_of(plan);
    const Ledger& after = run.held[MemoryPhase::steady_optimizer_step];
    EXPECT_EQ(after[weights], 39808 * 2);
    EXPECT_EQ(after[gradients], 39808 * 4);
    EXPECT_EQ(after[main_weights], 39808 / 2 * (remainders ? 2 : 4));
    EXPECT_EQ(after[optimizer_moments], 39808 / 2 * 8);
    EXPECT_EQ(after[library_workspace], 32 << 20);
  }
}

}  // namespace
}  // namespace shardwise::exec::test
