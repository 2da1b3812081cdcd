#include "answers/html/accuracy_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "answers/html/html_table.h"
#include "answers/html/page_head.h"
#include "answers/html/sections.h"
#include "planner/score/interval_fit.h"
#include "planner/score/releases.h"
#include "planner/score/statistics.h"
#include "planner/spec/report/memory_fit.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/signed_format.h"
#include "simulator/drawing/markup.h"

namespace shardwise::sim {
namespace {

constexpr std::size_t kWorst = 10;
constexpr std::array<Scored, 2> kQuantities = {Scored::memory, Scored::time};

/// Green to 5 %, red from 30 %.
Tone tone_of_error(double error) {
  const double size = std::abs(error);
  if (size <= 0.05) return Tone::good;
  if (size <= 0.15) return Tone::plain;
  return size <= 0.3 ? Tone::warning : Tone::bad;
}

HtmlCell percent_cell(double error) { return {format_percent(error), tone_of_error(error)}; }

std::string amount_text(const ScoredFigure& figure, double amount) {
  return figure.quantity == Scored::memory ? fmt::format("{:.2f} GiB", amount)
                                           : format_seconds(Seconds(amount));
}

std::vector<HtmlCell> cells_of(const OverallScore& score) {
  return {format_count(static_cast<std::int64_t>(score.sources)),
          format_count(static_cast<std::int64_t>(score.rows)), percent_cell(score.median_abs_error),
          percent_cell(score.p90_abs_error), signed_percent(score.bias)};
}

std::vector<HtmlColumn> with_score_columns(std::vector<HtmlColumn> columns) {
  for (const char* heading : {"sources", "rows", "median |error|", "p90 |error|", "bias"}) {
    columns.emplace_back(heading);
  }
  return columns;
}

void add_score(HtmlTable& table, std::vector<HtmlCell> cells, const OverallScore& score) {
  for (const HtmlCell& cell : cells_of(score)) cells.push_back(cell);
  table.row(cells);
}

/// The report of the figures that `keep` keeps.
template <class Keep>
ScoreReport part_of(const ScoreReport& report, Keep keep) {
  ScoreReport part;
  std::ranges::copy_if(report.figures, std::back_inserter(part.figures), keep);
  summarise(part);
  return part;
}

std::string overall_section(const ScoreReport& report) {
  HtmlTable table(with_score_columns({{"figures", Align::left}, {"quantity", Align::left}}));
  const auto rows = [&](const char* name, const ScoreReport& part) {
    for (const Scored quantity : kQuantities) {
      const OverallScore& score = quantity == Scored::memory ? part.memory : part.time;
      if (score.sources > 0) add_score(table, {name, std::string(name_of(quantity))}, score);
    }
  };
  rows("all", report);
  rows("in sample", part_of(report, [](const ScoredFigure& f) { return f.in_sample; }));
  rows("left out", part_of(report, [](const ScoredFigure& f) { return !f.in_sample; }));
  return section("overall", "Overall", "means over sources",
                 "<p>In sample: curves of the GPU and its links, or the engine's allocator, were "
                 "fitted to data of the row's own repository. Left out: all others.</p>\n" +
                     table.text());
}

/// One table: a row for each engine and model, a column for each GPU.
std::string grid_section(const ScoreReport& report, Scored quantity) {
  std::set<std::string> gpus;
  std::map<std::pair<std::string, std::string>, std::map<std::string, std::vector<double>>> grid;
  for (const ScoredFigure& figure : report.figures) {
    if (figure.quantity != quantity) continue;
    gpus.insert(figure.gpu);
    grid[{figure.engine, figure.model}][figure.gpu].push_back(figure.error());
  }
  if (grid.empty()) return "";
  std::vector<HtmlColumn> columns = {{"engine", Align::left}, {"model", Align::left}};
  for (const std::string& gpu : gpus) columns.emplace_back(gpu);
  HtmlTable table(std::move(columns));
  for (const auto& [key, by_gpu] : grid) {
    std::vector<HtmlCell> cells = {key.first, key.second};
    for (const std::string& gpu : gpus) {
      const auto found = by_gpu.find(gpu);
      if (found == by_gpu.end()) {
        cells.emplace_back("");
        continue;
      }
      const ErrorStatistics errors = error_statistics(found->second);
      cells.emplace_back(fmt::format("{} ({})", format_percent(errors.median_abs_error), errors.n),
                         tone_of_error(errors.median_abs_error));
    }
    table.row(cells);
  }
  const std::string name(name_of(quantity));
  return section("grid-" + name,
                 fmt::format("{} by engine, model and GPU",
                             quantity == Scored::memory ? "Memory" : "Step time"),
                 "median |error| (rows)", table.text());
}

std::string worst_section(const ScoreReport& report, Scored quantity) {
  std::vector<const ScoredFigure*> figures;
  for (const ScoredFigure& each : report.figures) {
    if (each.quantity == quantity) figures.push_back(&each);
  }
  if (figures.empty()) return "";
  std::ranges::stable_sort(figures, std::ranges::greater(),
                           [](const ScoredFigure* f) { return std::abs(f->error()); });
  HtmlTable table({{"row", Align::left},
                   {"engine", Align::left},
                   {"GPU", Align::left},
                   {"measured"},
                   {"predicted"},
                   {"error"},
                   {"assumed", Align::left}});
  for (std::size_t i = 0; i < std::min(kWorst, figures.size()); ++i) {
    const ScoredFigure& each = *figures[i];
    std::string assumed;
    for (const std::string& text : each.assumed) assumed += (assumed.empty() ? "" : "; ") + text;
    table.row({each.id,
               each.engine,
               each.gpu,
               amount_text(each, each.measured),
               amount_text(each, each.predicted),
               {signed_percent(each.error()), tone_of_error(each.error())},
               {assumed, Tone::quiet}});
  }
  const std::string name(name_of(quantity));
  return section("worst-" + name,
                 fmt::format("The {} worst rows, {}", std::min(kWorst, figures.size()), name), "",
                 table.text());
}

std::string sources_section(const ScoreReport& report) {
  HtmlTable table({{"source", Align::left},
                   {"quantity", Align::left},
                   {"rows"},
                   {"in sample"},
                   {"median |error|"},
                   {"p90 |error|"},
                   {"bias"}});
  for (const SourceScore& each : report.sources) {
    const auto sampled = std::ranges::count_if(report.figures, [&](const ScoredFigure& f) {
      return f.source == each.source && f.quantity == each.quantity && f.in_sample;
    });
    table.row({each.source, std::string(name_of(each.quantity)),
               format_count(static_cast<std::int64_t>(each.errors.n)), format_count(sampled),
               percent_cell(each.errors.median_abs_error), percent_cell(each.errors.p90_abs_error),
               signed_percent(each.errors.bias)});
  }
  return section("sources", "By source", "", table.text());
}

std::string intervals_section(const ScoreReport& report) {
  const IntervalTable intervals = fit_intervals(residuals_of(report));
  if (intervals.coverage.empty()) return "";
  HtmlTable table({{"quantity", Align::left},
                   {"sources"},
                   {"rows"},
                   {"covered, mean of sources"},
                   {"covered, all rows"},
                   {"half-width"}});
  for (const IntervalCoverage& each : intervals.coverage) {
    table.row({std::string(name_of(each.quantity)), format_count(each.sources),
               format_count(each.rows), format_percent(each.of_sources),
               format_percent(each.of_rows), format_percent(each.half_width)});
  }
  return section("intervals", fmt::format("{:.0f} % intervals", 100 * kIntervalLevel),
                 "of sources that were left out", table.text());
}

std::string releases_section(const AccuracyContent& content) {
  HtmlTable table(with_score_columns(
      {{"date", Align::left}, {"commit", Align::left}, {"quantity", Align::left}}));
  const auto rows = [&](const std::string& date, const std::string& commit,
                        const OverallScore& memory, const OverallScore& time) {
    for (const auto& [name, score] : {std::pair("memory", &memory), std::pair("time", &time)}) {
      if (score->sources > 0) add_score(table, {date, commit, name}, *score);
    }
  };
  for (const ReleaseScore& each : release_scores()) {
    rows(each.date, each.commit, each.memory, each.time);
  }
  rows("this page", content.version, content.report->memory, content.report->time);
  return section("releases", "By release", "each over the public measurements of its day",
                 table.text());
}

std::string verdicts_section(const ScoreReport& report) {
  HtmlTable table({{"run", Align::left},
                   {"outcome", Align::left},
                   {"verdict", Align::left},
                   {"needed"},
                   {"at most"},
                   {"usable"}});
  std::int64_t wrong = 0;
  for (const JudgedRun& each : report.judged) {
    if (!each.wrong()) continue;
    ++wrong;
    const auto gib = [](double amount) { return fmt::format("{:.1f} GiB", amount); };
    table.row({each.id,
               each.ran_out ? "out of memory" : "ran",
               {std::string(name_of(each.fit)), Tone::bad},
               gib(each.needed_gib),
               gib(each.upper_gib),
               gib(each.usable_gib)});
  }
  if (report.judged.empty()) return "";
  return section("verdicts", "Wrong verdicts",
                 fmt::format("{} of {} runs with a known outcome", format_count(wrong),
                             format_count(std::ssize(report.judged))),
                 wrong > 0 ? table.text() : "<p>none</p>\n");
}

}  // namespace

std::string accuracy_page(const AccuracyContent& content) {
  const ScoreReport& report = *content.report;
  const std::string title = "How right Shardwise's predictions are";
  std::string page = page_head(title, content.version, "") + "<body>\n<main>\n";
  page += fmt::format(
      "<header>\n<h1>{}</h1>\n<p>{} figures of published runs; {} rows left out</p>\n"
      "<p>error: (predicted - measured) / measured; green to 5 %, yellow from 15 %, red from 30 "
      "%</p>\n</header>\n",
      escaped(title), format_count(std::ssize(report.figures)),
      format_count(std::ssize(report.skipped)));
  page += overall_section(report) + intervals_section(report);
  for (const Scored quantity : kQuantities) page += worst_section(report, quantity);
  for (const Scored quantity : kQuantities) page += grid_section(report, quantity);
  page += sources_section(report) + verdicts_section(report) + releases_section(content);
  return page +
         fmt::format(
             "<footer>\n<p>Make it again: <code>{}</code></p>\n<p>shardwise {}</p>\n</footer>\n"
             "</main>\n</body>\n</html>\n",
             escaped(content.command), escaped(content.version));
}

}  // namespace shardwise::sim
