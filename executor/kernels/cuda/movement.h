#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "executor/kernels/compute/compute.h"

namespace shardwise::exec::cuda {

// Kernels that move data, and those of a rank's state (Compute from clear() on), on a GPU. They
// return when they are issued. Results have the CPU's bits, but for the sums of squares.

void clear(const TensorView& tensor, cudaStream_t stream);
/// Where `to` begins where `from` does and its dtype is another: a launch for each doubling of the
/// elements, none of which writes what it or a later one reads.
void cast(const TensorView& to, const ConstTensorView& from, cudaStream_t stream);
void accumulate(const TensorView& sum, const ConstTensorView& each, cudaStream_t stream);
void scale(const ScaleWork& work, cudaStream_t stream);
void token_factor(const TokenFactorWork& work, cudaStream_t stream);
/// Leaves work.sums as they are: registers hold the sums.
void sum_ranks(const SumRanksWork& work, cudaStream_t stream);

/// The parts of the sum that so many blocks make: doubles, in an order that the tensors' sizes
/// alone decide. Each is infinite or not a number as soon as a value of it is, and so is the norm:
/// checks for such gradients read it. Their bits depend on which rank has which element.
inline constexpr int kSquareParts = 512;
inline std::int64_t squares_bytes() {
  return kSquareParts * static_cast<std::int64_t>(sizeof(double));
}
void squares(const SquaresWork& work, cudaStream_t stream);
void squares_norm(const SquaresNormWork& work, cudaStream_t stream);
void check_gradients(const GradientCheckWork& work, cudaStream_t stream);

void adamw(const AdamWork& work, cudaStream_t stream);

}  // namespace shardwise::exec::cuda
