// Opening a large trace: a step of ours, repeated until the file has about so many bytes.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "simulator/traces/trace_file.h"
#include "tests/bench/heap.h"
#include "tests/support/scratch.h"

namespace shardwise::sim {
namespace {

constexpr std::int64_t kLayers = 80;
constexpr std::int64_t kMicrobatches = 64;
constexpr std::int64_t kRanks = 8;

/// Events as TraceWriter writes them, with arrows, of as many steps as fill the file.
void write_trace_file(const std::string& path, std::int64_t bytes) {
  std::ofstream file(path, std::ios::binary);
  std::string text =
      R"({"displayTimeUnit":"ms","otherData":{"schema":"shardwise.trace/1","origin":"measured",)"
      R"("plan_digest":"","granularity":"layer"},"traceEvents":[)";
  for (std::int64_t rank = 0; rank < kRanks; ++rank) {
    text += fmt::format(
        R"({}{{"ph":"M","name":"process_name","pid":{},"args":{{"name":"rank {}, stage {}"}}}})",
        rank == 0 ? "\n" : ",\n", rank, rank, rank);
  }
  std::int64_t written = 0;
  std::int64_t at = 0;
  for (std::int64_t arrow = 0; written + std::ssize(text) < bytes;) {
    for (std::int64_t m = 0; m < kMicrobatches; ++m) {
      for (std::int64_t layer = 0; layer < kLayers; ++layer, at += 1500) {
        for (std::int64_t rank = 0; rank < kRanks; ++rank) {
          text += fmt::format(
              R"({}{{"ph":"X","name":"fwd.layer{}.mb{}","cat":"fwd","pid":{},"tid":1000000,)"
              R"("ts":{}.{:03},"dur":1.234,"args":{{"layer":{},"microbatch":{}}}}})",
              ",\n", layer, m, rank, at / 1000, at % 1000, layer, m);
          text += fmt::format(
              R"({}{{"ph":"s","id":{},"name":"waits","cat":"waits","pid":{},"tid":1000000,)"
              R"("ts":{}.{:03}}})",
              ",\n", ++arrow, rank, at / 1000, at % 1000);
        }
      }
      written += std::ssize(text);
      file << text;
      text.clear();
    }
  }
  file << text << "\n]}\n";
}

void open_trace(benchmark::State& state) {
  const test::Scratch scratch;
  const std::string path = scratch.path("trace.json");
  write_trace_file(path, state.range(0) * 1'000'000);
  const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(path));
  std::int64_t spans = 0;
  std::size_t most = 0;
  for ([[maybe_unused]] const auto _ : state) {
    const HeapUse heap;
    TraceListener listener;
    spans = 0;
    listener.spans = [&](std::span<const ReadSpan> read) { spans += std::ssize(read); };
    const Result<TracedRun> run = read_trace_file(path, listener);
    if (!run.ok()) state.SkipWithError(run.problems().front().message.c_str());
    most = heap.most();
  }
  state.SetBytesProcessed(state.iterations() * bytes);
  state.counters["spans"] = static_cast<double>(spans);
  state.counters["heap_of_file"] = static_cast<double>(most) / static_cast<double>(bytes);
}
BENCHMARK(open_trace)->Arg(50)->Arg(500)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace shardwise::sim
