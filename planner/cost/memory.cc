#include "planner/cost/memory.h"

#include <algorithm>

#include "planner/cost/stage_moments.h"
#include "planner/cost/state_bytes.h"
#include "planner/spec/dtype.h"
#include "planner/spec/units.h"

namespace shardwise {
namespace {

using enum MemoryCategory;

/// CUBLAS_WORKSPACE_CONFIG=:4096:8, which repeatable GEMMs need: eight buffers of 4 MiB.
constexpr std::int64_t kDeterministicWorkspace = std::int64_t{32} << 20;
constexpr std::int64_t kSegmentBytes = std::int64_t{2} << 20;
/// Bands of doubt, as shares of what they are about. Source: docs/memory.md, upper bound.
constexpr double kCommunicatorDoubt = 1.0;  // trees and transports besides the ring
constexpr double kRuntimeDoubt = 0.5;
constexpr double kWorkingDoubt = 0.25;    // temporaries of kernels that were not traced
constexpr double kImbalanceDoubt = 0.25;  // tokens of the busiest expert rank above the stated mean
/// Threads of forward and backward have a BLAS handle each, with a workspace.
constexpr std::int64_t kBlasHandles = 2;
/// Streams that Transformer Engine spreads grouped GEMMs over, with a workspace each.
/// Source: NVIDIA/TransformerEngine@d0067d0d, transformer_engine/common/util,
/// get_num_cublas_streams.
constexpr std::int64_t kGroupedGemmStreams = 4;

/// Everything a stage's ledgers are made of.
struct Summary {
  StageStates states;
  FullestMoment pass;
  std::int64_t workspace = 0;     // from the first pass on
  std::int64_t placeholders = 0;  // from the first pass on
  std::int64_t communicators = 0;

  /// In every phase.
  std::int64_t resting() const { return states.weights + states.main_weights + states.gradients; }
  std::int64_t steady_pass() const {
    return resting() + states.moments + workspace + placeholders + pass.bytes.total();
  }
  std::int64_t steady_step() const {
    return resting() + states.moments + workspace + placeholders + states.late_gradients +
           states.cast_gradients + states.step_scratch + states.flat_gradients;
  }
};

Summary summary_of(const StageParts& parts, const StageContext& context) {
  const MemoryRules& rules = *context.rules;
  const RuntimeMemory& runtime = rules.runtime;
  const Layout& layout = *context.layout;
  Summary s;
  s.states = stage_states(parts, context);
  s.pass = fullest_moment(parts, context, s.states);
  s.workspace = parts.gather_buffer +
                (parts.framework_gemm ? kBlasHandles * runtime.framework_workspace : 0) +
                (parts.engine_gemm ? runtime.engine_workspace : 0) +
                (parts.grouped_gemm ? kGroupedGemmStreams * runtime.engine_workspace : 0);
  s.placeholders = parts.placeholders * rules.weight_bytes;
  const int groups = (layout.tp > 1) + (layout.cp > 1) + (layout.pp > 1) + (layout.ep > 1) +
                     (layout.dp() * layout.cp > 1) + (layout.dp_replicate > 1);
  s.communicators = runtime.communicator * groups;
  return s;
}

/// What the caching allocator reserves and does not hand out. Source: docs/memory.md, allocator.
std::int64_t allocator_slack_bytes(std::int64_t allocated_bytes, std::int64_t state_bytes,
                                   const MemoryRules& rules) {
  if (rules.engine->allocator != AllocatorKind::caching) return 0;
  const RuntimeMemory& runtime = rules.runtime;
  const auto allocated = static_cast<double>(allocated_bytes);
  const double slack = static_cast<double>(runtime.slack_bytes) + runtime.slack_share * allocated +
                       runtime.slack_states_share * static_cast<double>(state_bytes);
  const double least = runtime.slack_least_share * allocated;
  const double most = std::max(least, runtime.slack_most_share * allocated);
  // Segments are multiples of 2 MiB (PyTorch, c10/cuda/CUDACachingAllocator.cpp, kRoundLarge).
  const auto bytes = static_cast<std::int64_t>(std::clamp(slack, least, most));
  return (bytes + kSegmentBytes - 1) & ~(kSegmentBytes - 1);
}

/// Adds what the machine's software takes, the allocator's slack included.
void finish(Ledger& ledger, const Summary& s, const MemoryRules& rules) {
  ledger[runtime_context] = rules.runtime.context;
  ledger[communicator] = s.communicators;
  ledger[allocator_slack] = allocator_slack_bytes(
      ledger.allocated().value(),
      ledger[weights] + ledger[main_weights] + ledger[gradients] + ledger[optimizer_moments],
      rules);
}

MemoryDoubt doubt_of(std::int64_t reserved, const Summary& s, const StageParts& parts,
                     const MemoryRules& rules) {
  const auto share = [](std::int64_t bytes, double of) {
    return static_cast<std::int64_t>(static_cast<double>(bytes) * of);
  };
  MemoryDoubt doubt;
  doubt.allocator = share(reserved, rules.runtime.doubt_share);
  doubt.communicator = share(s.communicators, kCommunicatorDoubt);
  doubt.runtime = share(rules.runtime.context, kRuntimeDoubt);
  doubt.activations = share(s.pass.bytes.working, kWorkingDoubt);
  doubt.expert_imbalance = share(parts.routed_saved, kImbalanceDoubt);
  return doubt;
}

void add_pass(Ledger& ledger, const Summary& s) {
  const PassBytes& b = s.pass.bytes;
  ledger[gradients] += b.gradients;
  ledger[gathered_weights] = b.gathered;
  ledger[gradient_staging] += b.staging;
  ledger[activations] = b.activations;
  ledger[activations_in_flight] = b.in_flight;
  ledger[working] = b.working;
  ledger[logits_and_loss] = b.loss;
  ledger[recompute_scratch] = b.recomputed;
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
  rules.casts_weights = rules.parameter_bytes != rules.weight_bytes;
  rules.main_bytes = rules.casts_weights ? rules.parameter_bytes : 0;
  const int moment = bytes_of(job.moment_dtype);
  rules.moment_bytes = job.optimizer == Optimizer::adamw          ? 2 * moment
                       : job.optimizer == Optimizer::sgd_momentum ? moment
                                                                  : 0;
  rules.reduce_bytes = std::min(bytes_of(engine.reduce_dtype), std::max(rules.parameter_bytes, 2));
  return rules;
}

StageMemory stage_memory(const StageParts& parts, const StageContext& context) {
  using enum MemoryPhase;
  const MemoryRules& rules = *context.rules;
  const Summary s = summary_of(parts, context);
  const StageStates& states = s.states;

  StageMemory memory;
  Ledger& init = memory[after_init];
  init[weights] = states.weights;
  init[main_weights] = states.main_weights;
  init[gradients] = states.gradients;
  if (!rules.engine->lazy_moments) init[optimizer_moments] = states.moments;

  Ledger used = init;  // by the first pass, until the end
  used[library_workspace] = s.workspace;
  used[gradient_staging] = s.placeholders;
  memory[first_forward_backward] = used;
  add_pass(memory[first_forward_backward], s);
  used[optimizer_moments] = states.moments;
  memory[steady_forward_backward] = used;
  add_pass(memory[steady_forward_backward], s);

  Ledger& step = memory[steady_optimizer_step];
  step = used;
  step[gradients] += states.late_gradients;
  step[main_gradients] = states.cast_gradients;
  step[optimizer_scratch] = states.step_scratch;
  step[gradient_staging] += states.flat_gradients;
  memory[first_optimizer_step] = step;
  for (Ledger& ledger : memory.phases) finish(ledger, s, rules);
  return memory;
}

StagePeaks stage_peaks(const StageParts& parts, const StageContext& context) {
  const MemoryRules& rules = *context.rules;
  const Summary s = summary_of(parts, context);
  const std::int64_t outside = rules.runtime.context + s.communicators;
  const std::int64_t states = s.resting() + s.states.moments;
  const auto reserved_at = [&](std::int64_t allocated, std::int64_t late_gradients) {
    return allocated + allocator_slack_bytes(allocated, states + late_gradients, rules);
  };
  // The first step has no more than the steady one.
  const std::int64_t pass = s.steady_pass();
  const std::int64_t step = s.steady_step();
  const std::int64_t reserved = std::max(reserved_at(pass, s.pass.bytes.gradients),
                                         reserved_at(step, s.states.late_gradients));
  StagePeaks peak;
  peak.allocated = Bytes(std::max(pass, step));
  peak.reserved = Bytes(reserved);
  peak.point = Bytes(reserved + outside);
  peak.upper = peak.point + doubt_of(reserved, s, parts, rules).total();
  return peak;
}

MemoryDoubt memory_doubt(const StageMemory& memory, const StageParts& parts,
                         const StageContext& context) {
  return doubt_of(memory.peak_reserved().value(), summary_of(parts, context), parts,
                  *context.rules);
}

LayoutMemory layout_memory(const ModelSpec& model, const JobSpec& job, const EngineProfile& engine,
                           const RuntimeMemory& runtime, const Layout& layout) {
  const MemoryRules rules = memory_rules(job, engine, runtime);
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

}  // namespace shardwise
