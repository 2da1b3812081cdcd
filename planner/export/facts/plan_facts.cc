#include "planner/export/facts/plan_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "planner/cost/layer/recompute_modules.h"
#include "planner/engines/engines.h"
#include "planner/export/facts/stage_layout.h"
#include "planner/legality/legality.h"
#include "planner/question/flags.h"
#include "planner/question/plan_texts.h"
#include "planner/spec/plan/plan_fields.h"

namespace shardwise {
namespace {

/// The modules whose operations together are the job's, and attention's for selective recompute; ""
/// for none, "other" where no modules are.
std::string modules_of(const Plan& plan) {
  const std::vector<std::string>& operations = plan.job.recompute_operations;
  const ModelSpec& model = plan.model;
  const std::set<std::string> wanted(operations.begin(), operations.end());
  std::set<std::string> found;
  std::vector<std::string> modules;
  if (plan.layout.recompute == Recompute::selective) modules.emplace_back("core_attn");
  for (const std::string& module : recompute_modules()) {
    const std::vector<std::string> own = operations_of_module(model, module);
    const bool all = !own.empty() && std::ranges::all_of(own, [&](const std::string& operation) {
      return wanted.contains(operation);
    });
    const bool adds = std::ranges::any_of(
        own, [&](const std::string& operation) { return !found.contains(operation); });
    if (!all || !adds) continue;
    found.insert(own.begin(), own.end());
    modules.push_back(module);
  }
  return found == wanted ? fmt::format("{}", fmt::join(modules, ",")) : "other";
}

Values facts_of_layout(const Plan& plan) {
  const Layout& layout = plan.layout;
  Values facts = texts_of(layout);
  const std::int64_t dp = layout.dp();
  const std::int64_t batch = plan.job.batch_for(dp, layout.micro_batch_size);
  const auto set = [&](const char* name, std::int64_t value) {
    facts[name] = std::to_string(value);
  };
  set("dp", dp);
  set("tp_cp", std::int64_t{layout.tp} * layout.cp);
  set("ranks_per_shard", std::int64_t{layout.tp} * layout.cp * layout.dp_replicate);
  set("batch_per_rank", batch / dp);
  set("local_batch", layout.pp > 1 ? batch / dp : layout.micro_batch_size);
  facts["chunked"] = layout.vpp > 1 ? "true" : "false";
  set("num_microbatches", plan.job.microbatches(dp, layout.micro_batch_size));
  return facts;
}

}  // namespace

Values facts_of(const Plan& plan) {
  Values facts = facts_of_layout(plan);
  facts.merge(texts_of(plan.job));
  facts.merge(model_facts(plan.model));
  facts["engine"] = plan.engine.name;
  facts["model"] = plan.model.name;
  facts["gpus"] = std::to_string(plan.cluster.gpus);
  facts["gpus_per_node"] = std::to_string(std::min(plan.cluster.gpus_per_node, plan.cluster.gpus));
  facts["nodes"] = std::to_string(plan.cluster.nodes());
  const std::string modules = modules_of(plan);
  const bool full = plan.layout.recompute == Recompute::full;
  facts["recompute_modules"] = modules;
  facts["recompute_kind"] = full ? "full" : modules.empty() ? "none" : "modules";
  const std::int64_t positions =
      std::max(plan.model.max_position_embeddings, plan.job.sequence_length);
  const std::int64_t chunks = std::int64_t{plan.layout.pp} * plan.layout.vpp;
  const std::string stages = write_stage_layout(plan);
  if (!stages.empty()) facts["stage_layout"] = stages;
  facts["layers_per_chunk"] = std::to_string(plan.model.num_hidden_layers / chunks);
  facts["model.positions"] = std::to_string(positions);
  return facts;
}

Plan with_stated_reductions(Plan plan) {
  const EngineProfile* usual = find_engine(plan.engine.name);
  const bool copies = plan.engine.gradient_buffer == GradientBuffer::copy_in;
  if (usual == nullptr || !copies || plan.job.precision == DType::fp32) return plan;
  const bool narrow = !plan.layout.fp32_gradients && usual->reduce_dtype == DType::fp32;
  const DType type = plan.job.precision == DType::fp16 ? DType::fp16 : DType::bf16;
  plan.engine.reduce_dtype = narrow ? type : usual->reduce_dtype;
  return plan;
}

Result<Plan> plan_of(const Plan& plan, const Values& facts) {
  Plan changed = plan;
  if (facts.at("engine") != plan.engine.name) {
    const EngineProfile* engine = find_engine(facts.at("engine"));
    if (engine != nullptr) changed.engine = *engine;
  }
  Diagnostics problems;
  for (const std::string& key : layout_keys()) {
    const std::string problem = set_field(changed.layout, key, facts.at(key));
    if (!problem.empty()) problems.push_back(wrong_flag(flag_of(key), problem));
  }
  Texts job = texts_of(plan.job);
  for (auto& [field, text] : job) text = facts.at(field);
  changed.job = job_of(job, problems);
  if (problems.empty()) problems = check_plan(changed);
  if (!problems.empty()) return problems;
  return with_stated_reductions(std::move(changed));
}

}  // namespace shardwise
