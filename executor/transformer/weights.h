#pragma once

#include <cstddef>
#include <span>

#include "executor/transformer/parameters.h"

namespace shardwise::exec {

/// A layer's tensors by ParameterIndex: weights, or gradients of those that are trained. Null where
/// an operation has none.
template <class Byte>
class TensorsOf {
 public:
  explicit TensorsOf(std::span<Byte* const> tensors) : tensors_(tensors) {}
  Byte* weight(const ParameterIndex& index) const { return at(index.weight); }
  Byte* bias(const ParameterIndex& index) const { return at(index.bias); }

 private:
  Byte* at(int index) const {
    return index < 0 ? nullptr : tensors_[static_cast<std::size_t>(index)];
  }
  std::span<Byte* const> tensors_;
};
using Weights = TensorsOf<const std::byte>;
using Gradients = TensorsOf<std::byte>;

}  // namespace shardwise::exec
