// What a search costs, in one line to run from the repository root:
//   build/release/bin/planner_bench
// CPU time is what the work needs, wall time what a user waits for; they differ where other
// programs run, so the load is printed beside them.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <random>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "planner/engines/engines.h"
#include "planner/estimate/estimate.h"
#include "planner/model/hf_config.h"
#include "planner/search/explore.h"
#include "planner/search/pricing/evaluator.h"
#include "planner/search/pricing/search_memory.h"
#include "planner/search/search.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/text/check.h"
#include "planner/spec/text/format.h"
#include "tests/bench/asks_all.h"
#include "tests/bench/drawn_layouts.h"
#include "tests/cli/command.h"

namespace shardwise {
namespace {

struct Job {
  ModelSpec model;
  ClusterSpec cluster;
  JobSpec job;
  SearchRequest request;

  Job(const char* name, std::int64_t gpus, std::int64_t batch, std::int64_t sequence,
      Breadth breadth, int threads, const char* engine = "megatron_ddp")
      : model(*load_model(name)), cluster(*with_gpus(*find_cluster("dgx-h100"), gpus)) {
    job.global_batch_size = batch;
    job.sequence_length = sequence;
    request.model = &model;
    request.cluster = &cluster;
    request.job = &job;
    request.engines = {find_engine(engine)};
    request.breadth = breadth;
    request.threads = threads;
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
};

Job gpt3(int threads) { return {"gpt3-175b", 4096, 1536, 2048, Breadth::full, threads}; }
Job gpt3_complete() { return gpt3(2); }
Job llama70() { return {"llama-3.1-70b", 64, 1024, 4096, Breadth::usual, 2}; }
/// Of an engine whose parameters and gradients move layer by layer.
Job llama70_sharded() {
  return {"llama-3.1-70b", 64, 1024, 4096, Breadth::usual, 2, "megatron_fsdp"};
}
Job llama405(Breadth breadth) { return {"llama-3.1-405b", 16384, 2048, 8192, breadth, 2}; }
Job llama405_usual() { return llama405(Breadth::usual); }

Rate rate_of(const Job& job) {
  const Watch watch;
  const SearchResult found = *search(job.request);
  return {found.counts.front().space.legal, watch.cpu(), watch.wall()};
}

/// Every layout decided: exact bytes of its fullest stage, and either its exact step time or a
/// proof that the time cannot matter. Memory enough that each fits, and no answer of the usual
/// space to begin with; what the search itself has found so far spares most layouts their time.
Rate decided_rate() {
  Job job = gpt3(1);
  job.cluster.gpu.hbm_bytes = Bytes(std::int64_t{1} << 50);
  job.request.bounded = false;
  return rate_of(job);
}

/// Layouts priced whole, as evaluate() prices one: exact bytes and the exact step time of each, one
/// of a work item after the other. Of a large space a seeded sample of items, each for its share of
/// processor time, for some seconds.
Rate priced_whole_rate(const Job& job, double seconds) {
  const EngineProfile& engine = *job.request.engines.front();
  const EnumeratedSpace space(job.model, job.cluster, job.job, engine, job.request.breadth);
  std::vector<const WorkItem*> items;
  for (const WorkItem& item : space.items()) items.push_back(&item);
  std::ranges::shuffle(items, std::mt19937(20261123));
  Evaluator evaluator(job.model, job.cluster, job.job, engine);
  AsksAll all(0.2);
  for (const WorkItem* item : items) {
    if (all.rate.cpu > seconds) break;
    all.run(evaluator, *item);
  }
  return all.rate;
}

/// evaluate() of layouts all over the same space, one at a time and from nothing.
Rate naive_rate() {
  const Job job = gpt3(1);
  const LayoutQuestion question =
      layout_question(job.model, job.cluster, job.job, *job.request.engines.front());
  const SearchSpace space = search_space(question, Breadth::full);
  const Enumerator enumerator(question, space);
  SpaceCounts counts = enumerator.no_counts();
  ShapeCache shapes(job.cluster);
  std::vector<Layout> layouts;
  for (DegreeGroup& group : enumerator.degree_groups(counts)) {
    enumerator.place(group, shapes);
    const WorkItem item = enumerator.work_item(group, 1, counts);
    for (const WorkItem::Stretch& stretch : item.stretches) {
      if (stretch.meshes.empty() || stretch.pipelines.empty() || item.layers.empty()) continue;
      const WorkItem::PlacedMesh& mesh = stretch.meshes.front();
      Layout layout = item.base;
      layout.pp = stretch.pp;
      layout.dp_shard = mesh.mesh->dp_shard;
      layout.dp_replicate = mesh.mesh->dp_replicate;
      layout.order = mesh.mesh->orders.front().order;
      set(layout, stretch.pipelines.front());
      set(layout, item.layers.front());
      set(layout, mesh.states.front());
      layouts.push_back(layout);
    }
  }
  const Watch watch;
  std::int64_t done = 0;
  while (watch.cpu() < 0.5) {
    for (const Layout& layout : layouts) {
      benchmark::DoNotOptimize(
          evaluate(job.model, job.cluster, job.job, *job.request.engines.front(), layout));
      ++done;
    }
  }
  return {done, watch.cpu(), watch.wall()};
}

/// `shardwise estimate` from the start of its process to its end; the median of many, in seconds.
double estimate_seconds() {
  std::vector<double> seconds;
  for (int i = 0; i < 21; ++i) {
    const Watch watch;
    const cli::Outcome outcome =
        cli::shardwise({"estimate", "--model", "llama-3.1-70b", "--cluster", "dgx-h100", "--gpus",
                        "64", "--tp", "8", "--pp", "4"});
    SHARDWISE_CHECK(outcome.exit_code == 0, outcome.err);
    seconds.push_back(watch.wall());
  }
  std::ranges::nth_element(seconds, seconds.begin() + 10);
  return seconds[10];
}

void print_space(const char* name, const Job& job) {
  const Rate rate = rate_of(job);
  fmt::print("{:<58} {:>12} layouts  {:6.2f} s wall  {:6.2f} s CPU\n", name,
             format_count(rate.layouts), rate.wall, rate.cpu);
}

void print_summary() {
  double load = 0;
  getloadavg(&load, 1);
  fmt::print("load of the machine before: {:.1f}\n", load);
  const Rate decided = decided_rate();
  const Rate whole = priced_whole_rate(gpt3(1), 8);
  const Rate usual = priced_whole_rate(llama405(Breadth::usual), 5);
  const Rate naive = naive_rate();
  const auto print = [](const char* what, double value) {
    fmt::print("{:<58} {:>12}\n", what, format_count(static_cast<std::int64_t>(value)));
  };
  print("layouts decided, GPT-3's complete space, /s a core", decided.per_second());
  print("layouts priced whole, GPT-3's complete space, /s a core", whole.per_second());
  print("layouts priced whole, Llama 405B's usual space, /s a core", usual.per_second());
  print("one layout from nothing (the naive path), /s a core", naive.per_second());
  fmt::print("{:<58} {:>12.0f}\n", "priced whole over the naive path, GPT-3",
             whole.per_second() / naive.per_second());
  print_space("GPT-3 175B on 4,096 H100, complete space, 2 threads", gpt3(2));
  print_space("Llama-3.1-405B on 16,384 H100, complete space, 2 threads", llama405(Breadth::full));
  print_space("Llama-3.1-405B on 16,384 H100, usual space, 2 threads", llama405(Breadth::usual));
  fmt::print("shardwise estimate, from process start {:23.1f} ms wall\n\n",
             1000 * estimate_seconds());
}

/// The first command of the README.
void llama_70b_on_64(benchmark::State& state) {
  const Job job = llama70();
  for ([[maybe_unused]] const auto _ : state) benchmark::DoNotOptimize(*search(job.request));
}
BENCHMARK(llama_70b_on_64)->Unit(benchmark::kMillisecond)->UseRealTime();

/// The same cluster with counts that no power of two divides well: groups straddle the nodes.
void llama_70b_on_odd_counts(benchmark::State& state) {
  const Job job("llama-3.1-70b", state.range(0), 960, 4096, Breadth::usual, 2);
  for ([[maybe_unused]] const auto _ : state) benchmark::DoNotOptimize(*search(job.request));
}
BENCHMARK(llama_70b_on_odd_counts)
    ->Arg(720)
    ->Arg(960)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

/// Memory, fit and a bound on the time of every layout, sorted.
void price_all(benchmark::State& state, Job (*make)()) {
  Job job = make();
  job.request.memory = std::make_shared<SearchMemory>();
  for ([[maybe_unused]] const auto _ : state) {
    std::stop_source source;
    job.request.stop = source.get_token();
    ExploreOptions options;
    options.priced = [&](const Exploration& all) {
      benchmark::DoNotOptimize(ranked_rows(all, Objective::step_time));
      source.request_stop();
    };
    state.counters["layouts"] = static_cast<double>((*explore(job.request, options)).rows());
  }
}
BENCHMARK_CAPTURE(price_all, llama_70b_on_64, llama70)
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();
BENCHMARK_CAPTURE(price_all, llama_405b_on_16384, llama405_usual)
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();

/// And their exact times. \param remembers  what the questions before have made is known
void time_all(benchmark::State& state, Job (*make)(), bool remembers) {
  Job job = make();
  if (remembers) job.request.memory = std::make_shared<SearchMemory>();
  if (remembers) benchmark::DoNotOptimize(*explore(job.request));
  for ([[maybe_unused]] const auto _ : state) benchmark::DoNotOptimize(*explore(job.request));
}
BENCHMARK_CAPTURE(time_all, llama_70b_on_64, llama70, false)
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();
BENCHMARK_CAPTURE(time_all, llama_70b_on_64_remembered, llama70, true)
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();
BENCHMARK_CAPTURE(time_all, llama_70b_sharded_on_64, llama70_sharded, true)
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();

/// The best ten while somebody drags the bandwidth between nodes: each search is of another one.
void best_ten(benchmark::State& state, Job (*make)(), bool remembers) {
  Job job = make();
  job.request.front = false;
  if (remembers) job.request.memory = std::make_shared<SearchMemory>();
  if (remembers) benchmark::DoNotOptimize(*search(job.request));
  for ([[maybe_unused]] const auto _ : state) {
    job.cluster.tiers.back().bandwidth = job.cluster.tiers.back().bandwidth * 0.99;
    benchmark::DoNotOptimize(*search(job.request));
  }
}
BENCHMARK_CAPTURE(best_ten, llama_70b_on_64, llama70, false)
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();
BENCHMARK_CAPTURE(best_ten, llama_70b_on_64_remembered, llama70, true)
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();
BENCHMARK_CAPTURE(best_ten, llama_70b_sharded_on_64, llama70_sharded, true)
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();

/// From the request to stop until search() has returned, after a part of the time that the search
/// takes: the longest of several, in milliseconds of the wall, and what all threads computed.
void stop(benchmark::State& state, Job (*make)()) {
  Job job = make();
  const Watch whole;
  benchmark::DoNotOptimize(*search(job.request));
  const double seconds = whole.wall();
  double longest = 0;
  double most = 0;
  for ([[maybe_unused]] const auto _ : state) {
    for (int part = 1; part < 20; ++part) {
      std::stop_source source;
      job.request.stop = source.get_token();
      std::atomic<bool> begun = false;
      std::jthread searching([&] {
        begun = true;
        benchmark::DoNotOptimize(*search(job.request));
      });
      while (!begun) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds * part / 20));
      const Watch watch;
      source.request_stop();
      searching.join();
      longest = std::max(longest, watch.wall());
      most = std::max(most, watch.cpu());
    }
  }
  state.counters["longest_ms"] = 1000 * longest;
  state.counters["cpu_ms"] = 1000 * most;
}
BENCHMARK_CAPTURE(stop, llama_70b_on_64, llama70)->Iterations(1);
BENCHMARK_CAPTURE(stop, llama_405b_on_16384, llama405_usual)->Iterations(1);
BENCHMARK_CAPTURE(stop, gpt3_complete, gpt3_complete)->Iterations(1);

}  // namespace
}  // namespace shardwise

int main(int argc, char** argv) {
  // The summary takes some ten seconds of both cores: not for a run that only asks for a benchmark.
  if (argc == 1) shardwise::print_summary();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
}
