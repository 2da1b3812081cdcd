#include "gui/models/compare/compare_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "gui/models/question/simulated.h"
#include "planner/spec/report/report_fields.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/one_line.h"
#include "planner/spec/text/signed_format.h"
#include "simulator/clock/simulate.h"
#include "simulator/clock/step_report.h"
#include "simulator/comparison/compare.h"
#include "simulator/comparison/compare_words.h"
#include "simulator/comparison/import_run.h"
#include "simulator/comparison/kind_comparison.h"
#include "simulator/comparison/kind_sums.h"

namespace shardwise::view {
namespace {

constexpr double kNothing = 1e-6;  // of the step

std::vector<CompareRow>& rows_of(CompareView& view, CompareBy by) {
  return view.rows[static_cast<std::size_t>(by)];
}

/// A row of what compare() finds with the other one as its first.
CompareRow row_of(const sim::ComparedTime& found, std::int32_t stage) {
  CompareRow row;
  row.name = found.name;
  row.stage = stage;
  row.predicted = found.second;
  row.measured = found.first;
  row.in_predicted = found.in_second;
  row.in_measured = found.in_first;
  return row;
}

/// Finds operations of a simulated step by name.
class Finder {
 public:
  explicit Finder(const sim::Simulation& simulation) : simulation_(simulation) {
    for (std::size_t s = 0; s < simulation.program.stages.size(); ++s) {
      const StageProgram& stage = simulation.program.stages[s];
      for (std::uint32_t i = 0; i < stage.operations.size(); ++i) {
        ProgramOp op = stage.operations[i];
        op.microbatch = -1;
        first_.try_emplace({shardwise::name_of(stage, op), static_cast<std::int32_t>(s)}, i);
      }
    }
  }

  /// The row looks at an operation, where the step has it.
  void point(CompareRow& row, const std::string& name, std::int32_t stage) const {
    row.operation = name;
    row.operation_stage = stage;
    const auto found = first_.find({name, stage});
    if (found == first_.end()) return;
    const sim::StageRunTimes run = sim::run_times(simulation_, static_cast<std::size_t>(stage));
    row.from = run.start[found->second];
    row.to = run.end[found->second];
  }

 private:
  const sim::Simulation& simulation_;
  std::map<std::pair<std::string, std::int32_t>, std::uint32_t> first_;
};

void keep_differing(CompareView& view) {
  const double least = kNothing * view.measured_step.value();
  for (std::vector<CompareRow>& rows : view.rows) {
    std::erase_if(rows, [&](const CompareRow& row) {
      return std::abs(row.difference().value()) < least && row.in_measured == row.in_predicted;
    });
    std::ranges::stable_sort(rows, std::ranges::greater(), [](const CompareRow& row) {
      return std::abs(row.difference().value());
    });
  }
}

std::string kind_name(sim::WorkKind kind, sim::StepPhase phase) {
  std::string text(sim::name_of(kind));
  if (phase != sim::StepPhase::unknown) text += fmt::format(", {}", sim::name_of(phase));
  std::ranges::replace(text, '_', ' ');
  return text;
}

void add_parts(CompareView& view, const sim::Comparison& found) {
  std::vector<CompareRow>& rows = rows_of(view, CompareBy::part);
  for (const sim::ComparedTime& each : found.parts) {
    CompareRow row = row_of(each, -1);
    const auto* const part = std::ranges::find(kTimeParts, row.name, &TimePart::key);
    if (part != kTimeParts.end()) row.name = part->label;
    rows.push_back(std::move(row));
  }
}

void add_operation_rows(CompareView& view, const std::vector<sim::ComparedTime>& operations,
                        const sim::Simulation& simulation) {
  const Finder finder(simulation);
  const auto stage_of = [](const sim::ComparedTime& each) {
    return each.in_second ? each.second_stage : each.stage;
  };
  for (const sim::ComparedTime& each : operations) {
    CompareRow row = row_of(each, stage_of(each));
    finder.point(row, each.name, row.stage);
    rows_of(view, CompareBy::operation).push_back(std::move(row));
  }
  // Reports have one rank of each stage: their mean compares with another number of stages.
  std::int32_t stages = 1;  // of the other
  for (const sim::ComparedTime& each : operations) {
    if (each.in_first) stages = std::max(stages, each.stage + 1);
  }
  const auto ours = static_cast<double>(simulation.program.stages.size());
  for (const sim::KindSum& each : sim::kind_sums(operations, simulation.program)) {
    const sim::ComparedTime& most = operations[each.operations.front()];
    CompareRow row;
    row.name = each.known ? kind_name(each.kind, each.phase) : "names that the simulation lacks";
    row.predicted = each.second / ours;
    row.measured = each.first / stages;
    row.in_predicted = each.in_second;
    row.in_measured = each.in_first;
    finder.point(row, most.name, stage_of(most));
    rows_of(view, CompareBy::kind).push_back(std::move(row));
  }
}

void add_kinds(CompareView& view, const sim::StepComparison& step) {
  for (const sim::ComparedKind& each : step.kinds) {
    const auto time = [](const std::optional<sim::KindTime>& side) {
      return side ? side->exposed : Seconds(0);
    };
    CompareRow row;
    row.name = kind_name(each.kind, each.phase);
    row.predicted = time(each.predicted);
    row.measured = time(each.measured);
    row.in_predicted = each.predicted.has_value();
    row.in_measured = each.measured.has_value();
    rows_of(view, CompareBy::kind).push_back(std::move(row));
  }
}

/// What only one of the two has, by name.
void note_alone(CompareView& view) {
  constexpr std::size_t kNamed = 3;
  const auto note = [&](bool CompareRow::*missing, const char* lacks) {
    std::vector<std::string> names;
    for (const CompareRow& row : rows_of(view, CompareBy::operation)) {
      if (!(row.*missing)) names.push_back(row.name);
    }
    if (names.empty()) return;
    const std::size_t more = names.size() - std::min(kNamed, names.size());
    names.resize(names.size() - more);
    view.notes.push_back(fmt::format("{}: {}{}", lacks, fmt::join(names, ", "),
                                     more > 0 ? fmt::format(" and {} more", more) : ""));
  };
  note(&CompareRow::in_measured, "the other step lacks operations");
  note(&CompareRow::in_predicted, "the plan's step lacks operations");
}

void note_work(CompareView& view, const StepReport& ours, const Compared& other) {
  const std::vector<std::string> work = sim::other_work(ours, other.report);
  if (!work.empty()) {
    view.notes.push_back(
        fmt::format("different {}: the steps do different work", fmt::join(work, " and ")));
  }
  const std::vector<std::string> settings = sim::differing_settings(other.report, ours);
  if (!settings.empty()) {
    view.notes.push_back(fmt::format("the other has {}", fmt::join(settings, ", ")));
  }
  for (const Assumption& each : other.report.assumptions) {
    if (each.id.starts_with("device.")) view.notes.push_back(each.text);
  }
}

/// A report, or the prediction of another plan.
void compare_report(CompareView& view, const Plan& plan, const StepReport& estimated,
                    const Compared& other, const Predictions& by) {
  const bool simulates = other.report.timeline.has_value() && is_simulated(plan);
  sim::Simulation made;
  if (simulates) {
    made = sim::simulate(plan);
    made.report = by.corrected(std::move(made.report), plan);
  }
  const StepReport& ours = simulates ? made.report : estimated;  // that is corrected already
  view.origin = simulates ? "simulated" : "estimated";
  const sim::Comparison found = sim::compare(other.report, ours);
  view.predicted_step = found.second_step;
  view.measured_step = found.first_step;
  view.predicted_peak = found.second_peak;
  view.measured_peak = found.first_peak;
  view.own_memory = found.own_memory;
  view.axes = other.report.by_axis;
  add_parts(view, found);
  if (simulates) add_operation_rows(view, found.operations, made);
  view.lanes = measured_lanes(other, made.program, 0);
  note_work(view, ours, other);
  if (view.measured_peak == Bytes(0)) view.notes.emplace_back("the report has no memory");
  if (!other.report.timeline) {
    view.notes.emplace_back("the report has no timeline: its operations are not known");
  } else if (!simulates) {
    view.notes.emplace_back(
        "the plan's step is too long to simulate: its operations are not known");
  }
}

void compare_traced(CompareView& view, const Plan& plan, const Compared& other,
                    const Predictions& by) {
  view.notes.emplace_back("a trace has no memory and no parts of the step");
  view.measured_step = other.report.step_time;
  if (!is_simulated(plan)) {
    view.notes.emplace_back("the plan's step is too long to simulate: nothing to compare with");
    return;
  }
  Result<sim::ImportedRun> imported = sim::import_run(*other.run, other.file, plan, {}, "");
  if (!imported) {
    view.notes.push_back(one_line(imported.problems()));
    return;
  }
  // As a trace has it: without what the step waits for its batch.
  view.origin = "simulated";
  view.predicted_step = imported->comparison.step.predicted.length * by.slower(plan);
  view.lanes = measured_lanes(other, imported->simulation.program, imported->comparison.stage);
  if (other.run->ours()) {
    add_operation_rows(view, imported->comparison.operations, imported->simulation);
  } else {
    add_kinds(view, imported->comparison.step);
    view.notes.emplace_back("a profiler's trace has kernels: compared by kind, on one device");
  }
  for (std::string& note : sim::import_notes(*other.run, imported->comparison)) {
    view.notes.push_back(std::move(note));
  }
}

/// What a stage holds in a phase that a run does not measure.
Bytes unmeasured(const Ledger& phase) { return phase.total() - phase.reserved(); }

}  // namespace

double CompareView::relative_peak() const {
  const auto there = static_cast<double>(measured_peak.value());
  return there > 0 ? static_cast<double>(predicted_peak.value()) / there - 1 : 0;
}

CompareView compare_view(const Plan& plan, const StepReport& estimated, const Compared& other,
                         const Predictions& by) {
  CompareView view;
  view.origin = "estimated";
  view.predicted_step = estimated.step_time;
  if (other.run) {
    compare_traced(view, plan, other, by);
  } else {
    compare_report(view, plan, estimated, other, by);
  }
  keep_differing(view);
  note_alone(view);
  return view;
}

std::vector<std::optional<MemoryTick>> memory_ticks(const StepReport& report,
                                                    const StepReport& other, MemoryBy by) {
  const bool own = report.origin != other.origin;
  std::vector<std::optional<MemoryTick>> ticks;
  const auto add = [&](std::size_t stage, MemoryPhase ours, MemoryPhase theirs) {
    if (stage >= other.stages.size()) return ticks.emplace_back();
    const Ledger& there = other.stages[stage][theirs];
    const Ledger& here = report.stages[stage][ours];
    Bytes value = there.total();
    if (own) value = value - unmeasured(there);
    if (value <= Bytes(0)) return ticks.emplace_back();
    return ticks.emplace_back(MemoryTick{own ? value + unmeasured(here) : value, value});
  };
  if (report.stages.empty()) return ticks;
  if (by == MemoryBy::phase) {
    const auto worst =
        std::min(static_cast<std::size_t>(report.verdict.worst_stage), report.stages.size() - 1);
    for (std::size_t p = 0; p < kMemoryPhases; ++p) {
      add(worst, static_cast<MemoryPhase>(p), static_cast<MemoryPhase>(p));
    }
    return ticks;
  }
  for (std::size_t s = 0; s < report.stages.size(); ++s) {
    const MemoryPhase theirs =
        s < other.stages.size() ? other.stages[s].peak_phase() : MemoryPhase{};
    add(s, report.stages[s].peak_phase(), theirs);
  }
  return ticks;
}

std::optional<Bytes> peak_beside(const StepReport& report, const StepReport& other) {
  std::optional<Bytes> most;
  for (const auto& tick : memory_ticks(report, other, MemoryBy::stage)) {
    if (tick) most = std::max(most.value_or(Bytes(0)), tick->at);
  }
  return most;
}

std::string look_text(const CompareView& view, CompareBy by, std::size_t row, bool simulated) {
  const std::vector<CompareRow>& rows = view.rows[static_cast<std::size_t>(by)];
  const CompareRow& found = rows[row];
  const char* const lacks =
      found.to > found.from && simulated ? ""
      : !simulated              ? ": the plan's step is not simulated, so there is no timeline"
      : found.operation.empty() ? ": it has no place of its own on the timeline"
                                : ": the plan's step lacks it, so it is not on the timeline";
  return fmt::format("{} of {}: {}{}, {}{}", row + 1, rows.size(), found.name,
                     found.stage >= 0 ? fmt::format(", stage {}", found.stage) : "",
                     signed_seconds(found.difference()), lacks);
}

std::string no_lanes_text(const CompareView& view, const Compared& other) {
  if (!view.lanes.lanes.empty()) return "";
  if (other.run) return "the trace has no spans of this plan's step";
  if (other.plan) return "the other plan's step is too long to simulate: it has no spans";
  return fmt::format("the {} report has no spans: compare with a trace to see its lanes",
                     other.origin);
}

std::string correction_text(const Correction& correction) {
  return fmt::format("calibrated by a run on {} GPUs: {}",
                     format_count(correction.measured.layout.world()),
                     signed_percent(correction.share()));
}

std::string difference_text(const CompareView& view, std::string_view origin) {
  return fmt::format("{} {}, here {} {}: {}", origin, format_seconds(view.measured_step),
                     view.origin, format_seconds(view.predicted_step),
                     signed_percent(view.relative()));
}

}  // namespace shardwise::view
