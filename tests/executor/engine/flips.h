#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "executor/comm/thread_world.h"
#include "executor/device/cpu/cpu_device.h"
#include "executor/engine/replica_check.h"
#include "planner/spec/text/error.h"
#include "tests/executor/engine/stand_in.h"

namespace shardwise::exec::test {

/// A bit of a number that a rank keeps, which is flipped after a step.
struct Flip {
  int rank = 0;
  std::int64_t step = 0;     // trained before it
  std::string tensor;        // a rank that keeps none of it flips nothing
  std::int64_t element = 0;  // of the tensor
  Kept kept = Kept::weights;
  int bit = 0;        // from the lowest
  bool late = false;  // after the comparison of that step, if there is one
};

inline std::byte* begin_of(Kept kept, const RankState::View& view) {
  if (kept == Kept::weights) return view.weights.data;
  if (kept == Kept::main_weights) return view.main.data;
  if (kept == Kept::exp_avg) return view.exp_avg.data;
  if (kept == Kept::exp_avg_sq) return view.exp_avg_sq.data;
  return reinterpret_cast<std::byte*>(view.remainders.data());
}

inline std::int64_t bytes_each(Kept kept, const RankState& state) {
  if (kept == Kept::weights) return bytes_of(state.types().weights);
  return kept == Kept::remainders ? 2 : 4;
}

/// \returns whether the rank keeps it
inline bool flip(const Flip& planted, const Trainer& trainer, const Arena& arena) {
  const RankState& state = trainer.state();
  bool flipped = false;
  for (std::size_t u = 0; u < state.units().units.size(); ++u) {
    const RankState::View view = state.view(arena, 0, u);
    const ShardRange held = planted.kept == Kept::weights ? state.keeps(u) : view.held;
    for (const UnitTensor& tensor : state.units().units[u].tensors) {
      const std::int64_t at = tensor.begin + planted.element - held.begin;
      if (tensor.name != planted.tensor || at < 0 || at >= held.count) continue;
      const std::int64_t byte = at * bytes_each(planted.kept, state) + planted.bit / 8;
      begin_of(planted.kept, view)[byte] ^= std::byte{1} << (planted.bit % 8);
      flipped = true;
    }
  }
  return flipped;
}

/// Trains with comparisons every `every` steps. \returns what ended the run; empty when nothing did
/// \param flipped  counts the flips; may be null
inline std::string ended_by(const Plan& plan, std::int64_t steps, std::int64_t every,
                            const std::vector<Flip>& flips, std::atomic<int>* flipped = nullptr) {
  const TokenSequences data = laptop_text(plan);
  AbortSignal abort;
  CpuDevice device;
  std::vector<Arena> arenas(static_cast<std::size_t>(plan.layout.world()));
  try {
    run_ranks(
        static_cast<int>(plan.layout.world()), abort,
        [&](World& world) {
          Arena& arena = arenas[static_cast<std::size_t>(world.rank())];
          Trainer trainer(plan, world, device, arena, abort, {}, stand_in_kernels(plan));
          trainer.initialise();
          ReplicaCheck replicas(trainer, plan.layout, world, device, arena, abort);
          while (trainer.next_step() < steps) {
            const std::int64_t done = trainer.next_step() + 1;
            const auto plant = [&](bool late) {
              for (const Flip& each : flips) {
                if (each.rank != world.rank() || each.step != done || each.late != late) continue;
                if (flip(each, trainer, arena) && flipped != nullptr) ++*flipped;
              }
            };
            if (done % every == 0) replicas.before_step();
            trainer.step(data);
            plant(false);
            if (done % every == 0) replicas.after_step(done);
            plant(true);
          }
        },
        std::chrono::seconds(60));
  } catch (const IoError& ended) {
    return ended.what();
  }
  return "";
}

inline constexpr const char* kNorm = "model.norm.weight";

/// A way of training that keeps some numbers on several ranks.
struct Way {
  const char* engine = "";
  Layout layout;
  bool remainders = false;
};

inline Plan bf16_plan(const Way& way) {
  Plan plan =
      way.layout.pp > 1 ? deep_plan(way.layout, 2) : laptop_plan(way.engine, way.layout, 1, false);
  plan.layout.store_param_remainders = way.remainders;
  plan.job.precision = DType::bf16;
  return plan;
}

}  // namespace shardwise::exec::test
