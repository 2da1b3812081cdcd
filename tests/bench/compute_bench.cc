// Budget: under 1 us a call, as the time of every layer kind, tp, cp and micro-batch is summed of
// some 30 of them.
#include <benchmark/benchmark.h>

#include "planner/cost/kernels/compute.h"
#include "planner/spec/machine/gpu_reader.h"

namespace shardwise {
namespace {

void time_gemm(benchmark::State& state, const char* name) {
  const GpuSpec gpu = *find_gpu(name);
  std::int64_t m = 1;
  for ([[maybe_unused]] const auto _ : state) {
    m = m * 7 % 65537;
    benchmark::DoNotOptimize(gemm_time(gpu, DType::bf16, m, 8192, 4096));
  }
}
BENCHMARK_CAPTURE(time_gemm, h100_one_tile, "h100-sxm");
BENCHMARK_CAPTURE(time_gemm, a100_three_tiles, "a100-80-sxm");

void time_grouped_gemm(benchmark::State& state) {
  const GpuSpec gpu = *find_gpu("h100-sxm");
  std::int64_t m = 1;
  for ([[maybe_unused]] const auto _ : state) {
    m = m * 7 % 65537;
    const auto rows = static_cast<double>(m);
    benchmark::DoNotOptimize(grouped_gemm_time(gpu, DType::bf16, 16, rows, 2048, 4096));
  }
}
BENCHMARK(time_grouped_gemm);

void time_attention(benchmark::State& state, Pass pass) {
  const GpuSpec gpu = *find_gpu("h100-sxm");
  AttentionWork work;
  work.heads = 32;
  work.kv_heads = 8;
  for ([[maybe_unused]] const auto _ : state) {
    work.seq_q = work.seq_kv = work.seq_q * 7 % 65537;
    benchmark::DoNotOptimize(attention_time(gpu, DType::bf16, work, pass));
  }
}
BENCHMARK_CAPTURE(time_attention, forward, Pass::forward);
BENCHMARK_CAPTURE(time_attention, backward, Pass::backward);

}  // namespace
}  // namespace shardwise
