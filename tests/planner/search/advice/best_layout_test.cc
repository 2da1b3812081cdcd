#include "planner/search/advice/best_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "planner/search/advice/faster_links.h"
#include "tests/planner/search/search_job.h"

namespace shardwise {
namespace {

/// GPUs with so little memory that more of it, or less, makes another layout the best.
SearchJob two_nodes() {
  SearchJob job("gpt2-medium", 16, "megatron_ddp");
  job.cluster.gpu.hbm_bytes = 8_GiB;
  return job;
}

BestQuestion question_of(const SearchJob& job, const ClusterSpec& cluster) {
  return {&job.model, &cluster, &job.job, job.request.engines.front(), false, {}, {}};
}

/// The best of all layouts, each priced alone.
std::optional<Candidate> brute_best(const SearchJob& job) {
  const Bytes usable = usable_memory(job.cluster, job.job, Bytes(0));
  std::optional<Candidate> best;
  for (const Candidate& each : that_fit(job.all(), usable)) {
    if (!best || ranks_before(Objective::step_time, each, *best)) best = each;
  }
  return best;
}

TEST(BestLayout, IsTheBestOfAllLayoutsThatFit) {
  const SearchJob job = two_nodes();
  const BestLayout best = best_layout(question_of(job, job.cluster));
  ASSERT_TRUE(best.report);
  const std::optional<Candidate> brute = brute_best(job);
  ASSERT_TRUE(brute);
  EXPECT_EQ(best.report->layout, brute->layout);
  EXPECT_EQ(best.report->step_time, brute->cost.step_time);
  EXPECT_EQ(best.report->verdict.fit, Fit::fits);
}

TEST(BestLayout, SaysWhatTheSmallestLayoutLacksWhereNothingFits) {
  SearchJob job = two_nodes();
  job.cluster.gpu.hbm_bytes = 1_GiB;
  const BestLayout best = best_layout(question_of(job, job.cluster));
  EXPECT_FALSE(best.report);
  ASSERT_TRUE(best.smallest);
  std::vector<Candidate> all = job.all();
  const auto least =
      std::ranges::min_element(all, {}, [](const Candidate& each) { return each.cost.point; });
  EXPECT_EQ(best.smallest->cost.point, least->cost.point);
  EXPECT_EQ(best.lacks(), least->cost.needed - usable_memory(job.cluster, job.job, Bytes(0)));
}

TEST(BestLayout, SaysWhyNoLayoutIsLegal) {
  SearchJob job = two_nodes();
  job.job.precision = DType::fp8;
  job.cluster.gpu.peaks = {{DType::bf16, FlopsPerSecond(1e15)}};
  EXPECT_THAT(best_layout(question_of(job, job.cluster)).refused, testing::HasSubstr("fp8"));
  job.job.precision = DType::bf16;
  job.job.global_batch_size = 1;
  job.request.engines = {find_engine("fsdp2")};
  job.cluster = *with_gpus(job.cluster, 4096);
  const BestLayout none = best_layout(question_of(job, job.cluster));
  EXPECT_FALSE(none.report);
  EXPECT_NE(none.refused, "");
}

TEST(BestLayout, HasNothingWhenItWasStopped) {
  const SearchJob job = two_nodes();
  const std::stop_source stop;
  stop.request_stop();
  BestQuestion question = question_of(job, job.cluster);
  question.stop = stop.get_token();
  const BestLayout best = best_layout(question);
  EXPECT_TRUE(best.stopped);
  EXPECT_FALSE(best.report);
}

TEST(FasterLinks, ChangeTheBandwidthOfOneTierAndNothingElse) {
  const ClusterSpec cluster = *with_gpus(*find_cluster("dgx-h100"), 16);
  ASSERT_EQ(reached_tiers(cluster), cluster.tiers.size());
  for (std::size_t tier = 0; tier < cluster.tiers.size(); ++tier) {
    const ClusterSpec faster = with_bandwidth(cluster, tier, 2);
    EXPECT_EQ(faster.tiers[tier].bandwidth, 2 * cluster.tiers[tier].bandwidth);
    // A factor of two is exact in both directions.
    EXPECT_EQ(with_bandwidth(faster, tier, 0.5), cluster);
  }
}

TEST(FasterLinks, AreNoneOfATierThatASmallClusterDoesNotReach) {
  EXPECT_EQ(reached_tiers(*with_gpus(*find_cluster("dgx-h100"), 8)), 1U);
  EXPECT_EQ(reached_tiers(*with_gpus(*find_cluster("dgx-h100"), 1)), 0U);
}

}  // namespace
}  // namespace shardwise
