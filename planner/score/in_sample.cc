#include "planner/score/in_sample.h"

#include <algorithm>
#include <string_view>

#include "planner/cost/software/runtime_memory.h"

namespace shardwise {
namespace {

bool curves_name(const ClusterSpec& cluster, std::string_view repository) {
  const auto named = [&](const FitRecord& fit) {
    return fit.fitted_on.find(repository) != std::string::npos;
  };
  const GpuSpec& gpu = cluster.gpu;
  return std::ranges::any_of(gpu.gemm, named, &GemmCurve::fit) || named(gpu.grouped_gemm.fit) ||
         named(gpu.attention_forward.fit) || named(gpu.attention_backward.fit) ||
         named(gpu.memory_bound.fit) ||
         std::ranges::any_of(cluster.tiers,
                             [&](const LinkTier& tier) { return named(tier.collectives.fit); });
}

}  // namespace

bool in_sample(const Row& row, const RowPrediction& prediction, Scored quantity) {
  if (row.repository.empty()) return false;
  if (quantity == Scored::time) return curves_name(*prediction.cluster, row.repository);
  const MemoryKind kind = prediction.memory.kind;
  const bool counts_cached = kind == MemoryKind::reserved || kind == MemoryKind::total;
  return counts_cached &&
         allocator_data(*prediction.engine).find(row.repository) != std::string::npos;
}

}  // namespace shardwise
