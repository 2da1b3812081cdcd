#include "gui/models/timeline/lane.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "tests/gui/made_lane.h"

namespace shardwise::view {
namespace {

using test::made_lane;
using test::MadeSpan;

float busy(const Coverage& coverage) { return coverage.share(); }
float share(const Coverage& coverage, sim::Paint paint) {
  return coverage.shares[static_cast<std::size_t>(paint)];
}

TEST(Coverage, OfAColumnIsItsBusyShare) {
  // Columns of one second: half of the first, a tenth and a fifth of the second, all of the third.
  const Lane lane = made_lane({{0.5, 0.5, 1}, {1, 1, 1.1}, {1.5, 1.5, 1.7}, {2, 2, 3}});
  const std::vector<Coverage> covered = coverage(lane, ColourBy::kind, {0, 4}, 4);
  const std::array<double, 4> expected = {0.5, 0.3, 1, 0};
  for (std::size_t c = 0; c < 4; ++c) EXPECT_NEAR(busy(covered[c]), expected[c], 1e-6) << c;
}

TEST(Coverage, OfALaneOfSpansFarNarrowerThanAPixelIsAsDenseAsTheLane) {
  std::vector<MadeSpan> spans;
  for (int i = 0; i < 100'000; ++i) {
    spans.push_back({static_cast<double>(i), static_cast<double>(i), i + 0.9});
  }
  for (const Coverage& each : coverage(made_lane(spans), ColourBy::kind, {0, 100'000}, 100)) {
    EXPECT_NEAR(busy(each), 0.9, 1.0 / 255);
  }
}

TEST(Coverage, CountsNoWaiting) {
  const std::vector<Coverage> covered = coverage(made_lane({{0, 3, 4}}), ColourBy::kind, {0, 4}, 4);
  EXPECT_EQ(busy(covered[0]), 0);
  EXPECT_NEAR(busy(covered[3]), 1, 1e-6);
}

TEST(Coverage, HasTheShareOfEveryColour) {
  const Lane lane = made_lane({{0, 0, 0.2, sim::Paint::forward, 0},
                               {0.2, 0.2, 0.5, sim::Paint::backward, 1},
                               {0.5, 0.5, 0.6, sim::Paint::forward, 2}});
  const Coverage by_kind = coverage(lane, ColourBy::kind, {0, 1}, 1).front();
  EXPECT_NEAR(share(by_kind, sim::Paint::forward), 0.3, 1e-6);
  EXPECT_NEAR(share(by_kind, sim::Paint::backward), 0.3, 1e-6);
  const Coverage by_microbatch = coverage(lane, ColourBy::microbatch, {0, 1}, 1).front();
  EXPECT_NEAR(by_microbatch.shares[0], 0.2, 1e-6);
  EXPECT_NEAR(by_microbatch.shares[1], 0.3, 1e-6);
  EXPECT_NEAR(by_microbatch.shares[2], 0.1, 1e-6);
  const Coverage by_axis = coverage(lane, ColourBy::axis, {0, 1}, 1).front();
  EXPECT_EQ(std::ranges::count_if(by_axis.shares, [](float each) { return each > 0; }), 1);
  EXPECT_NEAR(busy(by_axis), 0.6, 1e-6);
}

/// Random spans with waits and gaps.
std::vector<MadeSpan> random_spans(std::uint32_t seed, int count) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> draw(0, 1);
  std::vector<MadeSpan> spans;
  double at = 0;
  for (int i = 0; i < count; ++i) {
    const double start = at + draw(random) * draw(random);
    const double active = start + 0.2 * draw(random);
    at = active + draw(random) * draw(random) * draw(random);
    spans.push_back({start, active, at, static_cast<sim::Paint>(i % 5), i % 3});
  }
  return spans;
}

TEST(Coverage, IsWhatBruteForceFindsAtEveryZoom) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    const std::vector<MadeSpan> spans = random_spans(seed, 1000);
    const Lane lane = made_lane(spans);
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> draw(0, spans.back().end);
    for (int zoom = 0; zoom < 6; ++zoom) {
      const double from = draw(random);
      const TimeRange range{from, from + draw(random) / (1 << (2 * zoom))};
      constexpr std::size_t kColumns = 37;
      const std::vector<Coverage> covered = coverage(lane, ColourBy::kind, range, kColumns);
      const double column = range.length() / kColumns;
      for (std::size_t c = 0; c < kColumns; ++c) {
        std::array<double, kColours> expected{};
        const double begin = range.from + static_cast<double>(c) * column;
        for (const MadeSpan& span : spans) {
          const double part = std::min(span.end, begin + column) - std::max(span.active, begin);
          if (part > 0) expected[static_cast<std::size_t>(span.kind)] += part / column;
        }
        for (std::size_t k = 0; k < kColours; ++k) {
          ASSERT_NEAR(covered[c].shares[k], expected[k], 1e-5) << zoom << " " << c;
        }
      }
    }
  }
}

TEST(Coverage, OfTheInsideOfASpanOrAGapIsOneRun) {
  const Lane lane = made_lane({{10, 10, 40.5}, {60, 60, 61}});
  std::vector<std::array<std::size_t, 2>> runs;
  std::vector<float> shares;
  for (const auto& [first, last, shown] : coverage_runs(lane, ColourBy::kind, {0, 100}, 100)) {
    runs.push_back({first, last});
    shares.push_back(shown.share());
  }
  EXPECT_EQ(runs, (std::vector<std::array<std::size_t, 2>>{
                      {0, 10}, {10, 40}, {40, 41}, {41, 60}, {60, 61}, {61, 100}}));
  EXPECT_EQ(shares, (std::vector<float>{0, 1, 0.5, 0, 1, 0}));
}

TEST(SpansIn, AreThoseThatBruteForceFinds) {
  std::vector<MadeSpan> spans;
  for (int i = 0; i < 100; ++i) {
    spans.push_back({static_cast<double>(i), static_cast<double>(i), i + 0.5});
  }
  const Lane lane = made_lane(spans);
  for (double from = -1; from < 101; from += 0.25) {
    const TimeRange range{from, from + 1.6};
    const auto inside = std::ranges::count_if(spans, [&](const MadeSpan& each) {
      return each.end > range.from && each.start < range.to;
    });
    const auto [first, last] = spans_in(lane, range);
    EXPECT_EQ(static_cast<std::ptrdiff_t>(last - first), inside) << from;
  }
}

TEST(SpanAt, IsTheOneThereOrTheNearestWithinTheSlack) {
  const Lane lane = made_lane({{0, 0, 1}, {2, 2, 3}});
  EXPECT_EQ(span_at(lane, 0.5, 0), 0U);
  EXPECT_EQ(span_at(lane, 1.4, 0.5), 0U);
  EXPECT_EQ(span_at(lane, 1.6, 0.5), 1U);
  EXPECT_EQ(span_at(lane, 1.5, 0.1), 2U);
}

TEST(Blocks, JoinNeighboursOfOneKindAndMicroBatchWithoutAGap) {
  const Lane lane = made_lane({{0, 0, 1, sim::Paint::forward, 0},
                               {1, 1, 2, sim::Paint::forward, 0},
                               {2, 2, 3, sim::Paint::forward, 1},
                               {3, 3, 4, sim::Paint::backward, 1},
                               {4.5, 4.5, 5, sim::Paint::backward, 1},
                               {5, 5.5, 6, sim::Paint::backward, 1}});
  EXPECT_EQ(lane.blocks, (std::vector<std::uint32_t>{0, 2, 3, 4, 5}));
  EXPECT_EQ(lane.block(0), (std::pair<std::size_t, std::size_t>{0, 2}));
  EXPECT_EQ(block_of(lane, 1), 0U);
  EXPECT_EQ(block_of(lane, 5), 4U);
  const auto [first, last] = blocks_in(lane, {1.5, 3.5});
  EXPECT_EQ(first, 0U);
  EXPECT_EQ(last, 3U);
}

sim::SpanColumns stream(Stream which, const std::vector<MadeSpan>& spans) {
  sim::SpanColumns made = made_lane(spans).spans;
  made.stream = which;
  return made;
}

// The rank computes from 1 to 2 and from 3 to 4. Gathers move from 0 to 2.5, reductions from 2.2
// to 5: exposed are 0 to 1 and 2 to 3 (both from 2.2 to 2.5), and 4 to 5.
TEST(Exposed, IsWhereSomethingMovesAndNothingIsComputed) {
  sim::RankSpans rank;
  rank.streams.push_back(stream(Stream::compute, {{1, 1, 2}, {3, 3, 4}}));
  rank.streams.push_back(stream(Stream::all_gather, {{0, 0, 2.5}}));
  rank.streams.push_back(stream(Stream::reduce_scatter, {{1, 2.2, 5}}));
  const ExposedStrip strip = make_strip(rank);
  std::vector<std::array<double, 3>> found;
  for (const ExposedStretch& each : strip.stretches) {
    found.push_back({each.from, each.to, each.streams});
  }
  const std::vector<std::array<double, 3>> expected = {
      {0, 1, 1}, {2, 2.2, 1}, {2.2, 2.5, 2}, {2.5, 3, 1}, {4, 5, 1}};
  EXPECT_EQ(found, expected);
  EXPECT_NEAR(strip.whole(), 1 + 1 + 0.3 + 1, 1e-12);
  EXPECT_NEAR(strip.until(2.4), 1 + 0.2 + 2 * 0.2, 1e-12);
  std::vector<float> columns;
  for (const auto& [first, last, streams] : exposed_runs(strip, {0, 5}, 5)) {
    ASSERT_EQ(first, columns.size());
    columns.insert(columns.end(), last - first, streams);
  }
  const std::array<double, 5> shares = {1, 0, 1.3, 0, 1};
  ASSERT_EQ(columns.size(), shares.size());
  for (std::size_t c = 0; c < 5; ++c) EXPECT_NEAR(columns[c], shares[c], 1e-6) << c;
}

// A pass from 1 to 2 that is held up for a quarter of it, one from 3 to 4 that is not.
TEST(Exposed, IsAlsoWhatPassesHaveInside) {
  sim::RankSpans rank;
  rank.streams.push_back(stream(Stream::compute, {{1, 1, 2}, {3, 3, 4}}));
  rank.streams.push_back(stream(Stream::all_gather, {{0, 0, 1.5}}));
  std::vector<WithinSpan> within(2);
  within[0] = {{0.2F, 0, 0.05F}, {0.5F, 0, 0.05F}};
  const ExposedStrip strip = make_strip(rank, within);
  ASSERT_EQ(strip.stretches.size(), 2U);
  EXPECT_EQ(strip.stretches[1].from, 1);
  EXPECT_EQ(strip.stretches[1].to, 2);
  EXPECT_NEAR(strip.stretches[1].streams, 0.25, 1e-6);
  EXPECT_NEAR(strip.whole(), 1.25, 1e-6);
  EXPECT_NEAR(strip.until(1.5), 1 + 0.125, 1e-6);

  const Lane lane = make_lane(0, 0, rank.streams.front(), within);
  EXPECT_NEAR(lane.exposed_in(0, 1), 0.25, 1e-6);
  EXPECT_NEAR(lane.exposed_in(0, 2), 0.25, 1e-6);
  EXPECT_EQ(lane.exposed_in(1, 2), 0);
}

}  // namespace
}  // namespace shardwise::view
