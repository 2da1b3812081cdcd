// The length of a step of many micro-batches: run whole, and by few micro-batches.
//   build/dev/bin/steady_bench
// Processor time of one thread. Both ways take turns, so that other work on the machine meets both.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"
#include "planner/spec/machine/cluster_reader.h"
#include "simulator/clock/steady_step.h"
#include "tests/bench/asks_all.h"

namespace shardwise::sim {
namespace {

struct Asked {
  const char* model = "";
  const char* engine = "megatron_ddp";
  std::int64_t microbatches = 1;
  Layout layout;

  Plan plan() const {
    Plan made;
    made.model = *load_model(model);
    made.engine = *find_engine(engine);
    made.layout = layout;
    made.cluster = *with_gpus(*find_cluster("dgx-h100"), layout.world());
    made.job.sequence_length = 8192;
    made.job.global_batch_size = microbatches * layout.dp() * layout.micro_batch_size;
    return made;
  }
  std::string name() const {
    return fmt::format("{}, {}, pp {}, vpp {}", model, engine, layout.pp, layout.vpp);
  }
};

/// Rows as rankings have them, and long steps.
std::vector<Asked> asked() {
  Layout deep;
  deep.tp = 8;
  deep.pp = 16;
  deep.dp_shard = 8;
  deep.zero_stage = 1;
  deep.sequence_parallel = true;
  Layout looped = deep;
  looped.vpp = 4;
  Layout shallow = deep;
  shallow.pp = 4;
  Layout sharded;
  sharded.dp_shard = 64;
  sharded.zero_stage = 3;
  return {{"llama-3.1-405b", "megatron_ddp", 128, looped},
          {"llama-3.1-405b", "megatron_ddp", 256, looped},
          {"llama-3.1-405b", "megatron_ddp", 128, deep},
          {"llama-3.1-405b", "megatron_ddp", 512, deep},
          {"llama-3.1-70b", "megatron_ddp", 128, shallow},
          {"llama-3.1-70b", "fsdp2", 64, sharded},
          {"llama-3.1-8b", "fsdp2", 512, sharded}};
}

double median(std::vector<double> all) {
  std::ranges::sort(all);
  return all[all.size() / 2];
}

void print(const Asked& each) {
  constexpr int kRounds = 9;
  constexpr double kMilli = 1e3;
  const Plan plan = each.plan();
  SimulationOptions all;
  all.every_microbatch = true;
  std::vector<double> whole;
  std::vector<double> few;
  std::vector<double> ratio;
  double apart = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Watch before;
    const Seconds length = simulated_length(plan, all);
    whole.push_back(kMilli * before.cpu());
    const Watch after;
    apart = simulated_length(plan) / length - 1;
    few.push_back(kMilli * after.cpu());
    ratio.push_back(whole.back() / few.back());
  }
  const std::optional<SteadyStep> steady = steady_step(plan, {});
  fmt::print("{:<45} {:>5} {:>5} {:>9.2f} {:>9.2f} {:>7.1f} {:>9.1e}\n", each.name(),
             each.microbatches, steady ? steady->microbatches : each.microbatches, median(whole),
             median(few), median(ratio), std::abs(apart));
}

void print_all() {
  fmt::print("{:<45} {:>5} {:>5} {:>9} {:>9} {:>7} {:>9}\n", "", "all", "run", "whole, ms",
             "few, ms", "ratio", "apart");
  for (const Asked& each : asked()) print(each);
}

void length(benchmark::State& state) {
  const Plan plan = asked()[static_cast<std::size_t>(state.range(0))].plan();
  SimulationOptions options;
  options.every_microbatch = state.range(1) != 0;
  for ([[maybe_unused]] const auto _ : state) {
    benchmark::DoNotOptimize(simulated_length(plan, options));
  }
}
BENCHMARK(length)->ArgsProduct({{1, 4}, {0, 1}})->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shardwise::sim

int main(int argc, char** argv) {
  // The table takes seconds: not for a run that only asks for a benchmark.
  if (argc == 1) shardwise::sim::print_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
}
