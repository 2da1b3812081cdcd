#include "cli/texts/traced_run_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "planner/spec/text/format.h"
#include "planner/spec/text/signed_format.h"
#include "planner/spec/text/table.h"
#include "planner/spec/text/utf8.h"
#include "simulator/comparison/import_run.h"

namespace shardwise::cli {
namespace {

constexpr std::size_t kKernelWidth = 44;
constexpr std::size_t kLabelWidth = 24;

/// "5 steps, 331 ms to 365 ms, median 345 ms".
std::string lengths_text(std::vector<Seconds> lengths, Seconds median) {
  if (lengths.size() == 1) return "1 step of " + format_seconds(median);
  const auto [least, most] = std::minmax_element(lengths.begin(), lengths.end());
  return fmt::format("{} steps of {} to {}, median {}", lengths.size(), format_seconds(*least),
                     format_seconds(*most), format_seconds(median));
}

std::string recorded_text(const sim::TracedRun& run, const Layout& layout) {
  std::vector<Seconds> lengths;
  std::string text;
  if (run.ours()) {
    for (const sim::OperationStep& step : run.operations) lengths.push_back(step.length);
    text = fmt::format("{}: {}; {}\n", run.head.origin.empty() ? "traced" : run.head.origin,
                       lengths_text(lengths, run.median_operations().length),
                       sim::counted(run.ranks, "rank", "ranks"));
    return text;
  }
  for (const sim::ProfiledStep& step : run.profiled.steps) lengths.push_back(step.profile.length);
  text = fmt::format("measured by a profiler: {}\n{}",
                     lengths_text(lengths, run.profiled.median().profile.length),
                     shown(run.profiled.median().name, kLabelWidth));
  if (run.head.rank >= 0) {
    text += fmt::format(", rank {}", run.head.rank);
    if (run.head.world_size > 0) text += fmt::format(" of {}", run.head.world_size);
  }
  if (!run.head.device.empty()) text += ", " + shown(run.head.device, kLabelWidth);
  text += "\n";
  if (run.head.world_size > 0 && run.head.world_size != layout.world()) {
    text += wrap(
        fmt::format("the trace is of {}, the plan of {}: differences may come from that\n",
                    sim::counted(static_cast<std::size_t>(run.head.world_size), "rank", "ranks"),
                    layout.world()),
        kTextWidth);
  }
  return text;
}

std::string trace_notes_text(const sim::TracedRun& run, const sim::TraceComparison& comparison) {
  std::string text;
  for (const std::string& note : sim::import_notes(run, comparison)) {
    text += wrap(note, kTextWidth, 2) + "\n";
  }
  return text.empty() ? text : "\n" + text;
}

std::string steps_text(const sim::TracedRun& run, const sim::StepComparison& step, bool colour) {
  Table table({{run.ours() ? "stage's step" : "step", Align::left},
               {run.ours() ? "traced" : "measured"},
               {"predicted"},
               {"difference"}});
  const auto row = [&table](const char* name, Seconds measured, Seconds predicted) {
    table.row({name, format_seconds(measured), format_seconds(predicted),
               signed_seconds(predicted - measured)});
  };
  const sim::StepProfile& a = step.measured;
  const sim::StepProfile& b = step.predicted;
  row("computing", a.computing, b.computing);
  row("exposed communication", a.exposed, b.exposed);
  row(run.ours() ? "idle and waiting" : "idle", a.idle, b.idle);
  table.rule();
  row("in all", a.length, b.length);
  table.row({"communication", format_seconds(a.communicating), format_seconds(b.communicating),
             signed_seconds(b.communicating - a.communicating)});
  table.row({"overlapped with compute", format_percent(a.overlap()), format_percent(b.overlap()),
             signed_percent(b.overlap() - a.overlap())});
  return "\n" + table.text(colour);
}

/// "2", or "2 → 1" of what the second has elsewhere.
std::string stage_text(const sim::ComparedTime& row) {
  return row.stage == row.second_stage ? fmt::format("{}", row.stage)
                                       : fmt::format("{} → {}", row.stage, row.second_stage);
}

std::string kernels_text(const sim::ProfiledSteps& steps, std::size_t top, bool colour) {
  Table table({{"kernel", Align::left}, {"counted as", Align::left}, {"count"}, {"all steps"}});
  for (std::size_t i = 0; i < std::min(top, steps.kernels.size()); ++i) {
    const sim::KernelTime& kernel = steps.kernels[i];
    table.row({short_name(kernel.name), std::string(name_of(kernel.kind)),
               format_count(kernel.count), format_seconds(kernel.time)});
  }
  std::string text = "\n" + table.text(colour);
  if (steps.kernels.size() > top) {
    text += fmt::format("… {} more (--top)\n", steps.kernels.size() - top);
  }
  return text;
}

}  // namespace

std::string short_name(std::string name) {
  if (name.starts_with("void ")) name.erase(0, 5);
  const std::size_t arguments = name.find_first_of("<(", name.starts_with('(') ? 1 : 0);
  const bool spaced = name.starts_with("at::");
  if (!spaced && arguments != std::string::npos && arguments > 8) name.resize(arguments);
  return shown(name, kKernelWidth);
}

std::string kinds_text(const sim::StepComparison& step, const char* first, const char* second,
                       bool colour) {
  Table table({{"kind", Align::left},
               {step.by_phase ? "phase" : "", Align::left},
               {"count"},
               {first},
               {"count"},
               {second},
               {"difference"}});
  for (const sim::ComparedKind& row : step.kinds) {
    const auto side = [](const std::optional<sim::KindTime>& time) {
      return time ? format_seconds(time->exposed) : std::string("-");
    };
    const auto count = [](const std::optional<sim::KindTime>& time) {
      return time ? format_count(time->count) : std::string();
    };
    table.row({std::string(name_of(row.kind)),
               step.by_phase ? std::string(name_of(row.phase)) : std::string(), count(row.measured),
               side(row.measured), count(row.predicted), side(row.predicted),
               signed_seconds(row.difference())});
  }
  return "\n" + table.text(colour) + "communication: exposed only; the rest is hidden by compute\n";
}

std::string compared_text(const std::string& heading, const std::vector<sim::ComparedTime>& rows,
                          const char* first, const char* second, std::size_t top, bool stages,
                          bool colour) {
  if (rows.empty()) return "";
  Table table({{heading, Align::left},
               {stages ? "stage" : ""},
               {first},
               {second},
               {fmt::format("{} - {}", second, first)}});
  for (std::size_t i = 0; i < std::min(top, rows.size()); ++i) {
    const sim::ComparedTime& row = rows[i];
    table.row({row.name, stages ? stage_text(row) : std::string(),
               row.in_first ? format_seconds(row.first) : "-",
               row.in_second ? format_seconds(row.second) : "-", signed_seconds(row.difference())});
  }
  std::string text = "\n" + table.text(colour);
  if (rows.size() > top) text += fmt::format("… {} more (--top)\n", rows.size() - top);
  return text;
}

std::string traced_run_text(const sim::TracedRun& run, const sim::TraceComparison& comparison,
                            const Layout& layout, std::size_t top, bool colour) {
  const double apart = comparison.step.predicted.length / comparison.step.measured.length - 1;
  std::string text = recorded_text(run, layout);
  text +=
      fmt::format("predicted {}, {}; stage {}\n", format_seconds(comparison.step.predicted.length),
                  signed_percent(apart), comparison.stage);
  text += steps_text(run, comparison.step, colour) +
          kinds_text(comparison.step, "measured", "predicted", colour);
  if (run.ours()) {
    text +=
        compared_text("operation", comparison.operations, "traced", "predicted", top, true, colour);
  } else {
    text += kernels_text(run.profiled, top, colour);
  }
  return text + trace_notes_text(run, comparison);
}

}  // namespace shardwise::cli
