#include "planner/cost/memory/memory.h"

#include <algorithm>

#include "planner/cost/kernels/gpu_workspace.h"
#include "planner/cost/kernels/kernel_traits.h"
#include "planner/cost/layer/operation_memory.h"
#include "planner/cost/memory/host_memory.h"
#include "planner/cost/memory/memory_terms.h"
#include "planner/cost/memory/stage_residents.h"
#include "planner/cost/memory/stage_totals.h"
#include "planner/cost/memory/state_bytes.h"
#include "planner/cost/memory/unit_room.h"
#include "planner/cost/software/runtime_memory.h"
#include "planner/cost/software/shard_multiple.h"
#include "planner/cost/software/usual_kernels.h"
#include "planner/spec/machine/dtype.h"
#include "planner/spec/text/units.h"

namespace shardwise {
namespace {

using enum MemoryCategory;

/// CUBLAS_WORKSPACE_CONFIG=:4096:8, which repeatable GEMMs need: eight buffers of 4 MiB.
constexpr std::int64_t kDeterministicWorkspace = std::int64_t{32} << 20;
std::int64_t states_of(const Ledger& ledger) {
  return ledger[weights] + ledger[main_weights] + ledger[gradients] + ledger[optimizer_moments];
}

/// How matrices that are multiplied in 8 bits are kept. Transformer Engine casts them once a step
/// and keeps the casts, transposed too where the GEMM reads one layout only or where the scales
/// differ by direction; torchao casts them when they are read.
/// Source: NVIDIA/TransformerEngine@d0067d0d, transformer_engine/pytorch/module/linear.py,
/// _fp8_workspaces, and tensor/float8_tensor.py; docs/memory.md, 8 bits.
void set_narrow(MemoryRules& rules, const JobSpec& job) {
  rules.narrow_bytes = rules.weight_bytes;
  const bool fp4 = job.precision == DType::fp4;
  if (job.precision != DType::fp8 && !fp4) return;
  const EngineProfile& engine = *rules.engine;
  const bool kept = job.fp8_parameter_gather && !fp4;
  if (kept) rules.narrow_bytes = 1;
  const bool casts = kernels_of(job, engine) == Kernels::transformer_engine &&
                     engine.gather != GatherBuffer::copy_out;
  if (!casts) return;
  const bool by_tensor = job.fp8_recipe != Fp8Recipe::block && !fp4;
  const bool transposed = !by_tensor || rules.runtime.fp8_needs_transposes;
  const bool in_place = kept && engine.main_weights == MainWeights::separate;
  rules.narrow_copies = (in_place ? 0 : 1) + (transposed ? 1 : 0);
  if (fp4) {
    rules.narrow_packed = 2;
    rules.narrow_scaled = 16;
    rules.narrow_scale_bytes = 1;
  } else if (job.fp8_recipe == Fp8Recipe::block) {
    rules.narrow_scaled = 32;
    rules.narrow_scale_bytes = 1;
  }
}

}  // namespace

MemoryRules memory_rules(const JobSpec& job, const EngineProfile& engine,
                         const RuntimeMemory& runtime) {
  MemoryRules rules;
  rules.engine = &engine;
  rules.runtime = runtime;
  if (job.deterministic) rules.runtime.framework_workspace = kDeterministicWorkspace;
  const bool whole = job.precision == DType::fp32 || job.precision == DType::tf32;
  rules.weight_bytes = whole ? 4 : 2;
  rules.parameter_bytes = bytes_of(job.main_dtype);
  // Our executor places everything in an arena, whatever the engine whose states it keeps.
  if (kernels_of(job, engine) == Kernels::planned) {
    rules.runtime.slack_bytes = 0;
    rules.runtime.slack_share = rules.runtime.slack_states_share = 0;
    rules.runtime.slack_least_share = rules.runtime.slack_most_share = 0;
    rules.runtime.slack_most_bytes = 0;
    rules.runtime.slack_whole_share = 0;
  }
  rules.step_block = kernels_of(job, engine) == Kernels::planned;
  rules.sequence_length = job.sequence_length;
  rules.per_token_loss = job.calculate_per_token_loss;
  const bool casts = rules.parameter_bytes != rules.weight_bytes;
  rules.main_bytes = casts ? rules.parameter_bytes : 0;
  // Frozen weights are kept as they are computed with.
  rules.casts_weights = casts && !job.frozen_base;
  set_narrow(rules, job);
  const int moment = bytes_of(job.moment_dtype);
  rules.moment_bytes = job.optimizer == Optimizer::adamw          ? 2 * moment
                       : job.optimizer == Optimizer::sgd_momentum ? moment
                                                                  : 0;
  if (steps_with_torch_adamw(job, engine)) {
    rules.adamw = job.adamw;
    rules.narrow_moments = job.moment_dtype == DType::int8 && !is_bitsandbytes(job.adamw);
  }
  // Without mixed precision gradients are reduced in what they are.
  rules.reduce_bytes =
      whole ? 4 : std::min(bytes_of(engine.reduce_dtype), std::max(rules.parameter_bytes, 2));
  rules.fp32_accumulation = job.reduce_scatter_with_fp32_accumulation;
  return rules;
}

MemoryRules memory_rules_on(const GpuSpec& gpu, const ModelSpec& model, const JobSpec& job,
                            const EngineProfile& engine) {
  MemoryRules rules = memory_rules(job, engine, runtime_memory(engine, gpu));
  rules.shard_multiple = shard_multiple(engine, job, gpu);
  rules.whole_pieces =
      kernel_traits(gpu).whole_pieces && kernels_of(job, engine) == Kernels::planned;
  rules.adds_to_sums = kernel_traits(gpu).adds_to_sums;
  const int capability = cuda_capability(gpu);
  if (capability > 0 && kernels_of(job, engine) == Kernels::planned) {
    rules.gpu_kernels = {&model, &job, capability};
  }
  return rules;
}

MemoryRules with_hosts(MemoryRules rules, const ClusterSpec& cluster) {
  rules.host_bytes = cluster.host_memory_per_node.value();
  rules.ranks_of_host = std::min(cluster.gpus, cluster.gpus_per_node);
  return rules;
}

StageMemory stage_memory(const StageParts& parts, const StageContext& context) {
  StageMemory memory;
  const StageTerms terms = stage_terms(parts, context);
  for (std::size_t p = 0; p < kMemoryPhases; ++p) {
    Ledger& ledger = memory.phases[p];
    for (const MemoryTerm& term : terms.all()) {
      if (term.in(static_cast<MemoryPhase>(p))) ledger[term.category] += term.amount.bytes();
    }
    ledger[allocator_slack] = allocator_slack_bytes(ledger.allocated().value(), states_of(ledger),
                                                    parts, *context.layout, *context.rules);
  }
  return memory;
}

StagePeaks stage_peaks(const StageParts& parts, const StageContext& context) {
  const StageStates states = stage_states(parts, context);
  return stage_peaks(state_totals(states), pass_totals(parts, context, states),
                     resident_totals(parts, context), parts, context);
}

Bytes needed_memory(const StageMemory& memory, const MemoryRules& rules) {
  Bytes most;
  for (const Ledger& ledger : memory.phases) {
    most = std::max(most, ledger.total() - Bytes(ledger[allocator_slack]) +
                              Bytes(fragment_bytes(ledger.allocated().value(), rules)));
  }
  return most;
}

std::int64_t host_bytes(const StageParts& parts, const StageContext& context) {
  return host_bytes(parts, context, stage_states(parts, context));
}

MemoryDoubt memory_doubt(const StageMemory& memory, const StageParts& parts,
                         const StageContext& context) {
  return memory_doubt(memory.peak_reserved().value(),
                      pass_totals(parts, context, stage_states(parts, context)),
                      resident_totals(parts, context), parts, *context.rules);
}

namespace {

LayoutMemory layout_memory(const ModelSpec& model, const JobSpec& job, const MemoryRules& rules,
                           const Layout& layout) {
  const EngineProfile& engine = *rules.engine;
  const std::vector<LayerMemory> by_kind = layer_memories(model, job, engine, layout);
  const std::vector<StageLayers> stages = assign_stages(model, layout);
  const std::int64_t batch = job.batch_for(layout.dp(), layout.micro_batch_size);
  LayoutMemory result;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const StageParts parts = stage_parts(model, by_kind, stages[s]);
    const StageContext context = {
        &rules, &layout, static_cast<std::int32_t>(s),
        std::max<std::int64_t>(batch / (layout.dp() * layout.micro_batch_size), 1)};
    result.stages.push_back(stage_memory(parts, context));
    result.upper.push_back(result.stages.back().peak_total() +
                           memory_doubt(result.stages.back(), parts, context).total());
  }
  return result;
}

}  // namespace

LayoutMemory layout_memory(const ModelSpec& model, const JobSpec& job, const EngineProfile& engine,
                           const RuntimeMemory& runtime, const Layout& layout) {
  return layout_memory(model, job, memory_rules(job, engine, runtime), layout);
}

LayoutMemory layout_memory_on(const GpuSpec& gpu, const ModelSpec& model, const JobSpec& job,
                              const EngineProfile& engine, const Layout& layout) {
  return layout_memory(model, job, memory_rules_on(gpu, model, job, engine), layout);
}

}  // namespace shardwise
