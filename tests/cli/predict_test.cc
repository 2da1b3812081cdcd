// What check --predict says: a failing and a passing example of every check, of every framework in
// which it can find something.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "planner/export/framework/framework_reader.h"
#include "tests/cli/command.h"
#include "tests/support/scratch.h"

namespace shardwise::cli {
namespace {

namespace fs = std::filesystem;

/// The checks that predict, and the frameworks in which each can find something. torchtitan's loss
/// works by chunks, and Megatron-LM's fused one saves no memory. Others than PyTorch's AdamW are
/// one kernel, and others than Megatron-LM and DeepSpeed are told no buckets.
const std::map<std::string, std::set<std::string>>& predicting_checks() {
  static const std::set<std::string> kAll = {"accelerate",  "deepspeed",   "megatron-fsdp",
                                             "megatron-lm", "torch-fsdp2", "torchtitan"};
  static const std::map<std::string, std::set<std::string>> kChecks = {
      {"does_not_fit", kAll},
      {"recompute_for_nothing", kAll},
      {"shards_across_nodes", kAll},
      {"reduces_every_microbatch", kAll},
      {"adamw_not_fused", {"accelerate", "torch-fsdp2", "torchtitan"}},
      {"loss_on_whole_logits", {"accelerate", "deepspeed", "megatron-fsdp", "torch-fsdp2"}},
      {"bucket_below_the_latency", {"deepspeed", "megatron-lm"}}};
  return kChecks;
}

class Predicting : public testing::TestWithParam<std::string> {};

// The figures follow the cost model, so only the rule and that there is a figure are expected.
TEST_P(Predicting, HasAFailingAndAPassingExampleOfEveryCheck) {
  const std::string& framework = GetParam();
  std::set<std::string> fails;
  std::set<std::string> passes;
  for (const auto& entry :
       fs::directory_iterator("tests/invalid/framework/predicted/" + framework)) {
    const fs::path& path = entry.path();
    const std::string name = path.filename().string();
    const std::string rule = name.substr(0, name.find('.'));
    const bool wrong = name.find(".fails.") != std::string::npos;
    const bool large = framework == "torchtitan" || framework == "megatron-lm";
    const Outcome outcome =
        shardwise({"check", path.string(), "--cluster", large ? "dgx-h100" : "aws-p4d", "--model",
                   large ? "llama-3.1-8b" : "llama-3.2-3b", "--predict", "--json"});
    const auto said = nlohmann::json::parse(outcome.out, nullptr, false);
    ASSERT_TRUE(said.is_object()) << path << outcome.out << outcome.err;
    EXPECT_EQ(said["framework"], framework) << path;
    EXPECT_EQ(said["predicted"]["fit"] == "does_not_fit", wrong && rule == "does_not_fit") << path;
    const auto found = std::ranges::find_if(
        said["findings"], [&](const nlohmann::json& each) { return each["rule"] == rule; });
    EXPECT_EQ(found != said["findings"].end(), wrong) << path << outcome.out;
    if (found != said["findings"].end()) {
      EXPECT_THAT(std::string((*found)["fix"]), testing::ContainsRegex("[0-9]+ (GiB|ms|s|us) "))
          << path;
    }
    (wrong ? fails : passes).insert(rule);
  }
  std::set<std::string> checks;
  for (const auto& [check, frameworks] : predicting_checks()) {
    if (frameworks.contains(framework)) checks.insert(check);
  }
  EXPECT_EQ(fails, checks);
  EXPECT_EQ(passes, checks);
}

TEST(Predicted, StandsBesideWhatTheRulesFoundWhereNothingCanBePredicted) {
  const std::vector<std::string> words = {"--",
                                          "torchrun",
                                          "--nproc-per-node",
                                          "8",
                                          "pretrain_gpt.py",
                                          "--use-megatron-fsdp",
                                          "--num-layers",
                                          "12",
                                          "--hidden-size",
                                          "768",
                                          "--num-attention-heads",
                                          "12",
                                          "--seq-length",
                                          "1024",
                                          "--micro-batch-size",
                                          "4",
                                          "--global-batch-size",
                                          "130"};
  std::vector<std::string> asked = {"check", "--cluster", "dgx-h100", "--predict"};
  asked.insert(asked.end(), words.begin(), words.end());
  const Outcome outcome = shardwise(asked);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.out, testing::HasSubstr("Megatron-FSDP writes fsdp_dtensor alone"));
  EXPECT_THAT(outcome.out, testing::HasSubstr("turns the distributed optimizer on"));
  EXPECT_THAT(outcome.err, testing::HasSubstr("does not say which model it trains"));
}

// Figures rest on what nothing states, which flags state: without --predict they say nothing.
TEST(Predicted, TakesFlagsForWhatTheConfigurationLeavesOpen) {
  const test::Scratch scratch;
  const std::string file =
      scratch.write_bytes("ds_config.json",
                          R"({"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
          "zero_optimization": {"stage": 3, "overlap_comm": true}})");
  const std::vector<std::string> asked = {"check",     file,       "--gpus",
                                          "8",         "--model",  "llama-3.1-8b",
                                          "--cluster", "dgx-h100", "--predict"};
  const Outcome open = shardwise(asked);
  EXPECT_THAT(open.out, testing::HasSubstr("assumed: neither the configuration nor a flag says: "
                                           "--sequence-length 4096"));
  EXPECT_THAT(open.out,
              testing::HasSubstr("predicted for llama-3.1-8b on 8 GPUs of dgx-h100: Fits: "));
  std::vector<std::string> stated = asked;
  stated.insert(stated.end(), {"--sequence-length", "16384", "--recompute", "none"});
  const Outcome large = shardwise(stated);
  EXPECT_EQ(large.exit_code, 1) << large.err;
  EXPECT_THAT(large.out, testing::ContainsRegex(
                             "does not fit: [0-9.]+ GiB of [0-9.]+ GiB on the fullest GPU"));
  EXPECT_THAT(large.out, testing::HasSubstr("cheapest change: --recompute="));
  const Outcome idle = shardwise({"check", file, "--sequence-length", "16384"});
  EXPECT_EQ(idle.exit_code, 2);
  EXPECT_THAT(idle.err, testing::HasSubstr("--sequence-length: says nothing to the rules"));
}

// accumulate() and the Trainer wait for the last micro-batch. Where the script says otherwise, no
// line of the YAML is to blame.
TEST(Predicted, LeavesReductionsOfAccelerateToItsScript) {
  for (const char* version : {"1", "2"}) {
    const test::Scratch scratch;
    const std::string file = scratch.write_bytes(
        "accelerate.yaml",
        std::string("distributed_type: FSDP\nmixed_precision: bf16\nnum_processes: 16\n"
                    "num_machines: 2\nfsdp_config:\n  fsdp_version: ") +
            version + "\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n" +
            (version[0] == '1' ? "  fsdp_sharding_strategy: FULL_SHARD\n"
                               : "  fsdp_reshard_after_forward: true\n"));
    const auto found = [&](const std::vector<std::string>& flags) {
      std::vector<std::string> words = {
          "check",        file,        "--cluster",           "aws-p4d", "--model",
          "llama-3.2-3b", "--predict", "--global-batch-size", "128",     "--sequence-length",
          "2048"};
      words.insert(words.end(), flags.begin(), flags.end());
      return shardwise(words).out;
    };
    EXPECT_THAT(found({}), testing::Not(testing::HasSubstr("gradients are reduced 8 times")));
    const std::string each = found({"--reduce-every-microbatch=true"});
    EXPECT_THAT(each, testing::HasSubstr(file + ": gradients are reduced 8 times a step"));
  }
}

// The verdict of a plan that does not fit counts what a run cannot do without, and so does what is
// proposed.
TEST(Predicted, HasOneMeaningOfASize) {
  const test::Scratch scratch;
  const std::string file =
      scratch.write_bytes("ds_config.json",
                          R"({"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
          "zero_optimization": {"stage": 3, "overlap_comm": true}})");
  const Outcome large = shardwise({"check", file, "--gpus", "8", "--model", "llama-3.1-8b",
                                   "--cluster", "dgx-h100", "--predict", "--sequence-length",
                                   "32768", "--recompute", "none", "--loss", "materialised"});
  const std::string& out = large.out;
  const std::string start = "does not fit: ";
  const std::size_t at = out.find(start);
  ASSERT_NE(at, std::string::npos) << out;
  const std::string needed =
      out.substr(at + start.size(), out.find(" of ", at) - at - start.size());
  EXPECT_THAT(out, testing::HasSubstr("instead of " + needed + " on a GPU ("));
}

TEST(Predicted, SaysThatAnotherVersionWasRead) {
  const std::string file = "tests/invalid/framework/deepspeed/two_precisions.passes.json";
  const Outcome newer = shardwise({"check", file, "--installed", "0.20.0"});
  EXPECT_EQ(newer.exit_code, 0);
  EXPECT_THAT(newer.out, testing::HasSubstr("note: DeepSpeed 0.20.0 is newer than 0.19.8"));
  EXPECT_THAT(shardwise({"check", file, "--installed", "0.19.8"}).out,
              testing::Not(testing::HasSubstr("note:")));
  EXPECT_EQ(shardwise({"check", file, "--installed", "main"}).exit_code, 2);
}

INSTANTIATE_TEST_SUITE_P(Frameworks, Predicting, testing::ValuesIn(framework_names()),
                         [](const auto& each) {
                           std::string name = each.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace shardwise::cli
