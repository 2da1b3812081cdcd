// A layout from some of its fields: what is not given follows.
#include "planner/question/asked_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "planner/search/advice/default_batch.h"

namespace shardwise {
namespace {

using Texts = std::map<std::string, std::string>;

Subject llama_subject(const std::string& gpus, const std::string& engine = "") {
  AskedJob asked;
  asked.model = "llama-3.1-8b";
  asked.cluster = "dgx-h100";
  asked.gpus = gpus;
  asked.engine = engine;
  return *read_subject(asked);
}

bool assumes(const Subject& subject, const std::string& id) {
  for (const Assumption& each : subject.assumptions) {
    if (each.id == id) return true;
  }
  return false;
}

TEST(AskedLayout, FillsTheGpusWithDataParallelism) {
  Subject subject = llama_subject("64");
  const Result<Layout> layout = read_layout({Texts{{"tp", "4"}, {"pp", "2"}}}, subject);
  ASSERT_TRUE(layout.ok()) << to_string(layout.problems());
  EXPECT_EQ(layout->dp_shard, 8);
  EXPECT_EQ(layout->world(), 64);
  EXPECT_TRUE(layout->sequence_parallel);
  EXPECT_EQ(layout->zero_stage, subject.engine.zero_stages.back());
  EXPECT_EQ(subject.job.global_batch_size,
            default_batch(subject.cluster, llama_subject("64").job, *layout));
  EXPECT_TRUE(assumes(subject, "global_batch_size"));
  EXPECT_FALSE(assumes(subject, "gpus"));
}

TEST(AskedLayout, KeepsWhatIsGiven) {
  Subject subject = llama_subject("8", "megatron_fsdp");
  const Result<Layout> layout = read_layout(
      {Texts{{"tp", "2"}, {"sequence_parallel", "false"}, {"zero_stage", "2"}, {"dp_shard", ""}}},
      subject);
  ASSERT_TRUE(layout.ok()) << to_string(layout.problems());
  EXPECT_FALSE(layout->sequence_parallel);
  EXPECT_EQ(layout->zero_stage, 2);
  EXPECT_EQ(layout->dp_shard, 4);
}

// A plan states its loss: what the engine's users run, said among the assumptions.
TEST(AskedLayout, SettlesTheLossThatNobodyChose) {
  Subject plain = llama_subject("8", "fsdp2");
  EXPECT_TRUE(assumes(plain, "loss.usual"));
  ASSERT_TRUE(read_layout({}, plain).ok());
  EXPECT_EQ(plain.job.loss, LossKernel::materialised);

  Subject megatron = llama_subject("8", "megatron_ddp");
  EXPECT_TRUE(assumes(megatron, "loss.usual"));
  ASSERT_TRUE(read_layout({}, megatron).ok());
  EXPECT_EQ(megatron.job.loss, LossKernel::fused_fp32);
}

// Without a count of GPUs the degrees say how many there are.
TEST(AskedLayout, TakesTheGpusThatTheDegreesNeed) {
  Subject product = llama_subject("");
  ASSERT_TRUE(read_layout({Texts{{"tp", "8"}, {"dp_shard", "3"}}}, product).ok());
  EXPECT_EQ(product.cluster.gpus, 24);
  EXPECT_TRUE(assumes(product, "gpus"));

  Subject whole_nodes = llama_subject("");
  const Result<Layout> layout =
      read_layout({Texts{{"dp_replicate", "3"}, {"zero_stage", "1"}}}, whole_nodes);
  ASSERT_TRUE(layout.ok()) << to_string(layout.problems());
  EXPECT_EQ(whole_nodes.cluster.gpus, 24);
  EXPECT_EQ(layout->dp_shard, 8);

  Subject node = llama_subject("");
  ASSERT_TRUE(read_layout({Texts{{"tp", "2"}}}, node).ok());
  EXPECT_EQ(node.cluster.gpus, 8);
  EXPECT_FALSE(assumes(node, "gpus"));
}

TEST(AskedLayout, GivesEachRankOneMicrobatchWhereItGrows) {
  Subject subject = llama_subject("64");
  const Result<Layout> layout = read_layout({Texts{{"tp", "4"}, {"micro_batch_size", "2"}}},
                                            subject, BatchWhenOpen::one_microbatch);
  ASSERT_TRUE(layout.ok()) << to_string(layout.problems());
  EXPECT_EQ(subject.job.global_batch_size, 16 * 2);
}

TEST(AskedLayout, ReportsEveryValueThatIsNone) {
  Subject subject = llama_subject("8");
  const Result<Layout> layout =
      read_layout({Texts{{"tp", "two"}, {"recompute", "some"}, {"pp", "1"}}}, subject);
  ASSERT_FALSE(layout.ok());
  ASSERT_EQ(layout.problems().size(), 2U);
  EXPECT_EQ(layout.problems()[0].path, "--recompute");
  EXPECT_EQ(layout.problems()[1].path, "--tp");
}

TEST(AskedLayout, IsLegalOrRefused) {
  Subject subject = llama_subject("8");
  const Result<Layout> layout = read_layout({Texts{{"tp", "3"}}}, subject);
  ASSERT_FALSE(layout.ok());
  EXPECT_EQ(layout.problems().front().file, "command line");
}

}  // namespace
}  // namespace shardwise
