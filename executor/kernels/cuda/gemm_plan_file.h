#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

namespace shardwise::exec {

/// The algorithm that a product runs by, as cuBLASLt lets it be kept for the same version.
struct GemmChoice {
  std::array<std::uint64_t, 8> algorithm = {};
  std::int64_t workspace_bytes = 0;
  double microseconds = 0;  // measured; 0: the heuristics' choice, not timed

  bool operator==(const GemmChoice&) const = default;
};
/// By the text of their product.
using GemmChoices = std::map<std::string, GemmChoice>;

/// What plans were measured on: with another they mean nothing.
struct GemmMachine {
  std::string gpu;  // as CUDA names it
  std::int64_t cublaslt_version = 0;

  bool operator==(const GemmMachine&) const = default;
};

struct ReadGemmPlans {
  GemmChoices choices;
  std::string ignored;  // one line: why there are none; empty: the file was read, or is not there
};

/// Reads "shardwise.gemm_plans/1". What it says of algorithms is checked when they are used.
/// Plans of another machine, and a file that is damaged, over 4 MB or of a schema unknown here, are
/// ignored.
ReadGemmPlans read_gemm_plans(const std::string& path, const GemmMachine& machine);

/// \throws IoError
void write_gemm_plans(const std::string& path, const GemmMachine& machine,
                      const GemmChoices& choices);

}  // namespace shardwise::exec
