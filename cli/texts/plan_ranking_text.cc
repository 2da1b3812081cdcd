#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "answers/answer_parts.h"
#include "answers/plan_words.h"
#include "cli/texts/plan_text.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/table.h"

namespace shardwise::cli {
namespace {

using sim::PlanRow;

}  // namespace

std::string ranking_text(const sim::PlanAnswer& answer, const std::vector<PlanRow>& rows,
                         bool colour) {
  std::string text;
  if (rows.size() < answer.best.size()) {
    text = fmt::format("{} more with --long; ", answer.best.size() - rows.size());
  }
  text += sim::ranking_words(answer, rows);
  return paint(wrap(text, kTextWidth, 2), Tone::quiet, colour) + "\n";
}

std::string engines_text(const sim::PlanQuestion& question, const sim::PlanAnswer& answer,
                         bool whole, bool colour) {
  if (answer.engines.size() < 2 || answer.best.empty()) return "";
  std::vector<const sim::EngineAnswer*> others = sim::other_engines(answer);
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
  std::string text = "\n" + paint(sim::engines_words(question, answer), Tone::strong, colour) +
                     "\n" + table.text(colour, 2);
  std::erase_if(others, [](const sim::EngineAnswer* each) { return each->refused.empty(); });
  if (!whole && others.size() > 1) {
    return text + fmt::format("  {} refuse the question (--long has why)\n", others.size());
  }
  for (const sim::EngineAnswer* each : others) {
    text += "  " + wrap(sim::refusal_words(*each), kTextWidth - 2, 4) + "\n";
  }
  return text;
}

}  // namespace shardwise::cli
