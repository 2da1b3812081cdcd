#include "planner/export/launch/host_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/text/number.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

constexpr std::string_view kBlanks = " \t\r\v\f";

/// The line without what stands around it; "" of a comment.
std::string_view stripped(std::string_view line) {
  const std::size_t from = line.find_first_not_of(kBlanks);
  if (from == std::string_view::npos || line[from] == '#') return "";
  return line.substr(from, line.find_last_not_of(kBlanks) + 1 - from);
}

std::optional<Host> host_of(std::string_view line) {
  constexpr std::string_view kSlots = "slots=";
  const std::size_t end = line.find_first_of(kBlanks);
  if (end == std::string_view::npos) return std::nullopt;
  std::string_view rest = line.substr(line.find_first_not_of(kBlanks, end));
  if (!rest.starts_with(kSlots)) return std::nullopt;
  rest.remove_prefix(kSlots.size());
  rest = rest.substr(0, rest.find_first_not_of("0123456789"));
  const std::optional<std::int64_t> slots = parse_integer(rest);
  if (!slots || *slots > kMostGpus) return std::nullopt;
  return Host{std::string(line.substr(0, end)), *slots};
}

std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return stripped(line);
}

}  // namespace

bool is_host_file(std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (!line.empty()) return host_of(line).has_value();
  }
  return false;
}

Result<HostFile> read_host_file(std::string_view text, const std::string& file) {
  HostFile made{file, {}};
  std::set<std::string> names;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = take_line(text);
    if (line.empty()) continue;
    std::optional<Host> host = host_of(line);
    if (!host) {
      return Diagnostic{file,
                        number,
                        0,
                        "",
                        fmt::format("{} is no host", shown(line)),
                        "lines of a hostfile are NAME slots=N"};
    }
    if (!names.insert(host->name).second) {
      return Diagnostic{file,
                        number,
                        0,
                        "",
                        fmt::format("{} stands there twice", shown(host->name)),
                        "one line for each host"};
    }
    made.hosts.push_back(*std::move(host));
  }
  return made;
}

}  // namespace shardwise
