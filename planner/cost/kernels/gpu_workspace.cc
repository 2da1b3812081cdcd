#include "planner/cost/kernels/gpu_workspace.h"

#include <array>

#include "planner/spec/machine/gpu_spec.h"
#include "planner/spec/plan/job_spec.h"
#include "planner/spec/plan/layout.h"
#include "planner/spec/plan/model_spec.h"
#include "planner/spec/text/units.h"

namespace shardwise {

namespace {

/// Capabilities of an architecture.
struct CudaArchitecture {
  std::string_view name;  // what a cluster's begins with; the first that does
  int first = 0;
  int last = 0;
};
constexpr std::array<CudaArchitecture, 5> kArchitectures = {{{"ampere", 80, 88},
                                                             {"ada", 89, 89},
                                                             {"hopper", 90, 99},
                                                             {"blackwell-rtx", 120, 129},
                                                             {"blackwell", 100, 119}}};

}  // namespace

int cuda_capability(const GpuSpec& gpu) {
  if (gpu.vendor != "nvidia") return 0;
  for (const CudaArchitecture& each : kArchitectures) {
    if (gpu.architecture.starts_with(each.name)) return each.first;
  }
  return 0;
}

std::string_view cuda_architecture(int capability) {
  for (const CudaArchitecture& each : kArchitectures) {
    if (each.first <= capability && capability <= each.last) return each.name;
  }
  return {};
}

std::int64_t gpu_workspace_bytes(const ModelSpec& model, const JobSpec& job, const Layout& layout,
                                 int capability) {
  const std::int64_t sequence = ceil_div(job.sequence_length, layout.cp);
  const std::int64_t tokens = layout.micro_batch_size * sequence;
  std::int64_t bytes = std::max({gemm_workspace_bytes(capability),
                                 embedding_backward_workspace(tokens, model.hidden_size),
                                 norm_backward_workspace(tokens, model.hidden_size)});
  for (const LayerSpec& layer : model.kinds) {
    for (const OperationSpec& operation : layer.operations) {
      if (operation.kind != OpKind::attention) continue;
      const AttentionHeads heads = {ceil_div(std::int64_t{operation.heads}, layout.tp),
                                    ceil_div(std::int64_t{operation.kv_heads}, layout.tp),
                                    operation.qk_head_dim};
      // Queries and keys may have norms by head.
      bytes = std::max(bytes, norm_backward_workspace(tokens * heads.heads, heads.head_dim));
      if (job.precision != DType::bf16) continue;
      bytes = std::max(bytes, sdpa_backward_workspace({layout.micro_batch_size, sequence, heads,
                                                       capability, job.deterministic}));
    }
  }
  constexpr std::int64_t kPiece = 256;
  return (bytes + kPiece - 1) / kPiece * kPiece;
}

}  // namespace shardwise
