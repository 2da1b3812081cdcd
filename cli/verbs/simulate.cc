#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "answers/asked_plan.h"
#include "answers/asked_step.h"
#include "answers/growth.h"
#include "answers/plan_answer.h"
#include "cli/flags/job_flags.h"
#include "cli/flags/noise_flags.h"
#include "cli/flags/simulate_files.h"
#include "cli/flags/simulate_request.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "cli/texts/closed_form_text.h"
#include "cli/texts/growth_text.h"
#include "cli/texts/plan_text.h"
#include "cli/texts/report_text.h"
#include "cli/texts/simulate_text.h"
#include "cli/texts/summary_text.h"
#include "cli/texts/traced_run_text.h"
#include "cli/trace_progress.h"
#include "cli/verbs.h"
#include "planner/command/command_line.h"
#include "planner/command/number_flags.h"
#include "planner/estimate/estimate.h"
#include "planner/estimate/interval_table.h"
#include "planner/files/process_memory.h"
#include "planner/model/parameter_words.h"
#include "planner/question/advice.h"
#include "planner/question/refused_flags.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/plan/plan_fields.h"
#include "planner/spec/report/report_json.h"
#include "simulator/clock/closed_form.h"
#include "simulator/clock/noise.h"
#include "simulator/clock/simulate.h"
#include "simulator/comparison/import_run.h"

namespace shardwise::cli {
namespace {

ExitCode run_growth(const SimulateFlags& flags, const Plan& first) {
  const Result<std::vector<sim::GrowthPoint>> points =
      sim::growth(flags.asked, first.cluster.gpus_per_node, flags.growth);
  if (!points) return refuse(points.problems());
  if (!flags.screen.json) {
    fmt::print("{} on {}, {}\nfull shard over all GPUs against hybrid shard of a node (HSDP)\n\n",
               first.model.name, first.cluster.name, first.engine.name);
  }
  fmt::print("{}", flags.screen.json ? growth_json(*points) : growth_text(*points, wants_colour()));
  return ExitCode::done;
}

ExitCode import_trace(const SimulateFlags& flags, const Plan& plan) {
  const Result<sim::TracedRun> run = read_trace(flags.import);
  if (!run) return refuse(run.problems());
  const Result<sim::ImportedRun> imported = sim::import_run(
      *run, flags.import, plan, sim::options_of(flags.asked), flags.asked.granularity);
  if (!imported) return refuse(imported.problems());
  const sim::TraceComparison& found = imported->comparison;
  write_simulation(flags, plan, imported->simulation);
  fmt::print("{}", flags.screen.json
                       ? sim::comparison_json(*run, found)
                       : traced_run_text(*run, found, plan.layout,
                                         static_cast<std::size_t>(flags.top), wants_colour()));
  return ExitCode::done;
}

bool no_trial_runs(const StepReport& report) {
  if (!report.timeline) return false;
  const NoiseSpread& noise = report.timeline->noise;
  return noise.trials > 0 && noise.stopped == noise.trials;
}

/// The best layout of `shardwise plan` for the job; nothing when none fits, which is printed.
Result<std::optional<sim::PlannedStep>> best_plan(const SimulateFlags& flags) {
  const Result<Subject> subject = read_subject(flags.asked.job);
  if (!subject) return subject.problems();
  sim::AskedPlan asked;
  asked.job = flags.asked.job;
  asked.top = 1;
  Result<sim::PlanQuestion> question = sim::read_question(asked);
  if (!question) return question.problems();
  Progress progress;
  const Result<sim::PlanAnswer> answer =
      sim::answer(*question, [&](const std::string& what) { progress.say(what); });
  progress.clear();
  if (!answer) return answer.problems();
  if (answer->best.empty()) {
    fmt::print("{}", flags.screen.json ? plan_json(*question, *answer, nullptr)
                                       : nothing_fits_text(*question, *answer, wants_colour()));
    return std::optional<sim::PlannedStep>();
  }
  Result<sim::PlannedStep> checked = checked_step(flags, sim::best_step(*question, *answer));
  if (!checked) return checked.problems();
  return std::optional<sim::PlannedStep>(*std::move(checked));
}

/// A layout that does not fit is not simulated: says so, with the cheapest change.
ExitCode say_misfit(const SimulateFlags& flags, const Plan& plan, StepReport estimated) {
  const StepReport report = with_advice(std::move(estimated), plan.model, plan.cluster, plan.job,
                                        plan.engine, plan.layout);
  const ReportIntervals known = report_intervals(plan.engine, plan.cluster);
  if (flags.screen.json) {
    fmt::print("{}", report_json(report, reported_parameters(plan.model), known));
    return ExitCode::nothing_fits;
  }
  const bool colour = wants_colour();
  fmt::print("{}{}{}not simulated: --ignore-memory simulates what does not fit\n",
             verdict_text(report, colour), interval_text(report, known, colour),
             layout_text(report, colour, parameters_words(plan.model)));
  return ExitCode::nothing_fits;
}

sim::Simulation simulated(const SimulateFlags& flags, const Plan& plan) {
  const std::int64_t sequences = plan.job.batch_for(plan.layout.dp(), plan.layout.micro_batch_size);
  const Meanwhile meanwhile(fmt::format(
      "simulating {} sequences over {} layers; a smaller --global-batch-size is sooner done",
      sequences, plan.model.layers.size()));
  return sim::simulate(plan, sim::options_of(flags.asked));
}

ExitCode run_simulate(SimulateFlags& flags) {
  flags.asked.memory_limit = memory_bound().value_or(Bytes(0));
  flags.asked.traced = !flags.trace.empty();
  std::optional<sim::PlannedStep> read;
  if (takes_best(flags)) {
    Result<std::optional<sim::PlannedStep>> best = best_plan(flags);
    if (!best) return refuse(best.problems());
    read = *std::move(best);
    if (!read) return ExitCode::nothing_fits;
  } else {
    Result<sim::PlannedStep> given = planned_step(flags);
    if (!given) return refuse(given.problems());
    const sim::AskedStep& asked = flags.asked;
    const Diagnostics refused =
        refused_flags(asked.job, asked.layout, given->plan.engine, given->plan.layout);
    if (!refused.empty()) return refuse(refused);
    read = *std::move(given);
  }
  const Plan* const plan = &read->plan;
  const Diagnostics noise = sim::noise_problems(flags.asked.noise, *plan);
  if (!noise.empty()) return refuse(noise);
  if (!flags.import.empty()) return import_trace(flags, *plan);
  if (flags.growth > 0) return run_growth(flags, *plan);
  StepReport estimated =
      estimate(plan->model, plan->cluster, plan->job, plan->engine, plan->layout);
  if (estimated.verdict.fit == Fit::does_not_fit && !flags.ignore_memory) {
    return say_misfit(flags, *plan, std::move(estimated));
  }
  sim::Simulation made = simulated(flags, *plan);
  made.report.assumptions.insert(made.report.assumptions.end(), read->assumptions.begin(),
                                 read->assumptions.end());
  made.report.closed_form =
      sim::beside_closed_form(*plan, sim::options_of(flags.asked), made.report);
  if (flags.asked.noise.trials > 0 && made.report.timeline) {
    Progress progress;
    const auto say = [&](std::int64_t done) {
      progress.say(fmt::format("{} of {} trials", done, flags.asked.noise.trials));
    };
    made.report.timeline->noise =
        sim::noise_spread(*plan, sim::options_of(flags.asked), flags.asked.noise, say);
  }
  write_simulation(flags, *plan, made);
  const ExitCode answer = no_trial_runs(made.report) ? ExitCode::nothing_fits : ExitCode::done;
  const ReportIntervals known = report_intervals(plan->engine, plan->cluster);
  if (flags.screen.json) {
    fmt::print("{}", report_json(made.report, reported_parameters(read->plan.model), known));
    return answer;
  }
  const bool colour = wants_colour();
  const bool fits = made.report.verdict.fit == Fit::fits;
  const bool whole = flags.screen.whole || flags.explain;
  const bool noisy = flags.asked.noise.trials > 0 && disturbs_steps(flags.asked.noise);
  fmt::print("{}{}{}{}{}{}{}", simulated_text(made.report, noisy, colour),
             interval_text(made.report, known, colour),
             fits ? "" : verdict_text(made.report, colour),
             timeline_misfit_text(made.report, colour),
             layout_text(made.report, colour, parameters_words(read->plan.model)),
             assumed_text(read->assumptions, colour), timeline_text(made, whole, colour));
  if (whole) {
    fmt::print("{}{}{}{}{}{}", time_text(made.report, colour),
               closed_form_text(made.report, colour), streams_text(made.report, colour),
               peak_text(made.report, true, colour),
               rates_text(rates_of(made.report), known, rates_origin(made.report), colour),
               flags.explain ? assumptions_text(made.report, colour) : "");
  } else {
    fmt::print("{}{}{}{}", time_costs_text(made.report, colour),
               peak_text(made.report, false, colour),
               short_rates_text(rates_of(made.report), rates_origin(made.report), colour),
               more_text(made.report, "streams, links, every part and buffer", colour));
  }
  return answer;
}

}  // namespace

void add_simulate(CLI::App& app, Run& run) {
  CLI::App* verb = app.add_subcommand(
      "simulate", "Simulate one step: what runs when, what waits for what, and why");
  auto flags = std::make_shared<SimulateFlags>();
  verb->add_option("plan", flags->asked.plan, "A plan.json; or give --model and --cluster")
      ->type_name("PLAN");
  add_job_flags(*verb, flags->asked.job);
  for (const char* name : {"--model", "--cluster"}) verb->get_option(name)->required(false);
  add_layout_flags(*verb, flags->asked.layout);
  verb->add_option("-o,--output", flags->output, "Write the report to this file")
      ->type_name("FILE");
  verb->add_option("--trace", flags->trace, "Write a trace for Perfetto or chrome://tracing")
      ->type_name("FILE");
  verb->add_option("--svg", flags->svg, "Draw the timeline as an SVG picture")->type_name("FILE");
  verb->add_option("--chakra", flags->chakra,
                   "Write Chakra execution traces of all ranks to this folder")
      ->type_name("DIR");
  verb->add_option("--import", flags->import,
                   "Compare with a trace of torch.profiler (also .json.gz) or of Shardwise")
      ->type_name("TRACE");
  add_integer(*verb, "--top", flags->top, 1, 1'000'000, "Rows of the last table of --import [12]")
      ->needs(verb->get_option("--import"));
  verb->add_option("--granularity", flags->asked.granularity,
                   "layer or kernel [layer; with --import, the trace's]")
      ->check(CLI::IsMember({"layer", "kernel"}))
      ->type_name("KIND");
  verb->add_option("--transport", flags->asked.transport,
                   "Transport of bytes: usual, registered (user buffers) or copy_engines [usual]")
      ->check(CLI::IsMember({"usual", "registered", "copy_engines"}))
      ->type_name("KIND");
  verb->add_option("--in-network", flags->asked.in_network,
                   "Reduce in switches that can (NVLS, SHARP): on or off [on]")
      ->check(CLI::IsMember({"on", "off"}))
      ->type_name("on|off");
  verb->add_option("--contention", flags->asked.contention,
                   "Concurrent operations share links and multiprocessors: on or off [on]")
      ->check(CLI::IsMember({"on", "off"}))
      ->type_name("on|off");
  verb->add_option("--host", flags->asked.host,
                   "Model the host's launch of each kernel: on or off [on]")
      ->check(CLI::IsMember({"on", "off"}))
      ->type_name("on|off");
  verb->add_flag("--one-connection", flags->asked.one_connection,
                 "Launch kernels in one queue, as CUDA_DEVICE_MAX_CONNECTIONS=1 does");
  verb->add_flag("--all-ranks", flags->asked.all_ranks,
                 "Simulate every rank, not one of each stage");
  add_noise_flags(*verb, flags->asked.noise);
  add_integer(*verb, "--growth", flags->growth, 1, kMostGpus,
              "From one node to this many GPUs: full shard against hybrid shard (HSDP)")
      ->type_name("GPUS");
  // One step's files and noise; --growth has sizes of its own.
  for (const char* other : {"--import", "--output", "--trace", "--svg", "--chakra", "--trials",
                            "--gpus", "--dp-shard", "--dp-replicate"}) {
    verb->get_option("--growth")->excludes(other);
  }
  verb->add_flag("--ignore-memory", flags->ignore_memory, "Simulate a layout that does not fit");
  CLI::Option* explain =
      verb->add_flag("--explain", flags->explain, "Print the assumptions and their sources");
  for (const char* other : {"--import", "--growth"}) {
    explain->excludes(verb->get_option(other));
  }
  add_screen_flags(*verb, flags->screen);
  show_first(*verb, {"--model", "--cluster", "--gpus", "--engine", "--tp", "--pp", "--zero-stage",
                     "--output", "--trace", "--svg", "--trials", "--long"});
  verb->footer(
      "Examples\n"
      "  shardwise simulate plan.json -o report.json --trace trace.json\n"
      "  shardwise simulate --model llama-3.1-8b --cluster dgx-h100 --engine fsdp2 \\\n"
      "      --zero-stage 3 --tp 2 --sequence-length 8192\n"
      "  shardwise simulate plan.json --import rank0.pt.trace.json.gz\n"
      "\n"
      "Exit codes\n"
      "  0 done   1 it does not fit, or no trial runs\n"
      "  2 bad input or use   3 environment failure");
  verb->callback([&run, flags] {
    if (flags->growth > 0) flags->asked.batch = BatchWhenOpen::one_microbatch;
    run = [flags] { return run_simulate(*flags); };
  });
}

}  // namespace shardwise::cli
