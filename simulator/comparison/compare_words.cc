#include "simulator/comparison/compare_words.h"

#include <fmt/format.h>

#include "planner/spec/plan/plan_fields.h"

namespace shardwise::sim {

std::vector<std::string> differing_settings(const StepReport& report, const StepReport& other) {
  std::vector<std::string> found;
  const auto add = [&found](const std::string& key, const auto& here, const auto& there) {
    if (here != there) found.push_back(fmt::format("{} {} instead of {}", key, here, there));
  };
  for (const std::string& key : layout_keys()) {
    add(key, field_text(report.layout, key), field_text(other.layout, key));
  }
  add("global_batch_size", report.global_batch_size, other.global_batch_size);
  add("sequence_length", report.sequence_length, other.sequence_length);
  return found;
}

std::vector<std::string> other_work(const StepReport& report, const StepReport& other) {
  std::vector<std::string> found;
  if (report.model != other.model) found.emplace_back("models");
  if (report.global_batch_size != other.global_batch_size) found.emplace_back("batch sizes");
  if (report.sequence_length != other.sequence_length) found.emplace_back("sequence lengths");
  return found;
}

}  // namespace shardwise::sim
