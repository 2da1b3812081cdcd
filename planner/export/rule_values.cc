#include "planner/export/rule_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "planner/export/import_plan.h"
#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/text/number.h"

namespace shardwise {
namespace {

std::optional<double> number_of(const Values& values, const char* name) {
  const auto at = values.find(name);
  return at == values.end() ? std::nullopt : parse_number(at->second);
}

/// Whether pipeline stages get whole layers where the first or the last has a number of its own, or
/// where the table or the head counts as one, as Megatron-LM asks. \returns true where neither is
/// so. Source: megatron/core/transformer/transformer_config.py:2294-2410
bool stages_fit(const Values& values) {
  const std::optional<double> all_layers = number_of(values, "--num-layers");
  double stages = number_of(values, "--pipeline-model-parallel-size").value_or(0);
  const bool is_listed = values.contains("--pipeline-model-parallel-layout");
  if (!all_layers || stages < 1 || is_listed) return true;
  double layers = *all_layers;
  const double chunks =
      std::max(1.0, number_of(values, "--num-virtual-stages-per-pipeline-rank").value_or(1));
  const auto fill = [&](double count, double of) { return of > 0 && std::fmod(count, of) == 0; };
  bool fits = true;
  bool uneven = false;
  for (const char* name :
       {"--decoder-first-pipeline-num-layers", "--decoder-last-pipeline-num-layers"}) {
    const double own = number_of(values, name).value_or(0);
    if (own < 1) continue;
    uneven = true;
    fits = fits && fill(own, chunks);
    layers -= own;
    stages -= 1;
  }
  if (uneven && stages == 0) return fits && layers == 0;
  if (uneven) return fits && layers != 0 && fill(layers, stages) && fill(layers / stages, chunks);
  double outer = 0;
  for (const char* name :
       {"--account-for-embedding-in-pipeline-split", "--account-for-loss-in-pipeline-split"}) {
    const auto at = values.find(name);
    if (at != values.end() && at->second == "true") outer += 1;
  }
  return outer == 0 || (fill(layers + outer, stages) && fill((layers + outer) / stages, chunks));
}

/// The ranks of accelerate's parallelism_config. Source: accelerate/parallelism_config.py,
/// total_size
std::optional<std::int64_t> mesh_of(const Values& values) {
  std::int64_t ranks = 1;
  for (const char* axis : {"dp_replicate", "dp_shard", "tp", "cp", "sp"}) {
    const auto at = values.find(fmt::format("parallelism_config.parallelism_config_{}_size", axis));
    const std::optional<std::int64_t> size =
        at == values.end() ? std::nullopt : parse_integer(at->second);
    if (!size || *size < 1 || *size > kMostGpus / ranks) return std::nullopt;
    ranks *= *size;
  }
  return ranks;
}

/// Whether the warm-up of the learning rate ends no earlier than its decay, which Megatron-LM's
/// scheduler refuses. Source: megatron/training/training.py, get_optimizer_param_scheduler
bool warmup_is_too_long(const Values& values, const std::vector<std::string>& open) {
  const bool unknown = std::ranges::any_of(open, [](const std::string& name) {
    return name.starts_with("--lr-") || name.starts_with("--train-");
  });
  if (unknown) return false;
  const bool by_iters = number_of(values, "--train-iters").value_or(0) > 0;
  const auto length = number_of(values, by_iters ? "--train-iters" : "--train-samples");
  const auto decay = number_of(values, by_iters ? "--lr-decay-iters" : "--lr-decay-samples");
  const auto warmup = number_of(values, by_iters ? "--lr-warmup-iters" : "--lr-warmup-samples");
  const auto share = number_of(values, "--lr-warmup-fraction");
  if (!length) return false;
  return share ? *share >= 1 : warmup && *warmup >= decay.value_or(*length);
}

/// Whether Python takes the value of a key for false; a text, and so a launcher's flag, is true.
bool is_off(const GivenSetting& given) {
  if (!given.value) return false;
  const JsonValue& value = *given.value;
  return (value.kind == JsonValue::Kind::boolean && !value.boolean) ||
         (value.kind == JsonValue::Kind::integer && value.integer == 0);
}

}  // namespace

Values rule_values(const Framework& framework, const Settings& settings, std::int64_t ranks,
                   const std::optional<ClusterSpec>& cluster) {
  Values known;
  if (ranks > 0) known["gpus"] = std::to_string(ranks);
  Diagnostics ignored;
  const Values facts = facts_of(framework, settings, std::move(known), ignored);
  Values values = settings.values;
  const auto copy = [&](const char* fact) {
    const auto at = facts.find(fact);
    if (at != facts.end()) values[std::string("@") + fact] = at->second;
  };
  copy("tp_cp");
  copy("dp");
  if (ranks > 0) values["@world"] = std::to_string(ranks);
  if (cluster) {
    constexpr const char* kBlackwell = "blackwell";
    const bool before = cluster->gpu.architecture != kBlackwell;
    values["@before_blackwell"] = before && cluster->gpu.vendor == "nvidia" ? "true" : "false";
  }
  const auto is_open = [&](const char* variable) {
    return std::ranges::find(settings.open, variable) != settings.open.end();
  };
  constexpr const char* kQueues = "CUDA_DEVICE_MAX_CONNECTIONS";
  const auto queues = values.find(kQueues);
  const bool one = queues != values.end() && queues->second == "1";
  if (!is_open(kQueues)) values["@one_queue"] = one ? "true" : "false";
  constexpr std::array<const char*, 2> kOfAllocator = {"PYTORCH_CUDA_ALLOC_CONF",
                                                       "PYTORCH_ALLOC_CONF"};
  const bool expands = std::ranges::any_of(kOfAllocator, [&](const char* variable) {
    const auto at = values.find(variable);
    return at != values.end() && at->second.find("expandable_segments:True") != std::string::npos;
  });
  if (expands || std::ranges::none_of(kOfAllocator, is_open)) {
    values["@expandable_segments"] = expands ? "true" : "false";
  }
  const std::optional<double> positions = number_of(values, "--max-position-embeddings");
  const std::optional<double> length = number_of(values, "--seq-length");
  const std::optional<double> groups = number_of(values, "--num-query-groups");
  const std::optional<double> tp = number_of(values, "--tensor-model-parallel-size");
  const bool cut = groups && tp && *groups >= 1 && *tp >= 1;
  const bool fit = !cut || std::fmod(*groups, *tp) == 0 || std::fmod(*tp, *groups) == 0;
  values["@groups_fit_tp"] = fit ? "true" : "false";
  const auto experts_by = values.find("--expert-tensor-parallel-size");
  if (experts_by == values.end()) {  // then it is that of the other layers
    const auto own = values.find("--tensor-model-parallel-size");
    if (own != values.end()) values["@expert_tp"] = own->second;
  } else {
    values["@expert_tp"] = experts_by->second;
  }
  const double hybrid = number_of(values, "zero_optimization.zero_hpz_partition_size").value_or(1);
  const auto all = static_cast<double>(ranks);  // a larger group has them all
  const bool divides = hybrid <= 1 || hybrid >= all || std::fmod(all, hybrid) == 0;
  if (hybrid <= 1 || ranks > 0) values["@hybrid_fits"] = divides ? "true" : "false";
  if (const auto mesh = mesh_of(values)) values["@mesh"] = std::to_string(*mesh);
  for (const auto& [name, given] : settings.given) {
    if (is_off(*given)) values["@off." + name] = "true";
  }
  values["@stages_fit"] = stages_fit(values) ? "true" : "false";
  values["@warmup_too_long"] = warmup_is_too_long(values, settings.open) ? "true" : "false";
  const std::optional<double> rate = number_of(values, "--lr");
  const std::optional<double> least = number_of(values, "--min-lr");
  values["@min_lr_above_lr"] = rate && least && *least > *rate ? "true" : "false";
  values["@sequence_too_long"] = positions && length && *length > *positions ? "true" : "false";
  return values;
}

}  // namespace shardwise
