#include "simulator/timeline_blocks.h"

#include <fmt/format.h>

#include "planner/spec/text/format.h"

namespace shardwise::sim {

Paint paint_of(const ProgramOp& op) {
  switch (op.stream) {
    case Stream::tensor_parallel:
    case Stream::context_parallel:
    case Stream::expert_parallel:
      return Paint::layer;
    case Stream::send:
    case Stream::receive:
      return Paint::message;
    default:
      break;
  }
  switch (op.role) {
    case OpRole::forward:
      return Paint::forward;
    case OpRole::backward:
    case OpRole::backward_input:
      return Paint::backward;
    case OpRole::backward_weight:
      return Paint::weight;
    case OpRole::recompute:
      return Paint::recompute;
    case OpRole::gather:
    case OpRole::gather_outer:
    case OpRole::gather_updated:
      return Paint::gather;
    case OpRole::reduce:
    case OpRole::reduce_outer:
      return Paint::reduce;
    case OpRole::finalize:
    case OpRole::gradient_norm:
    case OpRole::optimizer:
      return Paint::optimizer;
    default:
      return Paint::copy;
  }
}

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
