#include "planner/model/parameter_words.h"

#include <fmt/format.h>

#include "planner/model/parameter_counts.h"
#include "planner/spec/text/format.h"

namespace shardwise {

std::string parameters_words(const ModelSpec& model) {
  return parameters_words(reported_parameters(model));
}

std::string parameters_words(const ReportedParameters& counts) {
  const auto [total, active] = counts;
  std::string text = fmt::format("{} parameters", format_scaled(static_cast<double>(total)));
  if (active < total) {
    text += fmt::format(", {} active", format_scaled(static_cast<double>(active)));
  }
  return text;
}

ReportedParameters reported_parameters(const ModelSpec& model) {
  const ParameterCounts counts = count_parameters(model);
  return {.parameters = counts.main_model(), .active_parameters = counts.active};
}

}  // namespace shardwise
