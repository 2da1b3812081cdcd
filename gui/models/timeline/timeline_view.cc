#include "gui/models/timeline/timeline_view.h"

#include <fmt/format.h>

#include "planner/spec/text/number.h"

namespace shardwise::view {

std::string text_of(const LaneName& name) {
  return fmt::format("{}.{}", name.stage, name_of(name.stream));
}

std::optional<LaneName> read_lane_name(const std::string& text) {
  constexpr std::int64_t kMostStages = 1'000'000;
  const std::size_t dot = text.find('.');
  if (dot == std::string::npos) return std::nullopt;
  std::int64_t stage = 0;
  if (!read_integer(text.substr(0, dot), 0, kMostStages, stage).empty()) {
    return std::nullopt;
  }
  for (std::size_t s = 0; s < kStreams; ++s) {
    const auto stream = static_cast<Stream>(s);
    if (text.substr(dot + 1) == name_of(stream)) {
      return LaneName{static_cast<std::size_t>(stage), stream};
    }
  }
  return std::nullopt;
}

}  // namespace shardwise::view
