#include "cli/model_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "planner/model/parameter_counts.h"
#include "planner/spec/format.h"

namespace shardwise::cli {
std::string parameters_words(const ModelSpec& model) {
  const auto [total, active] = reported_parameters(model);
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

std::vector<Assumption> absent_keys_assumption(const ModelSpec& model,
                                               const std::vector<std::string>& absent_keys) {
  if (absent_keys.empty()) return {};
  return {{"model.absent_keys",
           fmt::format("keys that the configuration of {} lacks, as transformers takes them: {}",
                       model.name, fmt::join(absent_keys, ", ")),
           "docs/models.md, Families"}};
}

}  // namespace shardwise::cli
