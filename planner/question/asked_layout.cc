#include "planner/question/asked_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

#include "planner/cost/layer/recompute_modules.h"
#include "planner/cost/memory/bucket_rules.h"
#include "planner/estimate/loss_rows.h"
#include "planner/legality/legality.h"
#include "planner/question/flags.h"
#include "planner/question/stack_flag.h"
#include "planner/schedule/gathers_once.h"
#include "planner/search/advice/default_batch.h"
#include "planner/search/search.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/machine/dtype.h"
#include "planner/spec/plan/names.h"
#include "planner/spec/plan/plan_fields.h"
#include "planner/spec/text/format.h"

namespace shardwise {
namespace {

/// What is asked for to save memory and saves none, with what would.
void note_idle(Subject& subject, const Layout& layout) {
  for (const IdleRecompute& each :
       idle_recompute(subject.model, subject.job, subject.engine, layout)) {
    subject.assumptions.push_back(
        {"recompute.idle",
         fmt::format("{} runs again as asked, and saves no memory{}", each.operation,
                     each.partner.empty() ? "" : "; with " + each.partner + " it does"),
         "docs/memory.md, Activations"});
  }
}

/// What the degrees but dp_shard multiply to.
double ranks_without_shards(const Layout& layout) {
  return static_cast<double>(layout.tp) * layout.cp * layout.pp * layout.dp_replicate;
}

/// As many GPUs as the degrees multiply to; the fewest whole nodes that they divide when the
/// data-parallel degree is open.
Diagnostics take_gpus(Subject& subject, const Layout& layout, bool shards_given) {
  const std::int64_t node = subject.cluster.gpus_per_node;
  const auto asked = static_cast<std::int64_t>(
      std::min(ranks_without_shards(layout) * (shards_given ? layout.dp_shard : 1), 1e15));
  const bool whole_nodes = !shards_given && asked <= kMostGpus;
  Result<ClusterSpec> sized =
      with_gpus(subject.cluster, whole_nodes ? std::lcm(asked, node) : asked);
  if (!sized) return sized.problems();
  subject.cluster = *std::move(sized);
  if (subject.cluster.gpus == node) return {};
  subject.assumptions.push_back(
      {"gpus",
       fmt::format("{} GPUs, {} (--gpus)", format_count(subject.cluster.gpus),
                   shards_given ? "the product of the degrees"
                                : "the fewest whole nodes that the degrees divide"),
       "docs/search.md"});
  return {};
}

/// tp, but where experts of several ranks may not be split so.
std::int32_t usual_etp(const EngineProfile& engine, const Layout& layout) {
  return splits_experts_by_tp(engine, layout) ? layout.tp : 1;
}

}  // namespace

std::vector<std::string> given_flags(const AskedLayout& asked) { return flags_of(asked.texts); }

Result<Layout> read_layout(const AskedLayout& asked, Subject& subject, BatchWhenOpen batch) {
  Diagnostics problems;
  std::map<std::string, std::string> texts = asked.texts;
  add_stack(texts, subject);
  const auto given = [&](const char* field) {
    const auto at = texts.find(field);
    return at != texts.end() && !at->second.empty();
  };
  const EngineProfile& engine = subject.engine;
  Layout layout;
  layout.zero_stage = static_cast<std::int8_t>(engine.zero_stages.back());
  const bool wide = engine.fp32_gradients_default || subject.job.precision == DType::fp32;
  layout.fp32_gradients = wide && !subject.job.reduce_scatter_with_fp32_accumulation;
  layout.reduce_every_microbatch = engine.reduce_every_microbatch;
  for (const auto& [field, text] : texts) {
    if (text.empty()) continue;
    const std::string problem = set_field(layout, field, text);
    if (problem.empty()) continue;
    const std::string prefix = field + ": ";
    problems.push_back(wrong_flag(
        flag_of(field), problem.starts_with(prefix) ? problem.substr(prefix.size()) : problem));
  }
  if (!problems.empty()) return problems;

  if (!given("overlap_param_gather") && chooses_buckets(engine)) {
    layout.overlap_param_gather = layout.overlap_grad_reduce;
  }
  if (!given("zero_stage") && layout.pp > 1 && !engine.pipeline_zero_stages.empty()) {
    layout.zero_stage = static_cast<std::int8_t>(engine.pipeline_zero_stages.back());
  }
  if (!given("sequence_parallel")) layout.sequence_parallel = layout.tp > 1;
  if (!given("etp") && subject.model.num_experts > 0) layout.etp = usual_etp(engine, layout);
  if (!subject.gpus_given) {
    problems = take_gpus(subject, layout, given("dp_shard"));
    if (!problems.empty()) return problems;
  }
  const double inner = ranks_without_shards(layout);
  if (!given("dp_shard")) {
    const double share = static_cast<double>(subject.cluster.gpus) / inner;
    layout.dp_shard = static_cast<std::int32_t>(std::max(1.0, share));
  }
  JobSpec& job = subject.job;
  const bool counts = inner >= 1 && layout.dp_shard >= 1 && layout.micro_batch_size >= 1 &&
                      inner * layout.dp_shard * layout.micro_batch_size < 1e15;
  if (!counts) {
    // check_layout says which degree is wrong.
  } else if (job.global_batch_size == 0 && batch == BatchWhenOpen::usual) {
    job.global_batch_size = default_batch(subject.cluster, job, layout);
    subject.assumptions.push_back(batch_assumption(subject.cluster, job));
  } else {
    job.global_batch_size = job.batch_for(layout.dp(), layout.micro_batch_size);
  }
  Layout once = layout;
  gather_once(once, engine, subject.job);
  if (!given("reshard_after_forward")) layout.reshard_after_forward = once.reshard_after_forward;
  if (!given("reduce_every_microbatch")) {
    layout.reduce_every_microbatch = once.reduce_every_microbatch;
  }
  if (subject.recompute_core_attention) {
    if (!given("recompute")) layout.recompute = Recompute::selective;
    if (layout.recompute != Recompute::selective) {
      return Diagnostics{
          wrong_flag("--recompute-modules",
                     fmt::format("core_attn, but --recompute is {}", name_of(layout.recompute)),
                     "leave out one of the two")};
    }
  }
  Diagnostics illegal = check_layout(subject.model, subject.cluster, subject.job, engine, layout);
  if (!illegal.empty()) return illegal;
  subject.job = decided_job(subject.model, subject.cluster, subject.job, engine, layout,
                            usable_memory(subject.cluster, subject.job, Bytes(0)));
  note_idle(subject, layout);
  return layout;
}

}  // namespace shardwise
