#include "planner/score/interval_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "planner/score/interval_text.h"
#include "planner/score/published.h"
#include "planner/score/rows/row.h"

namespace shardwise {
namespace {

Residual residual(int source, double value, std::string family = "pytorch") {
  return {IntervalOf::step, "s" + std::to_string(source), std::move(family), "hopper", value};
}

/// Of sources that differ by `between`, each with rows that differ by `within`.
std::vector<Residual> drawn(std::uint32_t seed, int sources, int rows, double between,
                            double within) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<Residual> all;
  for (int s = 0; s < sources; ++s) {
    const double bias = between * normal(random);
    for (int r = 0; r < rows; ++r) all.push_back(residual(s, bias + within * normal(random)));
  }
  return all;
}

// New sources of the same kind are covered as the level says. Tolerance: two standard errors of a
// share of 0.9 among the 60 sources of the calibration, sqrt(0.9 x 0.1 / 60).
TEST(FitIntervals, CoversSourcesThatItHasNotSeen) {
  for (const double between : {0.0, 0.1, 0.3}) {
    SCOPED_TRACE(between);
    const IntervalTable table = fit_intervals(drawn(1, 60, 40, between, 0.1));
    ASSERT_EQ(table.coverage.size(), 1U);
    EXPECT_NEAR(table.coverage.front().of_sources, 0.9, 0.005);
    const ErrorInterval interval = interval_in(table, IntervalOf::step, "pytorch", "hopper");
    int covered = 0;
    const std::vector<Residual> fresh = drawn(2, 400, 40, between, 0.1);
    for (const Residual& each : fresh) {
      const double ratio = std::exp(each.value);
      covered += ratio >= interval.low && ratio <= interval.high ? 1 : 0;
    }
    EXPECT_NEAR(covered / static_cast<double>(fresh.size()), 0.9, 0.08);
  }
}

// The 5th and 95th percentile of a normal distribution, where sources are alike.
TEST(FitIntervals, HasTheQuantilesOfADistribution) {
  const IntervalTable table = fit_intervals(drawn(3, 50, 200, 0, 0.1));
  const ErrorInterval interval = interval_in(table, IntervalOf::step, "pytorch", "hopper");
  EXPECT_NEAR(std::log(interval.low), -0.1645, 0.005);
  EXPECT_NEAR(std::log(interval.high), 0.1645, 0.005);
  EXPECT_NEAR(table.coverage.front().tail, 0.05, 0.005);
}

TEST(FitIntervals, WeighsSourcesAndNotRows) {
  std::vector<Residual> all = drawn(4, 60, 10, 0, 0.1);
  for (int r = 0; r < 20'000; ++r) all.push_back(residual(99, 1.0));
  const ErrorInterval interval =
      interval_in(fit_intervals(all), IntervalOf::step, "pytorch", "hopper");
  EXPECT_LT(interval.high, 1.4) << "97 % of the rows lie above, 2 % of the sources";
}

TEST(FitIntervals, TakesACellOfFiveSources) {
  std::vector<Residual> all;
  for (int s = 0; s < 9; ++s) {
    for (int r = 0; r < 10; ++r) {
      all.push_back(residual(s, 0.01 * r, s < 4 ? "megatron" : "pytorch"));
    }
  }
  const IntervalTable table = fit_intervals(all);
  ASSERT_EQ(table.cells.size(), 2U);
  EXPECT_EQ(table.cells[0].interval.family, "pytorch");
  EXPECT_EQ(table.cells[0].interval.sources, 5);
  EXPECT_EQ(table.cells[1].interval.family, "");
  EXPECT_EQ(table.cells[1].interval.rows, 90);
}

TEST(FitIntervals, ContainsThePrediction) {
  std::vector<Residual> all;
  for (int s = 0; s < 6; ++s) {
    for (int r = 0; r < 10; ++r) all.push_back(residual(s, 0.2 + 0.01 * r));
  }
  const ErrorInterval interval = fit_intervals(all).cells.front().interval;
  EXPECT_EQ(interval.low, 1);
  EXPECT_GT(interval.high, 1.3);
}

ScoredFigure timed(std::string id, double measured, double predicted, const char* question) {
  ScoredFigure figure;
  figure.id = std::move(id);
  figure.source = figure.id.substr(0, figure.id.find('/'));
  figure.quantity = Scored::time;
  figure.measured = measured;
  figure.predicted = predicted;
  figure.engine = "fsdp2";
  figure.architecture = "hopper";
  figure.question = question;
  figure.sequences = 8;
  return figure;
}

TEST(ResidualsOf, PairsRunsOfOneQuestionThatArePredictedAlike) {
  ScoreReport report;
  report.figures = {timed("a/1", 1.1, 1.0, "x"), timed("a/2", 1.2, 1.0, "x"),
                    timed("a/3", 9.0, 8.0, "x"), timed("a/4", 1.0, 1.0, "y"),
                    timed("b/1", 1.0, 1.0, "x")};
  std::vector<double> ratios;
  std::size_t steps = 0;
  for (const Residual& each : residuals_of(report)) {
    if (each.quantity == IntervalOf::step_ratio) ratios.push_back(each.value);
    if (each.quantity == IntervalOf::step) ++steps;
  }
  EXPECT_EQ(steps, 5U);
  const double apart = std::log(1.2 / 1.1);
  EXPECT_THAT(ratios, testing::UnorderedElementsAre(testing::DoubleNear(apart, 1e-12),
                                                    testing::DoubleNear(-apart, 1e-12)));
}

// The rows that anyone has: they are among those that the built-in table was calibrated on.
TEST(BuiltInIntervals, CoverTheRowsOfTheRepository) {
  const Result<std::vector<Row>> rows = read_rows(published_rows(), "public.jsonl");
  ASSERT_TRUE(rows);
  int covered = 0;
  int all = 0;
  for (const Residual& each : residuals_of(score(*rows))) {
    if (each.quantity == IntervalOf::step_ratio) continue;
    const ErrorInterval interval =
        interval_in(interval_table(), each.quantity, each.family, each.architecture);
    ASSERT_TRUE(interval.known()) << each.source;
    const double ratio = std::exp(each.value);
    covered += ratio >= interval.low && ratio <= interval.high ? 1 : 0;
    ++all;
  }
  EXPECT_GT(all, 70);
  EXPECT_GE(covered, 0.85 * all);
}

TEST(IntervalText, HasARowForEachSourceAndCell) {
  const IntervalTable table = fit_intervals(drawn(5, 12, 20, 0.1, 0.1));
  const std::string text = to_text(table, false);
  for (const SourceCoverage& each : table.by_source)
    EXPECT_THAT(text, testing::HasSubstr(each.source));
  EXPECT_THAT(text, testing::HasSubstr("mean of 12 sources"));
  EXPECT_THAT(text, testing::HasSubstr("pytorch"));
}

}  // namespace
}  // namespace shardwise
