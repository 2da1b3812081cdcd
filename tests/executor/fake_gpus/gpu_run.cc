#include "tests/executor/fake_gpus/gpu_run.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"
#include "planner/spec/json/catalogue.h"
#include "planner/spec/json/reader.h"
#include "planner/spec/machine/cluster_reader.h"

namespace shardwise::exec::test {
namespace {

constexpr const char* kGpt2 = R"({"model_type": "gpt2", "n_embd": 32, "n_layer": 2, "n_head": 4,
  "n_positions": 64, "vocab_size": 257, "activation_function": "gelu_new",
  "layer_norm_epsilon": 1e-05, "tie_word_embeddings": true})";
constexpr const char* kLlama = R"({"model_type": "llama", "hidden_size": 32,
  "intermediate_size": 88, "num_hidden_layers": 2, "num_attention_heads": 4,
  "num_key_value_heads": 2, "vocab_size": 257, "max_position_embeddings": 64,
  "rms_norm_eps": 1e-05, "hidden_act": "silu", "tie_word_embeddings": false})";

}  // namespace

Plan small_plan(const std::string& model, DType precision, int zero_stage, int ranks,
                std::int64_t num_microbatches) {
  const char* const config = model == "gpt2" ? kGpt2 : kLlama;
  Plan plan;
  plan.model = *read_model(*parse_json(config, "config.json"), "config.json", model);
  plan.engine = *find_engine("shardwise");
  plan.layout.zero_stage = static_cast<std::int8_t>(zero_stage);
  plan.layout.dp_shard = ranks;
  plan.cluster = *with_gpus(*find_cluster("dgx-h100"), ranks);
  plan.job.precision = precision;
  plan.job.loss = LossKernel::chunked;
  plan.job.sequence_length = 24;
  plan.job.global_batch_size = ranks * num_microbatches;
  return plan;
}

shardwise::test::Outcome run_on_gpus(const std::string& plan, const std::vector<std::string>& words,
                                     const std::vector<std::string>& environment) {
  std::vector<std::string> all = {"FAKE_GPU_KERNELS=1"};
  all.insert(all.end(), environment.begin(), environment.end());
  all.insert(all.end(),
             {shardwise::test::built("fake_gpu_shardwise_run"), "train", plan, "--device", "cuda"});
  const bool processes = std::ranges::any_of(
      environment, [](const std::string& each) { return each.starts_with("FAKE_NCCL_FOLDER="); });
  if (!processes) all.insert(all.end(), {"--ranks-as", "threads"});
  all.insert(all.end(), words.begin(), words.end());
  return shardwise::test::run_program("env", all);
}

}  // namespace shardwise::exec::test
