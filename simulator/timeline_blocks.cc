#include "simulator/timeline_blocks.h"

#include <fmt/format.h>

#include "planner/spec/format.h"
#include "simulator/step_report.h"

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

std::vector<Block> blocks_of(const StageRunTimes& run, Stream stream, double least_gap) {
  const auto which = static_cast<std::size_t>(stream);
  std::vector<Block> blocks;
  for (std::uint32_t i = run.work->stream_begin[which]; i < run.work->stream_begin[which + 1];
       ++i) {
    const std::uint32_t index = run.work->operations[i].index;
    const ProgramOp& op = run.work->program->operations[index];
    const Block made = {span_of(run, index).met, run.end[index], paint_of(op), op.microbatch,
                        op.chunk};
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
