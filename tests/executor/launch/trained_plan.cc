#include "tests/executor/launch/trained_plan.h"

#include <chrono>
#include <fstream>
#include <span>
#include <sstream>
#include <string>

#include "executor/comm/thread_world.h"
#include "executor/device/cpu/cpu_device.h"
#include "executor/engine/rank_place.h"
#include "executor/engine/trainer.h"
#include "executor/recorder/measured_report.h"
#include "executor/recorder/trainer_record.h"
#include "tests/executor/launch/plans.h"

namespace shardwise::exec::test {

std::array<std::int64_t, kMemoryCategories> in_categories(Ledger ledger) {
  ledger[MemoryCategory::activations] += ledger[MemoryCategory::working];
  ledger[MemoryCategory::working] = 0;
  return ledger.bytes;
}

TrainedPlan train_plan(const Plan& plan, int steps) {
  const std::ifstream file(kTrainingText);
  std::ostringstream text;
  text << file.rdbuf();
  const TokenSequences data = *TokenSequences::cut(
      TokenStream(text.str()), plan.job.sequence_length, plan.model.vocab_size, 1, kTrainingText);
  CpuDevice device;
  const auto ranks = static_cast<std::size_t>(plan.layout.world());
  std::vector<Arena> arenas(ranks);
  std::vector<RankRecord> records(ranks);
  TrainedPlan trained;
  AbortSignal abort;
  const auto rank_main = [&](World& world) {
    const auto rank = static_cast<std::size_t>(world.rank());
    LayerShape shape = layer_shape(plan.model, plan.job, plan.layout);
    shape.tp_rank = place_of(plan.layout, world.rank()).tp_rank;
    shape.gradients = state_types(lowering_context(plan, Granularity::layer, false)).made;
    const LayerKernels kernels = {
        [&](const LayerSpec& kind) { return make_layer(plan.model, kind, shape); },
        [&](std::byte* tables, const Issue& to) { fill_tables(plan.model, shape, tables, to); }};
    Trainer trainer(plan, world, device, arenas[rank], abort, {}, kernels);
    trainer.initialise();
    for (int step = 0; step < steps; ++step) {
      const StepResult result = trainer.step(data);
      if (rank > 0) continue;
      trained.losses.push_back(result.loss);
      trained.norms.push_back(result.gradient_norm);
    }
    records[rank].rank = world.rank();
    const StepSpans& median = trainer.median_step();
    records[rank].first = record_of(trainer, trainer.first_step());
    records[rank].steady = record_of(trainer, median);
    records[rank].arena_bytes = arenas[rank].bytes();
  };
  run_ranks(static_cast<int>(plan.layout.world()), abort, rank_main, std::chrono::seconds(60));
  trained.report = measured_report(plan, records);
  return trained;
}

}  // namespace shardwise::exec::test
