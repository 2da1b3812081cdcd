#include "planner/export/configuration/accelerate_deepspeed.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/export/configuration/yaml_scalar.h"
#include "planner/spec/machine/cluster_spec.h"
#include "planner/spec/text/number.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

constexpr std::string_view kSection = "deepspeed_config.";

/// Keys of accelerate's YAML, but for those of DeepSpeed's JSON (fp16).
bool is_of_accelerate(const GivenSetting& setting) {
  constexpr auto kKeys = std::to_array<std::string_view>({"compute_environment",
                                                          "distributed_type",
                                                          "mixed_precision",
                                                          "num_processes",
                                                          "num_machines",
                                                          "machine_rank",
                                                          "gpu_ids",
                                                          "main_process_ip",
                                                          "main_process_port",
                                                          "rdzv_backend",
                                                          "same_network",
                                                          "deepspeed_config",
                                                          "fsdp_config",
                                                          "parallelism_config",
                                                          "main_training_function",
                                                          "use_cpu",
                                                          "debug",
                                                          "enable_cpu_affinity",
                                                          "megatron_lm_config",
                                                          "mpirun_config",
                                                          "fp8_config",
                                                          "dynamo_config",
                                                          "dynamo_backend",
                                                          "downcast_bf16",
                                                          "tpu_env",
                                                          "tpu_name",
                                                          "tpu_zone",
                                                          "tpu_use_cluster",
                                                          "tpu_use_sudo",
                                                          "tpu_vm",
                                                          "command_file",
                                                          "commands"});
  const std::string_view top = std::string_view(setting.name).substr(0, setting.name.find('.'));
  return setting.value && std::ranges::find(kKeys, top) != kKeys.end();
}

bool is_of_deepspeed(const GivenSetting& setting) {
  return setting.value &&
         (setting.name.starts_with("zero_optimization.") || setting.name == "train_batch_size" ||
          setting.name == "train_micro_batch_size_per_gpu");
}

/// DeepSpeed's key for one of deepspeed_config; "" for others.
std::string_view deepspeed_key(std::string_view name) {
  constexpr auto kKeys = std::to_array<std::pair<std::string_view, std::string_view>>(
      {{"gradient_accumulation_steps", "gradient_accumulation_steps"},
       {"gradient_clipping", "gradient_clipping"},
       {"zero_stage", "zero_optimization.stage"},
       {"offload_optimizer_device", "zero_optimization.offload_optimizer.device"},
       {"offload_param_device", "zero_optimization.offload_param.device"},
       {"offload_optimizer_nvme_path", "zero_optimization.offload_optimizer.nvme_path"},
       {"offload_param_nvme_path", "zero_optimization.offload_param.nvme_path"},
       {"zero3_save_16bit_model", "zero_optimization.stage3_gather_16bit_weights_on_model_save"}});
  for (const auto& [theirs, own] : kKeys) {
    if (name == theirs) return own;
  }
  return "";
}

class DeepspeedOfAccelerate {
 public:
  explicit DeepspeedOfAccelerate(Configuration& job) : job_(job) {
    const auto first =
        std::stable_partition(job.settings.begin(), job.settings.end(),
                              [](const GivenSetting& each) { return !is_of_accelerate(each); });
    std::move(first, job.settings.end(), std::back_inserter(keys_));
    job.settings.erase(first, job.settings.end());
  }

  Diagnostics take() {
    const GivenSetting* file = find(std::string(kSection) + "deepspeed_config_file");
    const bool has_json = std::ranges::any_of(job_.settings, is_of_deepspeed);
    if (file != nullptr && file->words.size() == 1 && !has_json) {
      return {{file->file, file->line, file->column, file->path,
               fmt::format("{} is not given", shown(file->words.front())),
               "give DeepSpeed's JSON too"}};
    }
    for (const GivenSetting& each : keys_) {
      if (!each.name.starts_with(kSection)) continue;
      const std::string_view own =
          deepspeed_key(std::string_view(each.name).substr(kSection.size()));
      if (!own.empty()) fill(std::string(own), each);
    }
    if (file == nullptr && !has_json) {
      // Without a JSON there is a stage, which is 2 by default, and batches are of the script's
      // DataLoader.
      const GivenSetting& place = *find("distributed_type");
      fill("zero_optimization.stage", plain(place, "2"));
      fill("train_batch_size", plain(place, "auto"));
      fill("train_micro_batch_size_per_gpu", plain(place, "auto"));
    }
    take_precision();
    return take_ranks();
  }

 private:
  const GivenSetting* find(std::string_view name) const {
    const auto at = std::ranges::find(keys_, name, &GivenSetting::name);
    return at == keys_.end() ? nullptr : &*at;
  }

  /// A value at the place of a key.
  static GivenSetting plain(GivenSetting at, const std::string& text) {
    JsonValue value;
    set_plain_scalar(text, value);
    value.line = at.line;
    value.column = at.column;
    at.words = {text};
    at.value = std::move(value);
    return at;
  }

  /// States a key of DeepSpeed that its JSON does not have, or as "auto".
  void fill(const std::string& name, GivenSetting setting) {
    setting.name = name;
    setting.kept_path = "/" + name;
    std::ranges::replace(setting.kept_path, '.', '/');
    const auto at = std::ranges::find_if(
        job_.settings, [&](const GivenSetting& each) { return each.value && each.name == name; });
    if (at == job_.settings.end()) {
      job_.settings.push_back(std::move(setting));
    } else if (at->words == std::vector<std::string>{"auto"}) {
      *at = std::move(setting);
    }
  }

  void take_precision() {
    const GivenSetting* precision = find("mixed_precision");
    if (precision == nullptr || precision->words.size() != 1 || precision->open) return;
    const std::string& word = precision->words.front();
    fill("fp16.enabled", plain(*precision, word == "fp16" ? "true" : "false"));
    fill("bf16.enabled", plain(*precision, word == "bf16" || word == "fp8" ? "true" : "false"));
  }

  Diagnostics take_ranks() {
    const GivenSetting* ranks = find("num_processes");
    if (job_.ranks > 0 || ranks == nullptr || ranks->open) return {};
    const std::optional<std::int64_t> count =
        ranks->words.size() == 1 ? parse_integer(ranks->words.front()) : std::nullopt;
    if (count && *count >= 1 && *count <= kMostGpus) {
      job_.ranks = *count;
      return {};
    }
    return {
        {ranks->file, ranks->line, ranks->column, ranks->path,
         fmt::format("{} is not a whole number from 1 to {}",
                     ranks->words.empty() ? "its value" : shown(ranks->words.front()), kMostGpus),
         "the ranks of all nodes"}};
  }

  Configuration& job_;
  std::vector<GivenSetting> keys_;  // of accelerate
};

}  // namespace

Diagnostics take_accelerate_for_launcher(Configuration& job) {
  const auto type = std::ranges::find_if(job.settings, [](const GivenSetting& each) {
    return each.value && each.name == "distributed_type" && each.words.size() == 1;
  });
  if (type == job.settings.end()) return {};
  if (type->words.front() == "DEEPSPEED") {
    const auto ulysses = std::ranges::find(
        job.settings, "parallelism_config.parallelism_config_sp_size", &GivenSetting::name);
    if (ulysses != job.settings.end() && ulysses->words != std::vector<std::string>{"1"}) {
      return {
          {ulysses->file, ulysses->line, ulysses->column, ulysses->path,
           fmt::format("no plan has {}", shown(fmt::format("{}", fmt::join(ulysses->words, " ")))),
           "the nearest plans: 1, or --cp under --engine fsdp2, which torchtitan and accelerate "
           "run"}};
    }
    std::erase_if(job.nulls, is_of_accelerate);
    return DeepspeedOfAccelerate(job).take();
  }
  const auto json = std::ranges::find_if(job.settings, is_of_deepspeed);
  if (json == job.settings.end()) {
    const auto named = std::ranges::find_if(job.settings, [](const GivenSetting& each) {
      return each.name == "--deepspeed" && each.words.size() == 1 && !each.value;
    });
    if (named == job.settings.end()) return {};
    return {{named->file, named->line, named->column, named->path,
             fmt::format("{} is not given, by which transformers' Trainer shards",
                         shown(named->words.front())),
             "give DeepSpeed's JSON too"}};
  }
  return {{type->file, type->line, type->column, type->path,
           fmt::format("{}, but {} has {}, a key of DeepSpeed", shown(type->words.front()),
                       json->file, json->name),
           "DEEPSPEED, or leave one of the two files out"}};
}

}  // namespace shardwise
