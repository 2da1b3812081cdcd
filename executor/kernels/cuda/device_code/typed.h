#pragma once

#include "executor/kernels/cuda/device_code/chunks.h"
#include "executor/kernels/tensor_view.h"

namespace shardwise::exec::cuda {

template <class E>
E* elements(const TensorView& tensor) {
  return reinterpret_cast<E*>(tensor.data);
}
template <class E>
const E* elements(const ConstTensorView& tensor) {
  return reinterpret_cast<const E*>(tensor.data);
}

/// Elements of several tensors that a thread takes at once: at most 16 bytes of any of them.
template <class... E>
inline constexpr int kSharedStep = (... && (sizeof(E) == 2)) ? 8 : 4;

}  // namespace shardwise::exec::cuda
