// Simulator and executor say who waits for whom in two ways: by the meetings of a workload, and by
// the groups of a layout. With every rank simulated both are the same.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "planner/recorded/critical_path.h"
#include "planner/recorded/rendezvous.h"
#include "simulator/clock/step_report.h"
#include "tests/simulator/clock/drawn_layouts.h"

namespace shardwise::sim {
namespace {

std::vector<RecordedStep> steps_of_every_rank(const Simulation& made) {
  std::vector<RecordedStep> ranks;
  for (const Actor& actor : made.work.actors) ranks.push_back(recorded(run_times(made, actor)));
  return ranks;
}

/// By operation of all ranks, the first that waits with it: for one that waits alone itself.
std::vector<std::pair<std::size_t, std::size_t>> first_of_each(
    const std::vector<RecordedStep>& ranks) {
  std::map<std::uint32_t, std::pair<std::size_t, std::size_t>> first;
  std::vector<std::pair<std::size_t, std::size_t>> found;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (std::size_t op = 0; op < ranks[rank].rendezvous.size(); ++op) {
      const std::uint32_t number = ranks[rank].rendezvous[op];
      const std::pair own = {rank, op};
      found.push_back(number == kNoRendezvous ? own : first.try_emplace(number, own).first->second);
    }
  }
  return found;
}

void expect_one_meaning(const Plan& plan) {
  SimulationOptions options;
  options.all_ranks = true;
  const Simulation made = simulate(plan, options);
  std::vector<RecordedStep> ranks = steps_of_every_rank(made);
  ASSERT_EQ(std::ssize(ranks), plan.layout.world());
  const auto by_workload = first_of_each(ranks);
  const Seconds path = critical_path(ranks);
  number_rendezvous(plan.layout, ranks);
  EXPECT_EQ(first_of_each(ranks), by_workload)
      << plan.engine.name << " " << test::text_of(plan.layout);
  EXPECT_EQ(critical_path(ranks), path) << plan.engine.name << " " << test::text_of(plan.layout);
  EXPECT_EQ(timeline_of(made.report).critical_path, path);
}

TEST(RecordedRanks, WaitForTheSameRanksByWorkloadAndByLayout) {
  int drawn = 0;
  const auto check = [&drawn](const Plan& plan) {
    expect_one_meaning(plan);
    ++drawn;
  };
  for (const char* engine : {"megatron_ddp", "shardwise", "fsdp2"}) {
    draw(example(engine, 16), 12, 7, check);
    draw(mixture_example(engine, 16), 6, 8, check);
  }
  draw_pipelines(
      example("megatron_ddp", 16), 12, 9, [](Layout&) {}, check);
  EXPECT_GE(drawn, 60 / drawn_of());
}

}  // namespace
}  // namespace shardwise::sim
