// What it costs to record when each operation of a step begins and ends.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "executor/comm/abort.h"
#include "executor/device/cpu/stream_runner.h"

namespace shardwise::exec {
namespace {

/// The recording alone: two readings of the clock.
void record_operation(benchmark::State& state) {
  std::vector<OpSpan> spans(64);
  std::size_t op = 0;
  for (auto each : state) {
    static_cast<void>(each);
    spans[op].begin = now_ns();
    benchmark::ClobberMemory();
    spans[op].end = now_ns();
    benchmark::DoNotOptimize(spans.data());
    op = (op + 1) % spans.size();
  }
}
BENCHMARK(record_operation);

/// An operation of one stream that does nothing, recorded: a step of `range` of them.
void run_operation(benchmark::State& state) {
  StageProgram program;
  program.operations.resize(static_cast<std::size_t>(state.range(0)));
  AbortSignal abort;
  StreamRunner runner({&program}, 0, abort);
  const OpKernels nothing(program.operations.size(), [](exec::DeviceStream& /*stream*/) {});
  for (auto each : state) {
    static_cast<void>(each);
    runner.run(0, nothing, Spans::recorded);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(run_operation)->Arg(256);

}  // namespace
}  // namespace shardwise::exec
