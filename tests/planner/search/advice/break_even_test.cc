#include "planner/search/advice/break_even.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "planner/search/advice/best_layout.h"
#include "tests/planner/search/search_job.h"
#include "tests/support/sanitized.h"

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

TEST(Lever, PullsOneQuantityAndNothingElse) {
  const ClusterSpec cluster = *with_gpus(*find_cluster("dgx-h100"), 16);
  const std::vector<Lever> levers = levers_of(cluster);
  ASSERT_EQ(levers.size(), cluster.tiers.size() + 2);
  for (const Lever& lever : levers) {
    EXPECT_NE(pulled(cluster, lever, 2), cluster);
    // A factor of two is exact in both directions.
    ClusterSpec back = pulled(pulled(cluster, lever, 2), lever, 0.5);
    if (lever.kind == LeverKind::price) back.price_per_gpu_hour = cluster.price_per_gpu_hour;
    EXPECT_EQ(back, cluster) << lever_text(cluster, lever);
  }
  EXPECT_EQ(pulled(cluster, levers.front(), 2).tiers.front().bandwidth,
            2 * cluster.tiers.front().bandwidth);
}

TEST(Lever, IsNoTierThatASmallClusterDoesNotReach) {
  const ClusterSpec node = *with_gpus(*find_cluster("dgx-h100"), 8);
  const auto links = std::ranges::count(levers_of(node), LeverKind::bandwidth, &Lever::kind);
  EXPECT_EQ(links, 1);
}

TEST(Pieces, FindEveryChangeToTheTolerance) {
  const std::vector<double> edges = {0.3, 0.9, 0.95, 5};
  const auto answer = [&](double factor) -> std::optional<std::size_t> {
    return static_cast<std::size_t>(
        std::ranges::count_if(edges, [&](double edge) { return factor >= edge; }));
  };
  const std::vector<double> grid = {0.125, 0.5, 1, 2, 8};
  constexpr double kTolerance = 0.01;
  const std::vector<Piece> found = pieces(grid, kTolerance, answer);
  ASSERT_EQ(found.size(), edges.size() + 1);
  EXPECT_EQ(found.front().from, grid.front());
  EXPECT_EQ(found.back().upto, grid.back());
  for (std::size_t i = 0; i < edges.size(); ++i) {
    EXPECT_EQ(found[i].answer, i);
    EXPECT_LT(found[i].upto, edges[i]);
    EXPECT_GE(found[i + 1].from, edges[i]);
    EXPECT_LE(found[i + 1].from, found[i].upto * (1 + kTolerance));
  }
}

TEST(Pieces, AreOneWhereNothingChangesAndEndWhenTheAnswersDo) {
  const std::vector<double> grid = {0.5, 1, 2};
  int asked = 0;
  const auto never = [&](double) -> std::optional<std::size_t> {
    ++asked;
    return 7;
  };
  EXPECT_EQ(pieces(grid, 0.01, never), (std::vector<Piece>{{0.5, 2, 7}}));
  EXPECT_EQ(asked, 3);
  const auto stops = [&](double factor) -> std::optional<std::size_t> {
    if (factor > 1) return std::nullopt;
    return 0;
  };
  EXPECT_EQ(pieces(grid, 0.01, stops), (std::vector<Piece>{{0.5, 1, 0}}));
}

/// The piece that has the factor; nullptr at an edge that the tolerance leaves open.
const Piece* piece_at(const std::vector<Piece>& found, double factor) {
  const auto at = std::ranges::find_if(
      found, [&](const Piece& each) { return each.from <= factor && factor <= each.upto; });
  return at == found.end() ? nullptr : &*at;
}

BreakEvenQuestion asked(const SearchJob& job, Lever lever) {
  BreakEvenQuestion question;
  question.model = &job.model;
  question.job = &job.job;
  question.engine = job.request.engines.front();
  question.lever = lever;
  question.grid = usual_grid(lever);
  question.contenders = {{"16 GPUs", job.cluster, true},
                         {"8 GPUs", *with_gpus(job.cluster, 8), true}};
  return question;
}

class BreakEvenOf : public testing::TestWithParam<LeverKind> {};

// Every layout is priced alone at factors that the bisection did not choose.
TEST_P(BreakEvenOf, AgreesWithAllLayoutsPricedAtManyFactors) {
  const SearchJob job = two_nodes();
  const Lever lever{GetParam(), GetParam() == LeverKind::bandwidth ? std::size_t{1} : 0};
  BreakEvenQuestion question = asked(job, lever);
  question.memory = std::make_shared<SearchMemory>();
  const BreakEven found = break_even(question);
  ASSERT_TRUE(found.done);
  ASSERT_TRUE(found.dollars);
  int compared = 0;
  constexpr int kFactors = test::kSanitized ? 3 : 12;
  const double least = std::log2(question.grid.front());
  for (int i = 0; i < kFactors; ++i) {
    const double factor = std::exp2(least + (0.5 + i) * -2 * least / kFactors);
    std::vector<std::optional<double>> costs;
    std::optional<Candidate> first;
    for (const Contender& each : question.contenders) {
      SearchJob there = two_nodes();
      there.cluster = pulled(each.cluster, lever, factor);
      const std::optional<Candidate> best = brute_best(there);
      if (costs.empty()) first = best;
      costs.emplace_back();
      if (!best) continue;
      const double list_price = *job.cluster.gpu.price_per_hour;
      const double price = lever.kind == LeverKind::price ? factor * list_price : list_price;
      const double tokens = static_cast<double>(job.job.global_batch_size) *
                            static_cast<double>(job.job.sequence_length);
      costs.back() = price * static_cast<double>(there.cluster.gpus) *
                     best->cost.step_time.value() / 3600 / tokens * 1e9;
    }
    const Piece* const best = piece_at(found.best, factor);
    if (best != nullptr) {
      ++compared;
      ASSERT_EQ(best->answer < found.layouts.size(), first.has_value()) << factor;
      if (first) {
        EXPECT_EQ(found.layouts[best->answer], first->layout) << factor;
      }
    }
    const Piece* const cheaper = piece_at(found.against[1], factor);
    if (cheaper == nullptr) continue;
    if (!costs[0] && !costs[1]) {
      EXPECT_EQ(cheaper->answer, 2U);
    } else {
      const bool eight = !costs[0] || (costs[1] && *costs[1] < *costs[0]);
      EXPECT_EQ(cheaper->answer, eight ? 1U : 0U) << factor;
    }
  }
  EXPECT_GE(compared, kFactors - 1);
  // A price changes no layout, and it is the same for both.
  EXPECT_EQ(found.best.size() > 1, lever.kind != LeverKind::price);
}

INSTANTIATE_TEST_SUITE_P(Levers, BreakEvenOf,
                         testing::Values(LeverKind::bandwidth, LeverKind::memory,
                                         LeverKind::price));

TEST(BreakEven, KeepsItsAnswersWithWhatEarlierSearchesKnow) {
  const SearchJob job = two_nodes();
  BreakEvenQuestion question = asked(job, {LeverKind::bandwidth, 1});
  const BreakEven alone = break_even(question);
  question.memory = std::make_shared<SearchMemory>();
  break_even(question);
  const BreakEven again = break_even(question);
  EXPECT_EQ(alone.best, again.best);
  EXPECT_EQ(alone.against, again.against);
  EXPECT_EQ(alone.layouts, again.layouts);
}

// A cluster of which the price is pulled beats a still one below the ratio of their costs.
TEST(BreakEven, OfAPriceIsTheRatioOfTheCosts) {
  const SearchJob job = two_nodes();
  BreakEvenQuestion question = asked(job, {LeverKind::price, 0});
  question.contenders[1] = {"still", job.cluster, false};
  question.contenders[1].cluster.price_per_gpu_hour = 1.5 * *job.cluster.gpu.price_per_hour;
  const BreakEven found = break_even(question);
  const std::vector<Piece>& cheaper = found.against[1];
  ASSERT_EQ(cheaper.size(), 2U);
  EXPECT_EQ(cheaper[0].answer, 0U);
  EXPECT_EQ(cheaper[1].answer, 1U);
  EXPECT_LE(cheaper[0].upto, 1.5);
  EXPECT_GE(cheaper[1].from, 1.5 * (1 - 1e-12));
  EXPECT_LE(cheaper[1].from, cheaper[0].upto * (1 + question.tolerance));
}

TEST(BreakEven, StopsAndSaysSo) {
  const SearchJob job = two_nodes();
  BreakEvenQuestion question = asked(job, {LeverKind::bandwidth, 0});
  const std::stop_source stop;
  question.stop = stop.get_token();
  int published = 0;
  const BreakEven found = break_even(question, [&](const BreakEven& so_far) {
    ++published;
    EXPECT_EQ(so_far.lines.front().size(), static_cast<std::size_t>(published));
    if (published == 2) stop.request_stop();
  });
  EXPECT_FALSE(found.done);
  EXPECT_EQ(published, 2);
}

}  // namespace
}  // namespace shardwise
