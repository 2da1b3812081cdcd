#pragma once

#include <array>
#include <string>

#include "simulator/drawing/palette.h"
#include "simulator/drawing/timeline_blocks.h"

namespace shardwise::sim {

/// The styles of a timeline's blocks by class, so that a page may be light or dark.
class TimelineColours {
 public:
  /// The class that fills a block; its colour is then in styles().
  std::string block_class(const Block& block);
  /// Class of the text on such a block: "number i0".
  static std::string number_class(const Block& block);
  bool used(Paint paint) const;
  /// Class of a paint's field in the legend.
  static std::string legend_class(Paint paint);
  /// Rules of all classes used, for one ground.
  std::string styles(Ground ground) const;

 private:
  static constexpr std::size_t kShades = 4;  // later chunks look like the last
  static std::size_t shade_of(const Block& block);
  std::array<std::array<bool, kShades>, kPaints.size()> used_{};
};

}  // namespace shardwise::sim
