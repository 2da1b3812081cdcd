#include <benchmark/benchmark.h>

#include "planner/cost/memory/memory.h"
#include "planner/engines/engines.h"
#include "tests/support/models.h"

// What one stage costs a search once its layers are summed: the ledger of five phases.

namespace shardwise {
namespace {

void stage_peaks_of(benchmark::State& state, const char* engine_name, const Layout& layout) {
  const ModelSpec model = test::llama(80, 8192, 28672, 64, 8, 128256);
  JobSpec job;
  job.global_batch_size = 1024;
  const EngineProfile& engine = *find_engine(engine_name);
  const MemoryRules rules = memory_rules(job, engine, {});
  const std::vector<LayerMemory> layers = layer_memories(model, job, engine, layout);
  const std::vector<StageLayers> stages = assign_stages(model, layout);
  const StageParts parts = stage_parts(model, layers, stages.front());
  const StageContext context = {&rules, &layout, 0, 16};
  for ([[maybe_unused]] const auto _ : state) {
    StagePeaks memory = stage_peaks(parts, context);
    benchmark::DoNotOptimize(memory);
  }
  state.SetItemsProcessed(state.iterations());
}

void layer_memory_of(benchmark::State& state) {
  const ModelSpec model = test::llama(80, 8192, 28672, 64, 8, 128256);
  const EngineProfile& engine = *find_engine("megatron_ddp");
  for ([[maybe_unused]] const auto _ : state) {
    LayerMemory memory = layer_memory(model, model.kinds[1], {}, engine, {.tp = 8});
    benchmark::DoNotOptimize(memory);
  }
}

BENCHMARK_CAPTURE(stage_peaks_of, megatron_ddp, "megatron_ddp",
                  Layout{.tp = 8, .pp = 8, .dp_shard = 16, .zero_stage = 1});
BENCHMARK_CAPTURE(stage_peaks_of, fsdp2, "fsdp2", Layout{.dp_shard = 128, .zero_stage = 3});
BENCHMARK_CAPTURE(stage_peaks_of, megatron_fsdp, "megatron_fsdp",
                  Layout{.tp = 2, .dp_shard = 64, .zero_stage = 3});
BENCHMARK(layer_memory_of);

}  // namespace
}  // namespace shardwise
