#include "tests/support/placeholders.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"
#include "planner/spec/json/catalogue.h"
#include "planner/spec/plan/names.h"

namespace shardwise::test {

std::string filled(std::string text) {
  const std::pair<std::string, std::string> values[] = {
      {"<model types>", fmt::format("{}", fmt::join(known_model_types(), ", "))},
      {"<models>", std::to_string(catalogue_names("models").size())},
      {"<clusters>", std::to_string(catalogue_names("clusters").size())},
      {"<gpus>", std::to_string(catalogue_names("gpus").size())},
      {"<schedules>", fmt::format("{}", fmt::join(names_of<PipelineSchedule>(), ", "))},
      {"<engines>", fmt::format("{}", fmt::join(engine_names(), ", "))}};
  for (const auto& [name, value] : values) {
    for (std::size_t at; (at = text.find(name)) != std::string::npos;) {
      text.replace(at, name.size(), value);
    }
  }
  return text;
}

}  // namespace shardwise::test
