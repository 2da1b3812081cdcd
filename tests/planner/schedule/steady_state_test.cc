#include "planner/schedule/steady_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace shardwise::test {
namespace {

constexpr double kNever = -1e9;

/// Clocks each of which is, after a repetition, the latest of all before it with a delay of its own
/// for each: waits[i][j] seconds from clock j to clock i, kNever where it does not wait.
struct Clocks {
  std::vector<std::vector<double>> waits;
  std::vector<double> now;
  std::int64_t repeated = 0;

  void repeat() {
    ++repeated;
    std::vector<double> next(now.size(), kNever);
    for (std::size_t i = 0; i < now.size(); ++i) {
      for (std::size_t j = 0; j < now.size(); ++j) {
        if (waits[i][j] > kNever) next[i] = std::max(next[i], now[j] + waits[i][j]);
      }
    }
    now = next;
  }
  void visit(StateVisit& state) {
    for (double& clock : now) state.clock(clock);
  }
  std::vector<double> save() const { return now; }
  void restore(const std::vector<double>& saved) { now = saved; }
};

/// \returns how often the clocks were moved one by one
std::int64_t expect_closed_as_one_by_one(Clocks clocks, std::int64_t times, double near = 1e-12) {
  Clocks each = clocks;
  for (std::int64_t n = 0; n < times; ++n) each.repeat();
  Repetitions(clocks, 16).run(times);
  const double front = std::ranges::max(each.now);
  for (std::size_t i = 0; i < clocks.now.size(); ++i) {
    EXPECT_NEAR(clocks.now[i], each.now[i], near * front) << i << " after " << times;
  }
  return clocks.repeated;
}

// One after the other, 3 s each: closed as soon as two periods are alike.
TEST(Repetitions, AreClosedWhenAllClocksMoveAlike) {
  for (const std::int64_t times : {1, 2, 3, 4, 5, 1000}) {
    EXPECT_LE(expect_closed_as_one_by_one({{{3.0}}, {1.0}}, times), 4);
  }
}

// Two clocks that hand on to each other: 1 s and 4 s, so that the second repetition is not as the
// first, and each pair takes 5 s.
TEST(Repetitions, AreClosedWhateverTheirPeriod) {
  const Clocks two = {{{kNever, 1}, {4, kNever}}, {0, 0}};
  for (const std::int64_t times : {2, 7, 100, 1001}) {
    EXPECT_LE(expect_closed_as_one_by_one(two, times), 8) << times;
  }
}

// A clock 100 s ahead that takes 5 s a time is overtaken by one of 6 s after a hundred times: two
// periods that are alike are no proof that all are.
TEST(Repetitions, FindTheClockThatOvertakesAnother) {
  const Clocks race = {{{5, kNever, kNever}, {kNever, 6, kNever}, {1, 1, kNever}}, {100, 0, 100}};
  for (const std::int64_t times : {10, 99, 100, 101, 102, 103, 500, 4321}) {
    EXPECT_LE(expect_closed_as_one_by_one(race, times), 60) << times;
  }
  Clocks far = race;
  Repetitions(far, 16).run(8'000'000);
  EXPECT_DOUBLE_EQ(far.now[0], 100 + 5 * 8e6);
  EXPECT_DOUBLE_EQ(far.now[2], 6 * (8e6 - 1) + 1);
  EXPECT_LE(far.repeated, 120);
}

TEST(Repetitions, AreClosedAsOneByOneWhateverWaitsForWhat) {
  std::mt19937 random(11);
  const auto draw = [&](unsigned most) { return static_cast<double>(random() % most); };
  for (int drawn = 0; drawn < 300; ++drawn) {
    const std::size_t size = 2 + random() % 5;
    Clocks clocks;
    for (std::size_t i = 0; i < size; ++i) {
      clocks.now.push_back(draw(2) * draw(200));
      std::vector<double>& waits = clocks.waits.emplace_back(size, kNever);
      waits[i] = draw(3) < 2 ? draw(20) : kNever;
      waits[random() % size] = draw(20);
      waits[random() % size] = draw(20) / 7;
    }
    EXPECT_LE(expect_closed_as_one_by_one(clocks, 1 + static_cast<std::int64_t>(random() % 3000)),
              2000)
        << drawn;
  }
}

/// A clock whose pace falls towards 1 s for ever: 1 + 10 / (n + 1).
struct Falling {
  double now = 0;
  double n = 0;
  void repeat() { now += 1 + 10 / ++n; }
  void visit(StateVisit& state) { state.clock(now); }
  Falling save() const { return *this; }
  void restore(const Falling& saved) { *this = saved; }
};

// Without a period the rest goes on at the mean pace of the second half of 4,096 repetitions, here
// 1 + 10 ln 2 / 2,048: at most that much more than one by one.
TEST(Repetitions, WithoutAPeriodGoOnAtTheirMeanPace) {
  Falling closed;
  Repetitions(closed, 16).run(1'000'000);
  Falling each;
  for (int n = 0; n < 1'000'000; ++n) each.repeat();
  EXPECT_EQ(closed.n, 4096);
  EXPECT_GE(closed.now, each.now);
  EXPECT_LE(closed.now / each.now, 1 + 10 * std::log(2) / 2048);
}

}  // namespace
}  // namespace shardwise::test
