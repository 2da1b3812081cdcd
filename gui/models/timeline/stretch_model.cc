#include "gui/models/timeline/stretch_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "planner/spec/text/format.h"
#include "planner/spec/text/signed_format.h"

namespace shardwise::view {

std::optional<sim::PriceScale> read_scale(const Plan& plan, const std::string& word,
                                          double factor) {
  const auto paint = std::ranges::find(sim::kPaintWords, word);
  if (paint != sim::kPaintWords.end()) {
    return sim::PriceScale{static_cast<sim::Paint>(paint - sim::kPaintWords.begin()), factor};
  }
  const auto axis = std::ranges::find(kTrafficAxes, word);
  if (axis != kTrafficAxes.end() && axis != kTrafficAxes.begin()) {
    return sim::PriceScale{static_cast<TrafficAxis>(axis - kTrafficAxes.begin()), factor};
  }
  const auto tier = std::ranges::find(plan.cluster.tiers, word, &LinkTier::name);
  if (tier == plan.cluster.tiers.end()) return std::nullopt;
  return sim::PriceScale{
      sim::TierNumber{static_cast<std::size_t>(tier - plan.cluster.tiers.begin())}, factor};
}

std::string scale_words(const Plan& plan) {
  std::vector<std::string> words(sim::kPaintWords.begin(), sim::kPaintWords.end());
  words.insert(words.end(), kTrafficAxes.begin() + 1, kTrafficAxes.end());
  for (const LinkTier& tier : plan.cluster.tiers) words.push_back(tier.name);
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string scale_word(const Lane& lane, std::size_t span) {
  const sim::Paint kind = lane.spans.kind[span];
  if (kind == sim::Paint::layer) return std::string(name_of(lane.spans.axis()));
  return std::string(sim::kPaintWords[static_cast<std::size_t>(kind)]);
}

StretchWorth worth_of(const Stretch& stretch, const StepReport& before) {
  StretchWorth worth;
  worth.factor = stretch.factor;
  worth.before = before.step_time;
  if (!stretch.step || !stretch.step->report) {
    worth.text =
        fmt::format("{} at {:.2f} of its time: simulating …", stretch.word, stretch.factor);
    return worth;
  }
  const StepReport& after = *stretch.step->report;
  worth.after = after.step_time;
  worth.change = after.step_time / before.step_time - 1;
  worth.dollars = after.dollars_per_1e9_tokens - before.dollars_per_1e9_tokens;
  worth.text = fmt::format("{} at {:.2f} of its time: the step takes {} in place of {} ({})",
                           stretch.word, stretch.factor, format_seconds(worth.after),
                           format_seconds(worth.before), signed_percent(worth.change));
  if (before.dollars_per_1e9_tokens > 0) {
    worth.text += fmt::format(", a billion tokens {} {}", format_dollars(std::abs(worth.dollars)),
                              worth.dollars <= 0 ? "less" : "more");
  }
  return worth;
}

}  // namespace shardwise::view
