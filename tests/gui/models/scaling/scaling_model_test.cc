#include "gui/models/scaling/scaling_model.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "gui/models/commands/commands.h"
#include "gui/models/session/session.h"
#include "planner/search/search.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/text/format.h"
#include "tests/gui/small_plan.h"
#include "tests/support/scratch.h"

namespace shardwise::view {
namespace {

std::shared_ptr<const Plan> shared(Plan plan) {
  return std::make_shared<const Plan>(std::move(plan));
}

/// Opened on the scaling workspace, with all of it searched.
class Scaling : public testing::Test {
 protected:
  Scaling() {
    session_.settle();
    session_.set_workspace(Workspace::scaling);
  }
  std::string run(const std::string& line) {
    std::string problem = run_command(session_, line);
    session_.settle();
    return problem;
  }
  const ScalingState& state() const { return session_.state().scaling; }
  const ScalingMap& map() const { return state().map; }
  Session session_{test::small_plan(), Timing::fitting};
};

class ScalingRowsOf : public Scaling, public testing::WithParamInterface<ScalingRows> {};

// A search of its own for each cell, without what the others know.
TEST_P(ScalingRowsOf, HaveCellsThatAreFreshSearches) {
  session_.set_scaling_rows(GetParam());
  session_.settle();
  ASSERT_TRUE(state().filled());
  ASSERT_GE(map().rows.size(), 4U);
  ASSERT_GE(map().gpus.size(), 4U);
  std::size_t fitting = 0;
  for (std::size_t cell = 0; cell < map().cells.size(); ++cell) {
    const ScalingPoint& point = map().cells[cell];
    const ScalingRow& row = map().rows[cell / map().gpus.size()];
    const ClusterSpec cluster = *with_gpus(session_.state().plan.cluster, point.gpus);
    SearchRequest request;
    request.model = row.model.get();
    request.cluster = &cluster;
    request.job = &row.job;
    request.engines = {&session_.state().plan.engine};
    const Result<SearchResult> found = search(request);
    ASSERT_TRUE(found.ok());
    if (!point.layout) {
      EXPECT_TRUE(found->best.empty() && found->risky.empty());
      EXPECT_THAT(point.why_none, testing::StartsWith("no layout "));
      EXPECT_FALSE(point.why_short.empty());
      EXPECT_EQ(point.why_none.find("more than there is") != std::string::npos,
                found->smallest.has_value());
      continue;
    }
    ++fitting;
    EXPECT_EQ(point.at_risk, found->best.empty());
    const Candidate& best = (found->best.empty() ? found->risky : found->best).front();
    EXPECT_EQ(*point.layout, best.layout) << row.value << " on " << point.gpus;
    EXPECT_EQ(point.time, best.cost.step_time);
    EXPECT_EQ(point.memory, best.cost.point);
  }
  EXPECT_GE(fitting, 8U);
}

INSTANTIATE_TEST_SUITE_P(Rows, ScalingRowsOf,
                         testing::Values(ScalingRows::sequence, ScalingRows::batch,
                                         ScalingRows::model));

TEST(ScalingMap, IsSearchedFromTheQuestionOutwards) {
  const ScalingMap map = scaling_map(shared(test::small_plan()), ScalingRows::batch);
  const std::size_t columns = map.gpus.size();
  EXPECT_EQ(map.order.front(), map.row * columns + map.column);
  EXPECT_EQ(map.gpus[map.column], 8);
  EXPECT_EQ(map.rows[map.row].job, test::small_plan().job);
  std::ptrdiff_t before = 0;
  for (const std::size_t cell : map.order) {
    const auto signed_of = [](std::size_t of) { return static_cast<std::ptrdiff_t>(of); };
    const std::ptrdiff_t distance = std::abs(signed_of(cell / columns) - signed_of(map.row)) +
                                    std::abs(signed_of(cell % columns) - signed_of(map.column));
    EXPECT_GE(distance, before);
    before = distance;
  }
  const std::set<std::size_t> all(map.order.begin(), map.order.end());
  EXPECT_EQ(all.size(), map.cells.size());
}

TEST(ScalingMap, HasModelsBelowAndAboveInTheirOrder) {
  const ScalingMap map = scaling_map(shared(test::small_plan()), ScalingRows::model);
  EXPECT_EQ(map.rows[map.row].value, "small");
  EXPECT_GT(map.row, 0U);
  EXPECT_LT(map.row + 1, map.rows.size());
  for (std::size_t row = 1; row < map.rows.size(); ++row) {
    EXPECT_LT(map.rows[row - 1].model->parameter_count(), map.rows[row].model->parameter_count());
  }
}

TEST_F(Scaling, SaysByHowMuchNothingFits) {
  Session none(test::plan_that_cannot_fit(), Timing::fitting);
  none.set_workspace(Workspace::scaling);
  none.settle();
  const ScalingMap& there = none.state().scaling.map;
  const ScalingPoint& own = there.at(there.row, there.column);
  EXPECT_FALSE(own.layout);
  const auto least = std::ranges::min_element(none.state().answer.rows, {}, &LayoutRow::needed);
  EXPECT_EQ(own.why_short, "+" + format_bytes(least->needed - own.usable));
}

TEST_F(Scaling, WaitsForWhatPeopleWaitForAndFillsCellByCell) {
  session_.worker().hold();
  session_.slide("sequence_length", 0);
  session_.collect();
  EXPECT_FALSE(map().plan);      // of the new question nothing is begun
  session_.background().hold();  // or the map might begin in the loop
  session_.worker().release();
  while (session_.worker().busy()) {  // what is simulated is explained then
    session_.worker().finish();
    session_.collect();
  }
  session_.background().release();
  session_.background().finish();  // the steps of the best rows
  session_.collect();              // begins the map
  for (std::size_t known = 0; known < 3; ++known) {
    session_.background().finish();
    session_.collect();
    EXPECT_EQ(map().known(), known);
  }
  EXPECT_TRUE(map().cells[map().order[0]].known);
  EXPECT_TRUE(map().cells[map().order[1]].known);
}

TEST_F(Scaling, StopsAndGoesOn) {
  session_.worker().finish();
  session_.collect();
  session_.background().finish();
  session_.collect();
  session_.pause_scaling(true);
  const std::size_t known = map().known();  // at most the cell after the map
  EXPECT_LE(known, 1U);
  session_.settle();
  EXPECT_EQ(map().known(), known);
  EXPECT_FALSE(state().filled());
  EXPECT_EQ(run("scaling.pause"), "");
  EXPECT_TRUE(state().filled());
}

TEST_F(Scaling, TakesACellAndKeepsTheMapAroundIt) {
  session_.settle();
  const std::vector<std::int64_t> gpus = map().gpus;
  const std::string row = map().rows.front().value;
  ASSERT_TRUE(map().at(0, 2).layout);
  const Layout layout = *map().at(0, 2).layout;
  EXPECT_EQ(run("scaling.take " + std::to_string(gpus[2]) + " " + row), "");
  const Plan& plan = session_.state().plan;
  EXPECT_EQ(plan.cluster.gpus, gpus[2]);
  EXPECT_EQ(std::to_string(plan.job.sequence_length), row);
  EXPECT_EQ(plan.layout, layout);
  EXPECT_EQ(map().gpus, gpus);
  EXPECT_EQ(map().row, 0U);
  EXPECT_EQ(map().column, 2U);
  EXPECT_EQ(run("question.undo"), "");
  EXPECT_EQ(map().gpus[map().column], 8);
  // A question that the map does not have is the middle of another.
  EXPECT_EQ(run("scaling.take " + std::to_string(gpus[2])), "");
  EXPECT_EQ(run("question.set global_batch_size 128"), "");
  EXPECT_EQ(map().plan->job.global_batch_size, 128);
  EXPECT_TRUE(state().filled());
}

TEST_F(Scaling, IsSavedWithALineForEachCell) {
  const test::Scratch scratch;
  EXPECT_THAT(run_command(session_, "scaling.csv " + scratch.path("a.csv")),
              testing::StartsWith("nothing is searched yet"));
  session_.settle();
  const std::string path = scratch.path("map.csv");
  EXPECT_EQ(run("scaling.csv " + path), "");
  const std::string text = test::bytes_of_file(path);
  EXPECT_EQ(std::ranges::count(text, '\n'), std::ssize(map().cells) + 1);
  const ScalingPoint& own = map().at(map().row, map().column);
  EXPECT_THAT(text, testing::HasSubstr(
                        fmt::format("\"small\",2048,64,8,fits,{},{}", own.time.value(), own.mfu)));
}

TEST_F(Scaling, CommandsSayWhatIsWrong) {
  session_.settle();
  EXPECT_EQ(run("scaling.take 5"), "no layout is known on that many GPUs");
  EXPECT_EQ(run("scaling.take 8 77"), "the map has no row 77");
  EXPECT_THAT(run("scaling.take many"), testing::StartsWith("GPUs: many is not"));
  EXPECT_EQ(run("scaling.rows depth"), "depth is none of sequence, batch, model");
  EXPECT_EQ(run("scaling.colour red"), "red is none of mfu, cost, headroom, tokens");
  EXPECT_EQ(run("scaling.colour"), "");
  EXPECT_EQ(state().colour, ScalingColour::cost);
}

TEST_F(Scaling, ShadesGoFromTheWorstCellToTheBest) {
  session_.settle();
  for (const ScalingColour colour :
       {ScalingColour::mfu, ScalingColour::cost, ScalingColour::headroom, ScalingColour::tokens}) {
    double least = 1;
    double most = 0;
    for (const ScalingPoint& point : map().cells) {
      const std::optional<double> share = shade(map(), point, colour);
      EXPECT_EQ(share.has_value(), point.layout.has_value());
      if (!share) continue;
      EXPECT_FALSE(colour_text(point, colour).empty());
      least = std::min(least, *share);
      most = std::max(most, *share);
    }
    EXPECT_EQ(least, 0);
    EXPECT_EQ(most, 1);
  }
  // The best cost is the least.
  const auto cheapest = std::ranges::min_element(map().cells, {}, [](const ScalingPoint& each) {
    return each.layout ? each.dollars_per_1e9_tokens : 1e99;
  });
  EXPECT_EQ(shade(map(), *cheapest, ScalingColour::cost), 1);
}

TEST_F(Scaling, MarksTheCheapestCellOfEachRow) {
  session_.settle();
  for (std::size_t row = 0; row < map().rows.size(); ++row) {
    const std::optional<std::size_t> column = cheapest_column(map(), row);
    ASSERT_TRUE(column);
    for (std::size_t other = 0; other < map().gpus.size(); ++other) {
      if (!map().at(row, other).layout) continue;
      EXPECT_LE(map().at(row, *column).dollars_per_1e9_tokens,
                map().at(row, other).dollars_per_1e9_tokens * (1 + 1e-12));
    }
  }
}

}  // namespace
}  // namespace shardwise::view
