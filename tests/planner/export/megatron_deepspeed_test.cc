// Jobs of Megatron-DeepSpeed, which have Megatron's arguments beside DeepSpeed's JSON. Sizes and
// degrees are those of bigscience-workshop/bigscience, train/tr11-176B-ml/tr11-176B-ml.slurm, and
// of deepspeedai/Megatron-DeepSpeed, examples_deepspeed/rebase/ds_pretrain_gpt_1.3B.sh.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "planner/export/configuration/configuration.h"
#include "planner/export/configuration/job_files.h"
#include "planner/export/configuration/megatron_deepspeed.h"
#include "planner/export/export_plan.h"
#include "planner/export/framework/framework_reader.h"
#include "planner/export/import_plan.h"
#include "tests/planner/export/assumption_texts.h"

namespace shardwise {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kLargestBloom = R"(#!/bin/bash
#SBATCH --nodes=24
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:8
CONFIG="./ds.$SLURM_JOB_ID.json"
cat <<EOT > $CONFIG
{
  "train_micro_batch_size_per_gpu": 2,
  "train_batch_size": 2048,
  "gradient_clipping": 1.0,
  "zero_optimization": {"stage": 0},
  "bf16": {"enabled": true}
}
EOT
export LAUNCHER="python -u -m torch.distributed.run --nproc_per_node 8 --nnodes $SLURM_NNODES"
export CMD=" \
    `pwd`/pretrain_gpt.py \
    --tensor-model-parallel-size 4 --pipeline-model-parallel-size 12 \
    --num-layers 70 --hidden-size 14336 --num-attention-heads 112 \
    --seq-length 2048 --max-position-embeddings 2048 \
    --micro-batch-size 2 --global-batch-size 2048 --bf16 --embed-layernorm \
    --position-embedding-type alibi --checkpoint-activations \
    --deepspeed --deepspeed_config ${CONFIG} --zero-stage 0 \
    --deepspeed-activation-checkpointing"
srun bash -c "$LAUNCHER --node_rank \$SLURM_PROCID $CMD" 2>&1 | tee log.txt
)";

Result<Configuration> slurm_job(const std::string& script) {
  return read_job({{"job.slurm", script, {}}}, {});
}

Result<Import> deepspeed_import(const std::string& script, const std::string& gpus = "") {
  const Result<Configuration> job = slurm_job(script);
  if (!job) return job.problems();
  const Result<Framework> framework = framework_of(*job, "", "--from");
  if (!framework) return framework.problems();
  AskedImport asked;
  asked.job = {"", "dgx-h100", gpus, "", {}};
  return import_plan(*framework, *job, asked);
}

TEST(MegatronDeepspeed, HasMegatronsLayoutAndDeepspeedsStage) {
  const Result<Import> made = deepspeed_import(kLargestBloom);
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  const Plan& plan = made->plan;
  EXPECT_EQ(plan.engine.name, "megatron_deepspeed");
  EXPECT_EQ(plan.model.name, "bloom");
  EXPECT_EQ(plan.layout.tp, 4);
  EXPECT_EQ(plan.layout.pp, 12);
  EXPECT_EQ(plan.layout.dp_shard, 4);
  EXPECT_EQ(plan.layout.micro_batch_size, 2);
  EXPECT_EQ(plan.job.global_batch_size, 2048);
  EXPECT_EQ(plan.layout.zero_stage, 1);  // its optimizer of bf16 shards states in stage 0
  EXPECT_EQ(plan.layout.recompute, Recompute::full);
}

TEST(MegatronDeepspeed, WritesNothingOfDeepspeedForMegatron) {
  const Result<Import> made = deepspeed_import(kLargestBloom);
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  std::string kept;
  for (const KeptSetting& each : made->plan.kept.settings) kept += each.name + " ";
  EXPECT_THAT(kept, HasSubstr("--embed-layernorm"));
  for (const char* own : {"deepspeed", "--zero-stage", "--train-batch-size", "--stage",
                          "--checkpoint-activations", "--gradient-clipping"}) {
    EXPECT_THAT(kept, Not(HasSubstr(own)));
  }
}

// Its JSON is made of a template by sed, which nobody runs: the flag says the stage.
TEST(MegatronDeepspeed, TakesItsStageOfTheFlagWhereThereIsNoJson) {
  const std::string script =
      "deepspeed pretrain_gpt.py --tensor-model-parallel-size 2 --num-layers 24 --hidden-size 2048 "
      "--num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 --vocab-size "
      "50257 "
      "--micro-batch-size 2 --global-batch-size 512 --fp16 --checkpoint-activations "
      "--deepspeed --deepspeed_config ds_config_gpt.json --no-pipeline-parallel ";
  const Result<Import> flagged = deepspeed_import(script + "--zero-stage 1\n", "64");
  ASSERT_TRUE(flagged.ok()) << to_string(flagged.problems());
  EXPECT_EQ(flagged->plan.layout.zero_stage, 1);
  EXPECT_EQ(flagged->plan.layout.dp_shard, 32);
  EXPECT_EQ(flagged->plan.layout.recompute, Recompute::full);
  const Framework megatron = *load_framework("megatron-lm", "--to");
  const Result<Export> again = export_plan(flagged->plan, megatron);
  ASSERT_TRUE(again.ok()) << to_string(again.problems());
  EXPECT_EQ(again->substitutions.front().field, "engine");
  EXPECT_EQ(again->substitutions.front().to, "megatron_ddp");

  const Result<Configuration> open = slurm_job(script + "\n");
  ASSERT_FALSE(open.ok());
  EXPECT_THAT(to_string(open.problems().front()),
              HasSubstr("--deepspeed: nothing says the ZeRO stage of DeepSpeed"));
  const Result<Configuration> ulysses =
      slurm_job(script + "--zero-stage 1 --ds-sequence-parallel-size 4\n");
  ASSERT_FALSE(ulysses.ok());
  EXPECT_THAT(to_string(ulysses.problems().front()),
              HasSubstr("--ds-sequence-parallel-size: no plan of Megatron-DeepSpeed has 4"));
  const Result<Import> third = deepspeed_import(script + "--zero-stage 3\n", "64");
  ASSERT_FALSE(third.ok());
  EXPECT_THAT(to_string(third.problems().front()), HasSubstr("has no ZeRO stage 3"));
}

// bloom-1b7 has these sizes too, and ALiBi beside five times the words.
TEST(MegatronImports, TakeNoModelWhosePositionsNothingSays) {
  const Result<Import> open = deepspeed_import(
      "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 24 --hidden-size 2048 "
      "--num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 --bf16 "
      "--micro-batch-size 1 --global-batch-size 8\n");
  ASSERT_TRUE(open.ok()) << to_string(open.problems());
  EXPECT_EQ(open->plan.model.name, "pythia-1.4b");
  EXPECT_THAT(test::assumptions_of(*open), HasSubstr("--position-embedding-type rope"));
}

// mistral-nemo-12b has these sizes too, with grouped queries and a gated feed-forward.
TEST(MegatronImports, TakeNoModelWithOtherMatrices) {
  const Result<Import> open = deepspeed_import(
      "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 40 --hidden-size 5120 "
      "--num-attention-heads 32 --seq-length 2048 --max-position-embeddings 2048 --bf16 "
      "--micro-batch-size 1 --global-batch-size 8\n");
  ASSERT_FALSE(open.ok()) << open->plan.model.name;
  EXPECT_THAT(to_string(open.problems().front()),
              HasSubstr("no model of the catalogue has these sizes"));
}

// A Trainer's --deepspeed names the file, and Megatron-LM's own job has no such switch.
TEST(MegatronDeepspeed, IsNoOtherJob) {
  const Result<Configuration> trainer =
      slurm_job("deepspeed train.py --deepspeed ds.json --per_device_train_batch_size 1\n");
  ASSERT_TRUE(trainer.ok()) << to_string(trainer.problems());
  EXPECT_FALSE(is_megatron_deepspeed(*trainer));
  const Result<Configuration> megatron =
      slurm_job("torchrun pretrain_gpt.py --num-layers 24 --micro-batch-size 1 --bf16\n");
  ASSERT_TRUE(megatron.ok()) << to_string(megatron.problems());
  EXPECT_FALSE(is_megatron_deepspeed(*megatron));
}

// Megatron-LM stops at these since 2022: kept, they would be degrees and memory that nobody read.
TEST(MegatronImports, RefuseArgumentsOfOlderVersions) {
  const std::string script =
      "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 24 --hidden-size 2048 "
      "--num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 "
      "--vocab-size 50257 --micro-batch-size 2 --global-batch-size 512 --fp16 ";
  ASSERT_TRUE(deepspeed_import(script + "\n").ok());
  const Result<Import> old =
      deepspeed_import(script + "--model-parallel-size 2 --checkpoint-activations\n");
  ASSERT_FALSE(old.ok());
  ASSERT_EQ(old.problems().size(), 2U);
  EXPECT_THAT(to_string(old.problems().front()),
              HasSubstr("--model-parallel-size: an argument of older versions, Megatron-LM 0.20.0 "
                        "refuses it\n    --tensor-model-parallel-size"));
}

}  // namespace
}  // namespace shardwise
