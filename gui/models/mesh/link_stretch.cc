#include "gui/models/mesh/link_stretch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "answers/simulated_steps.h"
#include "gui/models/question/layout_text.h"
#include "planner/estimate/gpu_hour_price.h"
#include "planner/search/advice/faster_links.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/signed_format.h"
#include "simulator/clock/simulate.h"

namespace shardwise::view {
namespace {

constexpr int kCurveSteps = 6;  // to either side of 1

/// "56.5 s to 55.1 s, -2.5 %".
std::string times_text(Seconds before, Seconds after) {
  return fmt::format("{} to {}, {}", format_seconds(before), format_seconds(after),
                     signed_percent(after / before - 1));
}

std::vector<std::string> layout_words(const Layout& layout) {
  std::vector<std::string> words;
  std::istringstream text(layout_text(layout));
  for (std::string word; text >> word;) words.push_back(word);
  return words;
}

/// "pp4 vpp2 instead of pp8": what two layouts do not share.
std::string change_of_layout(const Layout& before, const Layout& after) {
  const auto only = [](const std::vector<std::string>& of, const std::vector<std::string>& other) {
    std::vector<std::string> found;
    for (const std::string& each : of) {
      if (std::ranges::find(other, each) == other.end()) found.push_back(each);
    }
    return found;
  };
  const std::vector<std::string> old = layout_words(before);
  const std::vector<std::string> now = layout_words(after);
  const std::vector<std::string> gained = only(now, old);
  const std::vector<std::string> lost = only(old, now);
  if (gained.empty() && lost.empty()) return "another layout of the same degrees";
  if (gained.empty()) return fmt::format("one without {}", fmt::join(lost, " "));
  if (lost.empty()) return fmt::format("one with {}", fmt::join(gained, " "));
  return fmt::format("{} instead of {}", fmt::join(gained, " "), fmt::join(lost, " "));
}

}  // namespace

ClusterSpec stretched(const ClusterSpec& cluster, const std::vector<double>& factors) {
  ClusterSpec made = cluster;
  for (std::size_t tier = 0; tier < factors.size(); ++tier) {
    if (factors[tier] != 1) made = with_bandwidth(made, tier, factors[tier]);
  }
  return made;
}

Plan stretched(Plan plan, const std::vector<double>& factors) {
  plan.cluster = stretched(plan.cluster, factors);
  return plan;
}

std::vector<StretchCurve> stretch_curves(const Plan& plan, const Predictions& by) {
  std::vector<StretchCurve> curves;
  for (std::size_t tier = 0; tier < reached_tiers(plan.cluster); ++tier) {
    StretchCurve& curve = curves.emplace_back();
    for (int step = -kCurveSteps; step <= kCurveSteps; ++step) {
      const double factor = std::pow(kMostStretch, static_cast<double>(step) / kCurveSteps);
      Plan there = plan;
      there.cluster = with_bandwidth(plan.cluster, tier, factor);
      curve.factors.push_back(factor);
      curve.step_times.push_back(by.step_time(there));
    }
  }
  return curves;
}

std::optional<Seconds> quick_simulation(const Plan& plan, const Predictions& by) {
  if (sim::layer_passes_of_step(plan) > sim::kMostLayerPasses) return std::nullopt;
  return sim::simulated_step(plan) * by.slower(plan);
}

std::string stretch_text(const Plan& plan, const LinkStretch& stretch, std::size_t tier) {
  const BytesPerSecond bandwidth = plan.cluster.tiers[tier].bandwidth;
  const double factor = stretch.factors[tier];
  if (factor == 1) return format_bandwidth(bandwidth);
  return fmt::format("{} x {:.3g} = {}", format_bandwidth(bandwidth), factor,
                     format_bandwidth(factor * bandwidth));
}

std::vector<std::string> stretch_words(const Plan& plan, const StepReport& before,
                                       const LinkStretch& stretch, const StepReport* winner) {
  if (!stretch.report) return {"drag a bandwidth to see what it is worth"};
  const StepReport& after = *stretch.report;
  const std::string estimated = times_text(before.step_time, after.step_time);
  std::vector<std::string> words = {"step " + estimated};
  if (before.dollars_per_1e9_tokens > 0) {
    words.push_back(
        fmt::format("1e9 tokens {} to {}, {}", format_dollars(before.dollars_per_1e9_tokens),
                    format_dollars(after.dollars_per_1e9_tokens),
                    signed_dollars(after.dollars_per_1e9_tokens - before.dollars_per_1e9_tokens)));
    // Tokens cost the same where the price of an hour grows as the step shrinks.
    const double price = gpu_hour_price(plan.cluster).value_or(0);
    const double worth = price * (before.step_time / after.step_time - 1);
    words.push_back(
        fmt::format("worth {} for a GPU-hour of {}", signed_dollars(worth), format_dollars(price)));
  }
  if (stretch.simulated && stretch.simulated_before) {
    const std::string simulated = times_text(*stretch.simulated_before, *stretch.simulated);
    if (simulated == estimated) {
      words.front() += ", simulated the same";
    } else {
      words.push_back("simulated " + simulated);
    }
  }
  if (stretch.best && winner != nullptr) {
    words.push_back(stretch.best->layout == winner->layout
                        ? "the same layout stays the best"
                        : fmt::format("the best is then {}, {}",
                                      format_seconds(stretch.best->step_time),
                                      change_of_layout(winner->layout, stretch.best->layout)));
  }
  return words;
}

std::string stretch_reason(const std::string& words) {
  if (words.starts_with("step")) {
    return "the estimate of this layout again, with the data sheet's bandwidth of the link so "
           "many\n"
           "times as large; latencies and shares of it that collectives reach stay "
           "(docs/search.md)";
  }
  if (words.starts_with("1e9")) return "price of a GPU-hour x GPUs x 1e9 tokens / tokens an hour";
  if (words.starts_with("worth")) {
    return "price of a GPU-hour x (step before / step after - 1):\n"
           "with that much more for an hour, tokens cost what they did";
  }
  if (words.starts_with("simulated"))
    return "both steps on the simulator's clock (docs/simulator.md)";
  return "the best layout of a search with such links";
}

}  // namespace shardwise::view
