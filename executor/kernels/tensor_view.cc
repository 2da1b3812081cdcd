#include "executor/kernels/tensor_view.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>

#include "executor/kernels/wide.h"
#include "planner/spec/text/check.h"

namespace shardwise::exec {
namespace {

const Bf16* bf16_elements(const ConstTensorView& n) {
  return reinterpret_cast<const Bf16*>(n.data);
}
Bf16* bf16_elements(const TensorView& n) { return reinterpret_cast<Bf16*>(n.data); }

bool overlap(const TensorView& to, const ConstTensorView& from) {
  const std::less<> before;
  return before(to.data, from.data + from.bytes()) && before(from.data, to.data + to.bytes());
}

// Of places that do not overlap.
SHARDWISE_VECTOR_CLONES void add_each(float* __restrict to, const float* __restrict from,
                                      std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) to[i] += from[i];
}
SHARDWISE_VECTOR_CLONES void add_each(float* __restrict to, const Bf16* __restrict from,
                                      std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) to[i] += to_float(from[i]);
}
SHARDWISE_VECTOR_CLONES void round_each(float* values, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) values[i] = to_float(from_float<Bf16>(values[i]));
}

/// What is stored in bf16 is added to in blocks that were widened.
void accumulate_narrow(const TensorView& sum, const ConstTensorView& each) {
  constexpr std::size_t kBlock = 4096;
  std::array<float, kBlock> block;  // NOLINT(*member-init*): it is copied into
  for (std::size_t at = 0; at < sum.count; at += kBlock) {
    const std::size_t n = std::min(kBlock, sum.count - at);
    const std::span<float> wide(block.data(), n);
    cast(wide, sum.part(at, n));
    accumulate(wide, each.part(at, n));
    cast(sum.part(at, n), wide);
  }
}

}  // namespace

void clear(const TensorView& tensor) { std::memset(tensor.data, 0, tensor.bytes()); }

void scale(const TensorView& tensor, float factor) {
  if (tensor.dtype == DType::fp32) {
    for (float& each : tensor.floats()) each *= factor;
    return;
  }
  Bf16* const at = bf16_elements(tensor);
  for (std::size_t i = 0; i < tensor.count; ++i) {
    at[i] = from_float<Bf16>(to_float(at[i]) * factor);
  }
}

void cast(const TensorView& to, const ConstTensorView& from) {
  SHARDWISE_CHECK(to.count == from.count, "as many as there are");
  if (to.dtype == from.dtype) {
    if (to.data != from.data && to.count > 0) std::memmove(to.data, from.data, to.bytes());
    return;
  }
  if (!overlap(to, from)) {
    if (to.dtype == DType::bf16) {
      narrow_run(from.floats().data(), std::ssize(from.floats()), bf16_elements(to));
    } else {
      widen_run(bf16_elements(from), std::ssize(to.floats()), to.floats().data());
    }
    return;
  }
  // In place the narrow end of what is read is ahead of what is written: upwards when it shrinks,
  // downwards when it grows. Read and written through bytes, as the two types share memory.
  const auto one = [&](std::size_t i) {
    if (to.dtype == DType::bf16) {
      float value = 0;
      std::memcpy(&value, from.data + i * sizeof value, sizeof value);
      const Bf16 rounded = from_float<Bf16>(value);
      std::memcpy(to.data + i * sizeof rounded, &rounded, sizeof rounded);
    } else {
      Bf16 value;
      std::memcpy(&value, from.data + i * sizeof value, sizeof value);
      const float wide = to_float(value);
      std::memcpy(to.data + i * sizeof wide, &wide, sizeof wide);
    }
  };
  if (to.dtype == DType::bf16) {
    for (std::size_t i = 0; i < to.count; ++i) one(i);
  } else {
    for (std::size_t i = to.count; i-- > 0;) one(i);
  }
}

void round_to_bf16(std::span<float> values) { round_each(values.data(), values.size()); }

void accumulate(const TensorView& sum, const ConstTensorView& each) {
  SHARDWISE_CHECK(sum.count == each.count, "as many as there are");
  if (sum.dtype == DType::bf16) {
    accumulate_narrow(sum, each);
  } else if (each.dtype == DType::fp32) {
    add_each(sum.floats().data(), each.floats().data(), sum.count);
  } else {
    add_each(sum.floats().data(), bf16_elements(each), sum.count);
  }
}

}  // namespace shardwise::exec
