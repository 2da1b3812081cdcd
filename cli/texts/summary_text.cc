#include "cli/texts/summary_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "planner/spec/plan/names.h"
#include "planner/spec/report/memory_labels.h"
#include "planner/spec/report/report_fields.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/table.h"

namespace shardwise::cli {
namespace {

constexpr std::size_t kLargest = 3;
constexpr double kLeastShare = 0.01;
constexpr std::size_t kNameWidth = 27;  // of the longest part of a step

/// A part of a whole with its printed amount.
struct Cost {
  std::string name;
  double amount = 0;
};

/// The largest, three at most and each a hundredth of the `whole` at least, and the sum of the
/// others.
std::vector<Cost> three_largest(std::vector<Cost> costs, double whole) {
  std::erase_if(costs, [](const Cost& cost) { return cost.amount <= 0; });
  std::ranges::stable_sort(costs, std::ranges::greater(), &Cost::amount);
  std::size_t named = std::min(kLargest, costs.size());
  while (named > 1 && costs[named - 1].amount < kLeastShare * whole) --named;
  if (costs.size() <= named + 1) return costs;
  Cost rest{fmt::format("{} smaller parts", costs.size() - named), 0};
  for (std::size_t i = named; i < costs.size(); ++i) rest.amount += costs[i].amount;
  costs.resize(named);
  costs.push_back(std::move(rest));
  return costs;
}

/// A heading, a line for each row, and the `total` they add up to. Names are as wide as the widest
/// of both tables.
std::string cost_rows_text(std::string_view heading, std::vector<std::vector<Cell>> rows,
                           std::vector<Cell> total, bool colour) {
  Table table({{"", Align::left}, {""}, {""}});
  for (Cell& cell : total) cell.tone = Tone::strong;
  rows.push_back(std::move(total));
  for (std::vector<Cell>& row : rows) {
    row.front().text.resize(std::max(row.front().text.size(), kNameWidth), ' ');
    table.row(std::move(row));
  }
  return "\n" + paint(heading, Tone::strong, colour) + "\n" + table.text(colour, 2);
}

std::string memory_costs_text(const StepReport& report, bool colour) {
  if (report.stages.empty()) return "";
  const auto worst = static_cast<std::size_t>(report.verdict.worst_stage);
  const StageMemory& stage = report.stages[worst];
  const Ledger& peak = stage[stage.peak_phase()];
  std::vector<Cost> costs;
  for (std::size_t c = 0; c < kMemoryCategories; ++c) {
    costs.push_back({std::string(kMemoryLabels[c].label), static_cast<double>(peak.bytes[c])});
  }
  const auto whole = static_cast<double>(peak.total().value());
  std::vector<std::vector<Cell>> rows;
  for (const Cost& cost : three_largest(std::move(costs), whole)) {
    rows.push_back({cost.name, format_bytes(Bytes(static_cast<std::int64_t>(cost.amount))),
                    format_percent(cost.amount / whole)});
  }
  const std::string heading =
      report.stages.size() > 1
          ? fmt::format("Memory of the fullest GPU at its peak, stage {} of {}", worst,
                        report.stages.size())
          : "Memory of a GPU at its peak";
  return cost_rows_text(heading, std::move(rows),
                        {"total", format_bytes(peak.total()), format_percent(1)}, colour);
}

}  // namespace

std::string_view origin_words(const StepReport& report) {
  if (!report.timeline) return "closed-form estimate";
  return report.timeline->noise.trials > 0 ? "undisturbed, simulated" : "simulated";
}

StepReport with_step(StepReport report, Seconds step) {
  if (report.step_time <= Seconds(0) || step <= Seconds(0)) return report;
  const double slower = step / report.step_time;
  report.step_time = step;
  for (double* rate : {&report.tokens_per_s, &report.tokens_per_s_per_gpu, &report.mfu,
                       &report.mfu_non_causal, &report.hfu}) {
    *rate /= slower;
  }
  for (double* cost : {&report.dollars_per_1e9_tokens, &report.joules_per_token}) *cost *= slower;
  return report;
}

std::string time_heading(const StepReport& report) {
  return fmt::format("Time of a step{}, {}",
                     report.stages.size() > 1 ? " on the slowest stage" : "", origin_words(report));
}

std::string time_costs_text(const StepReport& report, bool colour) {
  std::vector<std::vector<Cell>> rows;
  const auto row = [&](const std::string& name, Seconds time) {
    rows.push_back({name, format_seconds(time), format_percent(time / report.step_time)});
  };
  row("forward and backward", report.time.forward + report.time.backward);
  std::vector<Cost> costs;
  for (const TimePart& part : kTimeParts) {
    if (part.field == &TimeParts::forward || part.field == &TimeParts::backward) continue;
    costs.push_back({std::string(part.label), (report.time.*part.field).value()});
  }
  for (const Cost& cost : three_largest(std::move(costs), report.step_time.value())) {
    row(cost.name, Seconds(cost.amount));
  }
  return cost_rows_text(time_heading(report), std::move(rows),
                        {"step", format_seconds(report.step_time), format_percent(1)}, colour);
}

std::string costs_text(const StepReport& report, bool colour) {
  return time_costs_text(report, colour) + memory_costs_text(report, colour);
}

std::string short_rates_text(const StepReport& report, std::string_view origin, bool colour) {
  std::string text =
      fmt::format("{}: {} tokens/s, {} a GPU; MFU {}", origin, format_scaled(report.tokens_per_s),
                  format_scaled(report.tokens_per_s_per_gpu), format_percent(report.mfu));
  if (report.dollars_per_1e9_tokens > 0) {
    text += fmt::format("; {} per 1e9 tokens", format_dollars(report.dollars_per_1e9_tokens));
  }
  return paint(wrap(text, kTextWidth, 2), Tone::plain, colour) + "\n";
}

std::string more_text(const StepReport& report, std::string_view more, bool colour) {
  std::string text = fmt::format("--long: {}", more);
  if (!report.assumptions.empty()) {
    text += fmt::format("; --explain: {} assumption{}", report.assumptions.size(),
                        report.assumptions.size() == 1 ? "" : "s");
  }
  return paint(wrap(text, kTextWidth, 2), Tone::quiet, colour) + "\n";
}

}  // namespace shardwise::cli
