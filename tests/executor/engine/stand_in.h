#pragma once

#include <functional>
#include <memory>

#include "executor/engine/trainer.h"
#include "planner/spec/plan/plan.h"

namespace shardwise::exec::test {

/// Layers with the parameters of a model and arithmetic of three lines: every parameter matters,
/// sums over tokens depend on their order, and gradients are exact, so that a schedule that reads
/// too early, adds twice or forgets a rank changes the losses.
LayerKernels stand_in_kernels(const Plan& plan);

Layout data_parallel_layout(int zero_stage, int dp_shard, int dp_replicate = 1);

/// A small Llama with `layout` on the laptop's cluster.
Plan laptop_plan(const std::string& engine, const Layout& layout, std::int64_t num_microbatches,
                 bool tied);

/// A Llama of six such blocks, for layouts with pipelines.
Plan deep_plan(const Layout& layout, std::int64_t num_microbatches, bool tied = false);

/// A text for them.
TokenSequences laptop_text(const Plan& plan);

/// Curve of a run of so many steps.
struct Curve {
  std::vector<double> losses;
  std::vector<double> norms;
  friend bool operator==(const Curve&, const Curve&) = default;
};
/// The world that a rank trains in, made of the one that its thread has.
using MakeWorld = std::function<std::unique_ptr<World>(World&)>;
/// \param options  its learning rate, where it has the default, becomes one of small models
/// \param make_world  none: the threads' own
Curve train(const Plan& plan, std::int64_t steps, TrainOptions options = {},
            const MakeWorld& make_world = {});

}  // namespace shardwise::exec::test
