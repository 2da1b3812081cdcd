#include "planner/search/advice/default_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "planner/engines/executed.h"
#include "planner/spec/plan/schedule_facts.h"
#include "planner/spec/text/format.h"

namespace shardwise {
namespace {

constexpr std::int64_t kTokens = std::int64_t{1} << 22;
constexpr std::int64_t kCpuTokens = std::int64_t{1} << 14;

/// 24 Ki, 4 Mi, 7.45 Gi.
std::string in_binary_units(double count) {
  if (count >= 0x1p30) return fmt::format("{:.4g} Gi", count / 0x1p30);
  return count >= 0x1p20 ? fmt::format("{:.4g} Mi", count / 0x1p20)
                         : fmt::format("{:.4g} Ki", count / 0x1p10);
}

}  // namespace

std::int64_t default_batch(const ClusterSpec& cluster, const JobSpec& job) {
  if (executor_trains_on(cluster)) {
    const std::int64_t wanted = std::max<std::int64_t>(1, kCpuTokens / job.sequence_length);
    return ceil_div(wanted, cluster.gpus) * cluster.gpus;
  }
  const auto sequences = static_cast<std::uint64_t>(kTokens / job.sequence_length);
  return sequences == 0 ? 1 : static_cast<std::int64_t>(std::bit_floor(sequences));
}

std::int64_t default_batch(const ClusterSpec& cluster, const JobSpec& job, const Layout& layout) {
  const std::int64_t once = layout.dp() * layout.micro_batch_size;
  std::int64_t microbatches = (default_batch(cluster, job) + once - 1) / once;
  if (layout.vpp > 1) microbatches = (microbatches + layout.pp - 1) / layout.pp * layout.pp;
  const std::int64_t each = facts_of(layout).microbatches_a_stage;
  if (layout.pp > 1 && each > 0) {  // an even number, for schedules with two ends
    microbatches = std::max<std::int64_t>(microbatches + microbatches % 2, each * layout.pp);
  }
  return microbatches * once;
}

Assumption batch_assumption(const ClusterSpec& cluster, const JobSpec& job) {
  const double tokens =
      static_cast<double>(job.global_batch_size) * static_cast<double>(job.sequence_length);
  return {"global_batch_size",
          fmt::format("batch of {} sequence{}, {} tokens a step (--global-batch-size)",
                      format_count(job.global_batch_size), job.global_batch_size == 1 ? "" : "s",
                      in_binary_units(tokens)),
          executor_trains_on(cluster)
              ? "a step of seconds on CPUs: planner/search/advice/default_batch.h"
              : "Touvron et al., Llama 2 (arXiv:2307.09288), section 2.2: 4 M tokens"};
}

}  // namespace shardwise
