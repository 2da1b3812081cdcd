#include "gui/models/explain_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "planner/spec/format.h"
#include "planner/spec/report_fields.h"

namespace shardwise::view {
namespace {

const Explanation* find(const StepReport& report, std::string_view subject) {
  const auto found = std::ranges::find(report.explanations, subject, &Explanation::subject);
  return found == report.explanations.end() ? nullptr : &*found;
}

/// A sum of parts of the step, of those that take time.
WhyNumber sum_of(const StepReport& report, std::string subject, std::string formula,
                 bool (*counts)(std::string_view key)) {
  std::string values;
  for (const TimePart& part : kTimeParts) {
    const Seconds time = report.time.*part.field;
    if (time == Seconds(0) || !counts(part.key)) continue;
    values += fmt::format("{}{} {}", values.empty() ? "" : " + ", part.label, format_seconds(time));
  }
  if (values.empty()) values = "no part of it takes time";
  return {std::move(subject), std::move(formula), std::move(values),
          "docs/time.md, on the slowest stage"};
}

}  // namespace

WhyNumber why_tile(const StepReport& report, std::string_view tile) {
  const auto of = [&](const std::string& subject) -> WhyNumber {
    const Explanation* const found = find(report, subject);
    if (found == nullptr) return {subject, "nothing is spent on it", "", ""};
    return {found->subject, found->formula, found->values, found->source};
  };
  if (tile == "step") {
    return sum_of(report, "time", "the step is the sum of its parts",
                  [](std::string_view) { return true; });
  }
  if (tile == "exposed") {
    return sum_of(report, "exposed", "communication beside which nothing is computed, of the step",
                  [](std::string_view key) {
                    return key.ends_with("_exposed") && key != "offload_exposed" &&
                           key != "input_exposed";
                  });
  }
  if (tile == "memory") {
    return of(std::string(name_of(report.verdict.worst_phase)) + ".total");
  }
  if (tile == "bubble") return of("time.bubble");
  if (tile == "tokens") return of("tokens_per_s");
  if (tile == "cost") return of("dollars_per_1e9_tokens");
  return of(std::string(tile));
}

std::vector<WhyNumber> why_numbers(const StepReport& report, std::string_view words) {
  std::vector<WhyNumber> found;
  for (const Explanation& each : report.explanations) {
    if (each.subject.find(words) == std::string::npos) continue;
    found.push_back({each.subject, each.formula, each.values, each.source});
  }
  for (const Assumption& each : report.assumptions) {
    if (each.id.find(words) == std::string::npos) continue;
    found.push_back({"assumed", each.text, "", each.source});
  }
  return found;
}

}  // namespace shardwise::view
