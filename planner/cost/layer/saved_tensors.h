#pragma once

#include <cstdint>
#include <vector>

#include "planner/cost/layer/operation_memory.h"
#include "planner/spec/plan/job_spec.h"

namespace shardwise {

/// Form in which tensors wait for backward: as they were computed, or narrower as the job asks
/// (JobSpec::saved_linear_inputs and its neighbours).
struct SavedTensors {
  std::vector<std::int64_t> bytes;    // while it waits, by number of the tensor
  std::vector<std::int64_t> widened;  // by operation: what its backward reads, widened again
  // Cost of kernels that only narrow and widen: bytes read and written, and their number. An
  // 8-bit product casts its input in any case, and reads it in 8 bits.
  std::int64_t narrowing = 0;
  std::int64_t widening = 0;
  int narrowing_kernels = 0;
  int widening_kernels = 0;
};

/// \param element  bytes of an element as computed
/// \param again    operation is recomputed, by index
/// \param input    bytes of the layer's input, tensor 0
SavedTensors saved_tensors(const std::vector<OperationMemory>& operations, const JobSpec& job,
                           std::int64_t element, const std::vector<bool>& again,
                           std::int64_t input);

/// Whether a job saves anything in fewer bits than it computes in.
bool saves_narrow(const JobSpec& job);

/// Bytes of so many elements in a saved format. Both narrow ones share a scale of 4 bytes among 128
/// elements. Source: arXiv:2412.19437, sections 3.3.2 (Low-Precision Activation) and 3.3.3.
std::int64_t saved_bytes(std::int64_t elements, SavedFormat format, std::int64_t element);

}  // namespace shardwise
