#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/plan_text.h"
#include "planner/spec/format.h"
#include "planner/spec/table.h"

namespace shardwise::cli {
namespace {

using sim::PlanRow;

constexpr std::size_t kWidth = 80;

/// What an engine is that gives the best layout.
const char* best_word(Objective objective) {
  switch (objective) {
    case Objective::step_time:
      return "fastest";
    case Objective::memory:
      return "leanest";
    case Objective::cost:
    case Objective::tokens_per_dollar:
      return "cheapest";
  }
  return "best";
}

}  // namespace

std::string ranking_text(const sim::PlanAnswer& answer, std::size_t shown_rows, bool colour) {
  std::string text;
  if (shown_rows < answer.best.size()) {
    text = fmt::format("{} more with --long; ", answer.best.size() - shown_rows);
  }
  text += answer.best.front().simulated ? "step: simulated; model: of the step-time model"
                                        : "step: of the step-time model";
  if (!answer.unsimulated.empty()) text += " (" + answer.unsimulated + ")";
  if (std::ranges::any_of(answer.best, &PlanRow::tied)) {
    const sim::TieBand& band = answer.band;
    text += fmt::format("; =: a tie, within the median error between runs, {} ({} pairs of {}runs)",
                        format_percent(band.share), format_count(band.pairs),
                        band.engine.empty() ? "" : band.engine + " ");
  }
  return paint(wrap(text, kWidth, 2), Tone::quiet, colour) + "\n";
}

std::string engines_text(const sim::PlanQuestion& question, const sim::PlanAnswer& answer,
                         bool colour) {
  if (answer.engines.size() < 2 || answer.best.empty()) return "";
  const std::string& leads = answer.best.front().engine;
  std::vector<const sim::EngineAnswer*> others;
  for (const sim::EngineAnswer& each : answer.engines) {
    if (each.engine->name != leads) others.push_back(&each);
  }
  std::ranges::stable_sort(others, {}, [](const sim::EngineAnswer* each) {
    return each->best ? each->best->step().value() : 1e300;
  });
  // Two engines a line, the second column after the first.
  Table table({{"", Align::left}, {"step"}, {"GiB"}, {"", Align::left}, {"step"}, {"GiB"}});
  const auto cells = [](const sim::EngineAnswer& each) {
    if (each.best) {
      return std::vector<Cell>{each.engine->name, format_seconds(each.best->step()),
                               format_gib(each.best->candidate.cost.point)};
    }
    const bool illegal = each.counts.space.legal == 0;
    return std::vector<Cell>{each.engine->name, illegal ? "refused" : "no fit", "-"};
  };
  const std::size_t lines = (others.size() + 1) / 2;
  for (std::size_t i = 0; i < lines; ++i) {
    std::vector<Cell> row = cells(*others[i]);
    if (i + lines < others.size()) {
      for (Cell& cell : cells(*others[i + lines])) row.push_back(std::move(cell));
    }
    table.row(std::move(row));
  }
  const std::string title =
      question.takes_engine
          ? fmt::format("Took {}, the {} of {} engines (--engine NAME); the others' best", leads,
                        best_word(question.objective), answer.engines.size())
          : "The best of each other engine";
  std::string text = "\n" + paint(title, Tone::strong, colour) + "\n" + table.text(colour, 2);
  for (const sim::EngineAnswer* each : others) {
    if (each->refused.empty()) continue;
    const Diagnostic& why = each->refused.front();
    text += "  " +
            wrap(fmt::format("{} refuses: {}: {}", each->engine->name, why.path, why.message),
                 kWidth - 2, 4) +
            "\n";
  }
  return text;
}

}  // namespace shardwise::cli
