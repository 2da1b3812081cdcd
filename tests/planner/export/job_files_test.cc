#include "planner/export/configuration/job_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/export/check_configuration.h"
#include "planner/export/framework/framework_reader.h"
#include "planner/export/import_plan.h"

namespace shardwise {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kDeepspeed =
    R"({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4,
        "bf16": {"enabled": true}, "zero_optimization": {"stage": 3}})";

/// "deepspeed: 16 ranks, batch 128", notes and assumptions; or what is wrong.
std::string imported_job(const std::vector<JobFile>& files) {
  const Result<Configuration> configuration = read_job(files);
  if (!configuration) return to_string(configuration.problems());
  const Result<Framework> framework = framework_of(*configuration, "", "--from");
  if (!framework) return to_string(framework.problems());
  AskedImport asked;
  asked.job.model = "gpt2";
  asked.job.cluster = "dgx-h100";
  const Result<Import> made = import_plan(*framework, *configuration, asked);
  if (!made) return to_string(made.problems());
  std::string text = framework->name + ": " + std::to_string(made->plan.layout.world()) +
                     " ranks, batch " + std::to_string(made->plan.job.global_batch_size) + "\n";
  text += "engine " + made->plan.engine.name + "\n";
  for (const Diagnostic& each : configuration->notes) text += to_string(each) + "\n";
  for (const Assumption& each : made->assumptions) text += each.text + "\n";
  for (const KeptSetting& each : made->plan.kept.settings) text += "kept " + each.name + "\n";
  return text;
}

TEST(JobFiles, AreOneJobInWhateverOrder) {
  const JobFile script = {"run.sh",
                          "deepspeed --num_gpus 8 --num_nodes 2 train.py --deepspeed ds.json "
                          "--learning_rate 1e-4 --bf16\n"};
  const JobFile json = {"ds.json", kDeepspeed};
  for (const auto& files : {std::vector{script, json}, std::vector{json, script}}) {
    const std::string made = imported_job(files);
    EXPECT_THAT(made, HasSubstr("deepspeed: 16 ranks, batch 128\n"));
    EXPECT_THAT(made, HasSubstr("arguments of the training script change nothing that the file of "
                                "DeepSpeed says: --deepspeed, --learning_rate, --bf16\n"));
    EXPECT_THAT(made, Not(HasSubstr("kept")));
  }
}

TEST(JobFiles, ReadTheHostfileOfDeepspeed) {
  const JobFile script = {"run.sh", "deepspeed --hostfile conf/hosts --include a@b:0,1 train.py\n"};
  const JobFile json = {"ds.json", kDeepspeed};
  const JobFile hosts = {"hosts", "a slots=6\nb slots=8\n"};
  EXPECT_THAT(imported_job({hosts, script, json}), HasSubstr("deepspeed: 8 ranks"));
  EXPECT_THAT(imported_job({script, json}), HasSubstr("how many ranks there are"));
  EXPECT_EQ(imported_job({hosts}),
            "hosts:1: is a hostfile, no configuration\n"
            "    give the command that reads it too\n1 problem, nothing was run\n");
  EXPECT_THAT(imported_job({hosts, {"more", "c slots=1"}, script, json}),
              HasSubstr("more:1: is a hostfile, and so is hosts"));
}

TEST(JobFiles, ReadWhatTheScriptWritesForItsLauncher) {
  const std::string script =
      "BATCH=2\nDIR=out\n"
      "cat > $DIR/ds.json <<EOF\n"
      "{\"train_micro_batch_size_per_gpu\": $BATCH,\n"
      " \"gradient_accumulation_steps\": 4, \"bf16\": {\"enabled\": true},\n"
      " \"zero_optimization\": {\"stage\": 3, \"stagee\": 1}}\n"
      "EOF\n"
      "echo 'a slots=8' > hosts\n"
      "echo 'b slots=8' >> hosts\n"
      "deepspeed --hostfile hosts train.py --deepspeed_config $DIR/ds.json\n";
  EXPECT_THAT(imported_job({{"run.sh", script}}), HasSubstr("deepspeed: 16 ranks, batch 128\n"));
  const Result<Configuration> configuration = read_job({{"run.sh", script}});
  ASSERT_TRUE(configuration.ok());
  const auto wrong =
      std::ranges::find(configuration->settings, "zero_optimization.stagee", &GivenSetting::name);
  ASSERT_NE(wrong, configuration->settings.end());
  EXPECT_EQ(wrong->file, "run.sh");
  EXPECT_EQ(wrong->line, 6);
  // A file that is given is read instead.
  EXPECT_THAT(
      imported_job({{"run.sh", script},
                    {"ds.json", R"({"train_batch_size": 32, "zero_optimization": {"stage": 1},
                                        "bf16": {"enabled": true}})"}}),
      HasSubstr("deepspeed: 16 ranks, batch 32\n"));
}

TEST(JobFiles, SayThatAWrittenFileIsNotRead) {
  const std::string script =
      "cat > ds.json <<EOF\n{\n \"train_batch_size\": BATCH}\nEOF\n"
      "deepspeed --num_gpus 8 train.py --deepspeed ds.json\n";
  EXPECT_THAT(imported_job({{"run.sh", script}, {"other.json", kDeepspeed}}),
              HasSubstr("run.sh:3: ds.json, which the script writes, is not read: "));
}

TEST(JobFiles, TakeFlagsOfAcceleratesLauncherBeforeItsYaml) {
  const std::string yaml =
      "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nmixed_precision: bf16\n"
      "num_machines: 2\nnum_processes: 16\nfsdp_config:\n  fsdp_version: 2\n"
      "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n";
  const std::string script =
      "accelerate launch --config_file c/a.yaml --num_processes 32 --num_machines 4 "
      "--fsdp_reshard_after_forward false train.py --lr 1e-4\n";
  const std::string made = imported_job({{"run.sh", script}, {"a.yaml", yaml}});
  EXPECT_THAT(made, HasSubstr("accelerate: 32 ranks"));
  EXPECT_THAT(made, Not(HasSubstr("is not read")));
  EXPECT_EQ(imported_job({{"a.yaml", yaml}, {"run.sh", script}}), made);
  EXPECT_THAT(imported_job({{"run.sh", script}}),
              HasSubstr("no setting by which a framework is known"));
  const std::string alone =
      "accelerate launch --use_fsdp --fsdp_version 2 --mixed_precision bf16 --num_processes 8 "
      "--fsdp_reshard_after_forward false train.py\n";
  EXPECT_THAT(imported_job({{"run.sh", alone}}), HasSubstr("accelerate: 8 ranks"));
  EXPECT_THAT(imported_job({{"run.sh",
                             "accelerate launch --use_fsdp --fsdp_version 3 "
                             "--num_processes 8 train.py\n"}}),
              HasSubstr("run.sh:1:30: /fsdp_config/fsdp_version: no plan has 3"));
}

// accelerate's commands/launch.py, 1204 to 1243 and 1328 to 1346: a flag counts before the file,
// and several processes without one are of several GPUs.
TEST(JobFiles, TakeSeveralProcessesForDistributedDataParallel) {
  const auto made = [](const std::string& words, const std::string& arguments = "") {
    return imported_job(
        {{"run.sh", "accelerate launch " + words + " train.py " + arguments + "\n"}});
  };
  const std::string alone = made("--multi_gpu --num_processes 8 --mixed_precision bf16");
  EXPECT_THAT(alone, HasSubstr("accelerate: 8 ranks"));
  EXPECT_THAT(alone, Not(HasSubstr("is not read")));
  const std::string several = made("--num_processes 16 --num_machines 2", "--bf16");
  EXPECT_THAT(several, HasSubstr("accelerate: 16 ranks"));
  EXPECT_THAT(several, HasSubstr("several processes without a file are those of --multi_gpu"));
  // transformers' Trainer under torchrun, as PEFT's examples/sft/run_peft_multigpu.sh.
  const std::string trainer = imported_job(
      {{"run.sh",
        "torchrun --nproc_per_node 8 train.py --bf16 True --per_device_train_batch_size 8\n"}});
  EXPECT_THAT(trainer, HasSubstr("accelerate: 8 ranks, batch 64"));
  EXPECT_THAT(trainer, HasSubstr("without --fsdp is DistributedDataParallel"));
  EXPECT_THAT(made("--num_processes 1"), HasSubstr("no setting by which a framework is known"));
  EXPECT_THAT(made("--num_processes 8", "--deepspeed ds.json"), HasSubstr("ds.json is not given"));
  // transformers/training_args.py, 2826 and 2917: the Trainer's --fsdp is version 2, whoever starts
  // it.
  EXPECT_THAT(made("--num_processes 8", "--fsdp 'shard_grad_op auto_wrap'"),
              HasSubstr("engine fsdp2"));
  EXPECT_THAT(made("--num_processes 8", "--fsdp 'hybrid_shard auto_wrap'"),
              HasSubstr("no plan has hybrid_shard"));
  EXPECT_THAT(made("--num_processes 8 --config_file a.yaml"),
              HasSubstr("no setting by which a framework is known"));
  const std::string script =
      "accelerate launch --multi_gpu --num_processes 8 train.py --deepspeed ds.json\n";
  EXPECT_THAT(imported_job({{"run.sh", script}, {"ds.json", kDeepspeed}}),
              HasSubstr("deepspeed: 8 ranks"));
}

// What a flag says is a text, which Python takes for true, and of the mesh accelerate reads no flag
// unless another one or a section asks for it.
TEST(JobFiles, ReadFlagsOfAcceleratesLauncherAsItDoes) {
  const std::string flags =
      "accelerate launch --use_fsdp --fsdp_version 2 --num_processes 8 "
      "--parallelism_config_tp_size 2 ";
  const auto findings = [](const std::string& script, const std::string& yaml = "") {
    std::vector<JobFile> files = {{"run.sh", script}};
    if (!yaml.empty()) files.push_back({"a.yaml", yaml});
    const Result<Configuration> job = read_job(files);
    std::string text = to_string(job ? job->notes : job.problems());
    const Result<Framework> framework = load_framework("accelerate", "--from");
    if (!job || !framework) return text;
    const auto found = check_configuration(*framework, *job, 0, {});
    if (!found) return text + to_string(found.problems());
    for (const Finding& each : *found) text += each.rule + "\n";
    return text;
  };
  const std::string unread = findings(flags + "--fsdp_sync_module_states false train.py");
  EXPECT_THAT(unread, Not(HasSubstr("loading_without_sync")));
  EXPECT_THAT(unread, Not(HasSubstr("mesh_is_not_the_ranks")));
  EXPECT_THAT(unread, HasSubstr("does not read this flag without --use_parallelism_config"));
  const std::string read = findings(flags + "--use_parallelism_config train.py");
  EXPECT_THAT(read, HasSubstr("mesh_is_not_the_ranks"));
  EXPECT_THAT(read, Not(HasSubstr("does not read")));
  const std::string yaml =
      "distributed_type: FSDP\nnum_processes: null\nfsdp_config:\n  version: 2\n"
      "  sync_module_states: false\n";
  EXPECT_THAT(findings("accelerate launch --config_file a.yaml --num_processes 8 t.py", yaml),
              AllOf(HasSubstr("loading_without_sync"), Not(HasSubstr("null"))));
}

// Each node has a rank of its own; a count that nobody knows is not that of the YAML.
TEST(JobFiles, TakeVariablesInFlagsOfAcceleratesLauncher) {
  const std::string yaml =
      "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nmixed_precision: bf16\n"
      "num_machines: 2\nnum_processes: 16\nmachine_rank: 0\nfsdp_config:\n"
      "  fsdp_version: 2\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n";
  const auto job = [&](const std::string& flags) {
    return imported_job({{"a.yaml", yaml},
                         {"run.sh", "#SBATCH --nodes=4\naccelerate launch --config_file a.yaml " +
                                        flags + " train.py\n"}});
  };
  const std::string ranked = job("--machine_rank ${SLURM_NODEID:-0} --main_process_ip $IP");
  EXPECT_THAT(ranked, HasSubstr("accelerate: 16 ranks"));
  EXPECT_THAT(ranked, Not(HasSubstr("machine")));
  EXPECT_THAT(job("--num_processes $((SLURM_NNODES * 8)) --num_machines $SLURM_NNODES"),
              HasSubstr("accelerate: 32 ranks"));
  const std::string open = job("--num_processes $ALL --num_machines $N");
  EXPECT_THAT(open, HasSubstr("run.sh:2:40: --num-processes: $ALL is not known"));
  EXPECT_THAT(open, HasSubstr("--num-machines: $N is not known"));
  EXPECT_THAT(open, HasSubstr("nor a flag says: --gpus 8;"));
}

constexpr const char* kLaunchesDeepspeed =
    "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\ndeepspeed_config:\n"
    "  deepspeed_config_file: ds.json\n  zero3_init_flag: true\nnum_machines: 2\n"
    "num_processes: 16\nmixed_precision: bf16\n";

// Its YAML is then a launcher's, and says what the JSON leaves open.
TEST(JobFiles, TakeAccelerateForALauncherOfDeepspeed) {
  const JobFile yaml = {"a.yaml", kLaunchesDeepspeed};
  const JobFile json = {"ds.json",
                        R"({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4,
                            "bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 3}})"};
  for (const auto& files : {std::vector{yaml, json}, std::vector{json, yaml}}) {
    const std::string made = imported_job(files);
    EXPECT_THAT(made, HasSubstr("deepspeed: 16 ranks, batch 128\n"));
    EXPECT_THAT(made, Not(HasSubstr("kept")));
    EXPECT_THAT(made, Not(HasSubstr("--precision")));  // mixed_precision says it
    EXPECT_THAT(made, Not(HasSubstr("--gpus")));
  }
  EXPECT_THAT(imported_job({yaml,
                            json,
                            {"run.sh",
                             "accelerate launch --config_file a.yaml "
                             "--num_processes 32 train.py\n"}}),
              HasSubstr("deepspeed: 32 ranks, batch 256\n"));
  EXPECT_THAT(imported_job({yaml}),
              HasSubstr("a.yaml:4:26: /deepspeed_config/deepspeed_config_file: "
                        "ds.json is not given\n    give DeepSpeed's JSON too\n"));
  EXPECT_THAT(imported_job({json, {"b.yaml", "distributed_type: FSDP\nnum_processes: 8\n"}}),
              HasSubstr("b.yaml:1:19: /distributed_type: FSDP, but ds.json has "));
}

TEST(JobFiles, TakeTheDeepspeedOfAcceleratesYaml) {
  const std::string made = imported_job(
      {{"a.yaml",
        "distributed_type: DEEPSPEED\ndeepspeed_config:\n  gradient_accumulation_steps: 4\n"
        "  zero_stage: 3\n  offload_optimizer_device: none\nnum_processes: 8\n"
        "mixed_precision: fp16\n"}});
  EXPECT_THAT(made, HasSubstr("deepspeed: 8 ranks, batch 32\n"));
  EXPECT_THAT(made, Not(HasSubstr("--precision")));
  EXPECT_THAT(imported_job({{"run.sh",
                             "accelerate launch --use_deepspeed --zero_stage 2 --num_processes 8 "
                             "--mixed_precision bf16 train.py\n"}}),
              HasSubstr("deepspeed: 8 ranks"));
}

// transformers fills "auto" from the arguments of its Trainer, and refuses others than the file's.
TEST(JobFiles, ReadTheArgumentsOfTransformersTrainer) {
  const JobFile json = {"ds.json",
                        R"({"bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"},
                            "zero_optimization": {"stage": 2, "overlap_comm": true},
                            "train_batch_size": "auto", "gradient_accumulation_steps": "auto",
                            "train_micro_batch_size_per_gpu": "auto"})"};
  const auto job = [](const JobFile& file, const std::string& arguments) {
    return imported_job({file,
                         {"run.sh", "torchrun --nproc_per_node 8 run_clm.py --deepspeed ds.json " +
                                        arguments + "\n"}});
  };
  const std::string made = job(json,
                               "--per-device-train-batch-size 4 --gradient_accumulation_steps 4 "
                               "--bf16 True --gradient_checkpointing --block_size 512 --lr 1");
  EXPECT_THAT(made, HasSubstr("deepspeed: 8 ranks, batch 128\n"));
  for (const char* stated : {"--sequence-length", "--micro-batch", "--precision", "--recompute"}) {
    EXPECT_THAT(made, Not(HasSubstr(stated)));
  }
  EXPECT_THAT(made, HasSubstr("says: --deepspeed, --lr\n"));
  EXPECT_THAT(job(json, "--per_device_train_batch_size $B"), HasSubstr("--micro-batch-size 1;"));
  const JobFile stated = {"ds.json",
                          R"({"train_micro_batch_size_per_gpu": 2,
                              "bf16": {"enabled": true}, "zero_optimization": {"stage": 1}})"};
  EXPECT_THAT(job(stated, "--per_device_train_batch_size 4"),
              HasSubstr("run.sh:1:60: --per_device_train_batch_size: 4, but "
                        "/train_micro_batch_size_per_gpu has 2\n"));
}

/// What check finds of DeepSpeed's JSON beside arguments of the Trainer, a line each.
std::string found_beside(const std::string& json, const std::string& arguments) {
  const Result<Configuration> job = read_job(
      {{"ds.json", json},
       {"run.sh", "torchrun --nproc_per_node 8 x.py --deepspeed ds.json " + arguments + "\n"}});
  if (!job) return to_string(job.problems());
  const Result<Framework> deepspeed = load_framework("deepspeed", "--from");
  const auto found = check_configuration(*deepspeed, *job, 8, std::nullopt);
  if (!found) return to_string(found.problems());
  std::string lines;
  for (const Finding& each : *found) lines += each.rule + " " + to_string(each.what) + "\n";
  return lines;
}

TEST(JobFiles, NameInACheckWhatTheTrainersArgumentsAndTheJsonSayDifferently) {
  const std::string json = R"({"train_micro_batch_size_per_gpu": 4,
      "gradient_accumulation_steps": 2, "bf16": {"enabled": true}})";
  const std::string found =
      found_beside(json, "--per_device_train_batch_size 2 --gradient_accumulation_steps 4 --bf16");
  EXPECT_THAT(found, HasSubstr("two_values run.sh:1:54: --per_device_train_batch_size: 2, but "
                               "/train_micro_batch_size_per_gpu has 4\n"));
  EXPECT_THAT(found, HasSubstr("two_values run.sh:1:86: --gradient_accumulation_steps: 4, but "
                               "/gradient_accumulation_steps has 2\n"));
  EXPECT_THAT(found, HasSubstr("state it once, or the same in both"));
  EXPECT_EQ(
      found_beside(json, "--per_device_train_batch_size 4 --gradient_accumulation_steps 2 --bf16"),
      "");
}

TEST(JobFiles, AskForTheJsonThatAnArgumentNames) {
  EXPECT_EQ(imported_job({{"run.sh", "torchrun --nproc_per_node 8 x.py --deepspeed c/ds.json\n"}}),
            "run.sh:1:34: --deepspeed: c/ds.json is not given\n    give DeepSpeed's JSON too\n"
            "1 problem, nothing was run\n");
}

TEST(JobFiles, NameWhatNobodyKnows) {
  const std::string script =
      "torchrun --nproc-per-node 8 pretrain_gpt.py --seq-length 1024 --micro-batch-size 1 \\\n"
      "  --bf16 $MORE \\\n"
      "  --data-path $DATA/x ${REST[@]} --save $DATA '$5' \"$@\"\n";
  EXPECT_THAT(imported_job({{"run.sh", script}}),
              HasSubstr("run.sh:2:10: not known: $MORE, $DATA (line 3), ${REST[@]} (line 3), $@ "
                        "(line 3); kept as text where it is a word of a flag, flags in it are "
                        "not read\n"));
}

TEST(JobFiles, KeepWhatNobodyKnowsInAList) {
  const std::string script =
      "torchrun --nproc-per-node 8 pretrain_gpt.py --data-path 1 $A/x 2 $(ls y) $B end \\\n"
      "  --seq-length 1024 $MORE --bf16 \"$@\"\n";
  const Result<Configuration> made = read_job({{"run.sh", script}});
  ASSERT_TRUE(made) << to_string(made.problems());
  const auto words_of = [&](const std::string& name) {
    const auto found = std::ranges::find(made->settings, name, &GivenSetting::name);
    return found == made->settings.end() ? std::vector<std::string>() : found->words;
  };
  EXPECT_THAT(words_of("--data-path"), ElementsAre("1", "$A/x", "2", "$(ls y)", "$B", "end"));
  EXPECT_THAT(words_of("--seq-length"), ElementsAre("1024"));
  EXPECT_THAT(words_of("--bf16"), IsEmpty());
}

TEST(JobFiles, ContradictOtherRanks) {
  const auto checked = [](const JobFile& file, std::int64_t ranks) {
    const Result<Configuration> configuration = read_job({file});
    const Result<Framework> framework = framework_of(*configuration, "", "--from");
    const auto found = check_configuration(*framework, *configuration, ranks, std::nullopt);
    return found.ok() ? "found " + std::to_string(found->size()) : to_string(found.problems());
  };
  const JobFile script = {"run.sh",
                          "echo '{\"train_micro_batch_size_per_gpu\": 2}' > ds.json\n"
                          "deepspeed --num_nodes 2 --num_gpus 8 x.py --deepspeed_config ds.json\n"};
  EXPECT_EQ(checked(script, 0), "found 0");
  EXPECT_EQ(checked(script, 16), "found 0");
  EXPECT_THAT(checked(script, 5), HasSubstr("--gpus: 5, but run.sh has 16\n"));
  const JobFile yaml = {"a.yaml",
                        "distributed_type: FSDP\nnum_processes: 16\nfsdp_config:\n"
                        "  fsdp_version: 2\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"};
  EXPECT_EQ(checked(yaml, 16), "found 0");
  EXPECT_THAT(checked(yaml, 8), HasSubstr("--gpus: 8, but a.yaml has 16\n"));
}

// What the plan has and nothing says, each with the flag that would.
TEST(JobFiles, SayWhatIsTakenForWantOfAFlag) {
  const std::string made = imported_job({{"ds.json", R"({"train_batch_size": 8,
      "zero_optimization": {"stage": 2}, "bf16": {"enabled": true}})"}});
  EXPECT_THAT(made, HasSubstr("neither the configuration nor a flag says: --gpus 8; "
                              "--sequence-length 1024; "));
  EXPECT_THAT(made, HasSubstr("; --recompute none; "));
  EXPECT_THAT(made, Not(HasSubstr("--global-batch-size")));
  EXPECT_THAT(imported_job({{"run.sh",
                             "torchrun --nproc-per-node 8 pretrain_gpt.py --bf16 "
                             "--seq-length 1024 --use-distributed-optimizer\n"}}),
              HasSubstr("says: --micro-batch-size 1; --global-batch-size 8, a micro-batch for each "
                        "data-parallel rank\n"));
}

}  // namespace
}  // namespace shardwise
