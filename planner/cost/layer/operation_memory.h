#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "planner/cost/software/usual_kernels.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/model_spec.h"

namespace shardwise {

/// Bytes that one operation of a layer reads, keeps and needs on one rank for one micro-batch.
///
/// Tensors are numbered: 0 is the layer's input, i + 1 is what operation i hands on. Operations
/// that one kernel computes (queries, keys and values; gate and up, where they are one matrix) are
/// joined: the first of them stands for all, the others have `joined` set and nothing else.
struct OperationMemory {
  static constexpr int kMaxReads = 3;

  const OperationSpec* operation = nullptr;
  std::array<int, kMaxReads> reads{};        // tensors
  std::array<bool, kMaxReads> keeps_read{};  // backward needs that tensor
  int num_reads = 0;
  bool copies_input = false;    // copies are what is kept of reads[0]
  bool keeps_output = false;    // backward needs its output
  bool joined = false;          // computed by the operation before
  bool loss = false;            // logits and loss rather than activations
  std::int64_t output = 0;      // bytes of tensor i + 1; its gradient has the same size
  std::int64_t copies = 0;      // kept besides: masks, converted copies, scores
  std::int64_t statistics = 0;  // kept besides: a few numbers a row, which published formulas omit
  std::int64_t input_gradient = 0;  // what backward hands back
  std::int64_t forward_extra = 0;   // alive only while it runs forward
  std::int64_t backward_extra = 0;  // alive only while it runs backward
  std::int64_t weight_rows = 0;     // of its matrix on this rank (one expert's, when routed)
  std::int64_t weight_columns = 0;
  std::int64_t weights = 0;  // matrices of that shape on this rank
};

/// Rows of a table over the vocabulary, all tensor-parallel ranks together.
std::int64_t padded_vocabulary(std::int64_t vocabulary, std::int64_t multiple, std::int64_t tp);

/// Tokens whose logits exist at once when the loss is computed by chunks: `asked` where our kernels
/// are told (JobSpec::loss_chunk_rows), otherwise as many chunks as the vocabulary is wider than
/// the hidden state, a power of two of tokens each, 256 at least. No more than `tokens`.
std::int64_t loss_chunk_rows(std::int64_t asked, std::int64_t tokens, std::int64_t vocabulary,
                             std::int64_t hidden);

/// One entry an operation, in forward order, nothing recomputed. docs/memory.md has the formulas.
std::vector<OperationMemory> operation_memories(const ModelSpec& model, const LayerSpec& layer,
                                                const JobSpec& job, const EngineProfile& engine,
                                                const Layout& layout);

}  // namespace shardwise
