#pragma once

// fake_gpu_shardwise_run with the kernels of GPUs, on plans of models that host_cuda trains in
// moments.
#include <string>
#include <vector>

#include "planner/spec/plan/plan.h"
#include "tests/support/command.h"

namespace shardwise::exec::test {

/// A plan for `ranks` H100s. \param model  "gpt2" (biases, LayerNorm, fused GELU, tied head) or
/// "llama" (grouped heads, RMSNorm, rotary embedding, SwiGLU)
Plan small_plan(const std::string& model, DType precision, int zero_stage, int ranks,
                std::int64_t num_microbatches = 1);

/// Trains a plan on fake GPUs by the kernels of GPUs. \param environment  "FAKE_GPU_FAIL=…";
/// "FAKE_GPU_KERNELS=0": by the CPU's. Ranks are threads, unless it has "FAKE_NCCL_FOLDER=…"
shardwise::test::Outcome run_on_gpus(const std::string& plan, const std::vector<std::string>& words,
                                     const std::vector<std::string>& environment = {});

}  // namespace shardwise::exec::test
