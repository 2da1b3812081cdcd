#include "gui/models/question/question_limits.h"

#include <array>
#include <cstddef>

#include "answers/plan_question.h"

namespace shardwise::view {

std::string_view name_of(Objective objective) {
  return sim::kObjectiveNames[static_cast<std::size_t>(objective)];
}

const std::vector<Choice>& objective_choices() {
  static const std::vector<Choice> kChoices = [] {
    constexpr std::array<const char*, sim::kObjectiveNames.size()> kLines = {
        "the least time of a step", "the least memory of a GPU", "the least dollars a token",
        "the most tokens a dollar"};
    std::vector<Choice> choices;
    for (std::size_t i = 0; i < kLines.size(); ++i) {
      choices.push_back({std::string(sim::kObjectiveNames[i]), kLines[i]});
    }
    return choices;
  }();
  return kChoices;
}

}  // namespace shardwise::view
