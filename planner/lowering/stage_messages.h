#pragma once

#include <cstdint>
#include <vector>

#include "planner/lowering/message_buffers.h"
#include "planner/lowering/stage/lowering_context.h"
#include "planner/lowering/stage/stage_builder.h"
#include "planner/schedule/schedule.h"

namespace shardwise {

/// Sends and receives what the chunks of a stage hand to chunks on other stages. A stage receives
/// from another in the order in which that one sends, so the two never wait for different messages;
/// under V-shaped schedules that may be before the pass that needs it. With one chunk a stage,
/// GPipe and 1F1B post a receive once the pass before it has ended, so that nothing runs beside the
/// message (NVIDIA/Megatron-LM, megatron/core/pipeline_parallel/schedules.py,
/// forward_backward_pipelining_without_interleaving: recv_forward, send_forward_recv_backward …;
/// pytorch/pytorch, torch/distributed/pipelining/schedules.py, Schedule1F1B). Schedules with more
/// chunks post it ahead, as far as there are buffers where an arena plans them.
class StageMessages {
 public:
  StageMessages(const LoweringContext& context, std::int32_t stage, StageBuilder& builder);

  /// Input of a pass, and its buffer.
  struct Handed {
    OpId op = kNone;
    BufferId buffer = kNone;
  };
  /// Before a pass. \returns what it waits for
  Handed receive(const PipelinePass& pass);
  /// The operation of the pass that reads it is issued.
  void read(const Handed& handed, OpId op) { buffers_.emptied(handed.buffer, op); }
  /// Before the operation of a pass that makes what it hands on; adds what it waits for and uses.
  /// \returns where it puts that
  BufferId before_last(const PipelinePass& pass, OperationLists& lists);
  /// After it: what it left in `buffer` goes on its way once `done` has ended.
  void send(const PipelinePass& pass, BufferId buffer, OpId done);
  /// Before the last operation of the last pass.
  void before_end(OperationLists& lists) const { buffers_.before_end(lists); }
  /// After the last pass.
  void finish() { buffers_.finish(); }

 private:
  /// A message between chunks `lower` and `lower + 1` of the model.
  struct Message {
    std::int32_t lower = 0;
    std::int32_t microbatch = 0;
    bool backward = false;
  };
  /// Messages one other stage sends to this one, in its order.
  struct Inbox {
    std::int32_t from = 0;
    std::vector<Message> messages;
    std::size_t next = 0;
  };

  bool travels(std::int32_t lower) const;
  std::int32_t number_of(const Message& message) const;
  std::int32_t chunk_number(std::int32_t stage, std::int16_t chunk) const;
  /// The stage that a message goes to.
  std::int32_t receiver(const Message& message) const;
  bool made_by(std::int32_t stage, const PipelinePass& pass, Message& message) const;
  void add_inbox(std::int32_t from);
  OpId add(OpRole role, Stream stream, const Message& message, std::int32_t peer,
           std::int16_t chunk, const OperationLists& lists);

  const LoweringContext& context_;
  std::int32_t stage_;
  StageBuilder& builder_;
  std::int32_t cost_ = -1;
  bool ahead_ = true;    // receives do not wait for the pass before
  OpId passed_ = kNone;  // last operation of that pass
  std::vector<Inbox> inboxes_;
  /// The input of a micro-batch's pass through one of the stage's chunks.
  Handed& received(const Message& message);
  std::vector<Handed> received_;  // by micro-batch, chunk and direction; no operation: not yet
  MessageBuffers buffers_;
  OperationLists lists_;  // of the operation that is made
};

}  // namespace shardwise
