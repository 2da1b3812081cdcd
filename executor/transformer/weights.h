#pragma once

#include <cstddef>
#include <span>

#include "executor/transformer/parameters.h"

namespace shardwise::exec {

/// A layer's weights by ParameterIndex; null where an operation has none.
template <class E>
class Weights {
 public:
  explicit Weights(std::span<const std::byte* const> tensors) : tensors_(tensors) {}
  const E* weight(const ParameterIndex& index) const { return at(index.weight); }
  const E* bias(const ParameterIndex& index) const { return at(index.bias); }

 private:
  const E* at(int index) const {
    return index < 0 ? nullptr
                     : reinterpret_cast<const E*>(tensors_[static_cast<std::size_t>(index)]);
  }
  std::span<const std::byte* const> tensors_;
};

/// The same for gradients, which are fp32; null where a parameter is not trained.
class Gradients {
 public:
  explicit Gradients(std::span<float* const> tensors) : tensors_(tensors) {}
  float* weight(const ParameterIndex& index) const { return at(index.weight); }
  float* bias(const ParameterIndex& index) const { return at(index.bias); }

 private:
  float* at(int index) const {
    return index < 0 ? nullptr : tensors_[static_cast<std::size_t>(index)];
  }
  std::span<float* const> tensors_;
};

}  // namespace shardwise::exec
