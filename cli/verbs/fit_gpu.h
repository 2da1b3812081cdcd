#pragma once

#include <string>
#include <vector>

#include "cli/verbs.h"

namespace shardwise::cli {

/// Command line of `shardwise fit --gpu`.
struct GpuFitFlags {
  std::string gpu;
  std::string gemm;
  std::vector<std::string> attention;
  std::string memory_bound;
  double cache_mib = 64;
  std::string operators;
  std::string system;
  double held_ratio = 0;  // of this GPU over the one of `operators`; 0 = it is this one
  std::vector<std::string> sustained;  // "bf16=794.5"
  bool sustained_estimated = false;    // and not measured on this GPU
  std::vector<std::string> sources;    // "gemm=owner/repository@commit:path"
  std::string output;
  bool check = false;      // print the errors of the present curves on the tables, fit nothing
  bool residuals = false;  // print the errors of every curve of the catalogue
};

void add_gpu_flags(CLI::App& verb, GpuFitFlags& flags);

ExitCode fit_gpu_files(const GpuFitFlags& flags);

}  // namespace shardwise::cli
