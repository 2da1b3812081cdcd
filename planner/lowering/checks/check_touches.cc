#include "planner/lowering/checks/check_touches.h"

#include <fmt/format.h>

#include "planner/lowering/checks/arena_layout.h"

namespace shardwise {
namespace {

/// Whether an operation touches what is another micro-batch's. Gathered weights and gradients on
/// their way stay over micro-batches, whichever made them.
bool is_of_another(const ProgramBuffer& buffer, const ProgramOp& op) {
  const bool stays = buffer.category == MemoryCategory::gathered_weights ||
                     buffer.category == MemoryCategory::gradient_staging;
  return !stays && buffer.microbatch >= 0 && op.microbatch >= 0 &&
         buffer.microbatch != op.microbatch;
}

}  // namespace

std::vector<std::string> check_touches(const StageProgram& stage) {
  constexpr std::size_t kMost = 20;
  std::vector<std::string> problems;
  const DependencyOrder order(stage);
  std::vector<OpId> last(stage.buffers.size(), kNone);
  std::vector<bool> gone(stage.buffers.size(), false);
  const auto touch = [&](BufferId b, OpId op, bool allocates) {
    const OpId before = last[b];
    last[b] = op;
    if (problems.size() >= kMost || before == op) return;
    const std::string name = name_of(stage, stage.operations[op]);
    if (is_of_another(stage.buffers[b], stage.operations[op])) {
      problems.push_back(fmt::format(
          "stage {}: {} touches buffer {} ({}, {} bytes) of micro-batch {}", stage.stage, name, b,
          name_of(stage.buffers[b].category), stage.buffers[b].bytes, stage.buffers[b].microbatch));
      return;
    }
    if (before == kNone) {
      if (allocates || stage.buffers[b].resident) return;
      problems.push_back(
          fmt::format("stage {}: {} uses buffer {} before it is allocated", stage.stage, name, b));
    } else if (gone[b] || !order.before(before, op)) {
      problems.push_back(fmt::format("stage {}: {} touches buffer {} ({}, {} bytes), which {} {}",
                                     stage.stage, name, b, name_of(stage.buffers[b].category),
                                     stage.buffers[b].bytes,
                                     name_of(stage, stage.operations[before]),
                                     gone[b] ? "freed" : "may touch at the same time"));
    }
  };
  for (OpId i = 0; i < stage.operations.size(); ++i) {
    const ProgramOp& op = stage.operations[i];
    for (const BufferId b : stage.of(op.allocates)) touch(b, i, true);
    for (const BufferId b : stage.of(op.uses)) touch(b, i, false);
    for (const BufferId b : stage.of(op.frees)) {
      touch(b, i, false);
      gone[b] = true;
    }
  }
  return problems;
}

}  // namespace shardwise
