#include <benchmark/benchmark.h>

#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"
#include "planner/spec/machine/cluster_reader.h"
#include "simulator/clock/engine.h"
#include "simulator/clock/shared_engine.h"
#include "simulator/clock/simulate.h"
#include "simulator/traces/trace.h"
#include "tests/bench/heap.h"
#include "tests/simulator/workload/hand_made.h"

namespace shardwise::sim {
namespace {

/// Times `run`, which returns how many operations it ran, and counts what the heap holds for it.
template <class Run>
void measure(benchmark::State& state, const Run& run) {
  const HeapUse heap;
  auto operations = static_cast<double>(run());
  const auto bytes = static_cast<double>(heap.most());
  for ([[maybe_unused]] const auto _ : state) operations = static_cast<double>(run());
  state.counters["operations"] = operations;
  state.counters["bytes/operation"] = bytes / operations;
  state.counters["operations/s"] =
      benchmark::Counter(operations, benchmark::Counter::kIsIterationInvariantRate);
}
void run_alone(benchmark::State& state, const Workload& work) {
  measure(state, [&] {
    benchmark::DoNotOptimize(run_alone(work).end.data());
    return work.operations;
  });
}
void run_shared(benchmark::State& state, const Workload& work) {
  measure(state, [&] {
    benchmark::DoNotOptimize(run_shared(work).end.data());
    return work.operations;
  });
}

/// An FSDP step of range(0) layers by its representative rank; time grows with its operations.
void fsdp_step(benchmark::State& state) {
  const HandMade made = fsdp(static_cast<std::int32_t>(state.range(0)));
  run_alone(state, representatives(made.program, made.prices));
}
BENCHMARK(fsdp_step)->RangeMultiplier(8)->Range(80, 40960)->Unit(benchmark::kMillisecond);

Layout sharded(const benchmark::State& state) {
  Layout layout;
  layout.dp_shard = static_cast<std::int32_t>(state.range(0));
  return layout;
}

/// The same with the ranks of range(0) GPUs, 80 layers; from the step program to all times.
void every_rank(benchmark::State& state) {
  const HandMade made = fsdp(80);
  measure(state, [&] {
    const Workload work = all_ranks(made.program, made.prices, sharded(state));
    benchmark::DoNotOptimize(run_alone(work).end.data());
    return work.operations;
  });
}
BENCHMARK(every_rank)->RangeMultiplier(4)->Range(256, 16384)->Unit(benchmark::kMillisecond);

/// As those above, but what runs at once shares links, multiprocessors and memory.
HandMade sharing(HandMade made) {
  for (std::size_t s = 0; s < made.prices.size(); ++s) {
    for (std::uint32_t i = 0; i < made.program.stages[s].operations.size(); ++i) {
      CostPrice& price = made.price(s, i);
      const bool computes = made.op(s, i).stream == Stream::compute;
      price.memory_share = 0.25;
      if (computes) continue;
      price.tax = {0.1, 0.1};
      price.link_share = {0.6, 0.6, 0, 0};
    }
  }
  return made;
}

void fsdp_step_shared(benchmark::State& state) {
  const HandMade made = sharing(fsdp(static_cast<std::int32_t>(state.range(0))));
  run_shared(state, representatives(made.program, made.prices));
}
BENCHMARK(fsdp_step_shared)->RangeMultiplier(8)->Range(80, 40960)->Unit(benchmark::kMillisecond);

/// Every rank, four of them on each NIC; with jitter no two are in step.
void every_rank_shared(benchmark::State& state, double jitter) {
  const HandMade made = sharing(fsdp(80));
  const std::vector<LinkKind> nics = {{1, 4, 2, false}};
  measure(state, [&] {
    Workload work = all_ranks(made.program, made.prices, sharded(state), nics);
    work.noise.jitter = jitter;
    benchmark::DoNotOptimize(run_shared(work).end.data());
    return work.operations;
  });
}
BENCHMARK_CAPTURE(every_rank_shared, in_step, 0)
    ->RangeMultiplier(4)
    ->Range(256, 16384)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(every_rank_shared, jitter, 0.1)
    ->RangeMultiplier(4)
    ->Range(256, 4096)
    ->Unit(benchmark::kMillisecond);

/// 8 stages, 32 micro-batches of 246 kernels and 2 messages each way: 126,000 operations.
void pipeline_step(benchmark::State& state) {
  const HandMade made = one_f_one_b({8, 32 * 123, 1, 1, 2, 0.1});
  run_alone(state, representatives(made.program, made.prices));
}
BENCHMARK(pipeline_step)->Unit(benchmark::kMillisecond);

Plan plan_of(const char* model, const char* engine, std::int64_t gpus, const Layout& layout,
             std::int64_t batch) {
  Plan plan;
  plan.model = *load_model(model);
  plan.cluster = *with_gpus(*find_cluster("dgx-h100"), gpus);
  plan.engine = *find_engine(engine);
  plan.layout = layout;
  plan.job.global_batch_size = batch;
  return plan;
}

/// A plan from lowering to the report, with contention.
void simulated(benchmark::State& state, const Plan& plan, Granularity granularity) {
  SimulationOptions options;
  options.granularity = granularity;
  measure(state, [&] { return simulate(plan, options).work.operations; });
}

/// Llama-3.1-405B on 16,384 GPUs, 16 stages of 2 chunks, by representatives.
void llama_405b(benchmark::State& state) {
  Layout layout;
  layout.tp = 8;
  layout.sequence_parallel = true;
  layout.pp = 16;
  layout.vpp = 2;
  layout.dp_shard = 128;
  layout.zero_stage = 1;
  simulated(state, plan_of("llama-3.1-405b", "megatron_ddp", 16384, layout, 2048),
            Granularity::layer);
}
BENCHMARK(llama_405b)->Unit(benchmark::kMillisecond);

/// Llama-3.1-70B, 8 stages, 32 micro-batches, kernel by kernel: the run alone, and its trace.
Plan llama_70b() {
  Layout layout;
  layout.tp = 8;
  layout.sequence_parallel = true;
  layout.pp = 8;
  layout.zero_stage = 1;
  return plan_of("llama-3.1-70b", "megatron_ddp", 64, layout, 32);
}
void llama_70b_kernels(benchmark::State& state) {
  SimulationOptions options;
  options.granularity = Granularity::kernel;
  const Simulation made = simulate(llama_70b(), options);
  run_shared(state, made.work);
}
BENCHMARK(llama_70b_kernels)->Unit(benchmark::kMillisecond);

/// The same from lowering to the report: a report costs little beside its run, however deep.
void llama_70b_kernels_report(benchmark::State& state) {
  simulated(state, llama_70b(), Granularity::kernel);
}
BENCHMARK(llama_70b_kernels_report)->Unit(benchmark::kMillisecond);

void llama_70b_kernels_trace(benchmark::State& state) {
  const Plan plan = llama_70b();
  SimulationOptions options;
  options.granularity = Granularity::kernel;
  const Simulation made = simulate(plan, options);
  std::size_t bytes = 0;
  for ([[maybe_unused]] const auto _ : state) {
    bytes = 0;
    write_trace(plan, made, 64, [&bytes](std::string_view text) { bytes += text.size(); });
  }
  state.counters["bytes"] = static_cast<double>(bytes);
}
BENCHMARK(llama_70b_kernels_trace)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shardwise::sim
