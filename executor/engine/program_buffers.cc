#include "executor/engine/program_buffers.h"

#include <algorithm>

namespace shardwise::exec {

std::vector<std::uint32_t> ProgramBuffers::fitting(OpId op, MemoryCategory category,
                                                   std::int64_t bytes) const {
  const ProgramOp& each = program_.operations[op];
  const auto freed = program_.of(each.frees);
  std::vector<std::uint32_t> found;
  for (const IndexRange range : {each.allocates, each.uses}) {
    for (const std::uint32_t b : program_.of(range)) {
      const ProgramBuffer& buffer = program_.buffers[b];
      const bool lasts = std::ranges::find(freed, b) == freed.end();
      if (lasts && buffer.category == category && buffer.bytes >= bytes) found.push_back(b);
    }
  }
  return found;
}

ItemId ProgramBuffers::find(OpId op, MemoryCategory category, std::int64_t bytes) {
  const std::vector<std::uint32_t> found = fitting(op, category, bytes);
  return found.empty() ? kNoItem : item_of(found.front());
}

ItemId ProgramBuffers::find_last(OpId op, MemoryCategory category, std::int64_t bytes) {
  const std::vector<std::uint32_t> found = fitting(op, category, bytes);
  return found.empty() ? kNoItem : item_of(found.back());
}

ItemId ProgramBuffers::item_of(std::uint32_t buffer) {
  if (made_[buffer] != kNoItem) return made_[buffer];
  const ProgramBuffer& spec = program_.buffers[buffer];
  const ItemId item = items_.item(spec.category, spec.bytes);
  for (OpId op = 0; op < program_.operations.size(); ++op) {
    const ProgramOp& each = program_.operations[op];
    for (const IndexRange range : {each.allocates, each.uses, each.frees}) {
      const auto buffers = program_.of(range);
      if (std::ranges::find(buffers, buffer) != buffers.end()) items_.touch(item, op);
    }
  }
  made_[buffer] = item;
  return item;
}

}  // namespace shardwise::exec
