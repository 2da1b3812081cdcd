#pragma once

#include <cstdint>

#include "executor/device/cuda/cuda_device.h"
#include "executor/kernels/attention/attention.h"
#include "executor/kernels/compute/compute.h"
#include "executor/kernels/cuda/event_clock.h"

namespace shardwise::exec {

/// Causal attention in bf16, one call of each pass: medians.
struct AttentionTime {
  AttentionShape shape;
  double forward_seconds = 0;
  double backward_seconds = 0;
  // Rates of the products that the mask leaves, and backward of five products for two.
  double forward_tflops = 0;
  double backward_tflops = 0;
};

/// Times attention by the operations that a run has, whichever kernels they choose.
/// \param compute  of the device; its workspace is set anew \returns zeros where memory does not
/// suffice \throws CudaError, CudnnError
AttentionTime time_attention(CudaDevice& device, EventClock& clock, Compute& compute,
                             const AttentionShape& shape);

}  // namespace shardwise::exec
