#include "executor/launch/together.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "executor/comm/notice.h"

namespace shardwise::exec {
namespace {

// A problem on its way: its parts, each ended by what none of them has.
constexpr char kEnd = '\0';

std::string packed(const Diagnostics& problems) {
  std::string text;
  for (const Diagnostic& each : problems) {
    for (const std::string& part :
         {each.file, std::to_string(each.line), std::to_string(each.column), each.path,
          each.message, each.hint}) {
      text += part.substr(0, part.find(kEnd)) + kEnd;
    }
  }
  return text;
}

Diagnostics unpacked(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0, end = 0; at < text.size() && end != std::string::npos; at = end + 1) {
    end = text.find(kEnd, at);
    parts.push_back(text.substr(at, end - at));
  }
  Diagnostics problems;
  for (std::size_t i = 0; i + 6 <= parts.size(); i += 6) {
    problems.push_back({parts[i], std::atoi(parts[i + 1].c_str()), std::atoi(parts[i + 2].c_str()),
                        parts[i + 3], parts[i + 4], with_indented_lines(parts[i + 5])});
  }
  return problems;
}

}  // namespace

Together::Together(World& world) : rank_(world.rank()), ranks_(world.size()) {
  everyone_ = world.control_group(all_ranks(world), Control::preparation);
}

Diagnostics Together::gather(const Diagnostics& own) const {
  if (!everyone_) return own;
  std::vector<std::string> known;
  Diagnostics all;
  for (const std::string& text : all_gather_texts(*everyone_, packed(own))) {
    for (const Diagnostic& each : unpacked(text)) {
      if (std::ranges::find(known, to_string(each)) != known.end()) continue;
      known.push_back(to_string(each));
      all.push_back(each);
    }
  }
  return all;
}

std::string Together::from_first(const std::string& own) const {
  if (!everyone_) return own;
  return all_gather_texts(*everyone_, rank_ == 0 ? own : "").front();
}

}  // namespace shardwise::exec
