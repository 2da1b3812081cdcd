#pragma once

#include <span>
#include <string>

#include "executor/kernels/cuda/attention_kernels.h"
#include "executor/kernels/cuda/linear_kernels.h"

namespace shardwise::exec {

/// Rules for timing kernels of a GPU and keeping the times.
struct KernelKeeping {
  KernelMachine machine;
  std::string folder;       // kernel_choices_folder(); empty: nothing is kept
  double seconds_each = 0;  // that each of the kernels that are compared is repeated for
};

/// Compute::prepare() of products and attention. Rank 0 takes what its file keeps of earlier runs,
/// times the rest and adds it to the file; the others take what rank 0 has, and time only what it
/// has not. A file that cannot be read or written is a line, not a failure.
/// \param workspace  that they will have
/// \throws what the kernels throw
void prepare_kernels(LinearKernels& products, AttentionKernels& attention,
                     std::span<std::byte> workspace, const KernelKeeping& keeping,
                     const Preparation& preparation);

}  // namespace shardwise::exec
