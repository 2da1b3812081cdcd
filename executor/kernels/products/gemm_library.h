#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "executor/kernels/products/processor.h"

namespace shardwise::exec {

// Which kernels multiply matrices. OpenBLAS chooses its own by the model of the processor, and
// takes its oldest for models that it does not know: a fourth to a sixth of the speed. The choice
// here is by features.

/// Those of OpenBLAS's kernels that a processor should use: `own`, which OpenBLAS chose, where none
/// is written for wider vectors or `own` is not known here; empty where no feature tells.
std::string_view widest_kernels(const Processor& processor, std::string_view own);

/// Whether kernels are written for narrower vectors than this processor has.
bool are_narrow(std::string_view kernels, const Processor& processor);

/// The features that OpenBLAS's kernels of this name need, whatever its case; none where the name
/// is not known.
Features needed_by(std::string_view kernels);

/// The library that multiplies, as this process uses it.
struct GemmLibrary {
  std::string name;     // "OpenBLAS", or "Eigen" where the build found no BLAS
  std::string version;  // "0.3.21"
  std::string kernels;  // "SkylakeX"; Eigen's by the instructions that it was compiled for
  std::string bf16;     // "oneDNN 2.6.3" where that multiplies bf16; empty: widened to fp32
  Features unused;      // of the processor, which kernels of wider vectors or fewer bits would use
  std::string problem;  // why OPENBLAS_CORETYPE cannot be followed, with what can; else empty
  std::vector<std::string> warnings;  // of what is slower than it could be, with the cure

  /// "OpenBLAS 0.3.21 with SkylakeX kernels, of bf16 by oneDNN 2.6.3"
  std::string label() const;
  /// A line on what multiplies and what of the processor is not used, the warnings, the problem.
  std::vector<std::string> notes() const;
};

/// Chosen when first asked for, which the first product does. A user's OPENBLAS_CORETYPE wins.
const GemmLibrary& gemm_library();

/// Chooses kernels for `processor`, and has OpenBLAS use them. \param asked  value of
/// OPENBLAS_CORETYPE when the program started; empty: none \pre no product runs meanwhile
GemmLibrary choose_kernels(const Processor& processor, std::string_view asked);

/// Has OpenBLAS use kernels. \returns whether it has some of this name; else it uses others
/// \pre the processor has what they need, and no product runs meanwhile
bool use_kernels(const std::string& name);

}  // namespace shardwise::exec
