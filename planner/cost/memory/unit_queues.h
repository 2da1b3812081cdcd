#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "planner/cost/memory/memory.h"

namespace shardwise {

/// Megatron-FSDP: gathers and reductions of units are queues, or two buffers each.
bool has_unit_queues(const EngineProfile& engine);

/// Whether the first pass of a job gathers the tensor in use alone, as it records the order in
/// which later ones gather ahead: DeepSpeed's ZeRO-3. The second of several micro-batches is a
/// later one.
bool gathers_in_use_first(const StageContext& context);
/// Elements of the largest one that an operation of the layer works with; 0 while the loss runs. A
/// block that is computed again keeps all that this has gathered for its backward pass.
std::int64_t tensor_in_use(const StageMoment& moment, const Layout& layout);

/// Elements at which queues of units stop: a gather ahead is issued while fewer are on their way,
/// and a reduction that has all its gradients waits until no more are left of earlier ones.
struct QueueCapacity {
  std::int64_t gathers = 0;
  std::int64_t reductions = 0;
};
/// The engine's, and under Megatron-FSDP no less than one unit and two of them (ZeRO-3), or a
/// bucket of what is outside the units.
/// \param mean_unit  of the stage: MeanUnit
/// Source: Megatron-LM@d98e8a64:megatron/core/distributed/fsdp/src/megatron_fsdp/
/// megatron_fsdp.py:418-448.
QueueCapacity queue_capacity(const EngineProfile& engine, const Layout& layout,
                             std::int64_t mean_unit);

/// Elements of the layers of a stage that are units, over their number: all but embedding and head.
class MeanUnit {
 public:
  void add(const LayerMemory& layer, std::int64_t count);
  std::int64_t elements() const { return units_ > 0 ? sum_ / units_ : 0; }

 private:
  std::int64_t sum_ = 0;
  std::int64_t units_ = 0;
};
std::int64_t mean_unit(const StageParts& parts);

/// Elements a rank has room for that has a layer whole: of its gradients, and of its weights.
struct WholeUnit {
  std::int64_t trained = 0;
  std::int64_t gathered = 0;
};
WholeUnit whole_unit(const LayerParameters& parameters, const EngineProfile& engine,
                     const Layout& layout);

/// Units of a stage on their way under an engine with queues, or two buffers, for them.
class UnitQueues {
 public:
  UnitQueues() = default;
  UnitQueues(const StageParts& parts, const EngineProfile& engine, const Layout& layout);

  const WholeUnit& block() const { return block_; }      // the largest
  const WholeUnit& outside() const { return outside_; }  // embedding and head together
  /// Buffers in use, of two that units take turns with.
  std::int64_t buffers() const { return std::min<std::int64_t>(2, blocks_); }

  /// Weights of the layer that runs, with a table that its head shares where no unit has it. Of a
  /// layer larger than its queue DeepSpeed has what the queue takes: it fetches tensor by tensor.
  std::int64_t gathered_by(const StageMoment& moment) const;
  /// Weights gathered besides those, as far as the chunk has them: Megatron-FSDP's units until the
  /// capacity is on its way, and under DeepSpeed tensors until the capacity is there with the
  /// layer, of which a table that is more than there is room for comes whole. Source:
  /// deepspeedai/DeepSpeed@v0.19.8:deepspeed/runtime/zero/
  /// partitioned_param_coordinator.py:421-475.
  std::int64_t ahead(const StageMoment& moment, bool backward) const;
  /// The flat tensor that DeepSpeed gathers a group of tensors ahead into, from which they are
  /// copied: of several, as many as it takes to have prefetch_elements.
  std::int64_t group_output(const StageMoment& moment, bool backward) const;
  /// Gradients of a layer that makes them in backward and of those before it in the queue:
  /// the last one, which came when the rest left no more than the capacity. Embedding and head are
  /// buckets like the others; a queue begins empty with each backward pass.
  /// Source: Megatron-LM@d98e8a64:megatron/core/distributed/fsdp/src/megatron_fsdp/
  /// param_and_grad_buffer.py:3891-3954 (wait_for_previous_grad_reduce).
  std::int64_t reducing(const StageMoment& moment) const;
  /// Bytes beside two buffers that the units take turns with: those of embedding or head, which
  /// lie outside and are freed when two other units have been made.
  /// Source: as above, :740, 842, 3956-3978 (FixedPoolAllocator, _enforce_double_buffer_limit).
  std::int64_t reducing_outside(const StageMoment& moment) const;
  /// Elements of the layers after one of the blocks, at which the queue may be fullest: with the
  /// head's gradients, and without.
  std::vector<std::int64_t> fullest_after() const;

 private:
  /// Whether DeepSpeed's queue has come to the embedding or the head, which is gathered whole.
  bool takes_table(const StageMoment& moment, bool backward) const;

  /// Elements of blocks with their padding.
  static std::int64_t padded(std::int64_t elements, std::int64_t block, std::int64_t room);
  bool has_head(const StageMoment& moment) const {
    return moment.layer->role != LayerRole::head && moment.outside_after > 0;
  }
  void add_root_buckets(const StageParts& parts);
  /// Gradients of the layer that runs, and of buckets that wait for a layer before it.
  std::int64_t trained_room(const StageMoment& moment) const;

  const EngineProfile* engine_ = nullptr;
  const Layout* layout_ = nullptr;
  QueueCapacity capacity_;
  std::int64_t blocks_ = 0;
  Unit bare_;  // the largest block without padding
  WholeUnit block_;
  WholeUnit outside_;
  std::int64_t largest_group_ = 0;   // of tensors of blocks that are gathered ahead in one
  std::int64_t head_ = 0;            // gradients of the head, without padding
  std::int64_t head_room_ = 0;       // of what is reduced once the head is done, …
  std::int64_t waiting_ = 0;         // … of what the head begins and the embedding completes, …
  std::int64_t embedding_room_ = 0;  // … and of all that the embedding completes
};

}  // namespace shardwise
