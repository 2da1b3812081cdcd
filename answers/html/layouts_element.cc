#include "answers/html/layouts_element.h"

#include "answers/layout_filter.h"
#include "planner/spec/json/json_writer.h"
#include "planner/spec/plan/plan_page.h"

namespace shardwise::sim {
namespace {

/// Without the line breaks and the indent of JsonWriter, whose strings have none.
std::string on_one_line(const std::string& json) {
  std::string line;
  bool indent = false;
  for (const char c : json) {
    indent = c == '\n' || (indent && c == ' ');
    if (!indent) line += c;
  }
  return line;
}

}  // namespace

std::string layouts_element(const std::vector<PricedLayout>& rows) {
  JsonWriter json;
  json.begin_object();
  json.begin_array("columns");
  for (const PlanColumn& column : plan_columns()) {
    json.begin_object();
    json.member("key", column.key);
    json.member("words", column.words);
    json.end_object();
  }
  json.end_array();
  json.begin_array("traits");
  for (const PlanTrait& trait : plan_traits()) json.element(trait.key);
  json.end_array();
  json.begin_object("problems");
  for (const FilterProblem& problem : filter_problems()) json.member(problem.id, problem.text);
  json.end_object();
  json.begin_array("rows");
  for (const PricedLayout& row : rows) {
    json.begin_object();
    json.begin_array("values");
    for (const PlanColumn& column : plan_columns()) {
      if (column.words) {
        json.element(compared_words(column, row));
      } else {
        json.element(column.number(row));
      }
    }
    json.end_array();
    json.begin_array("traits");
    for (const PlanTrait& trait : plan_traits()) {
      if (trait.holds(row)) json.element(trait.key);
    }
    json.end_array();
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json_element("layouts-data", on_one_line(json.text())) + "\n";
}

}  // namespace shardwise::sim
