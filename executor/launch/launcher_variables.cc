#include "executor/launch/launcher_variables.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

namespace shardwise::exec {
namespace {

std::optional<std::int64_t> whole_number(const std::string& text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const std::from_chars_result read = std::from_chars(text.data(), end, value);
  return read.ec == std::errc() && read.ptr == end ? std::optional(value) : std::nullopt;
}

std::string shown_value(const std::string& text) { return text.empty() ? "an empty value" : text; }

}  // namespace

void LauncherVariables::refuse(const char* name, std::string message, std::string hint) {
  problems_.push_back({"environment", 0, 0, name, std::move(message), std::move(hint)});
}

std::string LauncherVariables::text(const char* name) const {
  const char* const value = variable_(name);
  return value != nullptr ? value : "";
}

std::string LauncherVariables::required_text(const char* name, const std::string& hint) {
  if (!is_set(name)) {
    refuse(name, "is not set", hint);
  } else if (text(name).empty()) {
    refuse(name, "is empty", hint);
  }
  return text(name);
}

std::optional<std::int64_t> LauncherVariables::number(const char* name, std::int64_t least,
                                                      std::int64_t most) {
  if (!is_set(name)) return std::nullopt;
  const std::optional<std::int64_t> value = whole_number(text(name));
  if (value && *value >= least && *value <= most) return value;
  refuse(
      name,
      fmt::format("{} is not a whole number from {} to {}", shown_value(text(name)), least, most),
      "");
  return std::nullopt;
}

std::optional<std::int64_t> LauncherVariables::required_number(const char* name, std::int64_t least,
                                                               std::int64_t most) {
  if (!is_set(name)) {
    refuse(name, "is not set", fmt::format("a whole number from {} to {}", least, most));
  }
  return number(name, least, most);
}

void LauncherVariables::expect(const char* name, std::int64_t value, const std::string& as) {
  if (!is_set(name) || whole_number(text(name)) == value) return;
  refuse(name, fmt::format("{} contradicts {}, which gives {}", shown_value(text(name)), as, value),
         fmt::format("unset {}, or set it to {}", name, value));
}

}  // namespace shardwise::exec
