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

/// The same for gradients, float or Bf16; null where a parameter is not trained.
template <class G>
class Gradients {
 public:
  explicit Gradients(std::span<std::byte* const> tensors) : tensors_(tensors) {}
  G* weight(const ParameterIndex& index) const { return at(index.weight); }
  G* bias(const ParameterIndex& index) const { return at(index.bias); }

 private:
  G* at(int index) const {
    return index < 0 ? nullptr : reinterpret_cast<G*>(tensors_[static_cast<std::size_t>(index)]);
  }
  std::span<std::byte* const> tensors_;
};

}  // namespace shardwise::exec
