#include <benchmark/benchmark.h>

#include <cstdlib>
#include <vector>

#include "planner/engines/engines.h"
#include "planner/legality/legality.h"
#include "planner/lowering/checks/check_program.h"
#include "planner/lowering/lower.h"
#include "planner/lowering/operands/lower_to_run.h"
#include "planner/lowering/price.h"
#include "planner/model/hf_config.h"
#include "planner/spec/machine/cluster_reader.h"

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

/// GPT-2 XL on 8 ranks with 64 micro-batches each, gradients of all layers in a few buckets.
Plan gpt2_xl(const char* engine, std::int8_t zero_stage) {
  Plan plan;
  plan.model = *load_model("gpt2-xl");
  plan.engine = *find_engine(engine);
  plan.layout = {.dp_shard = 8, .zero_stage = zero_stage};
  plan.cluster = *with_gpus(*find_cluster("dgx-h100"), plan.layout.world());
  plan.job.sequence_length = 1024;
  plan.job.global_batch_size = 512;
  return plan;
}

/// What a run does before it binds a rank's program.
void check_run(benchmark::State& state, const char* engine, std::int8_t zero_stage) {
  const Plan plan = gpt2_xl(engine, zero_stage);
  const std::vector<LayerRoom> rooms(plan.model.kinds.size(), LayerRoom{4096, 128, 256, 64});
  const StepProgram program = lower_to_run(plan, StepKind::steady, {8, 1, 1, 0, 8, 1}, rooms);
  if (!check_program(program).empty()) std::abort();
  for ([[maybe_unused]] const auto _ : state) benchmark::DoNotOptimize(check_program(program));
  state.SetItemsProcessed(state.iterations() * operations_of(program));
  state.counters["operations"] = static_cast<double>(operations_of(program));
  state.counters["operands"] = static_cast<double>(program.stages.front().operands.size());
}

void lower_run(benchmark::State& state, const char* engine, std::int8_t zero_stage) {
  const Plan plan = gpt2_xl(engine, zero_stage);
  const std::vector<LayerRoom> rooms(plan.model.kinds.size(), LayerRoom{4096, 128, 256, 64});
  for ([[maybe_unused]] const auto _ : state) {
    benchmark::DoNotOptimize(
        lower_to_run(plan, StepKind::steady, {8, 1, 1, 0, 8, 1}, rooms).stages.size());
  }
}

BENCHMARK_CAPTURE(lower_plan, llama_405b_16384_gpus, llama_405b)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(lower_plan, llama_70b_fsdp_256_gpus, llama_70b)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(price_program, llama_405b_16384_gpus, llama_405b)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(check_lowered, llama_405b_16384_gpus, llama_405b)->Unit(benchmark::kMillisecond);

BENCHMARK_CAPTURE(lower_run, gpt2_xl_megatron_zero1, "megatron_ddp", 1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(check_run, gpt2_xl_megatron_zero1, "megatron_ddp", 1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(check_run, gpt2_xl_shardwise_zero3, "shardwise", 3)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shardwise
