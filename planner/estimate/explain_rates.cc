#include <fmt/format.h>

#include <string>
#include <utility>

#include "planner/estimate/explain.h"
#include "planner/estimate/gpu_hour_price.h"
#include "planner/spec/text/format.h"

namespace shardwise {

std::vector<Explanation> rate_explanations(const StepReport& report, const ClusterSpec& cluster,
                                           const JobSpec& job) {
  std::vector<Explanation> made;
  const auto world = static_cast<double>(report.layout.world());
  const std::string step = format_seconds(report.step_time);
  made.push_back({"mfu", report.flops_formula,
                  fmt::format("{} / ({} x {:.0f} GPUs x {}) = {}", format_flops(report.model_flops),
                              format_flops_rate(cluster.gpu.peak(job.precision)), world, step,
                              format_percent(report.mfu)),
                  "planner/cost/kernels/flops.h"});
  made.push_back(
      {"tokens_per_s", "sequences x tokens / step",
       fmt::format("{} x {} / {} = {}/s", format_count(report.global_batch_size),
                   format_count(report.sequence_length), step, format_scaled(report.tokens_per_s)),
       ""});
  if (report.dollars_per_1e9_tokens > 0) {
    constexpr double kHour = 3600;
    const bool own = cluster.price_per_gpu_hour.has_value();
    made.push_back({"dollars_per_1e9_tokens",
                    "price a GPU-hour x GPUs x 1e9 tokens / tokens an hour",
                    fmt::format("{} x {:.0f} x 1e9 / {} = {}",
                                format_dollars(gpu_hour_price(cluster).value_or(0)), world,
                                format_scaled(report.tokens_per_s * kHour),
                                format_dollars(report.dollars_per_1e9_tokens)),
                    own ? cluster.price_source : cluster.gpu.price_source});
  }
  if (report.joules_per_token > 0) {
    made.push_back(
        {"joules_per_token", "power of a GPU and its share of the node / its tokens a second",
         fmt::format("({:.0f} W + {:.0f} W / {}) / {}/s", cluster.gpu.tdp_watts, cluster.node_watts,
                     cluster.gpus_per_node, format_scaled(report.tokens_per_s_per_gpu)),
         "data sheets: the most a GPU draws"});
  }
  return made;
}

}  // namespace shardwise
