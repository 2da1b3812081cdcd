#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/question/mfu/mfu_conventions.h"
#include "planner/spec/machine/gpu_spec.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/model_spec.h"
#include "planner/spec/report/report.h"
#include "planner/spec/text/diagnostic.h"

namespace shardwise {

/// A utilisation as a log prints it: 38.5 % is {0.385, 0.0005}.
struct PrintedShare {
  double share = 0;
  double rounding = 0;  // half of the last digit
};
/// "38.5%", "38.5", "0.385": with % or above 1 it is per cent. \returns nothing for other words
/// and outside 0 to 1,000 %
std::optional<PrintedShare> read_printed_share(std::string_view text);

/// Question of `mfu`.
struct AskedMfu {
  std::string model;
  std::string gpu;
  std::int64_t gpus = 1;                  // that share the tokens
  double tokens_per_second = 0;           // of all of them
  std::int64_t sequence_length = 0;       // 0: the usual one
  std::string precision;                  // empty: what people train in on this GPU
  Recompute recompute = Recompute::full;  // what HFU counts
  std::optional<PrintedShare> printed;
};

/// Work over time under one convention.
struct MfuRow {
  FlopsConvention convention;
  double of_dense = 0;   // of the dense peak: MFU, or HFU where it counts what is executed
  double of_sparse = 0;  // of the peak with structured sparsity; 0 where there is none
};

/// A row that a printed number follows.
struct MfuMatch {
  std::size_t row = 0;
  bool sparse = false;
  double share = 0;
};

struct MfuAnswer {
  ModelSpec model;
  GpuSpec gpu;
  std::int64_t gpus = 1;
  std::int64_t sequence_length = 0;
  DType precision = DType::bf16;
  double tokens_per_second = 0;  // of one GPU
  FlopsPerSecond dense;
  FlopsPerSecond sparse;       // 0: no structured sparsity
  std::vector<MfuRow> rows;    // ours first
  bool above_kernels = false;  // our MFU is more than matrix products of any size reach
  double kernels = 0;          // that share of the dense peak
  std::optional<PrintedShare> printed;
  std::vector<MfuMatch> matches;  // nearest first; empty: none within its rounding and 0.5 %
  MfuMatch nearest;               // of all rows, where something was printed
  std::vector<Assumption> said;
};

/// \returns the answer, or what is wrong: a rate above the peak of the GPU is a problem of
///          --tokens-per-second, a share above the whole peak one of --printed
Result<MfuAnswer> answer_mfu(const AskedMfu& asked);

}  // namespace shardwise
