#pragma once

#include <cstdint>
#include <vector>

#include "executor/engine/arena.h"
#include "planner/spec/step_program.h"

namespace shardwise::exec {

/// The program's own buffers as items of a rank's memory: as large as the plan has them, and there
/// from the operation that allocates them to the one that frees them.
class ProgramBuffers {
 public:
  ProgramBuffers(const StageProgram& program, MemoryItems& items)
      : program_(program), items_(items), made_(program.buffers.size(), kNoItem) {}

  /// The first buffer of a category that the operation allocates or uses, that outlives it and has
  /// room for so many bytes; kNoItem when the program has none.
  ItemId find(OpId op, MemoryCategory category, std::int64_t bytes);
  /// The last of them: what an all-to-all brings, and its sums, come after what is sent.
  ItemId find_last(OpId op, MemoryCategory category, std::int64_t bytes);

 private:
  std::vector<std::uint32_t> fitting(OpId op, MemoryCategory category, std::int64_t bytes) const;
  ItemId item_of(std::uint32_t buffer);

  const StageProgram& program_;
  MemoryItems& items_;
  std::vector<ItemId> made_;  // by buffer
};

}  // namespace shardwise::exec
