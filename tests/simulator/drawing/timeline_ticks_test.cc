#include "simulator/drawing/timeline_ticks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

namespace shardwise::sim {
namespace {

using testing::ElementsAre;

/// Many of them between two, each 7 % above the last.
std::vector<double> lengths(double from, double to) {
  std::vector<double> made = {from};
  while (made.back() * 1.07 < to) made.push_back(made.back() * 1.07);
  return made;
}

std::vector<std::string> tick_labels(const std::vector<Tick>& ticks) {
  std::vector<std::string> words;
  for (const Tick& tick : ticks) words.push_back(tick.label);
  return words;
}

TEST(TimelineTicks, AreRoundAndInOneUnit) {
  EXPECT_THAT(tick_labels(time_ticks(Seconds(3))),
              ElementsAre("0", "0.5 s", "1.0 s", "1.5 s", "2.0 s", "2.5 s", "3.0 s"));
  EXPECT_THAT(tick_labels(time_ticks(Seconds(1))),
              ElementsAre("0", "0.2 s", "0.4 s", "0.6 s", "0.8 s", "1.0 s"));
  EXPECT_THAT(tick_labels(time_ticks(Seconds(0.249))),
              ElementsAre("0", "20 ms", "40 ms", "60 ms", "80 ms", "100 ms", "120 ms", "140 ms",
                          "160 ms", "180 ms", "200 ms", "220 ms", "240 ms"));
  EXPECT_THAT(tick_labels(time_ticks(Seconds(0.00007))),
              ElementsAre("0", "10 us", "20 us", "30 us", "40 us", "50 us", "60 us", "70 us"));
  EXPECT_THAT(tick_labels(time_ticks(Seconds(1668))),
              ElementsAre("0", "5 min", "10 min", "15 min", "20 min", "25 min"));
  EXPECT_EQ(time_ticks(Seconds(1668)).back().value, 1500);
  EXPECT_THAT(tick_labels(time_ticks(Seconds(0))), ElementsAre("0"));
  EXPECT_THAT(tick_labels(memory_ticks(80_GiB)),
              ElementsAre("0", "20 GiB", "40 GiB", "60 GiB", "80 GiB"));
  EXPECT_THAT(tick_labels(memory_ticks(1_GiB)), ElementsAre("0", "0.5 GiB", "1.0 GiB"));
  EXPECT_THAT(tick_labels(memory_ticks(100_MiB)), ElementsAre("0", "50 MiB", "100 MiB"));
  EXPECT_EQ(memory_ticks(80_GiB)[1].value, static_cast<double>((20_GiB).value()));
}

TEST(TimelineTicks, OfMemorySuitTheLargestAmount) {
  EXPECT_THAT(tick_labels(memory_ticks(7_GiB * 1024)), ElementsAre("0", "2 TiB", "4 TiB", "6 TiB"));
  EXPECT_THAT(
      tick_labels(memory_ticks_between(70_GiB, 135_GiB)),
      ElementsAre("70 GiB", "80 GiB", "90 GiB", "100 GiB", "110 GiB", "120 GiB", "130 GiB"));
  EXPECT_EQ(memory_axis(70_GiB, 80_GiB), 80_GiB);
  EXPECT_EQ(memory_axis(1024_GiB, 80_GiB), 1024_GiB);
  EXPECT_EQ(memory_axis(108_MiB, 12_GiB), 108_MiB);  // beside 12 GiB it has no height
}

TEST(TimelineTicks, LeaveRoomForTheirLabels) {
  constexpr double kRoom = 300;
  constexpr double kLabel = 50;
  for (const double length : lengths(1e-4, 1e5)) {
    const Seconds to(length);
    const std::vector<Tick> ticks =
        time_ticks_between(Seconds(0.37 * length), to, 0.63 * to, to, parts_within(kRoom, kLabel));
    for (std::size_t i = 1; i < ticks.size(); ++i) {
      EXPECT_GE((ticks[i].value - ticks[i - 1].value) / (0.63 * length) * kRoom, kLabel) << length;
    }
    EXPECT_FALSE(ticks.empty()) << length;
  }
}

TEST(TimelineTicks, TellMomentsApartThatAreClose) {
  EXPECT_EQ(moment_text(Seconds(19.990351), Seconds(0.00335)), "19.99035 s");
  EXPECT_EQ(moment_text(Seconds(0.005), Seconds(0.001)), "5.00 ms");
  EXPECT_EQ(moment_text(Seconds(30), Seconds(1000)), "30 s");
  EXPECT_EQ(moment_text(Seconds(0), Seconds(1)), "0 s");
}

TEST(TimelineTicks, OfALogAxisAreRound) {
  EXPECT_THAT(log_values(36'707, 600'367), ElementsAre(50'000, 100'000, 200'000, 500'000));
  EXPECT_THAT(log_values(611, 790), ElementsAre(650, 700, 750));
  EXPECT_THAT(log_values(3, 4e6), ElementsAre(10, 100, 1e3, 1e4, 1e5, 1e6));
  EXPECT_THAT(tick_labels(log_time_ticks(Seconds(40), Seconds(900))),
              ElementsAre("50 s", "100 s", "200 s", "500 s"));
  EXPECT_THAT(tick_labels(log_memory_ticks(60_MiB, 3_GiB)),
              ElementsAre("100 MiB", "200 MiB", "500 MiB", "1000 MiB", "2000 MiB"));
}

TEST(TimelineTicks, AreNeitherFewNorManyOfAnyLength) {
  for (const double length : lengths(1e-7, 1e7)) {
    const std::vector<Tick> ticks = time_ticks(Seconds(length));
    EXPECT_GE(ticks.size(), 6U) << length;
    EXPECT_LE(ticks.size(), 14U) << length;
    EXPECT_LE(ticks.back().value, length * (1 + 1e-8)) << length;
  }
}

}  // namespace
}  // namespace shardwise::sim
