#include "planner/cost/kernels/attention_curve.h"

#include <algorithm>
#include <cmath>

#include "planner/cost/kernels/gemm_curve.h"

namespace shardwise {
namespace {

// Queries (forward) or keys (backward) that one processor takes at a time.
constexpr std::int64_t kBlock = 128;
// Five products for two.
constexpr double kBackwardWork = 2.5;

/// (query, key) pairs that one head looks at, and the most keys a single query sees.
struct Pairs {
  double all = 0;
  double most = 0;
};

Pairs pairs_of(const AttentionWork& work) {
  const auto queries = static_cast<double>(work.seq_q);
  const auto keys = static_cast<double>(work.seq_kv);
  const double seen = work.window > 0 ? std::min(keys, static_cast<double>(work.window)) : keys;
  if (!work.causal) return {queries * seen, seen};
  // The last query sees every key, the one before it one less: a trapezoid, cut by the window.
  const double common = std::max(keys - queries, 0.0);  // keys that every query sees
  const double ramp = std::clamp(seen - common, 0.0, queries);
  return {queries * std::min(common, seen) + ramp * ramp / 2 + (queries - ramp) * ramp, seen};
}

/// Rate between two measured head dimensions. Below the smallest it falls with the square root:
/// from 128 to 64 by 0.80 forward and 0.57 backward on Hopper, the GPU measured with both.
double rate_share(const AttentionCurve& curve, double head_dim) {
  if (curve.rates.empty()) return 1;
  const HeadRate& first = curve.rates.front();
  if (head_dim <= static_cast<double>(first.head_dim)) {
    return first.rate_share * std::sqrt(head_dim / static_cast<double>(first.head_dim));
  }
  for (std::size_t i = 1; i < curve.rates.size(); ++i) {
    const HeadRate& low = curve.rates[i - 1];
    const HeadRate& high = curve.rates[i];
    if (head_dim > static_cast<double>(high.head_dim)) continue;
    const double along = (head_dim - static_cast<double>(low.head_dim)) /
                         static_cast<double>(high.head_dim - low.head_dim);
    return low.rate_share + along * (high.rate_share - low.rate_share);
  }
  return curve.rates.back().rate_share;
}

}  // namespace

Flops attention_flops(const AttentionWork& work, Pass pass) {
  const double heads = static_cast<double>(work.batch) * static_cast<double>(work.heads);
  const auto head_dims = static_cast<double>(work.qk_head_dim + work.v_head_dim);
  const double forward = 2.0 * heads * pairs_of(work).all * head_dims;
  return Flops(pass == Pass::forward ? forward : kBackwardWork * forward);
}

double attention_seconds(const AttentionCurve& curve, const AttentionLimits& limits,
                         const AttentionWork& work, Pass pass) {
  const Pairs pairs = pairs_of(work);
  const double heads = static_cast<double>(work.batch) * static_cast<double>(work.heads);
  const double kv_heads = static_cast<double>(work.batch) * static_cast<double>(work.kv_heads);
  const auto queries = static_cast<double>(work.seq_q);
  const auto keys = static_cast<double>(work.seq_kv);
  const auto head_dims = static_cast<double>(work.qk_head_dim + work.v_head_dim);
  const double products = pass == Pass::forward ? 1.0 : kBackwardWork;

  // Whole blocks are computed where the mask cuts through them: half a block a query and edge.
  const double edges = (work.causal ? 1.0 : 0.0) + (work.window > 0 ? 1.0 : 0.0);
  const double computed = pairs.all + edges * queries * 0.5 * static_cast<double>(kBlock);
  const double blocks = heads * static_cast<double>(ceil_div(work.seq_q, kBlock));
  const double pair_time = 2 * products * head_dims * limits.processors /
                           (limits.flops * rate_share(curve, head_dims / 2));
  const double block_time = curve.block.value();
  const double all = heads * computed * pair_time + blocks * block_time;
  const double longest =
      static_cast<double>(std::min(kBlock, work.seq_q)) * pairs.most * pair_time + block_time;
  const double arithmetic = std::max(longest, all / limits.processors + curve.tail_share * longest);

  // Forward: q, k, v in, o out. Backward besides: the gradients of all four.
  const double moved = (pass == Pass::forward ? 1 : 2) * limits.element_bytes * head_dims *
                       (heads * queries + kv_heads * keys);
  const double memory = moved / (limits.bytes * curve.bandwidth_share);
  return curve.start.value() + overlapped(arithmetic, memory);
}

double measured_attention_seconds(const AttentionCurve& curve, const AttentionLimits& limits,
                                  const AttentionWork& work, Pass pass) {
  const double kv_bytes = static_cast<double>(work.batch) * static_cast<double>(work.kv_heads) *
                          static_cast<double>(work.seq_kv) *
                          static_cast<double>(work.qk_head_dim + work.v_head_dim) *
                          limits.element_bytes;
  return attention_seconds(curve, limits, work, pass) +
         curve.measured_with.extra_moves * kv_bytes / limits.bytes;
}

}  // namespace shardwise
