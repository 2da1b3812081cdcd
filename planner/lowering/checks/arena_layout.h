#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/lowering/stage/stage_builder.h"
#include "planner/spec/program/step_program.h"

namespace shardwise {

/// Something that takes a place in a rank's arena from the start of one operation to the end of
/// another. \pre every operation that touches it begins after `first` has begun and is over before
/// `last` is, or is one of the two
struct ArenaItem {
  std::int64_t bytes = 0;
  OpId first = kNone;  // kNone: it is there before the step and after it
  OpId last = kNone;
};

struct ArenaLayout {
  std::vector<std::int64_t> offsets;  // of the items, multiples of kArenaAlignment
  std::int64_t bytes = 0;             // of the arena
  std::int64_t live_bytes = 0;  // most bytes of items that exist at once when operations run one at
                                // a time in the order of issue: no arena can be smaller
};
inline constexpr std::int64_t kArenaAlignment = 64;

/// Which operations are over before which begin, whatever the timing: by the order of their stream
/// and by what they wait for.
class DependencyOrder {
 public:
  explicit DependencyOrder(const StageProgram& program);
  /// Whether `a` is over before `b` begins. An operation is not before itself.
  bool before(OpId a, OpId b) const;

 private:
  std::size_t streams_ = kStreams;
  std::vector<std::int32_t> position_;  // of an operation on its stream
  std::vector<std::uint8_t> stream_;
  std::vector<std::int32_t> clock_;  // by operation and stream: operations of it that are over
};

/// Gives every item a place such that two items share memory only where dependencies, not luck,
/// have the one end before the other begins. Largest items first, each at the lowest place that is
/// free for as long as it lives.
/// Packing rectangles of bytes and time as Sekiyama et al., "Profile-guided memory optimization for
/// deep neural networks" (arXiv:1804.10001); here dependencies of concurrent streams, instead of
/// measured times, say what may exist at once.
ArenaLayout arena_layout(const StageProgram& program, const DependencyOrder& order,
                         std::span<const ArenaItem> items);

}  // namespace shardwise
