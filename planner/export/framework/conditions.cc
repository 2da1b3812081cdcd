#include "planner/export/framework/conditions.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "planner/spec/text/number.h"

namespace shardwise {

namespace {

/// Whether something in a list, "a,b", is among the texts, or is not.
bool any_of_list(std::string_view list, const std::vector<std::string>& texts, bool among) {
  while (true) {
    const std::string_view each = list.substr(0, list.find(','));
    if ((std::ranges::find(texts, each) != texts.end()) == among) return true;
    if (each.size() == list.size()) return false;
    list.remove_prefix(each.size() + 1);
  }
}

}  // namespace

bool holds(const Clause& clause, const Values& values) {
  const auto at = values.find(clause.name);
  if (clause.kind == Clause::Kind::stated) return at != values.end();
  if (clause.kind == Clause::Kind::not_stated) return at == values.end();
  if (at == values.end()) return false;
  const bool among = std::ranges::find(clause.texts, at->second) != clause.texts.end();
  if (clause.kind == Clause::Kind::is) return among;
  if (clause.kind == Clause::Kind::is_not) return !among;
  const bool has = clause.kind == Clause::Kind::has;
  if (has || clause.kind == Clause::Kind::beyond) {
    return any_of_list(at->second, clause.texts, has);
  }
  const std::optional<double> number = parse_number(at->second);
  if (!number) return false;
  return clause.kind == Clause::Kind::above ? *number > clause.number : *number < clause.number;
}

bool holds(const Conditions& conditions, const Values& values) {
  return std::ranges::all_of(conditions,
                             [&](const Clause& clause) { return holds(clause, values); });
}

std::string meant(const std::string& text, const Values& values) {
  if (!text.starts_with('@')) return text;
  const auto at = values.find(text.substr(1));
  return at == values.end() ? text : at->second;
}

Conditions meant(Conditions conditions, const Values& values) {
  for (Clause& clause : conditions) {
    for (std::string& text : clause.texts) text = meant(text, values);
  }
  return conditions;
}

}  // namespace shardwise
