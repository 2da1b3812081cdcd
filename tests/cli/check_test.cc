// Every rule of a framework has an example that fails, with exactly the text of the .txt beside it,
// and one that passes. The frameworks' own parsers were asked whether they agree:
// tests/golden/frameworks.py, tests/planner/export/golden_test.cc.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "planner/export/framework/framework_reader.h"
#include "tests/cli/command.h"
#include "tests/support/scratch.h"

namespace shardwise::cli {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> examples(const std::string& framework) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator("tests/invalid/framework/" + framework)) {
    if (entry.path().extension() != ".txt") found.push_back(entry.path());
  }
  std::ranges::sort(found);
  return found;
}

Outcome check(const std::string& framework, const std::string& file) {
  return shardwise({"check", file, "--gpus", "16", "--cluster", "dgx-h100", "--from", framework});
}

class Check : public testing::TestWithParam<std::string> {};

TEST_P(Check, SaysOfEveryExampleWhatItShould) {
  for (const fs::path& path : examples(GetParam())) {
    const Outcome outcome = check(GetParam(), path.string());
    if (path.string().find(".passes.") != std::string::npos) {
      EXPECT_EQ(outcome.exit_code, 0) << path << outcome.out << outcome.err;
      continue;
    }
    fs::path expected = path;
    expected.replace_extension(".txt");
    EXPECT_EQ(outcome.out, test::bytes_of_file(expected)) << path << outcome.err;
    const bool refused = outcome.out.find("\n    refused by ") != std::string::npos;
    EXPECT_EQ(outcome.exit_code, refused ? 2 : 1) << path;
  }
}

TEST_P(Check, HasAFailingAndAPassingExampleOfEveryRule) {
  const Result<Framework> framework = load_framework(GetParam(), "--from");
  ASSERT_TRUE(framework.ok()) << to_string(framework.problems());
  std::string names;
  for (const fs::path& path : examples(GetParam())) names += path.filename().string() + " ";
  for (const CheckRule& rule : framework->rules) {
    EXPECT_THAT(names, testing::HasSubstr(rule.name + ".fails."));
    EXPECT_THAT(names, testing::HasSubstr(rule.name + ".passes."));
  }
}

INSTANTIATE_TEST_SUITE_P(Frameworks, Check, testing::ValuesIn(framework_names()),
                         [](const auto& each) {
                           std::string name = each.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(CheckedFile, IsKnownAsWhatItIs) {
  const test::Scratch scratch;
  const struct {
    const char* name;
    const char* text;
    const char* says;
  } files[] = {
      {"plan.json", R"({"schema": "shardwise.plan/1"})", "is shardwise.plan/1, no configuration"},
      {"config.json", R"({"model_type": "llama"})", "is a model's config.json, no configuration"},
      {"job.toml", "[model]\nname = 'llama3'\n", "is TOML, no configuration of a framework"},
      {"list.json", "[1, 2]", "is no object, no configuration"},
      {"other.yaml", "name: x\n", "has no setting by which a framework is known"},
      {"broken.json", "{\"train_batch_size\": ", "broken.json:1"},
      {"tab.yaml", "a:\n\tb: 1\n", "tab.yaml:2:3: illegal map value"},
      {"anchor.yaml", "a: *x\n", "the referenced anchor is not defined"},
      {"twice.yaml", "a: 1\na: 2\n", "a stands there twice"},
      {"quote.sh", "torchrun train.py --a 'b\n", "a quote that ' opens is not closed"},
      {"word.json", R"({"train_batch_size": "many"})",
       "word.json:1:22: /train_batch_size: many is not an integer"},
  };
  for (const auto& file : files) {
    const Outcome outcome = shardwise({"check", scratch.write_bytes(file.name, file.text)});
    EXPECT_EQ(outcome.exit_code, 2) << file.name;
    EXPECT_THAT(outcome.err, testing::HasSubstr(file.says)) << file.name;
  }
}

TEST(CheckedFile, IsAScriptWithTheArgumentsOfItsCommand) {
  const test::Scratch scratch;
  const std::string file = scratch.write_bytes(
      "run.sh",
      "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 2 --hidden-size 64 \\\n"
      "  --num-attention-heads 4 --seq-length 64 --max-position-embeddings 64 \\\n"
      "  --micro-batch-size 1 --global-batch-size 8 --tensor-model-parallel-size $1\n");
  EXPECT_EQ(shardwise({"check", "--", "bash", file, "2"}).exit_code, 0);
  const Outcome three = shardwise({"check", "--", "X=1", "bash", file, "3"});
  EXPECT_EQ(three.exit_code, 2);
  EXPECT_THAT(three.out + three.err, testing::HasSubstr("--tensor-model-parallel-size: 3"));
  EXPECT_EQ(shardwise({"check", "--", "bash", "no/such.sh"}).exit_code, 2);
}

// The file that a command names stands before it, and flags of ours before the "--".
TEST(CheckedFile, StandsBesideTheCommandThatNamesIt) {
  const test::Scratch scratch;
  const std::string json =
      scratch.write_bytes("ds_config.json", R"({"train_batch_size": 24, "bf16": {"enabled": true},
          "train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3}})");
  const auto with = [&](const char* nodes, const std::string& verb) {
    std::vector<std::string> words = {verb,           json,        "--model",
                                      "llama-3.2-1b", "--cluster", "dgx-h100"};
    if (verb == "import")
      words.insert(words.end(), {"-o", scratch.path("plan.json"), "--repeat-key-values"});
    words.insert(words.end(),
                 {"--", "torchrun", "--nproc-per-node", "8", "--nnodes", nodes, "train.py",
                  "--deepspeed", "ds_config.json", "--gradient_checkpointing"});
    return shardwise(words);
  };
  EXPECT_EQ(with("3", "check").exit_code, 0);
  const Outcome uneven = with("5", "check");
  EXPECT_EQ(uneven.exit_code, 2);
  EXPECT_THAT(uneven.out, testing::HasSubstr("no multiple of"));
  const Outcome made = with("3", "import");
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, testing::HasSubstr("llama-3.2-1b on 24 GPUs of dgx-h100"));
}

TEST(CheckedFile, HasAnUnknownSectionOnce) {
  const test::Scratch scratch;
  const std::string file = scratch.write_bytes("ds_config.json", R"({"train_batch_size": 8,
      "monitor_config": {"enabled": true, "tag": "a"}, "comms_config": {"verbose": true}})");
  const auto json = nlohmann::json::parse(shardwise({"check", file, "--json"}).out);
  EXPECT_EQ(json["findings"].size(), 2U) << json.dump();
}

TEST(CheckedFile, HasNoKeysThatItsFrameworkRefusesInsideASection) {
  const test::Scratch scratch;
  const std::string file = scratch.write_bytes("ds_config.json", R"({
  "train_micro_batch_size_per_gpu": 1,
  "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}, "stag": 2}
})");
  const Outcome outcome = shardwise({"check", file});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.out, testing::HasSubstr("/zero_optimization/stag"));
  EXPECT_THAT(outcome.out, testing::HasSubstr("did you mean zero_optimization.stage?"));
  EXPECT_THAT(outcome.out, testing::Not(testing::HasSubstr("offload_optimizer")));
}

TEST(CheckedCommand, ResolvesVariablesOfItsScript) {
  const test::Scratch scratch;
  const std::string script = scratch.write_bytes(
      "run.sh",
      "#!/bin/bash\nexport CUDA_DEVICE_MAX_CONNECTIONS=1\nTP=${TP:-2}\nBATCH=\"20\"\n"
      "PARALLEL=(\n  --tensor-model-parallel-size $TP # two\n  --micro-batch-size 1\n)\n"
      "PARALLEL+=(--global-batch-size ${BATCH})\n"
      "torchrun --nproc_per_node=8 --nnodes 2 pretrain_gpt.py \\\n  \"${PARALLEL[@]}\" --bf16\n");
  const Outcome outcome = shardwise({"check", script, "--json"});
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["framework"], "megatron-lm");
  ASSERT_EQ(json["findings"].size(), 1U) << outcome.out;  // 20 sequences on 16 / 2 ranks
  EXPECT_EQ(json["findings"][0]["rule"], "batch_does_not_divide");
}

// Tensor parallelism asks for one hardware queue before Blackwell, and the ranks are not known.
TEST(CheckedFile, SaysWhichRulesCouldNotBeAsked) {
  const test::Scratch scratch;
  const std::string file =
      scratch.write_bytes("arguments.txt",
                          "--tensor-model-parallel-size 2\n--micro-batch-size 2\n"
                          "--global-batch-size 16\n--num-layers 4\n--bf16\n");
  const auto framework = load_framework("megatron-lm", "--from");
  ASSERT_TRUE(framework.ok());
  const std::size_t all = framework->rules.size();
  const Outcome outcome = shardwise({"check", file});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::StartsWith("nothing found against " + std::to_string(all - 3) +
                                               " rules of Megatron-LM"));
  std::string flat = outcome.out;
  std::ranges::replace(flat, '\n', ' ');
  EXPECT_THAT(flat, testing::HasSubstr("note: 3 of " + std::to_string(all) +
                                       " rules are not asked: tensor_parallel_queues"));
  EXPECT_THAT(flat, testing::HasSubstr("(add --cluster)"));
  EXPECT_THAT(flat, testing::HasSubstr("degrees_do_not_divide_the_ranks, batch_does_not_divide"));
  EXPECT_THAT(flat, testing::HasSubstr("(add --gpus)"));
  const auto json = nlohmann::json::parse(shardwise({"check", file, "--json"}).out);
  EXPECT_EQ(json["rules"], all);
  ASSERT_EQ(json["not_asked"].size(), 3U);
  EXPECT_EQ(json["not_asked"][0]["rule"], "tensor_parallel_queues");
  EXPECT_EQ(json["not_asked"][0]["lacks"], nlohmann::json({"--cluster"}));

  const Outcome asked = shardwise({"check", file, "--gpus", "16", "--cluster", "dgx-h100"});
  EXPECT_EQ(asked.exit_code, 2);
  EXPECT_THAT(asked.out, testing::Not(testing::HasSubstr("not asked")));
}

// A second partition that does not divide the ranks is unknown without them.
TEST(CheckedFile, DoesNotAskOfRanksThatNobodyStates) {
  const test::Scratch scratch;
  const std::string file =
      scratch.write_bytes("ds_config.json",
                          R"({"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
          "zero_optimization": {"stage": 3, "zero_hpz_partition_size": 3}})");
  const Outcome outcome = shardwise({"check", file});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::HasSubstr("hybrid_group_does_not_divide"));
  EXPECT_EQ(shardwise({"check", file, "--gpus", "16"}).exit_code, 2);
}

TEST(CheckedFile, IsNamedWhereItIsOfAnotherFramework) {
  const test::Scratch scratch;
  const std::string flags =
      scratch.write_bytes("arguments.txt",
                          "--tensor-model-parallel-size 2\n--micro-batch-size 2\n"
                          "--num-layers 4\n--use-distributed-optimizer\n");
  const std::string json = scratch.write_bytes(
      "ds_config.json", R"({"train_micro_batch_size_per_gpu": 1, "zero_optimization": {}})");
  for (const char* verb : {"check", "import"}) {
    const auto with = [&](std::vector<std::string> more) {
      if (verb == std::string("import")) {
        for (const char* each : {"--cluster", "dgx-h100", "-o"}) more.emplace_back(each);
        more.push_back(scratch.path("plan.json"));
      }
      more.insert(more.begin(), verb);
      return shardwise(more);
    };
    const Outcome both = with({flags, json});
    EXPECT_EQ(both.exit_code, 2) << verb;
    EXPECT_EQ(both.err,
              json + ":1: is a configuration of DeepSpeed (train_micro_batch_size_per_gpu), and " +
                  flags +
                  " is one of Megatron-LM\n    give the files of one framework\n"
                  "1 problem, nothing was run\n");
    const Outcome wrong = with({json, "--from", "megatron-lm"});
    EXPECT_EQ(wrong.exit_code, 2) << verb;
    EXPECT_EQ(wrong.err,
              json +
                  ":1: is a configuration of DeepSpeed (train_micro_batch_size_per_gpu), and not "
                  "of Megatron-LM\n    --from deepspeed, or leave it out\n"
                  "1 problem, nothing was run\n");
    EXPECT_THAT(with({flags, "--from", "deepspeed"}).err,
                testing::HasSubstr(":1: is a configuration of Megatron-LM"));
  }
}

TEST(CheckedCommand, SaysWhatOfItsScriptIsNotRead) {
  const test::Scratch scratch;
  const std::string script =
      scratch.write_bytes("run.sh",
                          "if [ -f conf ]; then\n  TP=2\nfi\n"
                          "torchrun --nproc_per_node=8 pretrain_gpt.py --bf16 "
                          "--tensor-model-parallel-size 1 --micro-batch-size 1 $MORE\n");
  const Outcome outcome = shardwise({"check", script});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  std::string flat = outcome.out;
  std::ranges::replace(flat, '\n', ' ');
  EXPECT_THAT(flat, testing::HasSubstr("run.sh:1: the branch is not"));
  const auto json = nlohmann::json::parse(shardwise({"check", script, "--json"}).out);
  ASSERT_EQ(json["notes"].size(), 2U);
  EXPECT_EQ(
      json["notes"][1]["says"],
      "not known: $MORE; kept as text where it is a word of a flag, flags in it are not read");
  EXPECT_EQ(json["notes"][1]["line"], 4);
  EXPECT_EQ(json["notes"][0]["line"], 1);
}

TEST(CheckedCommand, IsToldTheFlagsThatHaveTheWordsOfAnUnknownOne) {
  const Outcome outcome = shardwise({"check", "--from", "megatron-lm", "--", "torchrun",
                                     "pretrain_gpt.py", "--micro-batch-size", "1", "--nccl-ub"});
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
  EXPECT_THAT(outcome.out, testing::HasSubstr("--nccl-ub is no argument of Megatron-LM"));
  EXPECT_THAT(outcome.out, testing::HasSubstr("--use-nccl-ub?"));
}

TEST(CheckedCommand, TakesItsWordsAsTheyAre) {
  const auto says = [](const std::vector<std::string>& words) {
    const Outcome outcome = shardwise(words);
    EXPECT_EQ(outcome.exit_code, 2);
    return outcome.err;
  };
  EXPECT_THAT(says({"check", "--gpus", "zero", "--", "torchrun", "pretrain_gpt.py", "--bf16"}),
              testing::HasSubstr("--gpus: zero is not an integer"));
  EXPECT_THAT(says({"check", "--gpuss", "8", "--", "torchrun", "pretrain_gpt.py", "--bf16"}),
              testing::HasSubstr("unknown flag --gpuss (did you mean --gpus?)"));
  EXPECT_THAT(says({"check", "no/job.sh", "--", "torchrun", "pretrain_gpt.py", "--bf16"}),
              testing::HasSubstr("no/job.sh"));
  EXPECT_THAT(says({"check", "--", "torchrun", "pretrain_gpt.py", "--bf16", "--num-layers", ""}),
              testing::HasSubstr("--num-layers"));
  EXPECT_THAT(says({"check", "--", "torchrun", "pretrain_gpt.py", "--num-layers", "[1,2]"}),
              testing::HasSubstr("--num-layers: [1,2] is not"));
  EXPECT_THAT(says({"check", "--", "torchrun", "--nnodes=0", "pretrain_gpt.py", "--bf16"}),
              testing::HasSubstr("command line: --nnodes: 0 is not a whole number from 1"));
}

}  // namespace
}  // namespace shardwise::cli
