#pragma once

#include <vector>

#include "gui/models/timeline/lane.h"

namespace shardwise::test {

/// A span as tests write it.
struct MadeSpan {
  double start = 0;
  double active = 0;
  double end = 0;
  sim::Paint kind = sim::Paint::forward;
  int microbatch = -1;
};

/// A lane of them on the compute stream.
view::Lane made_lane(const std::vector<MadeSpan>& spans);

}  // namespace shardwise::test
