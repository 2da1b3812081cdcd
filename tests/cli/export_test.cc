// The folder that export writes: what its script starts, what it overwrites, what it says.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/command.h"
#include "tests/support/scratch.h"

namespace shardwise::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class ExportedFolder : public testing::Test {
 protected:
  /// A plan of 16 GPUs, or of so many.
  std::string plan(const std::string& engine, const std::string& gpus = "16",
                   const std::string& model = "llama-3.1-8b") const {
    const std::string file = scratch_.path("plan.json");
    const Outcome outcome = shardwise({"plan", "--model", model, "--cluster", "dgx-h100", "--gpus",
                                       gpus, "--engine", engine, "--lock", "pp=1", "-o", file});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return file;
  }
  std::string job() const { return scratch_.path("job"); }
  Outcome make(const std::string& plan, const std::string& to) const {
    return shardwise({"export", plan, "--to", to, "-o", job()});
  }
  /// Runs run.sh from another folder, with torchrun and accelerate that print their words.
  Outcome start(const std::string& variables, const std::string& words) const {
    for (const char* name : {"torchrun", "accelerate"}) {
      const std::string program =
          scratch_.write_bytes(name,
                               "#!/bin/bash\nprintf '<%s>' \"$@\"\nprintf '\\n%s|%s' \"$PWD\" "
                               "\"${CUDA_DEVICE_MAX_CONNECTIONS-unset}\"\n");
      ::chmod(program.c_str(), 0755);
    }
    fs::create_directories(scratch_.path("elsewhere"));
    const std::string script =
        scratch_.write_bytes("start.sh", "cd '" + scratch_.path("elsewhere") + "'\nexport PATH='" +
                                             scratch_.folder().string() +
                                             "':$PATH\nunset SLURM_JOB_NODELIST "
                                             "SLURM_NODEID MASTER_ADDR NODE_RANK\n" +
                                             variables + " bash ../job/run.sh " + words + "\n");
    return test::run_program("bash", {script});
  }

  test::Scratch scratch_;
};

TEST_F(ExportedFolder, StartsFromAnywhereWithPathsOfTheCaller) {
  EXPECT_EQ(make(plan("megatron_ddp", "8"), "megatron-lm").exit_code, 0);
  const Outcome run = start("MEGATRON_LM=../lm", "--data-path mine --x 'a b'");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("<../lm/pretrain_gpt.py>"));
  EXPECT_THAT(run.out, HasSubstr("<--data-path><mine><--x><a b>"));
  EXPECT_THAT(run.out, HasSubstr("/elsewhere|"));
  EXPECT_THAT(run.out, HasSubstr("<--micro-batch-size>"));
}

TEST_F(ExportedFolder, PutsFlagsOfTorchtitanBeforeItsChoice) {
  EXPECT_EQ(make(plan("fsdp2", "8"), "torchtitan").exit_code, 0);
  const Outcome run = start("", "--training.steps 5");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("<--training.steps><5><activation-checkpoint:"));
}

TEST_F(ExportedFolder, StopsWhereTheFirstOfSeveralNodesIsNotKnown) {
  EXPECT_EQ(make(plan("fsdp2"), "accelerate").exit_code, 0);
  const Outcome lost = start("TRAIN=train.py", "");
  EXPECT_EQ(lost.exit_code, 2);
  EXPECT_EQ(lost.err,
            "run.sh: a job of 2 nodes needs MASTER_ADDR, the first of them, and "
            "NODE_RANK\n");
  const Outcome run = start("TRAIN=train.py MASTER_ADDR=a NODE_RANK=1", "--lr 1");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("<" + job() + "/accelerate.yaml>"));
  EXPECT_THAT(run.out, HasSubstr("<--machine_rank><1><--main_process_ip><a>"));
  EXPECT_THAT(run.out, HasSubstr("<train.py><--lr><1>"));
}

TEST_F(ExportedFolder, TakesTheSingleQueueFromFsdp) {
  EXPECT_EQ(make(plan("megatron_fsdp", "8"), "megatron-lm").exit_code, 0);
  const Outcome run = start("CUDA_DEVICE_MAX_CONNECTIONS=1 MEGATRON_LM=lm", "");
  EXPECT_THAT(run.out, HasSubstr("|unset"));
}

TEST_F(ExportedFolder, OverwritesWhatAnExportWroteAndNothingElse) {
  const std::string file = plan("fsdp2", "8");
  fs::create_directories(job());
  scratch_.write_bytes("job/run.sh", "#!/bin/bash\n# mine\necho\n");
  const Outcome refused = make(file, "accelerate");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("command line: --output: " + job() +
                                     "/run.sh is there and no export wrote it"));
  EXPECT_EQ(test::bytes_of_file(job() + "/run.sh"), "#!/bin/bash\n# mine\necho\n");
  fs::remove(job() + "/run.sh");
  scratch_.write_bytes("job/my.txt", "mine");

  EXPECT_EQ(make(file, "torchtitan").exit_code, 0);
  EXPECT_TRUE(fs::exists(job() + "/arguments.txt"));
  EXPECT_EQ(make(file, "accelerate").exit_code, 0);
  EXPECT_FALSE(fs::exists(job() + "/arguments.txt"));
  EXPECT_TRUE(fs::exists(job() + "/accelerate.yaml"));
  scratch_.write_bytes("job/settings.json", "{}");
  EXPECT_EQ(make(file, "torch-fsdp2").exit_code, 2);
  EXPECT_EQ(test::bytes_of_file(job() + "/settings.json"), "{}");
  EXPECT_EQ(test::bytes_of_file(job() + "/my.txt"), "mine");
  EXPECT_EQ(make(file, "accelerate").exit_code, 0);
}

TEST_F(ExportedFolder, IsNoStandardOutputAndNoFile) {
  const std::string file = plan("fsdp2", "8");
  const Outcome dash = shardwise({"export", file, "--to", "accelerate", "-o", "-"});
  EXPECT_EQ(dash.exit_code, 2);
  EXPECT_THAT(dash.err, HasSubstr("command line: --output: - is no folder"));
  const Outcome plain = shardwise({"export", file, "--to", "accelerate", "-o", file});
  EXPECT_EQ(plain.exit_code, 2);
  EXPECT_THAT(plain.err, HasSubstr("--output: " + file + " is no folder"));
}

TEST_F(ExportedFolder, SaysWhichPlanAFrameworkRefuses) {
  const std::string file = plan("fsdp2", "8", "llama-3.2-1b");
  const Outcome refused = make(file, "torchtitan");
  EXPECT_EQ(refused.exit_code, 2) << refused.out;
  EXPECT_THAT(refused.err, testing::StartsWith(file + ": torchtitan: --module has no value for"));
}

TEST_F(ExportedFolder, SaysWhatTheJobStillNeeds) {
  EXPECT_EQ(make(plan("megatron_ddp", "8"), "megatron-lm").exit_code, 0);
  const std::string notes = test::bytes_of_file(job() + "/notes.txt");
  EXPECT_THAT(notes, HasSubstr("Megatron-LM is told no --tokenizer-type, --tokenizer-model, "
                               "--data-path, --lr, --train-iters, --save"));
}

// It is written, and says first that it does not fit, what is missing and what to change.
TEST_F(ExportedFolder, SaysFirstThatThePlanDoesNotFit) {
  const std::string file = plan("fsdp2", "8");
  std::string text = test::bytes_of_file(file);
  const std::size_t at = text.find("\"sequence_length\": 4096");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 23, "\"sequence_length\": 131072");
  scratch_.write_bytes("plan.json", text);
  const Outcome large = make(file, "accelerate");
  EXPECT_EQ(large.exit_code, 0) << large.err;
  EXPECT_THAT(large.out, testing::ContainsRegex("^Does not fit: [0-9.]+ GiB of [0-9.]+ GiB on the "
                                                "fullest GPU, [0-9.]+ GiB too much"));
  std::string flat = large.out;
  std::ranges::replace(flat, '\n', ' ');
  EXPECT_THAT(flat, testing::ContainsRegex("cheapest +change:"));
  EXPECT_THAT(test::bytes_of_file(job() + "/notes.txt"), testing::StartsWith("Does not fit: "));
  EXPECT_THAT(test::bytes_of_file(job() + "/run.sh"), HasSubstr("accelerate launch"));
  const Outcome json = shardwise({"export", file, "--to", "accelerate", "-o", job(), "--json"});
  EXPECT_THAT(json.out, HasSubstr("\"fit\": \"does_not_fit\""));

  const Outcome back = shardwise({"import", job() + "/accelerate.yaml", "--model", "llama-3.1-8b",
                                  "--cluster", "dgx-h100", "--sequence-length", "131072",
                                  "--micro-batch-size", "1", "-o", scratch_.path("back.json")});
  EXPECT_EQ(back.exit_code, 0) << back.err;
  EXPECT_THAT(back.out, HasSubstr("\nDoes not fit: "));
  EXPECT_THAT(make(plan("fsdp2", "8"), "accelerate").out, testing::Not(HasSubstr("fit")));
}

// Of a model that neither FSDP2's script nor torchtitan has in such a layout.
TEST_F(ExportedFolder, SaysWhichOtherFrameworksCanRunThePlan) {
  const std::string file = scratch_.path("plan.json");
  const Outcome made =
      shardwise({"plan", "--model", "mixtral-8x7b", "--cluster", "dgx-h100", "--gpus", "64",
                 "--engine", "megatron_ddp", "--lock", "ep=8", "--lock", "tp=1", "-o", file});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const Outcome refused = make(file, "torch-fsdp2");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("or export --to megatron-lm"));
  EXPECT_THAT(refused.err, testing::Not(HasSubstr("torchtitan")));
}

// Plans of models with experts had no router before 30 November 2026.
TEST_F(ExportedFolder, HasTheRouterOfTheCatalogueWhereThePlanHasNone) {
  const std::string made = scratch_.path("experts.json");
  const Outcome planned =
      shardwise({"import", "--cluster", "dgx-h100", "-o", made, "--", "torchrun", "--nnodes", "128",
                 "--nproc-per-node", "8", "-m", "torchtitan.train", "--module", "deepseek_v3",
                 "--config", "deepseek_v3_671b", "--parallelism.expert_parallel_degree", "64"});
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  nlohmann::json plan = nlohmann::json::parse(test::bytes_of_file(made), nullptr, false);
  ASSERT_TRUE(plan.is_object()) << planned.out << planned.err;
  ASSERT_TRUE(plan["model"].contains("router"));
  const std::string whole = scratch_.write_bytes("experts.json", plan.dump());
  const Outcome now = make(whole, "megatron-lm");
  const std::string arguments = test::bytes_of_file(job() + "/arguments.txt");
  EXPECT_THAT(arguments, HasSubstr("--moe-router-score-function sigmoid"));
  EXPECT_THAT(now.out, testing::Not(HasSubstr("router weighs")));

  plan["model"].erase("router");
  const Outcome former = make(scratch_.write_bytes("former.json", plan.dump()), "megatron-lm");
  EXPECT_EQ(former.exit_code, 0) << former.err;
  EXPECT_EQ(test::bytes_of_file(job() + "/arguments.txt"), arguments);
  EXPECT_THAT(former.out, HasSubstr("weighs experts: it is that of deepseek-v3"));
  EXPECT_THAT(test::bytes_of_file(job() + "/notes.txt"), HasSubstr("router weighs experts"));
}

TEST_F(ExportedFolder, IsNotMadeOfAPlanWithAHostileName) {
  const std::string file = plan("fsdp2", "8");
  std::string text = test::bytes_of_file(file);
  const std::string name = "\"name\": \"llama-3.1-8b\"";
  text.replace(text.find(name), name.size(), R"("name": "llama\ntouch PWNED\n#")");
  scratch_.write_bytes("plan.json", text);
  for (const char* verb : {"export", "simulate"}) {
    std::vector<std::string> words = {verb, file};
    if (words[0] == "export") words.insert(words.end(), {"--to", "accelerate", "-o", job()});
    const Outcome outcome = shardwise(words);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.err, HasSubstr("/model/name: \"llama\\ntouch PWNED\\n#\" has a control "
                                       "character"));
    EXPECT_THAT(outcome.err, HasSubstr("1 problem, nothing was run"));
  }
  EXPECT_FALSE(fs::exists(job()));
}

/// Lines of a text together.
std::string flat(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  for (std::size_t at = 0; (at = text.find("  ", at)) != std::string::npos;) text.erase(at, 1);
  return text;
}

// What only the caller of the script knew is no text of a path.
TEST_F(ExportedFolder, HasNoVariablesThatNobodyKnows) {
  const std::string script = scratch_.write_bytes(
      "train.sh",
      "torchrun --nproc-per-node 8 pretrain_gpt.py --micro-batch-size 1 --bf16 --seq-length 2048 "
      "\\\n  --global-batch-size 64 --save $1 --tensorboard-dir \"$1/log\" --data-path $3 --lr 1 "
      "--split 1\n");
  const std::string file = scratch_.path("plan.json");
  const Outcome read =
      shardwise({"import", script, "--model", "llama-3.2-1b", "--cluster", "dgx-h100", "-o", file});
  ASSERT_EQ(read.exit_code, 0) << read.err;
  const Outcome made = make(file, "megatron-lm");
  EXPECT_EQ(made.exit_code, 0) << made.err;
  const std::string arguments = test::bytes_of_file(job() + "/arguments.txt");
  EXPECT_THAT(arguments, testing::Not(HasSubstr("$")));
  EXPECT_THAT(arguments, testing::Not(HasSubstr("--save")));
  EXPECT_THAT(arguments, HasSubstr("--split 1\n"));
  for (const std::string& said : {made.out, test::bytes_of_file(job() + "/notes.txt")}) {
    EXPECT_THAT(flat(said), HasSubstr("nobody knows the variables here: --save $1, "
                                      "--tensorboard-dir $1/log, --data-path $3; put them behind"));
    EXPECT_THAT(flat(said),
                HasSubstr("is told no --tokenizer-type, --tokenizer-model, --data-path, "
                          "--train-iters, --save:"));
  }
}

TEST_F(ExportedFolder, SaysWhatItDoesNotTakeFromAnotherFramework) {
  const std::string json = scratch_.write_bytes(
      "ds_config.json", R"({"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
          "zero_optimization": {"stage": 3}, "gradient_clipping": 1.0,
          "optimizer": {"type": "AdamW", "params": {"lr": 0.1}}})");
  const std::string file = scratch_.path("plan.json");
  const Outcome read = shardwise({"import", json, "--model", "llama-3.2-1b", "--cluster",
                                  "dgx-h100", "--gpus", "8", "-o", file});
  ASSERT_EQ(read.exit_code, 0) << read.err;
  const Outcome made = make(file, "accelerate");
  EXPECT_THAT(flat(made.out),
              HasSubstr("from a configuration of deepspeed: gradient_clipping, optimizer.type, "
                        "optimizer.params.lr; state what accelerate needs"));
  EXPECT_THAT(make(file, "deepspeed").out, testing::Not(HasSubstr("not written")));
}

// The Trainer's --deepspeed has the file for its value, that of DeepSpeed's own parser none.
TEST_F(ExportedFolder, TellsATrainerItsFileAsItAsks) {
  const Outcome made = make(plan("deepspeed", "8"), "deepspeed");
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(flat(made.out), HasSubstr("by CONFIG_FLAGS=--deepspeed as transformers' Trainer"));
  const std::string config = "<" + job() + "/ds_config.json>";
  EXPECT_THAT(start("TRAIN=a.py", "").out,
              HasSubstr("<a.py><--deepspeed><--deepspeed_config>" + config));
  EXPECT_THAT(start("CONFIG_FLAGS=--deepspeed TRAIN=a.py", "").out,
              HasSubstr("<a.py><--deepspeed>" + config));
}

TEST_F(ExportedFolder, IsNotMadeOfSettingsThatThePlanDecides) {
  const std::string file = plan("megatron_ddp", "8");
  std::string text = test::bytes_of_file(file);
  text.insert(text.rfind('}') - 1,
              ",\n  \"kept\": {\"framework\": \"megatron-lm\", \"settings\": [\n    {\"name\": "
              "\"--pipeline-model-parallel-size\", \"words\": [\"8\"]}]}");
  scratch_.write_bytes("plan.json", text);
  const Outcome outcome = make(file, "megatron-lm");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("/kept/settings/0/name: pipeline-model-parallel-size is "
                                     "what the plan decides"));
  EXPECT_THAT(outcome.err, testing::StartsWith(file + ":"));
  EXPECT_EQ(make(file, "accelerate").exit_code, 0);  // of another framework
}

}  // namespace
}  // namespace shardwise::cli
