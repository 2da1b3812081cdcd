#include "simulator/drawing/timeline_blocks.h"

#include <fmt/format.h>

#include "planner/spec/text/format.h"
#include "simulator/drawing/palette.h"

namespace shardwise::sim {

std::string words_of(const Block& block) {
  std::string words(kPaints[static_cast<std::size_t>(block.paint)].name);
  if (block.microbatch >= 0) words += fmt::format(", micro-batch {}", block.microbatch);
  if (block.chunk > 0) words += fmt::format(", chunk {}", block.chunk);
  return words + fmt::format(": {}, from {}", format_seconds(Seconds(block.to - block.from)),
                             format_seconds(Seconds(block.from)));
}

std::vector<Block> blocks_of(const SpanColumns& spans, double least_gap) {
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const Block made = {spans.active_start[i], spans.end[i], spans.kind[i], spans.microbatch[i],
                        spans.chunk[i]};
    if (!blocks.empty()) {
      Block& last = blocks.back();
      if (last.paint == made.paint && last.microbatch == made.microbatch &&
          last.chunk == made.chunk && made.from - last.to < least_gap) {
        last.to = made.to;
        continue;
      }
    }
    blocks.push_back(made);
  }
  return blocks;
}

}  // namespace shardwise::sim
