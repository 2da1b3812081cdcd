#include "planner/question/field_values.h"

#include <fmt/format.h>

#include <cstddef>

#include "planner/question/flags.h"
#include "planner/spec/plan_fields.h"
#include "planner/spec/utf8.h"

namespace shardwise {

std::vector<std::string> split_at(std::string_view text, char separator) {
  std::vector<std::string> parts{""};
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
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
      values.emplace_back(key, value);
    } else {
      problems.push_back(wrong_flag(flag, problem));
    }
  }
  if (!problems.empty()) return problems;
  return values;
}

}  // namespace shardwise
