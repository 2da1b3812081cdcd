// What the viewer's frames cost, without a display. CPU time is that of the thread that draws: the
// worker's is not in a frame.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gui/app/stage.h"
#include "gui/models/compare/compared.h"
#include "gui/models/window/panel_facts.h"
#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/text/check.h"
#include "simulator/clock/simulate.h"
#include "tests/support/command.h"
#include "tests/support/scratch.h"

namespace shardwise::view {
namespace {

constexpr ImVec2 kSize(1600, 1000);

Plan plan_of(const char* model, std::int64_t gpus, std::int64_t batch, std::int64_t sequence) {
  Plan plan;
  plan.model = *load_model(model);
  plan.cluster = *with_gpus(*find_cluster("dgx-h100"), gpus);
  plan.engine = *find_engine("megatron_ddp");
  plan.job.global_batch_size = batch;
  plan.job.sequence_length = sequence;
  plan.layout.tp = 8;
  plan.layout.pp = 8;
  plan.layout.dp_shard = static_cast<std::int32_t>(gpus / 64);
  plan.layout.zero_stage = gpus > 64 ? 1 : 0;
  plan.layout.sequence_parallel = true;
  return plan;
}
/// 9,010 rows.
Plan llama70() { return plan_of("llama-3.1-70b", 64, 1024, 4096); }
/// 13,444 rows.
Plan llama405() { return plan_of("llama-3.1-405b", 16384, 2048, 8192); }

/// CPU seconds of this thread.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Window {
  explicit Window(Plan plan) : session(std::move(plan)), stage(FontChoice::built_in, 1) {
    settle();
  }
  void settle() {
    for (int i = 0; i < 3; ++i) {
      session.settle();
      frame();
    }
  }
  void frame() { stage.frame(session, kSize); }

  Session session;
  Stage stage;
};

/// Everything is known, nothing changes.
void frame(benchmark::State& state) {
  Window window(llama70());
  window.session.set_workspace(static_cast<Workspace>(state.range(0)));
  window.settle();
  for ([[maybe_unused]] const auto _ : state) window.frame();
  state.counters["rows"] = static_cast<double>(window.session.state().answer.rows.size());
  state.SetLabel(std::string(kWorkspaceNames[static_cast<std::size_t>(state.range(0))]));
}
BENCHMARK(frame)->DenseRange(0, kWorkspaces - 1)->Unit(benchmark::kMillisecond);

/// What a run of the plan might have measured: each operation takes a tenth longer.
std::shared_ptr<const Compared> measured(const Plan& plan) {
  StepReport report = sim::simulate(plan).report;
  report.origin = "measured";
  report.step_time = report.step_time * 1.1;
  for (OperationTime& each : report.timeline->operations) each.time = each.time * 1.1;
  return std::make_shared<const Compared>(compared_report(std::move(report), "measured.json"));
}

/// Milliseconds of this thread a frame takes, the least of several runs of frames.
double least_ms_of_frames(Window& window) {
  constexpr int kRuns = 10;
  constexpr int kFrames = 20;
  double least = std::numeric_limits<double>::infinity();
  for (int run = 0; run < kRuns; ++run) {
    const double before = thread_seconds();
    for (int i = 0; i < kFrames; ++i) window.frame();
    least = std::min(least, (thread_seconds() - before) / kFrames);
  }
  return 1e3 * least;
}

/// What a long run has written of its steps.
std::string metrics_of_a_run() {
  constexpr int kSteps = 100'000;
  std::string text = "{\"schema\":\"shardwise.metrics/1\"}\n";
  for (int step = 1; step <= kSteps; ++step) {
    text += fmt::format(
        "{{\"step\":{},\"loss\":{:.4f},\"gradient_norm\":1,\"learning_rate\":0.001,"
        "\"step_time_s\":{:.3f},\"tokens_per_s\":1000,\"held_by_checkpoint_s\":0}}\n",
        step, 2 + 9.0 / std::sqrt(step), 50 + 0.1 * (step * 7 % 13));
  }
  return text;
}

/// A frame with each panel in sight, beside a measured run and one that is followed: its
/// milliseconds by panel.
void frame_with_each_panel(benchmark::State& state) {
  const test::Scratch scratch;
  Window window(llama70());
  window.session.compare_with(measured(window.session.state().plan));
  window.session.follow(scratch.write_bytes("steps.jsonl", metrics_of_a_run()));
  window.settle();
  for ([[maybe_unused]] const auto _ : state) {
    for (const PanelFacts& panel : panel_facts()) {
      SHARDWISE_CHECK(panel.shows(window.session.state()), std::string(panel.id));
      const std::string problem = window.session.show_panel(std::string(panel.id));
      SHARDWISE_CHECK(problem.empty(), problem);
      window.settle();
      state.counters[std::string(panel.id)] = least_ms_of_frames(window);
    }
  }
}
BENCHMARK(frame_with_each_panel)->Iterations(1)->Unit(benchmark::kMillisecond);

/// One axis of the mesh, a step there and back: the frame that follows shows its numbers, its place
/// and the sliders; neighbours and lanes come from the worker.
void drag_of_an_axis(benchmark::State& state) {
  Window window(llama405());
  std::vector<Plan> plans = {window.session.state().plan, window.session.state().plan};
  plans[1].layout.tp /= 2;
  plans[1].layout.dp_shard *= 2;
  std::size_t step = 0;
  for ([[maybe_unused]] const auto _ : state) {
    window.session.change(plans[++step % 2], Change::layout);
    window.frame();
  }
  state.counters["rows"] = static_cast<double>(window.session.state().answer.rows.size());
}
BENCHMARK(drag_of_an_axis)->Unit(benchmark::kMillisecond);

/// The bandwidth between nodes, another one each time.
Plan with_bandwidth(Plan plan, double share) {
  plan.cluster.tiers.back().bandwidth = plan.cluster.tiers.back().bandwidth * share;
  return plan;
}

/// 50 drags in 50 frames: the longest of them, and how long the answer to the last takes after.
void fifty_drags(benchmark::State& state, Plan (*make)()) {
  const Plan plan = make();
  Window window(plan);
  double longest = 0;
  double all = 0;
  double settled = 0;
  for ([[maybe_unused]] const auto _ : state) {
    for (int i = 1; i <= 50; ++i) {
      const double before = thread_seconds();
      window.session.change(with_bandwidth(plan, 1 - 0.01 * i), Change::question);
      window.frame();
      const double took = thread_seconds() - before;
      longest = std::max(longest, took);
      all += took;
    }
    const auto begin = std::chrono::steady_clock::now();
    window.session.settle();
    settled = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    SHARDWISE_CHECK(window.session.state().current() && window.session.state().answer.exact,
                    "the last question has its answer");
  }
  state.counters["longest_ms"] = 1e3 * longest;
  state.counters["mean_ms"] =
      1e3 * all / (50 * static_cast<double>(std::max<std::int64_t>(1, state.iterations())));
  state.counters["settled_ms"] = 1e3 * settled;
}
BENCHMARK_CAPTURE(fifty_drags, llama_70b_on_64, llama70)
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(fifty_drags, llama_405b_on_16384, llama405)
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

/// From the change of the question until a frame shows memory and fit of all rows, bounds on their
/// times, sorted: these come from the worker, while frames go on.
void question_to_bounds(benchmark::State& state) {
  const Plan plan = llama70();
  Window window(plan);
  int step = 0;
  for ([[maybe_unused]] const auto _ : state) {
    window.session.change(with_bandwidth(plan, 1 - 0.001 * (++step % 500)), Change::question);
    while (!window.session.state().current()) window.frame();
  }
}
BENCHMARK(question_to_bounds)->Unit(benchmark::kMillisecond)->UseRealTime();

/// The frame's pixels, at scale 1.
void rasteriser(benchmark::State& state) {
  Window window(llama70());
  for ([[maybe_unused]] const auto _ : state) {
    benchmark::DoNotOptimize(window.stage.picture(window.session));
  }
}
BENCHMARK(rasteriser)->Unit(benchmark::kMillisecond);

void png(benchmark::State& state) {
  Window window(llama70());
  const Image image = window.stage.picture(window.session);
  std::size_t bytes = 0;
  for ([[maybe_unused]] const auto _ : state) bytes = to_png(image).size();
  state.counters["bytes"] = static_cast<double>(bytes);
}
BENCHMARK(png)->Unit(benchmark::kMillisecond);

/// From nothing to the first frame's pixels: state, fonts, ImGui; rows are still searched for.
void first_frame(benchmark::State& state) {
  const Plan plan = llama70();
  for ([[maybe_unused]] const auto _ : state) {
    Session session(plan);
    Stage stage(FontChoice::installed, 1);
    stage.frame(session, kSize);
    benchmark::DoNotOptimize(stage.picture(session));
  }
}
BENCHMARK(first_frame)->Unit(benchmark::kMillisecond);

/// `shardwise-view --shot` from the start of its process to its end.
void shot(benchmark::State& state) {
  const test::Scratch scratch;
  const std::string plan = scratch.write_bytes("plan.json", to_json(llama70()));
  for ([[maybe_unused]] const auto _ : state) {
    const test::Outcome made =
        test::run_program(test::built("shardwise-view"),
                          {"--shot", scratch.path("shot.png"), "--size", "1600x1000", plan});
    SHARDWISE_CHECK(made.exit_code == 0, made.err);
  }
}
BENCHMARK(shot)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace shardwise::view
