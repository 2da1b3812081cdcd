#include "simulator/timeline_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "simulator/step_report.h"

namespace shardwise::sim {
namespace {

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

/// Red, green and blue of "#3b76b5", 0 to 255.
std::array<int, 3> parts_of(std::string_view colour) {
  std::array<int, 3> parts{};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const char* first = colour.data() + 1 + 2 * i;
    std::from_chars(first, first + 2, parts[i], 16);
  }
  return parts;
}

}  // namespace

std::string colour_of(const Block& block) {
  std::array<int, 3> parts = parts_of(kPaints[static_cast<std::size_t>(block.paint)].colour);
  const double share = std::max(0.55, 1 - 0.2 * block.chunk);
  for (int& part : parts) part = static_cast<int>(std::lround(255 - share * (255 - part)));
  return fmt::format("#{:02x}{:02x}{:02x}", parts[0], parts[1], parts[2]);
}

bool is_pale(std::string_view colour) {
  const std::array<int, 3> parts = parts_of(colour);
  // Luma of ITU-R BT.601.
  return 0.299 * parts[0] + 0.587 * parts[1] + 0.114 * parts[2] > 160;
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
