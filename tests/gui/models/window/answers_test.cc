// View models of one layout: why not, why this number.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "gui/models/explore/simulated_rows.h"
#include "gui/models/explore/why_model.h"
#include "gui/models/session/session.h"
#include "gui/models/window/explain_model.h"
#include "gui/models/window/summary_model.h"
#include "planner/estimate/estimate.h"
#include "planner/spec/plan/names.h"
#include "planner/spec/text/format.h"
#include "simulator/clock/simulate.h"
#include "simulator/comparison/tiles.h"
#include "tests/gui/small_plan.h"

namespace shardwise::view {
namespace {

Plan tensor_pipeline() {
  Plan plan = test::small_plan();
  plan.layout.tp = 2;
  plan.layout.pp = 2;
  plan.layout.dp_shard = 2;
  plan.layout.sequence_parallel = true;
  return plan;
}

TEST(Waterfall, StepsSumToTheDifference) {
  const StepReport winner = test::report_of(test::small_plan());
  const StepReport other = test::report_of(tensor_pipeline());
  for (const Waterfall& fall : {time_waterfall(winner, other), memory_waterfall(winner, other),
                                time_waterfall(other, winner), memory_waterfall(other, winner)}) {
    double sum = fall.winner;
    for (const WaterStep& step : fall.steps) sum += step.change;
    EXPECT_NEAR(sum, fall.other, 1e-9 * std::max(std::abs(sum), 1.0));
    EXPECT_GT(fall.steps.size(), 1U);
  }
  EXPECT_EQ(memory_waterfall(winner, other).other,
            static_cast<double>(other.verdict.point.value()));
  EXPECT_NEAR(time_waterfall(winner, other).winner, winner.step_time.value(),
              1e-9 * winner.step_time.value());
}

TEST(Waterfall, BetweenALayoutAndItselfHasNoSteps) {
  const StepReport report = test::report_of(tensor_pipeline());
  EXPECT_TRUE(time_waterfall(report, report).steps.empty());
  EXPECT_TRUE(memory_waterfall(report, report).steps.empty());
}

TEST(VerdictText, SaysWhatDoesNotFitAndByHowMuch) {
  const StepReport winner = test::report_of(test::small_plan());
  const StepReport other = test::report_of(test::plan_that_cannot_fit());
  EXPECT_THAT(verdict_text(winner, other), testing::StartsWith("does not fit: "));
  EXPECT_THAT(verdict_text(winner, test::report_of(tensor_pipeline())),
              testing::HasSubstr("than the best"));
}

TEST(WhyTile, EveryTileOfTheSummaryIsExplained) {
  for (const Plan& plan :
       {test::small_plan(), tensor_pipeline(), test::small_plan(1), test::plan_that_cannot_fit()}) {
    const StepReport report = test::report_of(plan, Detail::explained);
    for (const Tile& tile : summary_tiles(plan, report)) {
      const WhyNumber why = why_tile(report, tile.id);
      EXPECT_FALSE(why.formula.empty()) << tile.id;
      if (tile.id == "step" || tile.id == "mfu" || tile.id == "memory") {
        EXPECT_FALSE(why.values.empty()) << tile.id;
        EXPECT_FALSE(why.source.empty()) << tile.id;
      }
      EXPECT_NE(tile.command, "");
    }
  }
}

TEST(WhyTile, ExplainsTheNumberThatTheTileShows) {
  const Plan plan = tensor_pipeline();
  const StepReport explained = test::report_of(plan, Detail::explained);
  const StepReport simulated = sim::simulate(plan).report;
  ASSERT_NE(simulated.step_time, explained.step_time);
  const StepReport both = with_reasons(simulated, explained, plan);
  for (const auto& [id, number] :
       {std::pair{"step", format_seconds(simulated.step_time)},
        std::pair{"mfu", format_percent(simulated.mfu)},
        std::pair{"tokens", format_scaled(simulated.tokens_per_s)},
        std::pair{"cost", format_dollars(simulated.dollars_per_1e9_tokens)},
        std::pair{"bubble", format_percent(simulated.time.bubble / simulated.step_time)},
        std::pair{"exposed",
                  format_percent(sim::exposed_communication(simulated) / simulated.step_time)}}) {
    EXPECT_THAT(why_tile(both, id).values, testing::HasSubstr(number)) << id;
  }
  EXPECT_THAT(why_tile(both, "step").source, testing::HasSubstr("simulated"));
  EXPECT_THAT(why_tile(explained, "step").source, testing::HasSubstr("estimated"));
}

TEST(WhyNumbers, AreThoseWithTheWord) {
  const StepReport report = test::report_of(tensor_pipeline(), Detail::explained);
  const std::size_t all = why_numbers(report, "").size();
  EXPECT_EQ(all, report.explanations.size() + report.assumptions.size());
  const std::vector<WhyNumber> times = why_numbers(report, "time.");
  EXPECT_GT(times.size(), 2U);
  EXPECT_LT(times.size(), all);
  EXPECT_TRUE(why_numbers(report, "no such word").empty());
}

TEST(CategoryLines, OfAGroupSumToIt) {
  const StepReport report = test::report_of(tensor_pipeline());
  const std::vector<CategoryLine> lines = category_lines(report);
  const StageMemory& stage = report.stages[static_cast<std::size_t>(report.verdict.worst_stage)];
  for (std::size_t p = 0; p < kMemoryPhases; ++p) {
    Bytes groups;
    Bytes parts;
    for (const CategoryLine& line : lines) (line.whole_group ? groups : parts) += line.bytes[p];
    EXPECT_EQ(groups, stage.phases[p].total());
    EXPECT_EQ(parts, stage.phases[p].total());
  }
}

// Bytes and seconds of the parts, not only of the whole.
TEST(WhyNumbers, OfMemoryAndColumnsAreTheirOwn) {
  const StepReport report = test::report_of(tensor_pipeline(), Detail::explained);
  const auto of = [&](const std::string& subject) -> const Explanation& {
    return *std::ranges::find(report.explanations, subject, &Explanation::subject);
  };
  const std::string worst(name_of(report.verdict.worst_phase));
  ASSERT_EQ(worst, "steady_forward_backward");
  const WhyNumber moments = why_subject(report, "memory.pass.optimizer moments");
  EXPECT_EQ(moments.formula, of(worst + ".optimizer_moments").formula);
  EXPECT_EQ(moments.values, of(worst + ".optimizer_moments").values);
  const WhyNumber weights = why_subject(report, "memory.step.weights");
  EXPECT_THAT(weights.values, testing::StartsWith("at the peak, in phase pass: "));
  EXPECT_THAT(weights.values, testing::HasSubstr(of(worst + ".weights").values));
  EXPECT_THAT(weights.values,
              testing::HasSubstr("main weights: " + of(worst + ".main_weights").values));
  const WhyNumber fullest =
      why_subject(report, fmt::format("memory.stage {}.activations", report.verdict.worst_stage));
  EXPECT_THAT(fullest.values, testing::HasSubstr(of(worst + ".activations").values));
  const WhyNumber other = why_subject(
      report, fmt::format("memory.stage {}.activations", 1 - report.verdict.worst_stage));
  EXPECT_EQ(other.values, "");
  const WhyNumber peak = why_subject(report, "column.memory");
  EXPECT_THAT(peak.values, testing::HasSubstr(of(worst + ".total").values));
  EXPECT_EQ(why_subject(report, "column.tp").values, "");
}

TEST(Winner, IsTheBestByTheStepTimeModel) {
  Session session(tensor_pipeline());
  session.settle();
  const AppState& state = session.state();
  ASSERT_TRUE(state.winner);
  EXPECT_EQ(state.winner->layout, state.answer.rows[*best_by_model(state.answer)].layout);
  Session none(test::plan_that_cannot_fit());
  none.settle();
  EXPECT_FALSE(none.state().winner);
}

}  // namespace
}  // namespace shardwise::view
