#include <gtest/gtest.h>

#include "planner/cost/layer/expert_load.h"
#include "planner/estimate/anchor.h"
#include "planner/estimate/estimate.h"
#include "tests/planner/cost/step/time_fixture.h"

namespace shardwise {
namespace {

using test::Priced;

StepReport estimate_of(const Priced& p) {
  return estimate(p.model, p.cluster, p.job, p.engine, p.layout);
}

TEST(Anchor, MakesThePredictionOfItsOwnConfigurationTheMeasurement) {
  Priced p;
  p.layout.dp_shard = 8;
  p.size(2);
  StepReport report = estimate_of(p);
  StepReport measured = report;
  measured.step_time = 1.25 * report.step_time;
  anchor(report, measured, report.step_time);
  EXPECT_NEAR(report.step_time.value(), measured.step_time.value(), 1e-12);
  EXPECT_DOUBLE_EQ(report.time.total().value(), report.step_time.value());
  EXPECT_NEAR(report.time.anchored / report.step_time, 0.2, 1e-12);
  EXPECT_EQ(report.explanations.back().subject, "time.anchored");
}

TEST(Anchor, CarriesTheShareOverToOtherConfigurations) {
  Priced other;
  other.layout.dp_shard = 4;
  other.layout.tp = 2;
  other.layout.sequence_parallel = true;
  other.size(8);
  StepReport report = estimate_of(other);
  const StepReport before = report;
  StepReport measured;
  measured.step_time = Seconds(0.9);
  anchor(report, measured, Seconds(1.0));
  EXPECT_NEAR(report.step_time / before.step_time, 0.9, 1e-12);
  EXPECT_NEAR(report.tokens_per_s / before.tokens_per_s, 1 / 0.9, 1e-12);
  EXPECT_NEAR(report.mfu / before.mfu, 1 / 0.9, 1e-12);
  EXPECT_EQ(report.time.forward, before.time.forward);
}

/// 64 experts, 4 a token.
Priced mixture(double skew, std::int32_t ep) {
  Priced p;
  p.model = test::mixture(8, 1024, 16, 64, 4, 512, 0);
  p.job.expert_skew = skew;
  p.layout.ep = ep;
  p.layout.dp_shard = 64;
  return p;
}

double load(const Priced& p) { return busiest_expert_rank(p.model, p.job, p.layout); }

TEST(BusiestExpertRank, IsTheMeanWithoutSkewOrWithAllExpertsOnOneRank) {
  EXPECT_EQ(load(mixture(0, 16)), 1);
  EXPECT_EQ(load(mixture(1.5, 1)), 1);
}

TEST(BusiestExpertRank, GrowsWithSkewAndWithFewerExpertsARank) {
  EXPECT_GT(load(mixture(0.3, 16)), 1);
  EXPECT_GT(load(mixture(0.6, 16)), load(mixture(0.3, 16)));
  EXPECT_GT(load(mixture(0.3, 64)), load(mixture(0.3, 16)));
}

TEST(BusiestExpertRank, DrawsNoMoreThanEveryTokenOnce) {
  // One expert a rank: at most each token once, 64 / 4 times the mean.
  EXPECT_DOUBLE_EQ(load(mixture(8, 64)), 16);
}

TEST(BusiestExpertRank, MultipliesAStatedImbalance) {
  Priced p = mixture(0.3, 16);
  const double skewed = load(p);
  p.job.expert_imbalance = 1.5;
  EXPECT_DOUBLE_EQ(load(p), 1.5 * skewed);
}

}  // namespace
}  // namespace shardwise
