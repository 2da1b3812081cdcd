// A frame of the timeline, and a step that is simulated again while an edge is dragged.
#include <benchmark/benchmark.h>
#include <imgui.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "gui/app/stage.h"
#include "gui/draw/raster.h"
#include "gui/draw/theme.h"
#include "gui/models/window/app_state.h"
#include "gui/panels/panels.h"
#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"
#include "planner/spec/machine/cluster_reader.h"

namespace shardwise::view {
namespace {

constexpr std::size_t kLanes = 16;
constexpr double kLength = 10;  // seconds

/// Spans of two kinds in turn, nine tenths busy, on 16 lanes of as many stages.
std::shared_ptr<const StepLanes> made_step(std::size_t spans) {
  auto step = std::make_shared<StepLanes>();
  step->simulated = true;
  step->length = kLength;
  for (std::size_t stage = 0; stage < kLanes; ++stage) {
    sim::SpanColumns columns;
    const std::size_t count = spans / kLanes;
    columns.reserve(count);
    const double each = kLength / static_cast<double>(count);
    for (std::size_t i = 0; i < count; ++i) {
      ProgramOp op;
      op.role = i % 3 == 0 ? OpRole::forward : OpRole::backward;
      op.microbatch = static_cast<std::int32_t>(i % 64);
      const double from = static_cast<double>(i) * each;
      columns.push_back({from, from, from, from + 0.9 * each}, 0, op,
                        static_cast<std::uint32_t>(i));
    }
    sim::RankSpans rank{0, stage, {}};
    step->exposed.push_back(make_strip(rank));
    step->ranks.push_back(static_cast<std::int64_t>(stage));
    step->lanes.push_back(make_lane(stage, 0, std::move(columns)));
  }
  return step;
}

/// Whether frames show the same part of a step, or each another one.
enum class View : std::uint8_t { at_rest, panned };

/// \param share  of the step that is shown
void frame(benchmark::State& bench, std::size_t spans, double share, View view) {
  Stage stage(FontChoice::built_in, 1);
  AppState state;
  state.workspace = Workspace::timeline;
  state.lanes = made_step(spans);
  const TimeRange range{0.4 * kLength, (0.4 + 0.6 * share) * kLength};
  state.range = range;
  const Theme& theme = theme_of(true);
  apply(theme, 1);
  Probes probes;
  PaletteInput palette;
  DrawnColumns columns;
  std::uint64_t arranged = 0;
  std::uint64_t fronted = 0;
  ImGuiIO& io = ImGui::GetIO();
  io.DisplaySize = {1600, 1000};
  io.DeltaTime = 1.0F / 60;
  std::size_t vertices = 0;
  std::size_t frames = 0;
  for ([[maybe_unused]] const auto _ : bench) {
    if (view == View::panned) {
      const double moved = 1e-4 * range.length() * static_cast<double>(++frames % 100);
      state.range = {range.from - moved, range.to - moved};
    }
    ImGui::NewFrame();
    ImGui::SetNextWindowPos({0, 0});
    ImGui::SetNextWindowSize(io.DisplaySize);
    ImGui::Begin("timeline");
    probes.clear();
    Ui ui{state, theme, stage.fonts(), probes, palette, columns, arranged, fronted, 1, {},
          {},    {},    false};
    draw_timeline(ui);
    ImGui::End();
    ImGui::Render();
    serve_textures();
    vertices = static_cast<std::size_t>(ImGui::GetDrawData()->TotalVtxCount);
  }
  bench.counters["vertices"] = static_cast<double>(vertices);
}
BENCHMARK_CAPTURE(frame, million_whole, 1'000'000, 1, View::at_rest)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(frame, million_whole_panned, 1'000'000, 1, View::panned)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(frame, million_hundredth, 1'000'000, 0.01, View::panned)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(frame, ten_million_whole, 10'000'000, 1, View::panned)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(frame, ten_million_hundredth, 10'000'000, 0.01, View::panned)
    ->Unit(benchmark::kMillisecond);

/// Llama-3.1-70B in 8 stages of 2 chunks, layer by layer.
Plan pipeline() {
  Plan plan;
  plan.model = *load_model("llama-3.1-70b");
  plan.cluster = *with_gpus(*find_cluster("dgx-h100"), 64);
  plan.engine = *find_engine("megatron_ddp");
  plan.layout.tp = 8;
  plan.layout.pp = 8;
  plan.layout.vpp = 2;
  plan.layout.sequence_parallel = true;
  plan.job.global_batch_size = 192;
  return plan;
}

/// What a drag of an edge has done until the new step can be drawn.
void stretched_step(benchmark::State& bench) {
  const Plan plan = pipeline();
  std::size_t operations = 0;
  for ([[maybe_unused]] const auto _ : bench) {
    const StepLanes step = step_lanes(plan, {0, {{sim::Paint::backward, 0.7}}});
    operations = step.simulation->work.operations;
  }
  bench.counters["operations"] = static_cast<double>(operations);
}
BENCHMARK(stretched_step)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shardwise::view
