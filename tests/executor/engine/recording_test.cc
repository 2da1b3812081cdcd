#include <gtest/gtest.h>

#include <string>

#include "executor/engine/trainer.h"

namespace shardwise::exec {
namespace {

/// R for a step that is recorded, "." for one that is not.
std::string steps_of(const Recording& recording) {
  std::string said;
  for (std::int64_t step = recording.first; step < recording.steps; ++step) {
    said += recording.of(step) == Spans::recorded ? 'R' : '.';
  }
  return said;
}

TEST(Recording, IsOfEveryStepWhereItTakesNoTime) {
  EXPECT_EQ(steps_of({.takes_time = false, .steps = 6}), "RRRRRR");
  EXPECT_EQ(steps_of({.takes_time = false, .asked_for = false, .steps = 3}), "RRR");
}

TEST(Recording, IsOfTheFirstStepAndSomeOfTheLastWhereItTakesTime) {
  EXPECT_EQ(steps_of({.takes_time = true, .steps = 1}), "R");
  EXPECT_EQ(steps_of({.takes_time = true, .steps = 2}), "RR");
  EXPECT_EQ(steps_of({.takes_time = true, .steps = 3}), "R.R");
  EXPECT_EQ(steps_of({.takes_time = true, .steps = 12}), "R........RRR");
  EXPECT_EQ(steps_of({.takes_time = true, .steps = 30}), "R........................RRRRR");
}

TEST(Recording, CountsFromWhereARunResumes) {
  EXPECT_EQ(steps_of({.takes_time = true, .first = 20, .steps = 25}), "R...R");
}

TEST(Recording, IsOfNoStepWhereNothingIsAskedFor) {
  EXPECT_EQ(steps_of({.takes_time = true, .asked_for = false, .steps = 4}), "....");
}

}  // namespace
}  // namespace shardwise::exec
