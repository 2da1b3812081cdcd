#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace shardwise::exec {

/// The algorithm that a product runs by, as cuBLASLt lets it be kept for the same version.
struct GemmChoice {
  std::array<std::uint64_t, 8> algorithm = {};
  std::int64_t workspace_bytes = 0;
  double microseconds = 0;  // measured; 0: the heuristics' choice, not timed
  // Time of the product without its epilogue, and a pass in its place; 0: not timed.
  double apart_microseconds = 0;

  bool operator==(const GemmChoice&) const = default;
};
/// Choices by the text of their product.
using GemmChoices = std::map<std::string, GemmChoice>;

/// Whose attention runs a shape, and why.
struct AttentionChoice {
  bool cudnn = false;  // else ours
  double cudnn_microseconds = 0;
  double own_microseconds = 0;

  bool operator==(const AttentionChoice&) const = default;
};
/// Choices by "forward bf16 2x1024 12/12 heads of 64 window 0".
using AttentionChoices = std::map<std::string, AttentionChoice>;

struct KernelChoices {
  GemmChoices products;
  AttentionChoices attention;

  bool operator==(const KernelChoices&) const = default;
};

/// Machine on which kernels were timed: with another, choices mean nothing.
struct KernelMachine {
  std::string gpu;         // as CUDA names it
  int driver_version = 0;  // 1000 * major + 10 * minor of its CUDA
  std::int64_t cublaslt_version = 0;
  std::int64_t cudnn_version = 0;  // 0: there is none

  bool operator==(const KernelMachine&) const = default;
};

/// "shardwise.kernel_choices/1".
std::string to_json(const KernelMachine& machine, const KernelChoices& choices);

struct ReadKernelChoices {
  KernelChoices choices;
  std::string ignored;  // one line: why there are none; empty: they were read, or are not there
};
/// Parses choices, whose algorithms are checked when they are used. Choices of another machine, and
/// a text that is damaged, over 4 MB or of a schema unknown here, are ignored.
/// \param name  of the text, for the line
ReadKernelChoices parse_kernel_choices(std::string_view text, const std::string& name,
                                       const KernelMachine& machine);
/// Reads a file of choices. One that is missing has none; a link, a folder or a pipe is ignored.
ReadKernelChoices read_kernel_choices(const std::string& path, const KernelMachine& machine);

/// Adds choices to those that the file has by now, which other processes may write too: it is
/// replaced whole, and what two write at one moment is of one of them. Makes its folder.
/// \throws IoError
void write_kernel_choices(const std::string& path, const KernelMachine& machine,
                          const KernelChoices& choices);

/// The folder of such files: $SHARDWISE_KERNEL_CHOICES, else shardwise in $XDG_CACHE_HOME or
/// ~/.cache. \returns "" where the first is set and is no absolute path ("off"), or neither of the
/// others is one, or it is not this user's alone (may_keep)
/// Source: XDG Base Directory Specification 0.8, which has relative paths ignored.
std::string kernel_choices_folder();
/// A machine's file in it: "kernels_nvidia-h100-80gb-hbm3_cuda-13000_cublaslt-130100_…json".
std::string kernel_choices_file(const KernelMachine& machine);

}  // namespace shardwise::exec
