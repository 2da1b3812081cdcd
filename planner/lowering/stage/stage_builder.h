#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "planner/spec/program/step_program.h"

namespace shardwise {

/// Indices into StageProgram::operations and ::buffers.
using OpId = std::uint32_t;
using BufferId = std::uint32_t;
/// No operation, no buffer: accepted wherever one is named, and left out.
inline constexpr std::uint32_t kNone = UINT32_MAX;

/// A buffer of the schedule that an operation reads or writes.
struct PlacedOperand {
  OpId op = kNone;
  OperandPart part = OperandPart::weights;
  BufferId buffer = kNone;
  bool handed_on = false;  // the message of a pass that leaves, not the one that arrives
};

/// Writes a stage's program, operation by operation in the order in which the host issues them.
class StageBuilder {
 public:
  /// \param placed  filled by lies_in(); may be null
  /// \param lists_buffers  false: operations name none
  explicit StageBuilder(StageProgram& program, std::vector<PlacedOperand>* placed = nullptr,
                        bool lists_buffers = true)
      : program_(program), placed_(placed), lists_buffers_(lists_buffers) {}

  /// Makes room for so many operations.
  void expect(std::size_t operations);

  /// Operations of equal cost share it: ask once, keep the number.
  std::int32_t cost(OpCost cost);
  std::int32_t layer_cost(const LayerWork& work, double launches);
  std::int32_t collective_cost(const CollectiveWork& work, double launches = 1);
  /// Kernels that only move bytes. \returns that of nothing, -1, for no bytes
  std::int32_t traffic_cost(double bytes, double launches = 1, MoveKind move = MoveKind::copy);

  BufferId buffer(MemoryCategory category, std::int64_t bytes, std::int32_t layer = -1,
                  std::int32_t microbatch = -1);
  /// One that is there before the step and after it.
  void resident(MemoryCategory category, std::int64_t bytes);

  /// The next operation of the compute stream allocates it, or of the receive stream.
  void allocate_with_compute(BufferId buffer) { due_.push_back(buffer); }
  void allocate_with_first(BufferId buffer) { due_first_.push_back(buffer); }
  /// An operation that is there already frees it too.
  void also_frees(OpId op, BufferId buffer);

  /// One that an operation of the first step makes and none frees.
  BufferId lasting(MemoryCategory category, std::int64_t bytes);

  OpId add(ProgramOp op, std::span<const OpId> waits, std::span<const BufferId> allocates,
           std::span<const BufferId> frees, std::span<const BufferId> uses = {});
  OpId add(const ProgramOp& op, std::initializer_list<OpId> waits = {},
           std::initializer_list<BufferId> allocates = {},
           std::initializer_list<BufferId> frees = {}, std::initializer_list<BufferId> uses = {}) {
    return add(op, std::span(waits.begin(), waits.size()),
               std::span(allocates.begin(), allocates.size()),
               std::span(frees.begin(), frees.size()), std::span(uses.begin(), uses.size()));
  }

  /// An operand of an operation lies in this buffer, for who lists operands.
  void lies_in(OpId op, OperandPart part, BufferId buffer) {
    if (placed_ != nullptr && buffer != kNone) placed_->push_back({op, part, buffer, false});
  }
  /// A message that an operation receives, or sends: a stream on its way between stages.
  void message_in(OpId op, BufferId buffer, bool handed_on) {
    if (placed_ == nullptr || buffer == kNone) return;
    placed_->push_back({op, OperandPart::stream, buffer, handed_on});
  }

  /// The first operation that allocated what allocate_with_first() was asked for, so far.
  OpId first() const { return first_; }
  /// The last operation of a stream so far.
  OpId last(Stream stream) const { return last_[static_cast<std::size_t>(stream)]; }
  const StageProgram& program() const { return program_; }

 private:
  IndexRange list(std::span<const std::uint32_t> indices);

  StageProgram& program_;
  std::vector<PlacedOperand>* placed_;
  bool lists_buffers_;
  std::vector<BufferId> due_;        // allocated by the next operation of the compute stream
  std::vector<BufferId> due_first_;  // or of the receive stream
  OpId first_ = kNone;
  std::vector<OpId> last_ = std::vector<OpId>(kStreams, kNone);
};

}  // namespace shardwise
