#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/spec/plan/plan.h"

namespace shardwise::view {

/// Effect of a slider's change on the rows that are there.
enum class Change : std::uint8_t {
  layout,    // one layout is another: its numbers alone
  verdict,   // no price changes: what fits
  dollars,   // nor that: what an hour costs
  question,  // every number
};

/// A slider over the values that are valid.
struct Slider {
  std::string id;     // of its probe and of set(): "tp", "sequence_length"
  std::string label;  // "sequence length"
  std::vector<std::int64_t> steps;
  std::vector<std::string> texts;  // of the steps, as people type them
  std::size_t at = 0;              // of steps: the value of the plan
  std::string value;               // as people read it
  Change change = Change::layout;
};

struct SliderSection {
  std::string heading;  // "Mesh"
  std::vector<Slider> sliders;
};

/// The sliders of a plan. Every step of one leaves a plan that check_plan accepts.
std::vector<SliderSection> what_if_sliders(const Plan& plan);

/// The step that a text means, one of the slider's or another. \returns nothing where it is none
std::optional<std::int64_t> step_of(const Slider& slider, std::string_view typed);

/// The percent of a GPU's memory that are held back where about `usable` is left.
std::int64_t held_back_at(const ClusterSpec& cluster, Bytes usable);

/// The plan with a slider at a step; nothing where that is no plan. What follows from a field (data
/// parallelism from the degrees, the batch from its multiple) is changed with it.
std::optional<Plan> with_slider(const Plan& plan, const Slider& slider, std::int64_t step);

}  // namespace shardwise::view
