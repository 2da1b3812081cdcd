#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "answers/answer_parts.h"
#include "answers/html/html_table.h"
#include "answers/html/layouts_element.h"
#include "answers/html/sections.h"
#include "answers/plan_columns.h"
#include "answers/plan_words.h"
#include "simulator/drawing/markup.h"

namespace shardwise::sim {
namespace {

/// The page's plan as a row, for a table that lacks it.
PlanRow row_of_plan(const PageContent& page) {
  const StepReport& report = page.report();
  PlanRow row;
  row.candidate.layout = page.plan->layout;
  row.candidate.cost = {page.estimate->verdict, page.estimate->step_time};
  row.cluster = &page.question->clusters.front();
  row.engine = page.plan->engine.name;
  row.simulated = report.step_time;
  row.mfu = report.mfu;
  row.tokens_per_s = report.tokens_per_s;
  row.dollars_per_1e9_tokens = report.dollars_per_1e9_tokens;
  return row;
}

std::string table_of(const PageContent& page, const std::vector<PlanRow>& rows,
                     const std::vector<PricedLayout>& layouts, const ToldColumns& told) {
  std::vector<const PlanColumn*> shown = {find_plan_column("rank")};
  shown.insert(shown.end(), told.columns.begin(), told.columns.end());
  std::vector<HtmlColumn> columns;
  for (const PlanColumn* each : shown) {
    columns.emplace_back(std::string(each->heading), each->words ? Align::left : Align::right,
                         each->key);
  }
  HtmlTable table(std::move(columns));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::vector<HtmlCell> cells;
    for (const PlanColumn* each : shown) cells.emplace_back(each->text(layouts[i]));
    table.row(cells, is_the_plan(page, rows[i]) ? "chosen" : "");
  }
  return table.text("id=\"layouts\"");
}

}  // namespace

bool is_the_plan(const PageContent& page, const PlanRow& row) {
  return row.engine == page.plan->engine.name && row.candidate.layout == page.plan->layout;
}

std::string layouts_section(const PageContent& page) {
  if (page.answer == nullptr || page.answer->best.empty()) return "";
  const std::vector<PlanRow>& best = page.answer->best;
  std::vector<PlanRow> rows = best;
  const bool listed =
      std::ranges::any_of(rows, [&](const PlanRow& row) { return is_the_plan(page, row); });
  if (!listed) rows.push_back(row_of_plan(page));
  std::vector<PricedLayout> layouts;  // the plan is below those that have a rank
  for (std::size_t i = 0; i < rows.size(); ++i) {
    layouts.push_back(priced(rows[i], i < best.size() ? i + 1 : 0, *page.answer));
  }
  const ToldColumns told = told_columns(rows, page.question->engines.size() > 1);
  std::string made =
      "<p id=\"layout-tools\" hidden><label>filter <input id=\"layout-filter\" "
      "placeholder=\"tp&lt;=8 mfu&gt;40 zero:1\" spellcheck=\"false\" autocomplete=\"off\" "
      "autocapitalize=\"off\">"
      "</label> <span id=\"layout-count\" class=\"quiet\" role=\"status\"></span></p>\n";
  made += table_of(page, rows, layouts, told);
  made += layouts_element(layouts);
  std::vector<std::string> notes = {counts_words(counts_of_all(*page.answer))};
  if (!told.in_all.empty()) notes.push_back(fmt::format("all: {}", fmt::join(told.in_all, ", ")));
  notes.push_back(ranking_words(*page.answer, best));
  made += "<p class=\"quiet\">" + escaped(fmt::format("{}", fmt::join(notes, "; "))) + "</p>\n";
  return section(
      "ranking", "Layouts",
      listed ? std::string("this plan is marked")
             : fmt::format("this plan is not among the best {}, it is below them", best.size()),
      made);
}

}  // namespace shardwise::sim
