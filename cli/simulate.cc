#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "cli/job_flags.h"
#include "cli/report_text.h"
#include "cli/simulate_text.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "cli/versus_text.h"
#include "cli/write_file.h"
#include "planner/cost/estimate.h"
#include "planner/cost/legality.h"
#include "planner/spec/plan.h"
#include "planner/spec/report_json.h"
#include "simulator/noise.h"
#include "simulator/simulate.h"
#include "simulator/trace.h"
#include "simulator/versus.h"

namespace shardwise::cli {
namespace {

struct SimulateFlags {
  JobFlags job;
  LayoutFlags layout;
  std::string plan;
  std::string output;
  std::string trace;
  std::string granularity = "layer";
  std::string transport = "usual";
  std::string contention = "on";
  std::string host = "on";
  bool one_connection = false;
  bool all_ranks = false;
  sim::NoiseRules noise;
  std::string versus;
  bool json = false;
};

constexpr std::size_t kMostTracedRanks = 64;

ExitCode refuse(const Diagnostics& problems) {
  fmt::print(stderr, "{}", to_string(problems));
  return ExitCode::bad_input;
}

Diagnostics wrong_flag(const std::string& flag, const std::string& message,
                       const std::string& hint) {
  return Diagnostics{{"command line", 0, 0, flag, message, hint}};
}

/// The plan of a file, or of the flags.
Result<Plan> plan_of(const SimulateFlags& flags) {
  if (!flags.plan.empty()) {
    if (!flags.job.model.empty() || !flags.job.cluster.empty()) {
      return wrong_flag(flags.plan, "a plan file has its own model and cluster",
                        "give the file, or --model and --cluster");
    }
    Result<Plan> plan = read_plan(flags.plan);
    if (!plan) return plan.problems();
    Diagnostics illegal =
        check_layout(plan->model, plan->cluster, plan->job, plan->engine, plan->layout);
    for (Diagnostic& each : illegal) each.file = flags.plan;
    if (!illegal.empty()) return illegal;
    return plan;
  }
  if (flags.job.model.empty() || flags.job.cluster.empty()) {
    return wrong_flag("PLAN", "nothing to simulate", "give a plan.json, or --model and --cluster");
  }
  Result<Subject> subject = read_subject(flags.job);
  if (!subject) return subject.problems();
  const Result<Layout> layout = read_layout(flags.layout, *subject);
  if (!layout) return layout.problems();
  Plan plan = {subject->model, subject->cluster, subject->job, subject->engine, *layout};
  plan.job.global_batch_size = plan.job.batch_for(plan.layout.dp(), plan.layout.micro_batch_size);
  return plan;
}

sim::SimulationOptions options_of(const SimulateFlags& flags) {
  sim::SimulationOptions options;
  options.granularity = flags.granularity == "kernel" ? Granularity::kernel : Granularity::layer;
  if (flags.transport == "registered") options.transport = sim::Transport::registered;
  if (flags.transport == "copy_engines") options.transport = sim::Transport::copy_engines;
  options.contention = flags.contention == "on";
  options.host = flags.host == "on";
  options.in_issue_order = flags.one_connection;
  options.all_ranks = flags.all_ranks;
  return options;
}

void write_files(const SimulateFlags& flags, const Plan& plan, const sim::Simulation& made) {
  if (!flags.output.empty()) write_file(flags.output, report_json(made.report));
  if (!flags.trace.empty()) {
    std::string trace;
    sim::write_trace(plan, made, kMostTracedRanks,
                     [&trace](std::string_view text) { trace += text; });
    write_file(flags.trace, trace);
  }
}

ExitCode run_versus(const SimulateFlags& flags, const Plan& first) {
  SimulateFlags other = flags;
  other.job.engine = flags.versus;
  const Result<Plan> second = plan_of(other);
  if (!second) return refuse(second.problems());
  const sim::Versus found = sim::versus(first, *second, options_of(flags));
  fmt::print("{}", flags.json ? versus_json(found, first, *second)
                              : versus_text(found, first, *second, wants_colour()));
  return ExitCode::done;
}

ExitCode run_simulate(const SimulateFlags& flags) {
  const Result<Plan> plan = plan_of(flags);
  if (!plan) return refuse(plan.problems());
  if (!flags.versus.empty()) {
    if (flags.plan.empty()) return run_versus(flags, *plan);
    return refuse(wrong_flag("--versus", "a plan file has one engine",
                             "give --model, --cluster and --engine"));
  }
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
  fmt::print("{}{}{}{}{}{}{}{}", simulated_text(made.report, closed_form, colour),
             layout_text(made.report, colour), timeline_text(made, colour),
             time_text(made.report, colour), streams_text(made.report, colour),
             peak_text(made.report, colour), noise_text(made.report),
             rates_text(made.report, colour));
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
  verb->add_option("--granularity", flags->granularity, "layer or kernel (layer)")
      ->check(CLI::IsMember({"layer", "kernel"}))
      ->type_name("SIZE");
  verb->add_option("--transport", flags->transport,
                   "What moves bytes: usual, registered (user buffers) or copy_engines (usual)")
      ->check(CLI::IsMember({"usual", "registered", "copy_engines"}))
      ->type_name("KIND");
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
          ->type_name("N");
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
  verb->add_flag("--json", flags->json, "The report for a program");
  verb->footer(
      "Examples\n"
      "  shardwise simulate plan.json -o report.json --trace trace.json\n"
      "  shardwise simulate --model llama-3.1-8b --cluster dgx-h100 --engine fsdp2 \\\n"
      "      --zero-stage 3 --micro-batch-size 2 --sequence-length 8192\n"
      "\n"
      "Exit codes\n"
      "  0 done   2 bad input or use   3 the world broke");
  verb->callback([&run, flags] { run = [flags] { return run_simulate(*flags); }; });
}

}  // namespace shardwise::cli
