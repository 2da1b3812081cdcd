#include "planner/score/published.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"
#include "planner/score/rows/row.h"
#include "planner/score/score.h"
#include "planner/spec/machine/cluster_reader.h"

namespace shardwise {
namespace {

Plan plan_of(const char* model, const char* cluster, std::int64_t gpus) {
  Plan plan;
  plan.model = *load_model(model);
  plan.cluster = *with_gpus(*find_cluster(cluster), gpus);
  plan.engine = fsdp2();
  plan.layout.dp_shard = static_cast<std::int32_t>(gpus);
  return plan;
}

TEST(PublishedFigures, HaveTheErrorsThatScorePrints) {
  const Result<std::vector<Row>> rows = read_rows(published_rows(), "public.jsonl");
  ASSERT_TRUE(rows);
  const ScoreReport scored = score(*rows);
  const std::vector<PublishedFigure> figures = published_figures();
  std::size_t compared = 0;
  for (const ScoredFigure& each : scored.figures) {
    const auto found = std::ranges::find(figures, each.id, &PublishedFigure::id);
    ASSERT_NE(found, figures.end()) << each.id;
    const std::optional<double> error =
        each.quantity == Scored::memory ? found->memory_error : found->time_error;
    ASSERT_TRUE(error) << each.id;
    EXPECT_DOUBLE_EQ(*error, each.error()) << each.id;
    ++compared;
  }
  std::size_t errors = 0;
  for (const PublishedFigure& each : figures) {
    errors += each.memory_error.has_value() ? 1U : 0U;
    errors += each.time_error.has_value() ? 1U : 0U;
  }
  EXPECT_EQ(errors, compared);
  EXPECT_GT(compared, 50U);
}

TEST(NearestFigures, AreInTheOrderOfTheirDistance) {
  const std::vector<PublishedFigure> all = published_figures();
  const Plan plan = plan_of("llama-3.1-8b", "dgx-h100", 64);
  const std::vector<PublishedFigure> nearest = nearest_figures(plan, all, 6);
  ASSERT_EQ(nearest.size(), 6U);
  for (std::size_t i = 1; i < nearest.size(); ++i) {
    EXPECT_LE(distance(plan, nearest[i - 1]), distance(plan, nearest[i]));
  }
  for (const PublishedFigure& each : all) {
    const bool taken = std::ranges::find(nearest, each.id, &PublishedFigure::id) != nearest.end();
    EXPECT_TRUE(taken || distance(plan, each) >= distance(plan, nearest.back())) << each.id;
  }
  EXPECT_EQ(nearest_figures(plan, all, 1000).size(), all.size());
}

TEST(NearestFigures, OfTheRowItselfAreItFirst) {
  PublishedFigure same;
  same.gpu = "h100-sxm";
  same.engine = "fsdp2";
  same.gpus = 64;
  const Plan plan = plan_of("llama-3.1-8b", "dgx-h100", 64);
  same.gpu = plan.cluster.gpu.name;
  same.parameters = 8'030'261'248;
  EXPECT_NEAR(distance(plan, same), 0, 1e-9);
  PublishedFigure twice = same;
  twice.parameters *= 2;
  EXPECT_NEAR(distance(plan, twice), 1, 1e-9);
  PublishedFigure other = same;
  other.engine = "fsdp1";
  EXPECT_GT(distance(plan, other), distance(plan, same));
  other = same;
  other.experts = true;
  EXPECT_GT(distance(plan, other), distance(plan, twice));
}

TEST(TypicalErrors, AreMediansOfTheirSizes) {
  std::vector<PublishedFigure> figures(3);
  figures[0].time_error = -0.10;
  figures[1].time_error = 0.02;
  figures[2].time_error = 0.04;
  figures[0].memory_error = 0.5;
  const TypicalErrors errors = typical_errors(figures);
  EXPECT_DOUBLE_EQ(*errors.time, 0.04);
  EXPECT_DOUBLE_EQ(*errors.memory, 0.5);
  EXPECT_FALSE(typical_errors({}).time);
}

TEST(PublishedFigures, NearestOfEachQuantityHaveSomeOfBoth) {
  const std::vector<PublishedFigure> all = published_figures();
  const Plan plan = plan_of("llama-3.1-8b", "dgx-h100", 8);
  const std::vector<PublishedFigure> nearest = nearest_measured(plan, all, 3);
  const auto with = [&](std::optional<double> PublishedFigure::*of) {
    return std::ranges::count_if(
        nearest, [&](const PublishedFigure& each) { return (each.*of).has_value(); });
  };
  EXPECT_GE(with(&PublishedFigure::time_error), 3);
  EXPECT_GE(with(&PublishedFigure::memory_error), 3);
  EXPECT_LE(nearest.size(), 6U);
  for (std::size_t i = 1; i < nearest.size(); ++i) {
    EXPECT_LE(distance(plan, nearest[i - 1]), distance(plan, nearest[i]));
  }
}

}  // namespace
}  // namespace shardwise
