#include <benchmark/benchmark.h>

#include <cstdlib>

#include "planner/cost/legality.h"
#include "planner/engines/engines.h"
#include "planner/lowering/check_program.h"
#include "planner/lowering/lower.h"
#include "planner/lowering/price.h"
#include "planner/model/hf_config.h"
#include "planner/spec/cluster_reader.h"

// From a plan to what its ranks run: operations a second, and the largest plan people ask about.

namespace shardwise {
namespace {

/// Llama-3.1-405B on 16,384 GPUs, 16 interleaved stages of 4 chunks, 16 micro-batches.
Plan llama_405b() {
  Plan plan;
  plan.model = *load_model("llama-3.1-405b");
  plan.engine = megatron_ddp();
  plan.layout = {.tp = 8, .pp = 16, .vpp = 4, .dp_shard = 128, .zero_stage = 1};
  plan.layout.sequence_parallel = true;
  plan.cluster = *with_gpus(*find_cluster("dgx-h100"), plan.layout.world());
  plan.job.sequence_length = 8192;
  plan.job.global_batch_size = 2048;
  return plan;
}

/// Llama-3.1-70B sharded over 256 GPUs.
Plan llama_70b() {
  Plan plan;
  plan.model = *load_model("llama-3.1-70b");
  plan.engine = fsdp2();
  plan.layout = {.dp_shard = 256, .zero_stage = 3};
  plan.cluster = *with_gpus(*find_cluster("dgx-h100"), plan.layout.world());
  plan.job.sequence_length = 8192;
  plan.job.global_batch_size = 1024;
  return plan;
}

std::int64_t operations_of(const StepProgram& program) {
  std::int64_t sum = 0;
  for (const StageProgram& stage : program.stages) {
    sum += static_cast<std::int64_t>(stage.operations.size());
  }
  return sum;
}

void lower_plan(benchmark::State& state, Plan (*make)()) {
  const Plan plan = make();
  if (!is_legal(plan.model, plan.cluster, plan.job, plan.engine, plan.layout)) std::abort();
  std::int64_t operations = 0;
  for ([[maybe_unused]] const auto _ : state) {
    const StepProgram program = lower(plan);
    operations = operations_of(program);
    benchmark::DoNotOptimize(operations);
  }
  state.counters["operations"] = static_cast<double>(operations);
  state.SetItemsProcessed(state.iterations() * operations);
}

void price_program(benchmark::State& state, Plan (*make)()) {
  const Plan plan = make();
  const StepProgram program = lower(plan);
  for ([[maybe_unused]] const auto _ : state) benchmark::DoNotOptimize(price(plan, program));
}

void check_lowered(benchmark::State& state, Plan (*make)()) {
  const StepProgram program = lower(make());
  for ([[maybe_unused]] const auto _ : state) benchmark::DoNotOptimize(check_program(program));
  state.SetItemsProcessed(state.iterations() * operations_of(program));
}

BENCHMARK_CAPTURE(lower_plan, llama_405b_16384_gpus, llama_405b)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(lower_plan, llama_70b_fsdp_256_gpus, llama_70b)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(price_program, llama_405b_16384_gpus, llama_405b)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(check_lowered, llama_405b_16384_gpus, llama_405b)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shardwise
