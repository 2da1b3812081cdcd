// Budget: under 1 us a call, as tables are filled with some 1e5 of them.
#include <benchmark/benchmark.h>

#include "planner/cost/collectives/collective.h"
#include "planner/spec/machine/cluster_reader.h"
#include "tests/support/even_group.h"

namespace shardwise {
namespace {

void time_of(benchmark::State& state, CollectiveKind kind) {
  const ClusterSpec cluster = *find_cluster("dgx-h100");
  const GroupShape group = test::even_group(cluster, {8, 512});
  std::int64_t bytes = 1;
  for ([[maybe_unused]] const auto _ : state) {
    bytes = bytes * 3 % 1'000'000'007;
    benchmark::DoNotOptimize(collective_time(cluster, kind, Bytes(bytes), group));
  }
}
BENCHMARK_CAPTURE(time_of, all_gather, CollectiveKind::all_gather);
BENCHMARK_CAPTURE(time_of, all_reduce, CollectiveKind::all_reduce);
BENCHMARK_CAPTURE(time_of, all_to_all, CollectiveKind::all_to_all);

/// Groups that divide the nodes, and groups that straddle them.
void shape_of(benchmark::State& state) {
  const ClusterSpec cluster = *find_cluster("dgx-h100");
  Layout layout;
  layout.tp = static_cast<std::int32_t>(state.range(0));
  layout.dp_shard = 64;
  for ([[maybe_unused]] const auto _ : state) {
    benchmark::DoNotOptimize(group_shape(cluster, layout, GroupKind::dp_shard));
  }
}
BENCHMARK(shape_of)->Arg(8)->Arg(6);

}  // namespace
}  // namespace shardwise
