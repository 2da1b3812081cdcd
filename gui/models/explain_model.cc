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

constexpr const char* kSource = "docs/time.md, on the slowest stage";

/// Adds a part of a sum, where it takes time.
void add(std::string& values, std::string_view label, Seconds time) {
  if (time == Seconds(0)) return;
  values += fmt::format("{}{} {}", values.empty() ? "" : " + ", label, format_seconds(time));
}

WhyNumber step_of(const StepReport& report) {
  std::string values;
  for (const TimePart& part : kTimeParts) add(values, part.label, report.time.*part.field);
  return {"time", "the step is the sum of its parts", std::move(values), kSource};
}

/// sim::exposed_communication(), axis by axis.
WhyNumber exposed_of(const StepReport& report) {
  std::string values;
  for (const AxisTime& axis : report.by_axis) {
    if (axis.axis != "offload") add(values, axis.axis, axis.exposed);
  }
  if (values.empty()) values = "nothing is exposed";
  return {"exposed", "communication while nothing computes, of the step", std::move(values),
          kSource};
}

}  // namespace

WhyNumber why_tile(const StepReport& report, std::string_view tile) {
  const auto of = [&](const std::string& subject) -> WhyNumber {
    const Explanation* const found = find(report, subject);
    if (found == nullptr) return {subject, "nothing is spent on it", "", ""};
    return {found->subject, found->formula, found->values, found->source};
  };
  if (tile == "step") return step_of(report);
  if (tile == "exposed") return exposed_of(report);
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
