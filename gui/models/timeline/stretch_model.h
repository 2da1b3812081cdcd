#pragma once

#include <optional>
#include <string>

#include "gui/models/timeline/timeline_model.h"

namespace shardwise::view {

/// Scale of "backward" (a kind of operation), "tp" (an axis) or "infiniband" (a tier of the
/// cluster) in a step; nothing for other words.
std::optional<sim::PriceScale> read_scale(const Plan& plan, const std::string& word, double factor);
/// All such words of a plan: "forward, backward, …".
std::string scale_words(const Plan& plan);

/// The word of a span: its kind or, where a kind has several axes, the axis of its stream.
std::string scale_word(const Lane& lane, std::size_t span);

/// Worth of a stretched step.
struct StretchWorth {
  double factor = 1;
  Seconds before;
  Seconds after;
  double change = 0;   // of the step: -0.1 is a tenth shorter
  double dollars = 0;  // more for a billion tokens; negative: saved
  std::string text;  // "backward at 0.50 of its time: the step takes 7.10 s in place of 8.24 s …"
};
StretchWorth worth_of(const Stretch& stretch, const StepReport& before);

}  // namespace shardwise::view
