// Fields of the question and of the layout, by slider or typed.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gui/models/session/session.h"

namespace shardwise::view {
namespace {

const Slider* find_slider(const AppState& state, const std::string& id) {
  for (const SliderSection& section : state.sliders) {
    for (const Slider& slider : section.sliders) {
      if (slider.id == id) return &slider;
    }
  }
  return nullptr;
}

std::string unknown_field(const AppState& state, const std::string& id) {
  std::vector<std::string> known;
  for (const SliderSection& section : state.sliders) {
    for (const Slider& slider : section.sliders) known.push_back(slider.id);
  }
  return fmt::format("{} is no field that can change here: {}", id.empty() ? "nothing" : id,
                     fmt::join(known, ", "));
}

}  // namespace

/// The plan with a slider at a step. While a drag of it goes on, from where that began: what it
/// passes on the way leaves no traces.
std::optional<Plan> Session::slid(const Slider& slider, std::int64_t step) const {
  if (held_ && dragged_ == slider.id && !past_.empty()) {
    if (std::optional<Plan> plan = with_slider(past_.back().plan, slider, step)) return plan;
  }
  return with_slider(state_.plan, slider, step);
}

void Session::slide(const std::string& id, std::size_t step) {
  const Slider* const slider = find_slider(state_, id);
  if (slider == nullptr || step >= slider->steps.size() || step == slider->at) return;
  const Change change = slider->change;
  std::optional<Plan> plan = slid(*slider, slider->steps[step]);
  if (plan) drag(*std::move(plan), change, id);
}

std::string Session::type_field(const std::string& id, const std::string& text) {
  const Slider* const slider = find_slider(state_, id);
  if (slider == nullptr) return unknown_field(state_, id);
  if (text.empty()) return fmt::format("{} needs a value, as {} {}", id, id, slider->texts.back());
  const std::optional<std::int64_t> step = step_of(*slider, text);
  std::optional<Plan> plan = step ? slid(*slider, *step) : std::nullopt;
  if (!plan) return fmt::format("{}: use one of {}", id, fmt::join(slider->texts, ", "));
  const Change change = slider->change;
  if (*step != slider->steps[slider->at]) drag(*std::move(plan), change, id);
  return "";
}

}  // namespace shardwise::view
