#include "tests/gui/made_lane.h"

#include <utility>

namespace shardwise::test {

view::Lane made_lane(const std::vector<MadeSpan>& spans) {
  sim::SpanColumns columns;
  columns.reserve(spans.size());
  for (const MadeSpan& each : spans) {
    ProgramOp op;
    op.microbatch = each.microbatch;
    columns.push_back({each.start, each.start, each.active, each.end}, 0, op,
                      static_cast<std::uint32_t>(columns.size()));
    columns.kind.back() = each.kind;
  }
  return view::make_lane(0, 0, std::move(columns));
}

}  // namespace shardwise::test
