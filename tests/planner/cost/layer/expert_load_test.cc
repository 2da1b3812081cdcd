#include "planner/cost/layer/expert_load.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "planner/estimate/estimate.h"
#include "tests/planner/cost/step/time_fixture.h"

namespace shardwise {
namespace {

constexpr std::int32_t kExperts = 16;

ModelSpec sixteen_experts(std::int64_t chosen) {
  return test::mixture(2, 1024, 8, kExperts, chosen, 1024, 0);
}

JobSpec skewed(double skew) {
  JobSpec job;
  job.expert_skew = skew;
  return job;
}

Layout over(std::int32_t ep) {
  Layout layout;
  layout.dp_shard = ep;
  layout.ep = ep;
  return layout;
}

// With an expert a rank the busiest rank is that of the most popular expert: 16 p_1.
TEST(BusiestExpertRank, IsThatOfTheMostPopularExpert) {
  double all = 0;
  for (int i = 1; i <= kExperts; ++i) all += 1.0 / i;
  EXPECT_NEAR(busiest_expert_rank(sixteen_experts(1), skewed(1), over(16)), 16 / all, 1e-12);
  // A token goes to two different experts: none gets more than half of the copies.
  EXPECT_NEAR(busiest_expert_rank(sixteen_experts(2), skewed(8), over(16)), 16 * 0.5, 1e-12);
}

// Tokens drawn from the stated popularity, experts dealt out so that the first rank has the most
// popular one: its share of many tokens is what the formula says.
TEST(BusiestExpertRank, IsTheShareOfTokensDrawnFromTheStatedPopularity) {
  constexpr unsigned kSeed = 7;
  constexpr int kTokens = 200'000;
  constexpr std::int32_t kRanks = 4;
  constexpr double kSkew = 0.7;
  std::vector<double> popularity;
  for (int i = 1; i <= kExperts; ++i) popularity.push_back(std::pow(i, -kSkew));
  std::mt19937 random(kSeed);
  std::discrete_distribution<int> draw(popularity.begin(), popularity.end());
  double first_expert = 0;
  for (int i = 0; i < kTokens; ++i) first_expert += draw(random) == 0 ? 1 : 0;
  const double first = first_expert / kTokens;
  constexpr double kOthers = 3;  // of 16 experts on 4 ranks
  const double load = kRanks * (first + kOthers * (1 - first) / (kExperts - 1));
  EXPECT_NEAR(busiest_expert_rank(sixteen_experts(1), skewed(kSkew), over(kRanks)), load, 0.01)
      << "seed " << kSeed;
}

TEST(Estimate, SaysHowTokensSpreadOverExperts) {
  test::Priced p;
  p.model = sixteen_experts(2);
  p.job.expert_skew = 0.5;
  p.layout = over(8);
  p.layout.zero_stage = 1;
  p.size(1);
  const StepReport report = estimate(p.model, p.cluster, p.job, p.engine, p.layout);
  const bool said = std::ranges::any_of(
      report.assumptions, [](const Assumption& each) { return each.id == "experts.load"; });
  EXPECT_TRUE(said);
}

}  // namespace
}  // namespace shardwise
