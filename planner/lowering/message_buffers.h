#pragma once

#include <cstdint>
#include <vector>

#include "planner/lowering/data_parallel/data_parallel_schedule.h"
#include "planner/lowering/stage/stage_builder.h"

namespace shardwise {

/// Buffers of a planned arena for what a stage receives and sends: some for each neighbour and
/// direction (message_slots of planner/schedule/message_slots.h), which messages take turns with,
/// there as long as the stage's passes run. Engines without an arena have none.
///
/// A neighbour's messages of one direction are read in the order in which they come, under every
/// schedule, so turns never make a message wait for one behind it.
class MessageBuffers {
 public:
  enum class Use : std::uint8_t { receive_forward, receive_backward, send_forward, send_backward };

  /// \param bytes  of a message; 0 = no buffers
  MessageBuffers(StageBuilder& builder, std::int64_t bytes) : builder_(builder), bytes_(bytes) {}
  /// The stage exchanges such messages with `neighbour`, through so many buffers.
  /// \pre before the first operation
  void make(Use use, std::int32_t neighbour, std::int64_t slots);

  /// A buffer that nobody needs any more, for the operation that fills it: what that waits for,
  /// allocates and uses. \returns the buffer, or kNone
  BufferId fill(Use use, std::int32_t neighbour, OperationLists& lists);
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
  struct Turns {
    Use use = Use::receive_forward;
    std::int32_t neighbour = 0;
    std::vector<Slot> slots;
    std::size_t next = 0;
  };
  Slot& slot_of(BufferId buffer);
  bool sends_gradients() const;

  StageBuilder& builder_;
  std::int64_t bytes_;
  std::vector<Turns> turns_;
};

}  // namespace shardwise
