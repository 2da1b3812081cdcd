#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "planner/cost/layer/token_table.h"
#include "planner/cost/memory/memory.h"
#include "planner/cost/memory/unit_elements.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/text/units.h"

namespace shardwise {

/// Whether the layout says how large the engine's buckets are, and how they are padded: Megatron's.
bool chooses_buckets(const EngineProfile& engine);
/// Whether the engine takes the size of its buckets from the layout: those, and PyTorch's
/// DistributedDataParallel (bucket_cap_mb, of which 1 is 262,144 elements of fp32).
bool takes_bucket_size(const EngineProfile& engine);

/// Elements with which an engine's bucket of gradients is full: max(40 M, 1 M x dp x cp) under
/// Megatron unless the layout says how many; 0 where it works by unit.
/// Source: Megatron-LM@d98e8a64:megatron/training/training.py, resolve_ddp_bucket_size.
std::int64_t bucket_limit(const EngineProfile& engine, const Layout& layout);

/// Whether a chunk of a stage has one bucket of dense parameters and one of routed ones: Megatron's
/// where nothing would overlap, without overlap_grad_reduce and in every chunk but the first one of
/// the first stage; but for a token table that two stages share (keeps_shared_table_apart()).
/// \param first  the chunk is that one
/// Source: Megatron-LM@d98e8a64:megatron/core/distributed/distributed_data_parallel.py:121-172.
bool has_single_buckets(const EngineProfile& engine, const Layout& layout, bool first);

/// Rules by which buckets of a chunk of a stage are filled and padded. The first of two is of dense
/// parameters, the second of routed experts'.
///
/// Under Megatron the tensor with which a bucket has `limit` elements is its last. With the
/// distributed optimizer every tensor starts at a multiple of `start` elements and a bucket ends at
/// a multiple of lcm(ranks, 128), or of that and 2^16; without it nothing is padded. DeepSpeed and
/// InternEvo reduce a bucket before a tensor that would take it over that number, so only a tensor
/// that is larger alone makes a larger bucket. PyTorch's DistributedDataParallel fills like
/// Megatron and has a smaller first bucket. DeepSpeed's first ZeRO-1 cuts flat gradients wherever
/// the number falls. Source: Megatron-LM@d98e8a64:megatron/core/optimizer/param_layout.py:24-43,
/// distrib_optimizer.py:505-589;
/// megatron/core/distributed/param_and_grad_buffer.py:954-1002;
/// deepspeedai/DeepSpeed:deepspeed/runtime/zero/stage_1_and_2.py,
/// reduce_independent_p_g_buckets_and_remove_grads, and @v0.4.0:stage1.py,
/// get_data_parallel_sub_partitions; InternLM/InternEvo:
/// internlm/solver/optimizer/hybrid_zero_optim.py, _store_and_try_reduce_grads_by_bucket;
/// pytorch/pytorch@v2.15.0:torch/csrc/distributed/c10d/reducer.cpp,
/// compute_bucket_assignment_by_size.
struct BucketRules {
  static constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max() / 4;
  std::int64_t limit = kUnlimited;
  std::int64_t first_limit = kUnlimited;  // of the first one
  std::int64_t start = 1;
  std::array<std::int64_t, 2> end = {1, 1};   // multiple that a bucket's elements are padded to
  std::array<std::int64_t, 2> each = {1, 1};  // and, of some engines, those of each tensor
  bool ends_before = false;                   // a tensor that would take it over the limit
  bool cuts = false;                          // tensors, where the limit falls
};
/// \param first  has_single_buckets()
BucketRules bucket_rules(const EngineProfile& engine, const Layout& layout, bool first);

/// Whether the engine shards a buffer of buckets that each rank has whole: Megatron's parameters
/// and gradients, with what pads them.
bool pads_whole_buckets(const EngineProfile& engine, const Layout& layout);

/// Fills the buckets of one chunk with tensors, the last first.
///
/// Tells a Sink:
///   enter(routed, opens, begin, elements, count, stride)  `count` tensors of `elements` enter the
///       open bucket, or a new one, the first `begin` elements from its start, the others each
///       `stride` further
///   close(routed, elements, length, padded)  the bucket is full: elements of its tensors, with
///       what aligns them, and with what pads its end
template <class Sink>
class BucketFiller {
 public:
  BucketFiller(const BucketRules& rules, Sink& sink)
      : rules_(rules), sink_(sink), limit_(rules.first_limit) {}

  void add(bool routed, std::int64_t elements, std::int64_t count = 1) {
    const Open& open = open_[routed ? 1 : 0];
    while (elements > 0 && count > 0) {
      if (rules_.cuts) {
        cut(routed, elements);
        --count;
        continue;
      }
      const std::int64_t begin = round_up(open.length, rules_.start);
      if (rules_.ends_before && open.length > 0 && begin + elements > limit_) {
        close(routed);
        continue;
      }
      const std::int64_t stride = round_up(elements, rules_.start);
      const std::int64_t entering = std::min(count, until_full(begin, elements, stride));
      enter(routed, begin, elements, entering, stride);
      count -= entering;
      if (open.length >= limit_) close(routed);
    }
  }
  /// A dense tensor with a bucket of its own.
  void add_alone(std::int64_t elements) {
    close(false);
    add(false, elements);
    close(false);
  }
  void close(bool routed) {
    const std::size_t group = routed ? 1 : 0;
    Open& open = open_[group];
    if (open.length == 0) return;
    sink_.close(routed, open.elements, open.length, round_up(open.padded, rules_.end[group]));
    open = {};
    limit_ = rules_.limit;
  }

 private:
  struct Open {
    std::int64_t elements = 0;
    std::int64_t length = 0;
    std::int64_t padded = 0;
  };

  /// Tensors that enter before the bucket is full.
  std::int64_t until_full(std::int64_t begin, std::int64_t elements, std::int64_t stride) const {
    const std::int64_t room = limit_ - begin - elements;
    if (room <= 0) return 1;
    return 1 + (rules_.ends_before ? room / stride : ceil_div(room, stride));
  }
  void enter(bool routed, std::int64_t begin, std::int64_t elements, std::int64_t count,
             std::int64_t stride) {
    const std::size_t group = routed ? 1 : 0;
    Open& open = open_[group];
    sink_.enter(routed, open.length == 0, begin, elements, count, stride);
    const std::int64_t end = begin + (count - 1) * stride + elements;
    open.elements += elements * count;
    open.padded += end - open.length + (round_up(elements, rules_.each[group]) - elements) * count;
    open.length = end;
  }
  void cut(bool routed, std::int64_t elements) {
    const Open& open = open_[routed ? 1 : 0];
    while (elements > 0) {
      const std::int64_t part = std::min(elements, limit_ - open.length);
      enter(routed, open.length, part, 1, part);
      elements -= part;
      if (open.length >= limit_) close(routed);
    }
  }

  const BucketRules& rules_;
  Sink& sink_;
  std::int64_t limit_;  // of the open bucket
  std::array<Open, 2> open_;
};

/// Parameters a chunk registers in another place than with the layer that uses it.
///
/// Megatron registers multi-token prediction between the last norm and the head's matrix, and puts
/// a copy of the token table in front of all else of its chunk. Without it a copy is the head's
/// matrix, so the last tensor. Other engines train modules without multi-token prediction.
/// Source: Megatron-LM@d98e8a64:megatron/core/models/gpt/gpt_model.py:173-297.
struct ChunkEnds {
  const LayerMemory* late_head = nullptr;  // whose matrix is behind multi-token prediction
  std::int64_t copied = 0;                 // elements of the token table of another stage
  bool table_apart = false;  // keeps_shared_table_apart(), and two stages hold the table
};
/// The head of a chunk, if its matrix is behind multi-token prediction.
/// \param layers  of the chunk, which `memory_of` gives a LayerMemory each
template <class Layers, class MemoryOf>
const LayerMemory* late_head(const EngineProfile& engine, const Layers& layers,
                             MemoryOf memory_of) {
  if (engine.gradient_buffer != GradientBuffer::contiguous) return nullptr;
  const LayerMemory* head = nullptr;
  bool predicts = false;
  for (const auto& each : layers) {
    const LayerMemory& layer = memory_of(each);
    if (layer.role == LayerRole::head) head = &layer;
    predicts = predicts || layer.role == LayerRole::mtp;
  }
  return predicts ? head : nullptr;
}

/// Fills the buckets of one chunk layer by layer, the last first.
template <class Sink>
class ChunkFiller {
 public:
  ChunkFiller(const BucketRules& rules, const ChunkEnds& ends, Sink& sink)
      : filler_(rules, sink), ends_(ends) {}

  /// Tensors behind those of the last layer.
  void begin() {
    if (ends_.late_head == nullptr) return add_copy();
    add(*ends_.late_head, true);
  }
  /// A layer's own.
  void add(const LayerMemory& layer) { add(layer, false); }
  /// Tensors in front of the first layer, and the open buckets.
  void end() {
    if (ends_.late_head != nullptr) add_copy();
    filler_.close(false);
    filler_.close(true);
  }

 private:
  void add_copy() {
    if (ends_.copied > 0) one({ends_.copied, 1, 1, false}, true);
  }
  void add(const LayerMemory& layer, bool late) {
    const std::vector<TensorGroup>& tensors = layer.parameters.in_order;
    for (std::size_t t = tensors.size(); t-- > 0;) {
      const std::int64_t elements = tensors[t].rows * tensors[t].row_elements;
      const bool matrix = &layer == ends_.late_head && elements == layer.parameters.vocabulary;
      if (matrix == late) one(tensors[t], is_token_table(layer, elements));
    }
  }
  void one(const TensorGroup& tensor, bool table) {
    const std::int64_t elements = tensor.rows * tensor.row_elements;
    if (table && ends_.table_apart) return filler_.add_alone(elements);
    filler_.add(tensor.routed, elements, tensor.count);
  }

  BucketFiller<Sink> filler_;
  const ChunkEnds& ends_;
};

/// Elements of the buckets of a stage.
struct BucketSums {
  Unit padded;   // all of them
  Unit fullest;  // of the tensors, in the pieces of the rank that has most
};
/// \pre engine.padding is bucket and the layout shards something
BucketSums bucket_sums(const StageParts& parts, const EngineProfile& engine, const Layout& layout);

}  // namespace shardwise
