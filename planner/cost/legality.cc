#include "planner/cost/legality.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "planner/cost/layout_rules.h"

namespace shardwise {

Diagnostics check_precision(const ClusterSpec& cluster, const JobSpec& job) {
  if (cluster.gpu.peak(job.precision).value() > 0) return {};
  std::vector<std::string_view> has;
  for (const DType dtype : {DType::bf16, DType::fp16, DType::fp32, DType::fp8}) {
    if (cluster.gpu.peak(dtype).value() > 0) has.push_back(name_of(dtype));
  }
  return {{"command line", 0, 0, "--precision",
           fmt::format("{} does not compute in {}", cluster.gpu.name, name_of(job.precision)),
           fmt::format("use {}", fmt::join(has, " or "))}};
}

Diagnostics check_layout(const ModelSpec& model, const ClusterSpec& cluster, const JobSpec& job,
                         const EngineProfile& engine, const Layout& layout) {
  const LayoutQuestion question = layout_question(model, cluster, job, engine);
  Diagnostics problems;
  for (const LayoutRule& rule : layout_rules()) {
    if (rule.redundant || !rule.broken(question, layout)) continue;
    const RuleBreach breach = rule.say(question, layout);
    problems.push_back({"command line", 0, 0, breach.flag, breach.message, breach.hint});
    if (rule.reads == kReadsNothing) break;  // the other rules divide by degrees
  }
  return problems;
}

bool is_legal(const ModelSpec& model, const ClusterSpec& cluster, const JobSpec& job,
              const EngineProfile& engine, const Layout& layout) {
  const LayoutQuestion question = layout_question(model, cluster, job, engine);
  // In their order: those that read nothing protect the others.
  return std::ranges::none_of(layout_rules(), [&](const LayoutRule& rule) {
    return !rule.redundant && rule.broken(question, layout);
  });
}

}  // namespace shardwise
