#include "gui/models/explore/explore_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "gui/models/explore/columns.h"
#include "gui/models/explore/explored_rows.h"
#include "planner/estimate/estimate.h"
#include "planner/search/search.h"
#include "tests/gui/small_plan.h"

namespace shardwise::view {
namespace {

Answer drawn_answer(std::uint32_t seed, std::size_t rows) {
  std::mt19937 random(seed);
  Answer answer;
  for (std::size_t i = 0; i < rows; ++i) {
    LayoutRow& row = answer.rows.emplace_back();
    row.layout.tp = 1 << random() % 4;
    row.layout.pp = 1 << random() % 3;
    row.time = Seconds(1 + static_cast<int>(random() % 5));
    row.dollars_per_1e9_tokens = static_cast<int>(random() % 3);
    row.fit = static_cast<Fit>(random() % 3);
    answer.ranked.push_back(static_cast<std::uint32_t>(i));
  }
  return answer;
}

TEST(ShownRows, AreInTheirOrderByEachColumnAndKeepThePlannersAmongEquals) {
  const Answer answer = drawn_answer(7, 500);
  for (std::size_t c = 0; c < columns().size(); ++c) {
    for (const bool descending : {false, true}) {
      ExploreView view;
      view.sort = {{c, descending}};
      const std::vector<std::uint32_t> shown = shown_rows(answer, view);
      ASSERT_EQ(shown.size(), answer.rows.size());
      for (std::size_t i = 1; i < shown.size(); ++i) {
        const auto number = [&](std::uint32_t row) {
          return columns()[c].number(priced(answer, answer.rows[row]));
        };
        const double before = number(shown[i - 1]);
        const double after = number(shown[i]);
        if (std::isnan(after) || std::isnan(before)) {
          EXPECT_TRUE(std::isnan(after)) << "a row without a number comes last";
        } else {
          EXPECT_TRUE(descending ? before >= after : before <= after);
        }
        if (before == after || std::isnan(before)) {
          EXPECT_LT(shown[i - 1], shown[i]);
        }
      }
    }
  }
}

TEST(ShownRows, AreFilteredByTheirRankAndEngine) {
  Answer answer = drawn_answer(10, 30);
  answer.engine = "fsdp2";
  std::ranges::reverse(answer.ranked);
  ExploreView view;
  view.parsed = sim::parse_filter("rank<=2 engine:fsdp");
  EXPECT_EQ(shown_rows(answer, view), (std::vector<std::uint32_t>{29, 28}));
  view.parsed = sim::parse_filter("engine:megatron");
  EXPECT_TRUE(shown_rows(answer, view).empty());
}

TEST(ShownRows, AreSortedByASecondColumnAmongEqualsOfTheFirst) {
  const Answer answer = drawn_answer(8, 300);
  ExploreView view;
  view.sort = {{*find_column("tp"), true}, {*find_column("step"), false}};
  const std::vector<std::uint32_t> shown = shown_rows(answer, view);
  for (std::size_t i = 1; i < shown.size(); ++i) {
    const LayoutRow& before = answer.rows[shown[i - 1]];
    const LayoutRow& after = answer.rows[shown[i]];
    EXPECT_GE(before.layout.tp, after.layout.tp);
    if (before.layout.tp == after.layout.tp) {
      EXPECT_LE(before.time, after.time);
    }
  }
}

TEST(ShownRows, OnlyFittingAreThoseThatFit) {
  const Answer answer = drawn_answer(9, 300);
  ExploreView view;
  view.only_fitting = true;
  const std::vector<std::uint32_t> shown = shown_rows(answer, view);
  const auto fitting = std::ranges::count(answer.rows, Fit::fits, &LayoutRow::fit);
  EXPECT_EQ(static_cast<std::ptrdiff_t>(shown.size()), fitting);
  for (const std::uint32_t i : shown) EXPECT_EQ(answer.rows[i].fit, Fit::fits);
}

class SearchedRows : public testing::Test {
 protected:
  Plan plan_ = test::small_plan();
  StepReport report_ = estimate(plan_.model, plan_.cluster, plan_.job, plan_.engine, plan_.layout);
  const Answer answer_ = explored_rows(plan_, report_);
};

TEST_F(SearchedRows, HaveTheMemoryTimeAndFitOfAFreshEvaluation) {
  ASSERT_FALSE(answer_.rows.empty());
  for (const LayoutRow& row : answer_.rows) {
    const StepReport fresh =
        estimate(plan_.model, plan_.cluster, plan_.job, plan_.engine, row.layout);
    EXPECT_EQ(row.memory, fresh.verdict.point);
    EXPECT_EQ(row.upper, fresh.verdict.upper);
    EXPECT_EQ(row.fit, fresh.verdict.fit);
    EXPECT_NEAR(row.time / fresh.step_time, 1, 1e-9);
    EXPECT_NEAR(row.mfu, fresh.mfu, 1e-9);
    EXPECT_FALSE(row.bound);
  }
}

TEST_F(SearchedRows, AreAllLegalLayoutsAndAddUpToTheCountsOfASearch) {
  const RowCounts& counts = answer_.counts;
  EXPECT_EQ(static_cast<std::int64_t>(answer_.rows.size()), counts.legal);
  EXPECT_EQ(counts.fit + counts.at_risk + counts.does_not_fit, counts.legal);
  const auto with = [&](Fit fit) { return std::ranges::count(answer_.rows, fit, &LayoutRow::fit); };
  EXPECT_EQ(with(Fit::fits), counts.fit);
  EXPECT_EQ(with(Fit::at_risk), counts.at_risk);
  EXPECT_EQ(with(Fit::does_not_fit), counts.does_not_fit);
}

TEST_F(SearchedRows, BoundsAreNotAboveTheTimesThatComeLater) {
  Answer answer;
  RowListener listener;
  std::size_t timed = 0;
  listener.priced = [&](Answer priced) {
    answer = std::move(priced);
    for (const LayoutRow& row : answer.rows) EXPECT_TRUE(row.bound);
  };
  listener.timed = [&](const std::vector<TimedRow>& rows) {
    for (const TimedRow& each : rows) EXPECT_LE(answer.rows[each.row].time, each.time);
    timed += rows.size();
    apply(answer, rows);
  };
  listener.ranked = [&](RankedRows rows) { apply(answer, std::move(rows)); };
  explore_rows(plan_, report_, {}, listener);
  EXPECT_EQ(timed, answer.rows.size());
  const std::vector<std::uint32_t> ranked = answer.ranked;
  rank(answer);
  EXPECT_EQ(answer.ranked, ranked);
}

/// The first `count` of the ranked rows that fit.
std::vector<std::uint32_t> first_fitting(const Answer& answer, std::size_t count) {
  std::vector<std::uint32_t> first;
  for (const std::uint32_t row : answer.ranked) {
    if (answer.rows[row].fit == Fit::fits && first.size() < count) first.push_back(row);
  }
  return first;
}

TEST_F(SearchedRows, OfAPictureAreExactWhereTheyAreTheBestOrOnTheFront) {
  Answer answer;
  RowListener listener;
  listener.priced = [&](Answer priced) { answer = std::move(priced); };
  listener.timed = [&](const std::vector<TimedRow>& rows) { apply(answer, rows); };
  listener.ranked = [&](RankedRows rows) { apply(answer, std::move(rows)); };
  explore_rows(plan_, report_, {}, listener, Timing::fitting);
  ASSERT_EQ(answer.rows.size(), answer_.rows.size());
  const std::vector<std::uint32_t> best = first_fitting(answer_, kMostPictured);
  EXPECT_EQ(first_fitting(answer, kMostPictured), best);
  std::size_t bounds = 0;
  for (std::uint32_t i = 0; i < answer.rows.size(); ++i) {
    const LayoutRow& row = answer.rows[i];
    EXPECT_EQ(row.front, answer_.rows[i].front);
    bounds += row.bound && row.fit == Fit::fits ? 1 : 0;
    if (row.layout == plan_.layout) {
      EXPECT_NEAR(row.time / answer_.rows[i].time, 1, 1e-12);
    } else if (row.bound) {
      EXPECT_LE(row.time, answer_.rows[i].time);
      EXPECT_FALSE(row.front);
      EXPECT_TRUE(std::ranges::find(best, i) == best.end());
    } else {
      EXPECT_EQ(row.time, answer_.rows[i].time);
    }
  }
  EXPECT_GT(bounds, 0U);
  EXPECT_FALSE(answer.exact);
}

TEST_F(SearchedRows, AreTheSameWithWhatEarlierQuestionsHaveMade) {
  const auto memory = std::make_shared<SearchMemory>();
  Plan other = plan_;
  other.job.global_batch_size *= 2;
  for (const Plan* plan : {&other, &plan_, &plan_}) {
    Answer answer;
    RowListener listener;
    listener.priced = [&](Answer priced) { answer = std::move(priced); };
    listener.timed = [&](const std::vector<TimedRow>& rows) { apply(answer, rows); };
    listener.ranked = [&](RankedRows rows) { apply(answer, std::move(rows)); };
    explore_rows(*plan, report_, {}, listener, Timing::all, memory);
    if (plan == &other) continue;
    ASSERT_EQ(answer.rows.size(), answer_.rows.size());
    EXPECT_EQ(answer.ranked, answer_.ranked);
    for (std::size_t i = 0; i < answer.rows.size(); ++i) {
      EXPECT_EQ(answer.rows[i].time, answer_.rows[i].time);
      EXPECT_EQ(answer.rows[i].memory, answer_.rows[i].memory);
      EXPECT_EQ(answer.rows[i].front, answer_.rows[i].front);
    }
  }
}

TEST_F(SearchedRows, JudgingByAnotherMemoryCountsWhatFits) {
  Answer answer = answer_;
  judge(answer, 10_GiB);
  std::int64_t fits = 0;
  for (const LayoutRow& row : answer.rows) fits += row.upper <= 10_GiB ? 1 : 0;
  EXPECT_EQ(answer.counts.fit, fits);
  EXPECT_EQ(answer.rows[answer.ranked.front()].fit, fits > 0 ? Fit::fits : Fit::at_risk);
  judge(answer, answer_.usable);
  EXPECT_EQ(answer.ranked, answer_.ranked);
}

TEST_F(SearchedRows, BeginWithTheBestOfThePlanner) {
  SearchRequest request;
  request.model = &plan_.model;
  request.cluster = &plan_.cluster;
  request.job = &plan_.job;
  request.engines = {&plan_.engine};
  const Result<SearchResult> found = search(request);
  ASSERT_TRUE(found.ok());
  ASSERT_FALSE(found->best.empty());
  ExploreView view;
  view.only_fitting = true;
  EXPECT_EQ(answer_.rows[shown_rows(answer_, view).front()].layout, found->best.front().layout);
}

TEST_F(SearchedRows, FrontIsThatOfBruteForce) {
  std::vector<const LayoutRow*> front;
  for (const LayoutRow& row : answer_.rows) {
    if (row.fit != Fit::fits) continue;
    const bool beaten = std::ranges::any_of(answer_.rows, [&](const LayoutRow& other) {
      return other.fit == Fit::fits && other.memory <= row.memory && other.time <= row.time &&
             (other.memory < row.memory || other.time < row.time);
    });
    EXPECT_TRUE(!row.front || !beaten);
    if (!beaten) front.push_back(&row);
  }
  std::ranges::sort(front, {}, &LayoutRow::memory);
  // Of rows that cost the same one is enough.
  const auto same = [](const LayoutRow* a, const LayoutRow* b) {
    return a->memory == b->memory && a->time == b->time;
  };
  front.erase(std::unique(front.begin(), front.end(), same), front.end());
  const std::vector<std::uint32_t> drawn = front_rows(answer_);
  ASSERT_EQ(drawn.size(), front.size());
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    EXPECT_TRUE(same(&answer_.rows[drawn[i]], front[i]));
  }
}

}  // namespace
}  // namespace shardwise::view
