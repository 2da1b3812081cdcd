// What the training script trains and by which optimizer, as arguments of transformers' Trainer,
// TRL and PEFT's examples say it beside accelerate's YAML.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "planner/export/configuration/job_files.h"
#include "planner/export/export_folder.h"
#include "planner/export/export_plan.h"
#include "planner/export/framework/framework_reader.h"
#include "planner/export/import_plan.h"
#include "planner/model/parameter_counts.h"
#include "tests/planner/export/assumption_texts.h"

namespace shardwise {
namespace {

using testing::HasSubstr;
using testing::Not;

Result<Import> imported_jobs(const std::vector<JobFile>& files) {
  const Result<Configuration> job = read_job(files);
  if (!job) return job.problems();
  const Result<Framework> framework = framework_of(*job, "", "--from");
  if (!framework) return framework.problems();
  AskedImport asked;
  asked.job.model = "llama-2-7b";
  asked.job.cluster = "dgx-h100";
  return import_plan(*framework, *job, asked);
}

/// FSDP1 on 16 ranks, with these arguments of the script.
Result<Import> with_trainer(const std::string& arguments) {
  return imported_jobs(
      {{"run.sh", "accelerate launch --config_file a.yaml train.py " + arguments + "\n"},
       {"a.yaml",
        "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nmixed_precision: bf16\n"
        "num_machines: 2\nnum_processes: 16\nfsdp_config:\n  fsdp_version: 1\n"
        "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"}});
}

// The Trainer's own default is the fused one.
TEST(AccelerateImports, TakeTheOptimizerOfTheTrainer) {
  const auto adamw = [](const std::string& arguments) {
    const Result<Import> made = with_trainer(arguments);
    EXPECT_TRUE(made.ok()) << to_string(made.problems());
    return made->plan.job.adamw;
  };
  EXPECT_EQ(adamw("--bf16"), AdamwKernel::fused);
  EXPECT_EQ(adamw("--optim adamw_torch"), AdamwKernel::foreach);
  EXPECT_EQ(adamw("--optim adamw_torch_fused"), AdamwKernel::fused);
  const Result<Import> other = with_trainer("--optim adafactor");
  ASSERT_TRUE(other.ok()) << to_string(other.problems());
  EXPECT_THAT(test::assumptions_of(*other),
              HasSubstr("--optim adafactor: the plan has AdamW in fp32"));
  EXPECT_EQ(adamw("--optim adamw_bnb_8bit"), AdamwKernel::bnb_8bit);
  EXPECT_EQ(adamw("--optim adamw_8bit"), AdamwKernel::bnb_8bit);
  EXPECT_EQ(adamw("--optim paged_adamw_32bit"), AdamwKernel::paged);
  EXPECT_EQ(adamw("--optim paged_adamw_8bit"), AdamwKernel::paged_8bit);
  EXPECT_THAT(test::assumptions_of(*with_trainer("--optim adamw_bnb_8bit")),
              Not(HasSubstr("AdamW in fp32")));
  const Result<Import> sgd = with_trainer("--optim sgd");
  ASSERT_TRUE(sgd.ok()) << to_string(sgd.problems());
  EXPECT_EQ(sgd->plan.job.optimizer, Optimizer::sgd);
  const Result<Import> wrong = with_trainer("--optim adamw_touch");
  ASSERT_FALSE(wrong.ok());
}

// transformers/training_args.py refuses both.
TEST(AccelerateImports, RefuseTwoPrecisionsOfTheTrainer) {
  const Result<Import> made = with_trainer("--fp16 --bf16");
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(to_string(made.problems()), HasSubstr("cannot stand beside --"));
}

// As PEFT's examples/sft/run_peft_fsdp.sh and TRL's scripts say it.
TEST(AccelerateImports, TrainTheAdaptersOfThePeftThatTheScriptIsToldOf) {
  const Result<Import> lora = with_trainer(
      "--use_peft_lora True --lora_r 16 --lora_target_modules all-linear --max_length 2048 "
      "--use_4bit_quantization False");
  ASSERT_TRUE(lora.ok()) << to_string(lora.problems());
  EXPECT_TRUE(lora->plan.job.frozen_base);
  EXPECT_EQ(lora->plan.job.sequence_length, 2048);
  // Rank 16 x (rows + columns) of the seven matrices of each of 32 blocks of Llama-2-7B.
  const std::int64_t adapters = 32 * 16 * (4 * (4096 + 4096) + 3 * (4096 + std::int64_t{11008}));
  const Result<Import> whole = with_trainer("--max_length 2048");
  ASSERT_TRUE(whole.ok()) << to_string(whole.problems());
  EXPECT_EQ(count_parameters(lora->plan.model).total,
            count_parameters(whole->plan.model).total + adapters);
  EXPECT_FALSE(whole->plan.job.frozen_base);
  const Result<Import> open = with_trainer("--use_peft --lora_r 16");
  ASSERT_TRUE(open.ok()) << to_string(open.problems());
  EXPECT_THAT(test::assumptions_of(*open), HasSubstr("--use_peft true: the plan trains every"));
  EXPECT_FALSE(with_trainer("--lora_target_modules all-linear")->plan.job.frozen_base);
}

// Under other engines than FSDP1 no plan has bitsandbytes' AdamW.
TEST(AccelerateImports, SayThatBitsandbytesIsNotPlanned) {
  const Result<Import> made =
      imported_jobs({{"run.sh",
                      "accelerate launch --multi_gpu --num_processes 8 --mixed_precision bf16 "
                      "train.py --optim adamw_bnb_8bit\n"}});
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  EXPECT_EQ(made->plan.engine.name, "pytorch_ddp");
  EXPECT_EQ(made->plan.job.adamw, AdamwKernel::fused);
  EXPECT_THAT(test::assumptions_of(*made),
              HasSubstr("--optim adamw_bnb_8bit: the plan has AdamW in fp32"));
}

// run.sh tells the Trainer, and imports again.
TEST(AccelerateImports, ComeBackWithTheOptimizerOfTheTrainer) {
  const Result<Framework> framework = load_framework("accelerate", "--to");
  for (const char* optim : {"adamw_bnb_8bit", "paged_adamw_32bit", "paged_adamw_8bit",
                            "adamw_torch", "sgd", "adamw_torch_fused"}) {
    const Result<Import> made = with_trainer(std::string("--optim ") + optim);
    ASSERT_TRUE(made.ok()) << to_string(made.problems());
    const Result<Export> told = export_plan(made->plan, *framework);
    ASSERT_TRUE(told.ok()) << to_string(told.problems());
    const Result<std::vector<ExportedFile>> files = export_folder(*told, *framework, "{}");
    ASSERT_TRUE(files.ok()) << to_string(files.problems());
    std::vector<JobFile> job;
    for (const ExportedFile& each : *files) {
      if (each.name != "notes.txt") job.push_back({each.name, each.text});
    }
    const Result<Import> again = imported_jobs(job);
    ASSERT_TRUE(again.ok()) << to_string(again.problems());
    EXPECT_EQ(again->plan.job.adamw, made->plan.job.adamw) << optim;
    EXPECT_EQ(again->plan.job.optimizer, made->plan.job.optimizer) << optim;
    const bool tells = job.back().text.find(std::string("--optim ") + optim) != std::string::npos;
    EXPECT_EQ(tells, std::string(optim) != "adamw_torch_fused") << job.back().text;
  }
}

}  // namespace
}  // namespace shardwise
