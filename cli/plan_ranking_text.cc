#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/plan_text.h"
#include "planner/spec/format.h"
#include "planner/spec/names.h"
#include "planner/spec/table.h"

namespace shardwise::cli {
namespace {

using sim::PlanRow;

constexpr std::size_t kWidth = 80;

/// " by memory"; nothing for the usual objective.
const char* by_words(Objective objective) {
  switch (objective) {
    case Objective::step_time:
      return "";
    case Objective::memory:
      return " by memory";
    case Objective::cost:
    case Objective::tokens_per_dollar:
      return " by cost";
  }
  return "";
}

/// What columns and settings of these rows need a word for.
std::string column_notes(const std::vector<PlanRow>& rows) {
  const auto any = [&](auto layout_has) {
    return std::ranges::any_of(rows, layout_has,
                               [](const PlanRow& row) { return row.candidate.layout; });
  };
  std::string text;
  if (any([](const Layout& l) { return l.dp_replicate > 1; })) text += "; dp: shard x replicate";
  if (any([](const Layout& l) { return l.outer_shards_optimizer; })) {
    text += "; HFSDP: optimizer states sharded over both";
  }
  return text;
}

}  // namespace

std::string ranking_text(const sim::PlanAnswer& answer, const std::vector<PlanRow>& rows,
                         bool colour) {
  std::string text;
  if (rows.size() < answer.best.size()) {
    text = fmt::format("{} more with --long; ", answer.best.size() - rows.size());
  }
  text += answer.best.front().simulated ? "step: simulated time; model: closed-form estimate"
                                        : "step: closed-form estimate";
  if (!answer.unsimulated.empty()) text += " (" + answer.unsimulated + ")";
  if (std::ranges::any_of(answer.best, &PlanRow::tied)) {
    const sim::TieBand& band = answer.band;
    text += fmt::format("; =: tie, within {}, the median error of {} pairs of {}runs",
                        format_percent(band.share), format_count(band.pairs),
                        band.engine.empty() ? "" : band.engine + " ");
  }
  return paint(wrap(text + column_notes(rows), kWidth, 2), Tone::quiet, colour) + "\n";
}

std::string engines_text(const sim::PlanQuestion& question, const sim::PlanAnswer& answer,
                         bool whole, bool colour) {
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
          ? fmt::format("Best engine{}: {} (of {} searched). Best layout of each other engine:",
                        by_words(question.objective), leads, answer.engines.size())
          : "Best layout of each other engine:";
  std::string text = "\n" + paint(title, Tone::strong, colour) + "\n" + table.text(colour, 2);
  std::erase_if(others, [](const sim::EngineAnswer* each) { return each->refused.empty(); });
  if (!whole && others.size() > 1) {
    return text + fmt::format("  {} refuse the question (--long has why)\n", others.size());
  }
  for (const sim::EngineAnswer* each : others) {
    const Diagnostic& why = each->refused.front();
    text += "  " +
            wrap(fmt::format("{} refuses: {}: {}", each->engine->name, why.path, why.message),
                 kWidth - 2, 4) +
            "\n";
  }
  return text;
}

}  // namespace shardwise::cli
