#include "planner/legality/layout_rules.h"

#include <fmt/format.h>

#include <numeric>
#include <vector>

#include "planner/legality/layout_rule_parts.h"

namespace shardwise {
namespace {

/// Kernels in 16 bits that return the log-sum-exp of each row, by which a ring merges its steps.
/// The first FlashAttention is not written into any ring.
/// Source: NVIDIA/TransformerEngine:transformer_engine/pytorch/attention/dot_product_attention/
/// context_parallel.py (FusedAttention is cuDNN's); pytorch@v2.15.0:torch/distributed/tensor/
/// experimental/_context_parallel/_attention.py (flash, efficient and cuDNN's).
bool is_fused(const JobSpec& job) {
  const bool kernel =
      job.attention == AttentionKernel::flash || job.attention == AttentionKernel::cudnn;
  return kernel && job.precision != DType::fp32;
}

}  // namespace

LayoutQuestion layout_question(const ModelSpec& model, const ClusterSpec& cluster,
                               const JobSpec& job, const EngineProfile& engine) {
  LayoutQuestion q;
  q.model = &model;
  q.cluster = &cluster;
  q.job = &job;
  q.engine = &engine;
  q.fused_attention = is_fused(job);
  for (const int kind : model.layers) {
    const LayerRole role = model.kinds[static_cast<std::size_t>(kind)].role;
    q.blocks += is_main_block(role);
  }
  for (const LayerSpec& kind : model.kinds) {
    for (const ParameterSpec& p : kind.parameters) {
      // Vocabulary tables are padded.
      if (p.tp_dim < 0 || p.tp == TpSplit::vocab) continue;
      std::int64_t& cut = p.routed_expert ? q.cut_by_etp : q.cut_by_tp;
      cut = std::gcd(cut, p.shape[static_cast<std::size_t>(p.tp_dim)]);
    }
    for (const OperationSpec& o : kind.operations) {
      if (o.kind != OpKind::attention) continue;
      q.heads = std::gcd(q.heads, o.heads);
      q.kv_heads = std::gcd(q.kv_heads, o.kv_heads);
    }
  }
  return q;
}

RuleBreach engine_cannot(const LayoutQuestion& q, const char* flag, const char* what) {
  return {flag, fmt::format("{} cannot {}", q.engine->name, what), ""};
}

std::string use_divisors(std::int64_t n, std::int64_t most) {
  std::vector<std::int64_t> fit;
  for (std::int64_t d = 1; d <= std::min(n, most); ++d) {
    if (n % d == 0) fit.push_back(d);
  }
  if (fit.empty()) return "";
  constexpr std::size_t kShown = 10;
  if (fit.size() > kShown) fit.erase(fit.begin(), fit.end() - kShown);
  const std::int64_t last = fit.back();
  fit.pop_back();
  return fit.empty() ? fmt::format("use {}", last)
                     : fmt::format("use {} or {}", fmt::join(fit, ", "), last);
}

std::span<const LayoutRule> layout_rules() {
  static const std::vector<LayoutRule> kAll = [] {
    std::vector<LayoutRule> all;
    for (const auto part : {degree_rules(), pipeline_rules(), state_rules(), job_rules()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return kAll;
}

}  // namespace shardwise
