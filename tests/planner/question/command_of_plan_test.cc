// The command that says what a plan says: what it is asked gives the plan back.
#include "planner/question/command_of_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "planner/question/flags.h"
#include "planner/search/explore.h"

namespace shardwise {
namespace {

Plan plan_of(const std::string& model, const std::string& engine, std::int64_t gpus) {
  AskedJob asked;
  asked.model = model;
  asked.cluster = "dgx-h100";
  asked.gpus = std::to_string(gpus);
  asked.engine = engine;
  asked.texts["global_batch_size"] = "64";
  Subject subject = *read_subject(asked);
  const Result<Layout> layout = read_layout({}, subject);
  return {subject.model, subject.cluster, subject.job, subject.engine, *layout};
}

/// What the command is asked, answered.
Plan answered_plan(const AskedEstimate& asked) {
  Subject subject = *read_subject(asked.job);
  const Result<Layout> layout = read_layout(asked.layout, subject);
  EXPECT_TRUE(layout) << (layout ? "" : to_string(layout.problems()));
  return {subject.model, subject.cluster, subject.job, subject.engine, layout ? *layout : Layout()};
}

TEST(CommandOfPlan, IsAskedForTheSamePlanWithEveryLayoutOfASpace) {
  for (const auto& [model, engine] :
       {std::pair("llama-3.1-8b", "megatron_ddp"), std::pair("llama-3.1-8b", "fsdp2"),
        std::pair("mixtral-8x7b", "megatron_ddp")}) {
    Plan plan = plan_of(model, engine, 8);
    SearchRequest request;
    request.model = &plan.model;
    request.cluster = &plan.cluster;
    request.job = &plan.job;
    request.engines = {&plan.engine};
    ExploreOptions options;
    std::stop_source enough;
    request.stop = enough.get_token();
    std::vector<Layout> layouts;
    options.priced = [&](const Exploration& all) {
      // A prime step: every kind of layout comes up.
      for (std::size_t row = 0; row < all.rows(); row += 37) layouts.push_back(all.layout[row]);
      enough.request_stop();
    };
    ASSERT_TRUE(explore(request, options));
    ASSERT_GT(layouts.size(), 5U);
    for (const Layout& layout : layouts) {
      plan.layout = layout;
      const Result<AskedEstimate> asked = asked_of(plan);
      ASSERT_TRUE(asked) << to_string(asked.problems());
      EXPECT_EQ(to_json(answered_plan(*asked)), to_json(plan)) << command_of(*asked);
    }
  }
}

TEST(CommandOfPlan, SaysFieldsOfTheJobThatAreOtherwise) {
  Plan plan = plan_of("llama-3.1-8b", "megatron_ddp", 8);
  plan.job.sequence_length = 8192;
  plan.job.held_back = 0.05;
  plan.job.precision = DType::fp8;
  plan.job.cuda_graphs = true;
  const Result<AskedEstimate> asked = asked_of(plan);
  ASSERT_TRUE(asked);
  EXPECT_EQ(to_json(answered_plan(*asked)), to_json(plan));
  const std::string command = command_of(*asked);
  EXPECT_THAT(command, testing::StartsWith("shardwise estimate --model llama-3.1-8b --cluster "
                                           "dgx-h100 --gpus 8 --engine megatron_ddp"));
  EXPECT_THAT(command, testing::HasSubstr(" --cuda-graphs=true"));
  EXPECT_THAT(command, testing::HasSubstr(" --sequence-length 8192"));
}

TEST(CommandOfPlan, RefusesWhatTheCatalogueHasNot) {
  Plan plan = plan_of("llama-3.1-8b", "megatron_ddp", 8);
  Plan dear = plan;
  dear.cluster.price_per_gpu_hour = 99;
  EXPECT_THAT(asked_of(dear).problems().front().message, testing::HasSubstr("another price"));
  plan.model.name = "my-own-model";
  EXPECT_THAT(to_string(asked_of(plan).problems()), testing::HasSubstr("my-own-model"));
}

TEST(ShellWord, IsReadBackByAShell) {
  EXPECT_EQ(shell_word("tp-cp-dp"), "tp-cp-dp");
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
}

}  // namespace
}  // namespace shardwise
