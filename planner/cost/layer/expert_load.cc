#include "planner/cost/layer/expert_load.h"

#include <algorithm>
#include <cmath>

namespace shardwise {

double busiest_expert_rank(const ModelSpec& model, const JobSpec& job, const Layout& layout) {
  const double stated = std::max(1.0, job.expert_imbalance);
  if (job.expert_skew <= 0 || model.num_experts <= 1 || layout.ep <= 1) return stated;
  const auto experts = static_cast<double>(model.num_experts);
  double all = 0;
  for (std::int64_t i = 1; i <= model.num_experts; ++i) {
    all += std::pow(static_cast<double>(i), -job.expert_skew);
  }
  const auto chosen = static_cast<double>(std::max<std::int64_t>(1, model.num_experts_per_tok));
  const double first = std::min(1 / all, 1 / chosen);
  const double others = experts / layout.ep - 1;
  return stated * std::max(1.0, layout.ep * (first + others * (1 - first) / (experts - 1)));
}

}  // namespace shardwise
