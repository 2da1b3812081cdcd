// Jobs in the forms in which the frameworks' own repositories publish them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "planner/export/check_configuration.h"
#include "planner/export/configuration/configuration.h"
#include "planner/export/configuration/job_files.h"
#include "planner/export/export_folder.h"
#include "planner/export/facts/selective_operations.h"
#include "planner/export/framework/framework_reader.h"
#include "planner/export/import_plan.h"
#include "planner/model/hf_config.h"
#include "tests/planner/export/assumption_texts.h"

namespace shardwise {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

Result<Import> import_of(const Result<Configuration>& configuration, const std::string& model) {
  if (!configuration) return configuration.problems();
  const Result<Framework> framework = framework_of(*configuration, "", "--from");
  if (!framework) return framework.problems();
  AskedImport asked;
  asked.job.model = model;
  asked.job.cluster = "dgx-h100";
  return import_plan(*framework, *configuration, asked);
}

Result<Import> import_of_script(const std::string& text, const std::string& model = "") {
  return import_of(read_configuration(text, "run.sh"), model);
}

/// The sizes of Llama 3 with another base of rotary angles and shorter sequences, as Megatron-LM's
/// example of Llama 3 has.
constexpr const char* kLlama3 =
    "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 "
    "--ffn-hidden-size 14336 --num-attention-heads 32 --group-query-attention "
    "--num-query-groups 8 --kv-channels 128 --seq-length 4096 --max-position-embeddings 4096 "
    "--position-embedding-type rope --rotary-base 1000000 --rotary-percent 1.0 --swiglu "
    "--normalization RMSNorm --untie-embeddings-and-output-weights --disable-bias-linear "
    "--micro-batch-size 1 --global-batch-size 128 --bf16 --use-distributed-optimizer "
    "--vocab-size 128256\n";

TEST(PublishedJobs, KeepNumbersThatChangeNeitherMemoryNorTime) {
  const Result<Import> made = import_of_script(kLlama3, "llama-3-8b");
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  const std::string assumed = test::assumptions_of(*made);
  EXPECT_THAT(assumed, HasSubstr("--rotary-base 1000000 is kept, where llama-3-8b has 500000: "
                                 "the same memory and time"));
  EXPECT_THAT(assumed, HasSubstr("--max-position-embeddings 4096 is kept"));
  const Framework framework = *load_framework("megatron-lm", "--to");
  const Result<Export> again = export_plan(made->plan, framework);
  ASSERT_TRUE(again.ok()) << to_string(again.problems());
  const auto files = export_folder(*again, framework, "");
  ASSERT_TRUE(files.ok()) << to_string(files.problems());
  const std::string& arguments = files->front().text;
  EXPECT_THAT(arguments, HasSubstr("--rotary-base 1000000\n"));
  EXPECT_THAT(arguments, Not(HasSubstr("500000")));
  EXPECT_THAT(arguments, HasSubstr("--max-position-embeddings 4096\n"));
}

// Without a name the models are those that have the sizes: of several that cost the same the first.
TEST(PublishedJobs, AreOfAModelWithTheSameSizes) {
  const Result<Import> made = import_of_script(kLlama3);
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  EXPECT_EQ(made->plan.model.name, "llama-3-8b");
  const Result<Import> other = import_of_script(kLlama3, "llama-2-7b");
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(to_string(other.problems()), HasSubstr("--ffn-hidden-size: 14336, but llama-2-7b"));
}

TEST(PublishedJobs, OfTorchtitanNameTheirRecipeInVariables) {
  for (const char* text :
       {"MODULE=llama3 CONFIG=llama3_8b NGPU=16 ./run_train.sh --training.local_batch_size 2\n",
        "export MODULE=llama3\nexport CONFIG=llama3_8b\nexport NGPU=16\n"
        "bash ./run_train.sh --training.local_batch_size 2\n",
        "NGPU=16 ./run_train.sh --module llama3 --config llama3_8b "
        "--training.local_batch_size 2\n"}) {
    const Result<Import> made = import_of_script(text);
    ASSERT_TRUE(made.ok()) << text << to_string(made.problems());
    EXPECT_EQ(made->plan.model.name, "llama-3.1-8b");
    EXPECT_EQ(made->plan.layout.world(), 16);
    EXPECT_EQ(made->plan.layout.micro_batch_size, 2);
  }
  const Result<Import> words = import_of(
      configuration_of_words({"MODULE=llama3", "CONFIG=llama3_70b", "NGPU=64", "./run_train.sh"}),
      "");
  ASSERT_TRUE(words.ok()) << to_string(words.problems());
  EXPECT_EQ(words->plan.model.name, "llama-3.1-70b");
  EXPECT_EQ(words->plan.layout.world(), 64);
}

// Every second product is run again: q, k and v are one, the router's is not counted.
TEST(PublishedJobs, OfTorchtitanRecomputeWhatTheirModelHas) {
  const auto operations = [](const char* model) {
    return selective_operations(*load_model(model));
  };
  const std::vector<std::string> llama = operations("llama-3.1-8b");
  EXPECT_EQ(llama, (std::vector<std::string>{"attention_norm", "self_attn.rope", "self_attn.o_proj",
                                             "attention_residual", "mlp_norm", "mlp.up_proj",
                                             "mlp.activation", "mlp_residual"}));
  const std::vector<std::string> latent = operations("deepseek-v3");
  for (const char* again : {"self_attn.q_b_proj", "self_attn.kv_b_proj", "mlp.gate_proj",
                            "mlp.down_proj", "mlp.router_proj", "mlp.experts.up_proj"}) {
    EXPECT_THAT(latent, Contains(again));
  }
  for (const char* saved : {"self_attn.q_a_proj", "self_attn.kv_a_proj", "self_attn.core",
                            "self_attn.o_proj", "mlp.up_proj", "mlp.dispatch"}) {
    EXPECT_THAT(latent, Not(Contains(saved)));
  }
  const Result<Import> made = import_of_script(
      "torchrun --nnodes 32 --nproc-per-node 8 -m torchtitan.train --module deepseek_v3 "
      "--config deepseek_v3_671b --parallelism.expert_parallel_degree 64\n");
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  EXPECT_EQ(made->plan.job.recompute_operations, latent);
}

/// "rule: message", a line each.
std::string findings_of(const std::string& text, const std::string& file) {
  const Result<Configuration> configuration = read_configuration(text, file);
  if (!configuration) return to_string(configuration.problems());
  const Result<Framework> framework = framework_of(*configuration, "", "--from");
  if (!framework) return to_string(framework.problems());
  const auto found = check_configuration(*framework, *configuration, 8, std::nullopt);
  if (!found) return to_string(found.problems());
  std::string all;
  for (const Finding& each : *found) {
    all += each.rule + ": " + to_string(each.what) + " (" + each.source + ")\n";
  }
  return all;
}

// bash makes several words of it: ${ARGS[@]} without quotes.
// open-r1 and the alignment handbook give a script of their own a recipe by --config.
TEST(PublishedJobs, MayHaveOneNameWithASettingOfTorchtitan) {
  const std::string script =
      "accelerate launch --config_file recipes/zero3.yaml --num_machines 2 --num_processes 16 "
      "src/sft.py --config recipes/model/sft/config_demo.yaml\n";
  const Result<Configuration> alone = read_job({{"train.slurm", script, {}}}, {});
  ASSERT_TRUE(alone.ok()) << to_string(alone.problems());
  const Result<Framework> none = framework_of(*alone, "", "--from");
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(to_string(none.problems().front()),
              testing::HasSubstr("has no setting by which a framework is known"));

  const Result<Configuration> job =
      read_job({{"train.slurm", script, {}},
                {"zero3.yaml",
                 "distributed_type: DEEPSPEED\nmixed_precision: bf16\nnum_processes: 8\n"
                 "deepspeed_config:\n  zero_stage: 3\n",
                 {}}},
               {});
  ASSERT_TRUE(job.ok()) << to_string(job.problems());
  const Result<Framework> known = framework_of(*job, "", "--from");
  ASSERT_TRUE(known.ok()) << to_string(known.problems());
  EXPECT_EQ(known->name, "deepspeed");

  const Result<Configuration> own = read_job(
      {{"run.sh", "torchrun --nproc-per-node 8 -m torchtitan.train --config llama3_8b\n", {}}}, {});
  ASSERT_TRUE(own.ok()) << to_string(own.problems());
  const Result<Framework> titan = framework_of(*own, "", "--from");
  ASSERT_TRUE(titan.ok()) << to_string(titan.problems());
  EXPECT_EQ(titan->name, "torchtitan");
}

TEST(PublishedJobs, AreToldAllThatIsWrongAtOnce) {
  const Result<Import> made =
      import_of(read_configuration(R"({"train_batch_size": -8, "zero_optimization": {"stage": 7}})",
                                   "ds.json"),
                "llama-3.1-8b");
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(to_string(made.problems()), HasSubstr("ds.json:1:22: /train_batch_size: -8 is"));
  EXPECT_THAT(to_string(made.problems()), HasSubstr("/zero_optimization/stage: 7 is"));
}

// Their keys have names that DeepSpeed, accelerate or Megatron-LM have too.
TEST(PublishedJobs, OfOtherProgramsAreNamed) {
  const struct {
    const char* text;
    const char* says;
  } files[] = {
      {"pipe_parallel_size: 2\nmodel_parallel_size: 2\nnum_layers: 32\n"
       "train_micro_batch_size_per_gpu: 4\nzero_optimization:\n  stage: 1\n",
       "a file of GPT-NeoX"},
      {"{\"pipe-parallel-size\": 1, \"model-parallel-size\": 1,\n"
       " \"zero_optimization\": {\"stage\": 1}}\n",
       "a file of GPT-NeoX"},
      {"parallelism:\n  dp: 8\n  tp: 4\n  pp: 2\ntokens:\n  micro_batch_size: 2\n",
       "a file of nanotron"},
      {"trainer:\n  devices: 8\nmodel:\n  micro_batch_size: 4\n"
       "  tensor_model_parallel_size: 4\n  activations_checkpoint_granularity: full\n",
       "a file of NeMo"},
      {"max_seq_len: 2048\ndevice_train_microbatch_size: 8\nfsdp_config:\n"
       "  sharding_strategy: FULL_SHARD\n",
       "a file of LLM Foundry"},
      {"model:\n  _component_: torchtune.models.llama3_1.llama3_1_8b\nbatch_size: 2\n",
       "a file of torchtune"},
  };
  for (const auto& each : files) {
    const Result<Configuration> read = read_configuration(each.text, "job.yaml");
    ASSERT_FALSE(read.ok()) << each.says;
    EXPECT_THAT(to_string(read.problems().front()), testing::HasSubstr(each.says));
  }
}

TEST(PublishedJobs, HaveNoTextThatBashSplits) {
  const std::string found = findings_of(
      "A=(--global-batch-size 1536 --step-batch-size-schedule \"0:16 2.4B:320\" --bf16)\n"
      "torchrun --nproc-per-node 8 pretrain_gpt.py --micro-batch-size 1 --log-throughput true "
      "${A[@]}\n",
      "run.sh");
  EXPECT_THAT(found, HasSubstr("--step-batch-size-schedule: takes one value, and 0:16 2.4B:320 "
                               "stands behind it"));
  EXPECT_THAT(found, HasSubstr("--log-throughput: takes no value, and true stands behind it"));
  EXPECT_THAT(findings_of("A=(--step-batch-size-schedule \"0:16 2.4B:320\" --bf16)\n"
                          "torchrun --nproc-per-node 8 pretrain_gpt.py --micro-batch-size 1 "
                          "--log-throughput $MORE --global-batch-size 8 \"${A[@]}\"\n",
                          "run.sh"),
              Not(HasSubstr("unexpected_word")));
}

TEST(PublishedJobs, OfDeepspeedHaveKnownKeysInSections) {
  for (const char* section : {"comms_logger", "compile", "hybrid_engine", "tensor_parallel",
                              "weight_quantization", "bfloat16"}) {
    const std::string found = findings_of(
        "{\"train_batch_size\": 8, \"" + std::string(section) + "\": {\"disable\": false}}",
        "ds.json");
    EXPECT_THAT(found, HasSubstr("unknown_key: ds.json:1:")) << section;
    EXPECT_THAT(found, HasSubstr("(deepspeed/runtime/config_utils.py:110)")) << section;
  }
  EXPECT_THAT(findings_of(R"({"train_batch_size": {"auto": 1}})", "ds.json"),
              HasSubstr("train_batch_size has keys, and takes an integer"));
}

TEST(PublishedJobs, OfAccelerateMayBeInBraces) {
  const std::string text =
      "{distributed_type: FSDP, num_processes: 8, fsdp_config: {fsdp_version: 2,\n"
      " fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP}}\n";
  EXPECT_EQ(findings_of(text, "accelerate.yaml"), "");
  const Result<Import> made = import_of(read_configuration(text, "accelerate.yaml"), "gpt2");
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  EXPECT_EQ(made->plan.layout.world(), 8);
}

}  // namespace
}  // namespace shardwise
