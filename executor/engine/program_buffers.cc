#include "executor/engine/program_buffers.h"

#include <algorithm>

namespace shardwise::exec {

ItemId ProgramBuffers::find(OpId op, MemoryCategory category, std::int64_t bytes) {
  const ProgramOp& each = program_.operations[op];
  const auto freed = program_.of(each.frees);
  for (const IndexRange range : {each.allocates, each.uses}) {
    for (const std::uint32_t b : program_.of(range)) {
      const ProgramBuffer& buffer = program_.buffers[b];
      const bool lasts = std::ranges::find(freed, b) == freed.end();
      if (lasts && buffer.category == category && buffer.bytes >= bytes) return item_of(b);
    }
  }
  return kNoItem;
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
