// Launch commands as people write them.

#include "planner/export/import_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "planner/export/configuration/configuration.h"
#include "planner/export/export_folder.h"
#include "planner/export/framework/framework_reader.h"
#include "planner/export/kept_of.h"
#include "planner/spec/plan/names.h"

namespace shardwise {
namespace {

using testing::HasSubstr;

Result<Import> read_import(const std::string& text, const std::string& file,
                           const AskedImport& asked) {
  const Result<Configuration> configuration = read_configuration(text, file);
  if (!configuration) return configuration.problems();
  const Result<Framework> framework = framework_of(*configuration, "", "--from");
  if (!framework) return framework.problems();
  return import_plan(*framework, *configuration, asked);
}

AskedImport on(const std::string& cluster, const std::string& model = "") {
  AskedImport asked;
  asked.job.model = model;
  asked.job.cluster = cluster;
  return asked;
}

/// Arrays of a script, as Megatron-LM's examples have them. The layout is that of the row of 175
/// billion parameters in Narayanan et al., "Efficient Large-Scale Language Model Training on GPU
/// Clusters Using Megatron-LM" (arXiv:2104.04473), table 1: tensor 8, pipeline 12, 384 GPUs, a
/// batch of 1536.
constexpr const char* kGpt3 = R"(#!/bin/bash
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
NUM_NODES=${NUM_NODES:-48}
LAUNCH=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NUM_NODES   # of the job
)
MODEL=(--num-layers 96 --hidden-size 12288 --num-attention-heads 96
       --seq-length 2048 --max-position-embeddings 2048)
PARALLEL=(
    --tensor-model-parallel-size 8
    --pipeline-model-parallel-size 12
)
torchrun ${LAUNCH[@]} pretrain_gpt.py \
    ${MODEL[@]} "${PARALLEL[@]}" \
    --micro-batch-size 1 --global-batch-size 1536 --fp16 \
    --lr 6.0e-5 --data-path $DATA --split 949,50,1 \
    --recompute-granularity full --recompute-method uniform --recompute-num-layers 1
)";

TEST(Imports, TheLayoutOfAPublishedCommand) {
  const Result<Import> made = read_import(kGpt3, "run.sh", on("dgx-a100", "gpt3-175b"));
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  const Plan& plan = made->plan;
  EXPECT_EQ(plan.engine.name, "megatron_ddp");
  EXPECT_EQ(plan.cluster.gpus, 384);
  EXPECT_EQ(plan.layout.tp, 8);
  EXPECT_EQ(plan.layout.pp, 12);
  EXPECT_EQ(plan.layout.dp(), 4);
  EXPECT_EQ(plan.layout.zero_stage, 0);
  EXPECT_EQ(plan.layout.micro_batch_size, 1);
  EXPECT_EQ(plan.job.global_batch_size, 1536);
  EXPECT_EQ(plan.job.sequence_length, 2048);
  EXPECT_EQ(plan.job.precision, DType::fp16);
  EXPECT_FALSE(plan.layout.fp32_gradients);  // fp16 without --accumulate-allreduce-grads-in-fp32
  EXPECT_EQ(plan.layout.recompute, Recompute::full);
  EXPECT_TRUE(plan.job.attention_mask_in_batch);  // the dataloader's default
  EXPECT_DOUBLE_EQ(plan.job.dropout, 0.1);        // Megatron-LM's default
}

TEST(Imports, TakeVariablesThatNobodySetForNoValueOfASwitch) {
  const Result<Import> made = read_import(
      "torchrun --nproc-per-node 8 pretrain_gpt.py --seq-length 1024 $MORE \\\n"
      "  --micro-batch-size 1 --fp16 ${REST[@]} --lr 1e-4 \"$@\"\n",
      "run.sh", on("dgx-a100", "gpt2"));
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  EXPECT_EQ(made->plan.job.sequence_length, 1024);
  EXPECT_EQ(made->plan.job.precision, DType::fp16);
  ASSERT_EQ(made->plan.kept.settings.size(), 1U);
  EXPECT_EQ(made->plan.kept.settings[0].words, std::vector<std::string>{"1e-4"});
}

TEST(Imports, KeepAndWriteBackWhatNoPlanHas) {
  const Result<Import> made = read_import(kGpt3, "run.sh", on("dgx-a100", "gpt3-175b"));
  ASSERT_TRUE(made.ok());
  ASSERT_EQ(made->plan.kept.framework, "megatron-lm");
  ASSERT_EQ(made->plan.kept.settings.size(), 3U);
  EXPECT_EQ(made->plan.kept.settings[0].name, "--lr");
  EXPECT_EQ(made->plan.kept.settings[1].words, std::vector<std::string>{"$DATA"});
  const Framework framework = *load_framework("megatron-lm", "--to");
  const Result<Export> again = export_plan(made->plan, framework);
  ASSERT_TRUE(again.ok()) << to_string(again.problems());
  const auto files = export_folder(*again, framework, "");
  EXPECT_THAT(files->front().text, HasSubstr("\n--lr 6.0e-5\n"));
  EXPECT_THAT(files->front().text, HasSubstr("\n--split 949,50,1\n"));
}

TEST(Imports, TheSelectiveRecomputeOfATorchtitanRecipe) {
  const Result<Import> made = read_import(
      "torchrun --nnodes 32 --nproc-per-node 8 -m torchtitan.train --module llama3 "
      "--config llama3_70b --training.disable-cuda-graphs --compile.enable",
      "run.sh", on("dgx-h100"));
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  const Plan& plan = made->plan;
  EXPECT_EQ(plan.model.name, "llama-3.1-70b");
  EXPECT_EQ(plan.layout.tp, 8);         // the recipe's
  EXPECT_EQ(plan.layout.dp_shard, 32);  // what is left
  EXPECT_EQ(plan.layout.micro_batch_size, 8);
  EXPECT_EQ(plan.job.global_batch_size, 8 * 32);
  EXPECT_EQ(plan.job.sequence_length, 8192);
  EXPECT_EQ(plan.layout.recompute, Recompute::full);
  EXPECT_EQ(plan.job.kernels, Kernels::compiled);
  EXPECT_EQ(plan.job.loss, LossKernel::chunked);
}

// torchtitan/distributed/fsdp.py, get_fsdp_reshard_after_forward_policy: `default` frees weights
// after forward, but in a pipeline, whose stages reduce after the last backward pass.
TEST(Imports, WhatTorchtitanDoesWithWeightsAfterForward) {
  const auto import = [](const std::string& flags) {
    return read_import(
        "torchrun --nproc-per-node 8 -m torchtitan.train --module llama3 --config llama3_8b "
        "--training.local_batch_size 8 --training.disable_cuda_graphs " +
            flags,
        "run.sh", on("dgx-h100"));
  };
  const Result<Import> one_stage = import("");
  ASSERT_TRUE(one_stage.ok()) << to_string(one_stage.problems());
  EXPECT_EQ(one_stage->plan.layout.reshard_after_forward, 1);
  EXPECT_TRUE(one_stage->plan.layout.reduce_every_microbatch);
  const std::string stages = "--parallelism.pipeline_parallel_degree 2 ";
  for (const char* policy : {"", "--parallelism.fsdp_reshard_after_forward default",
                             "--parallelism.fsdp_reshard_after_forward never"}) {
    const Result<Import> made = import(stages + policy);
    ASSERT_TRUE(made.ok()) << policy << to_string(made.problems());
    EXPECT_EQ(made->plan.layout.pp, 2);
    EXPECT_EQ(made->plan.layout.reshard_after_forward, 0);
    EXPECT_FALSE(made->plan.layout.reduce_every_microbatch);
  }
  const Result<Import> always = import(stages + "--parallelism.fsdp_reshard_after_forward always");
  ASSERT_FALSE(always.ok());
  EXPECT_THAT(to_string(always.problems()),
              HasSubstr("always: in a pipeline weights are gathered"));
}

TEST(Imports, DeepSpeedsBatchFromTwoOfThreeKeys) {
  const std::string json =
      R"({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4,
          "bf16": {"enabled": true}, "zero_optimization": {"stage": 3},
          "optimizer": {"type": "AdamW", "params": {"lr": 3e-4, "betas": [0.9, 0.95]}}})";
  AskedImport asked = on("dgx-h100", "llama-3.1-8b");
  asked.job.gpus = "16";
  const Result<Import> made = read_import(json, "ds_config.json", asked);
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  EXPECT_EQ(made->plan.layout.zero_stage, 3);
  EXPECT_EQ(made->plan.job.global_batch_size, 2 * 4 * 16);
  const Framework framework = *load_framework("deepspeed", "--to");
  const auto files = export_folder(*export_plan(made->plan, framework), framework, "");
  EXPECT_THAT(files->front().text, HasSubstr("\"betas\": [0.9, 0.95]"));
}

TEST(Imports, SayThatDeepSpeedsCheckpointingIsNotPriced) {
  const std::string json =
      R"({"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
          "activation_checkpointing": {"partition_activations": false, "cpu_checkpointing": true}})";
  AskedImport asked = on("dgx-h100", "llama-3.1-8b");
  asked.job.gpus = "8";
  const Result<Import> made = read_import(json, "ds_config.json", asked);
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  std::string unpriced;
  for (const Assumption& each : made->assumptions) {
    if (each.id.starts_with("import.unpriced.")) unpriced += each.id + " ";
  }
  EXPECT_EQ(unpriced, "import.unpriced.activation_checkpointing.cpu_checkpointing ");
}

// torchtitan/config/configs.py: mixed_precision_reduce is Literal["float32"].
TEST(Imports, RefuseGradientsThatTorchtitanDoesNotReduce) {
  const Result<Import> made = read_import(
      "torchrun --nproc-per-node 8 -m torchtitan.train --module llama3 --config llama3_8b "
      "--training.disable_cuda_graphs --training.mixed_precision_reduce bfloat16",
      "run.sh", on("dgx-h100"));
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(to_string(made.problems()),
              HasSubstr("--training.mixed_precision_reduce: no plan has bfloat16"));
}

// Micro-batches are of so many ranks: those of the settings, of the launcher, or of --gpus.
TEST(Imports, TheBatchOfRanksThatTheSettingsState) {
  const std::string script = R"({"framework": "torch-fsdp2",
    "batch": {"micro_batch_size": 2, "micro_batches": 8, "sequence_length": 512},
    "sharding": {"replicas": 2, "shards": 8, "reduce_every_microbatch": true,
                 "reshard_after_forward": "true"}})";
  const Result<Import> made = read_import(script, "settings.json", on("dgx-h100", "gpt2"));
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  EXPECT_EQ(made->plan.job.global_batch_size, 2 * 8 * 16);

  const std::string open = R"({"train_micro_batch_size_per_gpu": 2,
    "gradient_accumulation_steps": 4, "bf16": {"enabled": true}})";
  AskedImport asked = on("dgx-h100", "gpt2");
  // A batch with all of its factors has the ranks.
  const std::string all = R"({"train_batch_size": 256, "train_micro_batch_size_per_gpu": 2,
    "gradient_accumulation_steps": )";
  const Result<Import> factors = read_import(all + "8}", "ds.json", on("dgx-h100", "llama-3.1-8b"));
  ASSERT_TRUE(factors.ok()) << to_string(factors.problems());
  EXPECT_EQ(factors->plan.layout.world(), 16);
  EXPECT_EQ(factors->plan.cluster.gpus, 16);
  EXPECT_THAT(to_string(read_import(all + "7}", "ds.json", on("dgx-h100", "gpt2")).problems()),
              HasSubstr("ds.json:1:22: /train_batch_size: 256 is no multiple of 2 x 7"));
  asked.job.gpus = "8";
  EXPECT_THAT(to_string(read_import(all + "8}", "ds.json", asked).problems()),
              HasSubstr("/train_batch_size: 256: is not train_micro_batch_size_per_gpu x"));
  asked.job.gpus = "";
  EXPECT_THAT(to_string(read_import(open, "ds.json", asked).problems()),
              HasSubstr("ds.json: --gpus: states a batch for each rank, and not how many"));
  asked.job.gpus = "16";
  const Result<Import> sized = read_import(open, "ds.json", asked);
  ASSERT_TRUE(sized.ok()) << to_string(sized.problems());
  EXPECT_EQ(sized->plan.job.global_batch_size, 2 * 4 * 16);
}

TEST(Imports, RefuseWhatContradictsTheModelOrAFlag) {
  const Result<Import> other = read_import(kGpt3, "run.sh", on("dgx-a100", "llama-3.1-8b"));
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.problems().front().line, 9);
  EXPECT_THAT(to_string(other.problems()),
              HasSubstr("run.sh:9:8: --num-layers: 96, but llama-3.1-8b has 32"));
  AskedImport asked = on("dgx-a100", "gpt3-175b");
  asked.layout.texts["tp"] = "4";
  const Result<Import> flag = read_import(kGpt3, "run.sh", asked);
  ASSERT_FALSE(flag.ok());
  EXPECT_THAT(to_string(flag.problems()), HasSubstr("--tp: 4, but run.sh has 8"));
  asked = on("dgx-a100", "gpt3-175b");
  asked.job.gpus = "100";
  const Result<Import> ranks = read_import(kGpt3, "run.sh", asked);
  ASSERT_FALSE(ranks.ok());
  EXPECT_THAT(to_string(ranks.problems()), HasSubstr("--gpus: 100, but run.sh has 384"));
}

/// What a command says besides data-parallel ranks.
std::string imported_words(const std::string& words) {
  const std::string base =
      "torchrun --nproc-per-node 8 pretrain_gpt.py --bf16 --seq-length 4096 --micro-batch-size 1 ";
  const Result<Import> made = read_import(base + words, "run.sh", on("dgx-h100", "llama-3.1-8b"));
  if (!made) return to_string(made.problems());
  return made->plan.engine.name + " " + std::to_string(made->plan.layout.zero_stage) + " " +
         std::string(name_of(made->plan.layout.recompute));
}

// What a configuration states and no plan has is a problem, never another plan.
TEST(Imports, RefuseAValueThatNoPlanHas) {
  EXPECT_EQ(imported_words("--use-distributed-optimizer"), "megatron_ddp 1 none");
  for (const char* words :
       {"--use-megatron-fsdp --data-parallel-sharding-strategy zero3", "--optimizer dist_muon",
        "--recompute-granularity Full", "--recompute-granularity full",
        "--recompute-granularity full --recompute-method block --recompute-num-layers 5"}) {
    EXPECT_THAT(imported_words(words), HasSubstr(": no plan has ")) << words;
  }
  EXPECT_THAT(imported_words("--tensor-model-parallel-size -1"), HasSubstr("-1"));
  EXPECT_THAT(imported_words("--bf16 --fp16"), HasSubstr("--fp16: "));
  EXPECT_THAT(imported_words("--use-megatron-fsdp --use-torch-fsdp2"),
              HasSubstr("--use-torch-fsdp2"));
}

std::string layout_of(const std::string& text, const std::string& file) {
  AskedImport asked = on("dgx-h100", "llama-3.1-8b");
  asked.layout.texts["micro_batch_size"] = "1";
  const Result<Import> made = read_import(text, file, asked);
  if (!made) return to_string(made.problems());
  const Layout& layout = made->plan.layout;
  return made->plan.engine.name + " " + std::to_string(layout.dp_shard) + " x " +
         std::to_string(layout.dp_replicate) + " " + std::string(name_of(made->plan.job.precision));
}

TEST(Imports, SaysThatGradientsAreReducedIn16Bits) {
  const std::string job =
      "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nnum_machines: 1\n"
      "num_processes: 8\nfsdp_config:\n  fsdp_version: 2\n"
      "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\nmixed_precision: ";
  for (const char* precision : {"bf16\n", "fp16\n", "'no'\n"}) {
    const Result<Import> made =
        read_import(job + precision, "job.yaml", on("dgx-h100", "llama-3.1-8b"));
    ASSERT_TRUE(made.ok()) << to_string(made.problems());
    const auto says =
        std::ranges::count(made->assumptions, "import.assumed.mixed_precision", &Assumption::id);
    EXPECT_EQ(says, std::string(precision) == "'no'\n" ? 0 : 1);
  }
}

TEST(Imports, AcceleratesStrategies) {
  const std::string job =
      "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nmixed_precision: bf16\n"
      "num_machines: 2\nnum_processes: 16\nfsdp_config:\n"
      "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n";
  EXPECT_EQ(
      layout_of(job + "  fsdp_version: 1\n  fsdp_sharding_strategy: HYBRID_SHARD\n", "a.yaml"),
      "fsdp1 8 x 2 bf16");
  EXPECT_EQ(layout_of(job + "  fsdp_version: 1\n  fsdp_sharding_strategy: FULL_SHARD\n", "a.yaml"),
            "fsdp1 16 x 1 bf16");
  EXPECT_EQ(layout_of(job + "  fsdp_version: 2\n", "a.yaml"), "fsdp2 16 x 1 bf16");
  EXPECT_THAT(layout_of(job + "  fsdp_version: 3\n", "a.yaml"), HasSubstr("no plan has 3"));
  EXPECT_THAT(layout_of(job + "  fsdp_version: 2\n  fsdp_offload_params: true\n", "a.yaml"),
              HasSubstr("fsdp_offload_params: no plan has true"));
}

// Transformers fills "auto" in: such a setting says nothing, and is kept.
TEST(Imports, TakeAutoForOpen) {
  AskedImport asked = on("dgx-h100", "gpt2");
  asked.job.gpus = "8";
  const Result<Import> made = read_import(
      R"({"bf16": {"enabled": "auto"}, "train_micro_batch_size_per_gpu": "auto",
          "zero_optimization": {"stage": 2}})",
      "ds.json", asked);
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  EXPECT_EQ(made->plan.job.precision, DType::bf16);
  EXPECT_TRUE(made->plan.kept.settings.empty());
}

// Export writes the plan's value for what it decides, and "auto" where it was for the rest.
TEST(Imports, KeepAutoWhereThePlanDecidesNothing) {
  AskedImport asked = on("dgx-h100", "gpt2");
  asked.layout.texts["micro_batch_size"] = "4";
  asked.job.texts["global_batch_size"] = "64";
  asked.job.gpus = "8";
  const Result<Import> made = read_import(
      R"({"bf16": {"enabled": "auto"}, "train_batch_size": "auto", "gradient_clipping": "auto",
          "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
          "zero_optimization": {"stage": 2, "overlap_comm": true, "reduce_bucket_size": "auto"}})",
      "ds.json", asked);
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  const auto says = std::ranges::find(made->assumptions, "import.auto", &Assumption::id);
  ASSERT_NE(says, made->assumptions.end());
  EXPECT_EQ(says->text,
            "\"auto\" is open, and export writes the plan's value: bf16.enabled, "
            "train_batch_size, train_micro_batch_size_per_gpu, gradient_accumulation_steps");
  const Framework framework = *load_framework("deepspeed", "--to");
  EXPECT_TRUE(check_kept(framework, made->plan).empty());
  const Result<Export> again = export_plan(made->plan, framework);
  ASSERT_TRUE(again.ok()) << to_string(again.problems());
  const auto files = export_folder(*again, framework, "");
  ASSERT_TRUE(files.ok()) << to_string(files.problems());
  EXPECT_THAT(files->front().text, HasSubstr("\"gradient_clipping\": \"auto\""));
  EXPECT_THAT(files->front().text, HasSubstr("\"reduce_bucket_size\": \"auto\""));
  EXPECT_THAT(files->front().text, HasSubstr("\"train_batch_size\": 64"));
}

TEST(Imports, RefuseAKeyInTheWayOfOneThatThePlanDecides) {
  const Result<Import> made =
      read_import(R"({"communication_data_type": {"a": 1}, "train_batch_size": 8,)"
                  R"( "zero_optimization": {"stage": 2}})",
                  "ds.json", on("dgx-h100", "gpt2"));
  EXPECT_THAT(to_string(made.problems()),
              HasSubstr("/communication_data_type/a: cannot stand beside communication_data_type, "
                        "which the plan decides"));
}

TEST(Imports, MegatronsYaml) {
  const Result<Import> made = read_import(
      "language_model:\n  num_layers: 32\n  hidden_size: 4096\n  num_attention_heads: 32\n"
      "model_parallel:\n  tensor_model_parallel_size: 2\n  sequence_parallel: True\n"
      "  bf16: True\nmicro_batch_size: 1\nglobal_batch_size: 64\nseq_length: 4096\n"
      "use_distributed_optimizer: True\nlr: 3.0e-4\n",
      "job.yaml", on("dgx-h100", "llama-3.1-8b"));
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  EXPECT_EQ(made->plan.layout.tp, 2);
  EXPECT_TRUE(made->plan.layout.sequence_parallel);
  EXPECT_EQ(made->plan.layout.zero_stage, 1);
  EXPECT_EQ(made->plan.job.global_batch_size, 64);
}

}  // namespace
}  // namespace shardwise
