#include "executor/engine/arena.h"

#include <algorithm>

namespace shardwise::exec {

std::vector<MemoryItem> memory_items(const StageProgram& program) {
  std::vector<MemoryItem> items;
  items.reserve(program.buffers.size());
  for (const ProgramBuffer& buffer : program.buffers) {
    items.push_back({buffer.category, {buffer.bytes, kNone, kNone}, kNone});
  }
  for (OpId op = 0; op < program.operations.size(); ++op) {
    for (const BufferId b : program.of(program.operations[op].allocates)) {
      (program.buffers[b].outlives ? items[b].made_by : items[b].life.first) = op;
    }
    for (const BufferId b : program.of(program.operations[op].frees)) items[b].life.last = op;
  }
  return items;
}

void Arena::place(const StageProgram& program, const std::vector<MemoryItem>& items) {
  std::vector<ArenaItem> lives;
  lives.reserve(items.size());
  for (const MemoryItem& item : items) lives.push_back(item.life);
  layouts_.push_back(arena_layout(program, DependencyOrder(program), lives));
  bytes_ = std::max(bytes_, layouts_.back().bytes);
}

void Arena::allocate(Device& device) { memory_ = device.allocate(bytes_, MemorySpace::device); }

}  // namespace shardwise::exec
