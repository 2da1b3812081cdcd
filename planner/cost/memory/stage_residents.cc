#include "planner/cost/memory/stage_residents.h"

#include <algorithm>

#include "planner/cost/kernels/gpu_workspace.h"
#include "planner/cost/memory/step_block.h"

namespace shardwise {
namespace {

constexpr std::int64_t kSegmentBytes = std::int64_t{2} << 20;
/// Threads of forward and backward have a BLAS handle each, with a workspace.
constexpr std::int64_t kBlasHandles = 2;
/// Streams that Transformer Engine spreads grouped GEMMs over, with a workspace each.
/// Source: NVIDIA/TransformerEngine@d0067d0d, transformer_engine/common/util,
/// get_num_cublas_streams.
constexpr std::int64_t kGroupedGemmStreams = 4;

/// And those of a GEMM cut in pieces beside tensor-parallel transfers.
/// Source: NVIDIA/TransformerEngine@d0067d0d, transformer_engine/pytorch/cpp_extensions/gemm.py,
/// _NUM_MAX_UB_STREAMS.
constexpr std::int64_t kOverlapStreams = 3;

/// Of what is allocated: blocks of segments that are in use are not given back to the driver.
constexpr double kMostFragments = 0.02;

}  // namespace

StageResidents stage_residents(const StageParts& parts, const StageContext& context) {
  const RuntimeMemory& runtime = context.rules->runtime;
  StageResidents r;
  r.gather_buffer = {1, parts.gather_buffer};
  r.communicators = communicators(*context.layout, *context.rules);
  r.step_block = step_block_of(*context.layout, context.num_microbatches, *context.rules);
  if (const GpuKernels& kernels = context.rules->gpu_kernels; kernels.model != nullptr) {
    // One block for all of them, products among them, as one stream computes.
    r.kernel_workspace = {
        1, gpu_workspace_bytes(*kernels.model, *kernels.job, *context.layout, kernels.capability)};
    return r;
  }
  if (parts.framework_gemm) r.framework_workspace = {kBlasHandles, runtime.framework_workspace};
  if (parts.engine_gemm) r.engine_workspace = {1, runtime.engine_workspace};
  if (parts.grouped_gemm) r.grouped_workspace = {kGroupedGemmStreams, runtime.engine_workspace};
  if (parts.overlapped_gemm) r.overlap_workspace = {kOverlapStreams, runtime.engine_workspace};
  r.placeholders = {parts.placeholders, context.rules->weight_bytes};
  return r;
}

Amount step_block_of(const Layout& layout, std::int64_t num_microbatches,
                     const MemoryRules& rules) {
  if (!rules.step_block) return {};
  const StepBlockShape shape =
      step_block_shape(layout, num_microbatches, rules.sequence_length, rules.per_token_loss);
  return {1, step_block(shape).bytes};
}

Amount communicators(const Layout& layout, const MemoryRules& rules) {
  const int groups = (layout.tp > 1) + (layout.cp > 1) + (layout.pp > 1) + (layout.ep > 1) +
                     (layout.dp() * layout.cp > 1) + (layout.dp_replicate > 1);
  return {groups, rules.runtime.communicator};
}

bool has_slack_of_whole(const StageParts& parts, const Layout& layout, const MemoryRules& rules) {
  const bool whole = layout.zero_stage == 0 || layout.dp_shard * layout.cp == 1;
  const bool frozen = parts.frozen > parts.dense + parts.routed;
  return rules.runtime.slack_whole_share > 0 && (whole || frozen);
}

std::int64_t allocator_slack_bytes(std::int64_t allocated_bytes, std::int64_t state_bytes,
                                   const StageParts& parts, const Layout& layout,
                                   const MemoryRules& rules) {
  if (rules.engine->allocator != AllocatorKind::caching) return 0;
  const RuntimeMemory& runtime = rules.runtime;
  const auto allocated = static_cast<double>(allocated_bytes);
  double slack = static_cast<double>(runtime.slack_bytes) + runtime.slack_share * allocated +
                 runtime.slack_states_share * static_cast<double>(state_bytes);
  if (has_slack_of_whole(parts, layout, rules)) slack = runtime.slack_whole_share * allocated;
  const double least = runtime.slack_least_share * allocated;
  double most = std::max(least, runtime.slack_most_share * allocated);
  if (runtime.slack_most_bytes > 0) {
    most = std::max(least, std::min(most, static_cast<double>(runtime.slack_most_bytes)));
  }
  // Segments are multiples of 2 MiB (PyTorch, c10/cuda/CUDACachingAllocator.cpp, kRoundLarge).
  const auto bytes = static_cast<std::int64_t>(std::clamp(slack, least, most));
  return (bytes + kSegmentBytes - 1) & ~(kSegmentBytes - 1);
}

std::int64_t fragment_bytes(std::int64_t allocated, const MemoryRules& rules) {
  if (rules.engine->allocator != AllocatorKind::caching) return 0;
  const double share = std::min(rules.runtime.slack_least_share, kMostFragments);
  return static_cast<std::int64_t>(share * static_cast<double>(allocated));
}

}  // namespace shardwise
