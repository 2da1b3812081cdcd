#include "planner/question/field_values.h"

#include <fmt/format.h>

#include <cstddef>

#include "planner/question/flags.h"
#include "planner/spec/plan/plan_fields.h"
#include "planner/spec/text/split.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {

std::string typed_value(const std::string& field, const std::string& text) {
  return field == "ddp_bucket_size" && text == "0" ? "1" : text;
}

Result<FieldValues> read_values(const std::string& text, const std::string& flag) {
  Diagnostics problems;
  FieldValues values;
  Layout scratch;
  for (const std::string& part : split_at(text, ',')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos) {
      problems.push_back(
          wrong_flag(flag, fmt::format("'{}' has no value", shown(part)), "write it as tp=8"));
      continue;
    }
    const std::string key = part.substr(0, equals);
    const std::string value = part.substr(equals + 1);
    const std::string problem = set_field(scratch, key, value);
    if (problem.empty()) {
      values.emplace_back(key, typed_value(key, value));
    } else {
      problems.push_back(wrong_flag(flag, problem));
    }
  }
  if (!problems.empty()) return problems;
  return values;
}

}  // namespace shardwise
