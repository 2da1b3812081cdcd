#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "executor/kernels/element.h"
#include "planner/spec/machine/dtype.h"

namespace shardwise::exec {

/// The dtype of E, float or Bf16.
template <class E>
inline constexpr DType kTypeOf = std::is_same_v<E, Bf16> ? DType::bf16 : DType::fp32;

/// Numbers between -0.5 and 0.5 as weights and activations are, none of them tiny: those are slow.
template <class E>
std::vector<E> filled(std::int64_t count) {
  std::vector<E> made(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < made.size(); ++i) {
    made[i] = from_float<E>(static_cast<float>((i * 2654435761U) % 1021 + 1) / 1024.0F - 0.5F);
  }
  return made;
}

}  // namespace shardwise::exec
