#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/growth_text.h"
#include "cli/import_text.h"
#include "cli/report_text.h"
#include "cli/simulate_request.h"
#include "cli/simulate_text.h"
#include "cli/terminal.h"
#include "cli/trace_file.h"
#include "cli/verbs.h"
#include "cli/versus_text.h"
#include "cli/write_file.h"
#include "planner/cost/estimate.h"
#include "planner/cost/legality.h"
#include "planner/spec/plan.h"
#include "planner/spec/report_json.h"
#include "simulator/noise.h"
#include "simulator/simulate.h"
#include "simulator/timeline_svg.h"
#include "simulator/trace.h"
#include "simulator/versus.h"

namespace shardwise::cli {
namespace {

constexpr std::size_t kMostTracedRanks = 64;

ExitCode refuse(const Diagnostics& problems) {
  fmt::print(stderr, "{}", to_string(problems));
  return ExitCode::bad_input;
}

void write_files(const SimulateFlags& flags, const Plan& plan, const sim::Simulation& made) {
  if (!flags.output.empty()) write_file(flags.output, report_json(made.report));
  if (!flags.trace.empty()) {
    std::string trace;
    sim::write_trace(plan, made, kMostTracedRanks,
                     [&trace](std::string_view text) { trace += text; });
    write_file(flags.trace, trace);
  }
  if (!flags.svg.empty()) write_file(flags.svg, sim::timeline_svg(plan, made));
}

ExitCode run_versus(const SimulateFlags& flags, const Plan& first) {
  SimulateFlags other = flags;
  other.job.engine = flags.versus;
  const Result<Plan> second = simulated_plan(other);
  if (!second) return refuse(second.problems());
  const sim::Versus found = sim::versus(first, *second, options_of(flags));
  fmt::print("{}", flags.json ? versus_json(found, first, *second)
                              : versus_text(found, first, *second, wants_colour()));
  return ExitCode::done;
}

ExitCode run_growth(const SimulateFlags& flags, const Plan& first) {
  const std::int64_t node = first.cluster.gpus_per_node;
  if (flags.growth < node) {
    return refuse(wrong_flag("--growth", fmt::format("{} GPUs are less than a node", flags.growth),
                             fmt::format("a node has {}", node)));
  }
  std::vector<GrowthPoint> points;
  for (std::int64_t gpus = node; gpus <= flags.growth; gpus *= 2) {
    SimulateFlags grown = flags;
    grown.job.gpus = fmt::format("{}", gpus);
    const Result<Plan> full = simulated_plan(grown);
    if (!full) return refuse(full.problems());
    Plan hybrid = *full;
    const std::int64_t inner = std::int64_t{hybrid.layout.tp} * hybrid.layout.cp;
    const std::int64_t shard = std::max<std::int64_t>(1, node / inner);
    if (hybrid.layout.dp_shard % shard == 0) {
      hybrid.layout.dp_replicate = static_cast<std::int32_t>(hybrid.layout.dp_shard / shard);
      hybrid.layout.dp_shard = static_cast<std::int32_t>(shard);
    }
    const Diagnostics illegal =
        check_layout(hybrid.model, hybrid.cluster, hybrid.job, hybrid.engine, hybrid.layout);
    if (!illegal.empty()) return refuse(illegal);
    points.push_back({gpus, sim::simulate(*full, options_of(flags)).report,
                      sim::simulate(hybrid, options_of(flags)).report});
  }
  if (!flags.json) {
    fmt::print("{} on {}, {}\none shard over all GPUs, and shards of a node with replicas\n\n",
               first.model.name, first.cluster.name, first.engine.name);
  }
  fmt::print("{}", flags.json ? growth_json(points) : growth_text(points, wants_colour()));
  return ExitCode::done;
}

/// What a trace was recorded at; a profiler sees kernels.
std::string granularity_of(const sim::TracedRun& run) {
  if (!run.ours()) return "kernel";
  return run.head.granularity == "kernel" ? "kernel" : "layer";
}

ExitCode run_import(SimulateFlags flags, const Plan& plan) {
  const Result<sim::TracedRun> run = read_trace_file(flags.import);
  if (!run) return refuse(run.problems());
  if (flags.granularity.empty()) flags.granularity = granularity_of(*run);
  const sim::Simulation made = sim::simulate(plan, options_of(flags));
  const sim::TraceComparison found = sim::compare_trace(*run, plan, made);
  if (found.step.measured.length <= Seconds(0)) {
    return refuse({{flags.import, 0, 0, "/traceEvents", "its steps take no time", ""}});
  }
  write_files(flags, plan, made);
  fmt::print("{}", flags.json ? sim::comparison_json(*run, found)
                              : import_text(*run, found, plan.layout,
                                            static_cast<std::size_t>(flags.top), wants_colour()));
  return ExitCode::done;
}

ExitCode run_simulate(const SimulateFlags& flags) {
  const Result<Plan> plan = simulated_plan(flags);
  if (!plan) return refuse(plan.problems());
  const Diagnostics noise = noise_problems(flags.noise, *plan);
  if (!noise.empty()) return refuse(noise);
  if (!flags.import.empty()) return run_import(flags, *plan);
  const bool several = !flags.versus.empty() || flags.growth > 0;
  if (several && !flags.plan.empty()) {
    return refuse(wrong_flag(flags.plan, "a plan file has one engine and one size",
                             "give --model, --cluster and --engine"));
  }
  if (!flags.versus.empty()) return run_versus(flags, *plan);
  if (flags.growth > 0) return run_growth(flags, *plan);
  sim::Simulation made = sim::simulate(*plan, options_of(flags));
  if (flags.noise.trials > 0 && made.report.timeline) {
    made.report.timeline->noise = sim::noise_spread(*plan, options_of(flags), flags.noise);
  }
  write_files(flags, *plan, made);
  if (flags.json) {
    fmt::print("{}", report_json(made.report));
    return ExitCode::done;
  }
  const Seconds closed_form =
      evaluate(plan->model, plan->cluster, plan->job, plan->engine, plan->layout).step_time;
  const bool colour = wants_colour();
  const bool fits = made.report.verdict.fit == Fit::fits;
  fmt::print("{}{}{}{}{}{}{}{}{}", simulated_text(made.report, closed_form, colour),
             fits ? "" : verdict_text(made.report, colour), layout_text(made.report, colour),
             timeline_text(made, colour), time_text(made.report, colour),
             streams_text(made.report, colour), peak_text(made.report, colour),
             noise_text(made.report), rates_text(made.report, colour));
  return ExitCode::done;
}

}  // namespace

void add_simulate(CLI::App& app, Run& run) {
  CLI::App* verb = app.add_subcommand(
      "simulate", "One step on a virtual clock: what runs when, what waits for what, and why");
  auto flags = std::make_shared<SimulateFlags>();
  verb->add_option("plan", flags->plan, "A plan.json; or say --model, --cluster …")
      ->type_name("PLAN");
  add_job_flags(*verb, flags->job);
  for (const char* name : {"--model", "--cluster"}) verb->get_option(name)->required(false);
  add_layout_flags(*verb, flags->layout);
  verb->add_option("-o,--output", flags->output, "Write the report here")->type_name("FILE");
  verb->add_option("--trace", flags->trace, "Write a trace for Perfetto or chrome://tracing here")
      ->type_name("FILE");
  verb->add_option("--svg", flags->svg, "Draw the timeline here")->type_name("FILE");
  verb->add_option("--import", flags->import,
                   "Compare with this trace: of torch.profiler (also .json.gz), or one of ours")
      ->type_name("TRACE");
  verb->add_option("--top", flags->top, "Rows of the last table of --import (12)")
      ->check(CLI::Range(1, 1'000'000))
      ->type_name("N");
  verb->add_option("--granularity", flags->granularity,
                   "layer or kernel (layer; with --import as the trace)")
      ->check(CLI::IsMember({"layer", "kernel"}))
      ->type_name("SIZE");
  verb->add_option("--transport", flags->transport,
                   "What moves bytes: usual, registered (user buffers) or copy_engines (usual)")
      ->check(CLI::IsMember({"usual", "registered", "copy_engines"}))
      ->type_name("KIND");
  verb->add_option("--in-network", flags->in_network,
                   "Switches that can add (NVLS, SHARP) do: on or off (on)")
      ->check(CLI::IsMember({"on", "off"}))
      ->type_name("on|off");
  verb->add_option("--contention", flags->contention,
                   "What runs at once shares links and multiprocessors: on or off (on)")
      ->check(CLI::IsMember({"on", "off"}))
      ->type_name("on|off");
  verb->add_option("--host", flags->host, "The host issues kernel by kernel: on or off (on)")
      ->check(CLI::IsMember({"on", "off"}))
      ->type_name("on|off");
  verb->add_flag("--one-connection", flags->one_connection, "CUDA_DEVICE_MAX_CONNECTIONS=1");
  verb->add_flag("--all-ranks", flags->all_ranks, "Every rank, not one of each stage");
  sim::NoiseRules& noise = flags->noise;
  CLI::Option* trials =
      verb->add_option("--trials", noise.trials, "Simulate every rank so often with noise (0)")
          ->check(CLI::Range(0, 100'000))
          ->type_name("N")
          ->excludes(verb->get_option("--import"));
  verb->add_option("--seed", noise.seed, "Of the noise (1)")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 60))
      ->type_name("N")
      ->needs(trials);
  verb->add_option("--jitter", noise.jitter, "Relative deviation of every operation (0)")
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("SHARE")
      ->needs(trials);
  verb->add_option("--slow-nodes", noise.slow_nodes, "Nodes that compute --slow-factor longer (0)")
      ->check(CLI::Range(0, 1'000'000))
      ->type_name("N")
      ->needs(trials);
  verb->add_option("--slow-factor", noise.slow_factor, "Of slow nodes (1)")
      ->check(CLI::Range(1.0, 1000.0))
      ->type_name("X")
      ->needs(trials);
  verb->add_option("--failed-links", noise.failed.links,
                   "NICs and up-links that are gone, their traffic on the others (0)")
      ->check(CLI::Range(0, 1'000'000))
      ->type_name("N")
      ->needs(trials);
  verb->add_option("--failed-switches", noise.failed.switches,
                   "Leaf switches that are gone, each with a NIC of up to 32 nodes (0)")
      ->check(CLI::Range(0, 1'000'000))
      ->type_name("N")
      ->needs(trials);
  verb->add_option("--mtbf-hours-per-gpu", noise.mtbf_hours_per_gpu,
                   "Mean time between failures that stop the job (none)")
      ->check(CLI::Range(0.0, 1e9))
      ->type_name("HOURS")
      ->needs(trials);
  verb->add_option("--restart-minutes", noise.restart_minutes, "From a failure to a step (10)")
      ->check(CLI::Range(0.0, 1e6))
      ->type_name("MINUTES")
      ->needs(trials);
  verb->add_option("--versus", flags->versus,
                   "Another engine on the same job: both side by side, and what each mechanism "
                   "contributes")
      ->type_name("ENGINE");
  verb->add_option("--growth", flags->growth,
                   "From one node to so many GPUs: one shard against a shard a node (HSDP)")
      ->check(CLI::Range(std::int64_t{1}, kMostGpus))
      ->type_name("GPUS");
  verb->add_flag("--json", flags->json, "The report for a program");
  verb->footer(
      "Examples\n"
      "  shardwise simulate plan.json -o report.json --trace trace.json\n"
      "  shardwise simulate --model llama-3.1-8b --cluster dgx-h100 --engine fsdp2 \\\n"
      "      --zero-stage 3 --micro-batch-size 2 --sequence-length 8192\n"
      "  shardwise simulate plan.json --import rank0.pt.trace.json.gz\n"
      "\n"
      "Exit codes\n"
      "  0 done   2 bad input or use   3 the world broke");
  verb->callback([&run, flags] { run = [flags] { return run_simulate(*flags); }; });
}

}  // namespace shardwise::cli
