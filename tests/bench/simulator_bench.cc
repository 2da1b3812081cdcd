#include <benchmark/benchmark.h>

#include "simulator/engine.h"
#include "tests/simulator/hand_made.h"

namespace shardwise::sim {
namespace {

/// An FSDP step of range(0) layers by its representative rank; time grows with its operations.
void fsdp_step(benchmark::State& state) {
  const HandMade made = fsdp(static_cast<std::int32_t>(state.range(0)));
  const Workload work = representatives(made.program, made.prices);
  for ([[maybe_unused]] const auto _ : state) benchmark::DoNotOptimize(run_alone(work).end.data());
  state.counters["operations"] = static_cast<double>(work.operations);
  state.counters["operations/s"] = benchmark::Counter(
      static_cast<double>(work.operations), benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(fsdp_step)->RangeMultiplier(8)->Range(80, 40960)->Unit(benchmark::kMillisecond);

/// The same with the ranks of range(0) GPUs, 80 layers; from the step program to all times.
void every_rank(benchmark::State& state) {
  const HandMade made = fsdp(80);
  Layout layout;
  layout.dp_shard = static_cast<std::int32_t>(state.range(0));
  std::size_t operations = 0;
  for ([[maybe_unused]] const auto _ : state) {
    const Workload work = all_ranks(made.program, made.prices, layout);
    operations = work.operations;
    benchmark::DoNotOptimize(run_alone(work).end.data());
  }
  state.counters["operations"] = static_cast<double>(operations);
  state.counters["operations/s"] = benchmark::Counter(
      static_cast<double>(operations), benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(every_rank)->RangeMultiplier(4)->Range(256, 16384)->Unit(benchmark::kMillisecond);

/// 8 stages, 32 micro-batches of 246 kernels and 2 messages each way: 126,000 operations.
void pipeline_step(benchmark::State& state) {
  const HandMade made = one_f_one_b({8, 32 * 123, 1, 1, 2, 0.1});
  const Workload work = representatives(made.program, made.prices);
  for ([[maybe_unused]] const auto _ : state) benchmark::DoNotOptimize(run_alone(work).end.data());
  state.counters["operations"] = static_cast<double>(work.operations);
  state.counters["operations/s"] = benchmark::Counter(
      static_cast<double>(work.operations), benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(pipeline_step)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shardwise::sim
