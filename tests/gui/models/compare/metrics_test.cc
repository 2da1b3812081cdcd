// A run is followed by the file that it writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "gui/models/commands/commands.h"
#include "gui/models/compare/metrics_state.h"
#include "gui/models/session/session.h"
#include "gui/models/window/summary_model.h"
#include "planner/estimate/estimate.h"
#include "tests/gui/small_plan.h"
#include "tests/support/scratch.h"

namespace shardwise::view {
namespace {

constexpr const char* kHead = "{\"schema\":\"shardwise.metrics/1\"}\n";

std::string line(int step, double seconds) {
  return "{\"step\":" + std::to_string(step) +
         ",\"loss\":2.5,\"gradient_norm\":1,\"learning_rate\":0.001,\"step_time_s\":" +
         std::to_string(seconds) + ",\"tokens_per_s\":1000,\"held_by_checkpoint_s\":0}\n";
}

TEST(MedianTime, IsNotMovedByAFirstStepThatTakesLong) {
  std::vector<MetricsStep> steps(5);
  for (MetricsStep& each : steps) each.time = Seconds(1);
  steps.front().time = Seconds(60);
  EXPECT_EQ(median_time(steps), Seconds(1));
  EXPECT_EQ(median_time({}), Seconds(0));
}

double loss_of(const MetricsStep& step) { return step.loss; }

TEST(CourseOf, HasAPointForEachStepOfAShortRun) {
  std::vector<MetricsStep> steps(3);
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i].step = static_cast<std::int64_t>(i);
  steps[1].loss = std::numeric_limits<double>::quiet_NaN();
  steps[2].loss = -1;
  const MetricsCourse course = course_of(steps, loss_of);
  EXPECT_EQ(course.step, (std::vector<double>{0, 1, 2}));
  EXPECT_TRUE(std::isnan(course.value[1]));
  EXPECT_EQ(course.least, -1);
  EXPECT_EQ(course.most, 0);
  EXPECT_TRUE(course_of({}, loss_of).step.empty());
}

TEST(CourseOf, KeepsWhatStandsOutOfALongRun) {
  std::vector<MetricsStep> steps(10 * kMostPoints);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    steps[i].step = static_cast<std::int64_t>(i);
    steps[i].loss = static_cast<double>(i % 7);
  }
  steps[5'003].loss = 40;
  steps[5'004].loss = -3;
  const MetricsCourse course = course_of(steps, loss_of);
  EXPECT_LE(course.step.size(), 2 * kMostPoints);
  EXPECT_TRUE(std::ranges::is_sorted(course.step));
  EXPECT_EQ(course.most, 40);
  EXPECT_EQ(course.least, -3);
  const auto high = std::ranges::find(course.value, 40.0) - course.value.begin();
  EXPECT_EQ(course.step[static_cast<std::size_t>(high)], 5'003);
}

TEST(PutRun, SaysTheMedianBesideThePredictedStepOnceThereIsOne) {
  const Plan plan = test::small_plan();
  const StepReport report = estimate(plan.model, plan.cluster, plan.job, plan.engine, plan.layout);
  std::vector<Tile> tiles = summary_tiles(plan, report);
  MetricsState metrics;
  put_run(tiles, metrics, report.step_time);
  EXPECT_EQ(tiles.front().beside, "");
  std::vector<MetricsStep> steps(3);
  for (MetricsStep& each : steps) each.time = Seconds(2);
  put_steps(metrics, steps);
  put_run(tiles, metrics, Seconds(1));
  EXPECT_EQ(tiles.front().id, "step");
  EXPECT_EQ(tiles.front().beside, "run 2.00 s, -50.0 %");
}

class Followed : public testing::Test {
 protected:
  Followed() { session_.settle(); }
  void add(const std::string& text) const {
    std::ofstream(path_, std::ios::app | std::ios::binary) << text;
  }
  std::string run(const std::string& command) {
    const std::string problem = run_command(session_, command);
    session_.settle();
    const std::string failure = session_.take_failure().message;
    return problem.empty() ? failure : problem;
  }
  const MetricsState& metrics() const { return session_.state().metrics; }
  test::Scratch scratch_;
  std::string path_ = scratch_.path("steps.jsonl");
  Session session_{test::small_plan()};
};

TEST_F(Followed, RunShowsWhatItAddsAndHalfALineWaits) {
  EXPECT_THAT(run("metrics.poll"), testing::HasSubstr("no run is followed"));
  add(kHead);
  EXPECT_EQ(run("file.open " + path_), "");
  EXPECT_EQ(metrics().file, path_);
  EXPECT_EQ(metrics().steps, 0U);
  const std::string second = line(1, 2);
  add(line(0, 4) + second.substr(0, 20));
  EXPECT_EQ(run("metrics.poll"), "");
  EXPECT_EQ(metrics().steps, 1U);
  EXPECT_TRUE(metrics().waits);
  add(second.substr(20));
  EXPECT_EQ(run("metrics.poll"), "");
  ASSERT_EQ(metrics().steps, 2U);
  EXPECT_EQ(metrics().last.time, Seconds(2));
  EXPECT_THAT(metrics_text(metrics(), Seconds(4)), testing::HasSubstr("predicted +100.0 %"));
  EXPECT_EQ(run("metrics.stop"), "");
  EXPECT_TRUE(metrics().file.empty());
}

TEST_F(Followed, FileThatIsCutIsReadAnew) {
  add(kHead + line(0, 1) + line(1, 1));
  EXPECT_EQ(run("metrics.follow " + path_), "");
  std::filesystem::resize_file(path_, std::string(kHead).size());
  add(line(0, 7));
  EXPECT_EQ(run("metrics.poll"), "");
  ASSERT_EQ(metrics().steps, 1U);
  EXPECT_EQ(metrics().last.time, Seconds(7));
}

TEST_F(Followed, BrokenLineIsSaidAndWhatWasReadStays) {
  add(kHead + line(0, 1));
  EXPECT_EQ(run("metrics.follow " + path_), "");
  add("garbage\n");
  EXPECT_THAT(run("metrics.poll"), testing::HasSubstr("steps.jsonl:3"));
  EXPECT_EQ(metrics().steps, 1U);
  EXPECT_FALSE(metrics().problem.empty());
  EXPECT_THAT(run("metrics.follow " + scratch_.write_bytes("other", "{\"schema\":\"x\"}\n")),
              testing::HasSubstr("other:1"));
  EXPECT_EQ(metrics().file, path_);
}

}  // namespace
}  // namespace shardwise::view
