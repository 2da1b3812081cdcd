#include "tests/gui/picture_difference.h"

#include <cstdlib>

namespace shardwise::test {

std::size_t differing_channels(const view::Image& a, const view::Image& b) {
  std::size_t different = 0;
  for (std::size_t i = 0; i < a.pixels.size(); ++i) {
    if (std::abs(int{a.pixels[i]} - int{b.pixels[i]}) > 1) ++different;
  }
  return different;
}

}  // namespace shardwise::test
