#include "planner/export/configuration/auto_of_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace shardwise {

std::optional<Assumption> fill_auto_of_model(const Framework& framework, const ModelSpec& model,
                                             Settings& settings) {
  std::vector<std::string> filled;
  for (const SettingSpec& spec : framework.settings) {
    if (!spec.of_model || !holds(spec.of_model->when, settings.values)) continue;
    if (std::ranges::find(settings.open, spec.name) == settings.open.end()) continue;
    const auto given = std::ranges::find_if(settings.unknown, [&](const GivenSetting* each) {
      return table_name(framework, *each).name == spec.name;
    });
    if (given == settings.unknown.end()) continue;
    const auto width = static_cast<double>(model.hidden_size);
    const double elements =
        spec.of_model->factor * (spec.of_model->power == 2 ? width * width : width);
    const std::string value = std::to_string(static_cast<std::int64_t>(elements));
    settings.values[spec.name] = value;
    settings.given[spec.name] = *given;
    std::erase(settings.open, spec.name);
    filled.push_back(fmt::format("{} {}", spec.name, value));
  }
  if (filled.empty()) return std::nullopt;
  return Assumption{
      "import.auto_of_model",
      fmt::format("\"auto\" is what transformers and accelerate fill in for hidden_size "
                  "{}: {}",
                  model.hidden_size, fmt::join(filled, ", ")),
      "transformers/integrations/deepspeed.py:202"};
}

}  // namespace shardwise
