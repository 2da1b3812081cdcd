#include "planner/legality/legality.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "planner/cost/software/usual_kernels.h"
#include "planner/legality/layout_rules.h"
#include "planner/legality/refusals.h"
#include "planner/spec/text/nearest.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {

namespace {

/// What the rule says, with the line of the engine's own code that refuses it, if one does.
Diagnostic rule_problem(const LayoutRule& rule, const LayoutQuestion& question,
                        const Layout& layout) {
  RuleBreach breach = rule.say(question, layout);
  // With our kernels it is our executor that has the engine's policies.
  if (kernels_of(*question.job, *question.engine) != Kernels::planned) {
    breach.message += refusal_clause(question.engine->name, rule.id);
  }
  return {"command line", 0, 0, breach.flag, breach.message, breach.hint};
}

}  // namespace

Diagnostics check_precision(const ClusterSpec& cluster, const JobSpec& job) {
  Diagnostics problems;
  if (job.fp8_parameter_gather && job.precision != DType::fp8) {
    problems.push_back({"command line", 0, 0, "--fp8-parameter-gather",
                        fmt::format("needs precision fp8, not {}", name_of(job.precision)),
                        "use --precision fp8"});
  }
  if (cluster.gpu.peak(job.precision).value() > 0) return problems;
  std::vector<std::string_view> has;
  for (const DType dtype : {DType::bf16, DType::fp16, DType::fp32, DType::fp8, DType::fp4}) {
    if (cluster.gpu.peak(dtype).value() > 0) has.push_back(name_of(dtype));
  }
  problems.push_back(
      {"command line", 0, 0, "--precision",
       fmt::format("{} has no arithmetic in {}", cluster.gpu.name, name_of(job.precision)),
       fmt::format("use {}", fmt::join(has, " or "))});
  return problems;
}

Diagnostics check_operations(const ModelSpec& model, const JobSpec& job) {
  std::vector<std::string> known;
  for (const LayerSpec& kind : model.kinds) {
    for (const OperationSpec& op : kind.operations) {
      if (std::ranges::find(known, op.name) == known.end()) known.push_back(op.name);
    }
  }
  Diagnostics problems;
  for (const std::string& name : job.recompute_operations) {
    if (std::ranges::find(known, name) != known.end()) continue;
    const auto near = nearest(name, known);
    problems.push_back({"command line", 0, 0, "--recompute-operations",
                        fmt::format("{} has no operation '{}'", model.name, shown(name)),
                        near ? fmt::format("did you mean {}?", *near)
                             : fmt::format("it has {}", fmt::join(known, ", "))});
  }
  return problems;
}

std::int64_t learned_positions(const ModelSpec& model) {
  for (const LayerSpec& kind : model.kinds) {
    for (const OperationSpec& o : kind.operations) {
      if (o.kind != OpKind::embedding || o.name != "position_embedding") continue;
      // OPT's table has two rows in front of the first position.
      const std::int64_t most = model.max_position_embeddings;
      return most > 0 ? std::min(o.k, most) : o.k;
    }
  }
  return 0;
}

Diagnostics check_positions(const ModelSpec& model, const JobSpec& job,
                            const EngineProfile& engine) {
  const std::int64_t positions = learned_positions(model);
  if (positions == 0 || job.sequence_length <= positions) return {};
  return {{"command line", 0, 0, "--sequence-length",
           fmt::format("{} tokens, but {} has a table of {} positions{}", job.sequence_length,
                       model.name, positions, refusal_clause(engine.name, "positions")),
           fmt::format("use {} or less", positions)}};
}

Diagnostics check_layout(const ModelSpec& model, const ClusterSpec& cluster, const JobSpec& job,
                         const EngineProfile& engine, const Layout& layout) {
  const LayoutQuestion question = layout_question(model, cluster, job, engine);
  Diagnostics problems;
  for (const LayoutRule& rule : layout_rules()) {
    if (rule.redundant || !rule.broken(question, layout)) continue;
    problems.push_back(rule_problem(rule, question, layout));
    if (rule.reads == kReadsNothing) break;  // the other rules divide by degrees
  }
  return problems;
}

Diagnostics check_plan(const Plan& plan) {
  Diagnostics problems = check_precision(plan.cluster, plan.job);
  for (const Diagnostics& more :
       {check_operations(plan.model, plan.job),
        check_layout(plan.model, plan.cluster, plan.job, plan.engine, plan.layout)}) {
    problems.insert(problems.end(), more.begin(), more.end());
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
