#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "answers/answer_parts.h"
#include "answers/html/html_table.h"
#include "answers/html/sections.h"
#include "planner/estimate/estimate.h"
#include "planner/question/layout_words.h"
#include "planner/search/advice/why_not.h"
#include "planner/spec/report/memory_labels.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/signed_format.h"
#include "simulator/drawing/markup.h"

namespace shardwise::sim {
namespace {

constexpr std::size_t kLayouts = 3;
constexpr std::size_t kNamedParts = 5;  // that differ most; the rest is one

struct Difference {
  std::string label;
  Seconds more;  // than the plan
};

/// What two steps differ by, those that differ most: parts that sum to the whole difference.
std::vector<Difference> differences(const StepReport& plan, const StepReport& other) {
  std::vector<Difference> all;
  for (const TimeDifference& each : time_differences(plan, other)) {
    all.push_back({std::string(each.part->label), each.more()});
  }
  std::ranges::stable_sort(all, std::ranges::greater(),
                           [](const Difference& d) { return std::abs(d.more.value()); });
  if (all.size() <= kNamedParts + 1) return all;
  Difference rest = {"all other parts", Seconds(0)};
  for (std::size_t i = kNamedParts; i < all.size(); ++i) rest.more += all[i].more;
  all.resize(kNamedParts);
  all.push_back(std::move(rest));
  return all;
}

/// Bars from the plan's step to the other's, each from where the one before it ended.
/// \param simulated  what the simulated steps differ by, where both are
std::string waterfall(const StepReport& plan, const StepReport& other,
                      std::optional<Seconds> simulated) {
  const Seconds estimated = other.step_time - plan.step_time;
  const Seconds whole = simulated.value_or(estimated);
  std::vector<Difference> parts = differences(plan, other);
  // Overlap and waiting.
  if (simulated) parts.push_back({"left out by the step-time model", whole - estimated});
  double low = 0;
  double high = 0;
  double at = 0;
  for (const Difference& each : parts) {
    at += each.more.value();
    low = std::min(low, at);
    high = std::max(high, at);
  }
  const double range = std::max(high - low, 1e-12);
  HtmlTable table({{"", Align::left}, {"", Align::left}, {"difference"}});
  const auto bar = [&](double from, double to) {
    return HtmlCell::of_markup(fmt::format(
        "<span class=\"track\"><i class=\"{}\" style=\"left:{:.3f}%;width:{:.3f}%\"></i></span>",
        to >= from ? "more" : "less", 100 * (std::min(from, to) - low) / range,
        100 * std::abs(to - from) / range));
  };
  at = 0;
  for (const Difference& each : parts) {
    table.row({each.label, bar(at, at + each.more.value()), signed_seconds(each.more)});
    at += each.more.value();
  }
  table.total(
      {simulated ? "step, simulated" : "step", bar(0, whole.value()), signed_seconds(whole)});
  return table.text("class=\"waterfall\"");
}

std::string memory_words(const StepReport& plan, const StepReport& other) {
  const Bytes more = other.verdict.point - plan.verdict.point;
  std::string words =
      fmt::format("memory {}, {}", format_bytes(other.verdict.point), signed_bytes(more));
  const auto growth = memory_growth(plan, other);
  if (more > Bytes(0) && !growth.empty()) {
    words += fmt::format(", most of it {}", label_of(growth.front().first));
  }
  return words;
}

std::string against(const PageContent& page, std::size_t rank, const PlanRow& row) {
  const Plan& plan = *page.plan;
  const StepReport other =
      estimate(plan.model, plan.cluster, plan.job, plan.engine, row.candidate.layout);
  const std::string words =
      fmt::format("#{}: {}", rank, in_words(differing_fields(plan.layout, row.candidate.layout)));
  std::string note = memory_words(*page.estimate, other);
  std::optional<Seconds> more;
  if (row.simulated && page.report().timeline) {
    more = *row.simulated - page.report().step_time;
    note =
        fmt::format("simulated {}, {}; ", format_seconds(*row.simulated), signed_seconds(*more)) +
        note;
  }
  return "<div>\n<h3>" + escaped(words) + "</h3>\n<p class=\"quiet\">" + escaped(note) + "</p>\n" +
         waterfall(*page.estimate, other, more) + "</div>\n";
}

}  // namespace

std::string why_not_section(const PageContent& page) {
  if (page.answer == nullptr) return "";
  std::string made;
  std::size_t told = 0;
  const std::vector<PlanRow>& rows = page.answer->best;
  for (std::size_t i = 0; i < rows.size() && told < kLayouts; ++i) {
    if (is_the_plan(page, rows[i]) || rows[i].engine != page.plan->engine.name) continue;
    made += against(page, i + 1, rows[i]);
    ++told;
  }
  if (made.empty()) return "";
  return section(
      "why-not", "Why not another layout",
      "what the next best differ by: parts by the step-time model, the step as simulated",
      "<div class=\"others\">\n" + made + "</div>\n");
}

}  // namespace shardwise::sim
