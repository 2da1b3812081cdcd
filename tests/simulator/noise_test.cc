#include "simulator/noise.h"

#include <gtest/gtest.h>

#include "planner/search/goodput.h"
#include "simulator/engine.h"
#include "simulator/shared_engine.h"
#include "tests/simulator/hand_made.h"

namespace shardwise::sim {
namespace {

Workload every_rank(const HandMade& made) {
  Layout layout;
  layout.dp_shard = 8;
  return all_ranks(made.program, made.prices, layout);
}

TEST(Noise, RepeatsForASeedAndDiffersBetweenSeeds) {
  const HandMade made = fsdp(10);
  Workload work = every_rank(made);
  work.noise = {1, 0.05, {}};
  const double first = run_alone(work).length();
  EXPECT_EQ(run_alone(work).length(), first);
  work.noise.seed = 2;
  EXPECT_NE(run_alone(work).length(), first);
}

TEST(Noise, GivesBothEnginesTheSameTimesWhenNothingIsShared) {
  const HandMade made = fsdp(10);
  Workload work = every_rank(made);
  work.noise = {7, 0.1, {}};
  EXPECT_EQ(run_alone(work).end, run_shared(work).end);
}

TEST(Noise, LengthensAStepInWhichRanksWaitForOneAnother) {
  const HandMade made = fsdp(40);
  Workload work = every_rank(made);
  const double quiet = run_alone(work).length();
  work.noise = {3, 0.1, {}};
  EXPECT_GT(run_alone(work).length(), quiet);
}

TEST(Noise, MakesAllRanksAsSlowAsTheSlowest) {
  HandMade made;
  const auto kernel = made.add(0, Stream::compute, 2);
  made.collective(0, Stream::reduce_scatter, 1, GroupKind::dp_shard, {kernel});
  Workload work = every_rank(made);
  work.noise.compute_factor.assign(8, 1.0);
  work.noise.compute_factor[5] = 1.5;
  EXPECT_EQ(run_alone(work).length(), 4);
}

// Daly's closed form of the same process.
TEST(SimulatedGoodput, ApproachesDalysFormula) {
  const FailureModel model = {Seconds(20'000), Seconds(120), Seconds(300)};
  const Goodput expected = best_goodput(model);
  const double found = simulated_goodput({20'000, 120, 300, expected.interval.value()}, 200'000, 1);
  EXPECT_NEAR(found, expected.share, 0.005);
}

}  // namespace
}  // namespace shardwise::sim
