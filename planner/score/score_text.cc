#include "planner/score/score_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "planner/spec/format.h"
#include "planner/spec/table.h"

namespace shardwise {
namespace {

std::string signed_percent(double share) { return fmt::format("{:+.1f} %", 100 * share); }

std::string figure_text(Scored quantity, double value) {
  return quantity == Scored::memory ? fmt::format("{:.2f} GiB", value)
                                    : format_seconds(Seconds(value));
}

Tone tone_of(double error) {
  const double size = std::abs(error);
  return size <= 0.05 ? Tone::good : size <= 0.15 ? Tone::plain : Tone::warning;
}

void add_source(Table& table, const std::string& name, std::string_view quantity,
                const ErrorStatistics& e) {
  table.row({name, std::string(quantity), fmt::format("{}", e.n),
             Cell(format_percent(e.median_abs_error), tone_of(e.median_abs_error)),
             format_percent(e.p90_abs_error), signed_percent(e.bias)});
}

void add_overall(Table& table, std::string_view quantity, const OverallScore& overall) {
  if (overall.sources == 0) return;
  add_source(table, fmt::format("mean of {} sources", overall.sources), quantity,
             {overall.rows, overall.median_abs_error, overall.p90_abs_error, overall.bias});
}

std::string sources_text(const ScoreReport& report, bool colour) {
  Table table({{"source", Align::left},
               {"quantity", Align::left},
               {"rows"},
               {"median |error|"},
               {"p90 |error|"},
               {"bias"}});
  for (const Scored quantity : {Scored::memory, Scored::time}) {
    for (const SourceScore& source : report.sources) {
      if (source.quantity != quantity) continue;
      add_source(table, source.source, name_of(quantity), source.errors);
    }
  }
  std::map<std::string, std::vector<double>> beside;
  for (const ScoredFigure& figure : report.beside) beside[figure.source].push_back(figure.error());
  if (!beside.empty()) table.rule();
  for (const auto& [name, errors] : beside) {
    add_source(table, name, "beside", error_statistics(errors));
  }
  table.rule();
  add_overall(table, "memory", report.memory);
  add_overall(table, "time", report.time);
  return table.text(colour);
}

std::string rows_text(const ScoreReport& report, bool colour) {
  Table table({{"row", Align::left},
               {"quantity", Align::left},
               {"measured"},
               {"predicted"},
               {"error"},
               {"assumed", Align::left}});
  for (const ScoredFigure& figure : report.figures) {
    std::string assumed;
    for (const std::string& text : figure.assumed) assumed += (assumed.empty() ? "" : "; ") + text;
    table.row({figure.id, std::string(name_of(figure.quantity)),
               figure_text(figure.quantity, figure.measured),
               figure_text(figure.quantity, figure.predicted),
               Cell(signed_percent(figure.error()), tone_of(figure.error())),
               Cell(assumed, Tone::quiet)});
  }
  return table.text(colour);
}

std::string skipped_rows_text(const ScoreReport& report, bool colour) {
  Table table({{"row left out", Align::left}, {"reason", Align::left}});
  for (const SkippedRow& row : report.skipped) table.row({row.id, row.reason});
  return table.text(colour);
}

/// Reasons with how many rows they keep out. A reason's numbers do not make it another one.
std::string skipped_reasons_text(const ScoreReport& report, bool colour) {
  std::map<std::string, std::size_t> reasons;
  for (const SkippedRow& row : report.skipped) {
    ++reasons[row.reason.substr(0, row.reason.find("; predicted"))];
  }
  std::vector<std::pair<std::string, std::size_t>> sorted(reasons.begin(), reasons.end());
  std::ranges::stable_sort(sorted, std::greater(), [](const auto& each) { return each.second; });
  Table table({{"left out", Align::right}, {"reason", Align::left}});
  for (const auto& [reason, count] : sorted) table.row({fmt::format("{}", count), reason});
  return table.text(colour);
}

std::string out_of_memory_text(const ScoreReport& report) {
  std::size_t contradicted = 0;
  for (const OutOfMemoryRow& row : report.out_of_memory)
    contradicted += row.contradicted() ? 1U : 0U;
  return fmt::format(
      "{} ended for lack of memory; {} of them predicted to fit with more than 5 % to spare\n",
      report.out_of_memory.size() == 1 ? "1 run"
                                       : fmt::format("{} runs", report.out_of_memory.size()),
      contradicted);
}

}  // namespace

std::string to_text(const ScoreReport& report, bool rows, bool colour) {
  std::string text;
  if (rows && !report.figures.empty()) text += rows_text(report, colour) + "\n";
  if (!report.figures.empty()) text += sources_text(report, colour) + "\n";
  if (!report.out_of_memory.empty()) text += out_of_memory_text(report) + "\n";
  if (!report.skipped.empty()) {
    text += rows ? skipped_rows_text(report, colour) : skipped_reasons_text(report, colour);
  }
  return text;
}

}  // namespace shardwise
