#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "planner/spec/machine/dtype.h"

namespace shardwise::exec {

/// TensorView in somebody's memory, of fp32 or bf16. `Byte` is const where they are only read.
template <class Byte>
struct TensorViewOf {
  using Float = std::conditional_t<std::is_const_v<Byte>, const float, float>;

  TensorViewOf() = default;
  TensorViewOf(Byte* at, std::size_t number, DType type) : data(at), count(number), dtype(type) {}
  /// A span or a vector of floats.
  template <class Floats>
  requires std::convertible_to<Floats&&, std::span<Float>> TensorViewOf(
      Floats&& values)  // NOLINT(*-explicit-*, *-forwarding-*): floats are a tensor
      : data(reinterpret_cast<Byte*>(std::span<Float>(values).data())),
        count(std::span<Float>(values).size()) {}
  operator TensorViewOf<const std::byte>() const {  // NOLINT(*-explicit-*): to be read
    return {data, count, dtype};
  }

  std::size_t each() const { return static_cast<std::size_t>(bytes_of(dtype)); }
  std::size_t bytes() const { return count * each(); }
  TensorViewOf part(std::size_t begin, std::size_t size) const {
    return {data + begin * each(), size, dtype};
  }
  /// \pre dtype is fp32
  std::span<Float> floats() const { return {reinterpret_cast<Float*>(data), count}; }

  Byte* data = nullptr;
  std::size_t count = 0;
  DType dtype = DType::fp32;
};
using TensorView = TensorViewOf<std::byte>;
using ConstTensorView = TensorViewOf<const std::byte>;

// Kernels that run on the calling thread. What is stored in bf16 is rounded to nearest, ties to
// even; sums are made in fp32.

void clear(const TensorView& tensor);
/// tensor *= factor
void scale(const TensorView& tensor, float factor);
/// to = from. They may begin at one place: a shard that is narrowed or widened where it is.
void cast(const TensorView& to, const ConstTensorView& from);
/// Each to the nearest bf16, kept in fp32.
void round_to_bf16(std::span<float> values);
/// sum += each, element by element. \pre they do not overlap
void accumulate(const TensorView& sum, const ConstTensorView& each);

/// f(first, block) for the elements in fp32: all of them at once where that is what they are.
template <class F>
void for_blocks(const ConstTensorView& tensor, F f) {
  if (tensor.dtype == DType::fp32) {
    f(std::size_t{0}, tensor.floats());
    return;
  }
  constexpr std::size_t kBlock = 4096;
  std::array<float, kBlock> block{};
  for (std::size_t at = 0; at < tensor.count; at += kBlock) {
    const std::span<float> wide(block.data(), std::min(kBlock, tensor.count - at));
    cast(wide, tensor.part(at, wide.size()));
    f(at, std::span<const float>(wide));
  }
}

}  // namespace shardwise::exec
