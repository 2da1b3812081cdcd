// The rate at which layouts are priced: a whole search against one layout at a time. One line to
// run both and see the ratio, in the repository root:
//   build/release/bin/planner_bench
// CPU time is what a core needs; wall time is what a user waits for.

#include <benchmark/benchmark.h>

#include <chrono>

#include "planner/cost/estimate.h"
#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"
#include "planner/search/search.h"
#include "planner/spec/cluster_reader.h"

namespace shardwise {
namespace {

struct Job {
  ModelSpec model;
  ClusterSpec cluster;
  JobSpec job;
  SearchRequest request;

  Job(const char* name, std::int64_t gpus, std::int64_t batch, std::int64_t sequence,
      Breadth breadth, int threads)
      : model(*load_model(name)), cluster(*with_gpus(*find_cluster("dgx-h100"), gpus)) {
    job.global_batch_size = batch;
    job.sequence_length = sequence;
    request.model = &model;
    request.cluster = &cluster;
    request.job = &job;
    request.engines = {find_engine("megatron_ddp")};
    request.breadth = breadth;
    request.threads = threads;
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
};

/// evaluate() of the search's own winners, one at a time and from nothing: layouts a second.
double naive_rate(const Job& job, const SearchResult& found) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  std::int64_t done = 0;
  double seconds = 0;
  while (seconds < 0.2) {
    for (const Candidate& each : found.best) {
      benchmark::DoNotOptimize(
          evaluate(job.model, job.cluster, job.job, *job.request.engines.front(), each.layout));
      ++done;
    }
    seconds = std::chrono::duration<double>(Clock::now() - start).count();
  }
  return static_cast<double>(done) / seconds;
}

void run(benchmark::State& state, const Job& job) {
  std::int64_t layouts = 0;
  SearchResult found;
  for (auto _ : state) {
    found = *search(job.request);
    layouts += found.counts.front().space.legal;
  }
  state.SetItemsProcessed(layouts);
  state.counters["layouts"] = static_cast<double>(found.counts.front().space.legal);
  if (job.request.threads == 1) {
    state.counters["naive/s"] = naive_rate(job, found);
  }
}

/// Every layout of GPT-3 175B on 4,096 GPUs with memory enough that each is priced whole: bytes of
/// the fullest stage and step time. items_per_second over naive/s is the ratio.
void CompleteEvaluations(benchmark::State& state) {
  Job job("gpt3-175b", 4096, 1536, 2048, Breadth::full, 1);
  job.cluster.gpu.hbm_bytes = Bytes(std::int64_t{1} << 50);
  run(state, job);
}
BENCHMARK(CompleteEvaluations)->Unit(benchmark::kSecond)->Iterations(1)->MeasureProcessCPUTime();

/// The same space on GPUs of 80 GB: layouts that do not fit are not timed.
void Gpt3On4096(benchmark::State& state) {
  run(state, Job("gpt3-175b", 4096, 1536, 2048, Breadth::full, static_cast<int>(state.range(0))));
}
BENCHMARK(Gpt3On4096)->Arg(1)->Unit(benchmark::kSecond)->Iterations(1)->MeasureProcessCPUTime();
BENCHMARK(Gpt3On4096)
    ->Arg(2)
    ->Unit(benchmark::kSecond)
    ->Iterations(1)
    ->MeasureProcessCPUTime()
    ->UseRealTime();

/// Llama-3.1-405B on 16,384 H100: what `shardwise plan` does.
void Llama405On16384(benchmark::State& state) {
  run(state,
      Job("llama-3.1-405b", 16384, 2048, 8192, Breadth::usual, static_cast<int>(state.range(0))));
}
BENCHMARK(Llama405On16384)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();

/// The first command of the README.
void Llama70On64(benchmark::State& state) {
  run(state, Job("llama-3.1-70b", 64, 1024, 4096, Breadth::usual, 2));
}
BENCHMARK(Llama70On64)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace shardwise
