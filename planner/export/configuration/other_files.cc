#include "planner/export/configuration/other_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>

namespace shardwise {
namespace {

constexpr const char* kByHand =
    "state its layout to shardwise estimate, by --tp, --pp, --zero-stage";

bool has_any(const JsonValue* object, std::initializer_list<std::string_view> keys) {
  return object != nullptr &&
         std::ranges::any_of(keys, [&](auto key) { return object->find(key) != nullptr; });
}

/// A program whose file no plan is made of; "" for none.
std::string_view program_of(const JsonValue& root) {
  const bool has_stages = has_any(&root, {"pipe_parallel_size", "pipe-parallel-size"});
  if (has_stages &&
      has_any(&root, {"num_layers", "num-layers", "model_parallel_size", "model-parallel-size"})) {
    return "GPT-NeoX";
  }
  const JsonValue* parallelism = root.find("parallelism");
  if (has_any(parallelism, {"tp"}) && has_any(parallelism, {"dp"}) && has_any(&root, {"tokens"})) {
    return "nanotron";
  }
  if (has_any(&root, {"device_train_microbatch_size", "device_train_grad_accum"})) {
    return "LLM Foundry";
  }
  if (has_any(root.find("model"), {"_component_"})) return "torchtune";
  return "";
}

}  // namespace

Diagnostic not_one(const std::string& file, const std::string& is, const std::string& hint) {
  return {file, 1, 0, "", fmt::format("is {}, no configuration of a framework", is), hint};
}

std::optional<Diagnostic> of_other_program(const JsonValue& root, const std::string& file) {
  if (root.find("base_model") != nullptr &&
      has_any(&root, {"sequence_len", "micro_batch_size", "datasets"})) {
    return not_one(file, "a file of axolotl",
                   "give the JSON that its deepspeed: names, or what its fsdp_config: says as "
                   "accelerate's YAML, and batch, length and precision as flags");
  }
  const bool trains =
      has_any(&root, {"per_device_train_batch_size", "finetuning_type", "output_dir"});
  if ((root.find("model_name_or_path") != nullptr && trains) ||
      has_any(&root, {"train_dataset", "dist_config"})) {
    return not_one(file, "a file of arguments of a training script (LLaMA-Factory, TRL)",
                   "give the JSON that its deepspeed: names, or accelerate's YAML, and its "
                   "arguments as a command behind --");
  }
  if (root.find("trainer") != nullptr &&
      has_any(root.find("model"), {"tensor_model_parallel_size", "micro_batch_size"})) {
    return not_one(file, "a file of NeMo",
                   "give what its model: says as flags of Megatron-LM behind --, and its devices "
                   "as --gpus");
  }
  if (const std::string_view program = program_of(root); !program.empty()) {
    return not_one(file, fmt::format("a file of {}", program), kByHand);
  }
  return std::nullopt;
}

}  // namespace shardwise
