#include "planner/export/model_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "planner/estimate/estimate.h"
#include "planner/export/configuration/configuration.h"
#include "planner/export/framework/framework_reader.h"
#include "planner/export/import_plan.h"
#include "planner/export/plan_comparison.h"

namespace shardwise {
namespace {

struct Predicted {
  Plan plan;
  std::vector<Finding> findings;
};

/// Of a torchtitan command on 8-GPU nodes.
Predicted predict(const std::string& gpus, const std::vector<std::string>& words) {
  std::vector<std::string> all = {
      "torchrun", "-m",       "torchtitan.train", "--module",
      "llama3",   "--config", "llama3_8b",        "--training.disable_cuda_graphs"};
  all.insert(all.end(), words.begin(), words.end());
  const Framework framework = *load_framework("torchtitan", "--from");
  const Configuration configuration = *configuration_of_words(all);
  AskedImport asked;
  asked.job.cluster = "dgx-h100";
  asked.job.gpus = gpus;
  Result<Import> made = import_plan(framework, configuration, asked);
  EXPECT_TRUE(made.ok()) << to_string(made.problems());
  const Result<Settings> settings = settings_of(framework, configuration);
  Predicted predicted{made->plan, {}};
  predicted.findings = check_predictions(predicted.plan, framework, *settings).findings;
  return predicted;
}

std::vector<std::string> rules_of(const Predicted& predicted) {
  std::vector<std::string> names;
  for (const Finding& each : predicted.findings) names.push_back(each.rule);
  return names;
}

TEST(Predictions, NameRecomputeThatMemoryDoesNotNeed) {
  const Predicted full =
      predict("32", {"--training.seq_len", "4096", "activation-checkpoint:full"});
  ASSERT_THAT(rules_of(full), testing::Contains("recompute_for_nothing"));
  // The figure is that of the plan without recompute.
  Plan none = full.plan;
  none.layout.recompute = Recompute::none;
  const auto step = [](const Plan& plan) {
    return evaluate(plan.model, plan.cluster, plan.job, plan.engine, plan.layout).step_time;
  };
  EXPECT_LT(step(none), step(full.plan) * (1 - kWorthSaying));
  EXPECT_THAT(rules_of(predict("32", {"--training.seq_len", "4096", "activation-checkpoint:none"})),
              testing::Not(testing::Contains("recompute_for_nothing")));
  // On one node the states leave no room for a long sequence's activations.
  EXPECT_THAT(
      rules_of(predict("8", {"--training.seq_len", "131072", "activation-checkpoint:full"})),
      testing::Not(testing::Contains("recompute_for_nothing")));
}

TEST(Predictions, NameShardsThatCrossNodesWhereHybridIsFaster) {
  const std::vector<std::string> small = {"--training.seq_len", "2048",
                                          "activation-checkpoint:none"};
  EXPECT_THAT(rules_of(predict("256", small)), testing::Contains("shards_across_nodes"));
  std::vector<std::string> hybrid = small;
  hybrid.insert(hybrid.end() - 1, {"--parallelism.data_parallel_shard_degree", "8",
                                   "--parallelism.data_parallel_replicate_degree", "32"});
  EXPECT_THAT(rules_of(predict("256", hybrid)),
              testing::Not(testing::Contains("shards_across_nodes")));
}

TEST(Predictions, NameTheSettingThatSaysIt) {
  const Predicted full =
      predict("32", {"--training.seq_len", "4096", "activation-checkpoint:full"});
  for (const Finding& each : full.findings) {
    if (each.rule == "recompute_for_nothing") {
      EXPECT_EQ(each.what.path, "activation-checkpoint");
    }
    EXPECT_EQ(each.kind, CheckRule::Kind::silent);
    EXPECT_THAT(each.what.hint, testing::HasSubstr(" % less), "));
  }
}

// The figures are those of the plan with the other kernels.
TEST(Predictions, NameTemporariesOfAdamwAndOfTheLoss) {
  const std::vector<std::string> words = {"--training.seq_len", "1024",
                                          "--optimizer.implementation", "foreach",
                                          "activation-checkpoint:full"};
  const Predicted foreach = predict("8", words);
  ASSERT_EQ(foreach.plan.job.adamw, AdamwKernel::foreach);
  ASSERT_THAT(rules_of(foreach), testing::Contains("adamw_not_fused"));
  Plan fused = foreach.plan;
  fused.job.adamw = AdamwKernel::fused;
  EXPECT_LT(evaluation_of(fused).point / evaluation_of(foreach.plan).point, 1 - kWorthSaying);
  EXPECT_THAT(rules_of(predict("8", {"--training.seq_len", "1024", "activation-checkpoint:full"})),
              testing::Not(testing::Contains("adamw_not_fused")));

  Plan whole = foreach.plan;
  whole.job.sequence_length = 8192;
  whole.job.loss = LossKernel::materialised;
  const Framework framework = *load_framework("torchtitan", "--from");
  const std::vector<Finding> found = check_predictions(whole, framework, {}).findings;
  EXPECT_TRUE(std::ranges::any_of(
      found, [](const Finding& each) { return each.rule == "loss_on_whole_logits"; }));
  whole.job.loss = LossKernel::chunked;
  for (const Finding& each : check_predictions(whole, framework, {}).findings) {
    EXPECT_NE(each.rule, "loss_on_whole_logits");
  }
}

/// Of Megatron-LM with data-parallel ranks alone.
std::vector<Finding> of_buckets(const std::string& elements, const std::string& gpus) {
  const Framework framework = *load_framework("megatron-lm", "--from");
  const Configuration configuration = *configuration_of_words(
      {"torchrun", "pretrain_gpt.py", "--use-distributed-optimizer", "--overlap-grad-reduce",
       "--bf16", "--micro-batch-size", "1", "--global-batch-size", "256", "--seq-length", "4096",
       "--ddp-bucket-size", elements});
  AskedImport asked;
  asked.job = {"llama-3.1-8b", "dgx-h100", gpus, "", {}};
  const Result<Import> made = import_plan(framework, configuration, asked);
  EXPECT_TRUE(made.ok()) << to_string(made.problems());
  const Result<Settings> settings = settings_of(framework, configuration);
  std::vector<Finding> found = check_predictions(made->plan, framework, *settings).findings;
  std::erase_if(found, [](const Finding& each) { return each.rule != "bucket_below_the_latency"; });
  return found;
}

TEST(Predictions, NameBucketsThatTakeLatency) {
  const std::vector<Finding> small = of_buckets("100000", "64");
  ASSERT_EQ(small.size(), 1U);
  EXPECT_EQ(small.front().what.path, "--ddp-bucket-size");
  EXPECT_THAT(small.front().what.message, testing::HasSubstr("over 64 ranks takes"));
  EXPECT_TRUE(of_buckets("100000000", "64").empty());
  EXPECT_TRUE(of_buckets("100000", "1").empty());  // nothing is reduced
}

// Megatron-LM has no setting by which Megatron-FSDP would reduce once a step: ZeRO-1 does, and
// larger micro-batches are fewer.
TEST(Predictions, ProposeOnlyWhatTheFrameworkCanBeTold) {
  const Framework framework = *load_framework("megatron-lm", "--from");
  const Configuration configuration = *configuration_of_words(
      {"torchrun", "pretrain_gpt.py", "--use-megatron-fsdp", "--use-distributed-optimizer",
       "--ckpt-format", "fsdp_dtensor", "--bf16", "--micro-batch-size", "1", "--global-batch-size",
       "256", "--seq-length", "4096"});
  AskedImport asked;
  asked.job = {"llama-3.1-8b", "dgx-h100", "32", "", {}};
  const Result<Import> made = import_plan(framework, configuration, asked);
  ASSERT_TRUE(made.ok()) << to_string(made.problems());
  const Result<Settings> settings = settings_of(framework, configuration);
  for (const Finding& each : check_predictions(made->plan, framework, *settings).findings) {
    if (each.rule != "reduces_every_microbatch") continue;
    EXPECT_THAT(each.what.hint,
                testing::AnyOf(testing::HasSubstr("(--data-parallel-sharding-strategy optim)"),
                               testing::HasSubstr("(--micro-batch-size ")));
  }
}

/// Of DeepSpeed's JSON on 8-GPU nodes of slow links.
std::vector<Finding> findings_of_deepspeed(const std::string& zero,
                                           const std::string& accumulation) {
  const Framework framework = *load_framework("deepspeed", "--from");
  const Configuration configuration = *read_configuration(
      R"({"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
          "gradient_accumulation_steps": )" +
          accumulation + R"(, "zero_optimization": {"overlap_comm": true, )" + zero + "}}",
      "ds_config.json");
  AskedImport asked;
  asked.job = {"llama-3.2-3b", "aws-p4d", "64", "", {{"sequence_length", "2048"}}};
  asked.layout.texts["recompute"] = "full";
  const Result<Import> made = import_plan(framework, configuration, asked);
  EXPECT_TRUE(made.ok()) << to_string(made.problems());
  const Result<Settings> settings = settings_of(framework, configuration);
  return check_predictions(made->plan, framework, *settings).findings;
}

// DeepSpeed shards over all ranks, and reduces each micro-batch in stages 2 and 3.
TEST(Predictions, NameSecondShardsAndStage1OfDeepspeed) {
  const auto fix_of = [](const std::vector<Finding>& found, const std::string& rule) {
    const auto at = std::ranges::find(found, rule, &Finding::rule);
    return at == found.end() ? "" : at->what.hint;
  };
  EXPECT_THAT(
      fix_of(findings_of_deepspeed(R"("stage": 3)", "1"), "shards_across_nodes"),
      testing::ContainsRegex("a second shard of the weights on the 8 ranks of each node "
                             "\\(zero_optimization.zero_hpz_partition_size: 8\\): a step of "
                             "[0-9]+ ms instead of [0-9]+ ms"));
  EXPECT_EQ(fix_of(findings_of_deepspeed(R"("stage": 3, "zero_hpz_partition_size": 8)", "1"),
                   "shards_across_nodes"),
            "");
  EXPECT_THAT(fix_of(findings_of_deepspeed(R"("stage": 2)", "8"), "reduces_every_microbatch"),
              testing::ContainsRegex("ZeRO-1, which does so once a step "
                                     "\\(zero_optimization.stage: 1\\): a step of [0-9.]+ s"));
  EXPECT_EQ(fix_of(findings_of_deepspeed(R"("stage": 1)", "8"), "reduces_every_microbatch"), "");
}

}  // namespace
}  // namespace shardwise
