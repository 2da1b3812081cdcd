#include "planner/export/derived_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "planner/export/facts/stage_layout.h"
#include "planner/export/import_plan.h"
#include "planner/spec/text/number.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

std::optional<std::int64_t> positive(const Values& facts, const std::string& name) {
  const auto value = fact_count(facts, name);
  return value && *value > 0 && *value <= kMostFact ? value : std::nullopt;
}

/// Says a fact unless it is stated.
void add(Values& facts, const char* name, std::int64_t value) {
  facts.emplace(name, std::to_string(value));
}

/// The chunks of a stage, of the layers of a chunk.
void add_chunks(Values& facts) {
  const auto chunk = fact_count(facts, "layers_per_chunk");
  if (!chunk) return;
  const std::int64_t layers = fact_count(facts, "model.num_hidden_layers").value_or(0);
  const std::int64_t stage = layers / degree(facts, "pp");
  if (*chunk > 0 && stage >= *chunk) facts["vpp"] = std::to_string(stage / *chunk);
}

/// Says what is wrong with the settings that give a field, where they stand.
void add_problem(const Framework& framework, const Settings& settings, std::string_view field,
                 const std::string& what, const std::string& fix, Diagnostics& problems) {
  for (const SettingSpec& spec : framework.settings) {
    const auto given = settings.given.find(spec.name);
    if (spec.field != field || given == settings.given.end()) continue;
    const GivenSetting& place = *given->second;
    problems.push_back({place.file, place.line, place.column, place.path, what, fix});
  }
}

/// All ranks, where nothing says them and the batch of a step has all of its factors.
void add_ranks(const Framework& framework, const Settings& settings, Values& facts,
               Diagnostics& problems) {
  if (facts.contains("gpus") || facts.contains("dp_shard")) return;
  const auto batch = positive(facts, "global_batch_size");
  const auto each = positive(facts, "micro_batch_size");
  const auto passes = positive(facts, "num_microbatches");
  if (!batch || !each || !passes) return;
  const std::int64_t of_rank = *each * *passes;
  if (*batch % of_rank == 0) {
    const std::int64_t inner = std::min(degree(facts, "tp") * degree(facts, "cp"), kMostFact);
    add(facts, "gpus", *batch / of_rank * std::min(inner * degree(facts, "pp"), kMostFact));
    return;
  }
  add_problem(
      framework, settings, "global_batch_size",
      fmt::format("{} is no multiple of {} x {}, the batch of a rank", *batch, *each, *passes),
      "leave one of the three out", problems);
}

/// The chunks and the layers of stages, of a text that has each of them.
void add_stages(const Framework& framework, const Settings& settings, Values& facts,
                Diagnostics& problems) {
  const auto text = facts.find("stage_layout");
  if (text == facts.end()) return;
  const StageLayout stages = read_stage_layout(
      text->second, degree(facts, "pp"), fact_count(facts, "model.num_hidden_layers").value_or(0));
  if (stages.problem.empty()) {
    facts["vpp"] = std::to_string(stages.vpp);
    facts["first_stage_layers"] = std::to_string(stages.first_stage_layers);
    facts["last_stage_layers"] = std::to_string(stages.last_stage_layers);
    return;
  }
  add_problem(framework, settings, "stage_layout",
              fmt::format("no plan has {}", shown(text->second)), stages.problem, problems);
}

/// The data-parallel ranks, of all ranks or of shards and replicas.
void add_data_parallel(Values& facts) {
  const std::int64_t tp_cp = std::min(degree(facts, "tp") * degree(facts, "cp"), kMostFact);
  add(facts, "tp_cp", tp_cp);
  if (const auto gpus = fact_count(facts, "gpus")) {
    const std::int64_t inner = std::min(tp_cp * degree(facts, "pp"), kMostFact);
    if (*gpus >= inner && *gpus <= kMostFact) add(facts, "dp", *gpus / inner);
  } else if (facts.contains("dp_shard")) {
    const std::int64_t ranks = degree(facts, "dp_shard") * degree(facts, "dp_replicate");
    add(facts, "dp", std::min(ranks, kMostFact));
  }
}

/// DeepSpeed's groups for a second shard of weights have all ranks at most.
/// Source: deepspeed/utils/groups.py:944
void lower_hybrid_group(const Framework& framework, Values& facts) {
  const auto group = fact_count(facts, "reshard_after_forward");
  const auto dp = fact_count(facts, "dp");
  if (framework.name != "deepspeed" || !group || !dp || *group <= *dp) return;
  facts["reshard_after_forward"] = *dp > 1 ? std::to_string(*dp) : "true";
}

/// The batch of a step and of a micro-batch, of each other, or of a rank's part.
void add_batches(Values& facts) {
  const bool ranks_are_known = facts.contains("dp");
  const std::int64_t dp = degree(facts, "dp");
  if (const auto local = positive(facts, "local_batch")) {
    if (degree(facts, "pp") == 1) add(facts, "micro_batch_size", *local);
    if (ranks_are_known) add(facts, "global_batch_size", *local * dp);
  }
  const std::int64_t sequences = std::min(degree(facts, "micro_batch_size") * dp, kMostFact);
  if (const auto each = positive(facts, "batch_per_rank")) {
    add(facts, "global_batch_size", *each * dp);
  } else if (const auto passes = positive(facts, "num_microbatches"); passes && ranks_are_known) {
    add(facts, "global_batch_size", *passes * sequences);
  }
  const auto batch = fact_count(facts, "global_batch_size");
  if (batch && ranks_are_known && !facts.contains("micro_batch_size")) {
    const std::int64_t passes = degree(facts, "num_microbatches");
    add(facts, "micro_batch_size", std::max<std::int64_t>(*batch / dp / passes, 1));
  }
  const auto step = batch ? batch : positive(facts, kFlagBatch);
  if (!step || !ranks_are_known) return;
  const char* each = facts.contains("micro_batch_size") ? "micro_batch_size" : kFlagMicroBatch;
  const std::int64_t pass = std::min(degree(facts, each) * dp, kMostFact);
  add(facts, "num_microbatches", std::max<std::int64_t>(*step / pass, 1));
}

}  // namespace

std::optional<std::int64_t> fact_count(const Values& facts, const std::string& name) {
  const auto at = facts.find(name);
  return at == facts.end() ? std::nullopt : parse_integer(at->second);
}

std::int64_t degree(const Values& facts, const char* name) {
  return std::clamp<std::int64_t>(fact_count(facts, name).value_or(1), 1, kMostFact);
}

void add_momentum(Values& facts) {
  const auto share = facts.find("optimizer_momentum");  // beside sgd alone
  if (share != facts.end() && share->second != "0") facts["optimizer"] = "sgd_momentum";
}

void derive_facts(const Framework& framework, const Settings& settings, Values& facts,
                  Diagnostics& problems) {
  add_chunks(facts);
  add_ranks(framework, settings, facts, problems);
  add_stages(framework, settings, facts, problems);
  add_data_parallel(facts);
  lower_hybrid_group(framework, facts);
  add_batches(facts);
  add_momentum(facts);
}

}  // namespace shardwise
