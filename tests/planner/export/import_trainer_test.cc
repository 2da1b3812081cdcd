// Files of DeepSpeed and accelerate as people write them, alone and beside arguments of
// transformers' Trainer. What DeepSpeed makes of each was asked of its DeepSpeedConfig.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "planner/export/check_configuration.h"
#include "planner/export/configuration/configuration.h"
#include "planner/export/configuration/job_files.h"
#include "planner/export/framework/framework_reader.h"
#include "planner/export/import_plan.h"
#include "planner/export/kept_of.h"
#include "tests/planner/export/assumption_texts.h"

namespace shardwise {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Result<Import> imported_files(const std::vector<JobFile>& files) {
  const Result<Configuration> job = read_job(files);
  if (!job) return job.problems();
  const Result<Framework> framework = framework_of(*job, "", "--from");
  if (!framework) return framework.problems();
  AskedImport asked;
  asked.job.model = "llama-2-7b";
  asked.job.cluster = "dgx-h100";
  if (job->ranks == 0) asked.job.gpus = "16";
  return import_plan(*framework, *job, asked);
}

Result<Import> of_deepspeed(const std::string& keys) {
  return imported_files(
      {{"ds_config.json", "{\"train_micro_batch_size_per_gpu\": 2, " + keys + "}"}});
}

TEST(DeepspeedImports, OverlapByStageWhereNothingSaysIt) {
  for (const auto& [zero, overlaps] : std::vector<std::pair<std::string, bool>>{
           {R"({"stage": 1})", false},
           {R"({"stage": 2})", false},
           {R"({"stage": 2, "overlap_comm": null})", false},
           {R"({"stage": 2, "overlap_comm": true})", true},
           {R"({"stage": 3})", true},
           {R"({"stage": 3, "overlap_comm": false})", false}}) {
    const Result<Import> made = of_deepspeed("\"zero_optimization\": " + zero);
    ASSERT_TRUE(made.ok()) << to_string(made.problems());
    EXPECT_EQ(made->plan.layout.overlap_grad_reduce, overlaps) << zero;
  }
}

// DeepSpeedZeroConfig takes its fields by their names as well as by those that begin with stage3_.
TEST(DeepspeedImports, TakeKeysOfStage3WithoutItsName) {
  const std::vector<JobFile> files = {
      {"ds_config.json",
       R"({"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3,
           "max_live_parameters": 0, "max_reuse_distance": 0, "prefetch_bucket_size": 5,
           "param_persistence_threshold": 5, "model_persistence_threshold": 5,
           "gather_16bit_weights_on_model_save": true, "module_granularity_threshold": 0,
           "use_all_reduce_for_fetch_params": false, "allgather_sequential": false}})"}};
  const Result<Configuration> job = read_job(files);
  ASSERT_TRUE(job.ok()) << to_string(job.problems());
  const auto found = check_configuration(*load_framework("deepspeed", "--from"), *job, 0, {});
  ASSERT_TRUE(found.ok()) << to_string(found.problems());
  EXPECT_THAT(*found, IsEmpty());
  const Result<Import> made = imported_files(files);
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  EXPECT_EQ(made->plan.layout.zero_stage, 3);
}

TEST(DeepspeedImports, RefuseAValueInTheRoomOfASection) {
  for (const char* keys : {R"("bf16": true)", R"("fp16": "auto")", R"("zero_optimization": [3])"}) {
    const Result<Import> made = of_deepspeed(keys);
    ASSERT_FALSE(made.ok()) << keys;
    EXPECT_THAT(to_string(made.problems()),
                HasSubstr(" has keys and no value\n    an object, as {"));
  }
  const Result<Import> inner =
      of_deepspeed(R"("zero_optimization": {"stage": 2, "offload_optimizer": "cpu"})");
  ASSERT_FALSE(inner.ok());
  EXPECT_THAT(to_string(inner.problems()),
              HasSubstr("zero_optimization.offload_optimizer has keys and no value\n"
                        "    an object, as {\"device\": ...}"));
  EXPECT_TRUE(of_deepspeed(R"("zero_optimization": {"stage": 2, "offload_optimizer": null})").ok());
  EXPECT_TRUE(of_deepspeed(R"("bf16": {})").ok());
}

TEST(DeepspeedImports, TakeOldNamesOfKeys) {
  const Result<Import> made = of_deepspeed(
      R"("bfloat16": {"enabled": true}, "zero_optimization": {"stage": 2, "cpu_offload": true})");
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  EXPECT_EQ(made->plan.job.precision, DType::bf16);
  EXPECT_TRUE(made->plan.layout.offload_optimizer);
  EXPECT_THAT(made->plan.kept.settings, IsEmpty());
}

TEST(DeepspeedImports, HaveGradientsInTheTypeInWhichTheyAreAccumulated) {
  for (const char* name : {"fp32", "float32", "torch.float32"}) {
    const Result<Import> made =
        of_deepspeed(R"("bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": ")" +
                     std::string(name) + "\"}");
    ASSERT_TRUE(made.ok()) << to_string(made.problems());
    EXPECT_TRUE(made->plan.layout.fp32_gradients) << name;
    EXPECT_THAT(test::assumptions_of(*made),
                HasSubstr("data_types.grad_accum_dtype fp32: gradients"));
  }
  const Result<Import> travelling =
      of_deepspeed(R"("bf16": {"enabled": true}, "communication_data_type": "fp32")");
  ASSERT_TRUE(travelling.ok()) << to_string(travelling.problems());
  EXPECT_FALSE(travelling->plan.layout.fp32_gradients);
  EXPECT_THAT(test::assumptions_of(*travelling),
              HasSubstr("communication_data_type fp32: in the plan"));
}

TEST(DeepspeedImports, SayWhatThePlanDoesNotPrice) {
  const Result<Import> made = of_deepspeed(
      R"("torch_autocast": {"enabled": true, "dtype": "bfloat16"}, "zero_optimization":
         {"stage": 3, "zero_quantized_weights": true, "cpu_offload_param": true})");
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  const std::string assumed = test::assumptions_of(*made);
  EXPECT_THAT(assumed, HasSubstr("torch_autocast.enabled true is kept, and not priced"));
  EXPECT_THAT(assumed, HasSubstr("zero_quantized_weights true is kept, and not priced"));
  EXPECT_THAT(assumed, HasSubstr("cpu_offload_param true is kept, and not priced"));
}

// DeepSpeed makes the optimizer that its file names, whatever the plan says.
TEST(DeepspeedImports, KeepNoOptimizerThatThePlanDoesNotHave) {
  const Result<Framework> framework = load_framework("deepspeed", "--to");
  Result<Import> made = of_deepspeed(
      R"("optimizer": {"type": "SGD", "params": {"lr": 0.1, "momentum": 0.9}},
         "zero_optimization": {"stage": 1})");
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  EXPECT_EQ(made->plan.job.optimizer, Optimizer::sgd_momentum);
  EXPECT_THAT(check_kept(*framework, made->plan), IsEmpty());
  made->plan.job.optimizer = Optimizer::adamw;
  const Diagnostics wrong = check_kept(*framework, made->plan);
  ASSERT_EQ(wrong.size(), 1U);
  EXPECT_THAT(to_string(wrong), HasSubstr("optimizer.type says optimizer sgd_momentum, and the "
                                          "plan has adamw"));
}

TEST(DeepspeedImports, RefuseDegreesThatNoPlanHas) {
  for (const char* keys :
       {R"("tensor_parallel": {"autotp_size": 2})", R"("sequence_parallel_size": 2)"}) {
    const Result<Import> made = of_deepspeed(keys);
    ASSERT_FALSE(made.ok()) << keys;
    EXPECT_THAT(made.problems().front().message, HasSubstr("no plan has 2"));
  }
}

constexpr const char* kDeepspeedOfAccelerate = R"(compute_environment: LOCAL_MACHINE
deepspeed_config:
  gradient_accumulation_steps: 4
  zero_stage: 3
distributed_type: DEEPSPEED
mixed_precision: bf16
num_processes: 8
)";

/// accelerate fills the batch in from the script's DataLoader.
TEST(AccelerateImports, NeedNoBatchForDeepspeed) {
  const Result<Configuration> job = read_job({{"accelerate.yaml", kDeepspeedOfAccelerate}});
  ASSERT_TRUE(job.ok()) << to_string(job.problems());
  const auto found = check_configuration(*load_framework("deepspeed", "--from"), *job, 0, {});
  ASSERT_TRUE(found.ok()) << to_string(found.problems());
  EXPECT_THAT(*found, IsEmpty());
  const Result<Import> made = imported_files({{"accelerate.yaml", kDeepspeedOfAccelerate}});
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  EXPECT_EQ(made->plan.job.global_batch_size, 32);
}

constexpr const char* kFsdp1 = R"(distributed_type: FSDP
fsdp_config:
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_activation_checkpointing: false
  fsdp_sharding_strategy: 2
mixed_precision: 'no'
num_processes: 16
num_machines: 2
)";

Result<Import> with_fsdp1(const std::string& arguments) {
  return imported_files(
      {{"run.sh", "accelerate launch --config_file accelerate.yaml train.py " + arguments},
       {"accelerate.yaml", kFsdp1}});
}

TEST(AccelerateImports, TakeTheNumberOfAStrategy) {
  const Result<Import> made = with_fsdp1("");
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  EXPECT_EQ(made->plan.layout.zero_stage, 3);
  EXPECT_FALSE(made->plan.layout.reshard_after_forward);
  EXPECT_EQ(made->plan.job.precision, DType::fp32);
  EXPECT_THAT(test::assumptions_of(*made), Not(HasSubstr("one unit")));
}

/// transformers' Trainer hands bf16 on to accelerate, and switches checkpointing of the model on,
/// whatever the file says.
TEST(AccelerateImports, ReadArgumentsOfTransformersTrainer) {
  const Result<Import> made = with_fsdp1(
      "--per_device_train_batch_size 2 --gradient_accumulation_steps 8 --bf16 True "
      "--gradient_checkpointing --fp16 False --max_seq_length 2048 --output_dir out");
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  EXPECT_EQ(made->plan.layout.micro_batch_size, 2);
  EXPECT_EQ(made->plan.job.global_batch_size, 256);
  EXPECT_EQ(made->plan.job.sequence_length, 2048);
  EXPECT_EQ(made->plan.job.precision, DType::bf16);
  EXPECT_EQ(made->plan.layout.recompute, Recompute::full);
  EXPECT_THAT(test::assumptions_of(*made), HasSubstr("says: --output_dir"));
  // accelerator.no_sync() around all but the last.
  EXPECT_FALSE(made->plan.layout.reduce_every_microbatch);
  EXPECT_THAT(test::assumptions_of(*made), HasSubstr("--reduce-every-microbatch for"));
}

// Accelerator hands the mesh to DeepSpeed: accelerate/accelerator.py:2228.
TEST(DeepspeedOfAccelerate, RefusesRanksThatShareASequence) {
  const Result<Import> made = imported_files(
      {{"a.yaml",
        "distributed_type: DEEPSPEED\nnum_processes: 4\ndeepspeed_config:\n  zero_stage: 3\n"
        "parallelism_config:\n  parallelism_config_dp_shard_size: 2\n"
        "  parallelism_config_sp_size: 2\n"}});
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(to_string(made.problems()), HasSubstr("parallelism_config_sp_size: no plan has 2"));
  const Result<Configuration> flags = read_job(
      {}, {"accelerate", "launch", "--use_deepspeed", "--zero_stage", "3", "--num_processes", "4",
           "--use_parallelism_config", "--parallelism_config_sp_size", "2", "train.py",
           "--per_device_train_batch_size", "1"});
  ASSERT_FALSE(flags.ok());
  EXPECT_THAT(to_string(flags.problems()), HasSubstr("parallelism_config_sp_size: no plan has 2"));
}

// transformers/training_args.py:1702: the flag shards, and nothing is DistributedDataParallel.
TEST(AccelerateImports, SayNothingOfReplicasBesideAFlagThatShards) {
  const auto notes = [](const std::string& flags) {
    const Result<Configuration> job = read_job(
        {{"run.sh",
          "torchrun --nproc_per_node 4 train.py --per_device_train_batch_size 4 " + flags + "\n"}});
    EXPECT_TRUE(job.ok()) << to_string(job.problems());
    return job && !job->notes.empty() ? job->notes.front().message : "";
  };
  EXPECT_THAT(notes("--bf16 True"), HasSubstr("DistributedDataParallel"));
  EXPECT_EQ(notes("--fsdp \"full_shard auto_wrap\""), "");
}

TEST(AccelerateImports, SayThatTheWholeModelIsOneUnit) {
  const Result<Import> made =
      imported_files({{"a.yaml", "distributed_type: FSDP\nmixed_precision: bf16\n"}});
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  EXPECT_THAT(test::assumptions_of(*made), HasSubstr("NO_WRAP: the whole model is one unit"));
}

// The JSON of an argument of the Trainer.
TEST(AccelerateImports, ReduceEachMicrobatchWhereTheTrainerIsToldTo) {
  const auto each = [](const std::string& json) {
    const Result<Import> made =
        with_fsdp1("--gradient_accumulation_steps 8 --accelerator_config '" + json + "'");
    EXPECT_TRUE(made.ok()) << to_string(made.problems());
    return made->plan.layout.reduce_every_microbatch;
  };
  EXPECT_TRUE(each(R"({"gradient_accumulation_kwargs": {"sync_each_batch": true}})"));
  EXPECT_FALSE(each(R"({"gradient_accumulation_kwargs": {"sync_each_batch": false}})"));
  EXPECT_FALSE(each(R"({"split_batches": true})"));
}

// What transformers/integrations/deepspeed.py makes of them: 4096 is the width of the model.
TEST(DeepspeedImports, FillInWhatFollowsFromTheModel) {
  const std::string keys =
      R"("reduce_bucket_size": "auto", "stage3_prefetch_bucket_size": "auto",
         "stage3_param_persistence_threshold": "auto")";
  const Result<Import> third = of_deepspeed("\"zero_optimization\": {\"stage\": 3, " + keys + "}");
  ASSERT_TRUE(third.ok()) << to_string(third.problems());
  EXPECT_THAT(test::assumptions_of(*third),
              HasSubstr("for hidden_size 4096: zero_optimization.reduce_bucket_size 16777216, "
                        "zero_optimization.stage3_prefetch_bucket_size 15099494, "
                        "zero_optimization.stage3_param_persistence_threshold 40960"));
  EXPECT_THAT(test::assumptions_of(*third),
              HasSubstr("reduce_bucket_size 16777216 is kept, and not priced: buckets have 5e8"));
  for (const KeptSetting& each : third->plan.kept.settings) EXPECT_EQ(each.value, "\"auto\"");
  EXPECT_EQ(third->plan.kept.settings.size(), 3U);
  const Result<Import> second = of_deepspeed("\"zero_optimization\": {\"stage\": 2, " + keys + "}");
  ASSERT_TRUE(second.ok()) << to_string(second.problems());
  EXPECT_THAT(test::assumptions_of(*second), Not(HasSubstr("stage3_prefetch_bucket_size 1")));
}

TEST(DeepspeedImports, TakeTheOptimizerOfTheFile) {
  const auto optimizer = [](const std::string& type, const std::string& params) {
    return of_deepspeed("\"optimizer\": {\"type\": \"" + type + "\", \"params\": {" + params +
                        "}}");
  };
  const Result<Import> adamw = optimizer("AdamW", "\"lr\": 0.1");
  ASSERT_TRUE(adamw.ok()) << to_string(adamw.problems());
  EXPECT_THAT(test::assumptions_of(*adamw), Not(HasSubstr("--optimizer")));
  const Result<Import> sgd = optimizer("SGD", "\"lr\": 0.1");
  ASSERT_TRUE(sgd.ok()) << to_string(sgd.problems());
  EXPECT_EQ(sgd->plan.job.optimizer, Optimizer::sgd);
  EXPECT_EQ(sgd->plan.kept.settings.size(), 2U);  // written back as it stands
  const Result<Import> heavy = optimizer("SGD", "\"momentum\": 0.9");
  ASSERT_TRUE(heavy.ok()) << to_string(heavy.problems());
  EXPECT_EQ(heavy->plan.job.optimizer, Optimizer::sgd_momentum);
  const Result<Import> lamb = optimizer("Lamb", "\"lr\": 0.1");
  ASSERT_TRUE(lamb.ok()) << to_string(lamb.problems());
  EXPECT_THAT(test::assumptions_of(*lamb), HasSubstr("optimizer.type Lamb: the plan has AdamW"));
}

// accelerate's own key, and not DeepSpeed's.
TEST(AccelerateImports, SayProblemsOfDeepspeedAtTheirOwnKeys) {
  std::string text = kDeepspeedOfAccelerate;
  text.replace(text.find("zero_stage: 3"), 13, "zero_stage: 7");
  const Result<Configuration> job = read_job({{"accelerate.yaml", text}});
  ASSERT_TRUE(job.ok()) << to_string(job.problems());
  const auto found = check_configuration(*load_framework("deepspeed", "--from"), *job, 0, {});
  ASSERT_TRUE(found.ok()) << to_string(found.problems());
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ(found->front().what.path, "/deepspeed_config/zero_stage");
  EXPECT_EQ(found->front().what.line, 4);
  // What is kept is a key of DeepSpeed's file all the same.
  text.replace(text.find("zero_stage: 7"), 13, "zero_stage: 3\n  gradient_clipping: 1.0");
  const Result<Import> made = imported_files({{"accelerate.yaml", text}});
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  ASSERT_EQ(made->plan.kept.settings.size(), 1U);
  EXPECT_EQ(made->plan.kept.settings.front().name, "gradient_clipping");
}

TEST(Frameworks, AreAskedForByWhatACommandIsOf) {
  for (const auto& [command, wanted] : std::vector<std::pair<std::string, std::string>>{
           {"torchrun --nproc_per_node 8 train.py --fsdp \"full_shard auto_wrap\" --bf16 True",
            "transformers' Trainer"},
           {"torchrun -m torchtitan.train --job.config_file llama3_8b.toml",
            "torchtitan before 0.3"}}) {
    const Result<Configuration> job = read_job({{"run.sh", command}});
    ASSERT_TRUE(job.ok()) << to_string(job.problems());
    const Result<Framework> framework = framework_of(*job, "", "--from");
    ASSERT_FALSE(framework.ok()) << command;
    EXPECT_THAT(framework.problems().front().message, HasSubstr(wanted));
  }
}

// bf16 and optimizer of these files are no sections of DeepSpeed.
TEST(Frameworks, DoNotReadFilesOfProgramsThatStartThem) {
  for (const auto& [text, wanted] : std::vector<std::pair<std::string, std::string>>{
           {"base_model: m\nsequence_len: 4096\nmicro_batch_size: 2\nbf16: auto\n"
            "deepspeed: deepspeed_configs/zero1.json\n",
            "is a file of axolotl"},
           {"model_name_or_path: m\nstage: sft\nfinetuning_type: full\nbf16: true\n"
            "deepspeed: ds_z3_config.json\nper_device_train_batch_size: 1\n",
            "is a file of arguments of a training script"}}) {
    const Result<Configuration> job = read_job({{"train.yaml", text}});
    ASSERT_FALSE(job.ok()) << text;
    EXPECT_THAT(job.problems().front().message, HasSubstr(wanted));
  }
}

TEST(DeepspeedImports, SayWhatIsNotPricedOfZenflow) {
  const Result<Import> made = of_deepspeed(
      R"("zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"},
          "zenflow": {"topk_ratio": 0.05, "update_interval": 4}}, "autotuning": {"enabled": true})");
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  EXPECT_THAT(test::assumptions_of(*made), HasSubstr("topk_ratio 0.05 is kept, and not priced"));
  EXPECT_THAT(test::assumptions_of(*made), HasSubstr("autotuning.enabled true is kept, and not"));
}

}  // namespace
}  // namespace shardwise
