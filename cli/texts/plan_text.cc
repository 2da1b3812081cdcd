#include "cli/texts/plan_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "answers/answer_parts.h"
#include "answers/plan_columns.h"
#include "answers/plan_words.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/table.h"
#include "planner/spec/text/utf8.h"

namespace shardwise::cli {
namespace {

using sim::PlanRow;

constexpr std::size_t kTableWidth = 100;  // of tables of layouts

/// Of the number and all columns but the last, which takes what is left.
std::size_t width_before_last(const std::vector<const sim::PlanColumn*>& columns,
                              const std::vector<PlanRow>& rows) {
  std::size_t width = 5;
  for (std::size_t c = 0; c + 1 < columns.size(); ++c) {
    std::size_t widest = display_width(columns[c]->heading);
    for (const PlanRow& row : rows) {
      widest = std::max(widest, display_width(columns[c]->text(sim::priced(row))));
    }
    width += 2 + widest;
  }
  return width;
}

bool one_cluster(const std::vector<PlanRow>& rows) {
  return std::ranges::all_of(rows, [&](const PlanRow& row) {
    return row.cluster->name == rows.front().cluster->name &&
           row.cluster->gpus == rows.front().cluster->gpus;
  });
}

}  // namespace

std::string layouts_text(const std::vector<PlanRow>& rows, bool several_engines, bool colour) {
  sim::ToldColumns told = sim::told_columns(rows, several_engines);
  std::vector<const sim::PlanColumn*>& columns = told.columns;
  std::size_t width = width_before_last(columns, rows);
  if (width > kTableWidth - 20 && one_cluster(rows)) {
    // On one cluster the price of tokens says what the step time says.
    std::erase(columns, sim::find_plan_column("cost"));
    width = width_before_last(columns, rows);
  }
  const std::size_t left = kTableWidth - std::min(width, kTableWidth - 20);
  const sim::PlanColumn& rank = *sim::find_plan_column("rank");
  std::vector<Column> headings{{std::string(rank.heading) + " "}};  // room for a tie's mark
  for (const sim::PlanColumn* each : columns) {
    headings.push_back({std::string(each->heading), each->words ? Align::left : Align::right});
  }
  Table table(std::move(headings));
  const bool simulated =
      std::ranges::any_of(rows, [](const PlanRow& row) { return row.simulated.has_value(); });
  for (std::size_t i = 0; i < rows.size(); ++i) {
    sim::PricedLayout row = sim::priced(rows[i], i + 1);
    row.estimated = simulated && !rows[i].simulated;
    std::vector<Cell> cells{rank.text(row) + (row.tied ? "" : " ")};
    for (const sim::PlanColumn* each : columns) {
      cells.emplace_back(shown(each->text(row), left), i == 0 ? Tone::strong : Tone::plain);
    }
    table.row(std::move(cells));
  }
  std::string text = table.text(colour);
  if (!told.in_all.empty()) text += fmt::format("all: {}\n", fmt::join(told.in_all, ", "));
  return text;
}

std::string front_text(const sim::PlanAnswer& answer, bool several_engines, std::size_t most,
                       bool colour) {
  const std::vector<PlanRow>& front = answer.front;
  const std::vector<PlanRow> rows = sim::thinned(front, most);
  const std::string count = rows.size() < front.size()
                                ? fmt::format(", {} of {} (--long)", rows.size(), front.size())
                                : "";
  const std::string title = "Pareto front of memory and the closed-form estimate of time" + count;
  return "\n" + paint(title, Tone::strong, colour) + "\n" +
         layouts_text(rows, several_engines, colour);
}

std::string counts_text(const sim::PlanAnswer& answer, bool colour) {
  return paint(wrap(sim::counts_words(sim::counts_of_all(answer)), kTextWidth), Tone::quiet,
               colour) +
         "\n";
}

std::string nothing_fits_text(const sim::PlanQuestion& question, const sim::PlanAnswer& answer,
                              bool colour) {
  return fmt::format("{}\n\n{}\n{}\n{}\n",
                     paint(sim::nothing_fits_words(answer), Tone::bad, colour),
                     layouts_text(answer.nothing.nearest, question.engines.size() > 1, colour),
                     counts_text(answer, colour),
                     wrap("Cheapest change: " + sim::way_out_words(answer.nothing), kTextWidth, 2));
}

std::string rules_text(const sim::PlanAnswer& answer, bool colour) {
  const SearchCounts counts = sim::counts_of_all(answer);
  Table table({{"dropped"}, {"by the rule", Align::left}});
  for (const RuleCount& each : counts.space.pruned) {
    if (each.layouts == 0) continue;
    table.row({format_scaled(static_cast<double>(each.layouts)),
               shown(each.rule->text, kTextWidth) + (each.rule->redundant ? " *" : "")});
  }
  return "\n" + paint("Rules", Tone::strong, colour) + "\n" + table.text(colour, 2) +
         "  * would run, but equals another layout or is outside this space\n\n" +
         wrap(fmt::format("Fixed at one value (--open FIELD searches the others): {}",
                          fmt::join(answer.held, ", ")),
              kTextWidth, 2) +
         "\n" +
         wrap(
             "Properties of the job, not of a layout: precision, attention, loss, kernels, "
             "tp_overlap, expert_dispatch, expert_overlap, cuda_graphs, the optimizer and its "
             "dtypes, batch and sequence length",
             kTextWidth, 2) +
         "\n";
}

}  // namespace shardwise::cli
