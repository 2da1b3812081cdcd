#include "planner/export/framework/installed_version.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "planner/spec/text/number.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

/// The numbers of a release: 0, 20, 0 of "0.20.0rc1+cu130". Nothing where it does not begin so.
std::optional<std::vector<std::int64_t>> release_of(const std::string& version) {
  std::vector<std::int64_t> numbers;
  std::size_t at = 0;
  while (true) {
    const std::size_t end = version.find_first_not_of("0123456789", at);
    const std::string digits = version.substr(at, end == std::string::npos ? end : end - at);
    const std::optional<std::int64_t> number =
        digits.size() > 9 ? std::nullopt : parse_integer(digits);
    if (!number) break;  // "2.0.dev1": what follows is no release
    numbers.push_back(*number);
    if (end == std::string::npos || version[end] != '.') break;
    at = end + 1;
  }
  const bool plain = std::ranges::all_of(version, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view(".+-_").find(c) != std::string_view::npos;
  });
  if (numbers.empty() || !plain || version.find("..") != std::string::npos) return std::nullopt;
  while (numbers.size() > 1 && numbers.back() == 0) numbers.pop_back();
  return numbers;
}

}  // namespace

Result<std::string> version_note(const Framework& framework, const std::string& installed,
                                 const std::string& flag) {
  if (installed.empty()) return std::string();
  const auto theirs = release_of(installed);
  if (!theirs) {
    return Diagnostic{"command line",
                      0,
                      0,
                      flag,
                      fmt::format("{} is no version", shown(installed)),
                      fmt::format("as pip lists it, for example {}", framework.version)};
  }
  const auto ours = release_of(framework.version);
  if (!ours || *theirs == *ours) return std::string();
  return fmt::format(
      "{} {} is {} than {}, from which its settings and rules were read: names, defaults and "
      "refusals may differ",
      framework.label, shown(installed), *theirs > *ours ? "newer" : "older", framework.version);
}

}  // namespace shardwise
