#include "simulator/drawing/timeline_colours.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace shardwise::sim {
namespace {

std::string shade_name(std::size_t paint, std::size_t shade) {
  return shade == 0 ? fmt::format("{}", paint) : fmt::format("{}-{}", paint, shade);
}

}  // namespace

std::size_t TimelineColours::shade_of(const Block& block) {
  return std::min(static_cast<std::size_t>(std::max<std::int16_t>(block.chunk, 0)), kShades - 1);
}

std::string TimelineColours::block_class(const Block& block) {
  const auto paint = static_cast<std::size_t>(block.paint);
  const std::size_t shade = shade_of(block);
  used_.at(paint).at(shade) = true;
  return "b" + shade_name(paint, shade);
}

std::string TimelineColours::number_class(const Block& block) {
  return "number i" + shade_name(static_cast<std::size_t>(block.paint), shade_of(block));
}

bool TimelineColours::used(Paint paint) const {
  const auto& shades = used_.at(static_cast<std::size_t>(paint));
  return std::ranges::find(shades, true) != shades.end();
}

std::string TimelineColours::legend_class(Paint paint) {
  return "b" + shade_name(static_cast<std::size_t>(paint), 0);
}

std::string TimelineColours::styles(Ground ground) const {
  std::string rules;
  for (std::size_t paint = 0; paint < used_.size(); ++paint) {
    if (!used(static_cast<Paint>(paint))) continue;
    for (std::size_t s = 0; s < kShades; ++s) {
      if (s > 0 && !used_[paint][s]) continue;  // the legend has the first
      const std::string colour = shade(static_cast<Paint>(paint), static_cast<int>(s), ground);
      fmt::format_to(std::back_inserter(rules),
                     ".timeline .b{0}{{fill:{1}}}.timeline .i{0}{{fill:{2}}}", shade_name(paint, s),
                     colour, ink_on(colour));
    }
  }
  return rules;
}

}  // namespace shardwise::sim
