#include "simulator/comparison/import_run.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "planner/question/flags.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/utf8.h"

namespace shardwise::sim {

std::string granularity_of(const TracedRun& run) {
  if (!run.ours()) return "kernel";
  return run.head.granularity == "kernel" ? "kernel" : "layer";
}

Result<ImportedRun> import_run(const TracedRun& run, const std::string& file, const Plan& plan,
                               SimulationOptions options, const std::string& granularity) {
  const std::string traced = granularity_of(run);
  const std::string& wanted = granularity.empty() ? traced : granularity;
  if (run.ours() && wanted != traced) {
    return wrong_flag(
        "--granularity",
        fmt::format("{}, but {} has operations of granularity {}", wanted, file, traced),
        "leave it out");
  }
  options.granularity = wanted == "kernel" ? Granularity::kernel : Granularity::layer;
  ImportedRun imported;
  imported.simulation = simulate(plan, options);
  imported.comparison = compare_trace(run, plan, imported.simulation);
  if (imported.comparison.step.measured.length <= Seconds(0)) {
    return Diagnostic{file, 0, 0, "/traceEvents", "its steps have zero length", ""};
  }
  return imported;
}

std::vector<std::string> import_notes(const TracedRun& run, const TraceComparison& comparison) {
  std::vector<std::string> notes;
  const auto note = [&notes](std::string words) { notes.push_back(std::move(words)); };
  if (run.ours()) {
    if (!comparison.same_plan) note("the trace is of another plan");
    if (comparison.joined == 0)
      note("no operation of the trace has the name of a simulated operation");
    if (comparison.joined > 0 && comparison.unknown > 0) {
      note(
          fmt::format("{} of stage {} left out of the first tables: no simulated operation has "
                      "their name",
                      counted(comparison.unknown, "operation", "operations"), comparison.stage));
    }
    return notes;
  }
  const ProfiledSteps& steps = run.profiled;
  const auto events = [](std::int64_t count) {
    return counted(static_cast<std::size_t>(count), "event", "events");
  };
  if (!comparison.other_gpu.empty()) {
    note(fmt::format("the trace is of another GPU, {}; the plan has {}: times differ by that too",
                     shown(run.head.device), comparison.other_gpu));
  }
  if (!steps.has_backward) {
    note(
        "no backward pass in the trace (no autograd event, no backward kernel): it is no training "
        "step, or the host was not recorded; the prediction has one");
  }
  if (!comparison.step.by_phase) note("no autograd events in the trace: compared by kind only");
  if (steps.without_launch > 0) {
    note(fmt::format("{} of the device without a launching call: phase unknown",
                     events(steps.without_launch)));
  }
  if (steps.overlapping > 0) {
    note(
        fmt::format("{} of the device {} before what ran on the same stream had ended, by up to "
                    "{}: kernels that overlap, or a damaged dur",
                    events(steps.overlapping), steps.overlapping == 1 ? "begins" : "begin",
                    format_seconds(steps.longest_overlap)));
  }
  if (steps.other_devices > 0) {
    note(fmt::format("{} of other devices left out", events(steps.other_devices)));
  }
  for (const auto& [category, count] : run.not_read) {
    note(fmt::format("{} of kind {} left out", events(count), shown(category)));
  }
  return notes;
}

std::string counted(std::size_t count, const char* one, const char* many) {
  return fmt::format("{} {}", format_count(static_cast<std::int64_t>(count)),
                     count == 1 ? one : many);
}

}  // namespace shardwise::sim
