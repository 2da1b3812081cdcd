#include "answers/helpful_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"
#include "planner/spec/machine/cluster_reader.h"

namespace shardwise::sim {
namespace {

using testing::StartsWith;

/// A question, its answer, and what would help: searched once for all tests.
struct Helped {
  Helped() {
    question.model = *load_model("gpt2");
    question.clusters = {*with_gpus(*find_cluster("aws-p4d"), 16)};
    question.engines = {find_engine("megatron_ddp"), find_engine("fsdp2")};
    question.takes_engine = true;
    question.job.global_batch_size = 64;
    question.job.sequence_length = 1024;
    question.threads = 2;
    found = *answer(question);
    changes = helpful_changes(question, found);
  }
  PlanQuestion question;
  PlanAnswer found;
  std::vector<HelpfulChange> changes;
};

class HelpfulChanges : public testing::Test {
 protected:
  static const Helped& helped() {
    static const Helped kHelped;
    return kHelped;
  }
  static const HelpfulChange* find(const std::string& begin) {
    const auto at = std::ranges::find_if(
        helped().changes, [&](const HelpfulChange& each) { return each.text.starts_with(begin); });
    return at == helped().changes.end() ? nullptr : &*at;
  }

  const PlanQuestion& question_ = helped().question;
  const PlanAnswer& answer_ = helped().found;
  const std::vector<HelpfulChange>& changes_ = helped().changes;
};

TEST_F(HelpfulChanges, AreSortedByWhatTheySave) {
  ASSERT_GE(changes_.size(), 4U);
  EXPECT_TRUE(std::ranges::is_sorted(changes_, std::ranges::greater(), &HelpfulChange::faster));
  for (const HelpfulChange& each : changes_) {
    EXPECT_NEAR(each.faster, 1 - each.step / answer_.best.front().step(), 1e-12) << each.text;
  }
}

// What is said is what `plan` says of the changed question.
TEST_F(HelpfulChanges, AreAnswersOfTheChangedQuestion) {
  const HelpfulChange* const twice = find("32 GPUs");
  ASSERT_NE(twice, nullptr);
  EXPECT_EQ(twice->flags, "--gpus 32");
  PlanQuestion changed = question_;
  changed.clusters = {*with_gpus(question_.clusters.front(), 32)};
  changed.takes_engine = false;
  changed.engines = {find_engine(answer_.best.front().engine)};
  const PlanAnswer found = *answer(changed);
  EXPECT_EQ(twice->step, found.best.front().step());
  EXPECT_EQ(twice->memory, found.best.front().candidate.cost.point);
}

// A faster link takes nothing away from any layout.
TEST_F(HelpfulChanges, OfLinksMakeNoStepLonger) {
  int links = 0;
  for (const HelpfulChange& each : changes_) {
    if (each.text.find(" x 2: ") == std::string::npos) continue;
    ++links;
    EXPECT_GE(each.faster, -1e-3) << each.text;
    EXPECT_EQ(each.flags, "");
  }
  EXPECT_EQ(links, 2);  // inside a machine and between machines
}

TEST_F(HelpfulChanges, HaveTheOtherEngines) {
  const HelpfulChange* const other =
      find(answer_.best.front().engine == "fsdp2" ? "engine megatron_ddp" : "engine fsdp2");
  ASSERT_NE(other, nullptr);
  EXPECT_THAT(other->flags, StartsWith("--engine "));
  EXPECT_LE(other->faster, 0);  // the fastest was taken
}

// The fastest cluster of the catalogue with as many GPUs, as `plan` answers for it.
TEST_F(HelpfulChanges, HaveAnotherCluster) {
  const HelpfulChange* const other = find("cluster ");
  ASSERT_NE(other, nullptr);
  EXPECT_THAT(other->text, testing::EndsWith(" (fastest)"));
  EXPECT_GT(other->faster, 0);
  const std::string name = other->flags.substr(std::string("--cluster ").size());
  EXPECT_NE(name, "aws-p4d");
  EXPECT_EQ(other->plan.cluster.name, name);
  EXPECT_EQ(other->plan.cluster.gpus, 16);
  PlanQuestion changed = question_;
  changed.clusters = {*with_gpus(*find_cluster(name), 16)};
  changed.takes_engine = false;
  changed.engines = {find_engine(answer_.best.front().engine)};
  EXPECT_EQ(other->step, answer(changed)->best.front().step());
  // No other one that many people have is as fast.
  for (const char* each : {"dgx-a100", "dgx-h100", "gcp-a2-ultra"}) {
    changed.clusters = {*with_gpus(*find_cluster(each), 16)};
    EXPECT_LE(other->step, answer(changed)->best.front().step()) << each;
  }
}

TEST(LittleHelp, SaysWhatIsSlower) {
  std::vector<HelpfulChange> changes(4);
  changes[0].text = "A";
  changes[0].faster = 0.2;
  changes[1].text = "B";
  changes[1].faster = 0.003;
  changes[2].text = "C";
  changes[2].faster = -0.004;
  changes[3].text = "D";
  changes[3].faster = -0.017;
  EXPECT_EQ(little_help_words(changes),
            "less than 0.5 % faster or slower: B; C; slower: D (+1.7 %)");
  changes.resize(1);
  EXPECT_EQ(little_help_words(changes), "");
}

}  // namespace
}  // namespace shardwise::sim
