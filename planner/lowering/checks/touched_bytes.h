#pragma once

#include <vector>

#include "planner/lowering/checks/arena_layout.h"
#include "planner/lowering/checks/byte_map.h"
#include "planner/lowering/stage/stage_builder.h"

namespace shardwise {

/// Which operations touched the bytes of a buffer: who wrote them last, and who read them since.
class TouchedBytes {
 public:
  /// An earlier touch that nothing orders before a later one.
  struct Race {
    OpId op = kNone;  // of the earlier one; kNone: there is no race
    bool writes = false;
  };

  /// Notes a touch of `op`, unless it races with one that was noted before: of the two one writes,
  /// and `order` does not have the earlier one over before the later begins. Touches of one
  /// operation do not race.
  Race touch(const DependencyOrder& order, OpId op, const ByteRange& bytes, bool writes);

 private:
  struct Touches {
    OpId writer = kNone;
    std::vector<OpId> readers;  // since; of those ordered one after the other the last alone
  };
  ByteMap<Touches> touches_;
};

}  // namespace shardwise
