// What the mesh and the scaling workspaces ask: a map of best layouts, a dragged bandwidth. CPU
// time is of all threads.
#include <benchmark/benchmark.h>

#include <memory>
#include <utility>

#include "gui/app/shot.h"
#include "gui/app/stage.h"
#include "gui/models/mesh/link_stretch.h"
#include "gui/models/mesh/mesh_facts.h"
#include "gui/models/scaling/scaling_model.h"
#include "gui/models/session/session.h"
#include "planner/engines/engines.h"
#include "planner/estimate/estimate.h"
#include "planner/model/hf_config.h"
#include "planner/spec/machine/cluster_reader.h"

namespace shardwise::view {
namespace {

/// Llama-3.1-70B on 64 H100, as `plan` lays it out.
Plan llama70() {
  Plan plan;
  plan.model = *load_model("llama-3.1-70b");
  plan.cluster = *with_gpus(*find_cluster("dgx-h100"), 64);
  plan.engine = *find_engine("megatron_ddp");
  plan.job.global_batch_size = 1024;
  plan.layout.tp = 2;
  plan.layout.cp = 2;
  plan.layout.pp = 8;
  plan.layout.dp_shard = 2;
  plan.layout.zero_stage = 1;
  plan.layout.sequence_parallel = true;
  return plan;
}

/// 35 cells, with what the ones before have made (1) or each from nothing (0).
void heat_map(benchmark::State& state) {
  const auto plan = std::make_shared<const Plan>(llama70());
  std::size_t cells = 0;
  for ([[maybe_unused]] const auto _ : state) {
    ScalingMap map = scaling_map(plan, ScalingRows::sequence);
    const auto memory = state.range(0) == 1 ? std::make_shared<SearchMemory>() : nullptr;
    while (const std::optional<std::size_t> cell = map.next()) {
      map.cells[*cell] = searched(plan_of_cell(map, *cell), memory, {}).value_or(ScalingPoint());
    }
    cells = map.known();
  }
  state.counters["cells"] = static_cast<double>(cells);
}
BENCHMARK(heat_map)
    ->Arg(0)
    ->Arg(1)
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();

/// What a frame does while a bandwidth is dragged.
void dragged_bandwidth(benchmark::State& state) {
  const Plan plan = llama70();
  double factor = 1;
  for ([[maybe_unused]] const auto _ : state) {
    factor = factor > 7 ? 0.2 : factor * 1.01;
    const Plan there = stretched(plan, {1, factor});
    benchmark::DoNotOptimize(
        estimate(there.model, there.cluster, there.job, there.engine, there.layout));
  }
}
BENCHMARK(dragged_bandwidth)->Unit(benchmark::kMillisecond);

/// What follows on the worker: the simulated step.
void simulated_bandwidth(benchmark::State& state) {
  const Plan plan = stretched(llama70(), {1, 2});
  for ([[maybe_unused]] const auto _ : state) benchmark::DoNotOptimize(quick_simulation(plan, {}));
}
BENCHMARK(simulated_bandwidth)->Unit(benchmark::kMillisecond);

/// Traffic, times of stages and other orders of the mesh.
void mesh_of(benchmark::State& state) {
  const Plan plan = llama70();
  for ([[maybe_unused]] const auto _ : state) benchmark::DoNotOptimize(mesh_facts(plan, {}));
}
BENCHMARK(mesh_of)->Unit(benchmark::kMillisecond);

/// A frame's interface, without pixels.
void frame_of(benchmark::State& state, Plan plan, Workspace workspace) {
  Session session(std::move(plan), Timing::fitting);
  session.set_workspace(workspace);
  Stage stage(FontChoice::built_in, 1);
  constexpr ImVec2 kSize(1600, 1000);
  draw_settled(stage, session, kSize);
  for ([[maybe_unused]] const auto _ : state) stage.frame(session, kSize);
}

/// The most GPUs of which each has a box.
void mesh_frame(benchmark::State& state) {
  Plan plan = llama70();
  plan.cluster = *with_gpus(plan.cluster, 4096);
  plan.layout.dp_shard = 128;
  frame_of(state, std::move(plan), Workspace::mesh);
}
BENCHMARK(mesh_frame)->Unit(benchmark::kMillisecond);

void scaling_frame(benchmark::State& state) { frame_of(state, llama70(), Workspace::scaling); }
BENCHMARK(scaling_frame)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shardwise::view
