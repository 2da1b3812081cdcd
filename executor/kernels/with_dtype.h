#pragma once

#include <cstddef>

#include "executor/kernels/element.h"
#include "planner/spec/machine/dtype.h"
#include "planner/spec/text/check.h"

namespace shardwise::exec {

// Bridge from operations whose types are values (compute.h) to kernels whose types are types.

template <class E>
const E* as(const std::byte* at) {
  return reinterpret_cast<const E*>(at);
}
template <class E>
E* as(std::byte* at) {
  return reinterpret_cast<E*>(at);
}

/// f(E{}) with the element type of a dtype.
template <class F>
void with_dtype(DType dtype, F f) {
  if (dtype == DType::fp32) return f(float{});
  SHARDWISE_CHECK(dtype == DType::bf16, "fp32 or bf16");
  f(Bf16{});
}

/// f(E{}, G{}), G that of weight gradients.
template <class F>
void with_dtypes(DType dtype, DType gradient, F f) {
  if (gradient == DType::fp32) return with_dtype(dtype, [&](auto e) { f(e, float{}); });
  SHARDWISE_CHECK(dtype == DType::bf16 && gradient == DType::bf16, "fp32, or bf16 of bf16");
  f(Bf16{}, Bf16{});
}

}  // namespace shardwise::exec
