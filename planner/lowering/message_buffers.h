#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "planner/lowering/data_parallel_schedule.h"
#include "planner/lowering/stage_builder.h"

namespace shardwise {

/// Buffers of a planned arena for what a stage receives and sends: two a direction, which messages
/// take turns with, there as long as the stage's passes run. Where a stage has chunks messages come
/// far ahead of who reads them: each has a buffer of its own. Engines without an arena have none.
class MessageBuffers {
 public:
  enum class Use : std::uint8_t { receive_forward, receive_backward, send_forward, send_backward };

  /// \param bytes  of a message; 0 = no buffers
  /// \param own    each message has its own
  MessageBuffers(StageBuilder& builder, std::int64_t bytes, bool own)
      : builder_(builder), bytes_(bytes), own_(own) {}
  /// Whether who reads a message frees its buffer.
  bool own() const { return own_; }
  /// The stage has messages of that kind. \pre before the first operation
  void make(Use use);

  /// A buffer that nobody needs any more, for the operation that fills it: what that waits for,
  /// allocates and uses. \returns the buffer, or kNone
  BufferId fill(Use use, OperationLists& lists);
  void filled(BufferId buffer, OpId op);
  /// `op` is the last that reads what it was filled with.
  void emptied(BufferId buffer, OpId op);
  /// Before the last operation of the passes, which frees what messages were sent from where no
  /// gradient is sent after it: adds that it waits for them.
  void before_end(OperationLists& lists) const;
  /// The last operations free all.
  void finish();

 private:
  struct Slot {
    BufferId buffer = kNone;
    OpId filled = kNone;
    OpId emptied = kNone;
  };
  Slot& slot_of(BufferId buffer);
  bool sends_gradients() const {
    return !slots_[static_cast<std::size_t>(Use::send_backward)].empty();
  }

  StageBuilder& builder_;
  std::int64_t bytes_;
  bool own_;
  std::array<std::vector<Slot>, 4> slots_;
  std::array<std::size_t, 4> next_{};
};

}  // namespace shardwise
