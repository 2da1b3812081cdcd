#include "gui/models/window/explain_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "gui/models/explore/columns.h"
#include "gui/models/window/panel_facts.h"
#include "gui/models/window/summary_model.h"
#include "planner/estimate/explain.h"
#include "planner/question/field_texts.h"
#include "planner/spec/plan/names.h"
#include "planner/spec/report/memory_labels.h"
#include "planner/spec/report/report_fields.h"
#include "planner/spec/text/format.h"
#include "simulator/comparison/tiles.h"

namespace shardwise::view {
namespace {

const Explanation* find(const StepReport& report, std::string_view subject) {
  const auto found = std::ranges::find(report.explanations, subject, &Explanation::subject);
  return found == report.explanations.end() ? nullptr : &*found;
}

/// What a field of the question or the layout means.
std::string field_meaning(std::string_view field) {
  for (const FieldText& each : kLayoutTexts) {
    if (field == each.field) return each.text;
  }
  for (const FieldText& each : kJobTexts) {
    if (field == each.field) return each.text;
  }
  if (field == "gpus") return "GPUs to train on";
  return field == "price" ? "dollars for an hour of a GPU" : "";
}

/// Of parts of the step.
const char* source_of(const StepReport& report) {
  return report.timeline ? "simulated, on the stage that computes longest: docs/simulated_step.md"
                         : "estimated, on the slowest stage: docs/time.md";
}

/// Adds a part of a sum, where it takes time.
void add(std::string& values, std::string_view label, Seconds time) {
  if (time == Seconds(0)) return;
  values += fmt::format("{}{} {}", values.empty() ? "" : " + ", label, format_seconds(time));
}

WhyNumber step_number(const StepReport& report) {
  std::string values;
  for (const TimePart& part : kTimeParts) add(values, part.label, report.time.*part.field);
  values += " = " + format_seconds(report.step_time);
  return {"time", "the step is the sum of its parts", std::move(values), source_of(report)};
}

WhyNumber exposed_of(const StepReport& report) {
  std::string values;
  for (const AxisTime& axis : report.by_axis) {
    if (axis.axis != "offload") add(values, axis.axis, axis.exposed);
  }
  const Seconds exposed = sim::exposed_communication(report);
  values = values.empty() ? "nothing is exposed"
                          : fmt::format("{} = {}, {} of {}", values, format_seconds(exposed),
                                        format_percent(exposed / report.step_time),
                                        format_seconds(report.step_time));
  return {"exposed", "communication while nothing computes, of the step", std::move(values),
          source_of(report)};
}

WhyNumber bubble_of(const StepReport& report) {
  const Seconds idle = report.time.bubble;
  const Explanation* const found = find(report, "time.bubble");
  return {"time.bubble", found == nullptr ? "no stage waits for another" : found->formula,
          fmt::format("{} of {} = {}", format_seconds(idle), format_seconds(report.step_time),
                      format_percent(idle / report.step_time)),
          source_of(report)};
}

}  // namespace

StepReport with_reasons(StepReport shown, const StepReport& explained, const Plan& plan) {
  shown.explanations.clear();
  const std::vector<Explanation> rates = rate_explanations(shown, plan.cluster, plan.job);
  for (const Explanation& each : explained.explanations) {
    if (std::ranges::find(rates, each.subject, &Explanation::subject) != rates.end()) continue;
    shown.explanations.push_back(each);
    if (!shown.timeline) continue;
    for (const TimePart& part : kTimeParts) {
      if (each.subject != fmt::format("time.{}", part.key)) continue;
      shown.explanations.back().values += "; simulated: " + format_seconds(shown.time.*part.field);
    }
  }
  shown.explanations.insert(shown.explanations.end(), rates.begin(), rates.end());
  shown.assumptions = explained.assumptions;
  return shown;
}

WhyNumber why_tile(const StepReport& report, std::string_view tile) {
  const auto of = [&](const std::string& subject) -> WhyNumber {
    const Explanation* const found = find(report, subject);
    if (found == nullptr) return {subject, "nothing is spent on it", "", ""};
    return {found->subject, found->formula, found->values, found->source};
  };
  if (tile == "step") return step_number(report);
  if (tile == "exposed") return exposed_of(report);
  if (tile == "memory") {
    return of(std::string(name_of(report.verdict.worst_phase)) + ".total");
  }
  if (tile == "bubble") return bubble_of(report);
  if (tile == "tokens") return of("tokens_per_s");
  if (tile == "cost") return of("dollars_per_1e9_tokens");
  return of(std::string(tile));
}

namespace {

/// Of "pass.weights": a phase, and a group or a category; a stage has the phase of the peak.
WhyNumber why_memory(const StepReport& report, std::string_view subject, std::string_view name) {
  WhyNumber why{std::string(subject),
                "bytes of this part on the fullest GPU; parts sum to the peak", "",
                "docs/memory.md"};
  const std::size_t dot = name.rfind('.');
  const std::string_view stack = dot == std::string_view::npos ? "" : name.substr(0, dot);
  const std::string_view part = dot == std::string_view::npos ? name : name.substr(dot + 1);
  // Explanations are those of the fullest stage in its fullest phase.
  if (stack.starts_with("stage ") && stack != fmt::format("stage {}", report.verdict.worst_stage)) {
    return why;
  }
  const MemoryPhase phase = report.verdict.worst_phase;
  const bool other = std::ranges::find(kMemoryPhaseLabels, stack) != kMemoryPhaseLabels.end() &&
                     stack != label_of(phase);
  std::vector<std::pair<std::string_view, const Explanation*>> parts;
  for (const MemoryLabel& each : kMemoryLabels) {
    if (each.label != part && label_of(each.group) != part) continue;
    const Explanation* const found =
        find(report, fmt::format("{}.{}", name_of(phase), name_of(each.category)));
    if (found != nullptr) parts.emplace_back(each.label, found);
  }
  if (parts.empty()) return why;
  why.source = parts.front().second->source;
  why.formula.clear();
  if (other) why.values = fmt::format("at the peak, in phase {}: ", label_of(phase));
  for (const auto& [label, found] : parts) {
    const std::string before = why.formula.empty() ? "" : "; ";
    const std::string of = parts.size() == 1 ? "" : fmt::format("{}: ", label);
    why.formula += before + of + found->formula;
    why.values += before + of + found->values;
  }
  return why;
}

/// Of a column of layouts, with what it is made of for the selected one.
WhyNumber why_column(const StepReport& report, std::string_view subject, const Column& column) {
  WhyNumber why{std::string(subject), std::string(column.meaning), "",
                "the best are simulated, as plan does, and the others estimated: docs/memory.md, "
                "docs/time.md"};
  constexpr std::array<std::string_view, 5> kTold = {"step", "mfu", "memory", "tokens", "cost"};
  if (std::ranges::find(kTold, column.key) == kTold.end()) return why;
  const WhyNumber own = why_tile(report, column.key);
  if (!own.values.empty()) {
    why.values = fmt::format("of the selected layout: {}: {}", own.formula, own.values);
  }
  return why;
}

}  // namespace

WhyNumber why_subject(const StepReport& report, std::string_view subject) {
  const std::size_t dot = subject.find('.');
  const std::string_view kind = subject.substr(0, dot);
  const std::string_view name =
      dot == std::string_view::npos ? std::string_view() : subject.substr(dot + 1);
  WhyNumber why{std::string(subject), "", "", ""};
  if (kind == "tile") {
    if (name != "error") return why_tile(report, name);
    why.formula = "median of |predicted - measured| / measured of the nearest published rows";
    why.source = "examples/public.jsonl";
  } else if (kind == "column") {
    if (const std::optional<std::size_t> column = find_column(name)) {
      return why_column(report, subject, columns()[*column]);
    }
  } else if (kind == "field") {
    why.formula = field_meaning(name);
    why.source = "the question";
  } else if (kind == "memory") {
    return why_memory(report, subject, name);
  } else if (kind == "neighbour") {
    why.formula = "an estimate of that layout less the selected one's";
    why.source = "docs/search.md";
  } else if (kind == "question") {
    why.formula = "what is asked: model, cluster, batch and layout of the plan";
    why.source = "the plan";
  } else if (kind == "panel") {
    if (const PanelFacts* const panel = find_panel(name)) {
      why.formula = panel->reason;
      why.source = panel->source;
    }
  }
  return why;
}

std::vector<WhyNumber> why_published(std::span<const PublishedFigure> nearest) {
  std::vector<WhyNumber> found;
  for (const PublishedFigure& each : nearest) {
    found.push_back({"published", figure_text(each), "(predicted - measured) / measured",
                     fmt::format("examples/public.jsonl, {}", each.id)});
  }
  return found;
}

std::vector<WhyNumber> why_numbers(const StepReport& report, std::string_view words) {
  std::vector<WhyNumber> found;
  if (WhyNumber own = why_subject(report, words); !own.formula.empty()) {
    found.push_back(std::move(own));
  }
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
