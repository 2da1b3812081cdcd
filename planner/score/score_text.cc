#include "planner/score/score_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "planner/spec/text/format.h"
#include "planner/spec/text/signed_format.h"
#include "planner/spec/text/table.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

// Of the first screen.
constexpr std::size_t kMostSources = 20;
constexpr std::size_t kMostReasons = 5;
constexpr std::size_t kReasonWidth = 68;

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

/// The sources with the largest errors in their order, `most` at most.
std::vector<SourceScore> largest_errors(std::vector<SourceScore> sources, std::size_t most) {
  if (sources.size() <= most) return sources;
  std::vector<double> errors;
  for (const SourceScore& source : sources) errors.push_back(source.errors.median_abs_error);
  std::ranges::nth_element(errors, errors.begin() + static_cast<std::ptrdiff_t>(most),
                           std::ranges::greater());
  const double bound = errors[most];
  std::erase_if(sources,
                [&](const SourceScore& source) { return source.errors.median_abs_error <= bound; });
  return sources;
}

std::string sources_text(const ScoreReport& report, ScoreScreen screen, bool colour) {
  Table table({{"source", Align::left},
               {"quantity", Align::left},
               {"rows"},
               {"median |error|"},
               {"p90 |error|"},
               {"bias"}});
  const std::vector<SourceScore> sources =
      screen == ScoreScreen::first ? largest_errors(report.sources, kMostSources) : report.sources;
  for (const Scored quantity : {Scored::memory, Scored::time}) {
    for (const SourceScore& source : sources) {
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
  std::string text = table.text(colour);
  if (sources.size() < report.sources.size()) {
    text += fmt::format("{} sources with smaller errors (--long)\n",
                        report.sources.size() - sources.size());
  }
  return text;
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
std::string skipped_reasons_text(const ScoreReport& report, ScoreScreen screen, bool colour) {
  std::map<std::string, std::size_t> reasons;
  for (const SkippedRow& row : report.skipped) {
    ++reasons[row.reason.substr(0, row.reason.find("; predicted"))];
  }
  std::vector<std::pair<std::string, std::size_t>> sorted(reasons.begin(), reasons.end());
  std::ranges::stable_sort(sorted, std::greater(), [](const auto& each) { return each.second; });
  Table table({{"left out", Align::right}, {"reason", Align::left}});
  const std::size_t most = screen == ScoreScreen::first ? kMostReasons : sorted.size();
  for (std::size_t i = 0; i < std::min(most, sorted.size()); ++i) {
    const auto& [reason, count] = sorted[i];
    table.row({fmt::format("{}", count),
               screen == ScoreScreen::first ? shown(reason, kReasonWidth) : reason});
  }
  std::string text = table.text(colour);
  if (sorted.size() > most) {
    text += fmt::format("{} more reasons (--long)\n", sorted.size() - most);
  }
  return text;
}

std::size_t runs_of(const ScoreReport& report, bool ran_out, std::optional<Fit> fit) {
  return static_cast<std::size_t>(std::ranges::count_if(report.judged, [&](const JudgedRun& run) {
    return run.ran_out == ran_out && (!fit || run.fit == *fit);
  }));
}

std::string runs_words(std::size_t runs) {
  return runs == 1 ? "1 run" : fmt::format("{} runs", runs);
}

/// Verdicts against what became of the runs.
std::string verdicts_text(const ScoreReport& report, bool colour) {
  Table table({{"what became of it", Align::left}, {"runs"}, {"fits"}, {"at risk"}, {"no fit"}});
  for (const bool ran_out : {false, true}) {
    const std::size_t all = runs_of(report, ran_out, std::nullopt);
    if (all == 0) continue;
    const auto cell = [&](Fit fit, bool wrong) {
      const std::size_t runs = runs_of(report, ran_out, fit);
      return Cell(fmt::format("{}", runs), wrong && runs > 0 ? Tone::warning : Tone::plain);
    };
    table.row({ran_out ? "ran out of memory" : "ran", fmt::format("{}", all),
               cell(Fit::fits, ran_out), cell(Fit::at_risk, false),
               cell(Fit::does_not_fit, !ran_out)});
  }
  const std::size_t refused = runs_of(report, false, Fit::does_not_fit);
  const std::size_t let_start = runs_of(report, true, Fit::fits);
  return table.text(colour) +
         fmt::format(
             "wrong verdicts of {}: {} that ran \"does not fit\", {} that ran out \"fits\"\n",
             runs_words(report.judged.size()), refused, let_start);
}

/// The runs with a wrong verdict, one a line.
std::string wrong_verdicts_text(const ScoreReport& report, bool colour) {
  Table table({{"wrong verdict", Align::left},
               {"became", Align::left},
               {"needs"},
               {"at most"},
               {"usable"}});
  for (const JudgedRun& run : report.judged) {
    if (!run.wrong()) continue;
    table.row({run.id, run.ran_out ? "ran out" : "ran", fmt::format("{:.1f} GiB", run.needed_gib),
               fmt::format("{:.1f} GiB", run.upper_gib),
               fmt::format("{:.1f} GiB", run.usable_gib)});
  }
  return table.text(colour);
}

/// Flags that no rule reads, with the fact that stands for them or what is missing.
std::string unread_text(const ScoreReport& report, ScoreScreen screen, bool colour) {
  if (screen == ScoreScreen::first) {
    return fmt::format("{} flags of these rows are not read (--long)\n", report.unread.size());
  }
  Table table({{"flag not read", Align::left}, {"rows"}, {"why", Align::left}});
  for (const FlagUnread& each : report.unread) {
    table.row({each.flag, fmt::format("{}", each.rows), each.why});
  }
  return table.text(colour);
}

}  // namespace

std::string to_text(const ScoreReport& report, ScoreScreen screen, bool colour) {
  const bool rows = screen == ScoreScreen::rows;
  std::string text;
  if (rows && !report.figures.empty()) text += rows_text(report, colour) + "\n";
  if (!report.figures.empty()) text += sources_text(report, screen, colour) + "\n";
  if (!report.judged.empty()) text += verdicts_text(report, colour) + "\n";
  const bool wrong = std::ranges::any_of(report.judged, &JudgedRun::wrong);
  if (rows && wrong) text += wrong_verdicts_text(report, colour) + "\n";
  if (!report.skipped.empty()) {
    text += rows ? skipped_rows_text(report, colour) : skipped_reasons_text(report, screen, colour);
  }
  if (!report.unread.empty()) text += unread_text(report, screen, colour);
  return text;
}

}  // namespace shardwise
